//! How a run's own asks are answered.

/// What becomes of the asks of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// A person answers each.
    #[default]
    Ask,
    Allow,
    Deny,
}

impl ApprovalMode {
    pub const ALL: [Self; 3] = [Self::Ask, Self::Allow, Self::Deny];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    /// A mode by its word.
    ///
    /// # Errors
    /// The words name what is known.
    pub fn from_word(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|mode| mode.as_str() == word);
        known.ok_or_else(|| format!("`{word}` is not one of {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}
