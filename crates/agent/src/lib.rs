//! Services over the log of a session.
//!
//! Owns: the [`setup::Setup`] of a session, and the readers that say what happened in it. Knows nothing of transports,
//! terminals and tools.

pub mod calls;
mod session_setup;
pub mod setup;
pub mod status;
pub mod trace;
pub mod tree;
pub mod unknown;
pub mod wake_facts;

pub use session_setup::{
    LOCAL_PRINCIPAL, SessionSetup, SessionSetupError, SetupOrigin, session_setup, session_setup_at,
};
