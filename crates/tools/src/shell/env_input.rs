//! Variables that one call brings along. Values are never printed; each name is asked about as `shell_set_env` asks, so
//! that a rule about a name holds on this way, too.

use std::borrow::Cow;
use std::collections::BTreeMap;

use portcullis_base::{EnvKey, Risk, RiskSet, limits, loads_code};
use portcullis_contract::{AccessRequest, Action, NamedKind, Precondition, Resolved, Resource};
use portcullis_secret::{SENSITIVE_KEYWORD, SecretText};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::accesses;
use super::change::fits;
use super::line_surroundings::shown;

/// Names with their values, or null.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct EnvInput(Option<BTreeMap<String, SecretText>>);

impl JsonSchema for EnvInput {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("EnvInput")
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({
            "type": ["object", "null"],
            "additionalProperties": { "type": "string" },
            "maxProperties": limits::ENV_NAMES,
        });
        schema.insert(SENSITIVE_KEYWORD.to_owned(), true.into());
        schema
    }
}

impl EnvInput {
    fn pairs(&self) -> impl Iterator<Item = (&String, &SecretText)> {
        self.0.iter().flatten()
    }

    /// Names that may be set, with values that an environment can hold. What is wrong is said without the value.
    pub(crate) fn check(&self) -> Result<(), Precondition> {
        for (name, value) in self.pairs() {
            name.parse::<EnvKey>().map_err(|error| Precondition::schema("/env", error.to_string()))?;
            fits(value, "/env")?;
        }
        Ok(())
    }

    /// What setting each of them asks.
    pub(crate) fn accesses(&self, risk: Risk) -> Vec<AccessRequest> {
        self.pairs().flat_map(|(name, value)| setting(name, value, risk)).collect()
    }

    /// The names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.pairs().map(|(name, _)| name.clone()).collect()
    }

    /// All of it that is an environment; [`Self::check`] says why something is not.
    pub(crate) fn values(&self) -> BTreeMap<EnvKey, SecretText> {
        self.pairs().filter_map(|(name, value)| Some((name.parse().ok()?, value.clone()))).collect()
    }
}

/// What setting a variable asks. One that loads code lies outside of what a session may do by itself, and no remembered
/// answer reaches it: its value would be another one. The person who is asked sees the value.
pub(super) fn setting(name: &str, value: &SecretText, risk: Risk) -> Vec<AccessRequest> {
    let own = Resource::own(NamedKind::Shell, format!("env:{name}"));
    let Some(reason) = loads_code(name) else {
        return accesses("shell_set_env", &Resolved { resources: vec![own], ..Resolved::default() }, risk);
    };
    let resource = Resource { inside: false, fed: true, ..own };
    let request = AccessRequest::new(Action::new("shell_set_env"), resource, RiskSet::from([Risk::Execute]));
    vec![request.fact(format!("variable {name}"), format!("{} ({reason})", shown(name, value)))]
}

/// A call and what it brings along.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WithEnv<T> {
    #[serde(flatten)]
    call: T,
    /// Variables besides the session's own, by name. Their values are shown nowhere.
    #[serde(default)]
    env: EnvInput,
}

// A call that brings nothing along. (A doc comment would become part of its schema.)
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(rename = "Alone")]
pub(crate) struct NoVariables<T>(T);

/// An input of a tool that runs something, with or without variables of its own.
pub(crate) trait BringsVariables {
    type Call;
    /// The call itself.
    fn call(&self) -> &Self::Call;
    /// What it brings along.
    fn env(&self) -> Cow<'_, EnvInput>;
    /// The call itself, to keep.
    fn into_call(self) -> Self::Call;
}

impl<T> BringsVariables for NoVariables<T> {
    type Call = T;

    fn call(&self) -> &T {
        &self.0
    }

    fn env(&self) -> Cow<'_, EnvInput> {
        Cow::Owned(EnvInput::default())
    }

    fn into_call(self) -> T {
        self.0
    }
}

impl<T> BringsVariables for WithEnv<T> {
    type Call = T;

    fn call(&self) -> &T {
        &self.call
    }

    fn env(&self) -> Cow<'_, EnvInput> {
        Cow::Borrowed(&self.env)
    }

    fn into_call(self) -> T {
        self.call
    }
}
