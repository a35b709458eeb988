//! Words of an argv pattern that no command has: wildcards, whole lines, signs of the shell. Words are compared letter by
//! letter, so that the author of one of these meant something else.

use crate::{ArgvPattern, RuleEffect};
use portcullis_command::base;
use portcullis_command::verbs::family;

/// Programs that take patterns, expressions or whole scripts as their words: a `*` in such a word is what the program is
/// given, and may be meant as it stands.
const TAKES_PATTERNS: &str = "find fd locate grep egrep fgrep zgrep rg ag ack sed awk gawk mawk perl ruby python node sh \
    bash dash zsh ksh fish jq yq expr bc test [ [[ tar zip unzip rsync sqlite3 psql mysql";

/// What a shell reads as the end of a command or as a redirection, and never hands to a program.
const OF_THE_SHELL: [&str; 12] = ["&&", "||", "|", "|&", ";", "&", ">", ">>", "<", "<<", "2>", "2>&1"];

/// A word of a pattern that no command has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StrayWord {
    /// No command has them.
    Never(String),
    /// Only a command that is spelled with the wildcard itself has them.
    Wildcard(String),
}

/// Why the words of a pattern are not what their author meant, if they are not.
///
/// A wildcard is taken as meant literally in two places. An allow of a whole line (its last word is `$`) is the form in
/// which an ask offers a rule: every word of it stood in a command. And the words of a program that takes patterns are
/// patterns for that program.
pub(crate) fn stray(pattern: &ArgvPattern, effect: RuleEffect) -> Option<StrayWord> {
    let words = pattern.words();
    let (program, rest) = words.split_first()?;
    if let Some(stray) = no_program(program, rest) {
        return Some(StrayWord::Never(stray));
    }
    let offered = effect == RuleEffect::Allow && pattern.is_exact();
    let takes_patterns = TAKES_PATTERNS.split_whitespace().any(|name| name == family(base(program)));
    if offered || takes_patterns {
        return None;
    }
    if let Some(at) = rest.iter().position(String::is_empty) {
        let without = shown(words[..=at].to_vec())?;
        return Some(StrayWord::Wildcard(format!(
            "one of its words is empty, and hardly any command has one; write {without}"
        )));
    }
    let (at, word) = rest.iter().enumerate().find_map(|(at, word)| {
        let odd = is_wild(word) || OF_THE_SHELL.contains(&word.as_str());
        odd.then_some((at + 1, word))
    })?;
    let begins_so = shown(words[..at].to_vec())?;
    let bare = word.trim_matches(['*', '?', '.', '…']).is_empty();
    if OF_THE_SHELL.contains(&word.as_str()) {
        return Some(StrayWord::Never(format!(
            "`{word}` is a sign of the shell, and each command of a line is compared by itself; write {begins_so}, and a \
             rule of its own for another command"
        )));
    }
    if bare {
        return Some(StrayWord::Never(format!(
            "`{word}` is no wildcard, for words are compared as they are; to mean anything that begins so, write \
             {begins_so}"
        )));
    }
    let stem = &word[..word.find(WILD).unwrap_or(word.len())];
    let each = shown([&words[..at], &[stem.to_owned()]].concat())?;
    Some(StrayWord::Wildcard(format!(
        "`{word}` is no wildcard, for words are compared as they are; to mean anything that begins so, write {begins_so}; \
         else one list for each word that is meant, such as [{each}, …]"
    )))
}

/// Why no program is called so, if so.
fn no_program(program: &str, rest: &[String]) -> Option<String> {
    if matches!(program, "*" | "**" | "?" | ".*" | "…" | "...") {
        return Some(format!(
            "`{program}` is no wildcard, for words are compared as they are; to mean any command, leave `argv` out"
        ));
    }
    if program.trim().is_empty() {
        return Some("its first word is empty; name the program".to_owned());
    }
    if is_wild(program) {
        return Some(format!(
            "`{program}` is no pattern, for words are compared as they are; name the program, or several, each in a list \
             of its own"
        ));
    }
    if let Some(sign) = program.chars().find(|sign| ";|&<>$`".contains(*sign)) {
        let words = program.split(sign).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let instead = shown(words)?;
        return Some(format!(
            "`{sign}` is a sign of the shell, and no program is called `{program}`; to mean one command, write {instead}"
        ));
    }
    if program.contains(char::is_whitespace) && !program.contains('/') {
        let words = program.split_whitespace().map(str::to_owned).chain(rest.iter().cloned()).collect();
        let instead = shown(words)?;
        return Some(format!(
            "`{program}` is one word with a blank in it, and no program is called that; write {instead}"
        ));
    }
    None
}

