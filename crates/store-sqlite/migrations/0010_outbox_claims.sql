-- Entries that tell somebody outside have a time at which they are due, and are taken by one sender at a time: a claim moves
-- that time. All others have none, and are delivered inside the store as before.
ALTER TABLE outbox ADD COLUMN next_at INTEGER;
ALTER TABLE outbox ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_inside ON outbox (outbox_id) WHERE next_at IS NULL;
CREATE INDEX outbox_due ON outbox (next_at, outbox_id) WHERE next_at IS NOT NULL;
