//! `sandbox_describe` and the action `inspect` (agent-runtime 10.2). Every fact is taken from where it is enforced.

use portcullis_base::{Effect, EffectSet, Risk, RiskSet};
use portcullis_command::program_names;
use portcullis_contract::{AccessRequest, Action, BuildError, Content, NamedKind, Resource, Semantics, Tool, UserText};
use portcullis_sandbox::hand::Limits;
use portcullis_sandbox::{Access, Mount, MountTable, TreeOwner};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::table::ROWS;
use crate::command::{ENV_NAMES, MAX_MS};
use crate::executor;
use crate::hand::Hand;

const DESCRIPTION: &str = "Shows the sandbox of this session: what is mounted, what holds in it, every action of \
sandbox_execute with an example, which programs run_command knows, and how far commands are isolated. Read it before \
sandbox_execute, above all before run_command. It changes nothing.";

/// The name under which rules speak of both.
const ACTION: &str = "sandbox_describe";
const WORKSPACE: &str = "/workspace";
const READ_ONLY: &str = "read_only";
const READ_WRITE: &str = "read_write";

/// What holds for every action (agent-runtime 10.1).
const CONSTRAINTS: [&str; 9] = [
    "Only what is mounted can be seen. A relative path begins at /workspace.",
    "A path that leads out of its mount, by `..` or by a link, is refused (path_escape).",
    "A read-only mount can be looked at and not changed; so can .portcullis/ of a workspace.",
    "A file that exists must be read before it is replaced, appended to or edited.",
    "Text is UTF-8; read_text refuses a binary file with its size and type.",
    "run_command never uses a shell, and its programs get no variables of the session or the call.",
    "run_shell and the persistent shell run only in writable mounts, and ask every time.",
    "What a rule denies reading is not there for commands, either.",
    "An action asks for exactly what its own tool asks: sandbox_execute is no way around one.",
];

