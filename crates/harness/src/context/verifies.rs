//! What a tool says its calls are evidence of.

use portcullis_base::VerificationKind;
use portcullis_pipeline::Session;

/// What the tool of this name verifies, as it is offered now.
pub(crate) fn verifies(session: &Session, tool: &str) -> Option<VerificationKind> {
    let offer = session.gate().offer(session.key().session);
    let (_, entry) = offer.entries().find(|(name, _)| name.as_str() == tool)?;
    entry.definition.semantics.verifies
}
