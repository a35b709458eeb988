-- What lists ask for, each with an index in the order of its list: sessions by their creation, asks by the time they were
-- raised, records by id. The rows of a log that was there before are computed from its events by the program, in the
-- same transaction (`brought_forward.rs`).

-- One row a session. `created_at`, `parent`, `root` and `workspace` are those of `sessions`, which never change.
CREATE TABLE session_facts (
    tenant        BLOB    NOT NULL,
    session       BLOB    NOT NULL,
    created_at    INTEGER NOT NULL,
    agent         BLOB,
    agent_version INTEGER NOT NULL,
    parent        BLOB,
    root          BLOB    NOT NULL,
    workspace     TEXT,
    setup         BLOB    NOT NULL,
    status        TEXT    NOT NULL,
    stop_reason   TEXT,
    summary       TEXT,
    active_at     INTEGER NOT NULL,
    wakes         INTEGER NOT NULL,
    turns         INTEGER NOT NULL,
    tool_calls    INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_read    INTEGER NOT NULL,
    cache_written INTEGER NOT NULL,
    PRIMARY KEY (tenant, session)
) WITHOUT ROWID;
CREATE INDEX facts_created ON session_facts (tenant, created_at, session);
CREATE INDEX facts_status ON session_facts (tenant, status, created_at, session);
CREATE INDEX facts_root ON session_facts (tenant, root, created_at, session);
CREATE INDEX facts_agent ON session_facts (tenant, agent, created_at, session) WHERE agent IS NOT NULL;
CREATE INDEX facts_parent ON session_facts (tenant, parent, created_at, session) WHERE parent IS NOT NULL;
CREATE INDEX facts_workspace ON session_facts (tenant, workspace, created_at, session) WHERE workspace IS NOT NULL;

CREATE TABLE session_tags (
    tenant     BLOB    NOT NULL,
    tag        TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    session    BLOB    NOT NULL,
    PRIMARY KEY (tenant, tag, created_at, session)
) WITHOUT ROWID;

-- Calls that were settled as unknown, until somebody says what became of them.
CREATE TABLE unknown_outcomes (
    tenant        BLOB    NOT NULL,
    session       BLOB    NOT NULL,
    invocation_id BLOB    NOT NULL,
    intent_id     BLOB    NOT NULL,
    at            INTEGER NOT NULL,
    seq           INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, invocation_id)
) WITHOUT ROWID;
CREATE INDEX unknown_invocation ON unknown_outcomes (tenant, invocation_id);

ALTER TABLE asks ADD COLUMN principal TEXT NOT NULL DEFAULT '';
ALTER TABLE asks ADD COLUMN asked_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX asks_asked ON asks (tenant, asked_at, ask_id);
CREATE INDEX asks_session ON asks (tenant, session, asked_at, ask_id);
CREATE INDEX asks_state ON asks (tenant, state, asked_at, ask_id);
CREATE INDEX asks_principal ON asks (tenant, principal, asked_at, ask_id);
CREATE INDEX asks_tool_use ON asks (tenant, tool_use_id) WHERE tool_use_id IS NOT NULL;
CREATE INDEX asks_root_tool_use ON asks (tenant, root_tool_use_id) WHERE root_tool_use_id IS NOT NULL;

-- What a record has in the declared index fields of its kind, and which fields those were when its rows were indexed.
ALTER TABLE records ADD COLUMN field_1 TEXT;
ALTER TABLE records ADD COLUMN field_2 TEXT;
ALTER TABLE records ADD COLUMN field_3 TEXT;
CREATE INDEX records_field_1 ON records (tenant, kind, field_1, id) WHERE field_1 IS NOT NULL;
CREATE INDEX records_field_2 ON records (tenant, kind, field_2, id) WHERE field_2 IS NOT NULL;
CREATE INDEX records_field_3 ON records (tenant, kind, field_3, id) WHERE field_3 IS NOT NULL;
CREATE TABLE record_kinds (
    kind   TEXT NOT NULL PRIMARY KEY,
    fields TEXT NOT NULL
) WITHOUT ROWID;
