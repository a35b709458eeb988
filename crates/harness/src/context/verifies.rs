//! What a tool says its calls are evidence of.

use portcullis_contract as contract;
use portcullis_event::facts::VerificationKind;
use portcullis_pipeline::Session;

/// What the tool of this name verifies, as it is offered now.
pub(crate) fn verifies(session: &Session, tool: &str) -> Option<VerificationKind> {
    let offer = session.gate().offer(session.key().session);
    let (_, entry) = offer.entries().find(|(name, _)| name.as_str() == tool)?;
    Some(match entry.definition.semantics.verifies? {
        contract::VerificationKind::Tests => VerificationKind::Tests,
        contract::VerificationKind::Build => VerificationKind::Build,
        contract::VerificationKind::Lint => VerificationKind::Lint,
        contract::VerificationKind::Typecheck => VerificationKind::Typecheck,
        contract::VerificationKind::FileState => VerificationKind::FileState,
        contract::VerificationKind::Service => VerificationKind::Service,
        contract::VerificationKind::Custom => VerificationKind::Custom,
    })
}
