//! Rules as people write them.
//!
//! ```toml
//! [[rules]]
//! id = "no-secrets"                # optional; unique in the policy
//! action = "*"                     # a word, or a glob over it
//! path = ["**/.env", "secrets/**"] # a glob or several; relative ones are beneath /workspace
//! effect = "deny"                  # allow | ask | ask_pinned | deny
//! match = ["a/.env"]               # examples, checked when the file is read
//! not_match = [".envrc"]
//!
//! [[rules]]
//! action = "shell_run"
//! argv = ["git", "status"]         # the words a command begins with; a last "$" = nothing follows
//! effect = "allow"
//! agent = "reviewer"               # optional scope: agent, session, project
//! expires_at = 2027-01-01T00:00:00Z
//! ```
//!
//! A rule names at most one kind of resource: `path`, `argv`, `host` (`example.com`, `*.example.com`), a kind that
//! is known by its name (`mcp_tool`, `task`, `artifact`, `shell`, `target_session`, `memory`, `skill`), or
//! `opaque = true`; with none it speaks of any. `argv` takes a list of words or a list of such lists, every other one a
//! pattern or a list. `*` and `?` stay inside a path segment, `**` is any number of segments, and `x/**` includes `x`
//! itself.

use std::str::FromStr;

use portcullis_base::{SessionId, Timestamp};
use portcullis_contract::NamedKind;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::named::{formerly, kind_of_key, rule_key};
use crate::path::WORKSPACE;
use crate::subject::{self, Subject};
use crate::tables::Document;
use crate::{
    ActionPattern, ArgvPattern, HostPattern, Layer, PathPattern, PatternError, PolicyError, Problem, ResourcePattern,
    Rule, RuleEffect, RuleId, Scope, WordPattern, host,
};

/// Rules of one file.
const MAX_RULES: usize = 10_000;

/// Keys beside those that name a resource.
const KEYS: [&str; 9] = ["id", "action", "effect", "agent", "session", "project", "expires_at", "match", "not_match"];
const RESOURCES: [&str; 11] =
    ["path", "argv", "host", "mcp_tool", "task", "artifact", "shell", "target_session", "memory", "skill", "opaque"];

type Node<'t> = Spanned<DeValue<'t>>;

/// Reads the `[[rules]]` of a configuration file; its other tables belong to others.
///
/// # Errors
/// The first fault, with file and line. No rule is ever left out: all are read, or none.
pub fn parse_rules(text: &str, file: &str, layer: Layer) -> Result<Vec<Rule>, PolicyError> {
    let document = Document::new(file, text);
    rules_of(&document, &document.parse()?, layer)
}

/// The rules of a file already taken apart.
pub(crate) fn rules_of(document: &Document<'_>, table: &DeTable<'_>, layer: Layer) -> Result<Vec<Rule>, PolicyError> {
    let wanted = "an array of tables, written [[rules]]";
    let Some(value) = table.get("rules") else {
        return Ok(Vec::new());
    };
    let DeValue::Array(rules) = value.get_ref() else {
        return Err(document.wrong_type(value, "rules", wanted));
    };
    if rules.len() > MAX_RULES {
        return Err(document.fault(value.span().start, Problem::TooManyRules { max: MAX_RULES }));
    }
    rules
        .iter()
        .map(|rule| match rule.get_ref() {
            DeValue::Table(fields) => Fields { document, at: rule.span().start, fields }.rule(layer),
            _ => Err(document.wrong_type(rule, "rules", wanted)),
        })
        .collect()
}

/// One `[[rules]]` table.
struct Fields<'d> {
    document: &'d Document<'d>,
    at: usize,
    fields: &'d DeTable<'d>,
}

impl<'d> Fields<'d> {
    fn get(&self, key: &str) -> Option<&'d Node<'d>> {
        self.fields.get(key)
    }

    fn rule(&self, layer: Layer) -> Result<Rule, PolicyError> {
        self.document.only_known(self.fields, &[&KEYS[..], &RESOURCES].concat())?;
        let source = self.document.source(self.at);
        let (action, resource) = (self.action()?, self.resource()?);
        self.no_former_name(&action, &resource)?;
        self.examples(&resource, "match", "matches", true)?;
        self.examples(&resource, "not_match", "does not match", false)?;
        let id = match self.get("id") {
            None => RuleId::by_place(layer, &source),
            Some(value) => {
                let wanted = "one word of at most 200 bytes that does not begin with `tool_default:`";
                self.value(value, "id", wanted, RuleId::chosen)?
            }
        };
        Ok(Rule {
            id,
            layer,
            action,
            resource,
            effect: self.effect()?,
            scope: self.scope()?,
            expires_at: self.expires_at()?,
            source,
        })
    }

