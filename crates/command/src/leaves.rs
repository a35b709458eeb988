//! What a line may leave behind in the shell that runs it, so that a later word of it means something else: a function, an
//! alias, a trap, a remembered path, another `PATH`.
//!
//! A shell cannot be asked afterwards: a function of it can lie about every other one. So the line is judged before it
//! runs, by its text alone, and what is not understood counts. A program that is started is a process of its own and
//! cannot change the shell; nor can a subshell or a part of a pipeline. Every text that the shell itself expands is looked
//! at, wherever it stands: words, redirections, here-documents, patterns, indices and arithmetic.

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, IoFileRedirectTarget, IoRedirect, Pipeline, RedirectList, SimpleCommand,
};

use super::builtin_effects::{argv_leaves, brief, variable};
use super::marks::{self, OpenExtent};
use super::parse::parse;
use super::raw_word::unquoted;
use super::setters::{self, SetVariable};
use super::vars::Vars;
use super::word::{self, Word};
use super::{builtin, folders, screen};

/// Why later words of the shell that runs `line` may mean something else, as the end of a sentence; `None` if they mean
/// what they meant before.
#[must_use]
pub fn leaves(line: &str) -> Option<String> {
    if screen::deceptive(line).is_some() {
        return Some("holds characters that deceive a reader".to_owned());
    }
    if folders::runs_within(line) {
        return Some("runs a substitution in the shell itself".to_owned());
    }
    let Ok(program) = parse(line) else { return Some("is not understood".to_owned()) };
    let mut shell = RunningShell::default();
    program.complete_commands.iter().for_each(|list| shell.list(list));
    shell.why.or_else(|| shell.vars.hide().then(|| "evaluates what it does not set to a number".to_owned()))
}

/// The shell while it runs a line.
#[derive(Default)]
struct RunningShell {
    /// The first reason that was found.
    why: Option<String>,
    /// What it knows of variables that it evaluates.
    vars: Vars,
}

impl RunningShell {
    fn found(&mut self, why: Option<String>) {
        self.why = self.why.take().or(why);
    }

