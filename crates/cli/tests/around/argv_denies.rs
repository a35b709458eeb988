//! Rules about commands: every spelling of a denied command is denied, and what may hide one is for a person to judge.

use serde_json::{Value, json};

use crate::arena::{Arena, EVERYBODY, Who};

const PUSH: &str = "[[rules]]\nid = \"no-push\"\naction = \"*\"\nargv = [\"git\", \"push\"]\neffect = \"deny\"\n";
const RM: &str = "[[rules]]\nid = \"no-rm\"\naction = \"*\"\nargv = [\"rm\"]\neffect = \"deny\"\n";
/// As somebody writes it who trusts a session with everything else.
pub const ALLOW: &str = "[[rules]]\nid = \"all\"\naction = \"*\"\neffect = \"allow\"\n";

/// What the gate would say of a line.
pub fn explained(arena: &Arena, line: &str) -> Value {
    let input = json!({"command": line}).to_string();
    arena.run(&["policy", "explain", "bash", &input, "--json", "--profile", "code"]).json()
}

/// Every wrapper around a command, with room for it.
fn wrapped(command: &str) -> Vec<String> {
    let around = [
        "{}",
        "env {}",
        "env -i A=b {}",
        "sudo -n {}",
        "timeout 5 {}",
        "nohup nice -n 3 {}",
        "sh -c '{}'",
        "bash -lc '{}'",
        "ssh-agent {}",
        "logsave f {}",
        "x86_64 {}",
        "setarch i386 {}",
        "true && {}",
        "echo $({})",
        "xvfb-run -a {}",
        "find . -exec {} ;",
        "command {}",
        "eval '{}'",
        "ccache {}",
        "A=b {}",
    ];
    around.iter().map(|around| around.replace("{}", command)).collect()
}

#[test]
fn l32_every_spelling_of_a_denied_verb_is_denied() {
    let arena = Arena::of(Who::Root);
    let spellings = [
        "git push",
        "git -C . push",
        "git --no-pager push",
        "git -c user.name=a push",
        "git --git-dir=.git push",
        "git --git-dir .git --work-tree . push",
        "git -P -C . -c a.b=c push origin main",
        "/usr/bin/git push",
        "../usr/bin/git -C x push",
        "/usr/lib/git-core/git-push origin",
        "git-push",
        "/usr/lib/git-core/git push",
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push",
        "ld.so /usr/bin/git -C . push",
    ];
    let mut lines: Vec<String> = spellings.iter().map(|line| (*line).to_owned()).collect();
    lines.extend(wrapped("git -C . push"));
    lines.extend(wrapped("/usr/lib/git-core/git-push"));
    assert!(lines.len() >= 50, "{}", lines.len());
    arena.configure(&format!("{PUSH}{ALLOW}"));
    for line in &lines {
        let found = explained(&arena, line);
        assert_eq!(found["decision"], "deny", "{line}: {found}");
        let reason = found["reason"].as_str().expect("a reason");
        assert!(reason.contains("`no-push`") && reason.contains("config.toml:1"), "{line}: {reason}");
    }
    // The control: it is that rule which denies them. What only fetches, or only looks like it, is let through.
    for line in ["git -C push status", "git --no-pager log push", "git commit -m push", "npm run push", "echo git push"]
    {
        assert_eq!(explained(&arena, line)["decision"], "allow", "{line}");
    }
    arena.configure(ALLOW);
    for line in &lines {
        let found = explained(&arena, line);
        assert_ne!(found["decision"], "deny", "{line}: {found}");
        assert_eq!(found["only_a_person"], false, "{line}: {found}");
    }
}

#[test]
fn l32_links_to_a_denied_program_are_that_program() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        std::os::unix::fs::symlink("/usr/bin/git", arena.path("work/tool")).expect("linked");
        std::os::unix::fs::symlink("tool", arena.path("work/again")).expect("linked");
        let lines =
            ["./tool push", "./again -C . push", "/workspace/again push", "sudo ./tool push", "sh -c './tool push'"];
        arena.configure(&format!("{PUSH}{ALLOW}"));
        for line in lines {
            assert_eq!(explained(&arena, line)["decision"], "deny", "{line}");
        }
        assert_eq!(explained(&arena, "./tool status")["decision"], "allow");
        arena.configure(ALLOW);
        for line in lines {
            assert_eq!(explained(&arena, line)["decision"], "allow", "{line}");
        }
    }
}

