//! What the user's own file says.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use portcullis_agent::setup::ModelSetup;
use portcullis_base::{IsolationLevel, limits};
use portcullis_harness::Settings as Wakes;
use portcullis_policy::{Layer, Rule, parse_rules};
use portcullis_sandbox::hand::Limits;
use portcullis_store::Retention;
use portcullis_store_sqlite::Durability;
use portcullis_tools::hand::NetworkAccess;
use toml::de::{DeTable, DeValue};

use crate::ApprovalMode;
use crate::document::Document;
use crate::error::ConfigError;
use crate::values::{collector, duration, size, span};

/// Tokens that one answer may be limited to. Fewer hold no call; no model is known that writes more.
const OUTPUT_TOKENS: RangeInclusive<u32> = 16..=1_000_000;
/// What the user's file says, each with the default it replaces.
#[derive(Debug, Clone)]
pub(crate) struct UserFile {
    pub(crate) store: Option<PathBuf>,
    pub(crate) durability: Durability,
    pub(crate) artifacts: Option<PathBuf>,
    pub(crate) quota: u64,
    pub(crate) retention: Retention,
    pub(crate) approvals: ApprovalMode,
    pub(crate) ask_expiry: Duration,
    pub(crate) minimum: IsolationLevel,
    pub(crate) network: NetworkAccess,
    pub(crate) limits: Limits,
    pub(crate) shell_idle: Duration,
    pub(crate) model: ModelChoice,
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) rules: Vec<Rule>,
}

/// Which model works, and how it is spoken to.
#[derive(Debug, Clone, Default)]
pub struct ModelChoice {
    /// `PROVIDER/MODEL` or `scripted:FILE`; without it the first that the environment has a key for.
    pub name: Option<String>,
    pub base_url: Option<String>,
    /// How long it may be silent.
    pub timeout: Option<Duration>,
    pub window: Option<u64>,
    /// Whether images and documents are sent.
    pub media: Option<bool>,
    /// Requests for one message (`limits.max_requests_per_message`, and before it was called so `model.max_turns`).
    pub max_requests: Option<NonZeroU32>,
    /// Requests of one wake (`limits.max_turns_per_wake`).
    pub max_turns: Option<NonZeroU32>,
    /// Tokens of one answer.
    pub max_output_tokens: Option<u32>,
}

impl ModelChoice {
    /// This choice as a part of a setup; `opened` is the name of the model that it came to. None if neither names one.
    #[must_use]
    pub fn setup(&self, opened: Option<String>) -> Option<ModelSetup> {
        // A script is found again from any folder.
        let script = self.name.as_deref().and_then(|name| name.strip_prefix("scripted:"));
        let script = script.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into()));
        let script = script.map(|path| format!("scripted:{}", path.display()));
        Some(ModelSetup {
            name: script.or(opened).or_else(|| self.name.clone())?,
            base_url: self.base_url.clone(),
            timeout_ms: self.timeout.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
            window: self.window,
            media: self.media,
            max_output_tokens: self.max_output_tokens,
            max_turns_per_wake: self.max_turns.map(NonZeroU32::get),
            max_requests_per_message: self.max_requests.map(NonZeroU32::get),
        })
    }

    /// The choice that a setup has made; what it left open is as it is here.
    #[must_use]
    pub fn by(&self, setup: &ModelSetup) -> Self {
        Self {
            name: Some(setup.name.clone()),
            base_url: setup.base_url.clone(),
            timeout: setup.timeout_ms.map(Duration::from_millis).or(self.timeout),
            window: setup.window.or(self.window),
            media: setup.media.or(self.media),
            max_requests: setup.max_requests_per_message.and_then(NonZeroU32::new).or(self.max_requests),
            max_turns: setup.max_turns_per_wake.and_then(NonZeroU32::new).or(self.max_turns),
            max_output_tokens: setup.max_output_tokens.or(self.max_output_tokens),
        }
    }

    /// How wakes behave, as far as the configuration says it.
    pub fn wakes(&self) -> Wakes {
        let default = Wakes::default();
        Wakes {
            max_turns_per_wake: self.max_turns.map_or(default.max_turns_per_wake, NonZeroU32::get),
            max_requests_per_message: self.max_requests.map_or(default.max_requests_per_message, NonZeroU32::get),
            max_output_tokens: self.max_output_tokens.unwrap_or(default.max_output_tokens),
            request_timeout: self.timeout.unwrap_or(default.request_timeout),
            ..default
        }
    }
}

