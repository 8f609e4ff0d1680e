-- What version 5 added.

-- The accounts whose yes to a request is the owner's own, as JSON. Where nobody wrote them down, nobody counts as another.
ALTER TABLE approvals ADD COLUMN owners TEXT NOT NULL DEFAULT '[]';
