//! A real bash as the judge of what a line runs: no command exists for it, so each one it would start is told to us.

use crate::differential::{claimed, line};

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use portcullis_command::{analyse, read_only};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, TestRunner};

/// Lines that are drawn; about a fifth of them is read-only.
fn lines() -> usize {
    if std::env::var_os("PORTCULLIS_SOAK").is_some() { 40_000 } else { 2_000 }
}

/// Tells the words of every command in place of running it, for each line of the input: once as if all succeeded and
/// once as if all failed, so that both sides of `&&` and `||` are reached. `\1` ends a word, `\2` a command, `\3` a line.
const TELL: &str = r#"
exec 9>&1
set -f
PATH=/nonexistent
tell() {
  builtin local text
  builtin printf -v text '%s\1' "$@"
  builtin printf '%s\2' "$text" >&9
  builtin return "$ended"
}
command_not_found_handle() { tell "$@"; }
for name in $(compgen -b); do
  case $name in builtin) ;; *) builtin eval "$name() { tell '$name' \"\$@\"; }" ;; esac
done
while IFS= builtin read -r -d '' line; do
  for ended in 0 1; do
    ( builtin eval "$line"; builtin wait ) >/dev/null 2>&1 </dev/null
  done
  builtin printf '\3' >&9
done
"#;

type Argvs = BTreeSet<Vec<String>>;

/// What bash would run for each line.
fn told_by_bash(lines: &[String]) -> Vec<Argvs> {
    let place = tempfile::tempdir().expect("a folder");
    // What redirections of the lines read.
    std::fs::write(place.path().join("a"), "").expect("a file");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", TELL]).current_dir(place.path()).env_clear().env("LC_ALL", "C.UTF-8");
    bash.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut bash = bash.spawn().expect("bash, which every test of the shell needs too");
    let mut input = bash.stdin.take().expect("piped");
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\0"]).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = bash.wait_with_output().expect("an end");
    writer.join().expect("no panic").expect("it reads everything");
    let output = String::from_utf8(output.stdout).expect("whole characters");
    let ended = |text: &str, mark: char| text.split_terminator(mark).map(str::to_owned).collect::<Vec<_>>();
    let told: Vec<Argvs> = ended(&output, '\u{3}')
        .iter()
        .map(|line| ended(line, '\u{2}').iter().map(|argv| ended(argv, '\u{1}')).collect())
        .collect();
    assert_eq!(told.len(), lines.len(), "bash got through all lines");
    told
}

fn drawn(wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let lines = (0..lines()).map(|_| line().new_tree(&mut runner).expect("a line").current());
    lines.filter(|line| wanted(line)).collect()
}

#[test]
fn check34_what_is_called_read_only_is_what_bash_would_run() {
    let lines = drawn(|line| read_only(line).is_ok());
    assert!(lines.len() >= self::lines() / 20, "{} lines are too few to say anything", lines.len());
    for (line, told) in lines.iter().zip(told_by_bash(&lines)) {
        let ours = claimed(&read_only(line).expect("as before"));
        // A pattern over file names is not expanded here, and is any word.
        let fits = |ours: &[Option<String>], told: &[String]| {
            ours.len() == told.len()
                && ours.iter().zip(told).all(|(ours, told)| ours.as_ref().is_none_or(|o| o == told))
        };
        for argv in &told {
            assert!(ours.iter().any(|ours| fits(ours, argv)), "{line:?}: bash runs {argv:?}, we read {ours:?}");
        }
        for argv in &ours {
            assert!(told.iter().any(|told| fits(argv, told)), "{line:?}: we read {argv:?}, bash runs {told:?}");
        }
    }
}

#[test]
fn l32_bash_runs_nothing_that_a_clear_line_does_not_show() {
    let clear = |line: &str| analyse(line).opaque.is_empty() && !line.contains(['\u{1}', '\u{2}', '\u{3}', '\0']);
    let lines = drawn(clear);
    assert!(lines.len() >= self::lines() / 20, "{} lines are too few to say anything", lines.len());
    for (line, told) in lines.iter().zip(told_by_bash(&lines)) {
        let ours = analyse(line).commands;
        for argv in told {
            // Assignments before a command are kept with it; bash does not pass them on as words.
            let found = ours.iter().any(|ours| {
                let (before, words) = ours.split_at(ours.len().saturating_sub(argv.len()));
                words == argv && before.iter().all(|word| word.contains('='))
            });
            assert!(found, "{line:?}: bash runs {argv:?}, we found {ours:?}");
        }
    }
}

#[test]
fn l32_a_quote_behind_a_dollar_that_is_none_hides_no_command() {
    for line in [r"cat \$'\' ; rm x #'", r"cat $$'\' ; rm x #'", r"cat a\$'\'|rm x #'", r"cat \$'\' && rm x #'"] {
        let told = &told_by_bash(&[line.to_owned()])[0];
        assert!(told.iter().any(|argv| argv[0] == "rm"), "the line does hide one: {told:?}");
        assert!(read_only(line).is_err(), "{line}");
        let analysis = analyse(line);
        assert!(!analysis.opaque.is_empty(), "{line}");
        assert!(analysis.commands.iter().any(|argv| argv[0] == "rm"), "{line}: {analysis:?}");
    }
}
