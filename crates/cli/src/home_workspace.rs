//! The question whether a workspace is meant that is, or holds, a home folder or a folder of ours.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use portcullis_config::Settings;
use portcullis_config::home_workspace::{WorkspaceRefusal, is_remembered, open_question, remember};
use portcullis_terminal::render::{for_stderr, place, quoted};

use crate::exit::{failed, usage};
use crate::person;

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
        return Err(WorkspaceRefusal::Unconfirmed { workspace: workspace.to_owned(), held }.into());
    }
    let question = format!(
        "The workspace {} {held}. Commands there can read and change everything in it but what belongs to Portcullis. \
         Work there, now and later? Type yes: ",
        place(workspace)
    );
    if !says_yes(&question)? {
        return Err(failed("nothing was started; work in the folder of a project"));
    }
    Ok(remember(settings, workspace, &person::login())?)
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