    fn list(&mut self, commands: &CompoundList) {
        for item in &commands.0 {
            let AndOrList { first, additional } = &item.0;
            let more = additional.iter().map(|next| match next {
                AndOr::And(pipeline) | AndOr::Or(pipeline) => pipeline,
            });
            std::iter::once(first).chain(more).for_each(|pipeline| self.pipeline(pipeline));
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        // Each part of a longer one is a subshell.
        if let [alone] = pipeline.seq.as_slice() {
            self.command(alone);
        }
    }

    fn command(&mut self, one: &Command) {
        match one {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.redirects(redirects.as_ref());
                self.compound(compound);
            }
            Command::Function(function) => {
                self.found(Some(format!("defines the function `{}`", brief(function.fname.as_ref()))));
            }
            Command::ExtendedTest(test, redirects) => {
                self.text(&test.to_string());
                self.vars.compare(&test.to_string());
                self.redirects(redirects.as_ref());
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => self.arithmetic(&arithmetic.expr.value),
            CompoundCommand::ArithmeticForClause(clause) => {
                let parts = [&clause.initializer, &clause.condition, &clause.updater];
                parts.into_iter().flatten().for_each(|part| self.arithmetic(&part.value));
                self.list(&clause.body.list);
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(_) => {}
            CompoundCommand::Coprocess(coprocess) => {
                let name = coprocess.name.as_ref().map(|name| name.value.as_str());
                self.found(name.and_then(variable));
            }
            CompoundCommand::ForClause(clause) => {
                self.found(variable(&clause.variable_name));
                let values = clause.values.as_ref().map(|all| all.iter().map(|value| value.value.as_str()));
                values.clone().into_iter().flatten().for_each(|value| self.text(value));
                self.vars.each(&clause.variable_name, values);
                self.list(&clause.body.list);
            }
            CompoundCommand::CaseClause(clause) => {
                self.text(&clause.value.value);
                for case in &clause.cases {
                    case.patterns.iter().for_each(|pattern| self.text(&pattern.value));
                    case.cmd.iter().for_each(|list| self.list(list));
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list));
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let mut words = Vec::new();
        for item in prefix.clone() {
            if let Item::AssignmentWord(assignment, text) = item {
                words.push(text.value.as_str());
                self.assigns(assignment);
                // In front of a program it holds for that program alone.
                if simple.word_or_name.is_none() {
                    self.found(variable(name_of(assignment)));
                }
            }
        }
        let program = words.len();
        words.extend(simple.word_or_name.iter().map(|name| name.value.as_str()));
        for item in suffix.clone() {
            match item {
                Item::AssignmentWord(assignment, text) => {
                    self.assigns(assignment);
                    words.push(&text.value);
                }
                Item::Word(text) => words.push(&text.value),
                Item::IoRedirect(_) | Item::ProcessSubstitution(..) => {}
            }
        }
        words.iter().for_each(|text| self.text(text));
        let read = |raw: &&str| literal(raw).unwrap_or_else(|| marks::mark(unquoted(raw), OpenExtent::One));
        let argv: Vec<String> = words.iter().map(read).collect();
        self.vars.command(&argv);
        setters::by_command(&argv).iter().for_each(|set| self.found(set_by(set)));
        if let Some(raw) = words.get(program).filter(|raw| literal(raw).is_none()) {
            self.found(Some(format!("runs `{}`, whose name is not written out", brief(raw))));
        }
        // Of an assignment that is not literal its name is.
        let name = |raw: &str| literal(raw.split_once('=')?.0).map(|name| name + "=");
        let words: Vec<Option<String>> =
            words[program..].iter().map(|raw| literal(raw).or_else(|| name(raw))).collect();
        self.found(argv_leaves(&words));
        let builtin = builtin::behind_prefixes(&words).map_or(argv.len(), |rest| argv.len() - rest.len());
        self.found(evaluates(&argv[builtin..]));
        // A program opens its files in a process of its own.
        let starts = matches!(words.first(), Some(Some(name)) if !builtin::is_builtin(name));
        if !starts {
            let redirects = prefix.chain(suffix);
            redirects.for_each(|item| {
                if let Item::IoRedirect(redirect) = item {
                    self.redirect(redirect)
                }
            });
        }
    }

    /// The indices of what is assigned are arithmetic.
    fn assigns(&mut self, assignment: &Assignment) {
        if let AssignmentName::ArrayElementName(_, index) = &assignment.name {
            self.arithmetic(index);
        }
        if let AssignmentValue::Array(items) = &assignment.value {
            items.iter().filter_map(|(index, _)| index.as_ref()).for_each(|index| self.arithmetic(&index.value));
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) {
        redirects.iter().flat_map(|list| &list.0).for_each(|redirect| self.redirect(redirect));
    }

    fn redirect(&mut self, redirect: &IoRedirect) {
        match redirect {
            IoRedirect::File(_, _, IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word))
            | IoRedirect::OutputAndError(word, _)
            | IoRedirect::HereString(_, word) => self.text(&word.value),
            IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_) | IoFileRedirectTarget::ProcessSubstitution(..)) => {}
            IoRedirect::HereDocument(_, document) if document.requires_expansion => self.text(&document.doc.value),
            IoRedirect::HereDocument(..) => {}
        }
    }

    fn arithmetic(&mut self, text: &str) {
        self.text(text);
        self.vars.evaluate(text);
    }

    /// Any text that the shell expands.
    fn text(&mut self, raw: &str) {
        setters::by_expansion(raw).iter().for_each(|set| self.found(set_by(set)));
        if self.vars.expand(raw) {
            self.found(Some("takes the name or the text of a variable from another one".to_owned()));
        }
    }
}

fn name_of(assignment: &Assignment) -> &str {
    match &assignment.name {
        AssignmentName::VariableName(name) | AssignmentName::ArrayElementName(name, _) => name,
    }
}

/// Why a variable that is set without an assignment changes the shell, if so.
fn set_by(set: &SetVariable) -> Option<String> {
    match &set.name {
        Some(name) => variable(name),
        None => Some("sets a variable whose name is not written out".to_owned()),
    }
}

/// Whether a builtin evaluates an index among its words.
fn evaluates(argv: &[String]) -> Option<String> {
    let (name, words) = argv.split_first()?;
    builtin::hidden(name, words).map(|_| format!("evaluates a word of `{}`", brief(name)))
}

fn literal(raw: &str) -> Option<String> {
    match word::read(raw) {
        Ok(Word::Literal(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::leaves;

    #[test]
    fn l31_what_can_change_the_meaning_of_a_later_word_is_found() {
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
            // Texts beside the words.
            ": <<< ${BASH_ALIASES[touch]:=/usr/bin/touch evil #}",
            ": <<E\n${BASH_ALIASES[touch]:=/usr/bin/touch evil #}\nE",
            ": > \"/tmp/${BASH_ALIASES[touch]:=x; /usr/bin/touch evil #}\"",
            ": 2>/tmp/${BASH_CMDS[touch]:=2}",
            ": &> /tmp/${BASH_CMDS[touch]:=2}",
            ": >&/tmp/${BASH_CMDS[touch]:=2}",
            "{ :; } <<< ${BASH_CMDS[touch]:=/workspace/2}",
            "[ -f hi.txt ] <<< ${BASH_CMDS[touch]:=/workspace/2}",
            "[[ -f hi.txt ]] <<< ${BASH_CMDS[touch]:=/workspace/2}",
            "[[ ${PS4:=x} ]]",
            "while read -r x; do :; done <<< ${BASH_CMDS[touch]:=/workspace/2}",
            "case x in ${PS4:=x}) ;; esac",
            "case ${PS4:=x} in x) ;; esac",
            "for ((i=${PS4:=0}; i<1; i++)); do :; done",
            "> ${PS4:=x}",
            "y=touch; : ${BASH_CMDS[${y[0]}]:=/workspace/2}",
            ": ${BASH_CMDS[\"touch\"]:=/workspace/2}",
            ": ${PS\\\n4:=x}",
            ": <<< \"${PROMPT_COMMAND:=touch made}\"",
            "${ alias git=x; }",
            // Options before a builtin.
            "command -p eval 'touch() { :; }'",
            "command -p . ./lib.sh",
            "command -- . ./lib.sh",
            "builtin -- source ./lib.sh",
            "command -- alias touch=x",
            "command -p builtin -- hash -p /workspace/2 touch",
            "command -- export PATH=/workspace/bin",
            "command $x touch=y",
            // Arithmetic.
            "((PATH=1))",
            "((BASH_CMDS[touch]=2))",
            "((BASH_CMDS[touch]=2)) && true",
            "let 'BASH_CMDS[touch]=2'",
            "let \"$x\"",
            ": $((BASH_CMDS[touch]=2))",
            "A=$((BASH_CMDS[touch]=2))",
            "A=$((BASH_CMDS[touch]=2)) true",
            "export A=$((BASH_CMDS[touch]=2))",
            "echo \"$[BASH_CMDS[touch]=2]\" > /dev/null",
            "x='BASH_CMDS[touch]=2'; ((x))",
            "x='PATH=1'; echo $((x))",
            "x='PATH=1'; [[ $x -eq 1 ]]",
            "x=abc; echo ${x:PATH=1}",
            "a[PATH=1]=x",
            "a=([PATH=1]=x)",
            "unset 'a[PATH=1]'",
            "command -p unset 'a[PATH=1]'",
            "read 'a[PATH=1]' < x",
            "test -v 'a[PATH=1]'",
            "declare -i x='PATH=1'",
            "for ((PATH=1;0;)); do :; done",
            "read RANDOM <<< 'BASH_CMDS[touch]=2'",
            "RANDOM=$x",
            // Builtins that nothing is said of.
            "compgen -W $'\\x24{BASH_CMDS[touch]:=/workspace/2}'",
            "compgen -F f",
            "fc -s",
            "history -s x",
            // Names that are set in other ways.
            "coproc PATH { sleep 1; }",
            "exec {PATH}>/dev/null",
            ": {BASH_CMDS[touch]}>/dev/null",
            "wait -n -p PATH",
            "getopts x PATH",
            "read -r PS4 <<< '$(touch made)'",
            "echo \"${x@P}\"",
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
            "export FOO=$bar BAZ=\"$(date)\"",
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
            "i=0; while ((i < 3)); do ((i++)); done",
            "for i in 1 2; do echo $((i + 1)); done",
            "[[ $x =~ (a) ]] && echo ${BASH_REMATCH[1]}",
            "cat > run.sh <<E\necho $((n + 1)) ${PS4:=x}\nE",
            "make > log 2>&1; tail log",
            "while IFS= read -r l; do echo \"$l\"; done < f",
            "command -pv git; command -V git",
            "command -p ls",
            "(cd x && n=$((m + 1)))",
            "while getopts ab: o; do echo $o; done",
            "SECONDS=0; make; echo $SECONDS",
            "echo x >> .gitignore && git add -A && git commit -m y",
        ] {
            assert_eq!(leaves(line), None, "{line}");
        }
    }
}
