//! How many tokens a model reads at once, by the beginning of its id.

/// The longest beginning that fits counts. Each number is what the provider gives without being asked for more (a beta
/// header, a larger plan): too small costs an early compaction, too large a refused request.
const WINDOWS: &[(&str, &str, u64)] = &[
    ("anthropic", "claude-", 200_000),
    // What it reads; its answer has room of its own.
    ("openai", "gpt-5", 272_000),
    ("openai", "gpt-5-chat", 128_000),
    ("openai", "gpt-5.1-chat", 128_000),
    ("openai", "gpt-5.2-chat", 128_000),
    ("openai", "gpt-5.3-chat", 128_000),
    ("openai", "gpt-4.1", 1_047_576),
    ("openai", "gpt-4o", 128_000),
    ("openai", "gpt-4-turbo", 128_000),
    ("openai", "o1", 200_000),
    ("openai", "o3", 200_000),
    ("openai", "o4", 200_000),
    ("gemini", "gemini-", 1_048_576),
];

/// The window of a model; `None` if nobody knows, as of every model on somebody's own server: how much of its window is
/// switched on is that server's setting.
pub(super) fn window(provider: &str, id: &str) -> Option<u64> {
    let known = WINDOWS.iter().filter(|(of, begins, _)| *of == provider && id.starts_with(begins));
    known.max_by_key(|(_, begins, _)| begins.len()).map(|(_, _, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_counts_and_what_is_unknown_is_unknown() {
        assert_eq!(window("anthropic", "claude-sonnet-5"), Some(200_000));
        assert_eq!(window("openai", "gpt-5.5"), Some(272_000));
        assert_eq!(window("openai", "gpt-5.2-chat-latest"), Some(128_000));
        assert_eq!(window("openai", "my-own"), None);
        assert_eq!(
            window("openai-chat", "gpt-5.5"),
            None,
            "a name says nothing of what a local server has switched on"
        );
    }
}
