//! Which facts a running call may write of itself, through the book of effects.

use serde::de::DeserializeOwned;

use crate::body::EventBody;
use crate::facts::{LearningCaptured, OutcomeDefined, ThreadCreated};

/// A fact that a running call may append midway. Facts about the gate itself (what was proposed, allowed, started, observed)
/// are not among them, so that no tool can write its own approval.
pub trait CallFact: EventBody + DeserializeOwned {}

impl CallFact for LearningCaptured {}
impl CallFact for OutcomeDefined {}
impl CallFact for ThreadCreated {}
