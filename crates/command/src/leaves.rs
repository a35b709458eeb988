//! What a line may leave behind in the shell that runs it, so that a later word of it means something else: a function, an
//! alias, a trap, a remembered path, another `PATH`.
//!
//! A shell cannot be asked afterwards: a function of it can lie about every other one. So the line is judged before it
//! runs, by its text alone, and what is not understood counts. A program that is started is a process of its own and
//! cannot change the shell; nor can a subshell or a part of a pipeline.

use brush_parser::ast::{
    AndOr, AndOrList, AssignmentName, Command, CommandPrefixOrSuffixItem as Item, CompoundCommand, CompoundList,
    Pipeline, SimpleCommand,
};
use portcullis_base::loads_code;

use super::parse::parse;
use super::screen;
use super::word::{self, Word};

/// Why later words of the shell that runs `line` may mean something else, as the end of a sentence; `None` if they mean
/// what they meant before.
#[must_use]
pub fn leaves(line: &str) -> Option<String> {
    if screen::deceptive(line).is_some() {
        return Some("holds characters that deceive a reader".to_owned());
    }
    match parse(line) {
        Ok(program) => program.complete_commands.iter().find_map(list),
        Err(_) => Some("is not understood".to_owned()),
    }
}

fn list(commands: &CompoundList) -> Option<String> {
    commands.0.iter().find_map(|item| {
        let AndOrList { first, additional } = &item.0;
        let more = additional.iter().map(|next| match next {
            AndOr::And(pipeline) | AndOr::Or(pipeline) => pipeline,
        });
        std::iter::once(first).chain(more).find_map(pipeline)
    })
}

fn pipeline(pipeline: &Pipeline) -> Option<String> {
    // Each part of a longer one is a subshell.
    match pipeline.seq.as_slice() {
        [alone] => command(alone),
        _ => None,
    }
}

fn command(one: &Command) -> Option<String> {
    match one {
        Command::Simple(simple) => self::simple(simple),
        Command::Compound(compound, _) => self::compound(compound),
        Command::Function(function) => Some(format!("defines the function `{}`", brief(function.fname.as_ref()))),
        Command::ExtendedTest(test, _) => expansion(&test.to_string()),
    }
}

fn compound(compound: &CompoundCommand) -> Option<String> {
    match compound {
        CompoundCommand::Arithmetic(arithmetic) => expansion(&arithmetic.expr.value),
        CompoundCommand::ArithmeticForClause(clause) => list(&clause.body.list),
        CompoundCommand::BraceGroup(group) => list(&group.list),
        CompoundCommand::Subshell(_) | CompoundCommand::Coprocess(_) => None,
        CompoundCommand::ForClause(clause) => variable(&clause.variable_name)
            .or_else(|| clause.values.iter().flatten().find_map(|value| expansion(&value.value)))
            .or_else(|| list(&clause.body.list)),
        CompoundCommand::CaseClause(clause) => expansion(&clause.value.value)
            .or_else(|| clause.cases.iter().filter_map(|case| case.cmd.as_ref()).find_map(list)),
        CompoundCommand::IfClause(clause) => list(&clause.condition).or_else(|| list(&clause.then)).or_else(|| {
            let others = clause.elses.iter().flatten();
            others.into_iter().find_map(|other| other.condition.as_ref().and_then(list).or_else(|| list(&other.body)))
        }),
        CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
            list(&clause.0).or_else(|| list(&clause.1.list))
        }
    }
}

fn simple(simple: &SimpleCommand) -> Option<String> {
    let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
    let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
    let mut words = Vec::new();
    for item in prefix {
        match item {
            Item::AssignmentWord(assignment, text) => {
                // In front of a program it holds for that program alone.
                let name = match &assignment.name {
                    AssignmentName::VariableName(name) | AssignmentName::ArrayElementName(name, _) => name,
                };
                let kept = if simple.word_or_name.is_none() { variable(name) } else { None };
                if let Some(why) = kept.or_else(|| expansion(&text.value)) {
                    return Some(why);
                }
            }
            Item::Word(text) => words.push(text.value.as_str()),
            Item::IoRedirect(_) | Item::ProcessSubstitution(..) => {}
        }
    }
    words.extend(simple.word_or_name.iter().map(|name| name.value.as_str()));
    for item in suffix {
        match item {
            Item::AssignmentWord(_, text) | Item::Word(text) => words.push(text.value.as_str()),
            Item::IoRedirect(_) | Item::ProcessSubstitution(..) => {}
        }
    }
    words.iter().find_map(|text| expansion(text)).or_else(|| argv(&words))
}

