//! What `doctor` says of models: which would work in a `run`, and why. Nobody is asked anything.

use std::sync::Arc;

use portcullis::SystemClock;
use portcullis::model::{AtHand, Catalog, ModelSettings};
use portcullis_config::{ModelChoice, last_start};

use crate::hints;
use crate::run::model as run_model;

/// The model that a run would take, in words; an error says what to do.
pub fn model(chosen: &ModelChoice) -> Result<String, String> {
    let mut settings = ModelSettings::new(Arc::new(SystemClock::new()));
    settings.base_url.clone_from(&chosen.base_url);
    let environment = |name: &str| std::env::var(name).ok();
    let catalog = Catalog::new(settings, &environment);
    if let Some(name) = &chosen.name {
        run_model::tls();
        return match catalog.open_text(name) {
            Ok(model) => {
                let to = addressed(&catalog, Some(name));
                Ok(format!("{} (by your configuration){to}; it was not asked anything", model.name()))
            }
            Err(error) => Err(hints::explained(&error)),
        };
    }
    let found = catalog.at_hand();
    let Some(first) = found.first() else {
        return Err("none is configured; `portcullis demo` needs none".to_owned());
    };
    let others: Vec<&str> = found[1..].iter().map(|other| other.provider).collect();
    let others = if others.is_empty() { String::new() } else { format!("; also configured: {}", others.join(", ")) };
    Ok(format!("{} ({}){others}{}", name(first), first.because, addressed(&catalog, None)))
}

/// Where its requests would go, which a file or a variable may have changed.
fn addressed(catalog: &Catalog<'_>, name: Option<&str>) -> String {
    let Some(to) = catalog.destination(name) else { return String::new() };
    let Some(address) = to.address.as_deref() else {
        return "; requests go to the provider's own address".to_owned();
    };
    format!("; requests go to {} ({})", last_start::plain(address), to.address_variable.unwrap_or("base_url"))
}

fn name(of: &AtHand) -> String {
    match of.default_model {
        Some(model) => format!("{}/{model}", of.provider),
        None => format!("{}, with the first model that its server lists", of.provider),
    }
}
