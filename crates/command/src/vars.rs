//! Variables whose text a shell evaluates: arithmetic runs what stands in the index of an array, so `echo $((a))` runs any
//! command if somebody else chose what `a` holds. A variable that the line itself sets to a number is harmless.

use std::collections::HashSet;

use portcullis_base::loads_code;

use super::unwrap::{base, is_assignment};
use super::{builtin, marks};

/// Variables that a shell sets to numbers. It evaluates whatever else they are set to.
const NUMBERS: &[&str] =
    &["RANDOM", "SRANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "BASHPID", "PPID", "UID", "EUID", "OPTIND", "HISTCMD"];

/// Operators of `[[ … ]]` that evaluate both sides.
const COMPARE: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// What a line does to variables, in the order of its text.
#[derive(Debug, Clone, Default)]
pub(super) struct Vars {
    numbers: HashSet<String>,
    /// Set to something else somewhere in the line.
    others: HashSet<String>,
    /// Taken for numbers when they were evaluated.
    relied: HashSet<String>,
    /// A name may stand for another variable.
    renamed: bool,
    /// Something was evaluated that the line does not set to a number.
    unknown: bool,
}

impl Vars {
    /// Whether something was evaluated that may run any program.
    pub(super) fn hide(&self) -> bool {
        self.unknown || self.relied.iter().any(|name| self.renamed || self.others.contains(name))
    }

    /// Notes what a simple command sets.
    pub(super) fn command(&mut self, argv: &[String]) {
        let words = || argv.iter().map(|word| marks::bare(word));
        let program = words().find(|word| !is_assignment(word)).map(base);
        let declares =
            matches!(program, None | Some("declare" | "typeset" | "local" | "export" | "readonly" | "integer"));
        for (name, value) in words().filter(|word| is_assignment(word)).filter_map(|word| word.split_once('=')) {
            // Before any other program it is set for that program alone.
            self.set(name.trim_end_matches('+'), value, declares);
        }
        if declares && words().any(|word| word.starts_with('-') && word.contains('n')) {
            self.renamed = true;
        }
        let name = |word: &'_ str| word.split('[').next().unwrap_or("").trim_start_matches("-v").to_owned();
        match program {
            Some("read" | "mapfile" | "readarray" | "printf" | "getopts" | "wait") => {
                words().for_each(|word| self.other(&name(word)));
            }
            Some("unset") => self.others.extend(words().map(name)),
            _ => {}
        }
    }

    /// Notes a loop over words, as they are written.
    pub(super) fn each<'w>(&mut self, name: &str, values: Option<impl Iterator<Item = &'w str>>) {
        let counts = |value: &str| {
            let range = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let plain = |c: char| c.is_ascii_alphanumeric() || " _${}\"".contains(c);
            let seq = value.strip_prefix("$(seq ").and_then(|rest| rest.strip_suffix(')'));
            range.is_some_and(|range| range.bytes().all(|byte| byte.is_ascii_digit() || b".,-".contains(&byte)))
                || seq.is_some_and(|words| words.chars().all(plain))
        };
        match values.map(|mut values| values.all(|value| counts(value) || self.is_number(value))) {
            Some(true) => _ = self.numbers.insert(name.to_owned()),
            _ => self.other(name),
        }
    }

    fn set(&mut self, name: &str, value: &str, lasts: bool) {
        let list = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let number = match list {
            Some(items) => items.split_whitespace().all(|item| self.is_number(item)),
            None => self.is_number(value),
        };
        match number {
            true if lasts => _ = self.numbers.insert(name.to_owned()),
            true => {}
            false => self.other(name),
        }
    }

    /// It is set to something that may be no number.
    fn other(&mut self, name: &str) {
        self.unknown |= NUMBERS.contains(&name);
        self.others.insert(name.to_owned());
    }

    /// Whether a word becomes a number.
    fn is_number(&mut self, value: &str) -> bool {
        let value = value.trim_matches('"');
        let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) || matches!(value, "$#" | "$?" | "$$" | "$!") {
            return true;
        }
        // What it evaluates is looked at where the word is.
        if value.starts_with("$((") && value.ends_with("))") && value.matches("$(").count() == 1 {
            return true;
        }
        let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or_else(|| value.strip_prefix('$'));
        match name {
            Some(name) if name.starts_with('#') => is_name(&name[1..]),
            Some(name) => self.is_counted(name),
            None => false,
        }
    }

    /// Whether a variable holds a number as far as the line has come.
    fn is_counted(&mut self, name: &str) -> bool {
        let counted = NUMBERS.contains(&name) || self.numbers.contains(name);
        if counted {
            self.relied.insert(name.to_owned());
        }
        counted
    }

    /// Evaluates an arithmetic text.
    pub(super) fn evaluate(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            rest = match c {
                '0'..='9' => after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "#_@".contains(c)),
                'a'..='z' | 'A'..='Z' | '_' => {
                    let (name, behind) = name_at(rest);
                    // Arithmetic can set it, and an element of it.
                    self.unknown |= loads_code(name).is_some();
                    if let Some(behind) = set_to_number(behind) {
                        self.numbers.insert(name.to_owned());
                        behind
                    } else {
                        self.unknown |= !self.is_counted(name);
                        behind
                    }
                }
                '$' => self.dollar(after),
                '`' => {
                    self.unknown = true;
                    after
                }
                _ => after,
            };
        }
    }

    /// What follows a dollar in arithmetic. Gives what is behind it.
    fn dollar<'t>(&mut self, after: &'t str) -> &'t str {
        if let Some(behind) = after.strip_prefix("((") {
            return behind;
        }
        if let Some(inside) = after.strip_prefix('{') {
            let (inside, behind) = inside.split_once('}').unwrap_or((inside, ""));
            let (name, how) = name_at(inside);
            let plain = how.trim_start_matches([':', '-']).bytes().all(|byte| byte.is_ascii_digit());
            let index = how.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let length = inside.strip_prefix('#').is_some_and(|of| is_name(of.trim_end_matches("[@]")));
            let known = (plain || index.is_some_and(builtin::is_plain_index)) && self.is_counted(name);
            self.unknown |= !(length || known);
            return behind;
        }
        match after.chars().next() {
            Some('#' | '?' | '$' | '!') => &after[1..],
            Some(c) if c.is_ascii_alphabetic() || c == '_' => after,
            _ => {
                self.unknown = true;
                after
            }
        }
    }

    /// Compares as `[[ … ]]` does.
    pub(super) fn compare(&mut self, test: &str) {
        let words: Vec<&str> = test.split_whitespace().collect();
        let whole = |word: &str| !word.contains([')', '`']) && word.matches('"').count().is_multiple_of(2);
        for (at, word) in words.iter().enumerate() {
            if COMPARE.contains(word) {
                for side in [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| words.get(at)) {
                    self.unknown |= !whole(side);
                    self.evaluate(side);
                }
            }
            let names = matches!(*word, "-v" | "-R") && words.get(at + 1).is_some_and(|name| name.contains('['));
            self.unknown |= names;
        }
    }

    /// Expands the raw text of a word. Says whether it evaluates the text of a variable as a line or as a name.
    pub(super) fn expand(&mut self, raw: &str) -> bool {
        let mut reads_text = false;
        for (at, _) in raw.match_indices('$') {
            let after = &raw[at + 1..];
            if let Some(inside) = after.strip_prefix("((") {
                self.evaluate(&inside[..closing(inside)]);
            } else if let Some(inside) = after.strip_prefix('[') {
                self.evaluate(inside.split(']').next().unwrap_or(inside));
            } else if let Some(inside) = after.strip_prefix('{') {
                reads_text |= self.parameter(inside);
            }
        }
        reads_text
    }

    /// `${…}`, from its inside on.
    fn parameter(&mut self, inside: &str) -> bool {
        let end = inside.find('}').unwrap_or(inside.len());
        let own = &inside[..end];
        if let Some(named) = own.strip_prefix('!') {
            // Names of variables, and the indices of an array, are no more than text.
            return !["[@]", "[*]", "*", "@"].iter().any(|list| named.ends_with(list));
        }
        let (name, how) = name_at(own.strip_prefix('#').unwrap_or(own));
        if let Some(index) = how.strip_prefix('[').and_then(|rest| rest.split(']').next())
            && !builtin::is_plain_index(index)
        {
            self.evaluate(index);
        }
        match how.strip_prefix(':') {
            Some(rest) if !rest.starts_with(['-', '+', '=', '?']) => self.evaluate(rest),
            rest if rest.unwrap_or(how).starts_with('=') => self.other(name),
            _ => {}
        }
        how.ends_with("@P")
    }
}

