//! What a reply records of whoever gave it (tool-contract 13.4).

use portcullis::{AskAnswer, Reply};
pub use portcullis_terminal::person::login;
use portcullis_terminal::person::{parent_process, terminal};

/// An answer given through this process.
pub fn answer(reply: Reply, channel: &str, feedback: Option<String>) -> AskAnswer {
    AskAnswer {
        reply,
        expires_at: None,
        feedback,
        approver: login(),
        channel: channel.to_owned(),
        terminal: terminal(),
        parent_process: parent_process(),
    }
}
