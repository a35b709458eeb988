//! RFC 8785 canonical JSON, for versions and fingerprints only. The log hashes stored bytes.

use serde::Serialize;

use crate::Digest;

/// A value that has no canonical JSON form (a non-finite number, a map with non-text keys).
#[derive(Debug, thiserror::Error)]
#[error("value has no canonical JSON form: {0}")]
pub struct CanonicalError(String);

/// The canonical JSON text of `value`.
///
/// # Errors
/// If the value cannot be JSON at all.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<String, CanonicalError> {
    serde_json_canonicalizer::to_string(value).map_err(|e| CanonicalError(e.to_string()))
}

/// The digest of the canonical JSON of `value`: equal exactly for values equal as JSON.
///
/// # Errors
/// If the value cannot be JSON at all.
pub fn fingerprint<T: Serialize>(value: &T) -> Result<Digest, CanonicalError> {
    Ok(Digest::of(canonical_json(value)?.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_does_not_matter() {
        let a = serde_json::json!({"b": 1, "a": [1.0, {"y": null, "x": "é"}]});
        let b = serde_json::json!({"a": [1, {"x": "é", "y": null}], "b": 1});
        assert_eq!(fingerprint(&a).expect("json"), fingerprint(&b).expect("json"));
        assert_eq!(canonical_json(&b).expect("json"), r#"{"a":[1,{"x":"é","y":null}],"b":1}"#);
    }
}
