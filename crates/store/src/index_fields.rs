//! Which fields of ordinary rows can be asked for. A kind declares them here and nowhere else; what a row has in them is
//! computed from its body (as S15 has it for the rows of a log), so nobody hands it in and it cannot disagree.
//!
//! A backend keeps the declaration beside the rows that it indexed by it. If a later program declares other fields for a
//! kind, the backend indexes the rows of that kind anew when it is opened.

use serde_json::Value;

use crate::{RecordQuery, StoreError};

/// How many fields a kind may declare: each costs every write of such a row one more place in an index.
pub const INDEX_FIELDS_MOST: usize = 3;

/// Every kind with declared fields, which are members of the row's body. The one that tells most rows apart comes first.
const DECLARED: &[(&str, &[&str])] = &[("grant", &["given_in", "created_by"])];

/// The fields that a kind declares.
#[must_use]
pub fn index_fields(kind: &str) -> &'static [&'static str] {
    DECLARED.iter().find(|(of, _)| *of == kind).map_or(&[], |(_, fields)| fields)
}

/// Every kind that declares fields.
pub fn indexed_kinds() -> impl Iterator<Item = &'static str> {
    DECLARED.iter().map(|(kind, _)| *kind)
}

/// What a row has in the declared fields of its kind, in their order. A text counts as it is, a number and a yes or no as
/// JSON writes them; anything else is not found by that field.
#[must_use]
pub fn indexed_values(kind: &str, body: &Value) -> [Option<String>; INDEX_FIELDS_MOST] {
    let fields = index_fields(kind);
    std::array::from_fn(|at| match body.get(fields.get(at)?)? {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    })
}

impl RecordQuery {
    /// The wanted value of each declared field.
    ///
    /// # Errors
    /// [`StoreError::NotIndexed`] for a field that the kind does not declare.
    pub fn wanted(&self) -> Result<[Option<&str>; INDEX_FIELDS_MOST], StoreError> {
        let declared = index_fields(&self.kind);
        let unknown = self.fields.iter().find(|(name, _)| !declared.contains(&name.as_str()));
        if let Some((field, _)) = unknown {
            return Err(StoreError::NotIndexed { kind: self.kind.clone(), field: field.clone() });
        }
        let value = |name: &str| self.fields.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
        Ok(std::array::from_fn(|at| value(declared.get(at)?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_kind_declares_more_fields_than_rows_have_places_for() {
        assert!(DECLARED.iter().all(|(_, fields)| !fields.is_empty() && fields.len() <= INDEX_FIELDS_MOST));
    }

    #[test]
    fn only_plain_values_of_declared_fields_are_indexed() {
        let body = json!({"given_in": "a", "created_by": 7, "rule": "x"});
        assert_eq!(indexed_values("grant", &body), [Some("a".to_owned()), Some("7".to_owned()), None]);
        assert_eq!(indexed_values("grant", &json!({"given_in": {"x": 1}})), [None, None, None]);
        assert_eq!(indexed_values("other", &body), [None, None, None]);
    }
}
