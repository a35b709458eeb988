//! Names of foreign tools: `<server>__<tool>`, forced into the grammar without two pairs ever
//! sharing a name (L9).

use portcullis_base::Digest;

use crate::ToolName;

/// Where a changed name is cut to make room for `_` and 8 or 16 hex digits.
const CUT_8: usize = 55;
const CUT_16: usize = 47;

/// Two pairs of names that even 16 hex digits do not tell apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name `{name}` of tool `{tool}` of server `{server}` is taken by another tool; rename the server")]
pub struct ImportError {
    server: String,
    tool: String,
    name: String,
}

/// The name of `tool` of `server`. `taken` tells which names other pairs of the location have.
///
/// # Errors
/// If no free name is left.
pub fn import_name(server: &str, tool: &str, taken: impl Fn(&str) -> bool) -> Result<ToolName, ImportError> {
    let plain = format!("{server}__{tool}");
    let mut clean: String =
        plain.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    if !clean.starts_with(|c: char| c.is_ascii_alphabetic()) {
        clean.insert(0, 't');
    }
    let ambiguous = |part: &str| part.contains("__") || part.starts_with('_') || part.ends_with('_') || part.is_empty();
    let changed = clean != plain || ambiguous(server) || ambiguous(tool) || clean.len() > 64;
    if !changed
        && let Ok(name) = clean.parse::<ToolName>()
        && !taken(name.as_str())
    {
        return Ok(name);
    }
    // The length first, so that ("ab", "c") and ("a", "bc") hash differently.
    let digest = Digest::of(format!("{}:{server}{tool}", server.len()).as_bytes()).to_string();
    for (cut, digits) in [(CUT_8, 8), (CUT_16, 16)] {
        let head: String = clean.chars().take(cut).collect();
        let name = format!("{head}_{}", &digest[..digits]);
        if let Ok(name) = name.parse::<ToolName>()
            && !taken(name.as_str())
        {
            return Ok(name);
        }
    }
    Err(ImportError { server: server.to_owned(), tool: tool.to_owned(), name: clean })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn l09_imported_names_fit_the_grammar_and_never_collide(
            pairs in prop::collection::hash_set(("[a-c_.é-]{0,4}", "[a-c_./ ]{0,70}"), 0..40)
        ) {
            let mut names: HashMap<String, (String, String)> = HashMap::new();
            for (server, tool) in pairs {
                let name = import_name(&server, &tool, |n| names.contains_key(n)).expect("room for all");
                prop_assert!(name.as_str().parse::<ToolName>().is_ok());
                prop_assert!(names.insert(name.to_string(), (server, tool)).is_none());
            }
        }

        #[test]
        fn l09_import_is_deterministic(server in ".{0,12}", tool in ".{0,80}") {
            prop_assert_eq!(import_name(&server, &tool, |_| false), import_name(&server, &tool, |_| false));
        }
    }

    #[test]
    fn a_plain_pair_keeps_its_plain_name() {
        let name = import_name("github", "list_issues", |_| false).expect("free");
        assert_eq!(name.as_str(), "github__list_issues");
        let dotted = import_name("a", "b.c", |_| false).expect("free");
        let underscored = import_name("a", "b_c", |_| false).expect("free");
        assert_ne!(dotted, underscored);
    }
}
