//! What plain rusqlite takes for the same rows: one FULL transaction an append, nothing else. The
//! rows are copied from what a real call left in the store: its events with their payloads, the row
//! of its intent, its artifacts' rows and the head. The row of its key, which is gone by then, is made up.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

const TABLES: [&str; 6] = ["events", "runs", "intents", "session_heads", "artifacts", "locks"];

/// One table's rows of one append.
struct Copied {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Copied {
    fn of(db: &Connection, sql: &str, bind: &[Value]) -> Result<Self> {
        let mut statement = db.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let rows = statement
            .query_map(params_from_iter(bind), |row| (0..columns.len()).map(|i| row.get::<_, Value>(i)).collect())?
            .collect::<Result<_, _>>()?;
        Ok(Self { columns, rows })
    }

    fn at(&self, column: &str) -> usize {
        self.columns.iter().position(|name| name == column).unwrap_or(0)
    }

    fn insert(&self, table: &str) -> String {
        let places = vec!["?"; self.columns.len()].join(",");
        format!("insert or replace into {table} ({}) values ({places})", self.columns.join(","))
    }
}

/// What an append does with the key of its call.
#[derive(Clone, Copy)]
pub enum Key {
    Takes,
    Frees,
}

impl Key {
    fn write(self, db: &Connection, session: &Value) -> Result<()> {
        let (location, key) = ([1u8; 16], "fs:/workspace/a.txt");
        match self {
            Self::Takes => {
                let sql = "insert into locks (tenant, location, key, session, fence) values (?1, ?2, ?3, ?4, 1)";
                db.prepare_cached(sql)?.execute(params![location, location, key, session])?;
            }
            Self::Frees => {
                let sql = "delete from locks where tenant = ?1 and location = ?2 and key = ?3 and session = ?4";
                db.prepare_cached(sql)?.execute(params![location, location, key, session])?;
            }
        }
        Ok(())
    }
}

/// The rows that one append of a real call wrote, and the schema they were written to.
pub struct Rows {
    schema: Vec<String>,
    events: Copied,
    runs: Copied,
    intent: Copied,
    artifacts: Copied,
    head: Copied,
    key: Option<Key>,
}

impl Rows {
    /// Takes the newest `appends` appends of the session that was called last.
    pub fn of_last_appends(database: &Path, appends: usize) -> Result<Vec<Self>> {
        let db = Connection::open(database)?;
        let mut schema = Vec::new();
        for table in TABLES {
            let mut found =
                db.prepare("select sql from sqlite_master where tbl_name = ?1 and sql is not null order by type desc")?;
            schema.extend(found.query_map([table], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?);
        }
        let (session, log): (Value, Value) = db.query_row(
            "select session, log from events join logs using (log) where type = 'tool.observation' \
             order by at desc limit 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let mut newest = db.prepare(
            "select append_id from events join runs using (run, log) where log = ?1 group by append_id order by max(seq) desc",
        )?;
        let ids: Vec<Value> = newest.query_map([&log], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut taken = Vec::new();
        for append in ids.into_iter().take(appends) {
            let of_append = [log.clone(), append.clone()];
            let events = Copied::of(
                &db,
                "select events.* from events join runs using (run, log) where log = ?1 and append_id = ?2 order by seq",
                &of_append,
            )?;
            let runs = Copied::of(&db, "select * from runs where append_id = ?1 order by run", &of_append[1..])?;
            let bind = [session.clone(), append];
            let one = &bind[..1];
            let intent =
                Copied::of(&db, "select * from intents where session = ?1 order by updated_seq desc limit 1", one)?;
            let named =
                events.rows.iter().filter(|row| row[events.at("type")] == Value::Text("tool.artifact.stored".into()));
            let newest = [session.clone(), Value::Integer(i64::try_from(named.count())?)];
            let artifacts = Copied::of(
                &db,
                "select * from artifacts where session = ?1 order by artifact_id desc limit ?2",
                &newest,
            )?;
            let head = Copied::of(&db, "select * from session_heads where session = ?1", one)?;
            taken.push(Self { schema: schema.clone(), events, runs, intent, artifacts, head, key: None });
        }
        Ok(taken)
    }

    /// The same append of a call that takes or frees a key.
    pub fn and_key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    pub fn count(&self) -> usize {
        self.events.rows.len()
    }

    /// A fresh database with the same tables, opened as the store opens its own.
    pub fn fresh(&self, path: &Path) -> Result<Connection> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "synchronous", "full")?;
        for sql in &self.schema {
            db.execute_batch(sql)?;
        }
        Ok(db)
    }

    /// Writes these rows once more under new seqs, as rows of `session`; the caller owns the transaction.
    pub fn write(&self, db: &Connection, next_seq: &mut i64, session: u128) -> Result<()> {
        let log = Value::Integer(i64::try_from(session >> 64)?);
        let session = Value::Blob(session.to_be_bytes().to_vec());
        let fresh_id = |seq: i64| {
            let mut id = vec![0u8; 16];
            id[8..].copy_from_slice(&seq.to_be_bytes());
            Value::Blob(id)
        };
        let (events, runs) = (&self.events, &self.runs);
        let mut insert_run = db.prepare_cached(&runs.insert("runs"))?;
        let mut insert = db.prepare_cached(&events.insert("events"))?;
        for run in &runs.rows {
            let mut fresh = run.clone();
            fresh[runs.at("run")] = Value::Null;
            insert_run.execute(params_from_iter(fresh))?;
            let number = Value::Integer(db.last_insert_rowid());
            for row in events.rows.iter().filter(|row| row[events.at("run")] == run[runs.at("run")]) {
                let mut row = row.clone();
                row[events.at("run")] = number.clone();
                row[events.at("seq")] = Value::Integer(*next_seq);
                row[events.at("log")] = log.clone();
                row[events.at("event_id")] = fresh_id(*next_seq);
                insert.execute(params_from_iter(row))?;
                *next_seq += 1;
            }
        }
        let others = [
            ("intents", &self.intent, Some("intent_id")),
            ("artifacts", &self.artifacts, Some("artifact_id")),
            ("session_heads", &self.head, None),
        ];
        for (table, copied, id) in others {
            let mut insert = db.prepare_cached(&copied.insert(table))?;
            for (i, row) in (0i64..).zip(&copied.rows) {
                let mut row = row.clone();
                row[copied.at("session")] = session.clone();
                if let Some(id) = id {
                    row[copied.at(id)] = fresh_id(*next_seq - i);
                }
                insert.execute(params_from_iter(row))?;
            }
        }
        self.key.map_or(Ok(()), |key| key.write(db, &session))
    }

    /// One FULL transaction with these rows, timed.
    pub fn commit(&self, db: &Connection, next_seq: &mut i64) -> Result<Duration> {
        let begun = Instant::now();
        db.execute_batch("begin immediate")?;
        self.write(db, next_seq, 1)?;
        db.execute_batch("commit")?;
        Ok(begun.elapsed())
    }
}
