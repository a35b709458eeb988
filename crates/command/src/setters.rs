//! Variables that a line sets without an assignment: `read CC`, `printf -v CC`, `for CC in …`, `${CC:=…}`, `{CC}>file`.

use super::marks;
use super::option_reader::{OptionReader, ReadWord, ValuedOptions};
use super::program_variables::{runs_variable, value_is_run};
use super::unwrap::{base, is_assignment};

/// A variable that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetVariable {
    /// None if it is not written out.
    pub(super) name: Option<String>,
    /// What it is set to, as it is written; none if the line does not say.
    pub(super) value: Option<String>,
}

impl SetVariable {
    fn unsaid(word: &str) -> Self {
        let name = word.split('[').next().unwrap_or(word);
        Self { name: marks::of(word).is_none().then(|| name.to_owned()), value: None }
    }

    /// The same as an assignment.
    pub(super) fn as_assignment(&self) -> Option<String> {
        Some(format!("{}={}", self.name.as_ref()?, self.value.as_ref()?))
    }

    /// Whether some program may run what it is set to.
    pub(super) fn may_run(&self) -> bool {
        let Some(name) = &self.name else { return true };
        match &self.value {
            Some(value) if !value.contains(['$', '`']) => runs_variable(&format!("{name}={value}")),
            _ => value_is_run(name),
        }
    }
}

/// What a simple command sets.
pub(super) fn by_command(argv: &[String]) -> Vec<SetVariable> {
    let mut argv = argv.iter().skip_while(|word| is_assignment(word) || PREFIXES.contains(&word.as_str()));
    let Some(program) = argv.next() else { return Vec::new() };
    let words: Vec<String> = argv.cloned().collect();
    let read = |letters| OptionReader::new(&words, ValuedOptions { letters, long: &[] });
    let operands = |letters| {
        let word = |word| if let ReadWord::Operand(word) = word { Some(SetVariable::unsaid(word)) } else { None };
        read(letters).filter_map(word)
    };
    let valued = |letters, letter: char| {
        let value = move |word| match word {
            ReadWord::Letter(given, Some(value)) if given == letter => Some(SetVariable::unsaid(value)),
            _ => None,
        };
        // A builtin reads no option behind an operand.
        read(letters).take_while(|word| !matches!(word, ReadWord::Operand(_))).filter_map(value)
    };
    match base(program) {
        "read" => operands("adinNptu").chain(valued("adinNptu", 'a')).collect(),
        "mapfile" | "readarray" => operands("dnOsucC").collect(),
        "printf" => valued("v", 'v').collect(),
        "wait" => valued("p", 'p').collect(),
        "getopts" => operands("").skip(1).take(1).collect(),
        "declare" | "typeset" | "local" | "export" | "readonly" => {
            let renames = words.iter().any(|word| word.starts_with('-') && word.contains('n'));
            let named =
                words.iter().filter_map(|word| word.split_once('=')).map(|(_, value)| SetVariable::unsaid(value));
            // `export "$x"`, where the text holds the name too.
            let open = words.iter().filter(|word| marks::of(word).is_some() && !is_assignment(word));
            named.filter(|_| renames).chain(open.map(|word| SetVariable::unsaid(word))).collect()
        }
        "unset" => operands("").filter(|set| set.name.as_deref() == Some("PATH")).collect(),
        _ => Vec::new(),
    }
}

/// What leaves a builtin one.
const PREFIXES: &[&str] = &["command", "builtin", "-p", "--"];

/// What a loop over words sets, as they are written.
pub(super) fn by_loop<'w>(name: &str, values: Option<impl Iterator<Item = &'w str>>) -> Vec<SetVariable> {
    let set = |value: Option<&str>| SetVariable {
        name: Some(name.to_owned()),
        value: value.map(|value| value.trim_matches(['\'', '"']).to_owned()),
    };
    match values {
        Some(values) => values.map(|value| set(Some(value))).collect(),
        None => vec![set(None)],
    }
}

