-- Events that follow one another in an append mostly share who wrote them, in which wake and turn. Such a run stands in
-- one row, its payloads one after the other; an event names its run and where in it its payload begins. `prev_hash` is
-- the hash of the event before, and `payload_hash` that of the payload: neither is stored but for a payload that was
-- erased. A log has a number, which is shorter than its name.

ALTER TABLE session_heads ADD COLUMN log INTEGER;
UPDATE session_heads SET log = numbered.log
    FROM (SELECT tenant, session, row_number() OVER (ORDER BY tenant, session) AS log FROM session_heads) AS numbered
    WHERE numbered.tenant = session_heads.tenant AND numbered.session = session_heads.session;
CREATE UNIQUE INDEX heads_log ON session_heads (log);

CREATE TABLE runs (
    run               INTEGER PRIMARY KEY,
    append_id         BLOB    NOT NULL,
    actor             TEXT    NOT NULL,
    worker_id         BLOB,
    fence             INTEGER,
    wake_id           BLOB,
    turn_id           BLOB,
    session_thread_id BLOB,
    payloads          BLOB -- as text, or packed as a blob; null when they were erased
);

ALTER TABLE events RENAME TO single_events;
CREATE TABLE events (
    log          INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    event_id     BLOB    NOT NULL,
    type         TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    v            INTEGER NOT NULL,
    run          INTEGER NOT NULL,
    start        INTEGER NOT NULL,
    bytes        INTEGER NOT NULL,
    payload_hash BLOB, -- of a payload that was erased
    hash         BLOB    NOT NULL,
    PRIMARY KEY (log, seq),
    UNIQUE (log, event_id)
) WITHOUT ROWID;

-- Each event of an older store is a run of its own.
INSERT INTO runs
    SELECT row_number() OVER (ORDER BY e.tenant, e.session, e.seq), e.append_id, e.actor, e.worker_id, e.fence,
           e.wake_id, e.turn_id, e.session_thread_id,
           CASE WHEN e.payload_id IS NULL THEN e.payload ELSE coalesce(p.payload, '') END
    FROM single_events e LEFT JOIN payloads p ON p.payload_id = e.payload_id;
INSERT INTO events
    SELECT h.log, e.seq, e.event_id, e.type, e.at, e.v, e.run, 0, coalesce(length(CAST(r.payloads AS BLOB)), 0),
           CASE WHEN r.payloads IS NULL THEN e.payload_hash END, e.hash
    FROM (SELECT *, row_number() OVER (ORDER BY tenant, session, seq) AS run FROM single_events) e
    JOIN runs r ON r.run = e.run
    JOIN session_heads h ON h.tenant = e.tenant AND h.session = e.session;
DROP TABLE single_events;
DROP TABLE payloads;
