//! Checks 15 and 34: which tool does what a command would.

use crate::corpus;

use portcullis_tools::instead::{Alternative, Whereabouts, covered_by, mapped, mapped_argv};
use serde_json::{Value, json};

const HERE: Whereabouts<'static> = Whereabouts { cwd: "/workspace/sub", mounts: &["/workspace", "/runtime"] };

fn call(line: &str) -> Option<(&'static str, Value)> {
    mapped(line, HERE).map(|Alternative { tool, input, differs }| {
        assert_eq!(differs, None, "{line}");
        (tool, input)
    })
}

fn glob_name(path: &str, pattern: &str) -> Option<(&'static str, Value)> {
    Some(("glob", json!({"path": path, "pattern": pattern, "limit": 80})))
}

fn grep(path: &str, pattern: &str, ignore_case: bool, literal: bool) -> Option<(&'static str, Value)> {
    Some(("grep", json!({"path": path, "pattern": pattern, "ignore_case": ignore_case, "literal": literal})))
}

/// The rows of agent-runtime 8.6.
fn rows() -> Vec<(&'static str, Option<(&'static str, Value)>)> {
    let read = |rest: Value| {
        let mut input = json!({"file_path": "/workspace/sub/F"});
        rest.as_object().expect("fields").iter().for_each(|(key, value)| input[key] = value.clone());
        Some(("read", input))
    };
    let ls =
        |path: &str| Some(("glob", json!({"path": path, "pattern": "*", "max_depth": 1, "sort": "path", "limit": 80})));
    let kind = |kind: &str| {
        Some(("glob", json!({"path": "/workspace/sub/P", "pattern": "**/*.rs", "limit": 80, "kind": kind})))
    };
    let rg = |mut found: Option<(&'static str, Value)>| {
        if let Some((_, input)) = &mut found {
            input["limit"] = json!(40);
        }
        found
    };
    vec![
        ("cat F", read(json!({}))),
        ("cat F 2>/dev/null", read(json!({}))),
        ("cat F  2>&1 ", read(json!({}))),
        ("cat \"F\"", read(json!({}))),
        ("cat ./F", read(json!({}))),
        ("cat ../sub/F", read(json!({}))),
        ("cat /workspace/sub/F", read(json!({}))),
        ("head F", read(json!({"line_count": 10}))),
        ("head -n 5 F", read(json!({"line_count": 5}))),
        ("head -5 F", read(json!({"line_count": 5}))),
        ("tail F", read(json!({"tail_lines": 10}))),
        ("tail -n 5 F", read(json!({"tail_lines": 5}))),
        ("tail -5 F", read(json!({"tail_lines": 5}))),
        ("sed -n '3,7p' F", read(json!({"start_line": 3, "line_count": 5}))),
        ("sed -n 3,3p F", read(json!({"start_line": 3, "line_count": 1}))),
        ("wc -l F", read(json!({"line_count": 1}))),
        ("ls", ls("/workspace/sub")),
        ("ls -la", ls("/workspace/sub")),
        ("ls -al -1A P", ls("/workspace/sub/P")),
        ("ls /runtime", ls("/runtime")),
        ("find -name '*.rs'", glob_name("/workspace/sub", "**/*.rs")),
        ("find P -name \"*.rs\"", glob_name("/workspace/sub/P", "**/*.rs")),
        ("find . -name 'a/*.rs'", glob_name("/workspace/sub", "a/*.rs")),
        ("find P -name '{a,b}'", glob_name("/workspace/sub/P", "**/\\{a,b\\}")),
        ("find P -type f -name '*.rs'", kind("file")),
        ("find P -type d -name '*.rs'", kind("directory")),
        ("grep Q", grep("/workspace/sub", "Q", false, true)),
        ("grep -rn Q P", grep("/workspace/sub/P", "Q", false, true)),
        ("grep -i -E 'a|b' P", grep("/workspace/sub/P", "a|b", true, false)),
        ("grep 'a|b' P", grep("/workspace/sub/P", "a\\|b", false, false)),
        ("grep -F 'a.b' P", grep("/workspace/sub/P", "a.b", false, true)),
        ("grep 'a.b' P", grep("/workspace/sub/P", "a.b", false, false)),
        ("grep -R 'fn main()' P", grep("/workspace/sub/P", "fn main\\(\\)", false, false)),
        ("rg -n Q P", rg(grep("/workspace/sub/P", "Q", false, true))),
        ("rg -i 'a+'", rg(grep("/workspace/sub", "a+", true, false))),
        ("rg -F 'a+'", rg(grep("/workspace/sub", "a+", false, true))),
    ]
}

