//! Generated lines over generated trees say what bash says.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::read_only_hand::world::World;

/// Names that tempt a program, or a shell, to take them for something else.
const NAMES: [&str; 12] =
    ["a.txt", "b.txt", "c d.txt", "-n", "--help", "ü.md", "x", "sub/a.txt", "sub/-r", "sub/deep/y.rs", "$(x)", "#h"];

fn quoted(name: &str) -> String {
    format!("'{name}'")
}

/// A stage that takes its input from a file, and what bash is given for it.
fn source() -> impl Strategy<Value = (String, String)> {
    let file = prop::sample::select(&NAMES[..]);
    let glob = prop::sample::select(&["*.txt", "*", "sub/*", "?.txt", "a[.b]*", "s*/*.txt", "*/"][..]);
    let word = prop_oneof![
        4 => file.prop_map(|name| (format!("-- {}", quoted(name)), format!("-- {}", quoted(name)))),
        2 => glob.prop_map(|glob| (glob.to_owned(), format!("./{glob}"))),
    ];
    let program = prop::sample::select(
        &["cat", "head -n 2", "tail -n 1", "wc -c", "nl", "sort", "grep -c a", "ls -d", "tac", "cut -c 1-3", "md5sum"]
            [..],
    );
    prop_oneof![
        6 => (program, word).prop_map(|(program, (ours, theirs))| (format!("{program} {ours}"), format!("{program} {theirs}"))),
        1 => prop::sample::select(&NAMES[..]).prop_map(|name| same(format!("wc -l < {}", quoted(name)))),
        1 => prop::sample::select(&["echo a b", "seq 1 30", "pwd", "printf '%s\\n' b a", "find sub -type f", "true", "ls", "basename sub/a.txt", "dirname sub/a.txt"][..])
            .prop_map(|line| same(line.to_owned())),
        1 => prop::sample::select(&NAMES[..]).prop_map(|name| same(format!("test -f {}", quoted(name)))),
    ]
}

fn same(line: String) -> (String, String) {
    (line.clone(), line)
}

/// A stage that reads what comes before it.
fn filter() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "cat",
            "sort",
            "sort -r",
            "head -n 1",
            "tail -n 2",
            "wc -l",
            "uniq -c",
            "tr a-z A-Z",
            "grep a",
            "cut -c 1-2",
            "tac",
            "sed -n 1,2p",
            "true",
            "nl",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn pipeline() -> impl Strategy<Value = (String, String)> {
    let errors = prop::sample::select(&["", " 2>/dev/null", " 2>/dev/null", " >/dev/null"][..]);
    (source(), errors, prop::collection::vec(filter(), 0..3)).prop_map(
        |((mut ours, mut theirs), errors, mut filters)| {
            // The folder has another name here and there, which is compared whole: a filter would see the difference.
            if ours == "pwd" {
                filters.clear();
            }
            for line in [&mut ours, &mut theirs] {
                line.push_str(errors);
                for filter in &filters {
                    line.push_str(" | ");
                    line.push_str(filter);
                }
            }
            (ours, theirs)
        },
    )
}

fn line() -> impl Strategy<Value = (String, String)> {
    let joiner = prop::sample::select(&[" ; ", " && ", " || "][..]);
    let moved = prop::sample::select(&["", "", "", "cd sub && ", "cd sub/deep; cd ..; ", "cd nope 2>/dev/null; "][..]);
    (moved, pipeline(), prop::collection::vec((joiner, pipeline()), 0..3)).prop_map(|(moved, first, rest)| {
        let (mut ours, mut theirs) = (format!("{moved}{}", first.0), format!("{moved}{}", first.1));
        for (joiner, next) in rest {
            ours.push_str(&format!("{joiner}{}", next.0));
            theirs.push_str(&format!("{joiner}{}", next.1));
        }
        (ours, theirs)
    })
}

/// Which of the names are there, and what they hold.
fn tree() -> impl Strategy<Value = Vec<(usize, String)>> {
    let content = prop::sample::select(&["", "a\n", "b\na\nb\n", "no newline", "a b\tc\n\n", "ü\n"][..]);
    prop::collection::vec((0..NAMES.len(), content.prop_map(str::to_owned)), 1..10)
}

#[test]
fn check34_generated_lines_say_what_bash_says() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let strategy = (tree(), prop::collection::vec(line(), 3));
    let (ran_by, stopped_by) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let tried = runner.run(&strategy, |(files, lines)| {
        runtime.block_on(async {
            let world = World::new().await;
            world.put("sub/deep/z", "z\n");
            for (name, content) in &files {
                world.put(NAMES[*name], content);
            }
            for (ours, theirs) in &lines {
                let seen = world.bash(ours).await;
                match crate::read_only_hand::world::result(&seen) {
                    Some(said) => {
                        ran_by.set(ran_by.get() + 1);
                        prop_assert_eq!(said, world.oracle(theirs), "{}", ours);
                    }
                    // A pattern without a match, and nothing else, stops a line here that goes on in bash.
                    None => {
                        stopped_by.set(stopped_by.get() + 1);
                        prop_assert!(seen.summary.contains("matches no file name"), "{}: {}", ours, seen.summary);
                    }
                }
            }
            Ok(())
        })
    });
    let (ran, stopped) = (ran_by.get(), stopped_by.get());
    tried.unwrap_or_else(|error| panic!("{error}"));
    assert!(ran > 3 * stopped, "{ran} lines ran and {stopped} were stopped: the comparison has lost its point");
}
