-- What version 10 added.

-- Which action had which credential, from when to when. The value is here only as a digest under the key of the directory.
CREATE TABLE leases (
    action     TEXT NOT NULL REFERENCES actions (id),
    credential TEXT NOT NULL,
    task       TEXT NOT NULL REFERENCES tasks (id),
    value      BLOB NOT NULL,
    began      INTEGER NOT NULL,
    expires    INTEGER NOT NULL,
    ended      INTEGER,
    why        TEXT,
    PRIMARY KEY (action, credential)
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_open ON leases (credential) WHERE ended IS NULL;

-- Credentials that a person took back: no action gets one of them until it is rotated.
CREATE TABLE revocations (
    credential TEXT PRIMARY KEY,
    by         TEXT NOT NULL,
    reason     TEXT NOT NULL,
    since      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
