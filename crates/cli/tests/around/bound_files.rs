//! An approval is bound to every file that the line may run. Each attack writes one of them anew between the ask and the
//! allow; what runs must not be what nobody was asked about.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::arena::{Arena, EVERYBODY};

/// A line, and a file of the workspace that decides what it does.
struct Swapped {
    line: &'static str,
    file: &'static str,
    /// What the file holds when a person is asked.
    harmless: &'static str,
    /// What it holds when they answer; it makes `ran`.
    evil: &'static str,
}

const fn swapped(line: &'static str, file: &'static str, harmless: &'static str, evil: &'static str) -> Swapped {
    Swapped { line, file, harmless, evil }
}

const SH: &str = "#!/bin/sh\n";
const SH_EVIL: &str = "#!/bin/sh\ntouch /workspace/ran\n";
const JS_EVIL: &str = "require('fs').writeFileSync('ran', '')";
const PL_EVIL: &str = "open F, '>ran';";

fn attacks() -> Vec<Swapped> {
    vec![
        swapped("sh run.sh", "run.sh", "", SH_EVIL),
        swapped("bash --rcfile keep run.sh", "run.sh", "", SH_EVIL),
        swapped("bash --rcfile rc -ic true", "rc", "", SH_EVIL),
        swapped("sh -o errexit run.sh keep", "run.sh", "", SH_EVIL),
        swapped("BASH_ENV=./env bash -c true", "env", "", SH_EVIL),
        swapped("awk -f p.awk keep", "p.awk", "{}", "BEGIN { system(\"touch ran\") }"),
        swapped("sed -f s.sed keep", "s.sed", "p\n", "1e touch ran\n"),
        swapped("sed -nfs.sed keep", "s.sed", "p\n", "1e touch ran\n"),
        swapped("./p?", "p1", SH, SH_EVIL),
        swapped("sh s*.sh", "s1.sh", SH, SH_EVIL),
        swapped("sh $PWD/run.sh", "run.sh", SH, SH_EVIL),
        swapped("x=run.sh; sh $x", "run.sh", SH, SH_EVIL),
        swapped("sh < run.sh", "run.sh", SH, SH_EVIL),
        swapped("cat run.sh | sh", "run.sh", SH, SH_EVIL),
        swapped("sh \"my script\"", "my script", SH, SH_EVIL),
        swapped("cd sub && sh ../run.sh", "run.sh", SH, SH_EVIL),
        swapped("eval \"$(cat run.sh)\"", "run.sh", SH, SH_EVIL),
        swapped("xargs -a keep ./p1", "p1", SH, SH_EVIL),
        swapped("MAKEFILES=sub/m make -f Makefile", "sub/m", "", "$(shell touch ran)\n"),
        swapped("make -fsub/m", "sub/m", "all:\n", "all:\n\ttouch ran\n"),
        swapped("perl -I sub x.pl", "x.pl", "", PL_EVIL),
        swapped("prove z.t", "z.t", "", PL_EVIL),
        swapped("node -r ./empty.js app.js", "app.js", "", JS_EVIL),
        swapped("node --require=./pre.js empty.js", "pre.js", "", JS_EVIL),
        swapped("node app", "app.js", "", JS_EVIL),
        swapped("python3 -m zz", "zz.py", "", "open('ran', 'w')"),
        swapped("python3 -mpkg.zz", "pkg/zz.py", "", "open('ran', 'w')"),
        swapped("python3 sub", "sub/__main__.py", "", "open('ran', 'w')"),
        swapped(
            "java X.java",
            "X.java",
            "class X { public static void main(String[] a) {} }",
            "class X { public static void main(String[] a) throws Exception { new java.io.File(\"ran\").createNewFile(); } }",
        ),
        swapped("env BASH_ENV=x.sh bash -c true", "x.sh", "", SH_EVIL),
        swapped("env -i HOME=/ BASH_ENV=./x.sh /bin/bash -c true", "x.sh", "", SH_EVIL),
        swapped("nice env BASH_ENV=x.sh bash -c true", "x.sh", "", SH_EVIL),
        swapped("env GIT_CONFIG_GLOBAL=x.cfg git p", "x.cfg", "[alias]\np = version\n", "[alias]\np = !touch ran\n"),
        swapped("env MAKEFILES=x.mk make -f /dev/null a", "x.mk", "a:;@:\n", "a:;@touch ran\n"),
        swapped("bash ~+/run.sh", "run.sh", SH, SH_EVIL),
        swapped(". ~+/run.sh", "run.sh", SH, SH_EVIL),
        swapped("nice ~+/run.sh", "run.sh", SH, SH_EVIL),
        swapped("~+/run.sh", "run.sh", SH, SH_EVIL),
        swapped("cd sub && sh ~-/run.sh", "run.sh", SH, SH_EVIL),
        swapped("cd sub && sh $OLDPWD/run.sh", "run.sh", SH, SH_EVIL),
        swapped("python3 ~+/x.py", "x.py", "", "open('ran', 'w')"),
        swapped("/dev/stdin < run.sh", "run.sh", SH, SH_EVIL),
        swapped("/dev/fd/0 < run.sh", "run.sh", SH, SH_EVIL),
        swapped("env /dev/stdin < run.sh", "run.sh", SH, SH_EVIL),
        swapped("exec 3<run.sh; /proc/self/fd/3", "run.sh", SH, SH_EVIL),
        swapped("./reader < run.sh", "run.sh", SH, SH_EVIL),
        swapped("perl -I. -Mx y.pl", "x.pm", "1;\n", "open F, '>ran'; 1;\n"),
        swapped("perl -I. -mx y.pl", "x.pm", "1;\n", "open F, '>ran'; 1;\n"),
        swapped("perl -Isub -Ma::x y.pl", "sub/a/x.pm", "1;\n", "open F, '>ran'; 1;\n"),
        swapped("PERL5LIB=sub perl -Mx y.pl", "sub/x.pm", "1;\n", "open F, '>ran'; 1;\n"),
        swapped("PYTHONPATH=sub python3 -m zz", "sub/zz.py", "", "open('ran', 'w')"),
        swapped("npx --no zz", "node_modules/.bin/zz", SH, SH_EVIL),
        swapped("npm test", ".npmrc", "", "script-shell=/workspace/evil\n"),
    ]
}

