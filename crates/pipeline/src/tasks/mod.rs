//! What a running call may do beside returning a result: report progress, go on in the background, be run by a client, make
//! its effect in the log itself, and use the shell of its session.

pub(crate) mod background;
pub(crate) mod effect_book;
pub(crate) mod handed_over;
pub(crate) mod progress;
pub(crate) mod running_tasks;
pub(crate) mod shell_book;
pub(crate) mod shell_facts;
pub(crate) mod task_book;
pub(crate) mod tool_host;
