//! Another parser's opinion of every line that is called read-only, and lines that nobody would write.

use crate::corpus;

use std::time::{Duration, Instant};

use portcullis_command::{LINE_MAX, ReadPlan, Redirection, Word, analyse, read_only, unwrapped};
use proptest::prelude::*;
use tree_sitter::{Node, Parser, Tree};

fn tree(line: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the grammar fits the library");
    parser.parse(line, None).expect("a tree")
}

/// Nodes of a line that has nothing but words, quotes, pipes, lists and redirections.
const PLAIN: &[&str] = &[
    "program",
    "list",
    "pipeline",
    "command",
    "command_name",
    "word",
    "string",
    "string_content",
    "raw_string",
    "concatenation",
    "number",
    "redirected_statement",
    "file_redirect",
    "file_descriptor",
    "test_command",
    "test_operator",
    "unary_expression",
    "binary_expression",
    "extglob_pattern",
    "regex",
    "negated_command",
];

/// The commands of a tree by their words. Tests in brackets are given as the words between them.
fn commands(node: Node<'_>, source: &str, out: &mut Vec<Vec<String>>) {
    let text = |node: Node<'_>| node.utf8_text(source.as_bytes()).expect("whole characters").to_owned();
    match node.kind() {
        "command" => {
            let mut argv: Vec<String> = Vec::new();
            let mut cursor = node.walk();
            let mut end = usize::MAX;
            for child in node.named_children(&mut cursor).filter(|child| child.kind() != "file_redirect") {
                let inner = if child.kind() == "command_name" { child.named_child(0).unwrap_or(child) } else { child };
                let word = plain(inner, source);
                // The grammar cuts some words in two; no blank means one word.
                match argv.last_mut() {
                    Some(last) if child.start_byte() == end => last.push_str(&word),
                    _ => argv.push(word),
                }
                end = child.end_byte();
            }
            out.push(argv);
        }
        "test_command" => {
            let words = text(node).split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned()).collect();
            out.push(words);
        }
        "redirected_statement" => {
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor) {
                if child.kind() != "file_redirect" {
                    commands(child, source, out);
                    continue;
                }
                // The grammar takes the `-2` of `head -2<a` for a descriptor; for a shell it is a word.
                let descriptor = child.child_by_field_name("descriptor").map(text).filter(|word| word.starts_with('-'));
                if let Some(last) = out.last_mut() {
                    last.extend(descriptor);
                }
                // Words after the first target are those of the command, whichever way the grammar hangs them.
                let mut cursor = child.walk();
                let words = child.named_children(&mut cursor).filter(|word| word.kind() != "file_descriptor").skip(1);
                let words: Vec<Node<'_>> = words.collect();
                if let Some(last) = out.last_mut() {
                    let mut end = usize::MAX;
                    for word in words {
                        match last.last_mut() {
                            Some(text) if word.start_byte() == end => text.push_str(&plain(word, source)),
                            _ => last.push(plain(word, source)),
                        }
                        end = word.end_byte();
                    }
                }
            }
        }
        _ => {
            let mut cursor = node.walk();
            for child in node.named_children(&mut cursor) {
                commands(child, source, out);
            }
        }
    }
}

/// A word without its quotes.
fn plain(node: Node<'_>, source: &str) -> String {
    let text = node.utf8_text(source.as_bytes()).expect("whole characters");
    match node.kind() {
        "raw_string" => text[1..text.len() - 1].to_owned(),
        "string" => unescaped(&text[1..text.len() - 1], "$`\"\\"),
        "concatenation" => {
            // The grammar gives no node to an escape that stands alone between two others.
            let mut cursor = node.walk();
            let mut out = String::new();
            let mut at = node.start_byte();
            for child in node.children(&mut cursor) {
                out.push_str(&unescaped(&source[at..child.start_byte()], ""));
                out.push_str(&plain(child, source));
                at = child.end_byte();
            }
            out + &unescaped(&source[at..node.end_byte()], "")
        }
        _ => unescaped(text, ""),
    }
}

/// Without backslashes before `which`, or before anything if that is empty.
fn unescaped(text: &str, which: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if which.is_empty() || chars.peek().is_some_and(|next| which.contains(*next)) => {
                out.extend(chars.next())
            }
            c => out.push(c),
        }
    }
    out
}

