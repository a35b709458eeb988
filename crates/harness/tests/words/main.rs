//! What the model is shown and what it wants: pure functions, tested without a session.

mod directive;
mod fence;
mod fixtures;
