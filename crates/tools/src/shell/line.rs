//! What is known of a command line before it runs: where it would run, what it would touch, and how its status is meant.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_base::{CommandFacts, EnvKey, Reason, Risk, RiskSet};
use portcullis_command::{self as command, Folder};
use portcullis_contract::{
    AccessRequest, Action, Caller, Content, Precondition, Prepared, Resolved, Resource, ResourceKind, SpoolRef,
};
use portcullis_policy::{lexical, line_access};
use portcullis_sandbox::{Access, Kind};
use portcullis_secret::SecretText;
use serde_json::Value;

use super::places::{LineFolders, is_relative, joined};
use super::{HOME, ShellTools, program};
use crate::files::class;
use crate::search::scope;

/// The fact that says why a line is opaque although it was analysed.
const UNTOLD: &str = "not_told_by_the_line";

/// Why a line is opaque in which the file of a program, or the script that it runs, depends on an unknown folder.
const NO_FOLDER: &str = "the folder, and so the file or script, becomes known only when the line runs";

/// The settings that a line would run with.
pub(super) struct LineSetup<'a> {
    pub(super) brings: &'a BTreeMap<EnvKey, SecretText>,
    /// In the session's own shell, as it stands.
    pub(super) in_live_shell: bool,
}

impl ShellTools {
    /// The folder that an input names, else the session's, and the key of the tree around it: a command may touch all of
    /// that.
    pub(super) fn folder_of(&self, cwd: Option<&str>, caller: &Caller) -> Result<Resolved, Precondition> {
        let given = cwd.map(str::trim).filter(|cwd| !cwd.is_empty());
        let cwd = given.map_or_else(|| self.book.cwd(caller).unwrap_or_else(|| HOME.to_owned()), str::to_owned);
        let place = self.files.named(&cwd, "/cwd")?;
        let canonical = place.resources.first().map(|resource| resource.canonical.clone()).unwrap_or_default();
        let root = self.mount_of(&canonical).map_or_else(|| "/".to_owned(), |(root, _)| root);
        Ok(Resolved { keys: vec![format!("fs:{root}")], cwd: Some(canonical), ..place })
    }

    /// The mount that a canonical path lies in, and whether it may be changed.
    pub(super) fn mount_of(&self, canonical: &str) -> Option<(String, Access)> {
        let place = self.files.mounts.resolve(canonical).ok()?;
        Some((place.mount().root().as_str().to_owned(), place.mount().access()))
    }

    /// What a line would touch, under `action`.
    pub(super) fn touched(&self, action: &str, line: &str, resolved: &Resolved) -> Vec<AccessRequest> {
        let cwd = resolved.cwd.as_deref().unwrap_or(HOME);
        let by_text = lexical(cwd);
        let by_mounts = |path: &str| {
            let absolute = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
            match self.files.mounts.resolve(&absolute) {
                Ok(place) => Resource::path(place.path().as_str(), path),
                Err(_) => by_text(path),
            }
        };
        let mut untold = resolved.resources.iter().filter(|resource| resource.kind == ResourceKind::Opaque).peekable();
        let places = LineFolders { mounts: &self.files.mounts, start: cwd, settled: untold.peek().is_none() };
        let names = |program: &str, folder: &Folder| {
            let folder =
                if is_relative(program) && *folder != Folder::Elsewhere { places.of(folder)? } else { cwd.to_owned() };
            program::names(&self.files.mounts, &folder, program)
        };
        let mut analysis = command::analyse(line).linked(&names);
        if let unknown @ [_, ..] = places.unknown(&analysis.placed()).as_slice() {
            let programs = unknown.iter().map(|program| format!("`{program}`")).collect::<Vec<_>>().join(", ");
            analysis.opaque.push(format!("{NO_FOLDER}: {programs}"));
        }
        let requests = line_access(&analysis, &Action::new(action), line, &by_mounts);
        let requests = self.with_looking(requests, (line, &analysis), &places).into_iter();
        let mut requests: Vec<AccessRequest> = requests.map(class::with_places).collect();
        let known = analysis.commands.iter().zip(&analysis.folders).map(|(argv, folder)| (argv, places.of(folder)));
        let words = known.flat_map(|(argv, folder)| argv.iter().skip(1).map(move |word| (folder.clone(), word)));
        let words = words.filter_map(|(folder, word)| match folder {
            Some(folder) => Some(joined(&folder, word)),
            None => word.starts_with('/').then(|| word.clone()),
        });
        let secrets: BTreeSet<String> =
            words.map(|path| by_mounts(&path).canonical).filter(|path| self.files.secret_at(path).is_some()).collect();
        if let Some(first) = requests.first_mut() {
            for path in secrets {
                let why = "may hold secrets, so this command does not see what is in it";
                *first = first.clone().fact("kept from it", format!("{path} {why}"));
            }
        }
        if untold.peek().is_some() {
            // Whatever a rule denies may be among it.
            let anything =
                Resource { command: CommandFacts { hides: true, ..CommandFacts::default() }, ..Resource::opaque(line) };
            let whole = AccessRequest::new(Action::new(action), anything, RiskSet::from([Risk::Execute]));
            requests.push(untold.fold(whole, |whole, why| whole.fact(UNTOLD, &why.raw)));
        }
        requests
    }

