//! What a session is: from its creation, status changes and menus.

use std::collections::BTreeSet;

use portcullis_base::{Actor, AgentId, Digest, EventId, MenuId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::{CustomTool, HiddenTool, StopReason};
use crate::{Body, Event, SessionStatus};

/// A call that waits for the lease holder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedCall {
    pub event_id: EventId,
    /// Who asked for it.
    pub actor: Actor,
    pub name: String,
    pub input: Value,
}

/// A menu as the log holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShownMenu {
    pub menu_id: MenuId,
    pub turn_id: TurnId,
    pub hash: Digest,
    pub hidden: Vec<HiddenTool>,
}

/// The session itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub created: bool,
    /// Whose session it is; `None`: one that no agent was defined for.
    pub agent_id: Option<AgentId>,
    /// The root of the tree that it belongs to; itself, if it is nobody's child.
    pub root: Option<SessionId>,
    /// Whose child it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    pub name: Option<String>,
    pub workspace: Option<String>,
    /// Tools that its client runs.
    pub custom_tools: Vec<CustomTool>,
    pub status: SessionStatus,
    /// The newest menu.
    pub menu: Option<ShownMenu>,
    /// The menu of the newest request: the calls of its answer are compared with it, however late they are made.
    pub asked_with: Option<ShownMenu>,
    /// Bodies of menus that are stored already: an equal menu costs no bytes again.
    pub menus: BTreeSet<Digest>,
    /// Calls of `tool.queued` that nobody consumed yet, oldest first.
    pub queued: Vec<QueuedCall>,
    /// The setups that it has had: the seq of the event that named each, and its hash. Oldest first.
    pub setups: Vec<(u64, Digest)>,
}

impl Session {
    /// The setup in force after the event at `seq`; none in a log that recorded none by then.
    #[must_use]
    pub fn setup_at(&self, seq: u64) -> Option<Digest> {
        self.setups.iter().rev().find(|(named, _)| *named <= seq).map(|(_, hash)| *hash)
    }

    pub(super) fn apply(&mut self, event: &Event, body: &Body) {
        match body {
            Body::SessionCreated(created) => {
                self.created = true;
                self.agent_id = created.agent_id;
                self.root = Some(created.root_session_id);
                self.parent = created.parent_session_id;
                self.name.clone_from(&created.name);
                self.workspace.clone_from(&created.workspace);
                self.custom_tools.clone_from(&created.custom_tools);
                self.setups.extend(created.has_setup.then_some((event.seq, created.config_hash)));
            }
            Body::SessionUpdated(changed) => self.setups.extend(changed.config_hash.map(|hash| (event.seq, hash))),
            Body::StatusRunning(_) => self.status = SessionStatus::Running,
            Body::StatusIdle(idle) => {
                self.status = match idle.stop_reason {
                    StopReason::RequiresAction { .. } => SessionStatus::RequiresAction,
                    _ => SessionStatus::Idle,
                };
            }
            Body::StatusRescheduled(_) => self.status = SessionStatus::Rescheduling,
            Body::StatusTerminated(_) => self.status = SessionStatus::Terminated,
            Body::MenuFrozen(menu) => {
                self.menus.insert(menu.hash);
                self.menu = Some(ShownMenu {
                    menu_id: menu.menu_id,
                    turn_id: menu.turn_id,
                    hash: menu.hash,
                    hidden: menu.hidden.clone(),
                });
            }
            Body::ModelRequestStart(start) => {
                self.asked_with = self.menu.clone().filter(|menu| menu.menu_id == start.menu_id);
            }
            Body::ToolQueued(queued) => self.queued.push(QueuedCall {
                event_id: event.id,
                actor: event.actor.clone(),
                name: queued.name.clone(),
                input: queued.input.clone(),
            }),
            Body::InputConsumed(consumed) => {
                self.queued.retain(|call| !consumed.event_ids.contains(&call.event_id));
            }
            _ => {}
        }
    }
}
