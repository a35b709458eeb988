//! Rows of variables (store §2): a sealed value for each name of a session. They are ordinary records, written by the
//! append that tells of them, and they go with their session.

use portcullis_base::SessionId;

/// The kind of these records.
pub const VARIABLE: &str = "variable";

/// The id of the row of one name of a session.
#[must_use]
pub fn variable_id(session: SessionId, name: &str) -> String {
    format!("{session}/{name}")
}

/// The ids of all rows of a session: from the first of these on, and before the second.
#[must_use]
pub fn variable_ids(session: SessionId) -> (String, String) {
    // `0` is the character after `/`.
    (format!("{session}/"), format!("{session}0"))
}