    /// A string that `read` understands.
    fn value<T>(
        &self,
        value: &Node<'_>,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, PolicyError> {
        let text = self.document.text(value, key)?;
        read(text).ok_or_else(|| {
            let (key, wanted) = (key.to_owned(), wanted.to_owned());
            let value_text = text.chars().take(80).collect();
            self.document.fault(value.span().start, Problem::BadValue { key, value: value_text, wanted })
        })
    }

    fn required(&self, key: &'static str, wanted: &'static str) -> Result<&'d Node<'d>, PolicyError> {
        self.get(key).ok_or_else(|| self.document.fault(self.at, Problem::Missing { key, wanted }))
    }

    fn action(&self) -> Result<ActionPattern, PolicyError> {
        let value = self.required("action", "an action such as \"edit\", or \"*\"")?;
        self.pattern(value, "action", ActionPattern::parse)
    }

    fn effect(&self) -> Result<RuleEffect, PolicyError> {
        let wanted = "allow, ask, ask_pinned or deny";
        let value = self.required("effect", wanted)?;
        let named = |text: &str| RuleEffect::ALL.into_iter().find(|effect| effect.as_str() == text);
        self.value(value, "effect", wanted, named)
    }

    fn scope(&self) -> Result<Scope, PolicyError> {
        let name = |key| {
            let read = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            self.get(key).map(|value| self.value(value, key, "a name", read)).transpose()
        };
        let session = self
            .get("session")
            .map(|value| self.value(value, "session", "a session id, sesn_…", |t| SessionId::from_str(t).ok()));
        Ok(Scope { project: name("project")?, agent: name("agent")?, session: session.transpose()? })
    }

    fn expires_at(&self) -> Result<Option<Timestamp>, PolicyError> {
        let wanted = "a time with its zone, such as 2027-01-01T00:00:00Z";
        let Some(value) = self.get("expires_at") else {
            return Ok(None);
        };
        let text = match value.get_ref() {
            DeValue::Datetime(at) => at.to_string(),
            _ => self.document.text(value, "expires_at")?.to_owned(),
        };
        Timestamp::from_str(&text).map(Some).map_err(|_| {
            let (key, wanted) = ("expires_at".to_owned(), wanted.to_owned());
            self.document.fault(value.span().start, Problem::BadValue { key, value: text, wanted })
        })
    }

    fn pattern<T>(
        &self,
        value: &Node<'_>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, PatternError>,
    ) -> Result<T, PolicyError> {
        let text = self.document.text(value, key)?;
        parse(text).map_err(|source| self.bad_pattern(value, key, text.to_owned(), source))
    }

    fn bad_pattern(&self, value: &Node<'_>, key: &str, pattern: String, source: PatternError) -> PolicyError {
        let key = key.to_owned();
        self.document.fault(value.span().start, Problem::BadPattern { key, pattern, source })
    }

    fn resource(&self) -> Result<ResourcePattern, PolicyError> {
        let mut named = RESOURCES.into_iter().filter_map(|key| Some((key, self.get(key)?)));
        let Some((key, value)) = named.next() else {
            return Ok(ResourcePattern::Any);
        };
        if let Some((second, value)) = named.next() {
            let problem = Problem::TwoResources { first: key, second };
            return Err(self.document.fault(value.span().start, problem));
        }
        Ok(match key {
            "path" => ResourcePattern::Path(self.list(value, key, PathPattern::parse)?),
            "host" => ResourcePattern::Host(self.list(value, key, HostPattern::parse)?),
            "argv" => ResourcePattern::Argv(self.commands(value)?),
            _ => match kind_of_key(key) {
                Some(kind) => ResourcePattern::Named(kind, self.list(value, key, WordPattern::parse)?),
                None if self.document.flag(value, key)? => ResourcePattern::Opaque,
                None => return Err(self.document.wrong_type(value, key, "true, or be left out")),
            },
        })
    }

