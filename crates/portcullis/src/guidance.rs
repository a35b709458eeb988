//! What a project says to the agent that works in it (agent-runtime 6.1), and its files in general: they are opened as
//! the file tools open them, since what a repository holds may be a link to a person's keys.

use std::io::Read as _;

use portcullis_base::SessionId;
use portcullis_event::facts::Verdict;
use portcullis_harness::Guidance;
use portcullis_sandbox::{FileError, ResolvedPlace, open_for_reading, stat};
use serde_json::json;

use crate::runtime::Runtime;

/// The guidance of a workspace: the first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The most bytes of it that a session begins with: about 8,000 tokens, half of the smallest budget of a conversation
/// (agent-runtime 6.4). It stays in every request, and what is behind that can be read when it is wanted.
pub const GUIDANCE_BYTES: u64 = 32 * 1024;

/// What was found of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectGuidance {
    /// What the model is told.
    pub guidance: Option<Guidance>,
    /// What a person should know: it is left out, and why; or it is cut. File names in it are as they stand on the disk.
    pub warning: Option<String>,
}

impl Runtime {
    /// The guidance of the workspace, read as the `read` tool would: within the workspace, a regular file, and only where
    /// no rule stands against it.
    pub async fn guidance(&self) -> ProjectGuidance {
        let Some(mounts) = &self.mounts else { return ProjectGuidance::default() };
        for name in NAMES {
            let left_out = |why: String| ProjectGuidance {
                guidance: None,
                warning: Some(format!("the guidance {name} is left out: {why}")),
            };
            let resolved = match mounts.resolve(name) {
                Ok(resolved) if resolved.kind().is_none() => continue,
                Err(FileError::NotFound { .. }) => continue,
                Ok(resolved) => resolved,
                Err(error) => return left_out(error.to_string()),
            };
            // Rules may speak of the name, and of the place that a link leads to.
            for path in [name, resolved.path().as_str()] {
                if let Err(why) = self.may_read(path).await {
                    return left_out(why);
                }
            }
            return match read_beginning(&resolved, GUIDANCE_BYTES) {
                Ok(read) => self.told(name, read),
                Err(why) => left_out(why),
            };
        }
        ProjectGuidance::default()
    }

    /// What the rules say to a `read` that nobody could be asked about.
    async fn may_read(&self, path: &str) -> Result<(), String> {
        // Of no session: what one of them was allowed is not every other's.
        let nobody = SessionId::from_u128(0);
        let input = json!({ "file_path": path }).to_string();
        let found = self.gate.explain(nobody, "local", "read", &input).await;
        match found.decision {
            Verdict::Allow => Ok(()),
            Verdict::Deny | Verdict::Ask if found.policy_ids.is_empty() => Err(found.reason),
            Verdict::Deny => Err(format!("{} ({})", found.reason, found.policy_ids.join(", "))),
            Verdict::Ask => Err(format!("to read it must be asked about ({})", found.policy_ids.join(", "))),
        }
    }

    fn told(&self, name: &str, (text, size): (String, u64)) -> ProjectGuidance {
        let kept = text.len();
        if u64::try_from(kept).is_ok_and(|kept| kept >= size) {
            let guidance = Guidance { name: name.to_owned(), text: self.gate.masked(&text) };
            return ProjectGuidance { guidance: Some(guidance), warning: None };
        }
        let next = text.matches('\n').count() + 1;
        let note = format!(
            "[cut here: these are the first {kept} of {size} bytes of {name}; read the rest with `read`, from line {next} on]"
        );
        let text = format!("{}\n{note}", self.gate.masked(&text));
        ProjectGuidance {
            guidance: Some(Guidance { name: name.to_owned(), text }),
            warning: Some(format!(
                "the guidance {name} has {size} bytes; the model is given the first {kept} and told how to read the rest"
            )),
        }
    }
}

/// The beginning of a text, in whole lines if it has any, and how many bytes there are in all.
fn read_beginning(resolved: &ResolvedPlace, most: u64) -> Result<(String, u64), String> {
    let size = stat(resolved).map_err(|e| e.to_string())?.size;
    let file = open_for_reading(resolved).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    // The kernel's own words could name the host's path.
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| e.kind().to_string())?;
    let whole = u64::try_from(bytes.len()).is_ok_and(|len| len <= most);
    if !whole {
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            bytes.truncate(end + 1);
        }
    }
    let size = if whole { bytes.len() as u64 } else { size.max(most + 1) };
    let not_text = || "it is not UTF-8 text".to_owned();
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err(not_text()),
        Ok(text) => Ok((text, size)),
        // A character may be cut in two where one long line is.
        Err(error) if !whole && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            String::from_utf8(bytes).map(|text| (text, size)).map_err(|_| not_text())
        }
        Err(_) => Err(not_text()),
    }
}