/// What the raw text of a word sets when a shell expands it.
pub(super) fn by_expansion(raw: &str) -> Vec<SetVariable> {
    // A line that goes on.
    let raw = raw.replace("\\\n", "");
    let mut out = Vec::new();
    for (at, _) in raw.match_indices("${") {
        let inside = &raw[at + 2..];
        let (name, how) = name_at(inside);
        let (indexed, how) = behind_index(how);
        let set = how.strip_prefix(':').unwrap_or(how).strip_prefix('=');
        if let Some(value) = set.filter(|_| !name.is_empty()) {
            let value = value.split('}').next().unwrap_or(value).trim_matches(['\'', '"']);
            out.push(SetVariable { name: Some(name.to_owned()), value: (!indexed).then(|| value.to_owned()) });
        }
    }
    // `{NAME}>file` sets it to a number.
    if let Some(inside) = raw.strip_prefix('{').filter(|_| raw.ends_with('}')) {
        let (name, how) = name_at(inside);
        if !name.is_empty() && how.starts_with(['}', '[']) {
            out.push(SetVariable { name: Some(name.to_owned()), value: Some("10".to_owned()) });
        }
    }
    out
}

/// The name of a variable that a text begins with, and what follows.
fn name_at(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len()))
}

/// What follows the index of an array, and whether there is one.
fn behind_index(text: &str) -> (bool, &str) {
    if !text.starts_with('[') {
        return (false, text);
    }
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (true, &text[at + 1..]);
        }
    }
    (true, "=")
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn l31_a_variable_that_is_run_and_set_without_an_assignment_hides() {
        for line in [
            "read -r CC <<< 'touch made;:'; export CC; make hello",
            "export CC; read -r CC <<< 'touch made;:'; make hello",
            "set -a; read -r CC < f; make hello",
            "IFS=: read -r x CC <<< 'a:touch made;#'; export CC; make hello",
            "read -a CC < f",
            "read -rp x -u 3 CC",
            "command read -r CC < f",
            "builtin -- read -r CC < f",
            "read -r \"$x\" < f",
            "mapfile -t CC < f",
            "readarray -n 1 BASH_ENV < f",
            "printf -v CC 'touch made;:'; export CC; make hello",
            "printf -vCC %s x",
            "printf -v $x y",
            "getopts a: CC",
            "wait -n -p PATH",
            "declare -n x=CC; x='touch made;:'; export CC; make hello",
            "local -n x=BASH_ENV",
            "x=CC=$(base64 -d f); export \"$x\"; make",
            "declare -x $x",
            "for CC in 'touch made;:'; do export CC; make hello; done",
            "for CC in $x; do export CC; make hello; done",
            "for CC; do make; done",
            "for PS4 in '$(touch made)'; do set -x; true; done",
            "read -r PS4 <<< '$(touch made)'; set -x; true",
            "printf -v PS4 '$(touch made)'; set -x; true",
            "unset PS4; : ${PS4:='$(touch made)'}; set -x; true",
            ": ${PS4=\"$x\"}",
            ": ${PS\\\n4:='$(touch made)'}",
            ": \"${BASH_ALIASES[touch]:=x}\"",
            "cat <<E\n${PS4:=`touch made`}\nE",
            ": <<< ${CC:='touch made;:'}",
            "read -r GIT_EDITOR <<< 'touch made;:'; export GIT_EDITOR; git commit",
            "read -r GIT_CONFIG_PARAMETERS <<< \"'alias.p=push'\"; export GIT_CONFIG_PARAMETERS; git p rem HEAD",
            "read -r LESSOPEN <<< '|touch made'; export LESSOPEN; less hi.txt | cat",
            "for PATH in /workspace/bin; do x; done",
            ": {PATH}>/dev/null",
            "bash -c 'read -r CC < f; export CC; make'",
        ] {
            assert!(analyse(line).hides, "{line}: {:?}", analyse(line));
        }
        for line in [
            "while read -r l; do echo \"$l\"; done < f",
            "while IFS= read -r line; do echo \"$line\"; done < f",
            "read -rp 'CC? ' answer",
            "for CC in gcc clang; do make CC=$CC; done",
            ": ${CC:=gcc}",
            ": \"${EDITOR:=cat}\"",
            "printf '%s' -v CC",
            "printf -v x %s y",
            "for f in *.txt; do wc -l \"$f\"; done",
            "export CC; make",
            "export A=$x B=\"$(date)\"; make",
            "unset CC HTTP_PROXY; make",
            "echo ${HOME:-x} ${PATH:+y} {a} {x}",
            "while getopts ab: opt; do echo $opt; done",
        ] {
            assert!(!analyse(line).hides, "{line}: {:?}", analyse(line));
        }
    }
}
