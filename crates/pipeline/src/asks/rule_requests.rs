//! What the rules were asked about, written with their answer, so that changed rules can be asked the same later.

use portcullis_contract::{AccessRequest, DefaultPolicy, Resource};
use portcullis_event::facts::TouchedResource;

use crate::phases::refuse::SUMMARY_MAX;
use crate::sessions::session::SessionShared;

/// Resources that are written; a call that touches more says that it does.
const MOST: usize = 64;

/// What the rules decided about.
#[derive(Default)]
pub(crate) struct DecisionSubject {
    pub(crate) resources: Vec<TouchedResource>,
    pub(crate) partial: bool,
    pub(crate) default_policy: String,
}

impl DecisionSubject {
    pub(crate) fn of(session: &SessionShared, access: &[AccessRequest], default: DefaultPolicy) -> Self {
        let mut weighed = Self { default_policy: default.as_str().to_owned(), ..Self::default() };
        for request in access {
            for resource in request.resources() {
                if weighed.resources.len() == MOST {
                    weighed.partial = true;
                    return weighed;
                }
                let name = session.tidy(&resource.canonical, SUMMARY_MAX);
                weighed.partial |= name != resource.canonical;
                let looks_at = resource.looks_at.as_ref().and_then(|places| {
                    let tidied = |place: &Resource| {
                        let canonical = session.tidy(&place.canonical, SUMMARY_MAX);
                        let raw = String::new();
                        Resource { canonical, raw, ..place.clone() }
                    };
                    let kept: Vec<Resource> = places.iter().map(tidied).collect();
                    weighed.partial |= kept.iter().zip(places).any(|(kept, place)| kept.canonical != place.canonical);
                    serde_json::to_value(kept).ok()
                });
                weighed.resources.push(TouchedResource {
                    action: request.action.as_str().to_owned(),
                    kind: resource.kind.as_str().to_owned(),
                    name,
                    inside: resource.inside,
                    fed: resource.fed,
                    command: resource.command.clone(),
                    class: resource.class.as_ref().and_then(|class| serde_json::to_value(class).ok()),
                    looks_at,
                    risk: request.risk.clone(),
                });
            }
        }
        weighed
    }
}
