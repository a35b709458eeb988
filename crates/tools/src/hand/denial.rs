//! What the hand denied, named (agent-runtime 10.5): a bare "No such file" or "Could not resolve host" in the output of a
//! build log does not say that it was us.
//!
//! A program tells only in its own words why it failed, so those are searched. Nothing is guessed: a path is named only if
//! it is closed by a rule, or stands on the host and not in the view.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use portcullis_base::Reason;
use portcullis_sandbox::hand::Network;

use super::masks::ClosedPlace;
use super::{Hand, Plan, absent};

/// Words of programs that could not reach a network.
const NETWORK: &[&str] = &[
    "could not resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "network is unreachable",
    "failed to lookup address information",
    "nodename nor servname provided",
    "eai_again",
    "enetunreach",
    "enotfound",
    "no route to host",
    "dial tcp: lookup",
    "couldn't resolve host",
    "unknownhostexception",
    "unknown host",
    "dns error",
];
/// Words of programs that could not reach a file.
const PATHS: &[&str] = &[
    "permission denied",
    "no such file or directory",
    "not found",
    "cannot open",
    "eacces",
    "enoent",
    "not a git repository",
];
/// Words of programs that could not change a place, which may be one that is kept as it is.
const KEPT: &[&str] = &["device or resource busy", "read-only file system", "ebusy", "erofs"];
/// Denials that one call names.
const MOST: usize = 8;
/// What every view has of the system.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev", "/sys", "/tmp"];

/// Something that was kept from a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub reason: Reason,
    text: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.as_str(), self.text)
    }
}

/// The places that a command could see.
pub(crate) struct VisiblePlaces {
    cwd: PathBuf,
    /// Places of the view.
    shown: Vec<PathBuf>,
    closed: Vec<ClosedPlace>,
    /// Places of the view that are kept as they are.
    guarded: Vec<PathBuf>,
    /// Places of the view that may hold secrets, which are empty or closed.
    secrets: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    network: Network,
    /// The home in memory, where anything may be made.
    home: Option<PathBuf>,
    /// Places that are what they are on the host, and that no command can write.
    pub(super) as_on_host: Vec<PathBuf>,
}

impl VisiblePlaces {
    pub(crate) fn of(plan: &Plan, hand: &Hand) -> Self {
        Self {
            cwd: plan.launch.cwd.clone(),
            shown: plan.shown.clone(),
            closed: plan.closed.clone(),
            guarded: plan.launch.view.guards.iter().map(|guard| guard.place.clone()).collect(),
            secrets: plan.secrets.clone(),
            hidden: hand.settings().hidden.clone(),
            network: plan.network,
            home: plan.launch.view.home.clone(),
            as_on_host: absent::as_on_host(&plan.launch.view.binds),
        }
    }
}

/// What the end of its standard error tells of denials; that of its standard output as well if it failed, for many write
/// `2>&1`.
pub(crate) fn named(seen: &VisiblePlaces, stderr: &[u8], stdout: Option<&[u8]>) -> Vec<Denial> {
    let mut out = Vec::new();
    for stream in std::iter::once(stderr).chain(stdout) {
        found(seen, stream, &mut out);
    }
    out
}

fn found(seen: &VisiblePlaces, stream: &[u8], out: &mut Vec<Denial>) {
    let text = String::from_utf8_lossy(stream);
    let mut add = |denial: Denial| {
        if out.len() < MOST && !out.contains(&denial) {
            out.push(denial);
        }
    };
    for line in text.lines() {
        let low = line.to_ascii_lowercase();
        if seen.network == Network::Disabled && NETWORK.iter().any(|words| low.contains(words)) {
            let text = "commands have no network here; `network = \"enabled\"` in the [sandbox] table of the configuration \
                        changes it";
            add(Denial { reason: Reason::NetworkDisabled, text: text.to_owned() });
        } else if PATHS.iter().any(|words| low.contains(words)) {
            words(line).filter_map(|word| seen.denied(word)).for_each(&mut add);
        } else if KEPT.iter().any(|words| low.contains(words)) {
            words(line).filter_map(|word| seen.kept(word)).for_each(&mut add);
        }
    }
}

