//! Counts as the managed tools take them (agent-runtime 1.2): lenient in the schema itself, so that
//! what is advertised is what is enforced.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// The largest number JSON keeps exact: for counts that nothing but the data bounds.
pub(crate) const UNBOUNDED: u64 = (1 << 53) - 1;

/// A number or null. Floored; ≤ 0 or absent means `D`, above `C` means `C`. With `D = 0` a count that
/// is not above 0 is simply not given.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count<const D: u64, const C: u64>(Option<f64>);

impl<const D: u64, const C: u64> Count<D, C> {
    /// Whether a value was written, whatever it was.
    pub(crate) fn written(self) -> bool {
        self.0.is_some()
    }

    /// Whether a value above 0 was written.
    pub(crate) fn given(self) -> bool {
        self.0.is_some_and(|written| whole(written) > 0)
    }

    /// What it means.
    pub(crate) fn value(self) -> u64 {
        match self.0.map_or(0, whole) {
            0 => D,
            count => count.min(C),
        }
    }

    /// The line that says that a value was lowered to its cap.
    pub(crate) fn lowered(self, field: &str) -> Option<String> {
        let written = self.0.map_or(0, whole);
        (written > C).then(|| format!("{field} {written} was lowered to {C}"))
    }
}

/// A number as a count: floored, never below 0.
fn whole(number: f64) -> u64 {
    // The cast saturates at both ends, which is what a count means.
    number.floor() as u64
}

impl<'de, const D: u64, const C: u64> Deserialize<'de> for Count<D, C> {
    fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
        Option::<f64>::deserialize(deserializer).map(Self)
    }
}

impl<const D: u64, const C: u64> JsonSchema for Count<D, C> {
    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("Count_{D}_{C}"))
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let default = (D > 0).then_some(D);
        json_schema!({ "type": ["number", "null"], "default": default })
    }
}

/// Two counts, such as the first and the last line of a range, or null.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pair(Option<[f64; 2]>);

impl Pair {
    /// Both, if they were written.
    pub(crate) fn given(self) -> Option<[u64; 2]> {
        self.0.map(|pair| pair.map(whole))
    }
}

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
        Option::<[f64; 2]>::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Pair {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Pair")
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "null"], "items": { "type": "number" }, "minItems": 2, "maxItems": 2 })
    }
}

/// `false` unless `true` is written; null is absent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
        Option::<bool>::deserialize(deserializer).map(|flag| Self(flag.unwrap_or(false)))
    }
}

impl JsonSchema for Flag {
    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Flag")
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["boolean", "null"], "default": false })
    }
}
