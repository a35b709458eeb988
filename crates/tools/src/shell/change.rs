//! `shell_set_cwd`, `shell_set_env` and `shell_unset_env`: what the next commands of a session find.

use std::sync::Arc;

use portcullis_base::{Effect, EffectSet, EnvKey, Risk, limits};
use portcullis_contract::{
    BuildError, Caller, Concurrency, DefaultPolicy, NamedKind, Precondition, Prepared, Resolved, Resource, Semantics,
    ShellFact, Tool, ToolBuilder, ToolContext, ToolFailure, UserText,
};
use portcullis_event::fold::Shell;
use portcullis_sandbox::Kind;
use portcullis_secret::SecretText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::env_input::{EnvInput, setting};
use super::posture::Posture;
use super::session_shell::Change;
use super::view::{EnvView, StateView};
use super::{ShellTools, accesses, document, unseen, word};
use crate::executor;
use crate::files::failure;
use crate::search::scope;

const SET_CWD: &str = "Sets the folder that later commands of this session run in. It must be a folder of the workspace. \
It holds until it is changed, also in later processes.";
const SET_ENV: &str = "Sets a name of the environment that later commands of this session run with. The value is kept \
sealed and is shown nowhere, also not by shell_describe. PATH, LANG, TMPDIR and every PORTCULLIS_ name are protected.";
const UNSET_ENV: &str = "Takes a name out of the environment that later commands of this session run with. A name that \
is not there is no error.";

