//! The test kit itself.

mod wrappers;
