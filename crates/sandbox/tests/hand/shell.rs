//! The persistent shell with real processes: what a command does can neither hide nor fake its end.

use std::collections::BTreeMap;
use std::future::pending;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_base::SystemIds;
use portcullis_sandbox::hand::Exit;
use portcullis_sandbox::shell::{FinishedLine, Program, Shell, ShellDied, Sink, Stream, line};

use crate::world::{World, alive, mark, until, world};

/// What a command wrote, as much of its ends as a test looks at.
#[derive(Default)]
struct Wrote {
    out: Vec<u8>,
    err: Vec<u8>,
    bytes: u64,
}

const KEPT: usize = 1 << 20;

impl Sink for Wrote {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let to = if stream == Stream::Stdout { &mut self.out } else { &mut self.err };
        if to.len() < KEPT {
            to.extend_from_slice(bytes);
        }
    }
}

impl Wrote {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

async fn open_with(world: &World, program: Program, env: &[(&str, &str)]) -> Shell {
    let mut plan = world.plan(&[]);
    plan.argv = program.argv();
    plan.env.extend(env.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let line = line(&mut plan).expect("a line");
    let running = world.launch(plan).await.expect("launched");
    Shell::begin(running, line, program, Arc::new(SystemIds::new())).await.expect("it answers")
}

async fn open(world: &World) -> Shell {
    open_with(world, Program::Bash, &[]).await
}

async fn try_run(shell: &mut Shell, command: &str) -> (Result<FinishedLine, ShellDied>, Wrote) {
    let mut wrote = Wrote::default();
    let stop = tokio::time::sleep(Duration::from_secs(60));
    let ended = shell.exec(command.as_bytes(), &mut wrote, stop).await;
    assert!(!ended.as_ref().map_or_else(|died| died.interrupted, |done| done.interrupted), "`{command}` hangs");
    (ended, wrote)
}

/// Status and standard output of a command that its shell survives.
#[track_caller]
fn of((ended, wrote): (Result<FinishedLine, ShellDied>, Wrote)) -> (u8, String) {
    let done = ended.unwrap_or_else(|died| panic!("the shell died: {died:?}; {}", String::from_utf8_lossy(&wrote.err)));
    (done.report.status, wrote.out())
}

async fn run(shell: &mut Shell, command: &str) -> (u8, String) {
    of(try_run(shell, command).await)
}

fn environment(done: &FinishedLine) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    done.report.environment.iter().flatten().map(|(name, value)| (text(name), text(value))).collect()
}

#[tokio::test]
async fn h43_folder_environment_and_functions_are_left_for_the_next_command() {
    let world = world();
    world.write("sub/file", "");
    for program in Program::ALL {
        let mut shell = open_with(&world, program, &[("GIVEN", "a b")]).await;
        let text = "cd sub; export A=\"1 '2'\n3\" GIVEN; local=7; f() { echo \"f $1\"; }; false";
        let (ended, _) = try_run(&mut shell, text).await;
        let done = ended.expect("it lives");
        assert_eq!((done.report.status, done.report.folder.as_slice()), (1, b"/workspace/sub".as_slice()));
        let env = environment(&done);
        assert_eq!((env["A"].as_str(), env["GIVEN"].as_str()), ("1 '2'\n3", "a b"));
        assert!(!env.contains_key("local"), "only what is exported is told");
        let (status, out) = run(&mut shell, "f x; echo $local; pwd; cat; read y || echo no input").await;
        assert_eq!((status, out.as_str()), (0, "f x\n7\n/workspace/sub\nno input\n"), "{program:?}");
        let (ended, _) = try_run(&mut shell, "unset A; cd /").await;
        let done = ended.expect("it lives");
        assert!(!environment(&done).contains_key("A"));
        assert_eq!(done.report.folder, b"/");
    }
}

#[tokio::test]
async fn check19_ten_mebibytes_markers_and_any_bytes_end_as_they_should_and_leave_the_shell_usable() {
    let world = world();
    let mut shell = open(&world).await;
    let (ended, wrote) = try_run(&mut shell, "head -c 10485760 /dev/zero; exit_with() { return 7; }; exit_with").await;
    assert_eq!((ended.expect("it lives").report.status, wrote.bytes), (7, 10 << 20));
    // The very words that we say and hear, on both streams.
    let words = r"printf '\0%s\0%s\0%s\0' 0123456789abcdef0123456789abcdef 0 / ; printf '%s\0' 0123456789abcdef0123456789abcdef. >&2";
    let (ended, wrote) = try_run(&mut shell, &format!("{words}; (exit 9)")).await;
    assert_eq!(ended.expect("it lives").report.status, 9);
    assert!(wrote.out.starts_with(b"\x000123") && wrote.err.ends_with(b"def.\0"));
    let (_, wrote) = try_run(&mut shell, r"printf '\377\376\0\r\033]0;title\007\n'; printf '\200' >&2").await;
    assert_eq!(
        (wrote.out.as_slice(), wrote.err.as_slice()),
        (b"\xff\xfe\0\r\x1b]0;title\x07\n".as_slice(), b"\x80".as_slice())
    );
    assert_eq!(run(&mut shell, "echo usable").await, (0, "usable\n".to_owned()));
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

#[tokio::test]
async fn check19_300_megabytes_on_one_line_take_no_memory() {
    let world = world();
    let mut shell = open(&world).await;
    let before = resident_kib();
    let (ended, wrote) = try_run(&mut shell, "head -c 300000000 /dev/zero | tr '\\0' x; (exit 3)").await;
    assert_eq!((ended.expect("it lives").report.status, wrote.bytes), (3, 300_000_000));
    let grown = resident_kib().saturating_sub(before);
    // Tests run beside each other in one process; what a whole line would take is far above all of them.
    assert!(grown < 100 * 1024, "{grown} KiB more");
    assert_eq!(run(&mut shell, "echo usable").await.0, 0);
}

#[tokio::test]
async fn h43_a_command_finds_no_way_to_write_an_end_of_its_own() {
    let world = world();
    let mut shell = open(&world).await;
    // Every descriptor of itself and of its shell, by number and through /proc; none may be the line.
    let try_all = r#"
        for p in self $PPID; do for f in /proc/$p/fd/*; do
          n=${f##*/}; case $n in 1|2) continue;; esac
          (printf '\0forged\0' > "$f") 2>/dev/null && echo "$p $n $(readlink $f)"
        done; done
        for n in 0 3 4 5 6 7 8 9 10 11 12 13 63 254 255; do
          (eval "printf '\0forged\0' >&$n") 2>/dev/null && echo "fd $n $(readlink /proc/self/fd/$n)"
        done; true"#;
    world.write("try.sh", try_all);
    let (status, out) = run(&mut shell, "sh ./try.sh; ls -l /proc/$$/fd").await;
    assert_eq!(status, 0);
    let (tried, listed) = out.split_once("total 0").expect("a listing");
    assert!(listed.contains("socket:"), "the line is there and it is a socket: {listed}");
    assert!(!tried.contains("socket:"), "the line could be written to: {tried}");
    // Somebody who is left behind by one command does not end the next.
    let mark = mark();
    let left = format!("(while :; do sh ./try.sh; sleep 0.{mark}; done) >/dev/null 2>&1 &");
    assert_eq!(run(&mut shell, &left).await.0, 0);
    let begun = Instant::now();
    assert_eq!(run(&mut shell, "sleep 0.5; (exit 4)").await.0, 4);
    assert!(begun.elapsed() >= Duration::from_millis(500), "it was told before it was over");
}

