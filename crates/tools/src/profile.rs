//! Profiles (tool-contract 13.8): what the tools do where no rule speaks. Deny rules and every layer above hold in
//! each.

use portcullis_agent::setup::Profile;
use portcullis_contract::DefaultPolicy;

/// The default policy of a tool: `managed` under [`Profile::Managed`].
pub(crate) const fn default_policy(profile: Profile, managed: DefaultPolicy) -> DefaultPolicy {
    match profile {
        Profile::Managed => managed,
        Profile::Code => DefaultPolicy::Auto,
    }
}
