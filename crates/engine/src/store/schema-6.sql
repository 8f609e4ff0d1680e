-- What version 6 added.

-- Content that the record names by its digest, in pieces that others share, each sealed under the key of its class.
CREATE TABLE contents (
    class  TEXT NOT NULL,
    digest BLOB NOT NULL,
    pieces BLOB NOT NULL,
    kept   INTEGER NOT NULL,
    PRIMARY KEY (class, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX contents_by_age ON contents (class, kept);
CREATE TABLE pieces (
    class TEXT NOT NULL,
    name  BLOB NOT NULL,
    body  BLOB NOT NULL,
    PRIMARY KEY (class, name)
) STRICT;
