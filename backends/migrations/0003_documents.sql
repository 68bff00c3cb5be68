-- Small documents that several machines share; each is replaced whole by whoever knows what it replaces.
CREATE TABLE cda.documents (
    name text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL
);