#[test]
fn check15_every_row_maps_as_stated() {
    for (line, want) in rows() {
        assert_eq!(call(line), want, "{line}");
    }
}

#[test]
fn check15_every_metacharacter_variant_maps_to_null() {
    for (line, _) in rows() {
        let mut variants =
            vec![format!("A=b {line}"), format!("{line}\nls"), format!("{line}\u{200b}"), format!("sudo {line}")];
        for meta in "|&;<>()$`*?[]{}~!#\\".chars() {
            variants.push(format!("{line} {meta}"));
            variants.push(format!("{line}{meta}"));
            variants.push(format!("{line} {meta} x"));
            variants.push(format!("{line} x{meta}y"));
            variants.push(format!("{meta}{line}"));
        }
        for meta in
            ["\"$x\"", "\"`x`\"", "x'y'", "'x'y", "\"a\"\"b\"", "'a", "\"a", "a\\ b", "$(x)", "&& ls", "> x", "| wc -l"]
        {
            variants.push(format!("{line} {meta}"));
        }
        for variant in variants {
            assert_eq!(mapped(&variant, HERE), None, "{variant}");
        }
    }
}

#[test]
fn check15_what_would_change_the_meaning_is_not_mapped_to_a_file_tool() {
    for line in [
        "cat a b",
        "cat -A F",
        "head -n 0 F",
        "head -n -5 F",
        "head -c 5 F",
        "tail -n +5 F",
        "sed -n 7,3p F",
        "sed -n '3p' F",
        "wc F",
        "wc -w F",
        "ls -R",
        "ls -t",
        "ls a b",
        "ls -d P",
        "find P -iname x",
        "find P -type l -name x",
        "find P -name x -name y",
        "find a b -name x",
        "grep -v Q P",
        "grep -w Q P",
        "grep -c Q P",
        "grep -e Q P",
        "grep Q a b",
        "rg -w Q P",
        "rg -e Q",
        "grep '\\(a\\)\\1' P",
        "head -5 -n 3 F",
        "cat",
        "cat -",
        "find P -name '*.rs' -print",
    ] {
        assert!(!matches!(call(line), Some(("read" | "glob" | "grep", _))), "{line}: {:?}", call(line));
    }
    for line in [
        "cat /etc/passwd",
        "cat ../../etc/passwd",
        "ls /",
        "grep x /workspace-evil",
        "git status",
        "npm test",
        "rm x",
        "sort -o x y",
    ] {
        assert_eq!(call(line), None, "{line}");
    }
}

#[test]
fn check15_what_no_row_fits_goes_to_the_hand_if_that_may_run_it() {
    let hand =
        |command: &str, args: Value| Some(("bash", json!({"command": command, "args": args, "cwd": "/workspace/sub"})));
    assert_eq!(call("sort -u F"), hand("sort", json!(["-u", "F"])));
    assert_eq!(call("pwd"), hand("pwd", json!([])));
    assert_eq!(call("stat -c '%s' F"), hand("stat", json!(["-c", "%s", "F"])));
    assert_eq!(call("grep -v 'a b' F"), hand("grep", json!(["-v", "a b", "F"])));
    let argv = |words: &[&str]| mapped_argv(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), HERE);
    assert_eq!(argv(&["cat", "a b*"]).map(|found| found.input), Some(json!({"file_path": "/workspace/sub/a b*"})));
    assert_eq!(argv(&["sort", "-o", "x"]), None);
    let outside = Whereabouts { cwd: "/etc", mounts: &["/workspace"] };
    assert_eq!(mapped("pwd", outside), None);
}

