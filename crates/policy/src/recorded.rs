//! A question that rules were asked once, as a log recorded it, so that other rules can be asked the same.

use portcullis_contract::{AccessRequest, Action, DefaultPolicy, NamedKind, Resource, ResourceKind};
use portcullis_event::facts::{PermissionDecided, TouchedResource, Verdict};
use serde_json::Value;

use crate::named::formerly;
use crate::{ActionPattern, Asker, Decision, Grant, Policy};

/// A recorded question.
pub struct RecordedQuestion {
    requests: Vec<AccessRequest>,
    /// The tool's own default, as it was then.
    pub default: DefaultPolicy,
}

impl RecordedQuestion {
    /// `None` if the log does not hold it whole: it was masked or cut, or an older version wrote it.
    #[must_use]
    pub fn of(asked: &PermissionDecided) -> Option<Self> {
        if asked.partial || asked.resources.is_empty() {
            return None;
        }
        let requests = asked.resources.iter().map(request).collect::<Option<_>>()?;
        let default = serde_json::from_value(Value::String(asked.default_policy.clone())).ok()?;
        Some(Self { requests, default })
    }

    /// What other rules say to it. The grants that stood then are only asked for where one could answer.
    pub fn ask(&self, policy: &Policy, asker: &Asker<'_>, grants: impl FnOnce() -> Vec<Grant>) -> Decision {
        let alone = Asker { grants: &[], ..*asker };
        let decision = policy.decide(&self.requests, &alone);
        if !matches!(&decision, Decision::Ask(ask) if !ask.pinned) {
            return decision;
        }
        match grants() {
            none if none.is_empty() => decision,
            grants => policy.decide(&self.requests, &Asker { grants: &grants, ..alone }),
        }
    }
}

impl Decision {
    /// The word that is recorded of it.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow(_) => Verdict::Allow,
            Self::Ask(_) => Verdict::Ask,
            Self::Deny(_) => Verdict::Deny,
        }
    }
}

fn request(touched: &TouchedResource) -> Option<AccessRequest> {
    let recorded = serde_json::from_value(Value::String(touched.kind.clone())).ok()?;
    let action = Action::new(touched.action.clone());
    // A log from before names by `mcp_tool` what has a kind of its own now; rules of today are asked about that.
    let former = (recorded == ResourceKind::Named(NamedKind::McpTool))
        .then(|| formerly(&ActionPattern::literal(&action), &touched.name));
    let (kind, name) = former.flatten().map_or((recorded, touched.name.as_str()), |(kind, name)| (kind.into(), name));
    let class = touched.class.clone().and_then(|class| serde_json::from_value(class).ok());
    let looks_at = touched.looks_at.clone().and_then(|places| serde_json::from_value(places).ok());
    let resource = Resource {
        inside: touched.inside,
        fed: touched.fed,
        command: touched.command.clone(),
        class,
        looks_at,
        ..Resource::bare(kind, name.to_owned(), String::new())
    };
    Some(AccessRequest::new(action, resource, touched.risk.clone()))
}
