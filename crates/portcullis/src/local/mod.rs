//! Portcullis as it is installed on this machine: its settings, the store that they name with its keys, runtimes by these
//! settings, and a crew that wakes sessions by their setups.

mod addressed;
mod call_session;
mod crew;
mod error;
mod installation;
mod models;
mod presence;
mod trial;

pub use addressed::{AddressedSession, NewSession, ResolvedCall};
pub use call_session::{CallSessionError, call_session, next_call_session};
pub use crew::{
    CrewError, CrewHost, CrewModels, CrewNews, HostError, SessionCrew, guided_agent, model_of, restarted, sandbox_words,
};
pub use error::InstallationError;
pub use installation::{Installation, ProcessRole, ToldOfFolder, offering};
pub use models::{ModelOpening, OpenedModel};
pub use presence::{StorePresence, lost_database, store_files};
pub use trial::RulesOnTrial;