#[test]
fn l32_links_are_followed_in_the_folder_that_a_command_runs_in() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, arena.path(&format!("work/{name}"))).expect("linked");
        };
        arena.write("work/sub/deep/keep", "");
        link("/usr/bin/git", "sub/g");
        link("../g", "sub/deep/h");
        link("/workspace/sub", "absolute");
        link("sub/deep", "down");
        link("sub/deep", "turned");
        let denied = [
            "sub/g push",
            "(cd sub; ./g -C .. push origin main)",
            "cd sub && ./g push",
            "cd sub/deep; ./h push",
            "cd sub/deep; ../g push",
            "cd /workspace/sub; ./g push",
            "pushd sub; ./g push",
            "env -C sub ./g push",
            "env --chdir=sub timeout 5 ./g push",
            "sh -c 'cd sub && ./g push'",
            "bash -c \"cd sub; sudo ./g push\"",
            "cd sub || exit; ./g push",
            "absolute/g push",
            "down/../g push",
        ];
        // Which program it is becomes known only when the line runs.
        let a_persons = [
            "cd $(echo sub) && ./g push",
            "find sub -name g -execdir ./g push origin main ';'",
            "cd absolute && ./g push",
            "cd sub; cd -; ./g push",
            "CDPATH=/workspace/sub cd deep; ../g push",
            "ln -sfn sub turned; cd turned && ./g push",
            "[ -d sub ] && cd sub; ./g push",
            "f() { cd sub; }; f; ./g push",
            "for d in sub; do cd $d; ./g push; done",
            "echo sub | xargs -I% sh -c 'cd % && ./g push'",
        ];
        let harmless =
            ["(cd sub; ./g status)", "cd sub; ls", "cd $(echo sub) && ls", "env -C sub ls", "cd sub; ./other push"];
        arena.configure(&format!("{PUSH}{ALLOW}"));
        for line in denied {
            assert_eq!(explained(&arena, line)["decision"], "deny", "{line}");
        }
        for line in a_persons {
            let found = explained(&arena, line);
            assert_eq!((&found["decision"], &found["only_a_person"]), (&json!("ask"), &json!(true)), "{line}: {found}");
        }
        for line in harmless {
            let found = explained(&arena, line);
            assert_eq!(found["only_a_person"], false, "{line}: {found}");
            assert_ne!(found["decision"], "deny", "{line}: {found}");
        }
        // The control: it is that rule.
        arena.configure(ALLOW);
        for line in denied.iter().chain(&a_persons) {
            let found = explained(&arena, line);
            assert_ne!(found["decision"], "deny", "{line}: {found}");
            assert_eq!(found["only_a_person"], false, "{line}: {found}");
        }
    }
}

#[test]
fn l32_a_program_that_nobody_knows_is_asked_about_if_a_tail_of_its_words_is_denied() {
    let arena = Arena::of(Who::Root);
    let lines = [
        "aws s3 rm s3://b/k",
        "frobnicate rm -rf x",
        "frobnicate --quiet /bin/rm x",
        "./runner rm x",
        "frobnicate --exec=rm x",
        "frobnicate sh -c 'rm x'",
        "frobnicate 'rm x; ls'",
    ];
    arena.configure(&format!("{RM}{ALLOW}"));
    for line in lines {
        let found = explained(&arena, line);
        assert_eq!((&found["decision"], &found["pinned"]), (&json!("ask"), &json!(true)), "{line}: {found}");
        assert!(found["reason"].as_str().expect("a reason").contains("`no-rm`"), "{line}: {found}");
    }
    for line in ["git rm x", "npm rm x", "echo rm x", "grep rm x", "frobnicate remove x", "make rm"] {
        assert_eq!(explained(&arena, line)["decision"], "allow", "{line}");
    }
    // Somebody who names the command has seen it.
    let named = "[[rules]]\naction = \"*\"\nargv = [\"aws\", \"s3\", \"rm\"]\neffect = \"allow\"\n";
    arena.configure(&format!("{RM}{ALLOW}{named}"));
    assert_eq!(explained(&arena, "aws s3 rm s3://b/k")["decision"], "allow");
    arena.configure(ALLOW);
    for line in lines {
        assert_eq!(explained(&arena, line)["decision"], "allow", "{line}");
    }
}