pub(crate) fn claimed(plan: &ReadPlan) -> Vec<Vec<Option<String>>> {
    let stages = plan.pipelines().iter().flat_map(|(_, pipeline)| pipeline.stages());
    stages
        .map(|stage| {
            let args = stage.args().iter().map(|arg| match arg.word() {
                Word::Literal(text) => Some(text.clone()),
                Word::Glob(_) => None,
            });
            std::iter::once(Some(stage.program().to_owned())).chain(args).collect()
        })
        .collect()
}

fn nodes<'t>(node: Node<'t>, out: &mut Vec<Node<'t>>) {
    out.push(node);
    let mut cursor = node.walk();
    let children: Vec<_> = node.named_children(&mut cursor).collect();
    children.into_iter().for_each(|child| nodes(child, out));
}

/// Whether every character but blanks belongs to a leaf: the grammar passes over some escapes.
fn covers(root: Node<'_>, line: &str) -> bool {
    fn leaves(node: Node<'_>, seen: &mut [bool]) {
        let sign = ["|", "||", "&&", ";", "<", ">", ">&", "&>", "[", "]"].contains(&node.kind());
        if sign || node.is_named() && (node.child_count() == 0 || node.kind() == "string") {
            seen[node.byte_range()].fill(true);
        }
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        children.into_iter().for_each(|child| leaves(child, seen));
    }
    let mut seen = vec![false; line.len()];
    leaves(root, &mut seen);
    line.bytes().zip(seen).all(|(byte, seen)| seen || matches!(byte, b' ' | b'\t'))
}

/// What the other parser has against a plan; none if it agrees or cannot read the line itself.
fn objection(line: &str, plan: &ReadPlan) -> Option<String> {
    let tree = tree(line);
    let root = tree.root_node();
    if root.has_error() || !covers(root, line) {
        return None;
    }
    let mut all = Vec::new();
    nodes(root, &mut all);
    if let Some(node) = all.iter().find(|node| !PLAIN.contains(&node.kind())) {
        return Some(format!("{} in {}", node.kind(), root.to_sexp()));
    }
    let mut theirs = Vec::new();
    commands(root, line, &mut theirs);
    let ours = claimed(plan);
    // A bracket's words are a tree of their own there.
    let same = |ours: &Vec<Option<String>>, theirs: &Vec<String>| {
        ours[0].as_deref() == Some("[") && theirs.first().is_some_and(|first| first == "[")
            || ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| ours.as_ref().is_none_or(|ours| ours == theirs))
    };
    if ours.len() != theirs.len() || !ours.iter().zip(&theirs).all(|(ours, theirs)| same(ours, theirs)) {
        return Some(format!("we read {ours:?}, it reads {theirs:?}"));
    }
    let arrows = all.iter().filter(|node| node.kind() == "file_redirect").count();
    let stages = plan.pipelines().iter().flat_map(|(_, pipeline)| pipeline.stages());
    let redirections: Vec<&Redirection> = stages.flat_map(|stage| stage.redirections()).collect();
    (arrows != redirections.len()).then(|| format!("{redirections:?} but {arrows} there"))
}

#[test]
fn check34_another_parser_reads_the_benign_rows_as_we_do() {
    let mut agreed = 0;
    for row in corpus::rows("commands-benign.tsv") {
        let plan = read_only(&row.command).expect("benign");
        assert_eq!(objection(&row.command, &plan), None, "{} {}", row.id, row.command);
        agreed += usize::from(!tree(&row.command).root_node().has_error());
    }
    assert!(agreed >= 135, "{agreed} rows could be read by it");
}

/// A piece of a word.
fn piece() -> impl Strategy<Value = String> {
    let literal = ["a", "b.txt", "src/", ".", "-n", "-", "5", "x=y", "é", "日", ",", ":", "%s", "+", "@", "^", "1,2p"];
    let quoted = [
        "'a b'", "\"c d\"", "\\ ", "\\;", "'$x'", "'|'", "\"a;b\"", "''", "\"\"", "\\$", "\"\\$x\"", "'\\'",
        "\"\\\\\"", "\\\\",
    ];
    // A bracket alone is a word to bash, and the other grammar does not read it.
    let glob = ["*", "?", "[ab]", "\\*", "'*'"];
    let wild = [
        "$x", "$(id)", "`id`", "${x}", "~", "{a,b}", "#", "!", "\"$x\"", "\"`id`\"", "$'a'", "(", ")", "{", "}",
        "\\\n", "=~", "$((1))", "$",
    ];
    prop_oneof![
        10 => proptest::sample::select(literal.to_vec()),
        5 => proptest::sample::select(quoted.to_vec()),
        2 => proptest::sample::select(glob.to_vec()),
        1 => proptest::sample::select(wild.to_vec()),
    ]
    .prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 1..4).prop_map(|pieces| pieces.concat())
}

