//! `--custom-tools FILE`: tools that whoever starts a session runs itself.

use std::path::Path;

use portcullis::CustomTool;
use serde::Deserialize;
use serde_json::Value;

use crate::exit::usage;

/// One declaration, as clients write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolDeclaration {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    name: String,
    description: String,
    input_schema: Value,
}

/// What a file declares; nothing without one.
pub fn read(path: Option<&Path>) -> anyhow::Result<Vec<CustomTool>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| usage(format!("{place} cannot be read: {e}")))?;
    let declared: Vec<ToolDeclaration> = serde_json::from_str(&text)
        .map_err(|e| usage(format!("{place} is not a JSON array of {{name, description, input_schema}}: {e}")))?;
    let tool = |tool: ToolDeclaration| match tool.kind.as_deref() {
        None | Some("custom") => {
            Ok(CustomTool { name: tool.name, description: tool.description, input_schema: tool.input_schema })
        }
        Some(kind) => {
            Err(usage(format!("{place}: `{}` has the type `{kind}`; only `custom` can be declared", tool.name)))
        }
    };
    declared.into_iter().map(tool).collect()
}
