-- What version 11 added.

-- Files of packages that came from registries, whole and as they must be.
CREATE TABLE packages (
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    version  TEXT NOT NULL,
    registry TEXT NOT NULL,
    digest   TEXT NOT NULL,
    locked   INTEGER NOT NULL,
    task     TEXT NOT NULL REFERENCES tasks (id),
    action   TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (kind, name, version, digest, action)
) STRICT, WITHOUT ROWID;
CREATE INDEX packages_by_action ON packages (action);
CREATE INDEX packages_by_name ON packages (name, version);
