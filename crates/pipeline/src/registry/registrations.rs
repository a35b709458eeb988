//! Registration (tool-contract §7): who contributes which tool, and which one a name means now.
//!
//! Invariants: a failed registration or refresh changes nothing (L12, L18); closing a contribution reveals what it
//! hid and touches nothing else (L11); plugins hold a [`Registrar`], never the registry.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{Clock, IdGen, LocationId, RegistrationId, SessionId};
use portcullis_contract::{Tool, ToolName, ToolOrigin, seam};

/// Where a registration lives. A narrower place wins over a wider one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placement {
    Process,
    /// Built-ins that were made for one folder, profile and environment; tools of a location stand over them.
    Toolset(ToolsetId),
    Location(LocationId),
    Session(SessionId),
}

/// The built-ins of the scopes that share one folder, profile and environment. It names nothing outside its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolsetId(u64);

/// The places that hold tools for one session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    pub(crate) toolset: ToolsetId,
    pub(crate) location: LocationId,
    pub(crate) session: SessionId,
}

impl Places {
    fn hold(&self, placement: Placement) -> bool {
        match placement {
            Placement::Process => true,
            Placement::Toolset(id) => id == self.toolset,
            Placement::Location(id) => id == self.location,
            Placement::Session(id) => id == self.session,
        }
    }
}

/// Why a contribution was refused; nothing of it was registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    #[error("`{name}` differs only by case from `{existing}`, which is registered in the same place; rename one")]
    CaseConflict { name: ToolName, existing: ToolName },
    #[error("the {0} is closed and takes no tools")]
    ScopeClosed(&'static str),
}

/// A tool as it is registered.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) id: RegistrationId,
    pub(crate) tool: Tool,
    pub(crate) origin: ToolOrigin,
}

impl Registered {
    /// Whether a call of the one is a call of the other: what a model sees of them and who runs them is equal.
    fn same_as(&self, tool: &Tool) -> bool {
        seam::version(&self.tool) == seam::version(tool) && seam::executor(&self.tool) == seam::executor(tool)
    }
}

struct Contribution {
    seq: u64,
    placement: Placement,
    tools: BTreeMap<ToolName, Registered>,
}

#[derive(Default)]
struct Inner {
    contributions: Vec<Contribution>,
    closed: HashSet<Placement>,
    next: u64,
    toolsets: u64,
    /// Moves with every change: menus are cached by it.
    generation: u64,
}

impl Inner {
    /// Whether a place takes these tools beside what it has, leaving out the contribution that they would replace.
    fn admits(
        &self,
        placement: Placement,
        instead_of: Option<u64>,
        tools: &BTreeMap<ToolName, Tool>,
    ) -> Result<(), RegistrationError> {
        if self.closed.contains(&placement) {
            return Err(RegistrationError::ScopeClosed(match placement {
                Placement::Process => "process",
                Placement::Toolset(_) => "toolset",
                Placement::Location(_) => "location",
                Placement::Session(_) => "session",
            }));
        }
        let stays = |c: &&Contribution| c.placement == placement && Some(c.seq) != instead_of;
        let here = self.contributions.iter().filter(stays);
        let present: Vec<&ToolName> = here.flat_map(|c| c.tools.keys()).chain(tools.keys()).collect();
        for name in tools.keys() {
            let differs = |other: &&&ToolName| **other != name && other.as_str().eq_ignore_ascii_case(name.as_str());
            if let Some(existing) = present.iter().find(differs) {
                return Err(RegistrationError::CaseConflict { name: name.clone(), existing: (*existing).clone() });
            }
        }
        Ok(())
    }
}

