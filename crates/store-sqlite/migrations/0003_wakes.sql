-- Work that waits for its time (store §6), and the orders in which due sessions are found. Priorities are 0 low, 1 normal,
-- 2 high: greater is sooner.

CREATE TABLE queued_wakes (
    tenant         BLOB    NOT NULL,
    session        BLOB    NOT NULL,
    queued_wake_id BLOB    NOT NULL,
    due_at         INTEGER NOT NULL,
    reason         TEXT    NOT NULL,
    note           TEXT,
    dedupe_key     TEXT,
    priority       INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_seq    INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, queued_wake_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX wakes_pending ON queued_wakes (tenant, session, dedupe_key) WHERE state = 'pending';

-- `next_due_at` and `priority` follow from `work_due_at` and the earliest pending wake.
ALTER TABLE session_heads ADD COLUMN work_due_at INTEGER;
ALTER TABLE session_heads ADD COLUMN wake_due_at INTEGER;
ALTER TABLE session_heads ADD COLUMN wake_priority INTEGER;
ALTER TABLE session_heads ADD COLUMN priority INTEGER NOT NULL DEFAULT 1;
ALTER TABLE session_heads ADD COLUMN failure_streak INTEGER NOT NULL DEFAULT 0;
UPDATE session_heads SET work_due_at = next_due_at, priority = 2 WHERE next_due_at IS NOT NULL;
UPDATE session_heads SET next_due_at = NULL, priority = 1 WHERE status = 'terminated';

-- Free and held sessions apart: whoever looks for work does not walk past what others are doing.
DROP INDEX heads_due;
CREATE INDEX heads_ready ON session_heads (tenant, priority, next_due_at, session)
    WHERE lease_owner IS NULL AND next_due_at IS NOT NULL;
CREATE INDEX heads_held ON session_heads (tenant, lease_owner, priority, next_due_at, session, lease_until)
    WHERE lease_owner IS NOT NULL;

CREATE INDEX asks_expiry ON asks (expires_at) WHERE state = 'pending';
CREATE INDEX idempotency_age ON idempotency (at);