    /// What the words of a line do not tell of what it would run: variables that load code, and a shell in which a word
    /// may mean something else. Such a line is opaque, whatever its words are: no rule about words and no remembered
    /// answer allows it.
    pub(super) fn untold(&self, caller: &Caller, with: &LineSetup<'_>) -> Vec<Resource> {
        let code = self.code_loading(caller, with.in_live_shell, with.brings).into_iter();
        let code = code.map(|(name, reason)| format!("the variable {name} is set: {reason}"));
        let live = with.in_live_shell.then(|| self.live.look(caller.session_id)).flatten();
        let altered = live.and_then(|live| live.altered).map(|why| {
            format!("this shell {why}, so that a word may stand for anything in it; a restarted shell is clean")
        });
        code.chain(altered).map(Resource::opaque).collect()
    }

    /// It must be a folder in which commands may write.
    pub(super) fn may_run_in(&self, resolved: &Resolved) -> Result<Prepared, Precondition> {
        scope::check(&self.files, resolved, Kind::Directory)?;
        match resolved.cwd.as_deref().and_then(|cwd| self.mount_of(cwd)) {
            Some((root, Access::ReadOnly)) => {
                let text =
                    format!("{root} is read-only, and commands run only where they may write; use another folder");
                Err(Precondition::failed(Reason::ReadOnlyMount, text))
            }
            _ => Ok(Prepared::default()),
        }
    }
}

/// A line that no program can get.
pub(super) fn without_nul(command: &str) -> Result<(), Precondition> {
    if command.contains('\0') {
        let text = "the command holds a NUL character, which no program can get";
        return Err(Precondition::schema("/command", text));
    }
    Ok(())
}

/// What exit code 1 means of a lone program that says "no" with it (tool-contract §12): `Some(true)` if it looked for
/// something and there was nothing.
pub(super) fn one_is_an_answer(line: &str) -> Option<bool> {
    let analysis = command::analyse(line);
    let [argv] = analysis.commands.as_slice() else { return None };
    // A `!` turns the answer round, wherever it stands.
    let negated = line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ';')).any(|word| word == "!");
    if negated || !analysis.opaque.is_empty() {
        return None;
    }
    match argv.first()?.as_str() {
        "grep" | "rg" => Some(true),
        "diff" | "cmp" | "test" | "[" => Some(false),
        _ => None,
    }
}

/// Both streams, as far as there is anything in them.
pub(super) fn streams(output: &Value) -> Vec<Content> {
    let spool = |name: &str| serde_json::from_value::<SpoolRef>(output.get(name)?.clone()).ok();
    let written = ["stdout", "stderr"].into_iter().filter_map(spool).filter(|spool| spool.total_bytes > 0);
    let mut parts: Vec<Content> = written.map(Content::Spool).collect();
    if parts.is_empty() {
        let code = output.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        parts.push(Content::text(format!("(no output; exit code {code})")));
    }
    parts
}

/// The first line of a command.
pub(super) fn brief(command: &str) -> String {
    let command = command.trim();
    let line = command.lines().next().unwrap_or_default();
    if line.len() < command.len() { format!("{line}…") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::one_is_an_answer;

    #[test]
    fn exit_code_1_is_an_answer_only_of_a_lone_program_that_gives_it() {
        assert_eq!(one_is_an_answer("grep x file"), Some(true));
        assert_eq!(one_is_an_answer("rg -n x"), Some(true));
        assert_eq!(one_is_an_answer("diff a b"), Some(false));
        assert_eq!(one_is_an_answer("[ -f a ]"), Some(false));
        for other in [
            "grep x f; true",
            "cat f | grep x",
            "make",
            "grep $X f",
            "! grep x f",
            "(! grep x f)",
            "(grep x f) && y",
            "",
        ] {
            assert_eq!(one_is_an_answer(other), None, "{other}");
        }
    }
}
