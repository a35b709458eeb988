//! Builtins of bash: their names, what may stand before one, and those that evaluate what stands in the brackets of a word,
//! quoted or not: `test -v 'a[$(rm x)]'` runs `rm x`.

/// Every builtin of bash (`compgen -b`).
const BUILTINS: &str = ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs \
    disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd \
    printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset \
    ulimit umask unalias unset wait";

pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.split_ascii_whitespace().any(|known| known == name)
}

/// The words from the builtin or program on, behind what leaves a builtin one: `command -p`, `builtin --`. A word is `None`
/// if it is not literal. There is no answer if they only ask where a command is.
pub(super) fn behind_prefixes(mut words: &[Option<String>]) -> Option<&[Option<String>]> {
    let mut before = false;
    while let [Some(first), rest @ ..] = words {
        match first.as_str() {
            "command" | "builtin" | "noglob" | "nocorrect" | "-" => before = true,
            option if before && option.starts_with('-') => {
                if option.contains(['v', 'V']) {
                    return None;
                }
            }
            _ => break,
        }
        words = rest;
    }
    Some(words)
}

const SUBSCRIPT: &str = "a shell builtin evaluates the index of an array";

/// Why the words of a builtin may run something, if so.
pub(super) fn hidden(name: &str, words: &[String]) -> Option<&'static str> {
    let integer = |word: &String| word.starts_with(['-', '+']) && word.contains('i');
    match name {
        // Arithmetic evaluates every name in it, and the value of that name in its turn.
        "let" => return Some("arithmetic may run a substitution"),
        "declare" | "typeset" | "local" | "export" | "readonly" | "integer" if words.iter().any(integer) => {
            return Some("arithmetic may run a substitution");
        }
        "declare" | "typeset" | "local" | "export" | "readonly" | "integer" | "read" | "unset" | "wait" | "getopts" => {
        }
        "test" | "[" | "printf" => {
            let names = words.iter().any(|word| word == "-R" || word.starts_with("-v"));
            let hit = words.iter().any(|word| evaluates(word) || (names && is_element(word.trim_start_matches("-v"))));
            return hit.then_some(SUBSCRIPT);
        }
        _ => return None,
    }
    words.iter().any(|word| evaluates(word) || is_element(word)).then_some(SUBSCRIPT)
}

/// Brackets with a substitution in the same word.
fn evaluates(word: &str) -> bool {
    word.contains('[') && (word.contains("$(") || word.contains("${") || word.contains("$[") || word.contains('`'))
}

/// `name[index]`, where the index is not plainly a number or all of them.
pub(super) fn is_element(word: &str) -> bool {
    let Some((name, rest)) = word.split_once('[') else { return false };
    let is_name = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name && !is_plain_index(rest.split(']').next().unwrap_or(rest))
}

pub(super) fn is_plain_index(index: &str) -> bool {
    matches!(index, "@" | "*") || (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
}