/// Lines that run `touch made` in one way or another, where no word says so.
fn hiding() -> Vec<String> {
    let lines = [
        "x=touch; $x made",
        "x=ouch; t$x made",
        "a=(touch made); \"${a[@]}\"",
        "echo 'touch made' | sh",
        "echo 'touch made' | bash -s",
        "echo dG91Y2ggbWFkZQ== | base64 -d | bash",
        "bash <<< 'touch made'",
        "sh <<'E'\ntouch made\nE",
        "bash <(echo touch made)",
        "source <(echo touch made)",
        "eval \"$(echo touch made)\"",
        "python3 -c 'open(\"made\",\"w\")'",
        "perl -e 'open F, \">made\"'",
        "echo made | xargs $(echo touch)",
        "alias t=touch; \\touch made",
        "$(echo touch) made",
        "`echo touch` made",
        "{touch,made}",
        "x='touch made'; sh -c \"$x\"",
        "awk 'BEGIN { system(\"touch made\") }'",
        "env $(echo touch) made",
        "nice $(echo touch) made",
        "f() { \"$@\"; }; f touch made",
        "read x <<< touch; $x made",
        "printf -v x touch; $x made",
        "trap 'touch made' EXIT",
        "echo 'touch made' > s; . /dev/stdin < s",
        "make -f <(printf 'a:;touch made\\n')",
        "echo touch made | sed -f <(echo e)",
        "python3 -m timeit -n 1 -r 1 'open(\"made\",\"w\")'",
        "python3 -Im timeit -n 1 -r 1 'open(\"made\",\"w\")'",
        "printf 'open(\"made\",\"w\")' > c.py; python3 -m cProfile c.py",
        "printf 'open(\"made\",\"w\")' > c.py; python3 -m runpy c",
        "x='$(touch made)'; echo \"${x@P}\"",
        "read a <<< 'x[$(touch made)]'; echo $((a))",
        "read a <<< 'x[$(touch made)]'; b=a; echo \"${!b}\" $((a))",
        "ln -sf /usr/bin/touch t; ./t made; rm t",
        "ln -sf /usr/bin/touch t; PATH=.:$PATH; t made; rm t",
        "mkdir -p d; ln -sf /usr/bin/touch d/t; run-parts -a made d; rm -r d",
        "cat /usr/bin/touch > t; chmod +x t; ./t made; rm t",
    ];
    lines.map(str::to_owned).into()
}

#[test]
fn l31_under_approvals_allow_a_line_that_may_hide_a_denied_command_waits_for_a_person() {
    // Of a verb, so that no mask stands in for the gate.
    let deny = "[[rules]]\nid = \"no-touch\"\naction = \"*\"\nargv = [\"touch\", \"made\"]\neffect = \"deny\"\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let lines = hiding();
        // The hand is the slow part of it, so an ordinary user tries some of them.
        let step = if who == Who::Root { 1 } else { 6 };
        for line in lines.iter().step_by(step) {
            let input = json!({"command": line}).to_string();
            let call = ["call", "shell_run", &input, "--approvals", "allow"];
            arena.configure("");
            arena.run(&call);
            assert!(arena.exists("work/made"), "the control did nothing: {line}");
            std::fs::remove_file(arena.path("work/made")).expect("removed");
            arena.configure(deny);
            let ran = arena.run(&call);
            assert!(!arena.exists("work/made"), "{line}: {}{}", ran.out, ran.err);
            // Denied for certain, or left to a person with the rule named.
            assert!(matches!(ran.code, 3 | 4), "{line}: {} {}{}", ran.code, ran.out, ran.err);
            assert!(format!("{}{}", ran.out, ran.err).contains("no-touch"), "{line}: {}{}", ran.out, ran.err);
        }
    }
}

