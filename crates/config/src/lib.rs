//! What a person configured: files, homes, projects, trust.
//!
//! Owns: where things are on disk, what the configuration files may say, which flag, variable or file wins, and which project
//! files are trusted. Knows nothing of: terminals, exit codes, and what the settings are used for.

mod approval_mode;
pub mod caches;
mod document;
mod draft;
mod error;
mod files;
pub mod followed;
mod home;
pub mod home_workspace;
pub mod last_start;
mod other_names;
mod project;
pub mod runtime_folders;
mod settings;
pub mod trust;
mod user_file;
pub mod values;

pub use approval_mode::ApprovalMode;
pub use draft::DraftFile;
pub use error::{ConfigError, UnreadableFile};
pub use files::{project_file, read_project_file};
pub use home::{ELSEWHERE, Home, user_config};
pub use other_names::other_name;
pub use project::{ProjectRules, rules_of};
pub use settings::{ChoiceOrigins, Flags, Settings, permitted, variable};
pub use user_file::{ModelChoice, isolation_level};
