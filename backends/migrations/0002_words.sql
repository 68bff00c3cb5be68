-- Every word index. Its entries are in a table of its own, cda.words_NUMBER: the fields to filter by, the stems of a text
-- with how often each occurs (never where, so that no text can be made of them), and the codes that it holds and names.
-- How many entries hold a word is in cda.word_counts.
CREATE TABLE cda.word_indexes (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    analyzer text NOT NULL,
    schema_digest text NOT NULL,
    entries integer NOT NULL
);

CREATE TABLE cda.word_counts (
    number integer NOT NULL REFERENCES cda.word_indexes ON DELETE CASCADE,
    word text COLLATE "C" NOT NULL,
    entries integer NOT NULL,
    PRIMARY KEY (number, word)
);