impl Default for UserFile {
    fn default() -> Self {
        Self {
            store: None,
            durability: Durability::Full,
            artifacts: None,
            quota: limits::ARTIFACT_QUOTA,
            retention: Retention::default(),
            approvals: ApprovalMode::Ask,
            ask_expiry: limits::ASK_EXPIRY,
            minimum: IsolationLevel::Full,
            network: NetworkAccess::Disabled,
            limits: Limits::default(),
            shell_idle: limits::SHELL_IDLE,
            model: ModelChoice::default(),
            otlp_endpoint: None,
            rules: Vec::new(),
        }
    }
}

pub(crate) fn parse_user(text: &str, file: &str) -> Result<UserFile, ConfigError> {
    let document = Document { file, text };
    let tables = document.tables()?;
    let default = UserFile::default();
    let text_of = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(text.to_string()),
        _ => Err("must be a string".to_owned()),
    };
    let store = document.value(&tables, ("store", "url"), |v| local("sqlite", &text_of(v)?))?;
    let durability = document.value(&tables, ("store", "durability"), |v| match text_of(v)?.as_str() {
        "full" => Ok(Durability::Full),
        "relaxed" => Ok(Durability::Relaxed),
        other => Err(format!("`{other}` is not one of full, relaxed")),
    })?;
    let artifacts = document.value(&tables, ("artifacts", "url"), |v| local("file", &text_of(v)?))?;
    let quota = document.value(&tables, ("artifacts", "quota"), |v| size(&text_of(v)?))?;
    let retention = Retention {
        idle: document.value(&tables, ("retention", "artifact_idle"), |v| span(&text_of(v)?))?,
        count: document.value(&tables, ("retention", "artifact_count"), |v| match v {
            DeValue::Integer(n) => n.as_str().parse().map_err(|_| format!("`{n}` is not a number of artifacts")),
            _ => Err("must be a number".to_owned()),
        })?,
        bytes: document.value(&tables, ("retention", "artifact_bytes"), |v| size(&text_of(v)?))?,
    };
    let approvals = document.value(&tables, ("approvals", "default"), |v| ApprovalMode::from_word(&text_of(v)?))?;
    let ask_expiry = document.value(&tables, ("approvals", "ask_expiry"), |v| duration(&text_of(v)?))?;
    let minimum = document.value(&tables, ("sandbox", "minimum"), |v| isolation_level(&text_of(v)?))?;
    let network = document.value(&tables, ("sandbox", "network"), |v| match text_of(v)?.as_str() {
        "disabled" => Ok(NetworkAccess::Disabled),
        "limited" => Ok(NetworkAccess::Limited),
        "enabled" => Ok(NetworkAccess::Enabled),
        other => Err(format!("`{other}` is not one of disabled, enabled")),
    })?;
    let shell_idle = document.value(&tables, ("sandbox", "shell_idle"), |v| duration(&text_of(v)?))?;
    let model = ModelChoice {
        name: document.value(&tables, ("model", "default"), text_of)?,
        base_url: document.value(&tables, ("model", "base_url"), text_of)?,
        timeout: document.value(&tables, ("model", "timeout"), |v| duration(&text_of(v)?))?,
        window: document.value(&tables, ("model", "window"), |v| match v {
            DeValue::Integer(n) => n.as_str().parse().map_err(|_| format!("`{n}` is not a number of tokens")),
            _ => Err("must be a number of tokens".to_owned()),
        })?,
        media: document.value(&tables, ("model", "media"), |v| match v {
            DeValue::Boolean(media) => Ok(*media),
            _ => Err("must be true or false".to_owned()),
        })?,
        max_requests: match document.value(&tables, ("limits", "max_requests_per_message"), requests_of)? {
            None => document.value(&tables, ("model", "max_turns"), requests_of)?,
            limit => limit,
        },
        max_turns: document.value(&tables, ("limits", "max_turns_per_wake"), requests_of)?,
        max_output_tokens: document.value(&tables, ("model", "max_output_tokens"), |v| match v {
            DeValue::Integer(n) => {
                let wanted = n.as_str().replace('_', "").parse().ok().filter(|n| OUTPUT_TOKENS.contains(n));
                let (least, most) = (OUTPUT_TOKENS.start(), OUTPUT_TOKENS.end());
                wanted.ok_or_else(|| format!("`{n}` is not a number of tokens from {least} to {most}"))
            }
            _ => Err("must be a number of tokens, such as 8192".to_owned()),
        })?,
    };
    Ok(UserFile {
        store,
        durability: durability.unwrap_or(default.durability),
        artifacts,
        quota: quota.unwrap_or(default.quota),
        retention,
        approvals: approvals.unwrap_or(default.approvals),
        ask_expiry: ask_expiry.unwrap_or(default.ask_expiry),
        minimum: minimum.unwrap_or(default.minimum),
        network: network.unwrap_or(default.network),
        limits: hand_limits(&document, &tables)?,
        shell_idle: shell_idle.unwrap_or(default.shell_idle),
        model,
        otlp_endpoint: document.value(&tables, ("telemetry", "otlp_endpoint"), |v| collector(&text_of(v)?))?,
        rules: parse_rules(text, file, Layer::User)?,
    })
}

