//! Paths by their text alone. Only an open shows where links lead.

use portcullis_secret::file_names::{self, SecretName};

/// `path` seen from `cwd`: absolute, without `.`, `..` and empty names. `..` at the root stays there.
pub fn join(cwd: &str, path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { cwd };
    for name in start.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Whether the joined `place` is `mount` or lies in it: by whole names.
pub fn within(place: &str, mount: &str) -> bool {
    let mount = mount.trim_end_matches('/');
    place.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Names whose content is a secret by custom, in lower case, that a pattern may be meant for: a command that reads one is
/// asked about. [`file_names`] knows all of them.
const SECRETS: [&str; 10] = [
    ".env",
    ".envrc",
    ".netrc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];

/// Whether the name of a file says that it holds secrets: the read-only hand opens none such, whatever link leads there.
#[must_use]
pub fn may_hold_secrets(path: &str) -> bool {
    is_secret(path)
}

/// Whether the last name of `path` is one of those, in any case: some trees do not tell case apart.
pub fn is_secret(path: &str) -> bool {
    file_names::secret(path).is_some_and(SecretName::is_custom)
}

/// Whether the last name of the pattern may match one of those.
pub fn may_match_secret(pattern: &str) -> bool {
    let name = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or("").to_lowercase();
    let hidden = name.trim_start_matches('\\').starts_with(['.', '[']);
    // A wildcard does not match a leading dot.
    SECRETS.iter().chain(&[".env.local"]).any(|secret| (hidden || !secret.starts_with('.')) && fits(&name, secret))
        && name != "*"
}

/// Whether a pattern that picks files for a search picks one of those: there a wildcard matches a leading dot too. One
/// without a letter picks everything, as a search without it does.
pub fn picks_secret(pattern: &str) -> bool {
    if let Some((before, rest)) = pattern.split_once('{') {
        // Each of what stands in braces; braces in braces are too much to follow.
        let Some((inside, behind)) = rest.split_once('}') else { return true };
        return inside.contains('{')
            || behind.contains('{')
            || inside.split(',').any(|one| picks_secret(&format!("{before}{one}{behind}")));
    }
    let name = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or("").to_lowercase();
    !pattern.starts_with('!')
        && name.contains(char::is_alphabetic)
        && SECRETS.iter().chain(&[".env.local"]).any(|secret| fits(&name, secret))
}

/// Whether `pattern` matches `name`, whose length is below 32; a bracket stands for any character, and for anything from
/// there on if it is not plain, both of which can only match more.
fn fits(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    // Bit n: the pattern so far matches the first n characters.
    let mut reached: u32 = 1;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let literal = match c {
            '*' => {
                reached = !(reached & reached.wrapping_neg()).wrapping_sub(1);
                continue;
            }
            '?' => None,
            '[' => match behind_bracket(chars.as_str()) {
                Some(rest) => {
                    chars = rest.chars();
                    None
                }
                None => return reached & ((2 << name.len()) - 1) != 0,
            },
            '\\' => chars.next(),
            c => Some(c),
        };
        let next = |at: usize| reached & (1 << at) != 0 && literal.is_none_or(|c| name[at] == c);
        reached = (0..name.len()).filter(|at| next(*at)).fold(0, |all, at| all | (2 << at));
    }
    reached & (1 << name.len()) != 0
}

/// What follows a bracket whose inside this is, if it holds nothing but characters: no class, no escape.
fn behind_bracket(inside: &str) -> Option<&str> {
    let first = inside.strip_prefix(['!', '^']).unwrap_or(inside);
    // A bracket that closes at once is one of the characters.
    let skipped = first.chars().next()?.len_utf8();
    let end = skipped + first[skipped..].find(']')?;
    (!first[..end].contains(['[', '\\'])).then(|| &first[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check34_a_place_is_compared_by_whole_names_after_its_dots_are_gone() {
        assert_eq!(join("/workspace/a", "../../etc/./passwd"), "/etc/passwd");
        assert_eq!(join("/workspace", "/workspace/../etc"), "/etc");
        assert_eq!(join("/", "../.."), "/");
        assert!(within("/workspace", "/workspace") && within("/workspace/a", "/workspace/"));
        assert!(!within("/workspace-evil/a", "/workspace") && !within("/", "/workspace"));
    }

    #[test]
    fn check34_a_search_picks_no_secret_by_its_name() {
        for pattern in [
            ".env",
            "**/.env",
            ".ENV*",
            "*.env",
            "id_rsa",
            "id_*",
            ".e?v",
            "[.]env",
            "/a/.netrc",
            "{a,.env}",
            ".e{nv,x}",
            "{a,{.env}}",
        ] {
            assert!(picks_secret(pattern), "{pattern}");
        }
        for pattern in
            ["*", "*.*", "**/*", "*.rs", "!.env", "*.{ts,tsx}", "src/**", "Makefile", "*.toml", "*.env.example"]
        {
            assert!(!picks_secret(pattern), "{pattern}");
        }
    }

    #[test]
    fn check34_secrets_are_known_in_any_case_and_by_patterns() {
        for path in [".env", "./a/.ENV", ".env.local", "x/id_rsa", "a.env", ".bash_history"] {
            assert!(is_secret(path), "{path}");
        }
        for path in ["env", ".env.example", "a.env.txt", ".environment"] {
            assert!(!is_secret(path), "{path}");
        }
        for pattern in ["./.e*v", ".*", ".en?", "id_*", ".[e]nv", "a/.env*", "[[:punct:]]env", ".[!x]nv", ".e[n-]v*"] {
            assert!(may_match_secret(pattern), "{pattern}");
        }
        for pattern in ["*.rs", "*", "src/*.txt", ".c*", "?env", "[ab].txt", "[Rr]EADME.md", "src/[m]ain.rs", "[]a]b"] {
            assert!(!may_match_secret(pattern), "{pattern}");
        }
    }
}