/// What may be a path in a message: words without the quotes and colons around them.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | ')' | '[' | ']' | ',' | ';' | '‘' | '’' | '=')
    };
    line.split(ends).map(|word| word.trim_matches(':').trim_end_matches('.')).filter(|word| word.len() > 1)
}

impl VisiblePlaces {
    /// A place that a command could not change because of what it is to others.
    fn kept(&self, word: &str) -> Option<Denial> {
        let named = lexical(&self.cwd, word)?;
        let closed =
            self.closed.iter().find(|closed| named.starts_with(&closed.place) || closed.place.starts_with(&named));
        if let Some(ClosedPlace { path, rule: Some(rule), .. }) = closed {
            let text =
                format!("rule `{rule}` denies reading {path}, so it stays where it is; change the rule to allow it");
            return Some(Denial { reason: Reason::PathHidden, text });
        }
        if let Some(secret) = self.secret(&named) {
            return Some(secret);
        }
        self.guarded.iter().find(|place| named.starts_with(place) || place.starts_with(&named))?;
        let name = self.virtual_name(&named);
        let mut text =
            format!("{name} is kept as it is, for it decides what runs outside of the sandbox; change it there");
        // A setting can be given with a command; a hook cannot.
        if named.file_name().is_some_and(|name| name == "config" || name == ".gitconfig" || name == "config.lock") {
            text.push_str(", or give the setting with this one command (`git -c user.name=…`)");
        }
        Some(Denial { reason: Reason::ReadOnlyMount, text })
    }

    /// A file that may hold secrets, or a folder on the way to one.
    fn secret(&self, named: &Path) -> Option<Denial> {
        let secret = self.secrets.iter().find(|place| named.starts_with(place) || place.starts_with(named))?;
        let name = self.virtual_name(secret);
        let text = format!(
            "{name} may hold secrets, so commands see nothing of it and cannot change, move or remove it; `write` and `edit` \
             change it, and a rule (action = \"read\", path = \"**/{}\", effect = \"allow\") opens it to commands; if git \
             ignores it (.gitignore), commands see an empty file",
            secret.file_name().unwrap_or_default().to_string_lossy()
        );
        Some(Denial { reason: Reason::PathHidden, text })
    }

    /// As it was written, if it is a place of the view by its own name.
    fn virtual_name(&self, named: &Path) -> String {
        named.strip_prefix(&self.cwd).unwrap_or(named).display().to_string()
    }

    fn denied(&self, word: &str) -> Option<Denial> {
        let named = lexical(&self.cwd, word)?;
        let hidden = |text: String| Some(Denial { reason: Reason::PathHidden, text });
        if let Some(ClosedPlace { path, rule, .. }) = self.closed.iter().find(|closed| named.starts_with(&closed.place))
        {
            return hidden(match rule {
                Some(rule) => {
                    format!("rule `{rule}` denies reading {path}, so no command sees it; change the rule to allow it")
                }
                None => format!("{path} belongs to the runtime, so no command sees it"),
            });
        }
        if let Some(secret) = self.secret(&named).filter(|_| self.secrets.iter().any(|place| named.starts_with(place)))
        {
            return Some(secret);
        }
        let is_shown = |place: &PathBuf| named.starts_with(place) || place.starts_with(&named);
        let own = self.shown.iter().chain(&self.home).any(is_shown)
            || SYSTEM.iter().any(|system| named.starts_with(system))
            || self.hidden.iter().any(|place| named.starts_with(place));
        // A word that is no path of its own says nothing of the host.
        if own || !word.starts_with('/') || named.symlink_metadata().is_err() {
            return None;
        }
        hidden(format!(
            "{} is on this machine and not in the view of commands, which holds the workspace, the system and toolchains; \
             put what is needed into the workspace",
            named.display()
        ))
    }
}