/// What a row that is not in the table of agent-runtime 8.6 must be mapped to, and whether the answer differs.
fn beyond() -> Vec<(&'static str, Value, bool)> {
    let file = |path: &str| json!({"file_path": format!("/workspace/{path}")});
    let with = |mut input: Value, key: &str, value: Value| {
        input[key] = value;
        input
    };
    let ls =
        |path: &str, depth: u64| json!({"path": path, "pattern": "*", "max_depth": depth, "sort": "path", "limit": 80});
    let names = |pattern: &str| json!({"path": "/workspace", "pattern": pattern, "limit": 80});
    let lines = |path: &str, pattern: &str, literal: bool| json!({"path": format!("/workspace{path}"), "pattern": pattern, "ignore_case": false, "literal": literal});
    let rg = |path: &str, pattern: &str, literal: bool| with(lines(path, pattern, literal), "limit", json!(40));
    vec![
        ("B003", file("src/main.rs"), true),
        ("B005", file("docs/my file.md"), false),
        ("B006", file("-odd-name.txt"), false),
        ("B009", with(file("a.txt"), "line_count", json!(20)), false),
        ("B010", with(file("a.txt"), "line_count", json!(20)), false),
        ("B011", with(file("a.txt"), "max_chars", json!(200)), true),
        ("B015", with(file("a.txt"), "view_range", json!([100, 0])), false),
        ("B016", with(file("a.txt"), "tail_lines", json!(5)), false),
        ("B019", with(with(file("a.txt"), "start_line", json!(5)), "line_count", json!(1)), false),
        ("B020", with(file("a.txt"), "view_range", json!([1, 0])), false),
        ("B022", with(file("a.txt"), "line_count", json!(1)), false),
        ("B023", with(file("a.txt"), "line_count", json!(1)), false),
        ("B024", file("a.txt"), true),
        ("B025", file("a.txt"), true),
        ("B030", with(ls("/workspace", 2), "pattern", json!("{src,docs}/*")), true),
        ("B031", json!({"path": "/workspace/src", "pattern": "*", "sort": "path", "limit": 80}), false),
        ("B032", with(ls("/workspace", 1), "sort", json!("mtime")), false),
        ("B033", with(ls("/workspace", 1), "kind", json!("directory")), false),
        ("B038", with(names("**/Cargo.toml"), "max_depth", json!(2)), false),
        ("B039", names("**/[rR][eE][aA][dD][mM][eE]*"), false),
        ("B040", names("**/*.rs"), true),
        ("B041", names("**/*.rs"), true),
        ("B042", with(names("**/*"), "kind", json!("file")), true),
        ("B043", with(names("**/*"), "kind", json!("file")), true),
        ("B048", lines("/a.txt", "x", true), false),
        ("B049", lines("", "x", true), true),
        ("B050", lines("/src", "x", true), false),
        ("B054", lines("/a.txt", r"\$\(whoami\)", false), false),
        ("B056", lines("/a.txt", "-delete", true), false),
        ("B057", lines("/a.txt", "TODO", true), true),
        ("B058", lines("/src", "unwrap", true), true),
        ("B059", lines("/a.txt", "^", false), true),
        ("B060", lines("/src/main.rs", r"\bmain\b", false), false),
        ("B061", lines("/a.txt", "[0-9]*", false), true),
        ("B065", rg("/src", r"fn \w+", false), false),
        ("B066", rg("/src", "unwrap", true), false),
        ("B067", rg("", "^", false), true),
        ("B068", rg("", "^", false), true),
        ("B069", rg("", "unwrap", true), true),
        ("B070", rg("", "unwrap", true), true),
        ("B072", rg("/docs", "--pre", true), false),
        ("B073", rg("/src", "panic", true), true),
        ("B074", rg("/src", r"\bmain\b", false), false),
        ("B075", rg("/src", r"struct\s+\{", false), true),
        ("B076", rg("/.github", "token", true), true),
    ]
}

#[test]
fn check34_rows_with_a_builtin_map_to_it_with_the_right_arguments() {
    let at = Whereabouts { cwd: "/workspace", mounts: &["/workspace"] };
    let beyond = beyond();
    let mut seen = 0;
    for row in corpus::rows("commands-benign.tsv").into_iter().filter(|row| row.mapped != "none") {
        let found = covered_by(&row.command, at).unwrap_or_else(|| panic!("{} {}", row.id, row.command));
        assert_eq!(found.tool, row.mapped, "{} {}", row.id, row.command);
        match beyond.iter().find(|(id, ..)| *id == row.id) {
            Some((_, input, differs)) => {
                assert_eq!((&found.input, found.differs.is_some()), (input, *differs), "{} {}", row.id, row.command);
                seen += 1;
            }
            // A row of the table, whose arguments check 15 looks at.
            None => assert_eq!(mapped(&row.command, at), Some(found), "{} {}", row.id, row.command),
        }
    }
    assert_eq!(seen, beyond.len());
}

#[test]
fn check34_no_hostile_row_is_mapped() {
    let at = Whereabouts { cwd: "/workspace", mounts: &["/workspace"] };
    for row in corpus::rows("commands-hostile.tsv") {
        // By their text these read files of the workspace; the tools open them confined, and only if they are files.
        if !matches!(row.id.as_str(), "H288" | "H291" | "H294" | "H295" | "H296" | "H334") {
            assert_eq!(covered_by(&row.command, at), None, "{} {}", row.id, row.command);
        }
    }
}
