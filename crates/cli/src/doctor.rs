//! `doctor`: every finding with what to do about it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use portcullis::hand::Launcher;
use portcullis::local::{lost_database, store_files};
use portcullis::operations::ChainHealth;
use portcullis::{NetworkAccess, REACHES, StoreError};
use portcullis_base::{Clock as _, Entropy, IsolationLevel, SystemClock, SystemIds};
use portcullis_config::caches::{self, Cache};
use portcullis_config::{Settings, project_file};
use portcullis_policy::{EnterprisePolicy, Policy, Rule, lint};
use portcullis_terminal::render::{self, DIM, GREEN, RED, Term, YELLOW, quoted, safe, size, styled};
use portcullis_terminal::waiting;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Globals;
use crate::exit::ExitKind;
use crate::hints;
use crate::world::{World, workspace};
use crate::{audit, doctor_models, loss, telemetry};

/// Room for some thousand calls with their outputs.
const LOW_SPACE: u64 = 512 << 20;

/// Workspaces whose caches have a line of their own: the largest.
const CACHES_SHOWN: usize = 10;
/// Nobody wants to be rid of less.
const LARGE_CACHE: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Grade {
    Ok,
    Note,
    Broken,
}

#[derive(Debug, Serialize)]
struct DoctorFinding {
    grade: Grade,
    about: &'static str,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_do: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<DoctorFinding>);

impl Findings {
    fn ok(&mut self, about: &'static str, what: impl Into<String>) {
        self.0.push(DoctorFinding { grade: Grade::Ok, about, what: what.into(), to_do: None });
    }

    /// Nothing is wrong with it, and something can be done about it.
    fn tip(&mut self, about: &'static str, what: impl Into<String>, to_do: impl Into<String>) {
        self.0.push(DoctorFinding { grade: Grade::Ok, about, what: what.into(), to_do: Some(to_do.into()) });
    }

    fn note(&mut self, about: &'static str, what: impl Into<String>, to_do: impl Into<String>) {
        self.0.push(DoctorFinding { grade: Grade::Note, about, what: what.into(), to_do: Some(to_do.into()) });
    }

