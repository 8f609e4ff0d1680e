-- What version 9 added.

-- What was wanted of a task when it was opened, and when that ends. A fork has the same, and shares the budget of its root.
CREATE TABLE intakes (
    task         TEXT PRIMARY KEY REFERENCES tasks (id),
    root         TEXT NOT NULL REFERENCES tasks (id),
    body         TEXT NOT NULL,
    opened       INTEGER NOT NULL,
    expires      INTEGER,
    boot         TEXT,
    expires_boot INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX intakes_by_root ON intakes (root);
