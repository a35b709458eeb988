//! The output of a call: captured streams, the evidence that is kept of them, and the part that a model is shown.

pub(crate) mod append_fit;
pub(crate) mod delivered;
pub(crate) mod evidence;
pub(crate) mod preview;
pub(crate) mod quota;
pub(crate) mod shown_lines;
pub(crate) mod spool;
pub(crate) mod tool_evidence;
