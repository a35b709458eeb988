//! Configuration: flag, environment variable, project file, user file, default. A file that is not
//! understood whole stops the program; nothing in it is passed over.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis::hand::{Host, Limits};
use portcullis::harness::Settings as Wakes;
use portcullis::{HandSettings, IsolationLevel, NetworkAccess, Profile};
use portcullis_base::limits;
use portcullis_policy::{EnterprisePolicy, Layer, Policy, PolicyBuilder, Rule, parse_rules};
use portcullis_store::Retention;
use portcullis_store_sqlite::Durability;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::args::{ApprovalMode, Globals, ProfileName};
use crate::exit::{UnreadableFile, usage};
use crate::home::{self, Home};
use crate::ours;
use crate::project::ProjectRules;
use crate::telemetry::endpoint;
use crate::trust::UnreadableTrust;
use crate::values::{duration, size, span};

/// Tokens that one answer may be limited to. Fewer hold no call; no model is known that writes more.
const OUTPUT_TOKENS: RangeInclusive<u32> = 16..=1_000_000;
/// A longer file is not a configuration.
const MAX_BYTES: u64 = 4 << 20;
/// A project's own, beneath its workspace.
const PROJECT_FILE: &str = ".portcullis/config.toml";
/// Every table and its keys.
const KEYS: &[(&str, &[&str])] = &[
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

/// What the user's file says, each with the default it replaces.
#[derive(Debug, Clone)]
struct UserFile {
    store: Option<PathBuf>,
    durability: Durability,
    artifacts: Option<PathBuf>,
    quota: u64,
    retention: Retention,
    approvals: ApprovalMode,
    ask_expiry: Duration,
    minimum: IsolationLevel,
    network: NetworkAccess,
    limits: Limits,
    shell_idle: Duration,
    model: ModelChoice,
    otlp_endpoint: Option<String>,
    rules: Vec<Rule>,
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

/// What did not come from the user's own file or a default.
#[derive(Debug, Clone, Default)]
pub struct ChoiceOrigins {
    /// Whether `--workspace` named the workspace.
    pub workspace: bool,
    /// Whether that may hold a home folder.
    pub workspace_is_home: bool,
    pub base_url: bool,
    pub store: bool,
    pub artifacts: bool,
    pub config: Option<PathBuf>,
    pub sandbox: Option<IsolationLevel>,
}

/// Everything a run needs to know before it opens anything.
#[derive(Debug, Clone)]
pub struct Settings {
    pub home: Home,
    pub database: PathBuf,
    pub artifacts: PathBuf,
    pub durability: Durability,
    pub quota: u64,
    /// What goes by itself; nothing unless someone says so.
    pub retention: Retention,
    pub approvals: ApprovalMode,
    pub ask_expiry: Duration,
    /// The least isolation that commands run with; nothing weakens the organisation's.
    pub minimum: IsolationLevel,
    pub network: NetworkAccess,
    /// What a command may use up.
    pub limits: Limits,
    /// How long a persistent shell is kept that nobody uses.
    pub shell_idle: Duration,
    pub profile: Profile,
    pub model: ModelChoice,
    /// The address that the user's file names, whether or not it is the one that holds.
    pub file_base_url: Option<String>,
    /// The collector that spans are sent to.
    pub otlp_endpoint: Option<String>,
    /// What a flag or a variable chose: a command that goes on from here must choose it again.
    pub chosen: ChoiceOrigins,
    /// The user's file, if there is one.
    pub user_file: Option<PathBuf>,
    pub enterprise: EnterprisePolicy,
    user_rules: Vec<Rule>,
}

impl Settings {
    /// Reads every file but the project's.
    pub fn load(globals: &Globals) -> anyhow::Result<Self> {
        let home = Home::find()?;
        let config = || std::env::var_os("PORTCULLIS_CONFIG").filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = globals.config.clone().or_else(config);
        let mut chosen = ChoiceOrigins {
            workspace: globals.workspace.is_some(),
            workspace_is_home: globals.workspace_is_home,
            base_url: globals.base_url.is_some(),
            config: named.clone(),
            sandbox: globals.sandbox,
            ..ChoiceOrigins::default()
        };
        let (user_file, text) = match named {
            Some(path) => {
                let text = read(&path)?.ok_or_else(|| UnreadableFile::absent(&path))?;
                (Some(path), text)
            }
            None => match home::user_config() {
                Some(path) => read(&path)?.map_or_else(|| (None, String::new()), |text| (Some(path), text)),
                None => (None, String::new()),
            },
        };
        let name = user_file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        let file = parse_user(&text, &name)?;
        let enterprise = EnterprisePolicy::load(Path::new(EnterprisePolicy::PATH))?;

        let store = globals.store.clone().map_or_else(|| variable("PORTCULLIS_STORE"), |url| Ok(Some(url)))?;
        chosen.store = store.is_some();
        let store = match store {
            Some(url) => Some(local("sqlite", &url).map_err(|why| usage(format!("--store: {why}")))?),
            None => file.store,
        };
        let artifacts =
            globals.artifacts.clone().map_or_else(|| variable("PORTCULLIS_ARTIFACTS"), |url| Ok(Some(url)))?;
        chosen.artifacts = artifacts.is_some();
        let artifacts = match artifacts {
            Some(url) => Some(local("file", &url).map_err(|why| usage(format!("--artifacts: {why}")))?),
            None => file.artifacts,
        };
        let approvals = match (globals.approvals, variable("PORTCULLIS_APPROVALS")?) {
            (Some(mode), _) => mode,
            (None, Some(word)) => approval_mode(&word).map_err(|why| usage(format!("PORTCULLIS_APPROVALS: {why}")))?,
            (None, None) => file.approvals,
        };
        permitted(approvals, &enterprise)?;
        let model = ModelChoice {
            name: globals.model.clone().map_or_else(|| variable("PORTCULLIS_MODEL"), |name| Ok(Some(name)))?,
            base_url: globals.base_url.clone(),
            ..file.model.clone()
        };
        let file_base_url = file.model.base_url.clone();
        // An address of the file belongs to the model of the file.
        let base_url = model.base_url.or_else(|| file.model.base_url.filter(|_| model.name.is_none()));
        let model = ModelChoice { name: model.name.or(file.model.name), base_url, ..model };
        Ok(Self {
            database: store.unwrap_or_else(|| home.database()),
            artifacts: artifacts.unwrap_or_else(|| home.artifacts()),
            durability: file.durability,
            quota: file.quota,
            retention: file.retention,
            approvals,
            ask_expiry: file.ask_expiry,
            minimum: globals
                .sandbox
                .unwrap_or(file.minimum)
                .max(enterprise.min_sandbox().unwrap_or(IsolationLevel::None)),
            network: file.network,
            limits: file.limits,
            shell_idle: file.shell_idle,
            profile: match globals.profile {
                Some(ProfileName::Code) => Profile::Code,
                Some(ProfileName::Managed) | None => Profile::Managed,
            },
            model,
            file_base_url,
            otlp_endpoint: file.otlp_endpoint,
            chosen,
            user_file,
            enterprise,
            user_rules: file.rules,
            home,
        })
    }

    /// The rules that hold in a workspace.
    pub fn policy(&self, workspace: &Path) -> anyhow::Result<Policy> {
        let project = ProjectRules::load(&self.home, workspace)?;
        self.policy_with(self.user_rules.iter().cloned(), project)
    }

    /// A record of trust of this workspace's rules that says nothing.
    pub fn unreadable_trust(&self, workspace: &Path) -> anyhow::Result<Option<UnreadableTrust>> {
        Ok(ProjectRules::load(&self.home, workspace)?.unreadable)
    }

    /// The rules that would hold with these in the place of the user's and the project's own.
    pub fn policy_with(&self, user: impl IntoIterator<Item = Rule>, project: ProjectRules) -> anyhow::Result<Policy> {
        let builder = PolicyBuilder::new().enterprise(&self.enterprise).rules(user);
        Ok(builder.rules(project.rules).project_trust(project.trusted).build()?)
    }

    /// What commands get in a workspace.
    pub fn hand(&self, workspace: &Path) -> HandSettings {
        HandSettings {
            minimum: self.minimum,
            network: self.network,
            limits: self.limits,
            caches: Some(self.home.caches(workspace)),
            host: Host::of_this_process(),
            ours: ours::places(self, workspace),
            homes: ours::homes_in(workspace),
            ..HandSettings::default()
        }
    }

    /// The user's own rules.
    pub fn user_rules(&self) -> &[Rule] {
        &self.user_rules
    }
}

/// A variable's text, `None` if it is unset or empty.
pub fn variable(name: &str) -> anyhow::Result<Option<String>> {
    match std::env::var_os(name).filter(|value| !value.is_empty()).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(usage(format!("the variable {name} is not UTF-8 text; set it anew or unset it"))),
    }
}

/// Only the organisation can forbid it, and nothing here can overrule that.
pub fn permitted(approvals: ApprovalMode, enterprise: &EnterprisePolicy) -> anyhow::Result<()> {
    if approvals == ApprovalMode::Allow && !enterprise.approvals_allow() {
        let path = EnterprisePolicy::PATH;
        return Err(usage(format!("{path} forbids `--approvals allow`; answer each ask with `portcullis approvals`")));
    }
    Ok(())
}

/// Where a project keeps what it wants of us.
pub fn project_file(workspace: &Path) -> PathBuf {
    workspace.join(PROJECT_FILE)
}

/// The text of a project's file, `None` if there is none. It is opened within the workspace: a repository may hold links,
/// and one to rules that somebody trusts elsewhere must not bring that trust here.
pub fn read_project(workspace: &Path) -> anyhow::Result<Option<String>> {
    let path = project_file(workspace);
    if !exists(&path)? {
        return Ok(None);
    }
    let cannot = |why: String| UnreadableFile::because(&path, &why);
    let bytes = portcullis::read_project_file(workspace, PROJECT_FILE, MAX_BYTES);
    let bytes = bytes.map_err(|why| cannot(format!("{why}; a project's rules stand in a regular file of its own")))?;
    bytes.map(String::from_utf8).transpose().map_err(|_| cannot("it is not UTF-8 text".to_owned()))
}

/// The text of a file, `None` if there is none.
pub fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match exists(path)? {
        true => fs::read_to_string(path).map(Some).map_err(|e| UnreadableFile::because(path, &e.to_string())),
        false => Ok(None),
    }
}

