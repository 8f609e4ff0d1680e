-- What version 7 added.

-- Signed heads of the record: how many records it had, the signed text, and the roots of the complete subtrees of the tree
-- over their digests, from which the tree goes on.
CREATE TABLE checkpoints (
    size  INTEGER PRIMARY KEY,
    note  TEXT NOT NULL,
    peaks BLOB NOT NULL
) STRICT;
