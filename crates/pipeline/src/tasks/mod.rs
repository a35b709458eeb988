//! What a running call may do beside returning a result: report progress, go on in the background, be run by a client, and
//! use the shell of its session.

pub(crate) mod background;
pub(crate) mod external;
pub(crate) mod progress;
pub(crate) mod running_tasks;
pub(crate) mod shell_book;
pub(crate) mod shell_facts;
pub(crate) mod task_book;
pub(crate) mod tool_host;
