//! Confinement, reading, writing and editing against a real file system.

mod confinement;
mod edits;
mod fuzz;
mod matching;
mod mounts;
mod races;
mod reading;
mod text;
mod walking;
mod world;
mod writing;