/// An editor that a person set runs what it is given to read, as `:!…` of vi does. Git gives it the input of the line.
#[test]
fn l31_an_editor_that_git_opens_on_the_input_of_the_line_waits_for_a_person() {
    let deny = "[[rules]]\nid = \"no-touch\"\naction = \"*\"\nargv = [\"touch\", \"made\"]\neffect = \"deny\"\n";
    let settings = "[core]\neditor = sh -s\n[user]\nname = a\nemail = a@localhost\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let git = |words: &[&str]| {
            let done = arena.as_this_person("/usr/bin/git").args(words).current_dir(arena.path("work")).output();
            assert!(done.expect("git runs").status.success(), "{words:?}");
        };
        git(&["init", "-q", "."]);
        arena.write("work/.git/config", &format!("{}{settings}", arena.read("work/.git/config")));
        git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&["commit", "-q", "--allow-empty", "-m", "y"]);
        for verb in [
            "commit --allow-empty",
            "commit --amend --allow-empty",
            "commit --allow-empty -m x -e",
            "tag -a v1",
            "config -e",
            "config --local --edit",
            "rebase -i HEAD~1",
            "notes add",
            "branch --edit-description",
        ] {
            let line = format!("echo dG91Y2ggbWFkZQo= | base64 -d | git {verb}");
            let input = json!({"command": line}).to_string();
            let call = ["call", "shell_run", &input, "--approvals", "allow"];
            arena.configure("");
            let control = arena.run(&call);
            assert!(arena.exists("work/made"), "the control did nothing: {line}: {}{}", control.out, control.err);
            std::fs::remove_file(arena.path("work/made")).expect("removed");
            arena.configure(deny);
            let ran = arena.run(&call);
            assert!(!arena.exists("work/made"), "{line}: {}{}", ran.out, ran.err);
            ran.ends(3).says("no-touch");
        }
        // A message that is given opens no editor.
        arena
            .run(&[
                "call",
                "shell_run",
                r#"{"command":"echo y | git commit -q --allow-empty -F -"}"#,
                "--approvals",
                "allow",
            ])
            .ends(0);
    }
}