#[derive(Debug, Deserialize, JsonSchema)]
struct SetCwdInput {
    /// The folder, relative to the workspace or as `/workspace/…`.
    #[schemars(regex(pattern = r"\S"), length(max = 4096))]
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetCwdOutput {
    session_id: String,
    cwd: String,
    shell_state: Option<StateView>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SetEnvInput {
    /// A letter or `_`, then letters, digits and `_`.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"), length(max = 256))]
    key: String,
    /// Taken exactly as it is; it may be empty. At most 8192 bytes.
    #[schemars(extend("x-portcullis-sensitive" = true))]
    value: SecretInput,
}

/// A value that does not print itself, written as any text.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct SecretInput(SecretText);

impl JsonSchema for SecretInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SecretInput".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UnsetEnvInput {
    /// A letter or `_`, then letters, digits and `_`.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"), length(max = 256))]
    key: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EnvOutput {
    session_id: String,
    key: String,
    env: EnvView,
    shell_state: Option<StateView>,
}

/// What these tools are: they change what later commands find, and nothing of the world.
fn changing(effects: EffectSet) -> Semantics {
    Semantics {
        effects,
        idempotent: true,
        reversible: true,
        concurrency: Concurrency::Keyed,
        default_policy: DefaultPolicy::Allow,
        ..Semantics::mutating()
    }
}

/// A command of the persistent shell holds the same key while it runs: a change waits for it, or is a `lock_conflict`.
fn key_of(caller: &Caller) -> String {
    format!("shell:{}", caller.session_id)
}

fn env_key(text: &str) -> Result<EnvKey, Precondition> {
    text.parse().map_err(|error| Precondition::schema("/key", format!("{error}")))
}

/// The one name that a change of the environment is about.
fn about_key(text: &str, caller: &Caller) -> Result<Resolved, Precondition> {
    let own = Resource::own(NamedKind::Shell, format!("env:{}", env_key(text)?));
    Ok(Resolved { resources: vec![own], keys: vec![key_of(caller)], cwd: None })
}

/// A value that an environment can hold. What is wrong is said without it.
pub(super) fn fits(value: &SecretText, field: &str) -> Result<(), Precondition> {
    let text = value.expose();
    if text.len() > limits::ENV_VALUE {
        let text = format!(
            "the value has {} bytes, and one may have {}; put it into a file and set its path",
            text.len(),
            limits::ENV_VALUE
        );
        return Err(Precondition::schema(field, text));
    }
    if text.contains('\0') {
        return Err(Precondition::schema(field, "the value holds a NUL character, which no environment can"));
    }
    Ok(())
}

pub(super) fn set_cwd(parts: Arc<ShellTools>) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    Tool::builder::<SetCwdInput, SetCwdOutput>(SET_CWD)
        .semantics(changing(EffectSet::from([Effect::MemoryWrite, Effect::SandboxExecute])))
        .executor(executor("shell_set_cwd"))
        .keyed()
        .resolve(move |input: &SetCwdInput, caller| {
            let place = named.files.named(&input.path, "/path")?;
            Ok(Resolved { keys: vec![key_of(caller)], ..place })
        })
        // Whether a folder is there is a look at it: what may not be read, this does not tell.
        .plan_access(|_, resolved| scope::plan("shell_set_cwd", resolved))
        .precheck(move |_, resolved, _| {
            let checked = scope::check(&checked.files, &resolved, Kind::Directory);
            async move { checked }
        })
        .execute_resolved(move |_, resolved, context| {
            let parts = Arc::clone(&parts);
            async move {
                let place = parts.files.place(&resolved).map_err(failure)?;
                scope::require(&place, Kind::Directory).map_err(failure)?;
                let cwd = place.path().as_str().to_owned();
                parts.bring(&context, Change::Cwd(cwd.clone())).await?;
                context.shell(ShellFact::Cwd(cwd.clone()));
                let (session_id, shell) = parts.after(&context, |shell, at| shell.set_cwd(&cwd, at)).await?;
                Ok(SetCwdOutput { session_id, cwd, shell_state: shell.1 })
            }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| UserText {
            title: "Shell folder".to_owned(),
            summary: format!("commands run in {}", word(output, "cwd")),
        })
        .build()
}

pub(super) fn set_env(parts: Arc<ShellTools>) -> Result<Tool, BuildError> {
    let checked = Arc::clone(&parts);
    env_tool(SET_ENV, "shell_set_env")
        .plan_access(|input: &SetEnvInput, _| setting(&input.key, &input.value.0, Risk::Write))
        .resolve(|input: &SetEnvInput, caller| {
            fits(&input.value.0, "/value")?;
            about_key(&input.key, caller)
        })
        .precheck(move |input: Arc<SetEnvInput>, _, caller| {
            let parts = Arc::clone(&checked);
            async move {
                parts.room_for(&caller, std::slice::from_ref(&input.key)).await?;
                Ok(portcullis_contract::Prepared::default())
            }
        })
        .execute(move |input, context| {
            let parts = Arc::clone(&parts);
            async move {
                let key = env_key(&input.key).map_err(ToolFailure::precondition)?;
                let value = input.value.0;
                parts.bring(&context, Change::EnvSet(key.clone(), value.clone())).await?;
                context.shell(ShellFact::EnvSet(key.clone(), value));
                let version = |shell: &Shell| shell.next_version();
                let set = |shell: &mut Shell, at| shell.set_env(key.as_str(), version(shell), at);
                let (session_id, (env, shell_state)) = parts.after(&context, set).await?;
                Ok(EnvOutput { session_id, key: key.to_string(), env, shell_state })
            }
        })
        .to_user(|_, output| UserText {
            title: "Shell environment".to_owned(),
            summary: format!("{} is set", word(output, "key")),
        })
        .build()
}

pub(super) fn unset_env(parts: Arc<ShellTools>) -> Result<Tool, BuildError> {
    env_tool(UNSET_ENV, "shell_unset_env")
        .resolve(|input: &UnsetEnvInput, caller| about_key(&input.key, caller))
        .execute(move |input, context| {
            let parts = Arc::clone(&parts);
            async move {
                let key = env_key(&input.key).map_err(ToolFailure::precondition)?;
                parts.bring(&context, Change::EnvUnset(key.clone())).await?;
                context.shell(ShellFact::EnvUnset(key.clone()));
                let unset = |shell: &mut Shell, at| shell.unset_env(key.as_str(), at);
                let (session_id, (env, shell_state)) = parts.after(&context, unset).await?;
                Ok(EnvOutput { session_id, key: key.to_string(), env, shell_state })
            }
        })
        .to_user(|_, output| UserText {
            title: "Shell environment".to_owned(),
            summary: format!("{} is not set", word(output, "key")),
        })
        .build()
}

/// What both tools of the environment share.
fn env_tool<I>(description: &str, name: &'static str) -> ToolBuilder<I, EnvOutput>
where
    I: for<'de> Deserialize<'de> + JsonSchema + Send + Sync + 'static,
{
    Tool::builder::<I, EnvOutput>(description)
        .semantics(changing(EffectSet::from([Effect::MemoryWrite])))
        .executor(executor(name))
        .keyed()
        .plan_access(move |_, resolved| accesses(name, resolved, Risk::Write))
        .to_model(|_, output| document(output))
}

impl ShellTools {
    /// Whether the session's environment takes these names as well.
    async fn room_for(&self, caller: &Caller, names: &[String]) -> Result<(), Precondition> {
        // A shell that cannot be looked at is the executor's to tell.
        let Ok(seen) = self.book.look(caller, None).await else { return Ok(()) };
        let new = names.iter().filter(|name| seen.shell.env_version(name).is_none()).count();
        if new > 0 && seen.shell.env().len() + new > limits::ENV_NAMES {
            let text = format!(
                "the environment of this session has {} names already, and may have {}; take one out with \
                 shell_unset_env first",
                seen.shell.env().len(),
                limits::ENV_NAMES
            );
            return Err(Precondition::failed(portcullis_base::Reason::OutputBudget, text));
        }
        Ok(())
    }

    /// Whether a shell may be opened in this folder with these variables.
    pub(super) async fn may_open(
        &self,
        caller: &Caller,
        env: &EnvInput,
        resolved: &Resolved,
    ) -> Result<Prepared, Precondition> {
        self.room_for(caller, &env.names()).await?;
        self.may_run_in(resolved)
    }

    /// Brings a live shell to the change, before it is told: if that cannot be, nothing has changed.
    pub(super) async fn bring(&self, context: &ToolContext, change: Change) -> Result<(), ToolFailure> {
        let changed = self.live.change(context.caller().session_id, change).await;
        changed.map_err(|busy| ToolFailure::new("shell_busy", busy.to_string()).retryable(true))
    }

    /// The shell as it will be once this call is written down.
    pub(super) async fn after(
        &self,
        context: &ToolContext,
        change: impl FnOnce(&mut Shell, portcullis_base::Timestamp),
    ) -> Result<(String, (EnvView, Option<StateView>)), ToolFailure> {
        let mut seen = self.book.look(context.caller(), None).await.map_err(unseen)?;
        if let Some(now) = self.book.now() {
            change(&mut seen.shell, now);
        }
        let env = EnvView::of(&seen.shell);
        let posture = Posture::of(&seen, self.live.look(seen.session), &|_| false);
        Ok((seen.session.to_string(), (env, posture.state)))
    }
}
