//! Old payloads become current ones on read, by pure functions; what is stored is never rewritten.

use std::borrow::Cow;

/// One step of one type: from version `from` to `from + 1`.
struct Step {
    kind: &'static str,
    from: u32,
    apply: fn(serde_json::Value) -> serde_json::Value,
}

/// Every step ever needed. Version 1 is the first release of every type, so there is none yet.
const STEPS: &[Step] = &[];

/// The current form of a payload written as version `v`; `None` if it is newer than this program.
#[must_use]
pub fn upcast<'a>(kind: &str, v: u32, payload: Cow<'a, str>) -> Option<Cow<'a, str>> {
    upcast_by(STEPS, kind, v, payload)
}

fn upcast_by<'a>(steps: &[Step], kind: &str, v: u32, payload: Cow<'a, str>) -> Option<Cow<'a, str>> {
    let current = 1 + u32::try_from(steps.iter().filter(|s| s.kind == kind).count()).ok()?;
    if v == current {
        return Some(payload);
    }
    if v > current || v == 0 {
        return None;
    }
    let mut value = serde_json::from_str(&payload).ok()?;
    for version in v..current {
        let step = steps.iter().find(|s| s.kind == kind && s.from == version)?;
        value = (step.apply)(value);
    }
    Some(Cow::Owned(value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[Step] = &[
        Step { kind: "x", from: 1, apply: |v| serde_json::json!({ "b": v["a"] }) },
        Step { kind: "x", from: 2, apply: |v| serde_json::json!({ "c": v["b"] }) },
    ];

    #[test]
    fn steps_chain_and_leave_current_payloads_alone() {
        let old = upcast_by(STEPS, "x", 1, Cow::Borrowed(r#"{"a":7}"#));
        assert_eq!(old.as_deref(), Some(r#"{"c":7}"#));
        let current = upcast_by(STEPS, "x", 3, Cow::Borrowed("{ \"c\" : 7 }"));
        assert!(matches!(current, Some(Cow::Borrowed("{ \"c\" : 7 }"))));
    }

    #[test]
    fn l72_a_newer_version_is_not_guessed_at() {
        assert!(upcast_by(STEPS, "x", 4, Cow::Borrowed("{}")).is_none());
        assert!(upcast("tool.intent", 2, Cow::Borrowed("{}")).is_none());
    }
}
