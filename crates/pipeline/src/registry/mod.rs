//! What a model is offered: registered tools, the menu that a turn freezes, and the guard against calls in circles.

pub(crate) mod loop_guard;
pub(crate) mod menu;
pub(crate) mod offers;
pub(crate) mod registrations;
pub(crate) mod tool_choice;
pub(crate) mod turn;
