//! What a command line would run with, besides its words (tool-contract 13.4, 13.7): shown to the person who is asked,
//! and bound to the answer.

use std::collections::BTreeMap;

use portcullis_base::{EnvKey, loads_code};
use portcullis_command::{self as command, PlacedCommand};
use portcullis_contract::{Bound, Caller, Resolved, SurroundingFacts, Surroundings};
use portcullis_sandbox::{self as sandbox, Access, VirtualPath};
use portcullis_secret::SecretText;

use super::named_files::AnalysedLine;
use super::places::{LineFolders, joined};
use super::programs::LookupStart;
use super::project_script::{NotKnown, Project, QuotedScript};
use super::{HOME, ShellTools, programs, project_script, script_file};
use crate::hand::Hand;

/// Bytes of a project's file that is looked at for a script to quote.
const SCRIPT_FILE: u64 = 1 << 20;
/// Variables that follow the folder, which is bound by itself, or that differ from one look to the next and decide nothing.
const VOLATILE: [&str; 5] = ["_", "SHLVL", "PWD", "OLDPWD", "PORTCULLIS_WORKSPACE_CWD"];
/// Parts of a name that say that its value is nobody's business, even where a person is asked about it.
const SECRET_NAMES: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "APIKEY"];

/// A line, and where and with what it would run.
pub(super) struct PlannedLine {
    pub(super) line: String,
    pub(super) caller: Caller,
    /// The folder, resolved.
    pub(super) cwd: String,
    /// Variables of the call itself.
    pub(super) brings: BTreeMap<EnvKey, SecretText>,
    /// In the session's own shell, as it stands.
    pub(super) in_live_shell: bool,
}

impl PlannedLine {
    pub(super) fn new(line: &str, caller: &Caller, resolved: &Resolved) -> Self {
        let cwd = resolved.cwd.clone().unwrap_or_else(|| HOME.to_owned());
        let (brings, in_live_shell) = (BTreeMap::new(), false);
        Self { line: line.to_owned(), caller: caller.clone(), cwd, brings, in_live_shell }
    }
}

impl ShellTools {
    /// Looks when a person is or was asked.
    pub(super) fn surroundings(&self, hand: &Hand, would: PlannedLine) -> Surroundings {
        let (parts, hand, would) = (self.clone(), hand.clone(), std::sync::Arc::new(would));
        Surroundings::by(move || {
            let (parts, hand, would) = (parts.clone(), hand.clone(), std::sync::Arc::clone(&would));
            async move { parts.around(&hand, &would).await }
        })
    }