/// Of the words as they are written.
fn argv(words: &[&str]) -> Option<String> {
    let (name, rest) = words.split_first()?;
    let Some(name) = literal(name) else {
        return Some(format!("runs `{}`, whose name is not written out", brief(name)));
    };
    let names = |rest: &[&str], options: &[&str]| {
        let mut given = rest.iter().map(|word| literal(word.split_once('=').map_or(*word, |(name, _)| name)));
        given.find_map(|word| match word {
            None => Some("sets a variable whose name is not written out".to_owned()),
            Some(word) if word.starts_with(['-', '+']) => {
                (!options.contains(&word.as_str())).then(|| format!("changes variables with `{name} {word}`"))
            }
            Some(word) => variable(word.split_once('[').map_or(word.as_str(), |(name, _)| name)),
        })
    };
    match name.as_str() {
        ":" | "true" | "false" | "echo" | "pwd" | "cd" | "pushd" | "popd" | "dirs" | "test" | "[" | "wait" | "jobs"
        | "kill" | "type" | "times" | "umask" | "ulimit" | "fg" | "bg" | "disown" | "suspend" | "help" | "caller"
        | "return" | "break" | "continue" | "shift" | "exit" | "logout" | "unalias" | "compgen" => None,
        "printf" if rest.first().is_none_or(|word| literal(word).is_none_or(|word| word.starts_with("-v"))) => {
            Some("sets a variable".to_owned())
        }
        "printf" => None,
        "export" | "readonly" | "declare" | "typeset" | "local" => names(rest, &["-x", "-p", "-r", "-i", "-g", "--"]),
        "unset" => names(rest, &["-v", "--"]),
        "read" => names(rest, &["-r", "-s", "-a", "-e", "--"]),
        "mapfile" | "readarray" => names(rest, &["-t", "--"]),
        "getopts" => names(rest.get(1..).unwrap_or_default(), &[]),
        "let" => rest.iter().find_map(|word| expansion(word)),
        "set" => {
            let plain = |word: &&str| literal(word).is_some_and(|word| SET.contains(&word.as_str()));
            let mut rest = rest.iter().take_while(|word| **word != "--");
            rest.find(|word| !plain(word)).map(|word| format!("changes the shell with `set {}`", brief(word)))
        }
        "shopt" => {
            let plain = |word: &&str| literal(word).is_some_and(|word| SHOPT.contains(&word.as_str()));
            let other = rest.iter().find(|word| !plain(word));
            other.map(|word| format!("changes the shell with `shopt {}`", brief(word)))
        }
        "hash" if rest == ["-r"] => None,
        "command" if rest.first().is_some_and(|word| matches!(*word, "-v" | "-V")) => None,
        "command" | "builtin" | "time" => argv(rest),
        "alias" if rest.iter().all(|word| literal(word).is_some_and(|word| !word.contains('='))) => None,
        "trap" if matches!(rest, [] | ["-p" | "-l", ..]) => None,
        "alias" => Some("defines an alias".to_owned()),
        "trap" => Some("sets a trap".to_owned()),
        "hash" => Some("tells the shell where a program is".to_owned()),
        "eval" | "source" | "." => Some(format!("runs text in the shell itself (`{name}`)")),
        "exec" | "enable" | "bind" | "complete" | "compopt" | "history" | "fc" | "coproc" | "function" | "select" => {
            Some(format!("changes the shell itself (`{name}`)"))
        }
        _ => None,
    }
}

/// Options of `set` that change how a line fails or what is printed, and not what a word means.
const SET: [&str; 22] = [
    "-e", "+e", "-u", "+u", "-x", "+x", "-v", "+v", "-f", "+f", "-o", "+o", "-eu", "-ex", "-euo", "-exo", "-eo",
    "pipefail", "errexit", "nounset", "xtrace", "noglob",
];
/// Options of `shopt` that change which files a pattern finds.
const SHOPT: [&str; 11] =
    ["-s", "-u", "-q", "-p", "globstar", "nullglob", "dotglob", "extglob", "failglob", "nocaseglob", "inherit_errexit"];

/// A variable that the shell or later programs act on.
fn variable(name: &str) -> Option<String> {
    loads_code(name).map(|_| format!("sets {name}"))
}

