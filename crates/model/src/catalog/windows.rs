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

/// Families of models that several services host, by how their ids begin after the vendor's name (`vendor/model`).
const HOSTED: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_047_576),
    ("gemini-", 1_048_576),
    ("grok-4", 256_000),
    ("kimi-k2", 256_000),
    ("glm-4.6", 200_000),
    ("minimax-m2", 196_000),
    ("qwen3-coder", 256_000),
];

/// What a hosted model can read if its name says nothing. Services that host smaller ones refuse a longer request by
/// saying so, and the conversation is then shortened (agent-runtime 6.4).
const HOSTED_AT_LEAST: u64 = 128_000;

/// The window of a model; `None` if nobody knows, as of every model on a server of one's own: how much of its window is
/// switched on is that server's setting. `hosted` says that an address of one's own is a service on the internet.
pub(super) fn window(provider: &str, id: &str, hosted: bool) -> Option<u64> {
    let known = WINDOWS.iter().filter(|(of, begins, _)| *of == provider && id.starts_with(begins));
    let by_name = known.max_by_key(|(_, begins, _)| begins.len()).map(|(_, _, tokens)| *tokens);
    by_name.or_else(|| hosted.then(|| hosted_window(id)))
}

fn hosted_window(id: &str) -> u64 {
    let model = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
    let known = HOSTED.iter().filter(|(begins, _)| model.starts_with(begins));
    known.max_by_key(|(begins, _)| begins.len()).map_or(HOSTED_AT_LEAST, |(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_counts_and_what_is_unknown_is_unknown() {
        assert_eq!(window("anthropic", "claude-sonnet-5", false), Some(200_000));
        assert_eq!(window("openai", "gpt-5.5", false), Some(272_000));
        assert_eq!(window("openai", "gpt-5.2-chat-latest", false), Some(128_000));
        assert_eq!(window("openai", "my-own", false), None);
        assert_eq!(
            window("openai-chat", "gpt-5.5", false),
            None,
            "a name says nothing of what a local server has switched on"
        );
    }

    #[test]
    fn a_hosted_model_is_known_by_its_family_or_taken_for_an_ordinary_one() {
        for (id, tokens) in [
            ("anthropic/claude-sonnet-5", 200_000),
            ("Qwen/Qwen3-Coder-480B", 256_000),
            ("vendor/sub/gpt-5.5", 272_000),
            ("something-new", HOSTED_AT_LEAST),
        ] {
            assert_eq!(window("openai-chat", id, true), Some(tokens), "{id}");
        }
    }
}