    async fn around(&self, hand: &Hand, would: &PlannedLine) -> SurroundingFacts {
        let mut around = SurroundingFacts::default();
        let identity = |path: &str| {
            let found = self.files.mounts.resolve(path).and_then(|place| sandbox::identity(&place));
            // What cannot be looked at cannot be run in either; that it could not be is bound as well.
            found.unwrap_or_else(|error| format!("unknown: {error}"))
        };
        around.bound.push(Bound::new("the folder", &would.cwd, identity(&would.cwd)));
        let env = self.environment(hand, would).await;
        around.asker_env = hand.asker_env(&would.caller);
        self.variables(would, &env, &mut around);
        let value = |name: &str| env.get(name).map_or("", |value| value.expose());
        let analysis = command::analyse(&would.line);
        let altered = would.in_live_shell.then(|| self.live.look(would.caller.session_id)).flatten();
        let settled = !env.contains_key("CDPATH") && altered.is_none_or(|live| live.altered.is_none());
        let places = LineFolders { mounts: &self.files.mounts, start: &would.cwd, settled };
        let placed = analysis.placed();
        for (name, place) in places.entered(&placed) {
            let title = format!("the folder `{name}`");
            around.bound.push(match place {
                Some(place) => {
                    if place != joined(&would.cwd, &name) {
                        around.facts.push((format!("folder `{name}`"), place.clone()));
                    }
                    Bound::new(title, &place, identity(&place))
                }
                None => Bound::new(title, "not known before the line runs", ""),
            });
        }
        let line = AnalysedLine {
            text: &would.line,
            placed: &placed,
            redirections: &analysis.redirections,
            opaque: !analysis.opaque.is_empty(),
        };
        let programs =
            programs::bound(&line, &LookupStart { places: &places, path: value("PATH"), home: value("HOME") });
        let may_show = |place: &str| {
            let seen = self.files.rules.now(&would.caller, &["read"], place).may_see(place);
            seen && self.files.secret_at(place).is_none()
        };
        let run = script_file::run_by(&placed, &places);
        let others: Vec<String> = programs.files.into_iter().filter(|place| !run.contains(place)).collect();
        let scripts = script_file::facts(&run, &others, &places, &may_show);
        around.bound.extend(programs.bound);
        if !programs.words.is_empty() {
            around.facts.push(("programs".to_owned(), programs.words.join(", ")));
        }
        around.facts.extend(scripts);
        if programs.together > 0 {
            let fact = format!("{}; the answer is bound to all of them as one", programs.together);
            around.facts.push(("further programs and files".to_owned(), fact));
        }
        let mut unknown = programs.unknown;
        let steered = project_script::is_steered(&would.line, env.keys());
        for PlacedCommand { argv, folder } in &placed {
            let Some(cwd) = places.of(folder) else { continue };
            let read = |path: &str| self.script(would, path);
            let project = Project { cwd: &cwd, read: &read, folder: &|path| places.folder(path) };
            match project_script::quoted(argv, &project) {
                _ if steered && project_script::runs_scripts(argv) => unknown.push(format!("`{}`", argv.join(" "))),
                Ok(scripts) => scripts.into_iter().for_each(|script| quote(script, &mut around)),
                Err(NotKnown) => unknown.push(format!("`{}`", argv.join(" "))),
            }
        }
        if !unknown.is_empty() {
            let fact = format!("which file or script these run: {}", unknown.join(", "));
            around.facts.push(("not known before it runs".to_owned(), fact));
        }
        around.bound.push(Bound::new("the network", hand.settings().network.as_str(), ""));
        let level = hand.posture().await.level;
        around.bound.push(Bound::new("the isolation level", level.to_string(), ""));
        for mount in self.files.mounts.mounts() {
            let root = mount.root().as_str();
            let access = if mount.access() == Access::ReadOnly { "read-only" } else { "writable" };
            around.bound.push(Bound::new(format!("the mount {root}"), access, identity(root)));
        }
        around
    }

    /// The environment that the line would see, by name.
    async fn environment(&self, hand: &Hand, would: &PlannedLine) -> BTreeMap<String, SecretText> {
        let live = would.in_live_shell.then(|| self.live.look(would.caller.session_id)).flatten();
        let mut env = match (live, VirtualPath::new(&would.cwd)) {
            (Some(live), _) => live.env,
            // A launch fails for the same reason, and says it.
            (None, Ok(cwd)) => hand.environment(&would.caller, &cwd).await.unwrap_or_default(),
            (None, Err(_)) => BTreeMap::new(),
        };
        env.extend(would.brings.iter().map(|(key, value)| (key.to_string(), value.clone())));
        env.retain(|name, _| !VOLATILE.contains(&name.as_str()));
        env
    }