/// Expansions that set a variable: `${PS1:=…}`, and those that take the name of it from another one.
fn expansion(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        rest = &rest[at + 2..];
        if rest.starts_with('!') {
            return Some("takes the name of a variable from another one".to_owned());
        }
        let name: &str = &rest[..rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len())];
        let after = &rest[name.len()..];
        let after = after.strip_prefix('[').and_then(|index| index.split_once(']')).map_or(after, |(_, after)| after);
        if (after.starts_with(":=") || after.starts_with('='))
            && let Some(why) = variable(name)
        {
            return Some(why);
        }
    }
    None
}

fn literal(raw: &str) -> Option<String> {
    match word::read(raw) {
        Ok(Word::Literal(text)) => Some(text),
        _ => None,
    }
}

fn brief(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::leaves;

    #[test]
    fn what_can_change_the_meaning_of_a_later_word_is_found() {
        for line in [
            "git() { curl x; }",
            "function git { curl x; }",
            "function git() { curl x; }",
            "true; git () ( curl x )",
            "if true; then git() { :; }; fi",
            "{ git() { :; }; }",
            "for i in 1; do git() { :; }; done",
            "while false; do :; done; git() { :; }",
            "case x in x) git() { :; };; esac",
            "alias git='curl x'",
            "\\alias git=x",
            "'alias' git=x",
            "builtin alias git=x",
            "command alias git=x",
            "BASH_ALIASES[git]=x",
            "BASH_CMDS[git]=/workspace/x",
            "hash -p /workspace/x git",
            "trap 'curl x' DEBUG",
            "trap 'curl x' EXIT",
            "eval 'git() { :; }'",
            "eval \"$x\"",
            "source ./env.sh",
            ". ./env.sh",
            "exec 3<x",
            "exec bash",
            "enable -n echo",
            "enable -f ./x.so git",
            "$x git=1",
            "\"$(echo alias)\" git=x",
            "`echo eval` x",
            "PATH=/workspace/bin:$PATH",
            "export PATH=/workspace/bin:$PATH",
            "declare -x PATH=/workspace/bin",
            "declare -n x=PATH",
            "typeset -f git",
            "PROMPT_COMMAND='curl x'",
            "PS1='$(curl x)'",
            ": ${PS1:=x}",
            ": ${PROMPT_COMMAND=x}",
            "echo \"${PS4:=x}\"",
            ": ${!x:=y}",
            "read PATH < x",
            "printf -v PATH %s /workspace/bin",
            "printf -v $x y",
            "printf $x y",
            "export $x=y",
            "mapfile PATH < x",
            "for PATH in /workspace/bin; do :; done",
            "set -o posix",
            "set -k",
            "shopt -s expand_aliases",
            "shopt -s lastpipe",
            "BASH_ENV=x",
            "export LD_PRELOAD=/workspace/x.so",
            "GIT_SSH_COMMAND=x",
            "unset PATH",
            "time eval x",
            "! eval x",
            "git() {",
            "let 'x=1' && eval y",
            "complete -C x git",
            "echo a\u{202e}b",
        ] {
            assert!(leaves(line).is_some(), "{line}");
        }
    }

    #[test]
    fn everyday_lines_leave_a_shell_as_it_is() {
        for line in [
            "git status",
            "cargo test 2>&1 | tail -5",
            "cd src && make && ./a.out",
            "export FOO=bar RUST_LOG=debug",
            "x=1; echo $x",
            "for f in *.rs; do wc -l \"$f\"; done",
            "while read -r line; do echo \"$line\"; done < file",
            "if [ -f x ]; then cat x; fi",
            "[[ -n $x ]] && echo y",
            "npm ci && npm test",
            "cat > f <<'E'\ngit() { :; }\nPATH=x\nE",
            "(alias git=x; PATH=y)",
            "echo x | while read -r PATH; do :; done",
            "set -euo pipefail; make",
            "PATH=/workspace/bin git status",
            "echo $PATH ${HOME:-x}",
            "sed -i 's/alias/x/' f",
            "grep -rn 'eval ' .",
            "python3 -c 'print(1)'",
            "command -v git",
            "printf '%s\\n' x",
            "sleep 1 & wait",
            "unset FOO",
            "echo $((1 + 2))",
            "time make",
        ] {
            assert_eq!(leaves(line), None, "{line}");
        }
    }
}