/// What a command may use up. Each key replaces its default; what has no key keeps it.
fn hand_limits(document: &Document<'_>, tables: &DeTable<'_>) -> Result<Limits, ConfigError> {
    let default = Limits::default();
    let bytes = |key| {
        document.value(tables, ("sandbox", key), |value| match value {
            DeValue::String(text) => size(text),
            _ => Err("must be a size such as \"8GiB\"".to_owned()),
        })
    };
    let pids = document.value(tables, ("sandbox", "max_processes"), |value| match value {
        DeValue::Integer(n) => {
            let wanted = n.as_str().replace('_', "").parse::<NonZeroU32>();
            wanted.map(NonZeroU32::get).map_err(|_| format!("`{n}` is not a number of processes from 1 on"))
        }
        _ => Err("must be a number of processes".to_owned()),
    })?;
    Ok(Limits {
        memory: bytes("max_memory")?.or(default.memory),
        pids: pids.or(default.pids),
        disk_use: bytes("max_disk_use")?.or(default.disk_use),
        disk_free: bytes("min_disk_free")?.or(default.disk_free),
        ..default
    })
}

fn requests_of(value: &DeValue<'_>) -> Result<NonZeroU32, String> {
    match value {
        DeValue::Integer(n) => {
            let digits = n.as_str().replace('_', "");
            digits.parse().map_err(|_| format!("`{n}` is not a number of requests from 1 on"))
        }
        _ => Err("must be a number of requests".to_owned()),
    }
}

/// The rules of a user's file.
pub(crate) fn parse_user_rules(text: &str, file: &str) -> Result<Vec<Rule>, ConfigError> {
    parse_user(text, file).map(|file| file.rules)
}

/// A repository must not choose where a person's data goes or who answers: only its rules are read.
pub(crate) fn parse_project(text: &str, file: &str) -> Result<Vec<Rule>, ConfigError> {
    let document = Document { file, text };
    let tables = document.tables()?;
    if let Some(key) = tables.keys().find(|key| key.get_ref().as_ref() != "rules") {
        let name = key.get_ref();
        let problem = format!("`{name}` is not taken from a project's file; move it to your own configuration");
        return Err(document.fault(key.span().start, &problem));
    }
    Ok(parse_rules(text, file, Layer::Project)?)
}

