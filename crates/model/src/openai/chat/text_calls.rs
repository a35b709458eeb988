//! Calls that a model wrote into its text because its server does not know the model's format. They are told to a
//! person and never run: text is not an intent, and it may be a quotation.

use serde_json::Value;

/// How the call is written, if there is one.
pub(super) fn found(text: &str, tools: &[String]) -> Option<&'static str> {
    if let Some((_, rest)) = text.split_once("<tool_call>")
        && rest.trim_start().starts_with(['{', '<'])
    {
        return Some("<tool_call>");
    }
    if text.contains("[TOOL_CALLS]") {
        return Some("[TOOL_CALLS]");
    }
    if let Some((_, rest)) = text.split_once("<function=")
        && tools.iter().any(|tool| rest.starts_with(tool.as_str()))
    {
        return Some("<function=…>");
    }
    let mut fences = text.split("```").skip(1).step_by(2);
    if fences.any(|block| is_call(block.trim_start_matches("json").trim_start_matches("tool_call"), tools)) {
        return Some("```json");
    }
    is_call(text, tools).then_some("bare JSON")
}

/// Whether a text is nothing but a call of a tool that was offered.
fn is_call(text: &str, tools: &[String]) -> bool {
    let call = |value: &Value| {
        let name = value.get("name").or_else(|| value.get("function")?.get("name")).and_then(Value::as_str);
        let arguments = ["arguments", "parameters"].iter().any(|key| value.get(key).is_some());
        let nested = value.get("function").is_some_and(Value::is_object);
        name.is_some_and(|name| tools.iter().any(|tool| tool == name)) && (arguments || nested)
    };
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(Value::Array(items)) => items.iter().any(call),
        Ok(value @ Value::Object(_)) => call(&value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_written_as_text_are_found_and_ordinary_json_is_not() {
        let tools = ["read".to_owned()];
        let calls = [
            "Sure.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>",
            "<tool_call><function=read>",
            "[TOOL_CALLS][{\"name\": \"read\", \"arguments\": {}}]",
            "<function=read>{}</function>",
            "I will:\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
            "```\n[{\"name\": \"read\", \"parameters\": {}}]\n```",
            "{\"name\": \"read\", \"parameters\": {}}",
            "{\"type\": \"function\", \"function\": {\"name\": \"read\"}}",
        ];
        for text in calls {
            assert!(found(text, &tools).is_some(), "{text}");
        }
        let others = [
            "",
            "the tag <tool_call> begins a call",
            "```json\n{\"name\": \"portcullis\", \"version\": 1}\n```",
            "```json\n{\"name\": \"read\"}\n```",
            "{\"read\": 1}",
        ];
        for text in others {
            assert_eq!(found(text, &tools), None, "{text}");
        }
    }
}