/// A path as a program in `cwd` means it, by its text.
fn lexical(cwd: &Path, word: &str) -> Option<PathBuf> {
    let mut out = PathBuf::from("/");
    for part in cwd.join(word).components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir => {}
            Component::Prefix(_) => return None,
        }
    }
    (out != Path::new("/")).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(network: Network) -> VisiblePlaces {
        VisiblePlaces {
            cwd: "/workspace/app".into(),
            shown: vec!["/workspace".into()],
            closed: vec![ClosedPlace {
                place: "/workspace/app/.env".into(),
                path: "/workspace/app/.env".to_owned(),
                rule: Some("no-env".to_owned()),
            }],
            guarded: vec!["/workspace/app/.git/config".into(), "/workspace/app/.git/hooks".into()],
            secrets: vec!["/workspace/app/keys/.env.local".into()],
            hidden: vec!["/etc/hostname".into()],
            network,
            home: None,
            as_on_host: Vec::new(),
        }
    }

    fn names(network: Network, stderr: &str) -> Vec<String> {
        named(&seen(network), stderr.as_bytes(), None).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn check34_a_file_that_may_hold_secrets_is_named_with_the_ways_to_it() {
        for line in [
            "bash: keys/.env.local: Permission denied",
            "rm: cannot remove 'keys/.env.local': Device or resource busy",
            "mv: cannot move 'keys' to 'k2': Device or resource busy",
            "sed: cannot rename ./sedX: Read-only file system: '/workspace/app/keys/.env.local'",
        ] {
            let told = names(Network::Disabled, line);
            assert!(told.iter().any(|text| text.contains("keys/.env.local may hold secrets")), "{line}: {told:?}");
        }
        assert!(names(Network::Disabled, "cat: keys/other: Permission denied").is_empty());
    }

    #[test]
    fn check38_a_masked_path_is_named_with_its_rule_however_it_is_written() {
        for line in [
            "cat: .env: Permission denied",
            "cat: ./../app/.env: Permission denied",
            "Error: EACCES: permission denied, open '/workspace/app/.env'",
            "PermissionError: [Errno 13] Permission denied: \".env\"",
        ] {
            let found = names(Network::Disabled, line);
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert!(found[0].starts_with("path_hidden: rule `no-env`"), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_guessed_about_paths_that_are_nowhere_in_view_or_hidden() {
        assert!(Path::new("/etc/passwd").exists() && Path::new("/etc/hostname").exists(), "this test needs both");
        let text = "cat: /etc/passwd: No such file or directory";
        assert!(names(Network::Disabled, text)[0].contains("/etc/passwd is on this machine"));
        for line in [
            "cat: /no/such/place: No such file or directory",
            "cat: /workspace/none: No such file or directory",
            "cat: /usr/lib/none: No such file or directory",
            // What the runtime hides is not confirmed.
            "cat: /etc/hostname: No such file or directory",
            "/etc/passwd was read",
        ] {
            assert_eq!(names(Network::Disabled, line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn check38_a_place_that_is_kept_as_it_is_is_named() {
        for (line, name) in [
            (
                "error: could not write config file .git/config: Device or resource busy",
                "read_only_mount: .git/config is kept",
            ),
            ("touch: cannot touch '.git/hooks/x': Read-only file system", "read_only_mount: .git/hooks/x is kept"),
            ("mv: cannot move '.git' to 'x': Device or resource busy", "read_only_mount: .git is kept"),
            ("rm: cannot remove '.env': Device or resource busy", "path_hidden: rule `no-env`"),
        ] {
            let found = names(Network::Disabled, line);
            assert!(found.len() == 1 && found[0].starts_with(name), "{line}: {found:?}");
        }
        let told = |line: &str| names(Network::Disabled, line).concat();
        assert!(told("could not lock config file .git/config: Device or resource busy").contains("git -c"));
        assert!(!told("touch: cannot touch '.git/hooks/x': Read-only file system").contains("git -c"));
        assert_eq!(
            names(Network::Disabled, "mv: cannot move 'a' to 'b': Device or resource busy"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_a_command_says_on_its_standard_output_counts_if_it_failed() {
        let text = b"error: Could not resolve host: x";
        assert_eq!(named(&seen(Network::Disabled), b"", Some(text)).len(), 1);
        assert_eq!(named(&seen(Network::Disabled), text, Some(text)).len(), 1);
        assert_eq!(named(&seen(Network::Disabled), b"", None).len(), 0);
    }

    #[test]
    fn a_network_that_is_off_is_named_once_and_only_if_it_is_off() {
        let text = "curl: (6) Could not resolve host: a\nwget: Temporary failure in name resolution\n";
        let found = names(Network::Disabled, text);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("network_disabled: ") && found[0].contains("[sandbox]"), "{found:?}");
        assert_eq!(names(Network::Host, text), Vec::<String>::new());
    }
}
