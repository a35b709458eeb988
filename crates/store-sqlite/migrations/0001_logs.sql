-- Ids are 16 bytes, hashes 32 bytes, times microseconds since 1970, payloads the exact text.
-- Keys lead with tenant and session. No triggers: every row follows from an append (S15).

CREATE TABLE session_heads (
    tenant         BLOB    NOT NULL,
    session        BLOB    NOT NULL,
    last_seq       INTEGER NOT NULL,
    last_hash      BLOB    NOT NULL,
    fence          INTEGER NOT NULL,
    lease_owner    TEXT,
    lease_until    INTEGER,
    next_due_at    INTEGER,
    status         TEXT    NOT NULL,
    blocked_n      INTEGER NOT NULL,
    checkpoint_seq INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, session)
) WITHOUT ROWID;
CREATE INDEX heads_due ON session_heads (tenant, next_due_at) WHERE next_due_at IS NOT NULL;

CREATE TABLE sessions (
    tenant      BLOB    NOT NULL,
    session     BLOB    NOT NULL,
    root        BLOB    NOT NULL,
    parent      BLOB,
    title       TEXT,
    tags        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    config_hash BLOB    NOT NULL,
    workspace   TEXT,
    PRIMARY KEY (tenant, session)
) WITHOUT ROWID;

-- A clustered row longer than about 1,000 bytes would waste most of a page on its overflow, so a
-- longer payload stands in `payloads`, whose rows fill their pages; `payload_id` then names it.
CREATE TABLE events (
    tenant            BLOB    NOT NULL,
    session           BLOB    NOT NULL,
    seq               INTEGER NOT NULL,
    event_id          BLOB    NOT NULL,
    type              TEXT    NOT NULL,
    at                INTEGER NOT NULL,
    actor             TEXT    NOT NULL,
    worker_id         BLOB,
    fence             INTEGER,
    wake_id           BLOB,
    turn_id           BLOB,
    session_thread_id BLOB,
    append_id         BLOB    NOT NULL,
    v                 INTEGER NOT NULL,
    payload           TEXT,
    payload_id        INTEGER,
    payload_hash      BLOB    NOT NULL,
    prev_hash         BLOB    NOT NULL,
    hash              BLOB    NOT NULL,
    PRIMARY KEY (tenant, session, seq),
    UNIQUE (tenant, session, event_id)
) WITHOUT ROWID;

CREATE TABLE payloads (
    payload_id INTEGER PRIMARY KEY,
    payload    TEXT NOT NULL
);

CREATE TABLE checkpoints (
    tenant  BLOB    NOT NULL,
    session BLOB    NOT NULL,
    seq     INTEGER NOT NULL,
    hash    BLOB    NOT NULL,
    mac     BLOB    NOT NULL,
    PRIMARY KEY (tenant, session, seq)
) WITHOUT ROWID;

CREATE TABLE intents (
    tenant             BLOB    NOT NULL,
    session            BLOB    NOT NULL,
    intent_id          BLOB    NOT NULL,
    call_key           TEXT    NOT NULL,
    tool               TEXT    NOT NULL,
    definition_version TEXT,
    state              TEXT    NOT NULL,
    invocation_id      BLOB,
    updated_seq        INTEGER NOT NULL,
    sealed             BLOB,
    PRIMARY KEY (tenant, session, intent_id)
) WITHOUT ROWID;
CREATE INDEX intents_open ON intents (tenant, session, intent_id) WHERE state <> 'observed';

CREATE TABLE asks (
    tenant             BLOB    NOT NULL,
    ask_id             BLOB    NOT NULL,
    session            BLOB    NOT NULL,
    intent_id          BLOB    NOT NULL,
    tool_use_id        BLOB,
    kind               TEXT    NOT NULL,
    state              TEXT    NOT NULL,
    pinned             INTEGER NOT NULL,
    input_hash         BLOB    NOT NULL,
    definition_version TEXT    NOT NULL,
    facts              TEXT    NOT NULL,
    expires_at         INTEGER NOT NULL,
    reply              TEXT,
    approver           TEXT,
    answered_seq       INTEGER,
    asked_seq          INTEGER NOT NULL,
    PRIMARY KEY (tenant, ask_id)
);
CREATE INDEX asks_pending ON asks (tenant, ask_id) WHERE state = 'pending';

CREATE TABLE locks (
    tenant   BLOB NOT NULL,
    location BLOB NOT NULL,
    key      TEXT NOT NULL,
    session  BLOB NOT NULL,
    fence    INTEGER,
    PRIMARY KEY (tenant, location, key)
) WITHOUT ROWID;

CREATE TABLE artifacts (
    tenant      BLOB    NOT NULL,
    artifact_id BLOB    NOT NULL,
    session     BLOB    NOT NULL,
    sha256      BLOB    NOT NULL,
    kind        TEXT    NOT NULL,
    mime        TEXT    NOT NULL,
    bytes       INTEGER NOT NULL,
    lines       INTEGER,
    complete    INTEGER NOT NULL,
    trust       TEXT    NOT NULL,
    expires_at  INTEGER,
    PRIMARY KEY (tenant, artifact_id)
) WITHOUT ROWID;

CREATE TABLE blobs (
    tenant BLOB NOT NULL,
    sha256 BLOB NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (tenant, sha256)
);

CREATE TABLE snapshots (
    tenant       BLOB    NOT NULL,
    session      BLOB    NOT NULL,
    seq          INTEGER NOT NULL,
    code_version INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    digest       BLOB    NOT NULL,
    PRIMARY KEY (tenant, session, seq)
);

CREATE TABLE idempotency (
    tenant    BLOB    NOT NULL,
    route     TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    body_hash BLOB    NOT NULL,
    response  TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (tenant, route, key)
) WITHOUT ROWID;

CREATE TABLE outbox (
    outbox_id BLOB    NOT NULL PRIMARY KEY,
    tenant    BLOB    NOT NULL,
    at        INTEGER NOT NULL,
    work      TEXT    NOT NULL
) WITHOUT ROWID;

-- `dedupe` is the first half of the SHA-256 of the delivery's key: as unique, and a third as long.
CREATE TABLE delivered (
    tenant  BLOB NOT NULL,
    session BLOB NOT NULL,
    dedupe  BLOB NOT NULL,
    PRIMARY KEY (tenant, session, dedupe)
) WITHOUT ROWID;

CREATE TABLE records (
    tenant     BLOB    NOT NULL,
    kind       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, id)
);
