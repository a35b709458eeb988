//! Check 34, the classification: what the read-only hand may run, and what it must refuse.

mod corpus;

use portcullis_base::Reason;
use portcullis_policy::command::{Builtin, Joiner, ReadPlan, Redirection, Word, read_only};

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
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    if !std::path::Path::new(shared).exists() {
        return;
    }
    for file in ["commands-benign.tsv", "commands-hostile.tsv"] {
        let read = |folder: &str| std::fs::read(format!("{folder}/{file}")).expect(file);
        assert!(read(here) == read(shared), "{file} differs from {shared}: copy it anew");
    }
}

/// For every program of the table at least three lines that it must not be run with.
const HOSTILE: &[&str] = &[
    "pwd -P; touch x",
    "pwd /etc",
    "pwd --help x",
    "env touch x",
    "env A=b",
    "env -0",
    "env -",
    "true x",
    "true --help > f",
    "true && touch x",
    "whoami --version x",
    "whoami root",
    "whoami -x",
    "id root",
    "id -u",
    "id -Z",
    "nproc --all",
    "nproc 1",
    "nproc --ignore=1",
    "arch x",
    "arch --help",
    "arch -x",
    "uname -n",
    "uname -ax",
    "uname --all=x",
    "uname x",
    "date -r a.txt",
    "date -f a.txt",
    "date --file=a.txt",
    "date --date=x",
    "date -us 2001-01-01",
    "date +%F -s x",
    "date -- 010100002001",
    "date +%F +%T",
    "date --ut",
    "date +%99999999Y",
    "echo -e '\\x41'",
    "echo -ne x",
    "echo -nE x",
    "echo x > y",
    "echo ~",
    "echo {a,b}",
    "echo $HOME",
    "printf -v x y",
    "printf",
    "printf '%999999d' 1",
    "printf '%*d' 999999 1",
    "printf '%-*d' 9 1",
    "printf *.txt",
    "seq 100002",
    "seq 1 0 5",
    "seq 1 0.00001 2",
    "seq -f %g 1 2",
    "seq -s x 1 2",
    "seq inf",
    "seq 1e9",
    "seq 0x10",
    "seq 1 2 3 4",
    "seq -- 1 2",
    "seq",
    "expr *",
    "expr $a",
    "expr `id`",
    "numfmt --to=x 1",
    "numfmt --format=%f 1",
    "numfmt --field=1 x",
    "numfmt -d x 1",
    "numfmt --header 1",
    "basename -a a b",
    "basename a b c",
    "basename -s x y",
    "basename --suffix=x y",
    "dirname -z a",
    "dirname --zero a",
    "dirname *",
    "ls -la --hyperlink",
    "ls -F",
    "ls -L",
    "ls --color=always",
    "ls -lZ",
    "ls -lH",
    "ls --time-style=+%s",
    "ls -I x",
    "stat -f a",
    "stat --printf=%n a",
    "stat -c%99999n a",
    "stat --cached=never a",
    "readlink -f a",
    "readlink -e a",
    "readlink -nf a",
    "realpath -s a",
    "realpath --relative-to=/ a",
    "realpath -z a",
    "du -L a",
    "du --files0-from=a",
    "du -X a",
    "du --exclude-from=a",
    "du -d x a",
    "df --output",
    "df -t x",
    "df --sync",
    "file -C",
    "file -m magic a",
    "file -f names",
    "file -z a",
    "file -Z a",
    "file -bz a",
    "file --magic-file=x a",
    "file -s a",
    "file --files-from x",
    "tree -o x",
    "tree -R",
    "tree --fromfile a",
    "tree -H . -o x",
    "tree -adL2 -o x",
    "tree --gitfile=x",
    "tree -L x",
    "test -v 'a[$(id)]'",
    "test -t 1",
    "test -e a -o -e b",
    "test a = b",
    "test -f *",
    "test",
    "test -ef a b",
    "[ -f a",
    "[ -f a ] b",
    "[ -f ]",
    "[ -v x ]",
    "[ a -nt b ]",
    "cat -v a",
    "cat -nT a",
    "cat --number=1 a",
    "cat --numbe a",
    "cat a - > b",
    "cat a -e",
    "cat /dev/stdin",
    "cat /dev/fd/0",
    "cat .env.local",
    "cat < .env",
    "cat ../x",
    "nl -ba a",
    "nl -d x a",
    "nl --body-numbering=a a",
    "tac -s x a",
    "tac -r a",
    "tac --separator=x a",
    "rev -V",
    "rev -0 a",
    "rev --zero a",
    "head -v a",
    "head -z a",
    "head -qn5 a",
    "head --lines a",
    "head -n a",
    "head -n '5;id' a",
    "head --line=5 a",
    "head -5c a",
    "tail -f a",
    "tail -n5 -f a",
    "tail -F a",
    "tail --follow a",
    "tail --pid=1 a",
    "tail -5f a",
    "tail --retry a",
    "tail -s 1 a",
    "wc -L a",
    "wc --files0-from=a",
    "wc --files0-from a",
    "wc -lL a",
    "wc --total=never a",
    "fold -w x a",
    "fold -b a",
    "fold --width a",
    "cut -f1 --output-delimiter=x a",
    "cut -z -f1 a",
    "cut -f '1;id' a",
    "cut --complement -f1 a",
    "cut -n -b1 a",
    "sort -ro x a",
    "sort a -ox",
    "sort -T /tmp a",
    "sort --temporary-directory=x a",
    "sort -m a",
    "sort --files0-from a",
    "sort --random-source=a",
    "sort -R a",
    "sort -c a",
    "sort --parallel=9 a",
    "sort -k 1 -o a b",
    "sort -S 1b a",
    "sort --batch-size=2 a",
    "sort --outpu=x a",
    "sort -nk2o x a",
    "uniq a b",
    "uniq -c a b",
    "uniq a -- b",
    "uniq -- a b",
    "uniq - x",
    "uniq *",
    "uniq -f 1 a",
    "uniq --group a",
    "uniq -D a",
    "comm --output-delimiter=x a b",
    "comm -z a b",
    "comm --total a b",
    "comm a b c",
    "join -t x a b",
    "join -o 1.1 a b",
    "join --header a b",
    "join a b c",
    "tr -t a b",
    "tr a b c",
    "tr * x",
    "tr --truncate-set1 a b",
    "tr -C a b",
    "od -S 3 a",
    "od --traditional a",
    "od -w a",
    "od -tx1 --width=99 a",
    "od -N x a",
    "od -v a",
    "xxd a b",
    "xxd -r a b",
    "xxd -r a",
    "xxd -l 5 a",
    "xxd *",
    "xxd - b",
    "hexdump -f x a",
    "hexdump -e '\"%x\"' a",
    "hexdump -Cf x a",
    "hexdump -n x a",
    "strings -f a",
    "strings -n 5 a",
    "strings -T x a",
    "strings @a b --target=x",
    "base64 -o x a",
    "base64 -i a",
    "base64 --decod a",
    "base64 a b",
    "base64 -dw x a",
    "md5sum -c a",
    "md5sum --check a",
    "md5sum --chec a",
    "md5sum -z a",
    "sha256sum -c a",
    "sha256sum --check a",
    "sha256sum a -c",
    "sha256sum --tag a",
    "diff --to-file=a b",
    "diff --from-file=a b c",
    "diff -l a b",
    "diff -X x a b",
    "diff --exclude-from=x a b",
    "diff -D x a b",
    "diff --output=x a b",
    "diff a b c",
    "diff -uN a b",
    "diff --paginate a b",
    "cmp -i 5 a b",
    "cmp --ignore-initial=5 a b",
    "cmp a b 1 2",
    "cmp -n 5 a b",
    "cmp -sl a b c",
    "grep -f a b",
    "grep -nf a b",
    "grep x a -f b",
    "grep --file=a b",
    "grep -z x a",
    "grep -P x a",
    "grep -nP x a",
    "grep --perl-regexp x a",
    "grep --fil a b",
    "grep -D read x a",
    "grep --devices=read x a",
    "grep --exclude-from=x y z",
    "grep --include=*.rs -r x",
    "grep * a",
    "grep -3 x a",
    "grep -A x y z",
    "grep --colour=always x a",
    "grep -rU x .",
    "grep",
    "grep -n",
    "rg --pre=x y",
    "rg x -- a --pre b /etc",
    "rg -f a b",
    "rg -nf a b",
    "rg -z x",
    "rg -Uz x",
    "rg -L x",
    "rg -nL x",
    "rg --follow x",
    "rg --pre-glob x y",
    "rg --hostname-bin=x y",
    "rg -u x",
    "rg -P x",
    "rg --engine=pcre2 x",
    "rg --ignore-file=x y",
    "rg -E x y",
    "rg --type-add 'a:*' x",
    "rg --search-zi x",
    "rg --debug x",
    "rg -r x y",
    "rg",
    "find . -fls x",
    "find . -ls",
    "find . -ok rm {} ';'",
    "find . -printf %p",
    "find . -fprintf x %p",
    "find . -L",
    "find -L . -name x",
    "find -H .",
    "find -D exec .",
    "find -O3 .",
    "find . -name *.rs",
    "find . -newerXY a",
    "find . -samefile /etc/passwd",
    "find . -regex x",
    "find . -execdir id ';'",
    "find . -type x",
    "find . -size 1x",
    "find . -maxdepth -1",
    "find . -name",
    "find . -quit",
    "find . -files0-from x",
    "find . -name x , -delete",
    "find . ( -name x )",
    "find . -follow",
    "find . -newer /etc/passwd",
    "find . -inum 5",
    "find -files0-from /etc/hosts",
    "sed -n 1p -i a",
    "sed -n 1p a -e 1d",
    "sed -n -e 1p a",
    "sed 1p a",
    "sed -n '1p;2p' a",
    "sed -n '1!p' a",
    "sed -n '$p' a",
    "sed -n '/x/p' a",
    "sed -n '1w x' a",
    "sed -n 'p' a",
    "sed -n 0p a",
    "sed -n 1,2p -s a",
    "sed -nE 1p a",
    "sed -n '1,2 p' a",
    "sed -n 's/a/b/p' a",
    "sed --quiet 1p a",
    "sed -n 1pw a",
    "sed -n 1,5p --follow-symlinks a",
    "sed -n '1,5p\nw x' a",
    "jq -f a b",
    "jq -L . . a",
    "jq -n 1",
    "jq --arg a b . c",
    "jq --rawfile a b . c",
    "jq --slurpfile a /etc/x . c",
    "jq 'input_filename' a",
    "jq '\"\\(env)\"' a",
    "jq '$ENV|keys' a",
    "jq 'import \"a\" as a; .' b",
    "jq 'include \"a\"; .' b",
    "jq --from-file a b",
    "jq --argfile a b . c",
    "jq -rn env",
    "jq",
    "jq '\"a\"|modulemeta' a",
    "jq --seq . a",
    "command ls",
    "command -v ls ls",
    "command -V ls",
    "command -p ls",
    "command -v -- ls",
    "command -v ./x",
    "command",
    "type -a ls",
    "type ls ls",
    "type ./x",
    "type -p ls",
    "type",
    "cd",
    "cd -",
    "cd -P src && ls",
    "cd a b",
    "cd src | ls",
    "cd *",
    "cd ~ && ls",
    "cd .. && cat x",
    "cd / && ls",
    "cd ../.. ; ls",
];

