//! Check 34, the classification: what the read-only hand may run, and what it must refuse.

use crate::corpus;

use portcullis_base::Reason;
use portcullis_command::{Builtin, Joiner, ReadPlan, Redirection, Word, read_only};

/// Refused by the plan itself, or by its paths, seen from the workspace.
fn refused(line: &str) -> bool {
    read_only(line).map_or(true, |plan| plan.outside("/workspace", &["/workspace"]).is_some())
}

#[test]
fn check34_every_benign_row_is_read_only() {
    let wrong: Vec<_> = corpus::rows("commands-benign.tsv")
        .into_iter()
        .filter_map(|row| {
            let plan = read_only(&row.command);
            let inside = plan.as_ref().is_ok_and(|plan| plan.outside("/workspace", &["/workspace"]).is_none());
            (!inside).then(|| format!("{} {}: {plan:?}", row.id, row.command))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Only the tree can tell: a link that leads outside, and a file that is no file. Opening is confined.
const BY_OPENING: [(&str, &str); 3] = [("H288", "link_to_etc/passwd"), ("H291", "link_to_etc"), ("H334", "fifo")];

#[test]
fn check34_every_hostile_row_is_refused() {
    for row in corpus::rows("commands-hostile.tsv") {
        match BY_OPENING.iter().find(|(id, _)| *id == row.id) {
            None => assert!(refused(&row.command), "{} {}", row.id, row.command),
            Some((_, path)) => {
                let plan = read_only(&row.command).expect("it looks like any other file");
                let reads = plan.reads("/workspace");
                assert!(reads.iter().any(|named| named.raw == *path), "{}: {reads:?}", row.id);
            }
        }
    }
}

#[test]
fn check34_the_copy_of_the_corpus_is_the_shared_one() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/corpus");
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    if !std::path::Path::new(shared).exists() {
        return;
    }
    for file in ["commands-benign.tsv", "commands-hostile.tsv"] {
        let read = |folder: &str| std::fs::read(format!("{folder}/{file}")).expect(file);
        assert!(read(here) == read(shared), "{file} differs from {shared}: copy it anew");
    }
}

/// Lines that must go on working: an allow-list that refuses everything is no use to anybody.
const BENIGN: &[&str] = &[
    "ls -1A src",
    "ls src/*.rs",
    "ls -- -x",
    "ls 'a b' \"c d\"",
    "ls -la src | head -5",
    "cat a.txt b.txt",
    "cat < a.txt",
    "cat -- a",
    "head -n -5 a",
    "head -c1K a",
    "tail -n+5 a",
    "tail --lines 5 a",
    "sort -t, -k2,2nr a",
    "sort -t ';' -k 2 a",
    "cut -d ' ' -f 1,3- a",
    "tr -d '\\n'",
    "echo a | tr -cs a-z '\\n'",
    "grep -rn 'x y' src tests",
    "grep -e a -e b c",
    "grep -C3 x a",
    "grep -nA3 x a",
    "grep -rn --include '*.rs' x .",
    "grep -- -x a",
    "rg -n -g '!target' x",
    "rg -e x src",
    "rg --files --hidden src",
    "find . -type f -size +10k -mtime -7",
    "find . \\( -name a -o -name b \\) -print",
    "find . ! -name x",
    "find src tests -name '*.rs'",
    "find . -newer Cargo.toml",
    "sed -n 3,4p a b",
    "sed -n '7p' < a",
    "jq -r '.a[] | .b' a.json",
    "jq -c . < a.json",
    "test -e a && cat a",
    "[ -f a ] || echo no",
    "cd src && cd .. && ls",
    "ls 2>/dev/null | wc -l",
    "ls >/dev/null 2>&1",
    "ls &>/dev/null && echo yes",
    "2>/dev/null ls",
    "pwd;",
    "seq 5 -1 1",
    "date -u '+%Y %m'",
    "stat -c '%s %n' a",
    "du -sh *",
    "wc -l src/*.rs",
    "diff -u a b",
    "cmp -s a b && echo same",
    "cat HEAD~1.txt",
    "grep 'über' straße.txt",
    "echo 'don’t'",
    "xxd a",
    "uniq -c",
    "ls\n",
    "printf '%s %5d\\n' a 5",
    "cat .env.example",
    "ls -la .env",
    "test -f .env",
    "stat .env",
    "ls\t-la",
    "cat a\"b\"'c'",
    "env",
    "command -v cargo",
    "type ls",
    "ls [ab].txt",
    "true; true",
    "numfmt --to iec 5",
    "basename /a/b/c",
    "tree -ad -L 3",
    "od -An -tx1 a",
    "base64 -w0 a",
    "hexdump -n 16 -C a",
];

#[test]
fn check34_ordinary_lines_are_read_only() {
    for line in BENIGN {
        let plan = read_only(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(plan.outside("/workspace/sub", &["/workspace"]), None, "{line}");
    }
}

fn only(line: &str) -> portcullis_command::Stage {
    let plan = read_only(line).expect(line);
    plan.pipelines()[0].1.stages()[0].clone()
}

fn path_words(line: &str) -> Vec<String> {
    let args = only(line).args().to_vec();
    args.iter().filter(|arg| arg.is_path()).map(|arg| arg.word().shown().to_owned()).collect()
}

#[test]
fn check34_exactly_the_operands_are_paths() {
    for (line, paths) in [
        ("cat -n a b", vec!["a", "b"]),
        ("cat -- -odd", vec!["-odd"]),
        ("head -n 5 a", vec!["a"]),
        ("head a -n 5", vec!["a"]),
        ("sort -k 2 -t x a", vec!["a"]),
        ("grep -A 3 x a b", vec!["a", "b"]),
        ("grep -e x a b", vec!["a", "b"]),
        ("grep x -e y a", vec!["x", "a"]),
        ("rg --files a", vec!["a"]),
        ("rg -g a b c", vec!["c"]),
        ("find a b -newer c -name d", vec!["a", "b", "c"]),
        ("sed -n 1p a", vec!["a"]),
        ("jq -r . a", vec!["a"]),
        ("tr a b", vec![]),
        ("echo a b", vec![]),
        ("test -f a", vec!["a"]),
        ("[ -f a ]", vec!["a"]),
        ("du -d 1 a", vec!["a"]),
        ("tree -L 2 a", vec!["a"]),
        ("cd a", vec!["a"]),
        ("basename a/b", vec![]),
        ("ls *.rs 'x*'", vec!["*.rs", "x*"]),
    ] {
        assert_eq!(path_words(line), paths, "{line}");
    }
}

#[test]
fn check34_quoted_patterns_are_names_and_unquoted_ones_are_patterns() {
    let words: Vec<_> = only("ls *.rs '*.rs' \\*.rs a'*'?").args().iter().map(|arg| arg.word().clone()).collect();
    let glob = |word: &Word| matches!(word, Word::Glob(pattern) if !pattern.as_str().is_empty());
    assert_eq!(words.iter().map(glob).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(words[3].shown(), "a\\*?");
    assert_eq!(words[1], Word::Literal("*.rs".into()));
}

#[test]
fn check34_a_list_is_planned_as_written() {
    let plan = read_only("cd src && cat < a 2>&1 >/dev/null | wc -l || pwd; true").expect("all known");
    let joiners: Vec<_> =
        plan.pipelines().iter().map(|(joiner, pipeline)| (*joiner, pipeline.stages().len())).collect();
    use Joiner::{AfterFailure, AfterSuccess, Always};
    assert_eq!(joiners, [(Always, 1), (AfterSuccess, 2), (AfterFailure, 1), (Always, 1)]);
    let stages: Vec<_> = plan.pipelines().iter().flat_map(|(_, pipeline)| pipeline.stages()).collect();
    assert_eq!(stages[0].builtin(), Some(Builtin::Cd));
    assert_eq!(
        stages[1].redirections(),
        [Redirection::Stdin("a".into()), Redirection::StderrToStdout, Redirection::StdoutNull]
    );
    assert_eq!((stages[2].program(), stages[2].builtin()), ("wc", None));
    // The cd may have failed: both places may be read.
    let places: Vec<_> = plan.reads("/workspace").into_iter().map(|named| named.place).collect();
    assert_eq!(places, ["/workspace/src", "/workspace/a", "/workspace/src/a"]);
}

#[test]
fn check34_words_given_one_by_one_are_never_parsed() {
    let plan = |program: &str, args: &[&str]| {
        ReadPlan::from_argv(program, &args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    };
    let stage = plan("cat", &["a; rm b", "*"]).expect("two names").pipelines()[0].1.stages()[0].clone();
    assert!(stage.args().iter().all(|arg| arg.is_path() && arg.word().as_literal().is_some()));
    for (program, args) in [
        ("ls -la", &[][..]),
        ("sort", &["-o", "x", "a"]),
        ("uniq", &["a", "b"]),
        ("cd", &["src"]),
        ("sh", &["-c", "id"]),
        ("cat", &["\u{202e}a"]),
        ("cat", &["/etc/../dev/zero"]),
        ("", &[]),
        ("find", &[".", "-delete"]),
        ("cat", &[".env"]),
    ] {
        assert!(plan(program, args).is_err(), "{program} {args:?}");
    }
}

#[test]
fn check34_a_refusal_says_what_was_refused_and_what_to_do() {
    for (line, reason, what) in [
        ("sort -o x a", Reason::CommandNotAllowed, "`-o` of `-o`"),
        ("ls; touch x", Reason::CommandNotAllowed, "`touch` is not a program"),
        ("ls $HOME", Reason::CommandNotAllowed, "`$HOME` holds a variable"),
        ("ls > x", Reason::CommandNotAllowed, "the redirection `>x`"),
        ("ls 'a", Reason::CommandUnparseable, "cannot be parsed"),
        ("ls \u{1b}[2K", Reason::CommandUnparseable, "U+001B"),
        ("cat a；touch x", Reason::CommandUnparseable, "U+FF1B"),
        ("uniq a b", Reason::CommandNotAllowed, "one path at most"),
    ] {
        let why = read_only(line).expect_err(line);
        assert_eq!(why.reason, reason, "{line}");
        assert!(why.what.contains(what), "{line}: {why}");
    }
}

#[test]
fn check34_a_refusal_is_a_sentence_however_long_the_line_is() {
    for line in [
        format!("ls ${}", "x".repeat(60_000)),
        format!("{} a", "x".repeat(60_000)),
        format!("cat /{}", "é".repeat(20_000)),
    ] {
        let why =
            read_only(&line).map_or_else(Some, |plan| plan.outside("/workspace", &["/workspace"])).expect("refused");
        assert!(why.to_string().chars().count() < 500, "{} characters", why.to_string().len());
    }
}

/// GNU binutils take the words of a file in the place of `@FILE`.
#[test]
fn h03_no_word_stands_for_words_in_a_file() {
    for line in ["strings @.env", "strings a.bin @opts", "strings -- @x", "strings '@x'"] {
        assert!(read_only(line).is_err(), "{line}");
    }
    assert!(ReadPlan::from_argv("strings", &["@x".to_owned()]).is_err());
    assert!(read_only("strings ./@x").is_ok());
}

#[test]
fn check34_a_search_by_names_shows_no_secret_and_a_tail_ends() {
    for line in [
        "grep -rh . . --include=.env",
        "grep -r --include '*.env' API .",
        "rg --hidden -g .env .",
        "rg -gid_rsa S",
        "rg --glob=**/.netrc x",
        "tail +1f a.txt",
        "tail -- +f",
    ] {
        assert!(read_only(line).is_err(), "{line}");
    }
    for line in
        ["grep -rn --include='*.rs' fn src", "rg -g '*.toml' name", "rg -g '!.env' x", "tail +3 a.txt", "tail -n +3 a"]
    {
        assert!(read_only(line).is_ok(), "{line}: {:?}", read_only(line));
    }
}
