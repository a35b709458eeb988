-- Full text, a projection that lags: `search_logs.seq` is the last event of a log that was taken in. The index holds
-- words and places only; what is shown is read from the event itself. `doc` begins with the millisecond of the event,
-- so that the newest are found first.

CREATE TABLE search_logs (
    log     INTEGER PRIMARY KEY,
    tenant  BLOB    NOT NULL,
    session BLOB    NOT NULL,
    seq     INTEGER NOT NULL,
    UNIQUE (tenant, session)
);

CREATE TABLE search_docs (
    doc INTEGER PRIMARY KEY,
    log INTEGER NOT NULL,
    seq INTEGER NOT NULL
);

-- The text is folded before it comes here: words, separated by spaces. This tokenizer splits nowhere else.
CREATE VIRTUAL TABLE search_index USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'ascii');