/// The same through syntax.
const SYNTAX: &[&str] = &[
    "",
    "   ",
    ";",
    "|",
    "ls |",
    "| ls",
    "ls &&",
    "&& ls",
    "ls;;ls",
    "ls & pwd",
    "ls &",
    "ls # x",
    "# x",
    "ls 2>x",
    "ls 2>>/dev/null",
    "ls >>/dev/null",
    "ls >&2",
    "ls 1>&2",
    "ls 3>/dev/null",
    "ls <<< x",
    "ls << x",
    "cat <> a",
    "ls >/dev/null/../x",
    "ls > /dev/null x > y",
    "ls 2>&3",
    "ls >&-",
    "cat <&0",
    "cat < a < b",
    "cat < *",
    "cat < $x",
    "cat < /etc/passwd",
    "! ls",
    "time ls",
    "{ ls; }",
    "(ls)",
    "if true; then ls; fi",
    "ls || { pwd; }",
    "A=b ls",
    "A=b",
    "ls\npwd",
    "ls \\\n -la",
    "ls $'a'",
    "ls $\"a\"",
    "ls \"$a\"",
    "ls `pwd`",
    "ls a`pwd`",
    "ls ${a}",
    "ls $((1))",
    "ls <(pwd)",
    "ls @(a|b)",
    "ls !(a)",
    "ls 'a",
    "ls \"a",
    "ls a\\",
    "/bin/ls",
    "./ls",
    "\\l\\s /etc",
    "l?",
    "\"ls -la\"",
    "ls\u{a0}-la",
    "ls \u{2013}la",
    "ls ‘a’",
    "ls;\u{200b}pwd",
    "ls -la\u{0}",
    "exec ls",
    "eval ls",
    "builtin pwd",
    "coproc ls",
    "[[ -f a ]]",
    "((1))",
    "pwd|pwd|pwd|pwd|pwd|pwd|pwd|pwd|pwd",
    "pwd;pwd;pwd;pwd;pwd;pwd;pwd;pwd;pwd",
    "function ls { id; }",
    "ls() { id; }",
    "LS -la",
    "ls |& cat",
    "ls 2>&1 &",
    "alias ls=id",
    ". ./x",
    ": > x",
    "ls &>x",
    "ls >|/dev/null",
    "ls 2>/dev/null2",
    "\u{feff}ls",
];

#[test]
fn check34_lines_of_the_same_kinds_are_refused() {
    let passed: Vec<_> = HOSTILE.iter().chain(SYNTAX).filter(|line| !refused(line)).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn check34_every_program_has_hostile_lines() {
    for name in portcullis_policy::command::program_names() {
        let lines = HOSTILE.iter().filter(|line| line.split([' ', ';']).next() == Some(name)).count();
        assert!(lines >= 3, "{name} has {lines}");
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

fn only(line: &str) -> portcullis_policy::command::Stage {
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
        assert!(why.what.contains(what) && why.hint.contains("shell_run"), "{line}: {why}");
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
