-- Every target's make. Its records are in a table of its own, cda.records_NUMBER, with one column a field of its schema.
CREATE TABLE cda.targets (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    embedder text NOT NULL,
    dim integer NOT NULL CHECK (dim > 0),
    schema_digest text NOT NULL
);
