//! A workspace that is, or holds, a home folder or a folder of ours: a slip most of the time, for a command there works
//! beside everything that the next login or start obeys. It is refused unless somebody says that it is meant.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use portcullis::hand::way_to;
use portcullis_base::{Clock as _, Digest, SystemClock};
use portcullis_config::{DraftFile, Settings, other_name, runtime_folders};
use portcullis_policy::EnterprisePolicy;
use serde_json::json;

use crate::exit::{failed, usage};
use crate::person;
use crate::render::{for_stderr, place};
use crate::world::quoted;

/// Refuses a workspace that nobody said is meant. On a terminal, and where `--workspace` names it, a person is asked.
pub fn ask(settings: &Settings, workspace: &Path) -> anyhow::Result<()> {
    let Some(held) = open_question(settings, workspace)? else { return Ok(()) };
    if !settings.chosen.workspace {
        return Err(usage(format!(
            "the workspace {} {held}, so a command here could change files that your next login runs; change to the \
             folder of a project, or name this one with --workspace {} (you are asked once, on a terminal), or give \
             --workspace-is-home",
            workspace.display(),
            quoted(workspace.as_os_str().as_bytes())
        )));
    }
    if is_remembered(settings, workspace) {
        return Ok(());
    }
    if !has_a_person() {
        return Err(nobody_to_ask(workspace, &held));
    }
    let question = format!(
        "The workspace {} {held}. Commands there can read and change everything in it but what belongs to Portcullis. \
         Work there, now and later? Type yes: ",
        place(workspace)
    );
    if !says_yes(&question)? {
        return Err(failed("nothing was started; work in the folder of a project"));
    }
    remember(settings, workspace)
}

/// The same where nobody is asked: a session goes on in the folder that it was made in.
pub fn permitted(settings: &Settings, workspace: &Path) -> anyhow::Result<()> {
    match open_question(settings, workspace)? {
        Some(held) if !is_remembered(settings, workspace) => Err(nobody_to_ask(workspace, &held)),
        _ => Ok(()),
    }
}

/// Whether a person sits at a terminal and can be asked before anything happens.
pub fn has_a_person() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// A question that only the word `yes` answers with yes.
pub fn says_yes(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{}", for_stderr(question))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

fn nobody_to_ask(workspace: &Path, held: &str) -> anyhow::Error {
    usage(format!(
        "the workspace {} {held}, and nobody can be asked here whether that is meant; work in the folder of a project, \
         confirm it once on a terminal with `portcullis run --workspace {}`, or give --workspace-is-home",
        workspace.display(),
        quoted(workspace.as_os_str().as_bytes())
    ))
}

/// What the workspace holds, in words, if no flag says that it is meant.
fn open_question(settings: &Settings, workspace: &Path) -> anyhow::Result<Option<String>> {
    if let Some((place, name)) = other_name(workspace, &runtime_folders::places(settings, workspace)) {
        return Err(usage(format!(
            "{} is another name of {} (a bind mount), which holds folders of Portcullis, and commands are kept from those by \
             their first name alone; work in {}, or in the folder of a project",
            place.display(),
            name.display(),
            name.display()
        )));
    }
    let Some(held) = held(settings, workspace) else { return Ok(None) };
    if !settings.enterprise.workspace_is_home() {
        return Err(usage(format!(
            "the workspace {} {held}, and {} forbids that (workspace_is_home = false); work in the folder of a project",
            workspace.display(),
            EnterprisePolicy::PATH
        )));
    }
    Ok((!settings.chosen.workspace_is_home).then_some(held))
}

/// What a workspace holds that makes it more than a project, in words.
fn held(settings: &Settings, workspace: &Path) -> Option<String> {
    let config = runtime_folders::config_folder();
    let own = [Some(settings.home.root()), config.as_deref()];
    // Nothing works in there at all, and the runtime says so itself.
    if own.iter().flatten().any(|folder| folder.canonicalize().is_ok_and(|real| workspace.starts_with(real))) {
        return None;
    }
    let mine = runtime_folders::own_home().and_then(|home| home.canonicalize().ok());
    if let Some(home) = runtime_folders::homes_in(workspace).into_iter().max_by_key(|home| Some(home) == mine.as_ref())
    {
        let whose = if Some(&home) == mine.as_ref() { "your home folder" } else { "a home folder" };
        return Some(match home == workspace {
            true => format!("is {whose}"),
            false => format!("holds {whose}, {}", home.display()),
        });
    }
    let is_inside = |folder: &Path| way_to(folder).iter().any(|step| step.place.starts_with(workspace));
    let named = [
        ("the data folder", Some(settings.home.root())),
        ("the configuration folder", config.as_deref()),
        ("the folder of the organisation's rules", Some(runtime_folders::enterprise_folder())),
    ];
    let (what, folder) = named.into_iter().find(|(_, folder)| folder.is_some_and(is_inside))?;
    Some(format!("holds {what} of Portcullis, {}, or a link on the way to it", folder.unwrap_or(workspace).display()))
}

/// Whether a person said before that this very folder is meant.
fn is_remembered(settings: &Settings, workspace: &Path) -> bool {
    record(settings, workspace).is_file()
}

/// Where it is kept that this very folder is meant: in the data folder, which no tool sees.
fn record(settings: &Settings, workspace: &Path) -> PathBuf {
    let name = Digest::of(workspace.as_os_str().as_bytes());
    settings.home.root().join("workspaces").join(format!("{name}.json"))
}

fn remember(settings: &Settings, workspace: &Path) -> anyhow::Result<()> {
    let record = record(settings, workspace);
    let cannot = || format!("cannot keep {}", record.display());
    settings.home.prepare()?;
    let folder = record.parent().unwrap_or(settings.home.root());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(cannot)?;
    let at = SystemClock::new().now();
    let text = json!({"workspace": workspace.to_string_lossy(), "by": person::login(), "at": at}).to_string() + "\n";
    let mut draft = DraftFile::begin(&record).with_context(cannot)?;
    draft.write_all(text.as_bytes()).and_then(|()| draft.replace()).with_context(cannot)
}