/// Lines that carry `touch made` in a text which some program runs: the value of an option or a variable, a script that
/// the line writes, what it gives a program to read, or a name that `PATH` leads to.
const CARRYING: &[&str] = &[
    "git init -q r; git -C r ls-remote --u='touch ../made;git-upload-pack' .",
    "git clone -q --up='touch made;git-upload-pack' r c",
    "git grep --no-index --op='touch made;:' hi",
    "git -C r -c user.name=a -c user.email=b commit -q --allow-empty -m a; git -C r commit-tree HEAD^{tree} -m x; \
        git -C r -c user.name=a -c user.email=b rebase -q --ex 'touch ../made' --root",
    "git remote-ext a 'touch made' <<< 'connect git-upload-pack'",
    "make hello CC='touch made;:'",
    "make hello LINK.c='touch made;:'",
    "CC='touch made;:' make hello",
    "export CC='touch made;:'; make hello",
    "MAKEFLAGS='CC=touch\\ made;:' make hello",
    "sqlite3 -batch x.db <<< '.shell touch made'",
    "sqlite3 -interactive x.db <<< '.shell touch made'",
    "sqlite3 -init /dev/stdin x.db 'select 1' <<< '.shell touch made'",
    "sqlite3 :memory: \"select EDIT('a','touch made;:')\"",
    "sqlite3 :memory: \"select edit ('a','touch made;:')\"",
    "perl '-MPOSIX;system\"touch made\"' empty.pl",
    "python3 -i empty.py <<< 'import os; os.system(\"touch made\")'",
    "python3 -qi empty.py <<< 'import os; os.system(\"touch made\")'",
    "node --require ./empty.js --interactive <<< 'require(\"child_process\").execSync(\"touch made\")'",
    "A=/x/y python3 -c 'open(\"made\", \"w\")'",
    "A=/x/y touch made",
    "env -S 'touch\\_made'",
    "env --split-string='touch\\_made'",
    "run-parts --regex='^touch$' -a made /usr/bin",
    "echo 'touch made' > x.sh; sh x.sh",
    "cat > x.sh <<'E'\ntouch made\nE\n. ./x.sh",
    "printf 'a:;touch made\\n' > Makefile; make; rm Makefile",
    "echo 'open(\"made\", \"w\")' | tee x.py; python3 x.py",
    "cp do.sh y.sh; bash y.sh",
    "export PATH=$PWD/sub:$PATH; t made",
    "PATH=./sub t made",
    // A variable that is set without an assignment.
    "read -r CC <<< 'touch made;:'; export CC; make hello",
    "for CC in 'touch made;:'; do export CC; make hello; done",
    "unset PS4; : ${PS4:='$(touch made)'}; set -x; true",
    // What a shell evaluates.
    "read RANDOM <<< 'a[$(touch made)]'",
    "RANDOM=$(base64 -d <<< YVskKHRvdWNoIG1hZGUpXQ==)",
    // Files with a program, in other spellings.
    "awk -v x=1 -f /dev/stdin <<< 'BEGIN{system(\"touch made\")}'",
    "printf '1e tou%s made\\n' ch > s.sed; sed -nfs.sed hi.txt",
    "printf 'a:;tou%s made\\n' ch > rules; make -srf rules a",
    "printf 'tou%s made\\n' ch > rc; bash --rcfile rc -ic true",
    "echo 'require(\"child_process\").execSync(\"tou\"+\"ch made\")' > m; node -r ./m empty.js",
    // A folder that a variable names.
    "printf '[alias]\\np=!tou%s made\\n' ch > .gitconfig; HOME=. git p; rm .gitconfig",
    "GIT_EXEC_PATH=$PWD/sub git t made",
    // What git reads.
    "git init -q n; printf '[alias]\\np=!tou%s ../made\\n' ch >> n/.git/config; git -C n p; rm -rf n",
    "git init -q n; git -C n config alias.p '!tou''ch ../made' get; git -C n p; rm -rf n",
    "mkdir -p h/hooks; printf '#!/bin/sh\\ntou%s ../made\\n' ch > h/hooks/post-commit; chmod +x h/hooks/post-commit; \
        git init -q --template=$PWD/h n; git -C n -c user.name=a -c user.email=b commit -q --allow-empty -m x; rm -rf h n",
    // Files from which a program takes options.
    "printf 'Host *\\nProxyCommand tou%s made\\n' ch > conf; ssh -Fconf host true",
    "printf -- '-wrapper tou%s,made,--\\n' ch > a.txt; gcc -c hello.c @a.txt",
    // A shell on its input.
    "echo dG91Y2ggbWFkZQo= | base64 -d | linux64 -v",
    "echo Y2QgL3dvcmtzcGFjZTsgdG91Y2ggbWFkZQo= | base64 -d | env -C /dev sh stdin",
    // Files that a program writes by an option, a pattern or a patch.
    "awk 'BEGIN{print \"tou\" \"ch made\" > \"s\"}'; sh s",
    "base64 -d <<< dG91Y2ggbWFkZQo= | split -l1 - p; sh paa",
    "printf 'tou%s made\\n' ch | iconv -t utf-8 -o s; sh s",
    "printf 'tou%s made\\n' ch > s; gzip -f s; gunzip s.gz; sh s",
    "printf 'tou%s made\\n' ch > x; tar cf - --transform=s/x/s/ x | tar xf -; sh s",
    "LOADLIBES='$(shell $(T)ouch made)' T=t make hello",
    "zip -q -T -TT'touch made;:' x.zip hi.txt",
    // A program by what a process has open, or by a folder of the shell.
    "/dev/stdin made < /usr/bin/touch",
    "exec 3< /usr/bin/touch; /proc/self/fd/3 made",
    "exec 3< /usr/bin/touch; env /dev/fd/3 made",
    "echo dG91Y2ggbWFkZQo= | base64 -d | /proc/self/exe",
    "/proc/self/root/workspace/sub/t made",
    "/proc/self/cwd/sub/t made",
    "../proc/self/cwd/sub/t made",
    "/usr/../proc/self/cwd/sub/t made",
    "/dev/fd/../cwd/sub/t made",
    "/proc/self/cwd/../../../workspace/sub/t made",
    "deep/t made",
    "cd /proc/self/cwd; sub/t made",
    "~+/sub/t made",
    "cd sub; cd ..; ~-/t made",
    "pushd sub > /dev/null; cd ..; ~1/sub/t made",
];