    /// Every variable is bound. One that loads code is shown with its value, any other that was set at least by its name: no
    /// table knows every name that some program acts on.
    fn variables(&self, would: &PlannedLine, env: &BTreeMap<String, SecretText>, around: &mut SurroundingFacts) {
        let bound = |name: &str, value: &SecretText| Bound {
            name: format!("the variable {name}"),
            what: String::new(),
            value: value.clone(),
        };
        for (name, reason) in self.code_loading(&would.caller, would.in_live_shell, &would.brings) {
            let absent = SecretText::new("");
            let value = env.get(&name).unwrap_or(&absent);
            around.facts.push((format!("variable {name}"), format!("{} ({reason})", shown(&name, value))));
            if !env.contains_key(&name) {
                around.bound.push(bound(&name, value));
            }
        }
        let others = self.set_names(&would.caller, would.in_live_shell, &would.brings).into_iter();
        let others = others.filter(|name| loads_code(name).is_none() && !VOLATILE.contains(&name.as_str()));
        let named: Vec<String> = others.map(|name| named(&name, env.get(&name))).collect();
        if !named.is_empty() {
            around.facts.push(("session variables".to_owned(), named.join(", ")));
        }
        around.bound.extend(env.iter().map(|(name, value)| bound(name, value)));
    }

    /// Variables that were set and that load code, with the reason.
    pub(super) fn code_loading(
        &self,
        caller: &Caller,
        in_live_shell: bool,
        brings: &BTreeMap<EnvKey, SecretText>,
    ) -> Vec<(String, &'static str)> {
        let names = self.set_names(caller, in_live_shell, brings).into_iter();
        names.filter_map(|name| loads_code(&name).map(|reason| (name, reason))).collect()
    }

    /// Variables that were set: of the session, of its live shell, and of the call itself.
    fn set_names(&self, caller: &Caller, in_live_shell: bool, brings: &BTreeMap<EnvKey, SecretText>) -> Vec<String> {
        let mut names: Vec<String> = self.book.env_names(caller);
        if let Some(live) = in_live_shell.then(|| self.live.look(caller.session_id)).flatten() {
            names.extend(live.changed);
        }
        names.extend(brings.keys().map(ToString::to_string));
        names.sort();
        names.dedup();
        names
    }

    /// A file of the project that rules let be read.
    fn script(&self, would: &PlannedLine, path: &str) -> Option<(String, String)> {
        let place = self.files.mounts.resolve(path).ok()?;
        let canonical = place.path().as_str().to_owned();
        if !self.files.rules.now(&would.caller, &["read"], &canonical).may_see(&canonical) {
            return None;
        }
        let content = sandbox::read_file(&place, SCRIPT_FILE).ok()?;
        Some((canonical, String::from_utf8(content.bytes).ok()?))
    }
}

/// Shows a script and binds it, once.
fn quote(script: QuotedScript, around: &mut SurroundingFacts) {
    if !around.bound.iter().any(|known| known.name == script.name) {
        around.bound.push(Bound::new(script.name.clone(), "", script.whole));
        if !script.text.is_empty() {
            around.facts.push((format!("{} (untrusted, quoted)", script.name), script.text));
        }
    }
}

/// A value that a person must see to judge it, unless its name says that it is a secret.
pub(super) fn shown(name: &str, value: &SecretText) -> String {
    let upper = name.to_ascii_uppercase();
    if SECRET_NAMES.iter().any(|part| upper.contains(part)) {
        let characters = value.expose().chars().count();
        return format!("not shown, because its name says that it is a secret: {characters} characters");
    }
    format!("`{}`", value.expose())
}

/// A variable of which nothing is known. Its value is shown where it may be a line, options or a path. A plain word runs
/// nothing by itself, and may be a password.
fn named(name: &str, value: Option<&SecretText>) -> String {
    let value = value.map_or("", |value| value.expose());
    let upper = name.to_ascii_uppercase();
    let mut parts = SECRET_NAMES.iter().chain(&["KEY", "PASS", "PRIVATE", "COOKIE", "DSN"]);
    let secret = parts.any(|part| upper.contains(part)) || value.contains("-----BEGIN");
    // An address may hold a password, and `&`.
    let telling = value.starts_with(['/', '.', '~', '-'])
        || value.contains(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '$' | '`' | '<' | '>'));
    if telling && !secret { format!("{name}=`{value}`") } else { name.to_owned() }
}