/// `scheme:PATH`, made absolute.
pub(crate) fn local(scheme: &str, url: &str) -> Result<PathBuf, String> {
    let path = url.strip_prefix(scheme).and_then(|rest| rest.strip_prefix(':')).filter(|path| !path.is_empty());
    let path =
        path.ok_or_else(|| format!("`{url}` is not of the form {scheme}:PATH, the only one this build knows"))?;
    // `sqlite:///x` means /x too.
    let path = path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    std::path::absolute(path).map_err(|e| format!("`{path}`: {e}"))
}

/// A level by its word.
pub fn isolation_level(word: &str) -> Result<IsolationLevel, String> {
    let known = || IsolationLevel::ALL.iter().rev().map(|level| level.as_str()).collect::<Vec<_>>().join(", ");
    IsolationLevel::from_word(word).ok_or_else(|| format!("`{word}` is not one of {}", known()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::KEYS;

    const EXAMPLE: &str = include_str!("../../../config.example.toml");

    #[test]
    fn the_example_is_accepted_as_it_stands_and_with_every_key_uncommented() {
        parse_user(EXAMPLE, "config.example.toml").expect("as it stands");
        let uncommented: String = EXAMPLE
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .fold(String::new(), |text, line| text + line + "\n");
        let file = parse_user(&uncommented, "config.example.toml").expect("uncommented");
        assert!(!file.rules.is_empty(), "it shows rules");
        for (table, keys) in KEYS {
            assert!(uncommented.contains(&format!("[{table}]")), "{table} is documented");
            for key in *keys {
                assert!(EXAMPLE.contains(&format!("#: {key} = ")), "{table}.{key} is documented");
            }
        }
    }

    #[test]
    fn an_unknown_key_names_the_nearest_with_file_and_line() {
        let error = parse_user("\n[store]\nulr = \"x\"\n", "c.toml").expect_err("unknown").to_string();
        assert_eq!(error, "c.toml:3: unknown key `ulr`; the nearest known one is `url`");
        let error = parse_user("[stor]\n", "c.toml").expect_err("unknown").to_string();
        assert_eq!(error, "c.toml:1: unknown key `stor`; the nearest known one is `store`");
    }

    #[test]
    fn a_bad_value_names_its_line_and_what_is_wanted() {
        let fault = |text: &str| parse_user(text, "c").expect_err("bad").to_string();
        assert_eq!(
            fault("[approvals]\ndefault = \"yes\""),
            "c:2: `approvals.default`: `yes` is not one of ask, allow, deny"
        );
        assert!(fault("[approvals]\nask_expiry = \"soon\"").contains("24h"));
        assert!(fault("[artifacts]\nquota = \"lots\"").contains("2GiB"));
        assert!(fault("[sandbox]\nmax_memory = 8").contains("`sandbox.max_memory`: must be a size"));
        assert!(fault("[sandbox]\nmax_processes = 0").contains("from 1 on"));
        assert!(fault("[store]\nurl = \"postgres://x\"").contains("sqlite:PATH"));
        assert!(fault("store = 1").contains("[store]"));
        assert!(fault("[[rules]]\neffect = \"deny").contains("c:2: not valid TOML"));
        assert!(fault("[model]\nwindow = 1\nwindow = 2\n").contains("c:3: not valid TOML: duplicate key `window`"));
    }

    #[test]
    fn a_project_chooses_rules_and_nothing_else() {
        let error = parse_project("[approvals]\ndefault = \"allow\"\n", "p").expect_err("refused").to_string();
        assert!(error.starts_with("p:1: `approvals` is not taken from a project's file"), "{error}");
    }
}
