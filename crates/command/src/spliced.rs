//! Variables that hold words of a command: `TF_CLI_ARGS=apply terraform` is `terraform apply`.
//!
//! Rules that forbid are compared with the command as the program puts it together. Variables that hold code instead are in
//! `program_variables.rs`.

use portcullis_base::OtherForm;

use super::unwrap::{base, is_assignment};
use super::{marks, verbs};

/// What the value of a variable is to the programs that read it.
#[derive(Clone, Copy)]
enum Holds {
    /// Words, parted by blanks.
    Words,
    /// The value of the option that its name ends with: `npm_config_dry_run` is `--dry-run`.
    OneOption,
}

/// Variables by name or beginning, the programs that read them, and what they hold.
const VARIABLES: &[(&str, &str, Holds)] = &[
    ("TF_CLI_ARGS*", "terraform tofu terragrunt", Holds::Words),
    ("MAVEN_ARGS", "mvn", Holds::Words),
    ("ANT_ARGS", "ant", Holds::Words),
    ("RAKEOPT", "rake", Holds::Words),
    ("SCONSFLAGS", "scons", Holds::Words),
    ("PYTEST_ADDOPTS", "pytest", Holds::Words),
    ("GUNICORN_CMD_ARGS", "gunicorn", Holds::Words),
    ("GOFLAGS", "go", Holds::Words),
    ("SPEC_OPTS", "rspec", Holds::Words),
    ("TAR_OPTIONS", "tar", Holds::Words),
    ("ZIPOPT", "zip", Holds::Words),
    ("UNZIP", "unzip", Holds::Words),
    ("PARALLEL", "parallel", Holds::Words),
    ("npm_config_*", "npm npx pnpm", Holds::OneOption),
    ("PIP_*", "pip", Holds::OneOption),
];

/// What a variable of this name holds, for whom, and the rest of its name behind a beginning.
fn held(name: &str) -> Option<(&'static str, Holds, String)> {
    VARIABLES.iter().find_map(|(pattern, programs, holds)| {
        let rest = match pattern.strip_suffix('*') {
            // npm takes its options in capitals and in small letters alike.
            Some(start) if matches!(holds, Holds::OneOption) => {
                name.to_ascii_lowercase().strip_prefix(&start.to_ascii_lowercase())?.to_owned()
            }
            Some(start) => name.strip_prefix(start)?.to_owned(),
            None => (name == *pattern).then(String::new)?,
        };
        Some((*programs, *holds, rest))
    })
}

/// The words that an assignment gives the programs of a family; none if it gives them nothing.
fn words_for(family: &str, assignment: &str) -> Vec<String> {
    let open = marks::of(assignment).is_some();
    let Some((name, value)) = marks::bare(assignment).split_once('=') else { return Vec::new() };
    let Some((programs, holds, rest)) = held(name.trim_end_matches('+')) else { return Vec::new() };
    if !programs.split_ascii_whitespace().any(|program| program == family) {
        return Vec::new();
    }
    match holds {
        Holds::Words if open => vec![marks::mark(value.to_owned(), marks::OpenExtent::Many)],
        Holds::Words => value.split_whitespace().map(|word| word.replace(['\'', '"'], "")).collect(),
        Holds::OneOption => vec![format!("--{}", rest.replace('_', "-")), value.to_owned()],
    }
}

/// The forms of a command with what the assignments of its line add to its words: before them and behind them.
pub(super) fn with_variables(argv: &[String], assignments: &[String]) -> Vec<OtherForm> {
    let Some(at) = argv.iter().position(|word| !is_assignment(word)) else { return Vec::new() };
    let (program, words) = (&argv[at..=at], &argv[at + 1..]);
    let family = verbs::family(base(marks::bare(&program[0])));
    let added = assignments.iter().map(|assignment| words_for(family, assignment)).filter(|words| !words.is_empty());
    let forms = added.flat_map(|added| {
        let option = added[0].starts_with("--") && words.iter().any(|word| word == "--");
        let behind = [program, words, &added].concat();
        [Some([program, &added, words].concat()), (!option).then_some(behind)]
    });
    forms.flatten().map(marks::taken_off).map(|(words, open)| OtherForm { words, open }).collect()
}

/// Every assignment of these commands whose value holds words of a command.
pub(super) fn assignments<'c>(commands: impl Iterator<Item = &'c Vec<String>>) -> Vec<String> {
    let telling = |word: &&String| {
        is_assignment(word) && word.split('=').next().is_some_and(|name| held(name.trim_end_matches('+')).is_some())
    };
    let mut out: Vec<String> = commands.flatten().filter(telling).cloned().collect();
    out.sort();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    #[test]
    fn words_that_a_variable_holds_are_words_of_the_command() {
        let forms = |line: &str| -> Vec<String> {
            analyse(line).linked.into_iter().flatten().map(|form| form.words.join(" ")).collect()
        };
        for line in [
            "TF_CLI_ARGS='apply -y' terraform",
            "export TF_CLI_ARGS='apply -y'; terraform",
            "env TF_CLI_ARGS='apply -y' terraform",
            "sudo TF_CLI_ARGS='apply -y' nice terraform",
            "bash -c 'TF_CLI_ARGS=\"apply -y\" terraform'",
            "TF_CLI_ARGS='apply -y'; export TF_CLI_ARGS; /usr/bin/terraform",
            "declare -x TF_CLI_ARGS='apply -y' && (terraform)",
        ] {
            let found = forms(line);
            assert!(found.iter().any(|form| form.ends_with("terraform apply -y")), "{line}: {found:?}");
        }
        for (line, form) in [
            ("MAVEN_ARGS=deploy mvn -B", "mvn deploy -B"),
            ("TF_CLI_ARGS_plan=-destroy terraform plan", "terraform plan -destroy"),
            ("NPM_CONFIG_DRY_RUN=false npm publish", "npm --dry-run false publish"),
            ("npm_config_global=true npm install x", "npm install x --global true"),
            ("PYTEST_ADDOPTS=--pdb pytest", "pytest --pdb"),
        ] {
            assert!(forms(line).contains(&form.to_owned()), "{line}: {:?}", forms(line));
        }
        // The control: another program does not read it.
        for line in ["TF_CLI_ARGS=apply make", "FOO=apply terraform", "terraform plan", "MAVEN_OPTS=deploy mvn"] {
            assert_eq!(forms(line), Vec::<String>::new(), "{line}");
        }
    }
}
