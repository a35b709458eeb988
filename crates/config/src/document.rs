//! A configuration file as TOML, with errors that name file and line.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::ConfigError;

/// Every table and its keys.
pub(crate) const KEYS: &[(&str, &[&str])] = &[
    ("store", &["url", "durability"]),
    ("artifacts", &["url", "quota"]),
    ("retention", &["artifact_idle", "artifact_count", "artifact_bytes"]),
    ("approvals", &["default", "ask_expiry"]),
    ("sandbox", &["minimum", "network", "shell_idle", "max_memory", "max_processes", "max_disk_use", "min_disk_free"]),
    ("model", &["default", "base_url", "timeout", "window", "media", "max_turns", "max_output_tokens"]),
    ("limits", &["max_requests_per_message", "max_turns_per_wake"]),
    ("telemetry", &["otlp_endpoint"]),
    ("rules", &[]),
];

/// A file's text with its name, for messages that name the line.
pub(crate) struct Document<'t> {
    pub(crate) file: &'t str,
    pub(crate) text: &'t str,
}

impl Document<'_> {
    pub(crate) fn fault(&self, offset: usize, problem: &str) -> ConfigError {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ConfigError::invalid(format!("{}:{line}: {problem}", self.file))
    }

    /// The tables, after every key was found to be known.
    pub(crate) fn tables(&self) -> Result<DeTable<'_>, ConfigError> {
        let table = DeTable::parse(self.text).map(Spanned::into_inner).map_err(|e| {
            let mut problem = format!("not valid TOML: {}", e.message().replace('\n', "; "));
            let span = e.span().unwrap_or_default();
            if let Some(key) = self.text.get(span.clone()).filter(|_| e.message() == "duplicate key") {
                problem.push_str(&format!(" `{key}`"));
            }
            self.fault(span.start, &problem)
        })?;
        let names: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
        for (key, value) in &table {
            let name: &str = key.get_ref();
            let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == name) else {
                return Err(self.unknown(key.span().start, name, &names));
            };
            match value.get_ref() {
                // The rules are read by those who know them.
                _ if name == "rules" => {}
                DeValue::Table(fields) => {
                    for key in fields.keys() {
                        let name: &str = key.get_ref();
                        if !keys.contains(&name) {
                            return Err(self.unknown(key.span().start, name, keys));
                        }
                    }
                }
                _ => return Err(self.fault(key.span().start, &format!("`{name}` must be a table, written [{name}]"))),
            }
        }
        Ok(table)
    }

    fn unknown(&self, offset: usize, key: &str, known: &[&str]) -> ConfigError {
        let likeness = |known: &&&str| strsim::normalized_damerau_levenshtein(key, known);
        let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let near = nearest.copied().unwrap_or("rules");
        self.fault(offset, &format!("unknown key `{key}`; the nearest known one is `{near}`"))
    }

    /// `table.key` through `read`, if it is there.
    pub(crate) fn value<T>(
        &self,
        tables: &DeTable<'_>,
        (table, key): (&str, &str),
        read: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(DeValue::Table(fields)) = tables.get(table).map(Spanned::get_ref) else { return Ok(None) };
        let Some(value) = fields.get(key) else { return Ok(None) };
        let read = read(value.get_ref()).map(Some);
        read.map_err(|why| self.fault(value.span().start, &format!("`{table}.{key}`: {why}")))
    }
}