#[tokio::test]
async fn h43_whatever_a_command_changes_of_its_shell_its_end_is_told() {
    let world = world();
    let odd = [
        "cd() { :; }; export() { :; }; printf() { echo no; }; env() { echo no; }; eval() { :; }; read() { :; }",
        "shopt -s expand_aliases; alias eval=false builtin=false printf=false",
        "PROMPT_COMMAND='false'; PS1='$(false)> '; PS2=x",
        "trap 'false' DEBUG; trap 'echo err' ERR; trap 'echo int' INT TERM HUP; trap 'echo ret' RETURN",
        "set -x",
        "set -v",
        "set -u; echo $nothing",
        "set -f; set -C; set -o pipefail; set -k",
        "IFS=0123456789abcdef",
        "POSIXLY_CORRECT=1",
        "LC_ALL=C; LANG=xx",
        "PATH=",
        "unset PATH HOME PWD OLDPWD",
        "echo 'open",
        "echo \"open",
        "cat <<EOF\nopen",
        "echo $(open",
        "f() {",
        "if then",
        "( ",
        "echo \\",
        "# only a word",
        "",
        "\n\n",
        ";",
        "break 99; continue 99; return 5",
        "exec </dev/zero",
        "exec 0<&-",
        "exec 3>&1 4>&2 9</dev/null",
        "${x!}",
        "echo ${x:?gone}; echo after",
        "exec /no/such/program",
        "ulimit -n 20",
        "umask 777; umask 022",
        "export BIG=$(head -c 3000000 /dev/zero | tr '\\0' x)",
        "readonly PORTCULLIS_X=1 PWD=/; readonly IFS",
        "set -o history; echo !!; history -c",
        "mkdir gone; cd gone; rmdir ../gone",
        "coproc cat",
        "wait; jobs; disown -a",
        "stty -a; tput cols; clear",
    ];
    for text in odd {
        let mut shell = open(&world).await;
        let (ended, _) = try_run(&mut shell, text).await;
        ended.unwrap_or_else(|died| panic!("`{text}` ended its shell: {died:?}"));
        let (ended, wrote) = try_run(&mut shell, "echo told; (exit 6)").await;
        let done = ended.unwrap_or_else(|died| panic!("after `{text}` the shell died: {died:?}"));
        assert_eq!(done.report.status, 6, "after `{text}`: {}", wrote.out());
        assert!(wrote.out().contains("told\n"), "after `{text}`: {:?}", wrote.out());
    }
    // A shell that cannot list what it exports is asked each time.
    let mut shell = open(&world).await;
    for value in ["1", "2"] {
        let (ended, _) = try_run(&mut shell, &format!("export SEEN={value}; enable -n export")).await;
        let done = ended.expect("it lives");
        assert_eq!(environment(&done).get("SEEN").map(String::as_str), Some(value));
        run(&mut shell, "enable export").await;
    }
    let (ended, _) = try_run(&mut shell, "enable -n export; declare -x SEEN=3").await;
    assert_eq!(environment(&ended.expect("it lives")).get("SEEN").map(String::as_str), Some("3"));
    let (ended, _) = try_run(&mut shell, "declare -x SEEN=4").await;
    assert_eq!(environment(&ended.expect("it lives")).get("SEEN").map(String::as_str), Some("4"));
    // A list that is too long to be compared ends no shell, and what could not be told once is asked for again.
    let mut shell = open(&world).await;
    let (ended, _) = try_run(&mut shell, "export BIG=$(head -c 9000000 /dev/zero | tr '\\0' x); (exit 3)").await;
    assert_eq!(ended.expect("it lives").report.status, 3);
    let (ended, _) = try_run(&mut shell, "export BIG=1 SMALL=2").await;
    assert_eq!(environment(&ended.expect("it lives")).get("SMALL").map(String::as_str), Some("2"));
    // What no program can be started with is not told, rather than told as nothing.
    let mut shell = open(&world).await;
    let (ended, _) = try_run(&mut shell, "export BIG=$(head -c 3000000 /dev/zero | tr '\\0' x)").await;
    assert_eq!(ended.expect("it lives").report.environment, None);
}

