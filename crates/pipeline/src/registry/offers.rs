//! The offers that are remembered: two turns of a session with no change between them share one, and so do sessions to
//! which the same tools are offered.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_base::{Digest, Reason, RegistrationId, SessionId};
use portcullis_contract::{Tool, ToolName};

use crate::registry::menu::Offer;
use crate::registry::registrations::{Placement, Registered};

/// Sessions whose offer is remembered; past it all are forgotten, which costs each of them one look at its tools.
const SESSIONS: usize = 1_024;
/// Different offers that are shared. An offer holds every definition, some hundred KiB; sessions with tools of their own
/// are few.
const SHARED: usize = 16;

/// What an offer is made of: each tool, where it comes from, and why it is not to be seen.
type OfferParts = Vec<(ToolName, RegistrationId, Placement, Option<Reason>)>;

#[derive(Default)]
pub(crate) struct Offers(Mutex<OfferCache>);

/// Offers that were made before, by session and by content.
#[derive(Default)]
struct OfferCache {
    sessions: HashMap<SessionId, (State, Arc<Offer>)>,
    shared: Vec<(OfferParts, Arc<Offer>)>,
}

/// Changes whenever an offer might: the registry's generation, the policy's revision, the choice of tools.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct State {
    pub(crate) generation: u64,
    pub(crate) revision: Digest,
    pub(crate) choice: u64,
}

impl Offers {
    /// The offer of a session. `winners` and `refused` are asked only if something changed.
    pub(crate) fn of(
        &self,
        session: SessionId,
        state: State,
        winners: impl FnOnce() -> BTreeMap<ToolName, (Placement, Registered)>,
        refused: impl Fn(&ToolName, &Tool) -> Option<Reason>,
    ) -> Arc<Offer> {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, offer)) = remembered.sessions.get(&session)
            && *then == state
        {
            return Arc::clone(offer);
        }
        let winners = winners();
        let parts: OfferParts = winners
            .iter()
            .map(|(name, (place, live))| (name.clone(), live.id, *place, refused(name, &live.tool)))
            .collect();
        let known = remembered.shared.iter().find(|(known, _)| *known == parts).map(|(_, offer)| Arc::clone(offer));
        let offer = known.unwrap_or_else(|| {
            let reasons: HashMap<&ToolName, Reason> =
                parts.iter().filter_map(|(name, _, _, reason)| Some((name, (*reason)?))).collect();
            let offer = Arc::new(Offer::new(winners, |name| reasons.get(name).copied()));
            if remembered.shared.len() >= SHARED {
                remembered.shared.remove(0);
            }
            remembered.shared.push((parts.clone(), Arc::clone(&offer)));
            offer
        });
        if remembered.sessions.len() >= SESSIONS {
            remembered.sessions.clear();
        }
        remembered.sessions.insert(session, (state, Arc::clone(&offer)));
        offer
    }
}
