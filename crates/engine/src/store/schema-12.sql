-- What version 12 added.

-- The tasks that content was kept for: it stays as long as one of them needs it.
CREATE TABLE content_tasks (
    class  TEXT NOT NULL,
    digest BLOB NOT NULL,
    task   TEXT NOT NULL REFERENCES tasks (id),
    PRIMARY KEY (class, digest, task)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO content_tasks (class, digest, task)
    SELECT 'context', unhex(json_extract(event, '$.context')), task FROM records
    WHERE task IN (SELECT id FROM tasks) AND event LIKE '{"event":"model-turn",%' AND json_valid(event)
    AND length(unhex(json_extract(event, '$.context'))) = 32;

-- Legal holds: what one covers is not removed until it is lifted. The tasks are those that it covered when it was given.
CREATE TABLE legal_holds (
    id     TEXT PRIMARY KEY,
    scope  TEXT NOT NULL,
    tasks  TEXT NOT NULL,
    reason TEXT NOT NULL,
    by     TEXT NOT NULL,
    since  INTEGER NOT NULL,
    lifted INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX legal_holds_in_force ON legal_holds (since) WHERE lifted IS NULL;

-- A message sealed under the key of its class; its body is empty then.
ALTER TABLE messages ADD COLUMN sealed BLOB;
