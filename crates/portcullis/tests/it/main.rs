//! The facade as a program uses it. One binary: what is linked once is waited for once.

mod brain;
mod calls;
mod custom;
mod facade;
mod grants;
mod secrets;
mod setups;
mod spans;
mod tasks;
mod wake;
mod wake_again;
mod wake_bounds;
mod wake_compacted;
mod wake_cuts;
mod wake_directive;
mod wake_heard;
mod wake_kept;
mod wake_media;
mod wake_notes;
mod wake_overtaken;
mod wake_room;
mod wake_stops;
mod wake_tasks;
mod wake_unchanged;
mod wake_unfinished;
mod world;
