-- What a state database holds. The record is the truth; everything else makes it quick to find or can be read again.
-- Numbers of 64 bits without a sign (times in nanoseconds, devices, inodes) are kept with the same bits, signed.

-- One row: what this database is.
CREATE TABLE store (
    one    INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    schema INTEGER NOT NULL,
    log    TEXT NOT NULL
) STRICT;

-- The chain, one record a row, append-only.
CREATE TABLE records (
    seq      INTEGER PRIMARY KEY,
    format   INTEGER NOT NULL,
    time     INTEGER NOT NULL,
    task     TEXT,
    action   TEXT,
    event    TEXT NOT NULL,
    previous BLOB NOT NULL,
    digest   BLOB NOT NULL
) STRICT;
CREATE INDEX records_by_subject ON records (task, action) WHERE task IS NOT NULL;

CREATE TABLE tasks (
    id        TEXT PRIMARY KEY,
    path      BLOB NOT NULL,
    device    INTEGER NOT NULL,
    inode     INTEGER NOT NULL,
    base      TEXT NOT NULL,
    owner     TEXT NOT NULL,
    title     TEXT,
    state     TEXT NOT NULL,
    opened    INTEGER NOT NULL,
    activated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_workspace ON tasks (device, inode, path);

CREATE TABLE actions (
    id       TEXT PRIMARY KEY,
    task     TEXT NOT NULL REFERENCES tasks (id),
    ordinal  INTEGER NOT NULL,
    digest   BLOB NOT NULL,
    state    TEXT NOT NULL,
    class    TEXT NOT NULL,
    tool     TEXT NOT NULL,
    request  TEXT NOT NULL,
    grant    TEXT NOT NULL,
    start    TEXT NOT NULL,
    decision TEXT,
    ending   TEXT,
    usage    TEXT,
    created  INTEGER NOT NULL,
    finished INTEGER,
    UNIQUE (task, ordinal)
) STRICT;
CREATE INDEX actions_unfinished ON actions (state) WHERE finished IS NULL;

-- What was seen of an action, one kind a row, so that a change of its state does not write all of it again.
CREATE TABLE evidence (
    action TEXT NOT NULL REFERENCES actions (id),
    kind   TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (action, kind)
) STRICT, WITHOUT ROWID;

-- The layers of a task, oldest first. A fork has rows of its own for the layers that it shares.
CREATE TABLE layers (
    task     TEXT NOT NULL REFERENCES tasks (id),
    position INTEGER NOT NULL,
    action   TEXT NOT NULL REFERENCES actions (id),
    state    TEXT NOT NULL,
    PRIMARY KEY (task, position),
    UNIQUE (action, task)
) STRICT, WITHOUT ROWID;

-- What was said between the agent and its model, as JSON.
CREATE TABLE messages (
    task    TEXT NOT NULL REFERENCES tasks (id),
    ordinal INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (task, ordinal)
) STRICT;

-- Which action a call of the agent became, so that a call that is made again is not run again.
CREATE TABLE calls (
    task   TEXT NOT NULL REFERENCES tasks (id),
    call   TEXT NOT NULL,
    action TEXT NOT NULL REFERENCES actions (id),
    PRIMARY KEY (task, call)
) STRICT, WITHOUT ROWID;

-- What the search for credentials found in a file, as long as the file and the rules stay the same.
CREATE TABLE scans (
    device INTEGER NOT NULL,
    inode  INTEGER NOT NULL,
    ctime  INTEGER NOT NULL,
    size   INTEGER NOT NULL,
    rules  BLOB NOT NULL,
    found  BLOB NOT NULL,
    kept   INTEGER NOT NULL,
    PRIMARY KEY (device, inode)
) STRICT, WITHOUT ROWID;
