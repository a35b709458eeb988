//! Whose toolchains a command sees.

use std::borrow::Cow;

use portcullis_contract::Caller;
use portcullis_sandbox::hand::Host;

use super::Hand;

/// The person's environment for a command of `caller`. An approved call keeps the variables that it was asked about with,
/// so that it finds the same programs in whatever process it runs; the home is this process's.
pub(super) fn of<'a>(hand: &'a Hand, caller: &Caller) -> Option<Cow<'a, Host>> {
    let own = hand.settings().host.as_ref()?;
    if caller.asker_env.is_empty() {
        return Some(Cow::Borrowed(own));
    }
    let variables = caller.asker_env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Some(Cow::Owned(Host { home: own.home.clone(), variables }))
}
