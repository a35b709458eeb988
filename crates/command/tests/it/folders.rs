//! In which folder the commands of a line run: by a table, and with a real bash as the judge.

use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use portcullis_command::{Folder, analyse};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

/// Lines that are drawn and given to bash.
fn lines_drawn() -> usize {
    if std::env::var_os("PORTCULLIS_SOAK").is_some() { 1_500 } else { 150 }
}

/// The folders of every `w N` of a line, in a short form: `.` is where it starts, `?` is unknown.
fn folders(line: &str) -> String {
    let mut all: Vec<(String, String)> = Vec::new();
    for placed in analyse(line).placed() {
        let at = placed.argv.iter().position(|word| word == "w");
        let (Some(0), Some(number)) = (at, placed.argv.get(1)) else { continue };
        let folder = match placed.folder {
            Folder::Start => ".".to_owned(),
            Folder::At(steps) => steps.join(","),
            Folder::Elsewhere => "!".to_owned(),
            Folder::Unknown => "?".to_owned(),
        };
        let one = (number.clone(), folder);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all.sort();
    all.into_iter().map(|(number, folder)| format!("{number}={folder}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_folder_of_each_command_is_told_by_the_line() {
    for (line, expected) in [
        ("w 1", "1=."),
        ("cd a && w 1", "1=a"),
        ("cd a; w 1", "1=a"),
        ("cd a\nw 1", "1=a"),
        ("w 1; cd a && w 2; w 3", "1=. 2=a 3=a"),
        ("cd a && cd b && w 1", "1=a,b"),
        ("cd /workspace/a && w 1", "1=/workspace/a"),
        ("cd -P a; w 1", "1=a"),
        ("cd -- a; w 1", "1=a"),
        ("'cd' \"a\"; w 1", "1=a"),
        ("\\cd a; w 1", "1=a"),
        ("command cd a; w 1", "1=a"),
        ("builtin cd a; w 1", "1=a"),
        ("command -v cd a; w 1", "1=."),
        ("time cd a; w 1", "1=a"),
        ("pushd a; w 1", "1=a"),
        ("pushd a >/dev/null 2>&1; w 1", "1=a"),
        ("(cd a; w 1); w 2", "1=a 2=."),
        ("{ cd a; w 1; }; w 2", "1=a 2=a"),
        ("echo $(cd a; w 1); w 2", "1=a 2=."),
        ("cat <(cd a; w 1); w 2", "1=a 2=."),
        ("cd a & w 1", "1=."),
        ("cd a && w 1 & w 2", "1=a 2=."),
        ("cd a | w 1; w 2", "1=. 2=."),
        ("cd a || w 1; w 2", "1=. 2=a"),
        ("cd a || exit 1; w 1", "1=a"),
        ("cd a || { w 1; exit 1; }; w 2", "1=. 2=a"),
        ("! cd a && w 1; w 2", "1=. 2=a"),
        ("if cd a; then w 1; else w 2; fi; w 3", "1=a 2=. 3=a"),
        ("for x in 1 2; do (cd a && w 1); done; w 2", "1=a 2=."),
        ("cd a && cd .. && w 1", "1=a,.."),
        ("cd missing && cd /workspace/a; w 1", "1=missing,/workspace/a"),
        ("env -C a w 1", "1=a"),
        ("env --chdir=a w 1; w 2", "1=a 2=."),
        ("env --chd a w 1", "1=a"),
        ("/usr/bin/env -iCa w 1", "1=a"),
        ("cd a; env -C b X=1 w 1", "1=a,b"),
        ("sudo -D a w 1", "1=a"),
        ("bash -c 'cd a && w 1'; w 2", "1=a 2=."),
        ("sh -c 'cd a; w 1'", "1=a"),
        ("env -C a bash -c 'cd b; w 1'", "1=a,b"),
        ("cd a; timeout 5 nice w 1", "1=a"),
        ("eval 'cd a; w 1'; w 2", "1=a 2=?"),
        ("find . -exec w 1 ';'", "1=."),
        ("ssh host w 1", "1=!"),
        ("docker run x sh -c 'cd /y && w 1'", "1=!"),
        // What becomes known only when the line runs.
        ("cd $x && w 1", "1=?"),
        ("cd \"$(echo a)\"; w 1", "1=?"),
        ("mkdir -p a && cd $_ && w 1", "1=?"),
        ("cd; w 1", "1=?"),
        ("cd ~/a; w 1", "1=?"),
        ("cd -; w 1", "1=?"),
        ("cd a b; w 1", "1=?"),
        ("cd ''; w 1", "1=?"),
        ("cd a*; w 1", "1=?"),
        ("cd {a,b}; w 1", "1=?"),
        ("popd; w 1", "1=?"),
        ("pushd; w 1", "1=?"),
        ("pushd +1; w 1", "1=?"),
        ("sh -c 'pushd a; w 1'", "1=?"),
        ("dash -c 'chdir a; w 1'", "1=?"),
        ("CDPATH=/x cd a; w 1", "1=?"),
        ("export CDPATH=/x; cd a; w 1", "1=?"),
        ("export CDPATH=/x; cd ./a; w 1", "1=./a"),
        ("export CDPATH=/x; bash -c 'cd a; w 1'", "1=?"),
        ("declare 'CD'PATH=/x; cd a; w 1", "1=?"),
        ("X=1 cd a; w 1", "1=?"),
        ("cd a < missing; w 1", "1=?"),
        ("{ cd a; } < missing; w 1", "1=?"),
        ("test -d a && cd a; w 1", "1=?"),
        ("test -d a || cd a; w 1", "1=?"),
        ("if test -d a; then cd a; fi; w 1", "1=?"),
        ("case $x in a) cd a;; esac; w 1", "1=?"),
        ("case $x in a) cd a; w 1;; *) w 2;; esac", "1=a 2=."),
        ("case $x in a) cd a;& *) w 2;; esac", "2=?"),
        ("for x in 1 2; do w 1; cd a; done; w 2", "1=? 2=?"),
        ("while w 1; do cd a; done; w 2", "1=? 2=?"),
        ("f() { cd a; }; f; w 1", "1=?"),
        ("f() { w 1; }; cd a; f", "1=?"),
        ("cd() { :; }; cd a; w 1", "1=?"),
        ("source x; w 1", "1=?"),
        (". ./x && w 1", "1=?"),
        ("eval \"$x\"; w 1", "1=?"),
        ("$x a; w 1", "1=?"),
        ("alias cd=true; cd a; w 1", "1=?"),
        ("trap 'cd a' DEBUG; w 1", "1=?"),
        ("enable -n cd; cd a; w 1", "1=?"),
        ("set -r; cd a; w 1", "1=?"),
        ("bash -rc 'cd a; w 1'", "1=?"),
        ("echo ${ cd a; }; w 1", "1=?"),
        ("true | cd a; w 1", "1=?"),
        ("env -C $x w 1", "1=?"),
        ("env -C ~/x w 1", "1=?"),
        ("env -S '-C a w 1'", "1=?"),
        ("sudo -i w 1", "1=?"),
        ("chroot a w 1", "1=?"),
        ("find a -execdir w 1 ';'", "1=?"),
        ("git -C a bisect run w 1", "1=?"),
        ("uv run --directory a w 1", "1=?"),
        ("npm exec --prefix a -- w 1", "1=?"),
        ("parallel 'cd {} && w 1' ::: a", "1=?"),
        ("xargs -I% sh -c 'cd {} && w 1'", "1=?"),
        ("cd a; w 1 'x", "1=?"),
        ("ln -sfn b link; cd link && w 1; w 2", "1=? 2=?"),
        ("mv other a; bash -c 'cd ./a/b && w 1'", "1=?"),
        ("bash -c 'rm -r a/; mv b a'; env -C a w 1", "1=?"),
        ("cp x \"$y\"; cd a && w 1", "1=?"),
        ("cp x a/y; cd a && w 1; (cd b; w 2)", "1=a 2=a,b"),
        ("mkdir -p a && cd a && w 1", "1=a"),
    ] {
        let told = folders(line);
        assert_eq!(told, expected, "{line}: {:?}", analyse(line).placed());
    }
}

/// A tree with folders, folders in them, and a link that leads into another one.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a folder");
    for folder in ["a/b", "a/c", "b/b", "b/a", "bin"] {
        std::fs::create_dir_all(tree.path().join(folder)).expect("made");
    }
    std::os::unix::fs::symlink("b/b", tree.path().join("link")).expect("linked");
    std::fs::write(tree.path().join("file"), "").expect("written");
    let recorder = tree.path().join("bin/w");
    std::fs::write(&recorder, "#!/bin/sh\necho \"$1 $(pwd -P)\" >> \"$LOG\"\nexit \"$ENDS\"\n").expect("written");
    std::fs::set_permissions(&recorder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("made runnable");
    tree
}

/// Where steps lead, if each is a folder and a shell and the kernel agree about it.
fn followed(start: &Path, steps: &[String]) -> Option<PathBuf> {
    let (mut by_text, mut by_links) = (start.to_owned(), start.to_owned());
    for step in steps {
        by_links = by_links.join(step).canonicalize().ok().filter(|place| place.is_dir())?;
        let joined = by_text.join(step);
        by_text = joined.components().fold(PathBuf::new(), |mut path, part| {
            match part {
                Component::ParentDir => _ = path.pop(),
                other => path.push(other),
            }
            path
        });
        if by_text.canonicalize().ok()? != by_links {
            return None;
        }
    }
    Some(by_links)
}

/// Where bash runs each `w N` of a line, as if all ended with `ends`.
fn run_by_bash(tree: &Path, line: &str, ends: u8) -> Vec<(String, PathBuf)> {
    let log = tree.join("log");
    std::fs::write(&log, "").expect("emptied");
    let path = format!("{}:/usr/bin:/bin", tree.join("bin").display());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", line]).current_dir(tree).env_clear();
    bash.env("PATH", path).env("LOG", &log).env("ENDS", ends.to_string()).env("LC_ALL", "C.UTF-8");
    bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    bash.status().expect("bash, which every test of the shell needs too");
    let told = std::fs::read_to_string(&log).expect("the log");
    let told = told.lines().filter_map(|line| line.split_once(' '));
    told.map(|(number, place)| (number.to_owned(), PathBuf::from(place))).collect()
}

/// Everything that bash does with a line is what was said of it.
fn agrees_with_bash(tree: &Path, line: &str) -> usize {
    let placed = analyse(line).placed();
    let mut certain = 0;
    for ends in [0, 1] {
        for (number, place) in run_by_bash(tree, line, ends) {
            let ours = placed.iter().filter(|one| one.argv.starts_with(&["w".to_owned(), number.clone()]));
            let ours: Vec<Option<PathBuf>> = ours
                .map(|one| match &one.folder {
                    Folder::Start => Some(tree.to_owned()),
                    Folder::At(steps) => followed(tree, steps),
                    Folder::Elsewhere | Folder::Unknown => None,
                })
                .collect();
            assert!(!ours.is_empty(), "{line:?}: bash runs `w {number}`, which was not found");
            let fits = ours.iter().any(|ours| ours.as_ref().is_none_or(|ours| *ours == place));
            assert!(fits, "{line:?}: bash runs `w {number}` in {}, and {ours:?} was said", place.display());
            certain += usize::from(ours.iter().all(Option::is_some));
        }
    }
    certain
}

/// A step of a line: mostly a change of folder.
fn step() -> impl Strategy<Value = String> {
    let folders = ["a", "b", "a/b", "..", "link", "link/..", "missing", "file", ".", "$PWD/a", "./a", "''", "a b", "-"];
    let folder = || prop::sample::select(folders.to_vec()).prop_map(str::to_owned);
    prop_oneof![
        4 => folder().prop_map(|folder| format!("cd {folder}")),
        1 => folder().prop_map(|folder| format!("pushd {folder}")),
        1 => Just("popd".to_owned()),
        1 => folder().prop_map(|folder| format!("cd {folder} < missing")),
        1 => folder().prop_map(|folder| format!("cd {folder} 2>/dev/null")),
        1 => folder().prop_map(|folder| format!("env -C {folder} w N")),
        1 => folder().prop_map(|folder| format!("env -C {folder} bash -c 'w N; cd b && w N'")),
        1 => folder().prop_map(|folder| format!("CDPATH=b; cd {folder}")),
        6 => Just("w N".to_owned()),
        1 => Just("true".to_owned()),
        1 => Just("false".to_owned()),
        1 => Just("echo $(cd a && w N)".to_owned()),
    ]
}

/// A line of such steps in every grammar that decides which of them run.
fn moving_line() -> impl Strategy<Value = String> {
    step().prop_recursive(4, 24, 3, |inner| {
        let three = (inner.clone(), inner.clone(), inner);
        let forms = [
            "X && Y",
            "X || Y",
            "X; Y",
            "X\nY; Z",
            "X && Y || Z",
            "X || Y && Z",
            "(X; Y); Z",
            "{ X; Y; } && Z",
            "! X; Y",
            "if X; then Y; else Z; fi",
            "if X; then Y; elif Y; then Z; fi",
            "for i in 1 2; do X; Y; done; Z",
            "case a in b) X;; a) Y;; esac; Z",
            "case a in a) X;& b) Y;; esac; Z",
            "X & wait; Y",
            "X | Y; Z",
            "{ X; Y; } < missing; Z",
            "f() { X; }; Y; f; Z",
            "n=; until [ \"$n\" ]; do X; n=1; done; Y",
            "bash -c 'X; Y'; Z",
        ];
        (prop::sample::select(forms.to_vec()), three).prop_map(|(form, (x, y, z))| {
            let quoted = form.contains('\'') && [&x, &y, &z].iter().any(|part| part.contains('\''));
            let form = if quoted { "X; Y; Z" } else { form };
            form.replace('X', "\u{1}")
                .replace('Y', "\u{2}")
                .replace('Z', "\u{3}")
                .replace('\u{1}', &x)
                .replace('\u{2}', &y)
                .replace('\u{3}', &z)
        })
    })
}

/// The line with a number for each recorder.
fn numbered(line: &str) -> String {
    let mut parts = line.split("w N");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (at, part) in parts.enumerate() {
        out.push_str(&format!("w {at}{part}"));
    }
    out
}

#[test]
fn bash_runs_every_command_in_the_folder_that_was_said() {
    let tree = tree();
    let start = tree.path().canonicalize().expect("a place");
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let mut certain = 0;
    for _ in 0..lines_drawn() {
        let line = format!("w 99; {}; w 98", numbered(&moving_line().new_tree(&mut runner).expect("a line").current()));
        certain += agrees_with_bash(&start, &line);
    }
    assert!(certain > lines_drawn() * 2, "{certain} commands are too few to say anything");
}

#[test]
fn bash_agrees_about_lines_that_are_easily_misread() {
    let tree = tree();
    let start = tree.path().canonicalize().expect("a place");
    for line in [
        "cd missing && cd a; w 1",
        "w 1 && cd link && pushd b || w 2; w 3",
        "cd missing && cd \"$PWD\"; w 1",
        "cd link; cd ..; w 1",
        "cd link/..; w 1",
        "cd -P link; cd ..; w 1",
        "set -P; cd link/..; w 1",
        "env -C link bash -c 'cd ..; w 1'",
        "env -C link/.. w 1",
        "cd link; env -C .. w 1",
        "cd link; bash -c 'cd ..; w 1'",
        "cd a; cd -; w 1",
        "pushd a; pushd; w 1",
        "pushd a; popd; w 1",
        "cd file || w 1; w 2",
        "readonly X; X=1 cd a; w 1",
        "cd a && false || w 1; w 2",
        "cd missing || cd b; w 1",
        "if cd missing; then cd a; fi; w 1",
        "shopt -s lastpipe; true | cd a; w 1",
        "set -r; cd a; w 1",
        "f() { cd a; }; f; w 1",
        "mkdir -p new && cd new && w 1; cd ..; rmdir new; w 2",
        "sh -c 'pushd a; w 1'",
        "for x in a b; do cd $x; w 1; cd ..; done; w 2",
        "trap 'cd a' DEBUG; w 1; w 2",
        "CDPATH=b; cd a; w 1",
        "export CDPATH=b; bash -c 'cd a; w 1'",
        "mapfile -C 'cd a;:' -c 1 x < /etc/passwd; w 1",
        "cd a >&9; w 1",
        "find . -name c -execdir w 1 ';'",
    ] {
        agrees_with_bash(&start, line);
    }
}