    /// Refuses what a rule called a tool before it had a key of its own: such a rule would match it no more.
    fn no_former_name(&self, action: &ActionPattern, resource: &ResourcePattern) -> Result<(), PolicyError> {
        let ResourcePattern::Named(NamedKind::McpTool, names) = resource else { return Ok(()) };
        let Some((kind, name)) = names.iter().find_map(|name| formerly(action, name.as_str())) else { return Ok(()) };
        let problem = Problem::NoTool { key: rule_key(kind), name: name.to_owned() };
        let at = self.get("mcp_tool").map_or(self.at, |value| value.span().start);
        Err(self.document.fault(at, problem))
    }

    /// One pattern or several.
    fn list<T>(
        &self,
        value: &Node<'_>,
        key: &str,
        parse: impl Fn(&str) -> Result<T, PatternError>,
    ) -> Result<Vec<T>, PolicyError> {
        match value.get_ref() {
            DeValue::Array(all) if !all.is_empty() => all.iter().map(|one| self.pattern(one, key, &parse)).collect(),
            DeValue::String(_) => Ok(vec![self.pattern(value, key, parse)?]),
            _ => Err(self.document.wrong_type(value, key, "a pattern or a list of at least one")),
        }
    }

    /// The words of one command, or a list of such.
    fn commands(&self, value: &Node<'_>) -> Result<Vec<ArgvPattern>, PolicyError> {
        let one = |value: &Node<'_>| {
            let words = self.words(value, "argv")?;
            let text = format!("{words:?}");
            ArgvPattern::parse(words).map_err(|source| self.bad_pattern(value, "argv", text, source))
        };
        match value.get_ref() {
            DeValue::Array(all) if matches!(all.first().map(Spanned::get_ref), Some(DeValue::Array(_))) => {
                all.iter().map(one).collect()
            }
            _ => Ok(vec![one(value)?]),
        }
    }

    fn words(&self, value: &Node<'_>, key: &str) -> Result<Vec<String>, PolicyError> {
        match value.get_ref() {
            DeValue::Array(words) => {
                words.iter().map(|word| self.document.text(word, key).map(str::to_owned)).collect()
            }
            _ => Err(self.document.wrong_type(value, key, "a list of words, as in [\"git\", \"status\"]")),
        }
    }

    /// Holds the rule to its own examples.
    fn examples(
        &self,
        resource: &ResourcePattern,
        key: &'static str,
        expected: &'static str,
        matches: bool,
    ) -> Result<(), PolicyError> {
        let Some(value) = self.get(key) else {
            return Ok(());
        };
        let DeValue::Array(examples) = value.get_ref() else {
            return Err(self.document.wrong_type(value, key, "a list of examples"));
        };
        for example in examples.iter() {
            let at = example.span().start;
            let (subject, text) = match resource {
                ResourcePattern::Any | ResourcePattern::Opaque => {
                    return Err(self.document.fault(at, Problem::ExampleWithoutResource { key }));
                }
                ResourcePattern::Argv(_) => {
                    let words = self.words(example, key)?;
                    (Some(Subject::Argv(words.clone())), format!("{words:?}"))
                }
                ResourcePattern::Path(_) => self.example(example, key, |text| {
                    let absolute = if text.starts_with('/') { text.to_owned() } else { format!("{WORKSPACE}/{text}") };
                    subject::canonical_path(&absolute).map(Subject::Path)
                })?,
                ResourcePattern::Host(_) => {
                    self.example(example, key, |text| host::canonical_host(text).map(Subject::Host))?
                }
                ResourcePattern::Named(kind, _) => {
                    self.example(example, key, |text| Some(Subject::Named(*kind, text.to_owned())))?
                }
            };
            let fits = subject.is_some_and(|subject| resource.fits(&subject));
            if fits != matches {
                let problem = Problem::Example { key, expected, example: text };
                return Err(self.document.fault(at, problem));
            }
        }
        Ok(())
    }

    fn example(
        &self,
        value: &Node<'_>,
        key: &str,
        read: impl FnOnce(&str) -> Option<Subject>,
    ) -> Result<(Option<Subject>, String), PolicyError> {
        let text = self.document.text(value, key)?;
        Ok((read(text), format!("`{text}`")))
    }
}