#[test]
fn l32_a_denied_command_that_a_text_of_the_line_carries_waits_for_a_person() {
    let deny = "[[rules]]\nid = \"no-touch\"\naction = \"*\"\n\
        argv = [[\"touch\", \"made\"], [\"touch\", \"../made\"]]\neffect = \"deny\"\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/hello.c", "int main(void) { return 0; }\n");
        for (name, text) in
            [("hi.txt", "hi\n"), ("do.sh", "touch made\n"), ("empty.pl", ""), ("empty.py", ""), ("empty.js", "")]
        {
            arena.write(&format!("work/{name}"), text);
        }
        arena.write("work/sub/x", "");
        for name in ["t", "git-t"] {
            std::os::unix::fs::symlink("/usr/bin/touch", arena.path(&format!("work/sub/{name}"))).expect("linked");
        }
        std::os::unix::fs::symlink("/proc/self/cwd/sub", arena.path("work/deep")).expect("linked");
        // The hand is the slow part of it, so an ordinary user tries some of them.
        let step = if who == Who::Root { 1 } else { 7 };
        for line in CARRYING.iter().step_by(step) {
            arena.configure("");
            let ran = run(&arena, line);
            assert!(arena.exists("work/made"), "the control did nothing: {line}: {}{}", ran.out, ran.err);
            std::fs::remove_file(arena.path("work/made")).expect("removed");
            arena.configure(deny);
            let ran = run(&arena, line);
            assert!(!arena.exists("work/made"), "{line}: {}{}", ran.out, ran.err);
            assert!(matches!(ran.code, 3 | 4), "{line}: {} {}{}", ran.code, ran.out, ran.err);
            assert!(format!("{}{}", ran.out, ran.err).contains("no-touch"), "{line}: {}{}", ran.out, ran.err);
        }
    }
}

#[test]
fn l32_a_link_to_a_program_with_a_language_of_its_own_is_that_program() {
    let arena = Arena::of(Who::Root);
    for (link, program) in [("edit", "/usr/bin/vim"), ("db", "/usr/bin/sqlite3"), ("py", "/usr/bin/python3")] {
        std::os::unix::fs::symlink(program, arena.path(&format!("work/{link}"))).expect("linked");
    }
    arena.configure(&format!("{PUSH}{ALLOW}"));
    for line in ["./edit -es '+!x' +q", "sudo ./edit x", "./db x.db <<< '.shell x'", "./py -c x", "./py -i x.py"] {
        let found = explained(&arena, line);
        assert_eq!((&found["decision"], &found["only_a_person"]), (&json!("ask"), &json!(true)), "{line}: {found}");
    }
    for line in ["./db x.db 'select 1'", "./py x.py", "./edit --version"] {
        assert_eq!(explained(&arena, line)["only_a_person"], false, "{line}");
    }
}

#[test]
fn l31_a_person_can_still_allow_it_once_and_no_answer_is_remembered() {
    let arena = Arena::of(Who::OrdinaryUser);
    arena.configure("[[rules]]\nid = \"no-dd\"\naction = \"*\"\nargv = [\"dd\", \"if=x\"]\neffect = \"deny\"\n");
    let input = json!({"command": "x=touch; $x made"}).to_string();
    let call = ["call", "shell_run", &input, "--approvals", "allow"];
    let ask = arena.run(&call).ends(3).id("ask_");
    assert!(arena.run(&["approvals", "allow", &ask, "--save"]).code != 0, "it cannot be remembered");
    arena.run(&["approvals", "allow", &ask]).ends(0);
    assert!(arena.exists("work/made"));
    arena.run(&call).ends(3);
}

