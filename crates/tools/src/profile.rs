//! Profiles (tool-contract 13.8): what the tools do where no rule speaks. Deny rules and every layer above hold in
//! each.

use portcullis_contract::DefaultPolicy;

/// A toolset with its default policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Each tool by a default of its own.
    #[default]
    Managed,
    /// One policy for all, `auto`: what only reads inside the location runs, everything else asks.
    Code,
}

impl Profile {
    /// Both, for whoever must find the one that something was made under.
    pub const ALL: [Self; 2] = [Self::Managed, Self::Code];

    /// What a tool does by default that does `managed` under [`Profile::Managed`].
    pub(crate) const fn policy(self, managed: DefaultPolicy) -> DefaultPolicy {
        match self {
            Self::Managed => managed,
            Self::Code => DefaultPolicy::Auto,
        }
    }
}
