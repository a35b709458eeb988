//! What the model is shown.

pub mod fence;