fn prepare(arena: &Arena) {
    for name in ["keep", "sub/keep", "empty.js"] {
        arena.write(&format!("work/{name}"), "\n");
    }
    arena.write("work/Makefile", "all:\n\t@true\n");
    arena.write("work/y.pl", "1;\n");
    put(arena, "reader", "#!/bin/sh\nexec sh\n");
    arena.write("work/package.json", r#"{"name": "a", "version": "1.0.0", "scripts": {"test": "true"}}"#);
    put(arena, "evil", SH_EVIL);
}

fn put(arena: &Arena, name: &str, text: &str) {
    arena.write(&format!("work/{name}"), text);
    if text.starts_with("#!") {
        let path = arena.path(&format!("work/{name}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made runnable");
    }
}

/// Programs that not every machine has.
fn is_installed(line: &str) -> bool {
    let program =
        ["node", "npm", "npx", "java", "prove", "python3", "perl"].into_iter().find(|name| line.starts_with(name));
    program.is_none_or(|name| std::path::Path::new("/usr/bin").join(name).exists())
}

#[test]
fn a_file_that_a_line_may_run_is_the_one_that_was_there_when_it_was_asked_about() {
    for who in EVERYBODY {
        for Swapped { line, file, harmless, evil } in attacks().into_iter().filter(|attack| is_installed(attack.line)) {
            let arena = Arena::of(who);
            prepare(&arena);
            put(&arena, file, harmless);
            let input = json!({ "command": line }).to_string();
            let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
            put(&arena, file, evil);
            let answered = arena.run(&["approvals", "allow", &ask]);
            let said = format!("{}{}", answered.out, answered.err);
            assert!(!arena.exists("work/ran"), "{line} as {who:?}: {said}");
            assert!(said.contains("when this was asked"), "{line} as {who:?}: {said}");
            // The control: asked about as it is now, it does what the approval was not for.
            arena.run(&["--approvals", "allow", "call", "shell_run", &input]);
            assert!(arena.exists("work/ran"), "{line}: the attack would not have worked");
        }
    }
}

#[test]
fn a_file_that_a_line_only_shows_or_moves_may_change() {
    let arena = Arena::of(EVERYBODY[1]);
    for line in ["cat data > out", "cp data out", "grep -c . data > out", "sort data > out", "sort < data > out"] {
        prepare(&arena);
        put(&arena, "data", "1\n");
        let input = json!({ "command": line }).to_string();
        let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
        put(&arena, "data", "1\n2\n");
        arena.run(&["approvals", "allow", &ask]).ends(0);
    }
}

/// However many programs a line runs, and wherever in it they stand.
#[test]
fn every_program_of_a_long_line_is_bound() {
    for (programs, swapped) in [(40, 39), (40, 0), (70, 69), (255, 200), (400, 399)] {
        let arena = Arena::of(EVERYBODY[1]);
        (0..programs).for_each(|at| put(&arena, &format!("p{at}"), SH));
        let line: Vec<String> = (0..programs).map(|at| format!("./p{at}")).collect();
        let input = json!({ "command": line.join("; ") }).to_string();
        // The control: nothing changes.
        let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
        arena.run(&["approvals", "allow", &ask]).ends(0);
        let ask = arena.run(&["call", "shell_run", &input]).ends(3).id("ask_");
        put(&arena, &format!("p{swapped}"), SH_EVIL);
        if programs > 64 {
            let shown = arena.run(&["approvals", "show", &ask]).ends(0);
            shown.says("further programs and files").says("bound to all of them as one");
        }
        arena.run(&["approvals", "allow", &ask]).ends(1).warns("when this was asked");
        assert!(!arena.exists("work/ran"), "{programs} programs, the one at {swapped}");
        arena.run(&["--approvals", "allow", "call", "shell_run", &input]).ends(0);
        assert!(arena.exists("work/ran"), "the attack would not have worked");
    }
}

/// The ask names each file that the line surely runs, with its size and digest, and quotes it if it is short text.
#[test]
fn a_script_that_a_line_runs_is_named_and_quoted_in_the_ask() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        prepare(&arena);
        put(&arena, "s.sh", "#!/bin/sh\necho \x1b[2Jcanary-4711\n");
        put(&arena, "x.py", "print('canary-4711')\n");
        put(&arena, "long.sh", &format!("{}echo last-line\n", "echo canary-4711\n".repeat(40)));
        put(&arena, ".env", "echo canary-secret\n");
        arena.write("work/blob", "\0\u{1}canary-4711");
        let shown = |line: &str| {
            let ask = arena.run(&["call", "shell_run", &json!({ "command": line }).to_string()]).ends(3).id("ask_");
            arena.run(&["approvals", "show", &ask]).ends(0).out
        };
        for line in [
            "sh s.sh",
            "bash s.sh a b",
            "./s.sh",
            "/workspace/s.sh",
            "sh -e s.sh",
            "bash --rcfile keep s.sh",
            "timeout 5 sh s.sh",
            "env X=1 ./s.sh",
            "true && sh ./s.sh",
            "cd sub && sh ../s.sh",
            ". ./s.sh",
        ] {
            let told = shown(line);
            let size = format!(
                "runs the file /workspace/s.sh ({} bytes, sha256 ",
                "#!/bin/sh\necho \x1b[2Jcanary-4711\n".len()
            );
            assert!(told.contains(&size) && told.contains("canary-4711"), "{line}: {told}");
            assert!(!told.contains('\x1b'), "{line}: {told}");
        }
        for line in ["python3 x.py", "python3 -B x.py 1"] {
            let told = shown(line);
            assert!(told.contains("runs the file /workspace/x.py (21 bytes") && told.contains("canary-4711"), "{told}");
        }
        let told = shown("sh long.sh");
        assert!(told.contains("29 lines more") && !told.contains("last-line"), "{told}");
        let told = shown("sh blob");
        assert!(told.contains("/workspace/blob") && told.contains("no text") && !told.contains("canary"), "{told}");
        // What holds secrets is named alone.
        let told = shown("sh .env");
        assert!(told.contains("may not be shown") && !told.contains("canary-secret"), "{told}");
        // What is only bound is named as that; what is only shown is not bound.
        let told = shown("pytest x.py");
        assert!(told.contains("/workspace/x.py") && !told.contains("runs the file"), "{told}");
        assert!(!shown("cat x.py > y").contains("runs the file"));
    }
}

/// A remembered answer holds for whatever the file is by then, and says so.
#[test]
fn an_answer_that_is_remembered_says_that_the_script_may_change() {
    let arena = Arena::of(EVERYBODY[1]);
    prepare(&arena);
    put(&arena, "s.sh", SH);
    let profile = |line: &str| {
        let input = json!({ "command": line }).to_string();
        let ask = arena.run(&["--profile", "code", "call", "bash", &input]).ends(3).id("ask_");
        arena.run(&["approvals", "show", &ask]).ends(0).out
    };
    let words = "whatever the files that it runs hold by then";
    for line in ["sh s.sh", "./s.sh", "python3 x.py", "make all", "npm test"] {
        assert!(profile(line).contains(words), "{line}: {}", profile(line));
    }
    assert!(!profile("mkdir x").contains(words));
}
