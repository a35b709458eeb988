//! The loop directive: what the model wants to happen after a wake (agent-runtime 5.5).
