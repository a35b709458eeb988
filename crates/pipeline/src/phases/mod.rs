//! The phases, in the order in which an intent passes them: `lookup`, `validate`, `permission`, `schedule`, `execute`,
//! `normalize`, `bound`. Each takes the type that the one before it made and returns a [`Step`](step::Step). A call that a
//! phase refuses ends in `refuse`.

pub(crate) mod bound;
pub(crate) mod execute;
pub(crate) mod intent;
pub(crate) mod lookup;
pub(crate) mod masked_names;
pub(crate) mod normalize;
pub(crate) mod permission;
pub(crate) mod refuse;
pub(crate) mod schedule;
pub(crate) mod step;
pub(crate) mod stored_input;
pub(crate) mod validate;
