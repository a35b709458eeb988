//! What does not compile, and must not (L2 and the phase types). Each refusal stands beside the
//! nearest thing that does compile, so that it fails for the reason it claims.
//!
//! A tool is a value to build, name and register:
//! ```
//! fn copy(tool: &portcullis::Tool) -> portcullis::Tool { tool.with_access_alias("edit") }
//! ```
//! Its inside is nobody's:
//! ```compile_fail
//! fn open(tool: &portcullis::Tool) { let _ = &tool.inner; }
//! ```
//! ```compile_fail
//! fn schema(tool: &portcullis::Tool) -> &serde_json::Value { tool.input_schema() }
//! ```
//! ```compile_fail
//! fn run(tool: &portcullis::Tool, context: portcullis::ToolContext) { let _ = tool.execute(context); }
//! ```
//! The seam through which the pipeline opens a tool is not re-exported:
//! ```compile_fail
//! use portcullis::seam;
//! ```
//!
//! An observation is read, never made:
//! ```
//! fn read(seen: &portcullis::Observation) -> bool { seen.ok() }
//! ```
//! ```compile_fail
//! fn forge(seen: portcullis::Observed) -> portcullis::Observation { portcullis::Observation(seen) }
//! ```
//! ```compile_fail
//! fn forge(seen: portcullis::Observed) -> portcullis::Observation { seen.into() }
//! ```
//!
//! A failure can be classified, but not as a cancel, a defect or a denial:
//! ```
//! fn fail() -> portcullis::ToolFailure { portcullis::ToolFailure::new("no_stock", "sold out") }
//! ```
//! ```compile_fail
//! fn fail() -> portcullis::ToolFailure { portcullis::ToolFailure::cancelled("I say so") }
//! ```
//! ```compile_fail
//! fn fail() -> portcullis::ToolFailure {
//!     portcullis::ToolFailure { code: portcullis::Code::PolicyDenied, ..portcullis::ToolFailure::new("a", "b") }
//! }
//! ```
//!
//! An access names at least one resource:
//! ```
//! use portcullis::{AccessRequest, Action, Resource, RiskSet};
//! fn access() -> AccessRequest { AccessRequest::new(Action::new("read"), Resource::opaque("x"), RiskSet::new()) }
//! ```
//! ```compile_fail
//! use portcullis::{AccessRequest, Action, RiskSet};
//! fn access() -> AccessRequest { AccessRequest::new(Action::new("read"), RiskSet::new()) }
//! ```
//!
//! A context comes from the runtime; nobody else makes one:
//! ```compile_fail
//! fn context() -> portcullis::ToolContext { portcullis::ToolContext::default() }
//! ```
//!
//! The phases between a proposal and an observation are not even nameable:
//! ```compile_fail
//! use portcullis::Authorized;
//! ```
//! ```compile_fail
//! use portcullis::Invocation;
//! ```
