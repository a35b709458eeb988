//! Sessions that this process holds: how facts become durable, which calls run, and what happens after a crash or an
//! answer.

pub(crate) mod append;
pub(crate) mod attend;
pub(crate) mod fold_cache;
pub(crate) mod grace;
pub(crate) mod held_sessions;
pub(crate) mod key_queue;
pub(crate) mod queued_call;
pub(crate) mod runner_facts;
pub(crate) mod running_calls;
pub(crate) mod session;
