-- What version 2 added.

-- Requests for a person's yes. One that is not closed can still come to something.
CREATE TABLE approvals (
    id           TEXT PRIMARY KEY,
    task         TEXT NOT NULL REFERENCES tasks (id),
    action       TEXT NOT NULL REFERENCES actions (id),
    digest       BLOB NOT NULL,
    what         TEXT NOT NULL,
    roles        TEXT NOT NULL,
    state        TEXT NOT NULL,
    asked        INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    boot         TEXT NOT NULL,
    expires_boot INTEGER NOT NULL,
    untried      TEXT,
    repeats      INTEGER NOT NULL DEFAULT 0,
    answers      TEXT NOT NULL,
    why          TEXT,
    closed       INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_digest ON approvals (digest);
CREATE INDEX approvals_by_action ON approvals (action);
CREATE INDEX approvals_open ON approvals (asked) WHERE closed IS NULL;

-- Processes through which agents came to us: nothing that descends from one may answer for a person.
CREATE TABLE clients (
    boot  TEXT NOT NULL,
    pid   INTEGER NOT NULL,
    start INTEGER NOT NULL,
    name  TEXT NOT NULL,
    seen  INTEGER NOT NULL,
    PRIMARY KEY (boot, pid, start)
) STRICT, WITHOUT ROWID;
