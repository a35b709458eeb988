-- What a policy takes becomes a tombstone first: hash and size stay. `freed` = its bytes are gone as well.

ALTER TABLE artifacts ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE artifacts ADD COLUMN tombstone INTEGER;
ALTER TABLE artifacts ADD COLUMN freed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX artifacts_content ON artifacts (tenant, sha256);