/// Whether there is a file that could be a configuration.
fn exists(path: &Path) -> anyhow::Result<bool> {
    let cannot = |why: String| UnreadableFile::because(path, &why);
    let gone = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    // A link that leads nowhere is a configuration that is lost, not one that was never written.
    let links = |path: &Path| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink());
    match fs::metadata(path) {
        Err(e) if gone(&e) && links(path) => Err(cannot("it is a link that leads nowhere".to_owned())),
        Err(e) if gone(&e) && path.parent().is_some_and(|folder| links(folder) && !folder.is_dir()) => {
            Err(cannot("its folder is a link that leads nowhere".to_owned()))
        }
        Err(e) if gone(&e) => Ok(false),
        Err(e) => Err(cannot(e.to_string())),
        // Opening a pipe would wait for a writer.
        Ok(facts) if !facts.is_file() => Err(cannot("it is not a regular file".to_owned())),
        Ok(facts) if facts.len() > MAX_BYTES => Err(cannot("it is longer than 4 MiB".to_owned())),
        Ok(_) => Ok(true),
    }
}

/// A file's text with its name, for messages that name the line.
struct Document<'t> {
    file: &'t str,
    text: &'t str,
}

impl Document<'_> {
    fn fault(&self, offset: usize, problem: &str) -> anyhow::Error {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        usage(format!("{}:{line}: {problem}", self.file))
    }

    /// The tables, after every key was found to be known.
    fn tables(&self) -> anyhow::Result<DeTable<'_>> {
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

    fn unknown(&self, offset: usize, key: &str, known: &[&str]) -> anyhow::Error {
        let likeness = |known: &&&str| strsim::normalized_damerau_levenshtein(key, known);
        let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let near = nearest.copied().unwrap_or("rules");
        self.fault(offset, &format!("unknown key `{key}`; the nearest known one is `{near}`"))
    }

    /// `table.key` through `read`, if it is there.
    fn value<T>(
        &self,
        tables: &DeTable<'_>,
        (table, key): (&str, &str),
        read: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> anyhow::Result<Option<T>> {
        let Some(DeValue::Table(fields)) = tables.get(table).map(Spanned::get_ref) else { return Ok(None) };
        let Some(value) = fields.get(key) else { return Ok(None) };
        let read = read(value.get_ref()).map(Some);
        read.map_err(|why| self.fault(value.span().start, &format!("`{table}.{key}`: {why}")))
    }
}

