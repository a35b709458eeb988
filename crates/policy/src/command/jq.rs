//! Filters of `jq` that see nothing but their input.

/// Names that show the environment, other files, or where the input came from. As bare words they are
/// refused wherever they stand: a string may hold `\(env)`.
const NAMES: [&str; 8] =
    ["env", "ENV", "input_filename", "import", "include", "modulemeta", "get_search_list", "__prog_args"];

/// Looks for them.
///
/// # Errors
/// The name that was found.
pub(super) fn filter(text: &str) -> Result<(), String> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    match words.find(|word| NAMES.contains(word)) {
        Some(name) => Err(format!("a filter with `{name}` may see more than its input")),
        None => Ok(()),
    }
}
