//! Where requests go and whose key goes with them, before anything is sent.

use super::Catalog;
use super::providers::PROVIDERS;

/// Where the requests of a provider go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub provider: &'static str,
    /// The address that was set; `None`: the provider's own.
    pub address: Option<String>,
    /// The variable that set it, if a variable did.
    pub address_variable: Option<&'static str>,
    /// The variable that holds the key, if there is one to send.
    pub key_variable: Option<&'static str>,
}

impl Catalog<'_> {
    /// Where the model of this name sends its requests; without a name, the model that [`Catalog::first`] takes. `None` if
    /// nothing is ever sent (a script), or if no such provider is known or configured.
    #[must_use]
    pub fn destination(&self, name: Option<&str>) -> Option<Destination> {
        let wanted = match name {
            Some(name) => name.split_once('/')?.0,
            None => self.at_hand().first()?.provider,
        };
        let provider = PROVIDERS.iter().find(|provider| provider.name == wanted)?;
        let variable =
            provider.base_url.filter(|name| self.settings.base_url.is_none() && self.variable(name).is_some());
        Some(Destination {
            provider: provider.name,
            address: self.settings.base_url.clone().or_else(|| self.variable(variable?)),
            address_variable: variable,
            key_variable: Some(provider.key()).filter(|name| self.variable(name).is_some()),
        })
    }
}
