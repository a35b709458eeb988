//! What a call told of its session's shell, written down with its end. A value of the environment is sealed into its own
//! row by the same append that says that there is one; no event, artifact or warning holds it (H12).

use portcullis_base::{ArtifactId, ArtifactKind, limits};
use portcullis_contract::{EndedCommand, ShellFact, SpoolRef};
use portcullis_event::facts::{
    CommandFinished, CommandRecord, SHELL_SOURCE, SessionUpdated, ShellClosed, ShellOpened, VariableDeleted,
    VariableSet,
};
use portcullis_event::fold::Shell;
use portcullis_secret::{Aad, Sealed, SecretText};
use portcullis_store::{RecordWrite, VARIABLE, variable_id};
use serde::{Deserialize, Serialize};

use crate::output::evidence::{Evidence, Label, RetainError};
use crate::output::spool::{CapturedBytes, CapturedStream};
use crate::phases::masked_names::CallRedactor;
use crate::phases::refuse::ERROR_MAX;
use crate::phases::schedule::Invocation;
use crate::sessions::append::Append;
use crate::sessions::session::SessionShared;

/// A path longer than this is none that Linux takes.
const PATH_MAX: usize = 4_096;
/// Variables of a shell are text: what is secret is declared so elsewhere. Both are sealed (SA-29).
const KIND: &str = "text";

/// The row of a sealed value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SealedRow {
    pub(crate) version: u64,
    pub(crate) sealed: Sealed,
}

/// What a sealed value of a session's shell is bound to, besides tenant and version.
pub(crate) fn bound_to(session: &SessionShared, name: &str) -> String {
    format!("shell-env:{}:{name}", session.key.session)
}

/// Adds the facts to the append that ends the call.
pub(crate) async fn write_shell(
    evidence: &Evidence<'_>,
    invocation: &Invocation,
    reported: Vec<ShellFact>,
    streams: &[CapturedStream],
    warnings: &mut Vec<String>,
    facts: &mut Append,
) {
    if reported.is_empty() {
        return;
    }
    // As it will be: later facts of this call rest on earlier ones.
    let shell = evidence.session.state().shell.clone();
    let names = &invocation.authorized.validated.names;
    let mut writing = ShellFactWriter { evidence, invocation, names, shell, warnings, facts };
    for fact in reported {
        match fact {
            ShellFact::Cwd(cwd) => writing.cwd(cwd),
            ShellFact::EnvSet(key, value) => writing.set(key.as_str(), &value),
            ShellFact::EnvUnset(key) => writing.unset(key.as_str()),
            ShellFact::Opened { shell_id, shell_path, cwd } => {
                let shell_path = writing.word(&shell_path, PATH_MAX);
                let cwd = writing.is_plain(&cwd).then_some(cwd);
                if let Some(cwd) = &cwd {
                    writing.shell.set_cwd(cwd, writing.session().gate.clock.now());
                }
                writing.note(&ShellOpened { shell_id, shell_path, cwd });
            }
            ShellFact::Closed { shell_id, reason } => {
                let reason = writing.word(&reason, ERROR_MAX);
                writing.note(&ShellClosed { shell_id, reason, warnings: Vec::new() });
            }
            ShellFact::Finished(ended) => writing.finished(*ended, streams).await,
        }
    }
}

/// Writes the facts about the shell of a session into an append.
struct ShellFactWriter<'a> {
    evidence: &'a Evidence<'a>,
    invocation: &'a Invocation,
    names: &'a CallRedactor,
    shell: Shell,
    warnings: &'a mut Vec<String>,
    facts: &'a mut Append,
}