    fn broken(&mut self, about: &'static str, what: impl Into<String>, to_do: impl Into<String>) {
        self.0.push(DoctorFinding { grade: Grade::Broken, about, what: what.into(), to_do: Some(to_do.into()) });
    }
}

pub async fn run(globals: &Globals, term: &Term) -> anyhow::Result<ExitKind> {
    let mut findings = Findings::default();
    let mut isolated = None;
    match globals.settings() {
        Err(error) => findings.broken("configuration", format!("{error:#}"), "correct that, then run doctor again"),
        Ok(settings) => {
            configuration(&settings, &mut findings);
            match doctor_models::model(&settings.model) {
                Ok(found) => findings.ok("model", found),
                Err(why) => findings.note(
                    "model",
                    why,
                    "for `run` and `worker`: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or name a model with `--model`",
                ),
            }
            rules(&settings, globals, &mut findings);
            let usable = data(&settings, &mut findings);
            isolated = Some(isolation(&settings, &mut findings));
            // Whatever else is in a folder that cannot be used would fail for the same reason, and say less.
            if usable {
                let home = settings.home.clone();
                let mut workspaces = waiting::during(term, "checking the store", store(settings, &mut findings)).await;
                workspaces.extend(workspace(globals));
                let looking = tokio::task::spawn_blocking(move || caches::found(&home, &workspaces));
                let found = waiting::during(term, "measuring caches", looking).await;
                build_caches(found.unwrap_or_default(), &mut findings);
            }
        }
    }
    let broken = findings.0.iter().any(|finding| finding.grade == Grade::Broken);
    if term.json {
        term.document(&json!({"healthy": !broken, "isolation": isolated, "findings": findings.0}))?;
    } else {
        term.print(&findings.0.iter().map(line).collect::<String>())?;
    }
    Ok(if broken { ExitKind::Failed } else { ExitKind::Done })
}

fn line(finding: &DoctorFinding) -> String {
    let grade = match finding.grade {
        Grade::Ok => styled(GREEN, "ok     "),
        Grade::Note => styled(YELLOW, "note   "),
        Grade::Broken => styled(RED, "broken "),
    };
    let to_do = finding.to_do.as_ref().map(|words| format!("\n        {}", styled(DIM, &format!("→ {}", safe(words)))));
    format!("{grade} {}: {}{}\n", finding.about, safe(&finding.what), to_do.unwrap_or_default())
}

fn configuration(settings: &Settings, findings: &mut Findings) {
    let file = match &settings.user_file {
        Some(path) => format!("read from {}", path.display()),
        None => "no file of yours; defaults hold".to_owned(),
    };
    findings.ok("configuration", file);
    for (what, to_do) in settings.user_file.as_deref().into_iter().flat_map(open_to_others) {
        findings.note("configuration", what, to_do);
    }
    if let Some(why) = telemetry::unsent(settings) {
        findings.note("telemetry", why, "or take the line out of your configuration");
    }
    if Path::new(EnterprisePolicy::PATH).exists() {
        let rules = render::count(settings.enterprise.rules().len() as u64, "deny rule");
        let allow = if settings.enterprise.approvals_allow() { "" } else { "; `--approvals allow` is forbidden" };
        findings.ok("configuration", format!("{}: {rules}{allow}", EnterprisePolicy::PATH));
    }
}

/// Why somebody else can change the file, or the folder that holds it. Whoever can, allows what they like.
fn open_to_others(file: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for place in [Some(file), file.parent()].into_iter().flatten() {
        let Ok(facts) = fs::metadata(place) else { continue };
        let shown = render::place(place);
        let me = rustix::process::geteuid().as_raw();
        if facts.uid() != me && facts.uid() != 0 {
            let what = format!("{shown} belongs to another user ({}), who can change your rules", facts.uid());
            found.push((what, format!("chown {me} {}", quoted(place.as_os_str().as_encoded_bytes()))));
        }
        // In a folder such as /tmp only the owner replaces a file.
        let sticky = facts.is_dir() && facts.mode() & 0o1000 != 0;
        if facts.mode() & 0o022 != 0 && !sticky {
            let what = format!("{shown} can be written by others, who can change your rules");
            found.push((what, format!("chmod go-w {}", quoted(place.as_os_str().as_encoded_bytes()))));
        }
    }
    found
}

fn rules(settings: &Settings, globals: &Globals, findings: &mut Findings) {
    let policy = workspace(globals).and_then(|folder| Ok((settings.policy(&folder)?, folder)));
    let (policy, folder) = match policy {
        Ok(policy) => policy,
        Err(error) => {
            return findings.broken(
                "rules",
                format!("{error:#}"),
                "correct that: nothing runs before all rules are read",
            );
        }
    };
    let in_force = policy.rules().len() - policy.inert_rules().count();
    findings.ok("rules", format!("{} in force in {}", render::count(in_force as u64, "rule"), folder.display()));
    for rule in in_force_rules(&policy) {
        findings.ok("rules", format!("{} {} ({})", rule.effect.as_str(), rule.id, rule.source));
    }
    for fault in lint(policy.rules(), REACHES, SystemClock::new().now()) {
        findings.note("rules", fault.to_string(), "portcullis policy check says the same, and ends with 1 for it");
    }
    if let Ok(Some(unreadable)) = settings.unreadable_trust(&folder) {
        let to_do = hints::of_trust(&unreadable);
        findings.broken("rules", unreadable.what, to_do);
    }
    for rule in policy.inert_rules() {
        let file = project_file(&folder);
        let to_do = format!(
            "a project's allow rules do nothing until you trust exactly this text of them: portcullis policy trust {}",
            file.display()
        );
        findings.note("rules", format!("allow {} ({}) is inert", rule.id, rule.source), to_do);
    }
}

fn in_force_rules(policy: &Policy) -> impl Iterator<Item = &Rule> {
    policy.rules().iter().filter(|rule| !policy.inert_rules().any(|inert| inert.id == rule.id))
}

/// Whether the data folder can be used.
fn data(settings: &Settings, findings: &mut Findings) -> bool {
    let root = settings.home.root();
    if let Some(obstacle) = settings.home.obstacle() {
        let what = format!("{obstacle}; keys and store were not looked at");
        findings.broken("data", what, settings.home.way_out());
        return false;
    }
    match fs::metadata(root) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {}
        Err(_) => findings.ok("data", format!("{} does not exist yet; the first call makes it", root.display())),
        Ok(facts) => {
            let mode = facts.permissions().mode() & 0o777;
            let shown = format!("{} (mode {mode:03o})", root.display());
            if mode & 0o077 == 0 {
                findings.ok("data", shown);
            } else {
                findings.note(
                    "data",
                    format!("{shown} can be entered by others"),
                    format!("chmod 700 {}", root.display()),
                );
            }
            space(root, findings);
        }
    }
    let (ids, fresh) = (SystemIds::new(), !settings.database.exists());
    let home = &settings.home;
    keep_key("checkpoint.key", &home.checkpoint_key_path(), fresh, &ids, findings, |ids| {
        home.checkpoint_key(ids).map(drop)
    });
    keep_key("sealing.key", &home.sealing_key_path(), fresh, &ids, findings, |ids| home.sealing_key(ids).map(drop));
    true
}

