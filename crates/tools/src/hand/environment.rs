//! The environment of a command, to the letter (agent-runtime 8.7): `PATH`, `LANG`, `TMPDIR`, `PORTCULLIS_SESSION_ID`,
//! `PORTCULLIS_WORKSPACE_CWD`, what toolchains need, and what the session set.

use std::collections::BTreeMap;
use std::ffi::OsString;

use portcullis_contract::{Caller, ToolFailure};
use portcullis_sandbox::VirtualPath;

use super::view::ViewPlaces;
use super::{Hand, Reach};
use crate::shell::unseen;

/// Where programs are if no toolchain says otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The same wherever it runs: sorted names and messages do not depend on a machine.
const LANG: &str = "C.UTF-8";

/// An environment and what could not be put into it.
pub(super) struct CommandEnvironment {
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) names: Vec<String>,
    pub(super) warnings: Vec<String>,
}

pub(super) async fn of(
    hand: &Hand,
    caller: &Caller,
    cwd: &VirtualPath,
    reach: Reach,
    shown: &ViewPlaces,
) -> Result<CommandEnvironment, ToolFailure> {
    let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
    let mut warnings = Vec::new();
    all.insert("PATH".into(), PATH.into());
    all.extend(shown.toolchain_env.iter().cloned());
    // Before ours: the session can set none of those.
    if reach == Reach::Writable {
        let session = hand.0.book.environment(caller).await.map_err(unseen)?;
        for (name, value) in &session.values {
            all.insert(name.as_str().into(), value.expose().into());
        }
        if let Some(first) = session.lost.first() {
            warnings.push(format!(
                "{} names of the session's environment have no value any more, `{first}` the first; set them anew with \
                 shell_set_env",
                session.lost.len()
            ));
        }
    }
    let tmp = shown.tmp_place.clone().unwrap_or_else(|| "/tmp".into());
    all.insert("LANG".into(), LANG.into());
    all.insert("TMPDIR".into(), tmp.into_os_string());
    all.insert("PORTCULLIS_SESSION_ID".into(), caller.session_id.to_string().into());
    all.insert("PORTCULLIS_WORKSPACE_CWD".into(), shown.for_command(cwd.as_str()).into_os_string());
    let names = all.keys().map(|name| name.to_string_lossy().into_owned()).collect();
    Ok(CommandEnvironment { variables: all.into_iter().collect(), names, warnings })
}