fn parse_user(text: &str, file: &str) -> anyhow::Result<UserFile> {
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
    let approvals = document.value(&tables, ("approvals", "default"), |v| approval_mode(&text_of(v)?))?;
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
        otlp_endpoint: document.value(&tables, ("telemetry", "otlp_endpoint"), |v| endpoint(&text_of(v)?))?,
        rules: parse_rules(text, file, Layer::User)?,
    })
}

/// What a command may use up. Each key replaces its default; what has no key keeps it.
fn hand_limits(document: &Document<'_>, tables: &DeTable<'_>) -> anyhow::Result<Limits> {
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
pub fn parse_user_rules(text: &str, file: &str) -> anyhow::Result<Vec<Rule>> {
    parse_user(text, file).map(|file| file.rules)
}

/// A repository must not choose where a person's data goes or who answers: only its rules are read.
pub fn parse_project(text: &str, file: &str) -> anyhow::Result<Vec<Rule>> {
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
fn local(scheme: &str, url: &str) -> Result<PathBuf, String> {
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

fn approval_mode(word: &str) -> Result<ApprovalMode, String> {
    clap::ValueEnum::from_str(word, false).map_err(|_| format!("`{word}` is not one of ask, allow, deny"))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_organisation_can_forbid_allowing_everything() {
        let strict = EnterprisePolicy::parse("approvals_allow = false", "policy.toml").expect("parses");
        assert!(permitted(ApprovalMode::Allow, &strict).is_err());
        assert!(permitted(ApprovalMode::Deny, &strict).is_ok());
        assert!(permitted(ApprovalMode::Allow, &EnterprisePolicy::default()).is_ok());
    }
}
