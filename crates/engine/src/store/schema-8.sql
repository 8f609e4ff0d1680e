-- What version 8 added.

-- What people stopped. One that is not lifted keeps everything that it covers from starting.
CREATE TABLE holds (
    id     TEXT PRIMARY KEY,
    scope  TEXT NOT NULL,
    reason TEXT NOT NULL,
    by     TEXT NOT NULL,
    since  INTEGER NOT NULL,
    lifted INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_in_force ON holds (since) WHERE lifted IS NULL;

-- Who froze a task and why, when a person did.
ALTER TABLE tasks ADD COLUMN frozen TEXT;
