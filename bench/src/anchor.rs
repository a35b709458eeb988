//! What plain rusqlite takes for the same rows: one FULL transaction an append, nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// The event rows that one append of a real call wrote, and the schema they were written to.
pub struct Rows {
    schema: Vec<String>,
    columns: usize,
    seq_column: usize,
    id_column: usize,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// Takes the newest `appends` appends of a database.
    pub fn of_last_appends(database: &Path, appends: usize) -> Result<Vec<Self>> {
        let db = Connection::open(database)?;
        let schema: Vec<String> = db
            .prepare("select sql from sqlite_master where tbl_name = 'events' and sql is not null order by type desc")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut statement = db.prepare("select * from events where session = (select session from events where type = 'tool.observation' order by at desc limit 1) order by seq desc limit 200")?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let columns = names.len();
        let position = |name: &str| names.iter().position(|n| n == name).unwrap_or(0);
        let (seq_column, id_column, append_column) = (position("seq"), position("event_id"), position("append_id"));
        let all: Vec<Vec<Value>> = statement
            .query_map([], |row| (0..columns).map(|i| row.get::<_, Value>(i)).collect())?
            .collect::<Result<_, _>>()?;
        let mut groups: Vec<Vec<Vec<Value>>> = Vec::new();
        for row in all {
            match groups.last_mut() {
                Some(group) if group[0][append_column] == row[append_column] => group.push(row),
                _ => groups.push(vec![row]),
            }
        }
        Ok(groups
            .into_iter()
            .take(appends)
            .map(|mut rows| {
                rows.reverse();
                Self { schema: schema.clone(), columns, seq_column, id_column, rows }
            })
            .collect())
    }

    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// A fresh database with the same table, opened as the store opens its own.
    pub fn fresh(&self, path: &Path) -> Result<Connection> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "synchronous", "full")?;
        for sql in &self.schema {
            db.execute_batch(sql)?;
        }
        Ok(db)
    }

    /// Writes these rows once more under new seqs; the caller owns the transaction.
    pub fn write(&self, db: &Connection, next_seq: &mut i64) -> Result<()> {
        let places = vec!["?"; self.columns].join(",");
        let mut insert = db.prepare_cached(&format!("insert into events values ({places})"))?;
        for row in &self.rows {
            let mut row = row.clone();
            row[self.seq_column] = Value::Integer(*next_seq);
            let mut id = vec![0u8; 16];
            id[8..].copy_from_slice(&next_seq.to_be_bytes());
            row[self.id_column] = Value::Blob(id);
            insert.execute(params_from_iter(row))?;
            *next_seq += 1;
        }
        Ok(())
    }

    /// One FULL transaction with these rows, timed.
    pub fn commit(&self, db: &Connection, next_seq: &mut i64) -> Result<Duration> {
        let begun = Instant::now();
        db.execute_batch("begin immediate")?;
        self.write(db, next_seq)?;
        db.execute_batch("commit")?;
        Ok(begun.elapsed())
    }
}