#[derive(Debug, Deserialize, JsonSchema)]
struct NoInput {}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InspectedSandbox {
    provisioned_resource_count: usize,
    resources: Vec<ResourceView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SandboxDescription {
    kind: &'static str,
    summary: String,
    provisioned_resource_count: usize,
    resources: Vec<ResourceView>,
    constraints: Vec<&'static str>,
    actions: Vec<ActionView>,
    command_policy: CommandPolicy,
    action_examples: Vec<Example>,
    isolation: IsolationView,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceView {
    id: String,
    kind: &'static str,
    mount_path: String,
    access: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ActionView {
    name: &'static str,
    description: &'static str,
    access: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CommandPolicy {
    /// Whether run_command uses a shell.
    shell: bool,
    allowlisted_commands: Vec<&'static str>,
    cwd_scope: &'static str,
    max_timeout_ms: u64,
    exposed_env_keys: Vec<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Example {
    name: &'static str,
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_example: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct IsolationView {
    /// What commands reach here.
    level: String,
    /// Below this none runs.
    minimum: String,
    network: &'static str,
    limits: LimitsView,
}

/// What a command and all that it starts may use up; null is no limit.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LimitsView {
    cpu_seconds: Option<u64>,
    memory_bytes: Option<u64>,
    processes: Option<u32>,
    file_bytes: Option<u64>,
    open_files: Option<u64>,
    /// So much less may be free on a disk than at the start.
    disk_use_bytes: Option<u64>,
    /// So much must stay free on it.
    disk_free_bytes: Option<u64>,
}

impl From<Limits> for LimitsView {
    fn from(limits: Limits) -> Self {
        let Limits { cpu, memory, pids, file_size, open_files, disk_use, disk_free } = limits;
        Self {
            cpu_seconds: cpu.map(|cpu| cpu.as_secs()),
            memory_bytes: memory,
            processes: pids,
            file_bytes: file_size,
            open_files,
            disk_use_bytes: disk_use,
            disk_free_bytes: disk_free,
        }
    }
}

impl ResourceView {
    fn of(mount: &Mount) -> Self {
        let root = mount.root().as_str();
        let own = mount.owner() == TreeOwner::SessionOwn;
        Self {
            id: format!("mount:{root}"),
            kind: match (root, own) {
                (WORKSPACE, true) => "session_workspace",
                (WORKSPACE, false) => "repo_mount",
                _ => "local_file",
            },
            mount_path: root.to_owned(),
            access: if mount.access() == Access::ReadWrite { READ_WRITE } else { READ_ONLY },
            scope: (root == WORKSPACE && own).then_some("session_execution_hand"),
        }
    }
}

fn resources(mounts: &MountTable) -> Vec<ResourceView> {
    let mut views: Vec<ResourceView> = mounts.mounts().map(ResourceView::of).collect();
    views.sort_by(|a, b| a.mount_path.cmp(&b.mount_path));
    views
}

fn semantics() -> Semantics {
    Semantics { effects: EffectSet::from([Effect::SandboxExecute]), ..Semantics::read_only() }
}

/// The sandbox itself; nothing in it is opened.
fn planned() -> Vec<AccessRequest> {
    let own = Resource::own(NamedKind::Session, "sandbox");
    vec![AccessRequest::new(Action::new(ACTION), own, RiskSet::from([Risk::Read])).reversible()]
}

pub(super) fn inspect(hand: Hand) -> Result<Tool, BuildError> {
    Tool::builder::<NoInput, InspectedSandbox>(super::table::description("inspect"))
        .semantics(semantics())
        .executor(executor("inspect"))
        .plan_access(|_, _| planned())
        .execute(move |_, _| {
            let resources = resources(hand.mounts());
            async move { Ok(InspectedSandbox { provisioned_resource_count: resources.len(), resources }) }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| to_user(output))
        .build()
}

pub(super) fn tool(hand: Hand) -> Result<Tool, BuildError> {
    Tool::builder::<NoInput, SandboxDescription>(DESCRIPTION)
        .semantics(semantics())
        .executor(executor(ACTION))
        .plan_access(|_, _| planned())
        .execute(move |_, _| {
            let hand = hand.clone();
            async move { Ok(described(&hand).await) }
        })
        .to_model(|_, output| document(output))
        .to_user(|_, output| to_user(output))
        .build()
}

async fn described(hand: &Hand) -> SandboxDescription {
    let (level, settings) = (hand.posture().await.level, hand.settings());
    let resources = resources(hand.mounts());
    let summary = if level >= settings.minimum {
        format!("Files of the mounts, and commands on them at isolation level `{level}`.")
    } else {
        format!(
            "Files of the mounts. No command runs: level `{level}` is what can be had here, and `{}` is the least that is \
             accepted.",
            settings.minimum
        )
    };
    SandboxDescription {
        kind: "workspace",
        summary,
        provisioned_resource_count: resources.len(),
        resources,
        constraints: CONSTRAINTS.to_vec(),
        actions: ROWS
            .iter()
            .map(|row| ActionView {
                name: row.name,
                description: row.description,
                access: if row.changes { READ_WRITE } else { READ_ONLY },
            })
            .collect(),
        command_policy: CommandPolicy {
            shell: false,
            allowlisted_commands: program_names().collect(),
            cwd_scope: "any folder of the mounts",
            max_timeout_ms: MAX_MS,
            exposed_env_keys: ENV_NAMES.to_vec(),
        },
        action_examples: ROWS
            .iter()
            .map(|row| Example {
                name: row.name,
                description: row.description,
                input_example: row.example.and_then(|text| serde_json::from_str(text).ok()),
            })
            .collect(),
        isolation: IsolationView {
            level: level.to_string(),
            minimum: settings.minimum.to_string(),
            network: settings.network.as_str(),
            limits: settings.limits.into(),
        },
    }
}

fn document(output: &Value) -> Vec<Content> {
    vec![Content::text(serde_json::to_string_pretty(output).unwrap_or_default())]
}

fn to_user(output: &Value) -> UserText {
    let count = output.get("provisionedResourceCount").and_then(Value::as_u64).unwrap_or_default();
    UserText { title: "Sandbox".to_owned(), summary: crate::files::counted(count, "resource") }
}