/// What toolchains keep for each workspace, which nothing removes by itself.
fn build_caches(found: Vec<Cache>, findings: &mut Findings) {
    let (left_over, found): (Vec<Cache>, Vec<Cache>) = found.into_iter().partition(Cache::is_left_over);
    if !left_over.is_empty() {
        let (n, bytes) = (left_over.len() as u64, left_over.iter().map(|cache| cache.bytes).sum());
        let (n, are) = (render::count(n, "workspace"), if n == 1 { "is" } else { "are" });
        let to_do = "to be rid of them: portcullis gc --apply";
        findings.tip("caches", format!("{} of build caches for {n} that {are} gone", size(bytes)), to_do);
    }
    let of = |cache: &Cache| match &cache.workspace {
        Some(workspace) => workspace.display().to_string(),
        None => "a workspace of which no session tells".to_owned(),
    };
    let is_worth_a_line = |cache: &Cache| cache.bytes >= LARGE_CACHE || cache.workspace.is_none();
    let (mut shown, mut rest): (Vec<Cache>, Vec<Cache>) = found.into_iter().partition(is_worth_a_line);
    rest.extend(shown.split_off(shown.len().min(CACHES_SHOWN)));
    for cache in &shown {
        let folder = quoted(cache.folder.as_os_str().as_bytes());
        // Some toolchains leave folders that not even their owner may change.
        let to_do = format!("to be rid of it, while no command runs there: chmod -R u+w {folder} && rm -r {folder}");
        findings.tip("caches", format!("{} of build caches for {}", size(cache.bytes), of(cache)), to_do);
    }
    if !rest.is_empty() {
        let more = if shown.is_empty() { "" } else { " more" };
        let (n, bytes) = (render::count(rest.len() as u64, "workspace"), rest.iter().map(|cache| cache.bytes).sum());
        findings.ok("caches", format!("{} of build caches for {n}{more}", size(bytes)));
    }
}

fn space(root: &Path, findings: &mut Findings) {
    let Ok(facts) = rustix::fs::statvfs(root) else { return };
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let shown = format!("{} MiB free", free >> 20);
    if free < LOW_SPACE {
        findings.note("data", format!("only {shown}"), "make room: a call whose record does not fit is refused");
    } else {
        findings.ok("data", shown);
    }
}

/// Looks at a key that is there; makes none.
fn keep_key(
    name: &'static str,
    path: &Path,
    fresh: bool,
    ids: &SystemIds,
    findings: &mut Findings,
    load: impl Fn(&dyn Entropy) -> Result<(), portcullis_config::ConfigError>,
) {
    if path.exists() {
        match load(ids) {
            Ok(()) => findings.ok("keys", format!("{name} is there, for its owner alone")),
            Err(error) => findings.broken("keys", format!("{error}"), "without it nothing is recorded"),
        }
    } else if fresh {
        findings.ok("keys", format!("{name} is made with the store"));
    } else if name == "checkpoint.key" {
        let to_do = "restore it from a backup: until then nothing new gets a checkpoint, and old ones prove nothing";
        findings.broken("keys", format!("{} is missing though there is a store", path.display()), to_do);
    } else {
        let to_do = "restore it from a backup, or let the next call make a new one: waiting calls with secret inputs are then lost";
        findings.note("keys", format!("{} is missing", path.display()), to_do);
    }
}

/// Looks at the store; the workspaces that its sessions tell of.
async fn store(settings: Settings, findings: &mut Findings) -> Vec<PathBuf> {
    let path = settings.database.clone();
    let gone = lost_database(&settings);
    if !gone.is_empty() {
        findings.broken("store", loss::gone(&path, &gone), loss::TO_DO_GONE);
        return Vec::new();
    }
    if settings.chosen.store && matches!(path.try_exists(), Ok(false)) {
        let to_do = "correct --store or PORTCULLIS_STORE; or, if there is none yet, the first call makes it";
        findings.note("store", format!("there is no store at {}, though it was named", path.display()), to_do);
        return Vec::new();
    }
    let [database, _, _, mark] = store_files(&settings);
    let unmarked = database.exists() && !mark.exists();
    let world = match World::look(settings) {
        Ok(Some(world)) => world,
        Ok(None) => {
            findings.ok("store", format!("{} does not exist yet; the first call makes it", path.display()));
            return Vec::new();
        }
        Err(error) => {
            let to_do = "see to the file and its folder; a copy of it can be checked with --store";
            findings.broken("store", format!("{error:#}"), to_do);
            return Vec::new();
        }
    };
    let sizes = store_files(&world.settings).map(|file| fs::metadata(file).map_or(0, |facts| facts.len()));
    let taken = size(sizes.iter().sum());
    findings.ok("store", format!("{} opens, its schema is this program's ({taken} with its -wal)", path.display()));
    match world.archive.probe(&world.tag()).await {
        Ok(()) => findings.ok("store", "it takes writes"),
        Err(error) => {
            findings.broken("store", format!("it takes no writes: {error}"), "see to the disk and its permissions");
        }
    }
    headroom(&world, findings);
    if !world.lost().is_empty() {
        findings.broken("store", loss::missing(world.lost()), loss::TO_DO);
    }
    chains(&world, findings).await;
    let sessions = world.archive.sessions(usize::MAX).await.unwrap_or_default();
    if unmarked && !sessions.is_empty() {
        let what =
            format!("the mark {} is missing: an older copy of the database would not be noticed", mark.display());
        findings.note(
            "store",
            what,
            "portcullis audit verify --against a saved ledger head; the next call writes the mark",
        );
    }
    sessions.into_iter().filter_map(|summary| summary.row.workspace.map(PathBuf::from)).collect()
}