/// The tools of a process, in all its places.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Mutex<Inner>>,
    ids: Arc<dyn IdGen>,
    clock: Arc<dyn Clock>,
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new(ids: Arc<dyn IdGen>, clock: Arc<dyn Clock>) -> Self {
        Self { inner: Arc::default(), ids, clock }
    }

    /// The right to register in one place, under one origin.
    #[must_use]
    pub fn registrar(&self, placement: Placement, origin: ToolOrigin) -> Registrar {
        Registrar { registry: self.clone(), placement, origin }
    }

    /// A place for the built-ins of a scope that no other scope has yet.
    #[must_use]
    pub fn fresh_toolset(&self) -> ToolsetId {
        let mut inner = self.lock();
        inner.toolsets += 1;
        ToolsetId(inner.toolsets)
    }

    /// Closes a place: its tools are gone and it takes no more.
    pub fn close(&self, placement: Placement) {
        let mut inner = self.lock();
        inner.contributions.retain(|c| c.placement != placement);
        inner.closed.insert(placement);
        inner.generation += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change below is made after its checks, in one statement that cannot panic halfway.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each tool under an id of its own; one that is as it was `before` keeps its id.
    fn registered(
        &self,
        tools: BTreeMap<ToolName, Tool>,
        origin: &ToolOrigin,
        before: &BTreeMap<ToolName, Registered>,
    ) -> BTreeMap<ToolName, Registered> {
        let now = self.clock.now();
        let register = |name: ToolName, tool: Tool| {
            let kept = before.get(&name).filter(|before| before.same_as(&tool)).map(|before| before.id);
            let id = kept.unwrap_or_else(|| RegistrationId::make(&*self.ids, now));
            (name, Registered { id, tool, origin: origin.clone() })
        };
        tools.into_iter().map(|(name, tool)| register(name, tool)).collect()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// What `name` means for a session.
    pub(crate) fn effective(&self, name: &str, places: Places) -> Option<Registered> {
        let inner = self.lock();
        let applies = |c: &&Contribution| places.hold(c.placement);
        let winner = inner
            .contributions
            .iter()
            .filter(applies)
            .filter(|c| c.tools.contains_key(name))
            .max_by_key(|c| (c.placement, c.seq))?;
        winner.tools.get(name).cloned()
    }

    /// Every name's winner, and its place.
    pub(crate) fn all(&self, places: Places) -> BTreeMap<ToolName, (Placement, Registered)> {
        let inner = self.lock();
        let mut ranked: Vec<&Contribution> = inner.contributions.iter().filter(|c| places.hold(c.placement)).collect();
        ranked.sort_by_key(|c| (c.placement, c.seq));
        let mut winners = BTreeMap::new();
        for contribution in ranked {
            for (name, registered) in &contribution.tools {
                winners.insert(name.clone(), (contribution.placement, registered.clone()));
            }
        }
        winners
    }
}

/// The whole capability of whoever brings tools.
#[derive(Clone)]
pub struct Registrar {
    registry: Registry,
    placement: Placement,
    origin: ToolOrigin,
}

impl Registrar {
    /// Registers all of `tools`, or none. They stay until the guard is dropped or closed.
    ///
    /// # Errors
    /// If the place is closed or a name conflicts there; nothing has changed then.
    pub fn register(&self, tools: BTreeMap<ToolName, Tool>) -> Result<RegistrationGuard, RegistrationError> {
        let mut inner = self.registry.lock();
        inner.admits(self.placement, None, &tools)?;
        let tools = self.registry.registered(tools, &self.origin, &BTreeMap::new());
        let seq = inner.next;
        inner.next += 1;
        inner.generation += 1;
        inner.contributions.push(Contribution { seq, placement: self.placement, tools });
        let Self { registry, placement, origin } = self.clone();
        Ok(RegistrationGuard { registry, seq, placement, origin })
    }
}

/// Holds one contribution. Dropping it removes exactly that one, in any order, once.
#[must_use = "the tools are gone when the guard is dropped"]
pub struct RegistrationGuard {
    registry: Registry,
    seq: u64,
    placement: Placement,
    origin: ToolOrigin,
}

impl RegistrationGuard {
    /// Puts all of `tools` in the place of what this guard held, at once, and keeps its rank among the contributions of
    /// its placement. It is for a source that asks anew what it offers: a refresh that brought no map has nothing to put
    /// here, and one that brought a wrong map leaves the old tools (L18). A tool whose definition and executor are as
    /// before keeps its registration; any other is a new one, so a call of what was shown before is stale (L15).
    ///
    /// # Errors
    /// If the place is closed or a name conflicts there; nothing has changed then.
    pub fn replace(&mut self, tools: BTreeMap<ToolName, Tool>) -> Result<(), RegistrationError> {
        let mut inner = self.registry.lock();
        inner.admits(self.placement, Some(self.seq), &tools)?;
        if let Some(own) = inner.contributions.iter_mut().find(|c| c.seq == self.seq) {
            own.tools = self.registry.registered(tools, &self.origin, &own.tools);
            inner.generation += 1;
        }
        Ok(())
    }

    /// Removes the contribution now.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        let mut inner = self.registry.lock();
        inner.contributions.retain(|c| c.seq != self.seq);
        inner.generation += 1;
    }
}
