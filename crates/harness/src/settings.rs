//! How a wake behaves, each number with its reason.

use std::time::Duration;

use portcullis_pipeline::Scheduling;

/// What a wake may use, and what it does when something fails (agent-runtime 2.1, 5.7).
#[derive(Debug, Clone)]
pub struct Settings {
    /// The base prompt: who the agent is and how it works.
    pub base_prompt: String,
    /// What the workspace's own guidance file says (agent-runtime 6.1): the first words in the user's position, never a
    /// rule.
    pub guidance: Option<Guidance>,
    /// Model requests of one wake. It bounds a wake, not the work: the next wake goes on at once (agent-runtime 5.4,
    /// step 10).
    pub max_turns_per_wake: u32,
    /// Model requests for one message, over all wakes that work on it. The last one may call no tools, so that the work is
    /// summed up, not thrown away.
    pub max_requests_per_message: u32,
    /// How long a model may be silent in a request. One that goes on speaking may take as long as the wake.
    pub request_timeout: Duration,
    /// For one wake, waiting for people not counted: a wake ends when somebody must answer. The next one goes on.
    pub wake_deadline: Duration,
    pub max_output_tokens: u32,
    /// Tokens of a conversation before it is compacted; `None`: half of the model's window.
    pub token_budget: Option<u64>,
    pub scheduling: Scheduling,
    /// Tries of a request that may go well later.
    pub retryable_tries: u32,
    /// Tries of one that will not.
    pub other_tries: u32,
    pub first_retry: Duration,
    pub backoff_base: Duration,
    pub backoff_max: Duration,
    /// How long a session sleeps that wants to go on and does not say when.
    pub heartbeat: Duration,
    pub max_follow_ups: u32,
    /// The directive is asked for in the prompt; a conversation at a terminal needs none.
    pub directive: bool,
}

/// A guidance file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guidance {
    /// `AGENTS.md` or `CLAUDE.md`.
    pub name: String,
    pub text: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_prompt: crate::context::BASE_PROMPT.to_owned(),
            guidance: None,
            max_turns_per_wake: 200,
            max_requests_per_message: 1_000,
            request_timeout: Duration::from_secs(120),
            wake_deadline: Duration::from_secs(3600),
            max_output_tokens: 8_192,
            token_budget: None,
            scheduling: Scheduling::Segmented,
            retryable_tries: 8,
            other_tries: 5,
            first_retry: Duration::from_secs(5),
            backoff_base: Duration::from_secs(2),
            backoff_max: Duration::from_secs(30),
            heartbeat: Duration::from_secs(300),
            max_follow_ups: 3,
            directive: true,
        }
    }
}
