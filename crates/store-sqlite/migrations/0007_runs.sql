-- Events that follow one another in an append mostly share who wrote them, in which wake and turn. Such a run stands in
-- one row, its payloads one after the other; an event names its run and where in it its payload begins. `prev_hash` is
-- the hash of the event before, and `payload_hash` that of the payload: neither is stored but for a payload that was
-- erased. A log has a number, which is shorter than its name.

-- Never given a second time, and apart from the heads: what is left of a log whose head was lost is still found.
CREATE TABLE logs (
    log     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant  BLOB NOT NULL,
    session BLOB NOT NULL,
    UNIQUE (tenant, session)
);
INSERT INTO logs (tenant, session)
    SELECT tenant, session FROM session_heads UNION SELECT tenant, session FROM events ORDER BY 1, 2;

CREATE TABLE runs (
    run               INTEGER PRIMARY KEY,
    log               INTEGER NOT NULL,
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
    SELECT row_number() OVER (ORDER BY e.tenant, e.session, e.seq), l.log, e.append_id, e.actor, e.worker_id, e.fence,
           e.wake_id, e.turn_id, e.session_thread_id,
           CASE WHEN e.payload_id IS NULL THEN e.payload ELSE coalesce(p.payload, '') END
    FROM single_events e JOIN logs l ON l.tenant = e.tenant AND l.session = e.session
    LEFT JOIN payloads p ON p.payload_id = e.payload_id;
INSERT INTO events
    SELECT r.log, e.seq, e.event_id, e.type, e.at, e.v, e.run, 0, coalesce(length(CAST(r.payloads AS BLOB)), 0),
           CASE WHEN r.payloads IS NULL THEN e.payload_hash END, e.hash
    FROM (SELECT *, row_number() OVER (ORDER BY tenant, session, seq) AS run FROM single_events) e
    JOIN runs r ON r.run = e.run;
DROP TABLE single_events;
DROP TABLE payloads;