#[tokio::test]
async fn h43_a_command_that_ends_its_shell_is_no_success() {
    let world = world();
    let ends = [
        ("kill -9 $$", Exit::Signal(9)),
        ("sh -c 'kill -9 $PPID'; sleep 5", Exit::Signal(9)),
        ("exit 0", Exit::Code(0)),
        ("exit 3", Exit::Code(3)),
        ("set -e; false", Exit::Code(1)),
        ("trap 'echo bye; exit 5' EXIT; exit 2", Exit::Code(5)),
        ("exec true", Exit::Code(0)),
        ("exec sh -c 'sleep 0.5; echo replaced; exit 8'", Exit::Code(8)),
    ];
    for (text, exit) in ends {
        let mut shell = open(&world).await;
        let (ended, wrote) = try_run(&mut shell, &format!("echo before; {text}")).await;
        let died = ended.expect_err("its end was told as that of a command");
        assert_eq!(died.ended.exit, exit, "`{text}`");
        assert!(wrote.out().starts_with("before\n"), "`{text}`: {}", wrote.out());
    }
}

#[tokio::test]
async fn l44_a_daemon_that_holds_stdout_does_not_hold_the_command_nor_is_it_held_up() {
    let world = world();
    let mut shell = open(&world).await;
    let mark = mark();
    let begun = Instant::now();
    let (status, out) = run(&mut shell, &format!("(setsid sleep {mark} &); echo done")).await;
    assert_eq!((status, out.as_str()), (0, "done\n"));
    // One that writes for ever.
    let flood = format!("(setsid sh -c 'while :; do echo flood-{mark}; done' &); echo begun");
    let (status, _) = run(&mut shell, &flood).await;
    assert_eq!(status, 0);
    assert!(begun.elapsed() < Duration::from_secs(5), "the daemon held the call");
    assert_eq!(run(&mut shell, "(exit 4)").await.0, 4);
    // More than a pipe takes, while nobody looks.
    let writes = "(setsid sh -c 'head -c 1000000 /dev/zero; echo > written' >&2 &)";
    assert_eq!(run(&mut shell, writes).await.0, 0);
    let file = world.path("written");
    tokio::select! {
        ended = shell.idle() => panic!("it died: {ended:?}"),
        () = until("the daemon has written all", || file.exists()) => {}
    }
    shell.close().await;
    until("everyone is gone", || !alive(&mark)).await;
}

