-- What version 3 added.

-- What was denied in a task, with the answer, and the other ways in which it was tried.
CREATE TABLE denials (
    task   TEXT NOT NULL REFERENCES tasks (id),
    effect TEXT NOT NULL,
    first  TEXT NOT NULL REFERENCES actions (id),
    answer TEXT NOT NULL,
    ways   TEXT NOT NULL,
    UNIQUE (task, effect)
) STRICT;
