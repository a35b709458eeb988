//! What decides what a call does besides its input: its folder, its environment, the programs it starts.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use portcullis_secret::SecretText;

/// One thing that an approval is bound to (tool-contract 13.7). Two looks that differ in any of them are two calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The subject of a sentence, such as `the folder`. No two of one look share it.
    pub name: String,
    /// What a person was shown of it, such as `/workspace/a`; empty if the name says all.
    pub what: String,
    /// What tells it from another that looks the same. The log keeps a keyed digest of it, never the value.
    pub value: SecretText,
}

impl Bound {
    /// One thing.
    pub fn new(name: impl Into<String>, what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), what: what.into(), value: SecretText::new(value) }
    }
}

/// What one look at the surroundings of a call found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurroundingFacts {
    /// What an approval is bound to.
    pub bound: Vec<Bound>,
    /// What a person is shown of it, by name.
    pub facts: Vec<(String, String)>,
    /// Variables of this process that the call would run with, such as `PATH`. The ask keeps them in clear, so that the
    /// approved call runs with the same ones in any process. No secrets.
    pub asker_env: BTreeMap<String, String>,
}

/// A look at the surroundings of a call. It costs time, so the runtime looks only where a person is asked, and once more
/// before an approved call starts.
#[derive(Clone)]
pub struct Surroundings(Arc<dyn Fn() -> BoxFuture<'static, SurroundingFacts> + Send + Sync>);

impl Surroundings {
    /// Found by `look`, each time anew.
    pub fn by<F>(look: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = SurroundingFacts> + Send + 'static,
    {
        Self(Arc::new(move || look().boxed()))
    }

    /// Looks now.
    pub async fn look(&self) -> SurroundingFacts {
        (self.0)().await
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surroundings(..)")
    }
}