#[tokio::test]
async fn a_stopped_command_goes_no_further_and_its_shell_lives_on_if_it_can() {
    let world = world();
    for text in ["sleep 600; touch gone", "while :; do :; done; touch gone", "sleep 600 | cat; touch gone"] {
        let mut shell = open(&world).await;
        run(&mut shell, "x=kept").await;
        let begun = Instant::now();
        let stop = tokio::time::sleep(Duration::from_millis(300));
        let done = shell.exec(text.as_bytes(), &mut (), stop).await.expect("it lives on");
        assert!(done.interrupted && done.report.status == 130, "`{text}`: {done:?}");
        assert!(begun.elapsed() < Duration::from_secs(2), "`{text}` took {:?}", begun.elapsed());
        assert_eq!(run(&mut shell, "echo $x").await, (0, "kept\n".to_owned()));
        assert!(!world.path("gone").exists(), "`{text}` went on after it was stopped");
    }
    // One that does not heed it costs the shell, in time, and goes no further either.
    for text in
        ["sh -c 'trap \"\" INT TERM; while :; do sleep 1; done'; touch gone", "trap '' INT; sleep 600; touch gone"]
    {
        let mut shell = open(&world).await;
        let begun = Instant::now();
        let stop = tokio::time::sleep(Duration::from_millis(300));
        let died = shell.exec(text.as_bytes(), &mut (), stop).await.expect_err("it does not heed it");
        assert!(died.interrupted, "`{text}`");
        assert!(begun.elapsed() < Duration::from_secs(3), "`{text}` took {:?}", begun.elapsed());
        assert!(!world.path("gone").exists(), "`{text}` went on after it was stopped");
    }
    // A process that tidies up gets the time for it.
    let mut shell = open(&world).await;
    let text = "sh -c 'trap \"\" INT; trap \"echo tidy > tidied; exit\" TERM; while :; do sleep 0.05; done'";
    let _ = shell.exec(text.as_bytes(), &mut (), tokio::time::sleep(Duration::from_millis(300))).await;
    assert!(world.path("tidied").exists(), "it was not asked to end");
}

#[tokio::test]
async fn a_shell_reads_no_file_when_it_starts_and_has_its_variables_all_the_same() {
    let world = world();
    let rc = world.write("rc", "touch /workspace/read-a-file; echo from a file\n");
    for name in [".bashrc", ".bash_profile", ".profile", ".inputrc"] {
        std::fs::copy(&rc, world.path(name)).expect("copied");
    }
    let env = [
        ("HOME", "/workspace"),
        ("ENV", "/workspace/rc"),
        ("BASH_ENV", "/workspace/rc"),
        ("POSIXLY_CORRECT", "1"),
        ("PROMPT_COMMAND", "touch /workspace/read-a-file"),
        ("SHELLOPTS", "xtrace"),
        ("TMOUT", "1"),
    ];
    for program in Program::ALL {
        let mut shell = open_with(&world, program, &env[..4]).await;
        assert_eq!(run(&mut shell, "echo $BASH_ENV").await, (0, "/workspace/rc\n".to_owned()));
        assert!(!world.path("read-a-file").exists(), "{program:?} read a start-up file");
        let (ended, _) = try_run(&mut shell, "true").await;
        let names = environment(&ended.expect("it lives"));
        assert!(["ENV", "BASH_ENV", "HOME"].iter().all(|name| names.contains_key(*name)), "{names:?}");
    }
    let mut plan = world.plan(&[]);
    plan.env = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    line(&mut plan).expect("a line");
    let left: Vec<_> = plan.env.into_iter().map(|(name, _)| name.into_vec()).collect();
    assert_eq!(left, [b"HOME".to_vec()]);
}