impl ShellFactWriter<'_> {
    fn session(&self) -> &SessionShared {
        self.evidence.session
    }

    fn note<B: portcullis_event::EventBody>(&mut self, body: &B) {
        self.evidence.session.note(self.facts, self.evidence.turn_id, body);
    }

    /// A word as it may be written: secrets masked, and cut to size.
    fn word(&self, text: &str, most: usize) -> String {
        self.session().tidy(&self.names.masked(text), most)
    }

    /// Whether a folder can be written as it is. One with a secret in its name cannot, and its mask names no folder.
    fn is_plain(&mut self, cwd: &str) -> bool {
        let plain = cwd.len() <= PATH_MAX && self.names.masked(cwd) == cwd;
        if !plain {
            let text = "the folder of the shell was not kept: its name holds a secret, or is too long; the next command \
                        starts in the folder before it";
            self.warnings.push(text.to_owned());
        }
        plain
    }

    fn cwd(&mut self, cwd: String) {
        if self.shell.cwd() == Some(cwd.as_str()) || !self.is_plain(&cwd) {
            return;
        }
        self.shell.set_cwd(&cwd, self.session().gate.clock.now());
        self.note(&SessionUpdated::moved(cwd));
    }

    fn set(&mut self, name: &str, value: &SecretText) {
        if let Err(why) = self.try_set(name, value) {
            self.warnings.push(format!("the value of `{name}` was not kept for later commands: {why}"));
        }
    }

    fn try_set(&mut self, name: &str, value: &SecretText) -> Result<(), String> {
        if self.shell.env_version(name).is_none() && self.shell.env().len() >= limits::ENV_NAMES {
            return Err(format!("the session has {} names already; unset one first", limits::ENV_NAMES));
        }
        if value.expose().len() > limits::ENV_VALUE {
            return Err(format!("it is longer than {} bytes; put it into a file", limits::ENV_VALUE));
        }
        if value.expose().contains('\0') {
            return Err("it holds a NUL character, which no environment can".to_owned());
        }
        let session = self.evidence.session;
        let version = self.shell.next_version();
        let bound_to = bound_to(session, name);
        let aad = Aad { tenant: session.key.tenant, name: &bound_to, version };
        let sealed = session.gate.sealer.seal(aad, value.expose().as_bytes(), &*session.gate.entropy);
        let row = SealedRow { version, sealed: sealed.map_err(|_| "it could not be sealed".to_owned())? };
        let body = serde_json::to_value(row).map_err(|_| "it could not be sealed".to_owned())?;
        self.record(name, Some(body));
        self.shell.set_env(name, version, session.gate.clock.now());
        self.note(&VariableSet {
            name: name.to_owned(),
            kind: KIND.to_owned(),
            source: SHELL_SOURCE.to_owned(),
            version,
            invocation_id: Some(self.invocation.id),
        });
        Ok(())
    }

    fn unset(&mut self, name: &str) {
        let Some(version) = self.shell.env_version(name) else { return };
        self.record(name, None);
        self.shell.unset_env(name, self.session().gate.clock.now());
        self.note(&VariableDeleted {
            name: name.to_owned(),
            kind: KIND.to_owned(),
            source: SHELL_SOURCE.to_owned(),
            version,
            invocation_id: Some(self.invocation.id),
        });
    }

    fn record(&mut self, name: &str, body: Option<serde_json::Value>) {
        let id = variable_id(self.session().key.session, name);
        self.facts.records.push(RecordWrite { kind: VARIABLE.to_owned(), id, expected: None, body });
    }

    async fn finished(&mut self, ended: EndedCommand, streams: &[CapturedStream]) {
        let stream = |spool: &Option<SpoolRef>| spool.as_ref().and_then(|spool| streams.get(spool.index as usize));
        let (stdout, stderr) = (stream(&ended.stdout), stream(&ended.stderr));
        let stdout_ref = self.keep(stdout).await;
        let stderr_ref = self.keep(stderr).await;
        let command = CommandRecord {
            command_id: ended.command_id,
            command: self.word(&ended.command, limits::COMMAND_WORDS),
            args: self.args(&ended.args),
            cwd: self.word(&ended.cwd, PATH_MAX),
            exit_code: ended.exit_code,
            timed_out: ended.timed_out,
            duration_ms: ended.duration_ms,
            stdout_preview: self.preview(stdout),
            stderr_preview: self.preview(stderr),
        };
        let fact = CommandFinished {
            command,
            shell_id: ended.shell_id,
            cwd: self.shell.cwd().map(str::to_owned),
            env_keys: self.shell.env().map(|(name, _)| name.to_owned()).collect(),
            stdout_ref,
            stderr_ref,
        };
        self.note(&fact);
    }

    /// As many words as fit; the last then says how many are left out.
    fn args(&self, args: &[String]) -> Vec<String> {
        let mut room = limits::COMMAND_WORDS;
        let mut kept = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            if room == 0 {
                kept.push(format!("… ({} words more)", args.len() - at));
                break;
            }
            let word = self.word(arg, room);
            // An empty word takes a place, too.
            room = room.saturating_sub(word.len().max(1));
            kept.push(word);
        }
        kept
    }

    /// The end of a stream, which tells how it went. Secrets were masked when it was captured.
    fn preview(&self, stream: Option<&CapturedStream>) -> Option<String> {
        let window = stream?.window()?;
        let from = window.len().saturating_sub(4 * limits::OUTPUT_PREVIEW as u64);
        let bytes = window.slice(from, window.len()).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let over = text.chars().count().saturating_sub(limits::OUTPUT_PREVIEW - 1);
        let whole = from == 0 && over <= 1;
        let shown =
            if whole { text.into_owned() } else { format!("…{}", text.chars().skip(over).collect::<String>()) };
        (!shown.is_empty()).then(|| self.names.masked(&shown).into_owned())
    }

    /// Keeps all of a stream, so that it can be read when the call is long over.
    async fn keep(&mut self, stream: Option<&CapturedStream>) -> Option<ArtifactId> {
        let stream = stream.filter(|stream| stream.kept > 0)?;
        let id = self.evidence.fresh_id();
        let complete = stream.complete();
        let label = Label { id, kind: ArtifactKind::CommandOutput, mime: "text/plain", lines: None, complete };
        let kept = match &stream.bytes {
            CapturedBytes::Inline(bytes) => self.evidence.keep(label, bytes.to_vec(), self.facts).await,
            CapturedBytes::Stored(stored) => self.evidence.name_spool(label, stored, self.facts).await,
            CapturedBytes::Lost(why) => Err(RetainError::Io(why.clone())),
        };
        match kept {
            Ok(artifact) => Some(artifact.id),
            Err(error) => {
                self.warnings.push(format!("what the command wrote was not kept for later calls: {error}"));
                None
            }
        }
    }
}
