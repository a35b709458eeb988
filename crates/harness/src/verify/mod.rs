//! Whether an answer says what happened (tool-contract §24).