#[tokio::test]
async fn closing_ends_everyone_and_death_is_noticed_while_nothing_runs() {
    let world = world();
    let mut shell = open(&world).await;
    let mark = mark();
    run(&mut shell, &format!("(setsid sh -c 'trap \"\" TERM HUP; sleep {mark}; sleep {mark}' &)")).await;
    until("the daemon runs", || alive(&mark)).await;
    let begun = Instant::now();
    shell.close().await;
    assert!(!alive(&mark), "somebody outlived the shell");
    assert!(begun.elapsed() < Duration::from_secs(3));

    let mut shell = open(&world).await;
    run(&mut shell, "(sleep 0.2; kill -9 $$) &").await;
    let ended = tokio::time::timeout(Duration::from_secs(20), shell.idle()).await.expect("its death is noticed");
    assert_eq!(ended.exit, Exit::Signal(9));
    let ended = shell.exec(b"echo x", &mut (), pending()).await;
    assert!(ended.is_err(), "a dead shell ran something");
}

#[tokio::test]
async fn h43_where_a_shell_is_cannot_be_said_by_a_variable() {
    for program in Program::ALL {
        let world = world();
        world.write("real/x", "");
        world.write("other/x", "");
        world.write("odd\n/x", "");
        std::os::unix::fs::symlink("real", world.path("link")).expect("a link");
        let mut shell = open_with(&world, program, &[]).await;
        for (command, folder) in [
            ("cd real; PWD=/workspace/other", "/workspace/real"),
            ("cd /workspace/link", "/workspace/real"),
            ("cd /workspace/odd*", "/workspace/odd\n"),
            ("pwd() { echo /workspace/other; }; cd /workspace/other/../real", "/workspace/real"),
        ] {
            let (ended, _) = try_run(&mut shell, command).await;
            let report = ended.expect("it lives").report;
            assert_eq!(String::from_utf8_lossy(&report.folder), folder, "{program:?}: {command}");
        }
    }
}

/// Ways to have a shell look for mail before its next prompt.
const LOOKS_FOR_MAIL: [&str; 14] = [
    "MAILCHECK=0",
    "unset MAILCHECK; MAILCHECK=0",
    "export MAILCHECK=0",
    "declare +r MAILCHECK; MAILCHECK=0",
    "declare -n r=MAILCHECK; r=0",
    "read MAILCHECK <<< 0",
    "printf -v MAILCHECK 0",
    "((MAILCHECK=0))",
    "for MAILCHECK in 0; do :; done",
    "f() { local MAILCHECK=0; true; }; f",
    "set -o posix; MAILCHECK=0",
    "typeset -i MAILCHECK=0",
    "MAILCHECK=0 true",
    "MAILCHECK+=0",
];

#[tokio::test]
async fn h43_no_line_has_its_shell_look_for_mail_and_expand_the_message() {
    let world = world();
    let file = std::env::temp_dir().join(format!("portcullis-mail-{}", std::process::id()));
    let grows = |file: &str| format!("echo more >> {file}; touch -d '+1 hour' {file}");
    let sets = |file: &str| format!("echo x > {file}; MAILPATH='{file}?${{SEEN=yes}}'");
    // The control: a bash in which nothing was settled expands it.
    let place = file.display().to_string();
    let lines =
        [sets(&place), "MAILCHECK=0".to_owned(), grows(&place), String::new(), "echo seen ${SEEN-no}".to_owned()];
    let script = std::env::temp_dir().join(format!("portcullis-mail-{}.in", std::process::id()));
    std::fs::write(&script, lines.join("\n") + "\n").expect("written");
    let plain = std::process::Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "--noediting", "-i"])
        .stdin(std::fs::File::open(&script).expect("opened"))
        .output();
    let plain = String::from_utf8_lossy(&plain.expect("bash runs").stdout).into_owned();
    for left in [&file, &script] {
        std::fs::remove_file(left).expect("removed");
    }
    assert!(plain.contains("seen yes"), "the control did nothing: {plain}");

    for way in LOOKS_FOR_MAIL {
        for env in [&[][..], &[("MAILCHECK", "0"), ("MAILPATH", "/tmp/m?${SEEN=yes}"), ("MAIL", "/tmp/m")]] {
            let mut shell = open_with(&world, Program::Bash, env).await;
            let _ = try_run(&mut shell, &sets("/tmp/m")).await;
            let _ = try_run(&mut shell, way).await;
            let _ = try_run(&mut shell, &grows("/tmp/m")).await;
            let _ = run(&mut shell, "true").await;
            assert_eq!(run(&mut shell, "echo seen ${SEEN-no}").await.1, "seen no\n", "{way} {env:?}");
        }
    }
}