fn shown(words: Vec<String>) -> Option<String> {
    ArgvPattern::parse(words).ok().map(|pattern| pattern.to_string())
}

const WILD: [char; 4] = ['*', '?', '[', '{'];

/// Whether a word looks like a glob: a `*`, a `?` that begins no query of an address, a class such as `[a-z]` or `[!x]`, a
/// choice such as `{a,b}`, or dots that stand for more. Not `pkg[extra]`, `stash@{0}` and `{"a":1,"b":2}`.
fn is_wild(word: &str) -> bool {
    let question = || word.contains('?') && !word.contains("://");
    matches!(word, "…" | "...") || word.contains('*') || question() || has_class(word) || has_choice(word)
}

fn has_class(word: &str) -> bool {
    let Some((_, rest)) = word.split_once('[') else { return false };
    let Some((inside, after)) = rest.split_once(']') else { return false };
    let range = inside.as_bytes().windows(3).any(|w| w[1] == b'-' && w[0].is_ascii_alphanumeric() && w[0] < w[2]);
    let only_ranges = range && inside.len() % 3 == 0;
    only_ranges || inside.starts_with(['!', '^']) || after.starts_with(char::is_alphanumeric)
}

fn has_choice(word: &str) -> bool {
    let Some((_, rest)) = word.split_once('{') else { return false };
    let Some((inside, _)) = rest.split_once('}') else { return false };
    inside.contains(',') && !inside.contains(['"', '\'', ':', ' ', '$'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str], effect: RuleEffect) -> Option<StrayWord> {
        let pattern = ArgvPattern::parse(words.iter().map(|word| (*word).to_owned()).collect()).expect("a pattern");
        stray(&pattern, effect)
    }

    #[test]
    fn a_wildcard_in_any_word_is_found_and_what_to_write_is_said() {
        for words in [
            &["git", "push", "--force*"][..],
            &["git", "pu?h"],
            &["npm", "run", "test:*"],
            &["rm", "-rf", "/*"],
            &["git", "p[au]sh"],
            &["git", "push", "[a-z]"],
            &["git", "{push,pull}"],
            &["cat", "*.env", "$"],
            &["curl", "https://*.example.com"],
            &["git", "push", "origin", "*main"],
        ] {
            let Some(StrayWord::Wildcard(why)) = of(words, RuleEffect::Deny) else { panic!("{words:?}") };
            assert!(why.contains("write [\""), "{why}");
        }
        let Some(StrayWord::Wildcard(why)) = of(&["git", "", "x"], RuleEffect::Deny) else { panic!("found") };
        assert!(why.ends_with(r#"write ["git"]"#), "{why}");
        let Some(StrayWord::Wildcard(why)) = of(&["git", "push", "--force*"], RuleEffect::Deny) else {
            panic!("found")
        };
        assert!(why.contains(r#"write ["git","push"]; else one list"#), "{why}");
        assert!(why.contains(r#"[["git","push","--force"], …]"#), "{why}");
        for words in [
            &["git", "*"][..],
            &["*"],
            &["python*"],
            &["git push"],
            &["git push", "--force"],
            &["cd", "x", "&&", "rm"],
            &["ls", "|", "wc"],
            &["git", "..."],
            &[" ", "x"],
            &["git;push"],
            &["$HOME/bin/x"],
            &["a&&b"],
        ] {
            assert!(matches!(of(words, RuleEffect::Deny), Some(StrayWord::Never(_))), "{words:?}");
        }
    }

    #[test]
    fn words_that_can_be_meant_as_they_stand_are_no_findings() {
        for words in [
            &["find", ".", "-name", "*.env"][..],
            &["grep", "-E", "a|b.*c"],
            &["/usr/bin/python3.12", "-c", "print(2 * 3)"],
            &["[", "-f", "x"],
            &["pip", "install", "requests[socks]"],
            &["pip", "install", "x[dev-tools]==1"],
            &["git", "stash", "drop", "stash@{0}"],
            &["curl", "https://example.com/?a=b"],
            &["curl", "-d", "{\"a\":1,\"b\":2}"],
            &["git", "push", "--force"],
            &["/opt/my tools/run"],
            &["git", "commit", "-m", "two words"],
            &["make", "$"],
        ] {
            assert_eq!(of(words, RuleEffect::Deny), None, "{words:?}");
        }
        // As an ask offers it: the line to its end.
        assert_eq!(of(&["ls", "*.txt", "$"], RuleEffect::Allow), None);
        assert!(of(&["ls", "*.txt", "$"], RuleEffect::Deny).is_some());
        assert!(of(&["ls", "*.txt"], RuleEffect::Allow).is_some());
    }
}
