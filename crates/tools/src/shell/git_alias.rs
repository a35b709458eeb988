//! The alias of git that a command would run, of the configuration of its repository.

use portcullis_command as command;

use super::places::joined;
use super::project_script::{NotKnown, Project, QuotedScript, plain};
use crate::hand::git_setting;

/// An alias of the nearest repository. One that another file defines is not looked for.
pub(super) fn alias(words: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    let Some(verb) = command::alias_verb(words) else { return Ok(Vec::new()) };
    let valued = ["-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"];
    let (_, folder) = plain(words, &["-C"], &valued);
    let mut folder = Some(project.inside(folder)?);
    while let Some(here) = folder {
        if let Some((path, text)) = (project.read)(&joined(&here, ".git/config")) {
            let quoted =
                |text: String| QuotedScript { name: format!("alias `{verb}` of {path}"), whole: text.clone(), text };
            return Ok(git_setting(text.as_bytes(), "alias", verb).map(quoted).into_iter().collect());
        }
        folder = here.rsplit_once('/').map(|(above, _)| above.to_owned());
    }
    Ok(Vec::new())
}
