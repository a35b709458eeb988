//! The menu (tool-contract §8): the frozen list of tools of one turn. It holds identities and
//! definitions, never executors, so it keeps no dead tool alive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis_base::{Digest, MenuId, Reason, RegistrationId, TurnId, limits};
use portcullis_contract::{DefinitionVersion, ExecutorId, ToolDefinition, ToolName, ToolOrigin, seam};
use portcullis_event::facts::HiddenTool;
use portcullis_event::fold::ShownMenu;
use serde::{Deserialize, Serialize};

use crate::output::shown_lines::InContext;
use crate::registry::registrations::{Placement, Registered};

/// One tool that is offered.
#[derive(Debug, Clone)]
pub struct MenuEntry {
    /// None in a menu that was read from the log: registrations die with their process.
    pub registration_id: Option<RegistrationId>,
    pub executor_id: ExecutorId,
    /// Where it came from.
    pub origin: ToolOrigin,
    pub definition: Arc<ToolDefinition>,
}

/// What can be offered right now: byte-stable while nothing changes (L17).
#[derive(Debug)]
pub struct Offer {
    pub(crate) entries: BTreeMap<ToolName, MenuEntry>,
    pub(crate) hidden: Vec<HiddenTool>,
    /// What is stored, once per content: names, definitions and durable identities. Registration
    /// ids are not in it, they die with the process (tool-contract 8.1).
    pub(crate) body: String,
    pub(crate) hash: Digest,
}

/// One tool of a menu as it is hashed and stored.
#[derive(Serialize)]
struct MenuLine<'a> {
    name: &'a ToolName,
    definition_version: &'a DefinitionVersion,
    executor_id: &'a ExecutorId,
    origin: &'a ToolOrigin,
    definition: &'a ToolDefinition,
}

/// The same as it is read.
#[derive(Deserialize)]
struct StoredLine {
    name: ToolName,
    executor_id: ExecutorId,
    #[serde(default = "application")]
    origin: ToolOrigin,
    definition: ToolDefinition,
}

/// Menus from before origins were stamped name none.
fn application() -> ToolOrigin {
    ToolOrigin::Application
}

impl Offer {
    /// Folds effective registrations; `refused` names the reason a tool is not to be seen.
    pub(crate) fn new(
        winners: BTreeMap<ToolName, (Placement, Registered)>,
        refused: impl Fn(&ToolName) -> Option<Reason>,
    ) -> Self {
        let mut hidden = Vec::new();
        let mut entries: BTreeMap<ToolName, MenuEntry> = BTreeMap::new();
        for (name, (placement, registered)) in &winners {
            let stronger_twin = winners.iter().any(|(other, (their_placement, _))| {
                other != name && other.as_str().eq_ignore_ascii_case(name.as_str()) && their_placement > placement
            });
            let reason = if stronger_twin { Some(Reason::CaseConflict) } else { refused(name) };
            if let Some(reason) = reason {
                hidden.push(HiddenTool { name: name.to_string(), reason: reason.into() });
                continue;
            }
            let entry = MenuEntry {
                registration_id: Some(registered.id),
                executor_id: seam::executor(&registered.tool).clone(),
                origin: registered.origin.clone(),
                definition: Arc::new(seam::definition(name, &registered.tool)),
            };
            entries.insert(name.clone(), entry);
        }
        let lines: Vec<MenuLine<'_>> = entries
            .iter()
            .map(|(name, entry)| MenuLine {
                name,
                definition_version: &entry.definition.version,
                executor_id: &entry.executor_id,
                origin: &entry.origin,
                definition: &entry.definition,
            })
            .collect();
        // Invariant: definitions are plain JSON.
        let body = serde_json::to_string(&lines).expect("a menu is always JSON");
        let hash = Digest::of(body.as_bytes());
        Self { entries, hidden, body, hash }
    }

    /// What was offered then, as the log holds it. `None` if that cannot be read.
    pub(crate) fn recorded(body: &[u8], shown: &ShownMenu) -> Option<Self> {
        let lines: Vec<StoredLine> = serde_json::from_slice(body).ok()?;
        let entry = |line: StoredLine| MenuEntry {
            registration_id: None,
            executor_id: line.executor_id,
            origin: line.origin,
            definition: Arc::new(line.definition),
        };
        let entries = lines.into_iter().map(|line| (line.name.clone(), entry(line))).collect();
        let body = String::from_utf8(body.to_vec()).ok()?;
        Some(Self { entries, hidden: shown.hidden.clone(), body, hash: shown.hash })
    }

    /// The tools that are offered, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&ToolName, &MenuEntry)> {
        self.entries.iter()
    }

    /// Whether a tool has this name, in capitals or not, offered or hidden.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        let is = |other: &str| other.eq_ignore_ascii_case(name);
        self.entries.keys().any(|other| is(other.as_str())) || self.hidden.iter().any(|hidden| is(&hidden.name))
    }

    /// The tools that are not, and why.
    #[must_use]
    pub fn hidden(&self) -> &[HiddenTool] {
        &self.hidden
    }
}

/// One turn: its menu, and how much model text it has left.
#[derive(Debug)]
pub struct Turn {
    pub turn_id: TurnId,
    pub menu_id: MenuId,
    pub(crate) offer: Arc<Offer>,
    used: AtomicUsize,
    /// What the model has before it, where this runtime builds its context.
    pub(crate) in_context: Option<InContext>,
}

impl Turn {
    pub(crate) fn new(turn_id: TurnId, menu_id: MenuId, offer: Arc<Offer>, in_context: Option<InContext>) -> Self {
        Self { turn_id, menu_id, offer, used: AtomicUsize::new(0), in_context }
    }

    /// Whether this runtime builds the context the calls of this turn come from.
    pub(crate) fn in_loop(&self) -> bool {
        self.in_context.is_some()
    }

    /// What is offered in this turn.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// The same, shared: equal for two turns between which nothing changed.
    #[must_use]
    pub fn shared_offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer)
    }

    /// How many bytes of model text the next settlement may have.
    pub(crate) fn share(&self) -> usize {
        let left = limits::MAX_TURN_BYTES.saturating_sub(self.used.load(Ordering::Relaxed));
        left.clamp(limits::MIN_TURN_SHARE, limits::MAX_MODEL_BYTES)
    }

    pub(crate) fn spend(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }
}