fn command() -> impl Strategy<Value = String> {
    let programs: Vec<&'static str> = portcullis_command::program_names().collect();
    let program = prop_oneof![
        12 => proptest::sample::select(vec!["cat", "ls", "echo", "head", "grep", "wc", "sort", "tr", "stat", "diff", "du"]).prop_map(str::to_owned),
        4 => proptest::sample::select(programs).prop_map(str::to_owned),
        1 => word(),
    ];
    let redirection = proptest::sample::select(vec![
        "2>/dev/null",
        ">/dev/null",
        "&>/dev/null",
        "2>&1",
        "< a",
        "<a",
        "> a",
        ">> a",
        "2 > /dev/null",
        ">&2",
        "<<< a",
        "<(a)",
    ]);
    (program, proptest::collection::vec(word(), 0..4), proptest::option::weighted(0.25, redirection), any::<bool>())
        .prop_map(|(program, words, redirection, first)| {
            let redirection = redirection.unwrap_or("");
            let words = words.join(" ");
            if first { format!("{program} {words} {redirection}") } else { format!("{program} {redirection} {words}") }
        })
}

pub(crate) fn line() -> impl Strategy<Value = String> {
    let joiner = prop_oneof![
        12 => proptest::sample::select(vec![" | ", "|", " && ", "&&", " || ", "; ", ";"]),
        1 => proptest::sample::select(vec![" & ", "\n", " # ", " |& ", "\r", " ;; ", "\u{a0}", "\\\n"]),
    ];
    (command(), proptest::collection::vec((joiner, command()), 0..3))
        .prop_map(|(first, rest)| rest.into_iter().fold(first, |line, (joiner, next)| line + joiner + &next))
}

fn everything(line: &str) {
    if let Ok(plan) = read_only(line) {
        let _ = plan.reads("/workspace");
    }
    let analysis = analyse(line);
    assert!(
        !analysis.commands.is_empty() || !analysis.opaque.is_empty() || !analysis.redirections.is_empty(),
        "{line:?}"
    );
    analysis.commands.iter().take(3).for_each(|argv| drop(unwrapped(argv)));
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let _ = ReadPlan::from_argv(&words[0], &words[1..]);
    let _ = unwrapped(&words);
}

fn cases() -> u32 {
    if std::env::var_os("PORTCULLIS_SOAK").is_some() { 100_000 } else { 3_000 }
}

