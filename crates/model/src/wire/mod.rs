//! What the adapters share when they write requests and read answers.

mod body;
mod fields;
mod fit;
mod ids;
mod lenient;
mod media;
mod origin;
#[cfg(test)]
pub(crate) mod prefix;

pub(crate) use body::{Body, json, push_element};
pub(crate) use fields::Fields;
pub(crate) use fit::{Dialect, begins_with_letter};
pub(crate) use ids::Ids;
pub(crate) use lenient::{lenient, lenient_count, lenient_text};
pub(crate) use media::{MediaForm, MediaLimits, MediaSending, told_of};
pub(crate) use origin::Origin;

use std::borrow::Cow;

use portcullis_base::Digest;
use serde_json::value::RawValue;

/// The one field of what goes back in place of arguments that were no JSON object: providers take nothing else there,
/// and the model shall see what it wrote.
pub(crate) const UNPARSED: &str = "unparsed_arguments";

/// What a tool gave, when it gave nothing: providers refuse an empty result of a failed call.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Stands for an answer that held nothing which could be sent back, or that never came.
pub(crate) const NO_ANSWER: &str = "(no answer)";

/// Stands for a message of the user without a word in it: a conversation may neither begin nor end with an answer.
pub(crate) const NO_MESSAGE: &str = "(empty message)";

/// Begins the result of a failed call, where the provider has no field for that.
pub(crate) const FAILED: &str = "[the call failed]\n";

/// Arguments as a JSON object: their own text where they are one.
pub(crate) fn arguments_object(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    match raw(arguments) {
        Some(raw) if raw.get().starts_with('{') => Cow::Borrowed(raw.get()),
        _ => Cow::Owned(format!("{{{}:{}}}", json(UNPARSED), json(arguments))),
    }
}

/// Arguments as text: a string's content, or, from servers that send an object there, its text as it came.
pub(crate) fn arguments_text(raw: &RawValue) -> String {
    match raw.get() {
        "null" => String::new(),
        other => serde_json::from_str::<String>(other).unwrap_or_else(|_| other.to_owned()),
    }
}

/// Arguments as an object, to be written into a larger value.
pub(crate) fn arguments_raw(arguments: &str) -> Box<RawValue> {
    // Invariant: `arguments_object` gives JSON.
    RawValue::from_string(arguments_object(arguments).into_owned()).expect("an object")
}

/// The text of a JSON value, if it is one.
pub(crate) fn raw(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}

/// A call's id as providers take it back: letters, digits, `_`, `-`, at most 64. Any other becomes one of its own,
/// always the same for the same id, so that call and result still match.
pub(crate) fn wire_id(id: &str) -> Cow<'_, str> {
    if is_word(id, 64, "") { Cow::Borrowed(id) } else { Cow::Owned(format!("call_{:.32}", Digest::of(id.as_bytes()))) }
}

/// The same for those who want exactly nine letters and digits, as Mistral's templates do.
pub(crate) fn nine_letters(id: &str) -> Cow<'_, str> {
    if id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!("{:.9}", Digest::of(id.as_bytes())))
}

/// The name of a call as providers take it back. A model may have called what no tool is named, and its words stay in
/// the conversation.
pub(crate) fn wire_name(name: &str, longest: usize) -> Cow<'_, str> {
    if is_word(name, longest, "") {
        return Cow::Borrowed(name);
    }
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(longest).map(fit).collect();
    Cow::Owned(if name.is_empty() { "unnamed".to_owned() } else { name })
}

/// Letters, digits, `_`, `-` and what else is allowed.
pub(crate) fn is_word(text: &str, longest: usize, also: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || also.contains(c);
    !text.is_empty() && text.len() <= longest && text.chars().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_back_as_they_came_or_as_an_object_that_holds_them() {
        assert_eq!(arguments_object(r#"{"a": 1.0, "a": 2}"#), r#"{"a": 1.0, "a": 2}"#, "not a byte is changed");
        assert_eq!(arguments_object(""), "{}");
        for bad in ["{\"a\":", "[1]", "\"x\"", "null", "{} {}", "rm -rf", "\u{1}"] {
            let sent = arguments_object(bad);
            let value: serde_json::Value = serde_json::from_str(&sent).expect("an object");
            assert_eq!(value, serde_json::json!({ UNPARSED: bad }), "{bad}");
        }
    }

    #[test]
    fn ids_and_names_fit_whatever_they_were() {
        assert_eq!(wire_id("toolu_01-A"), "toolu_01-A");
        let odd = wire_id("call:1/ä");
        assert!(is_word(&odd, 64, ""), "{odd}");
        assert_eq!(odd, wire_id("call:1/ä"));
        assert_ne!(odd, wire_id("call:2/ä"));
        assert!(is_word(&wire_id(""), 64, "") && is_word(&wire_id(&"x".repeat(65)), 64, ""));
        assert_eq!(nine_letters("AbcdEf123"), "AbcdEf123");
        let short = nine_letters("call_1");
        assert!(short.len() == 9 && is_word(&short, 9, "") && short != nine_letters("call_2"), "{short}");
        assert_eq!(wire_name("a.b ü", 64), "a_b__");
        assert_eq!(wire_name("", 64), "unnamed");
        assert_eq!(wire_name(&"n".repeat(99), 64).len(), 64);
    }
}