/// What really stands between commands and this machine: found by trying, not by asking which kernel this is.
fn isolation(settings: &Settings, findings: &mut Findings) -> Value {
    let launcher = Launcher::this_program();
    let posture = launcher.posture();
    let (level, minimum) = (posture.level, settings.minimum);
    let reached = format!("commands run at isolation level `{level}`: {}", promises(level));
    if level >= minimum {
        findings.ok("isolation", reached);
    } else {
        let to_do = match settings.enterprise.min_sandbox() {
            Some(theirs) if theirs > level => {
                format!("see to what is missing: {} demands `{theirs}`", EnterprisePolicy::PATH)
            }
            _ => format!(
                "see to what is missing, or, if that is enough for you: --sandbox {level}, or `minimum = \"{level}\"` in the \
                 [sandbox] table of your configuration"
            ),
        };
        findings.note(
            "isolation",
            format!(
                "no command runs: level `{level}` is what can be had here, and `{minimum}` is the least that you accept"
            ),
            to_do,
        );
    }
    for missing in &posture.missing {
        findings.note("isolation", format!("no {}: {}", missing.layer.as_str(), missing.why), missing.raise.clone());
    }
    let network = match settings.network {
        NetworkAccess::Limited => {
            let to_do = "set `network` in the [sandbox] table to \"disabled\" or \"enabled\"";
            findings.note(
                "isolation",
                "no command runs: a network limited to certain hosts cannot be given yet",
                to_do,
            );
            NetworkAccess::Limited
        }
        other => {
            findings.ok("isolation", format!("the network of commands is {}", other.as_str()));
            other
        }
    };
    json!({
        "level": level,
        "minimum": minimum,
        "runs": level >= minimum && network != NetworkAccess::Limited,
        "network": network.as_str(),
        "missing": posture.missing,
    })
}

/// What a level keeps a command from.
fn promises(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::Full => "namespaces, a root of their own with only the workspace and the system in it, seccomp",
        IsolationLevel::NoPivot => "namespaces and Landlock; paths are the host's, and single files cannot be hidden",
        IsolationLevel::NoNamespaces => {
            "Landlock and seccomp only; other processes can be seen, and single files cannot be hidden"
        }
        IsolationLevel::SeccompOnly => {
            "system calls are filtered, files are not: a command reads and writes what you can"
        }
        IsolationLevel::None => "nothing stands between a command and what you can do",
    }
}

/// What lets a full disk still take the record of what was under way.
fn headroom(world: &World, findings: &mut Findings) {
    if world.has_ballast() {
        findings.ok("store", "16 MiB are kept free for a full disk (ballast)");
    } else {
        let to_do = "nothing, if no call was made yet; else make room on the disk, and the next call makes it";
        findings.note("store", "no headroom is kept for a full disk (ballast)", to_do);
    }
}

/// The newest session and the ledger: enough to see a broken disk, quick enough for a check of everything.
async fn chains(world: &World, findings: &mut Findings) {
    let ChainHealth { sessions, chains } = match world.archive.chain_health(world.checkpoint_key.as_ref()).await {
        Ok(health) => health,
        Err(error) => return findings.broken("store", error.to_string(), unverified(&error)),
    };
    for (log, checked) in chains {
        match checked {
            Ok(seen) => match seen.fault {
                // It agrees with itself, and is not what was recorded: that was told.
                None if world.lost().iter().any(|lost| lost.key.session == log) => {}
                None => {
                    let (name, events) = (audit::name_of(log), render::count(seen.last_seq, "event"));
                    findings.ok("store", format!("the chain of {name} holds ({events})"));
                }
                Some(fault) => findings.broken("store", fault.to_string(), "portcullis audit verify names everything"),
            },
            Err(error) => findings.broken("store", error.to_string(), unverified(&error)),
        }
    }
    if sessions > 1 {
        let rest = render::count(sessions as u64 - 1, "other session");
        findings.ok("store", format!("{rest} not checked here; portcullis audit verify checks all"));
    }
}

/// What to do about a log that could not be checked.
fn unverified(error: &StoreError) -> &'static str {
    hints::of_store(error).unwrap_or("portcullis audit verify tells more")
}