/// Of a build without optimization, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn no_line_takes_long_or_deep() {
    let openers = [
        "(",
        "( ",
        "{ ",
        "$(",
        "${",
        "$((",
        "`",
        "\"$(",
        "<(",
        "[[ ",
        "[[ ( ",
        "if ",
        "if a; then ",
        "while ",
        "for a in ",
        "case a in a) ",
        "case ",
        "f() ",
        "f() { ",
        "! ",
        "time ",
        "coproc ",
        "a=(",
        "@(",
        "$[",
        "<<a ",
        "<<a\n",
        "> ",
        ">a ",
        "a=b ",
        "a|",
        "a;",
        "a&&",
        "\n",
        "'",
        "\"",
        "\\",
        "#",
        "~9",
        "~99999999999999999999 ",
        "sh -c ",
        "sudo ",
        "env -S ",
        "eval ",
        "*",
        "[",
        "[a-",
        "{a,",
        "((",
        "a b ",
        "é",
        "\u{1f600}",
        "\0",
        "select a in ",
        "until ",
        "function f ",
        "<<-",
        "<<<",
        "$'",
        "$\"",
        "=",
        "a[",
        "a[$(",
        "-",
        "--",
        "sudo sh -c '",
    ];
    for opener in openers {
        for times in [13, 1_000, LINE_MAX] {
            for tail in ["", "a)"] {
                let text = opener.repeat(times.min(LINE_MAX / opener.len())) + tail;
                let begun = Instant::now();
                everything(&text);
                assert!(begun.elapsed() < PATIENCE, "{opener:?} {times} times took {:?}", begun.elapsed());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn check34_what_is_called_read_only_is_what_another_parser_reads(line in line()) {
        if let Ok(plan) = read_only(&line) {
            let objection = objection(line.trim_end_matches('\n'), &plan);
            prop_assert!(objection.is_none(), "{line:?}: {}", objection.unwrap_or_default());
        }
        everything(&line);
    }

    #[test]
    fn no_text_breaks_the_analysis(text in "\\PC{0,40}|[ -~\\n\\t]{0,200}|.{0,60}") {
        let begun = Instant::now();
        everything(&text);
        prop_assert!(begun.elapsed() < PATIENCE);
    }

    #[test]
    fn no_mixture_breaks_the_analysis(
        parts in proptest::collection::vec(
            prop_oneof![
                piece(), command(),
                proptest::sample::select(vec!["(", ")", "{", "}", "$(", "`", "'", "\"", "\\", "\n", "<<E", "E", "if", "then", "fi", "case", "esac", "in",
                    "do", "done", "for", ";;", "[[", "]]", "((", "))", "~1", "~+", "~-9", "sh -c", "&", "|", ";", "$", "#", "<", ">", "\u{202e}"]).prop_map(str::to_owned),
            ],
            0..40,
        ),
        glue in proptest::sample::select(vec!["", " "]),
    ) {
        let begun = Instant::now();
        everything(&parts.join(glue));
        prop_assert!(begun.elapsed() < PATIENCE, "{parts:?}");
    }
}

/// A line of the corpus, of either kind.
fn row() -> impl Strategy<Value = String> {
    let rows = ["commands-hostile.tsv", "commands-benign.tsv"].into_iter().flat_map(corpus::rows);
    proptest::sample::select(rows.map(|row| row.command).collect::<Vec<_>>())
}

fn refused(line: &str) -> bool {
    read_only(line).map_or(true, |plan| plan.outside("/workspace", &["/workspace"]).is_some())
}

/// A hostile line of the corpus; not one of the few that only the tree can tell.
fn hostile() -> impl Strategy<Value = String> {
    let lines = corpus::rows("commands-hostile.tsv").into_iter().map(|row| row.command);
    proptest::sample::select(lines.filter(|line| refused(line)).collect::<Vec<_>>())
}

/// A line of the corpus that somebody has typed at.
fn near_a_row() -> impl Strategy<Value = String> {
    let typed = prop_oneof![
        6 => proptest::sample::select(" '\"\\$`;|&<>(){}[]*?~#!=-,\n\t\r\0".chars().collect::<Vec<_>>()).prop_map(String::from),
        2 => any::<char>().prop_map(String::from),
        1 => row(),
        1 => Just(String::new()),
    ];
    let edit = (any::<prop::sample::Index>(), 0_usize..4, typed);
    (row(), proptest::collection::vec(edit, 1..5)).prop_map(|(row, edits)| {
        let mut chars: Vec<char> = row.chars().collect();
        for (at, gone, typed) in edits {
            let at = at.index(chars.len() + 1);
            let end = (at + gone).min(chars.len());
            chars.splice(at..end, typed.chars());
        }
        chars.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fuzz_command_parser_near_the_corpus_nothing_is_read_only_that_another_parser_reads_otherwise(line in near_a_row()) {
        let begun = Instant::now();
        everything(&line);
        prop_assert!(begun.elapsed() < PATIENCE, "{line:?}");
        if let Ok(plan) = read_only(&line) {
            let objection = objection(line.trim_end_matches('\n'), &plan);
            prop_assert!(objection.is_none(), "{line:?}: {}", objection.unwrap_or_default());
        }
    }

    #[test]
    fn fuzz_command_parser_a_hostile_line_is_hostile_in_any_company(
        hostile in hostile(),
        benign in proptest::sample::select(vec!["ls", "cat a.txt", "grep -n 'x y' b", "wc -l < c", "true", "git log --oneline"]),
        joiner in proptest::sample::select(vec![";", "&&", "||", "|", "\n"]),
        first in any::<bool>(),
    ) {
        let line = if first { format!("{benign} {joiner} {hostile}") } else { format!("{hostile} {joiner} {benign}") };
        prop_assert!(refused(&line), "{line:?}");
    }
}

#[test]
fn the_generated_lines_are_often_read_only() {
    // Guards the comparison above against passing because nothing is ever accepted.
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut accepted, mut compared) = (0, 0);
    for _ in 0..2_000 {
        let line = line().new_tree(&mut runner).expect("a line").current();
        if read_only(&line).is_ok() {
            accepted += 1;
            compared += usize::from(!tree(&line).root_node().has_error());
        }
    }
    assert!(accepted >= 200 && compared * 10 >= accepted * 8, "{compared} of {accepted} compared");
}

#[test]
fn an_option_before_a_redirection_is_a_word_to_both_parsers() {
    let line = "head -2<0 a.txt";
    let plan = read_only(line).expect("it only reads");
    assert_eq!(objection(line, &plan), None);
}