#[test]
fn l31_an_allow_of_what_is_opaque_counts_unless_a_stronger_layer_denies() {
    let arena = Arena::of(Who::Root);
    let opaque = "[[rules]]\naction = \"*\"\nopaque = true\neffect = \"allow\"\n";
    arena.configure(&format!("{PUSH}{ALLOW}{opaque}"));
    for line in ["python3 -c 'x'", "x=push; git $x", "echo a | sh"] {
        assert_eq!(explained(&arena, line)["decision"], "allow", "{line}");
    }
    // A project's own allow, trusted or not, is weaker than the user's deny.
    arena.configure(PUSH);
    arena.write("work/.portcullis/config.toml", &format!("{ALLOW}{opaque}").replace("\"all\"", "\"theirs\""));
    arena.run(&["policy", "trust", ".portcullis/config.toml"]).ends(0);
    for line in ["python3 -c 'x'", "x=push; git $x", "echo a | sh"] {
        let found = explained(&arena, line);
        assert_eq!((&found["decision"], &found["only_a_person"]), (&json!("ask"), &json!(true)), "{line}: {found}");
    }
}

#[test]
fn lines_of_every_day_are_not_made_a_persons_business_by_a_deny() {
    let arena = Arena::of(Who::Root);
    arena.configure(&format!("{PUSH}{RM}{ALLOW}"));
    arena.write("work/sub/keep", "");
    for line in [
        "ls *.rs",
        "cat $HOME/x",
        "for f in *.txt; do wc -l \"$f\"; done",
        "git status $x",
        "git log \"$x\"",
        "git -C \"$dir\" status",
        "awk '{print $1}' a.txt",
        "awk -F: '$3 > 1 || $4' a.txt",
        "npm test && npm run build",
        "grep -rn \"$x\" src | head -5",
        "cargo test -- --nocapture",
        "python3 manage.py test -p x",
        "source .venv/bin/activate && pytest -x",
        "./build.sh $x",
        "make -j4 all",
        "find . -name '*.rs' | xargs grep -n x",
        "[[ -f a ]] && echo b",
        "i=0; ((i++))",
        "for i in 1 2; do echo $((i+1)); done",
        "diff <(sort a) <(sort b)",
        "python3 -m pytest -m slow",
        "./build.sh > out.log 2>&1",
        "node app.js -e x",
        "git commit -m 'git push later'",
        "echo 'rm x; git push' > notes.txt",
        "cat > notes.md <<'E'\nthen git push\nE",
        "grep -rn 'git push' docs",
        "make -j4 CC=clang CFLAGS='-O2 -g'",
        "export PATH=$HOME/.cargo/bin:$PATH && cargo test",
        "chmod +x x.py && python3 x.py",
        "python3 x.py > out.log && tail out.log",
        "sqlite3 x.db 'select * from edits'",
        "gh pr create --title x --body 'run git push'",
        "cd sub && ./build.sh",
        "cd \"$dir\" && cargo test",
        "cd $dir && npm test",
        "(cd sub && make -j4)",
        "for d in a b; do (cd \"$d\" && npm ci); done",
        "cd ~/x && ls",
        "echo x >> .gitignore && git add -A && git commit -m y",
        "npm ci && npm test",
        "make > log 2>&1; tail log",
        "while read -r l; do echo \"$l\"; done < f",
        "for CC in gcc clang; do export CC; make; done",
        "awk -F, -v n=1 '$1 > n {print $2}' a.csv",
        "awk -f report.awk data.txt",
        "PYTHONPATH=. pytest -q > out.log",
        "patch -p1 < fix.diff && python3 test.py",
        "git config user.name x && git commit -m y",
        "kubectl apply -f - <<E\nx: y\nE",
        "gcc a.c -o a && ./a",
        "./dev/setup.sh",
        "cd sub && ../dev/build.sh",
        "~/.cargo/bin/cargo test",
        "cat /dev/null > x; wc -l < /dev/stdin",
        "make -C \"$dir\" test",
        "cp a ~+/b",
    ] {
        let found = explained(&arena, line);
        assert_eq!(found["only_a_person"], false, "{line}: {found}");
    }
}

/// A command that runs as this person, answered by the flag.
fn run(arena: &Arena, line: &str) -> crate::common::Ran {
    let input = json!({"command": line}).to_string();
    arena.run(&["call", "shell_run", &input, "--approvals", "allow"])
}