/// The name of a variable that a text begins with, and what follows.
fn name_at(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What is behind ` = 12`, if a text begins so and no more than a number is assigned.
fn set_to_number(text: &str) -> Option<&str> {
    let value = text.trim_start().strip_prefix('=').filter(|rest| !rest.starts_with('='))?.trim_start();
    let behind = value.trim_start_matches(|c: char| c.is_ascii_digit());
    let ends = behind.trim_start();
    (behind.len() < value.len() && (ends.is_empty() || ends.starts_with([',', ';', ')']))).then_some(behind)
}

/// Where the parentheses end that were opened before a text.
fn closing(text: &str) -> usize {
    let mut depth = 2_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn l31_arithmetic_on_what_the_line_does_not_set_to_a_number_hides() {
        for line in [
            "read a <<< 'x[$(touch made)]'; echo $((a))",
            "read a < f; echo $((a + 1))",
            "echo $((a))",
            "a=1; read a < f; echo $((a))",
            "a=1; mapfile a < f; echo $((a))",
            "a=1 true; echo $((a))",
            "a=$(cat f); echo $((a))",
            "a=1; a=$(cat f); ((a > 2)) && echo b",
            "a=1; declare -n b=a; b=$(cat f); echo $((a))",
            "a=$b; echo $((a))",
            "echo $(( $(cat f) + 1 ))",
            "echo $(( ${b:-c} ))",
            "[[ $a -eq 1 ]] && echo b",
            "[[ a -lt b ]]",
            "[[ \"$(cat f)\" -eq 1 ]]",
            "[[ -v a[i] ]]",
            "echo ${x[a]}",
            "echo ${x:a}",
            "echo ${x:$a:2}",
            "echo $[a]",
            "for i in *; do echo $((i)); done",
            "for ((i=a; i<3; i++)); do echo b; done",
            "x='$(touch made)'; echo \"${x@P}\"",
            "echo \"${!x}\"",
            "cat <<E\n${x@P}\nE",
            "bash -c 'echo $((a))'",
            "read RANDOM <<< 'a[$(touch made)]'",
            "for RANDOM in 'a[$(touch made)]'; do :; done",
            "for SECONDS in $x; do :; done",
            "mapfile -t RANDOM < f",
            "printf -v RANDOM %s x",
            "printf -vRANDOM %s x",
            "getopts a: x -a 'y[$(touch made)]'; RANDOM=$OPTARG",
            "set -- 'a[$(touch made)]'; RANDOM=$1",
            "RANDOM=$(base64 -d <<< YVskKHRvdWNoIG1hZGUpXQ==)",
            "SECONDS=`base64 -d <<< YVskKHRvdWNoIG1hZGUpXQ==`",
            "OPTIND=$(base64 -d <<< YVskKHRvdWNoIG1hZGUpXQ==)",
            "export SECONDS=$x",
            "x=$(base64 -d <<< YVskKHRvdWNoIG1hZGUpXQ==); a=([x]=1)",
            "x=$(cat f); a[x]=1",
            "((BASH_CMDS[touch]=2))",
        ] {
            let found = analyse(line);
            // Only what is opaque is looked at for what it hides.
            assert!(found.hides && !found.opaque.is_empty(), "{line}");
        }
        for line in [
            "for i in 1 2; do echo $((i+1)); done",
            "for i in {1..5}; do echo $((i * 2)); done",
            "for i in $(seq 1 5); do echo $((i * 2)); done",
            "i=0; while ((i < 3)); do ((i++)); done",
            "i=0; i=$((i+1)); echo \"$i\"",
            "n=${#x}; echo $((n - 1))",
            "for ((i=0; i<10; i++)); do echo $i; done",
            "a=(1 2 3); for i in 0 1; do echo \"${a[$i]}\" \"${a[0]}\" \"${a[@]}\"; done",
            "echo $((2 ** 10)) $((0x1F)) $(( 2 * 3 ))",
            "echo $((RANDOM % 6)) ${x:-y} ${x:0:3} ${#x} ${x##*/}",
            "[[ -f a ]] && echo b",
            "[[ $# -gt 0 ]] && echo b",
            "[[ $x == a* ]] && echo b",
            "for k in \"${!a[@]}\"; do echo \"$k\"; done",
            "[ \"$x\" -gt 5 ] && echo b",
            "SECONDS=0; make; echo $SECONDS",
            "OPTIND=1; while getopts ab: o; do echo $o; done",
            "unset OPTIND",
            "a=(1 2 3); a[1]=x",
        ] {
            assert!(!analyse(line).hides, "{line}");
        }
    }
}
