-- What version 4 added.

-- What a request was asked on beside the layers and files below it, as a digest, and whether the command was given input.
ALTER TABLE approvals ADD COLUMN ground BLOB NOT NULL DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';
ALTER TABLE approvals ADD COLUMN input INTEGER NOT NULL DEFAULT 0;
-- The pid namespace in which a client was seen: numbers mean nothing in another one.
ALTER TABLE clients ADD COLUMN namespace INTEGER NOT NULL DEFAULT 0;
