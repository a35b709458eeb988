//! The facade as a program uses it. One binary: what is linked once is waited for once.

mod brain;
mod calls;
mod custom;
mod facade;
mod grants;
mod secrets;
mod spans;
mod tasks;
mod wake;
mod wake_kept;
mod wake_notes;
mod wake_stops;
mod wake_tasks;
mod world;