#[test]
fn a_program_that_is_denied_as_a_whole_cannot_be_run_by_a_script() {
    let deny = "[[rules]]\nid = \"no-truncate\"\naction = \"*\"\nargv = [\"truncate\"]\neffect = \"deny\"\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let scripts = [
            "truncate -s 1 made",
            "/usr/bin/truncate -s 1 made",
            "x=trunc; ${x}ate -s 1 made",
            "cp /usr/bin/truncate copy && ./copy -s 1 made",
            "ln -s /usr/bin/truncate other; ./other -s 1 made",
            "env -i /usr/bin/truncate -s 1 made",
        ];
        for script in scripts {
            arena.write("work/do.sh", &format!("{script}\n"));
            arena.configure("");
            run(&arena, "sh do.sh");
            assert!(arena.exists("work/made"), "the control did nothing: {script}");
            std::fs::remove_file(arena.path("work/made")).expect("removed");
            let _ = std::fs::remove_file(arena.path("work/copy"));
            let _ = std::fs::remove_file(arena.path("work/other"));
            arena.configure(deny);
            let ran = run(&arena, "sh do.sh");
            assert!(!arena.exists("work/made"), "{script}: {}{}", ran.out, ran.err);
            assert!(ran.code != 0, "{script}");
        }
        // Everything else runs, the shell above all.
        run(&arena, "touch other && ls").ends(0).says("other");
        // A deny of the shell is one of lines that call it; it does not take away what runs every line.
        arena.configure(
            "[[rules]]\nid = \"no-bash\"\naction = \"*\"\nargv = [[\"bash\"], [\"sh\"]]\neffect = \"deny\"\n",
        );
        run(&arena, "echo still here").ends(0).says("still here");
        assert_eq!(run(&arena, "bash -c 'echo x'").code, 4);
    }
}

#[test]
fn a_deny_that_matches_thousands_of_files_keeps_commands_running() {
    let arena = Arena::of(Who::OrdinaryUser);
    let (mixed, full) = (arena.path("work/mixed"), arena.path("work/full/deep"));
    std::fs::create_dir_all(&mixed).and_then(|()| std::fs::create_dir_all(&full)).expect("made");
    for n in 0..2_500 {
        std::fs::write(mixed.join(format!("{n}.data")), "hidden\n").expect("written");
        for m in 0..8 {
            std::fs::write(full.join(format!("{n}-{m}.data")), "hidden\n").expect("written");
        }
    }
    arena.write("work/mixed/open.txt", "readable\n");
    let line = "cat mixed/open.txt; cat mixed/7.data full/deep/9-3.data; ls full";
    run(&arena, line).says("hidden");
    arena.configure("[[rules]]\nid = \"data\"\naction = \"*\"\npath = \"**/*.data\"\neffect = \"deny\"\n");
    let ran = run(&arena, line);
    assert!(ran.out.contains("readable") && !ran.out.contains("hidden"), "{}{}", ran.out, ran.err);
}

/// A script of the project is the same program however it is started, through a link and below `cd` as well.
#[test]
fn l32_a_denied_script_does_not_run_under_another_starter() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/scripts/deploy.sh", "#!/bin/sh\ntouch /workspace/deployed\n");
        std::os::unix::fs::symlink("scripts/deploy.sh", arena.path("work/harmless")).expect("linked");
        let lines = [
            "bash scripts/deploy.sh",
            "sh ./scripts/deploy.sh prod",
            "cd scripts && bash deploy.sh",
            "dash -e scripts/deploy.sh",
            "env sh scripts/deploy.sh",
            ". ./scripts/deploy.sh",
            "bash harmless",
        ];
        let run = |line: &str| {
            arena.run(&["--approvals", "allow", "call", "shell_run", &json!({ "command": line }).to_string()])
        };
        for rule in [r#"["./scripts/deploy.sh"]"#, r#"["deploy.sh"]"#, r#"["bash", "scripts/deploy.sh"]"#] {
            let rule = format!("[[rules]]\nid = \"no\"\naction = \"*\"\nargv = {rule}\neffect = \"deny\"\n");
            arena.configure(&rule);
            for line in lines {
                run(line).ends(4);
                assert!(!arena.exists("work/deployed"), "{rule}: {line}");
            }
        }
        // The control: without the rule each of them acts.
        arena.configure("");
        for line in lines {
            run(line).ends(0);
            std::fs::remove_file(arena.path("work/deployed")).expect(line);
        }
    }
}
