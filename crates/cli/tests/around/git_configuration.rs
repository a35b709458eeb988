//! Places that only git's settings or a link make one: whatever the spelling, what git runs later is read-only for commands,
//! a link that leads elsewhere is told, and `write` asks.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::Ran;

/// A setting, and the file of the working tree that git runs or reads because of it. `@` is the working tree on the host,
/// `%` the one that commands see.
const SETTINGS: &[(&str, &str)] = &[
    ("[core]\n\thooksPath = h\n", "h/pre-push"),
    ("[core]\n\thooksPath = @/h\n", "h/pre-push"),
    ("[core]\n\thooksPath = %/h\n", "h/pre-push"),
    ("[core] hooksPath=h", "h/pre-push"),
    ("[CORE]\nHOOKSPATH = h ; the folder\n", "h/pre-push"),
    ("[core]\nhooksPath = \"h\"ooks # x\n", "hooks/pre-push"),
    ("[core]\nhooksPath = a/\\\nb\n", "a/b/pre-push"),
    ("[core]\nhooksPath = link/hooks\n", "real/hooks/pre-push"),
    ("[core]\r\nhooksPath = h\r\n", "h/pre-push"),
    ("[include]\npath = ../local.conf\n", "local.conf"),
    ("[include]\npath = @/local.conf\n", "local.conf"),
    ("[includeIf \"gitdir:**\"]\npath = ../local.conf\n", "local.conf"),
    ("[include]\npath = ../to-hooks.conf\n", "h/pre-push"),
    ("[include]\npath = ../to-further.conf\n", "local.conf"),
    ("[core]\nsshCommand = ./x.sh -v\n", "x.sh"),
    ("[core]\nsshCommand = sh x.sh\n", "x.sh"),
    ("[core]\nfsmonitor = @/x.sh\n", "x.sh"),
    ("[core]\neditor = \"'./with space/x.sh' --wait\"\n", "with space/x.sh"),
    ("[core]\npager = ./x.sh | less\n", "x.sh"),
    ("[core]\nattributesFile = attr\n", "attr"),
    ("[sequence]\neditor = ./x.sh\n", "x.sh"),
    ("[filter \"a\"]\nclean = ./x.sh %f\n", "x.sh"),
    ("[filter \"a\"]\nprocess = python3 x.sh\n", "x.sh"),
    ("[diff]\nexternal = ./x.sh\n", "x.sh"),
    ("[diff \"a\"]\ntextconv = ./x.sh\n", "x.sh"),
    ("[merge \"a\"]\ndriver = ./x.sh %O %A\n", "x.sh"),
    ("[credential]\nhelper = !./x.sh\n", "x.sh"),
    ("[credential \"https://a.b\"]\nhelper = @/x.sh\n", "x.sh"),
    ("[gpg]\nprogram = ./x.sh\n", "x.sh"),
    ("[gpg \"ssh\"]\nprogram = ./x.sh\n", "x.sh"),
    ("[alias]\nst = !f() { ./x.sh; }; f\n", "x.sh"),
    ("[alias]\nst = \"!$(git rev-parse --show-toplevel)/x.sh\"\n", "x.sh"),
    ("[init]\ntemplateDir = t\n", "t/hooks/pre-push"),
    ("[mergetool \"a\"]\ncmd = ./x.sh \\\"$LOCAL\\\"\n", "x.sh"),
    ("[difftool \"a\"]\npath = ./x.sh\n", "x.sh"),
    ("[nobody \"knows\"]\nthis = ./x.sh\n", "x.sh"),
];

/// Lines that run a file of `tools`, each with that file: no word of most of them is its path.
const LINES: &[(&str, &str)] = &[
    ("cd tools && ./f.sh", "tools/f.sh"),
    ("cd ./tools; sh ./f.sh", "tools/f.sh"),
    ("(cd tools; sh f.sh)", "tools/f.sh"),
    ("pushd tools; ./f.sh", "tools/f.sh"),
    ("cd tools && cd deep && ./f.sh", "tools/deep/f.sh"),
    ("if cd tools; then sh f.sh; fi", "tools/f.sh"),
    ("env -C tools ./f.sh", "tools/f.sh"),
    ("env --chdir=tools ./f.sh", "tools/f.sh"),
    ("$PWD/tools/f.sh", "tools/f.sh"),
    ("${PWD}/tools/f.sh", "tools/f.sh"),
    ("~+/tools/f.sh", "tools/f.sh"),
    ("`pwd`/tools/f.sh", "tools/f.sh"),
    ("${X:-tools/f.sh}", "tools/f.sh"),
    ("${X:-./tools}/f.sh", "tools/f.sh"),
    ("x=tools; $x/f.sh", "tools/f.sh"),
    ("x=tools; y=f; $x/$y.sh", "tools/f.sh"),
    ("cd `echo tools`; ./f.sh", "tools/f.sh"),
    ("d=tools; cd $d && . ./f.sh", "tools/f.sh"),
    ("PATH=tools:$PATH f.sh", "tools/f.sh"),
    ("./too*/f.sh", "tools/f.sh"),
    ("sh tools/f.s?", "tools/f.sh"),
    ("sh tools/{f,g}.sh", "tools/f.sh"),
    ("to''ols/f.sh", "tools/f.sh"),
    ("sh < tools/f.sh", "tools/f.sh"),
    ("bash -c '. tools/env; f'", "tools/env"),
    ("BASH_ENV=tools/env bash -c true", "tools/env"),
    ("python3 -m tools.f", "tools/f.py"),
    ("python3 tools", "tools/__main__.py"),
    ("PYTHONPATH=tools python3 -m f", "tools/f.py"),
    ("perl -Itools -Mf -e 1", "tools/f.pm"),
    ("node tools/", "tools/index.js"),
    ("node tools/f", "tools/f.js"),
    ("make -sC tools f", "tools/Makefile"),
    ("make --directory=tools f", "tools/Makefile"),
    ("cd tools; make f", "tools/Makefile"),
    ("npm -s --prefix tools run f", "tools/package.json"),
    ("just -f tools/justfile f", "tools/justfile"),
    ("just -d tools f", "tools/justfile"),
];

/// A repository for each line, which is a setting and, every second time, an alias.
fn arena_with_lines(who: Who, with_files: bool) -> (Arena, Vec<String>) {
    let arena = Arena::of(who);
    let mut files = Vec::new();
    for (at, (line, file)) in LINES.iter().enumerate() {
        let line = line.replace('"', "\\\"");
        let settings = if at % 2 == 0 {
            format!("[core]\nfsmonitor = \"{line}\"\n")
        } else {
            format!("[alias]\nx = \"!{line}\"\n")
        };
        arena.write(&format!("work/r{at}/.git/config"), &settings);
        arena.write(&format!("work/r{at}/src/main.c"), "kept\n");
        if with_files {
            arena.write(&format!("work/r{at}/{file}"), "kept\n");
        }
        files.push(format!("r{at}/{file}"));
    }
    (arena, files)
}

#[test]
fn l36_what_a_setting_runs_from_another_folder_or_by_another_name_is_read_only() {
    for who in EVERYBODY {
        let (arena, files) = arena_with_lines(who, true);
        let ran = sh(&arena, &attack(&files)).ends(0);
        assert_eq!(changed(&arena, &files), Vec::<&String>::new(), "{who:?}");
        ran.warns("a setting of git cannot be followed wholly");
        // What no setting names stays open, and so does the tree.
        sh(&arena, "for r in r*; do echo fine > $r/src/main.c && echo fine > $r/new || exit 1; done").ends(0);

        let (control, files) = arena_with_lines(who, true);
        assert!(control.as_this_person("/bin/sh").args(["-c", &attack(&files)]).status().expect("it runs").success());
        assert_eq!(changed(&control, &files).len(), LINES.len(), "{who:?}");
    }
}

#[test]
fn l36_a_file_that_a_setting_would_run_and_a_command_makes_is_told() {
    for who in EVERYBODY {
        let (arena, files) = arena_with_lines(who, false);
        // One call shows only some warnings.
        for files in files.chunks(12) {
            let make = files.iter().map(|file| {
                let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
                format!("mkdir -p {folder}; echo evil > {file}\n")
            });
            let ran = sh(&arena, &make.collect::<String>()).ends(0);
            let told = |file: &&String| {
                let above = file.rsplit_once('/').map_or("", |(folder, _)| folder);
                let said = |path: &str| ran.err.contains(&format!("/workspace/{path} was not there before"));
                said(file) || said(above)
            };
            let untold: Vec<&String> = files.iter().filter(|file| !told(file)).collect();
            assert_eq!(untold, Vec::<&String>::new(), "{who:?}: {}", ran.err);
        }
    }
}

#[test]
fn a_setting_whose_text_tells_what_it_runs_is_not_warned_about() {
    let arena = Arena::of(EVERYBODY[1]);
    let settings = "[core]\neditor = vim\npager = less -R\nfsmonitor = \"cd tools && ./f.sh\"\n[alias]\nst = status -sb\n\
                    c = \"!f() { git commit -m \\\"$1\\\"; }; f\"\n";
    arena.write("work/.git/config", settings);
    let ran = sh(&arena, "true").ends(0);
    assert!(!ran.err.contains("cannot be followed"), "{}", ran.err);
}

fn sh(arena: &Arena, command: &str) -> Ran {
    arena.run(&["--approvals", "allow", "call", "shell_run", &json!({ "command": command }).to_string()])
}

/// One repository for each setting, and one more with the setting in `config.worktree`.
fn arena_with_settings(who: Who) -> (Arena, Vec<String>) {
    let arena = Arena::of(who);
    let mut files = Vec::new();
    for (at, (settings, file)) in SETTINGS.iter().enumerate() {
        let name = if at % 5 == 0 { "config.worktree" } else { "config" };
        let tree = arena.path(&format!("work/r{at}"));
        let text = settings.replace('@', &tree.display().to_string()).replace('%', &format!("/workspace/r{at}"));
        arena.write(&format!("work/r{at}/{file}"), "kept\n");
        arena.write(&format!("work/r{at}/.git/{name}"), &text);
        arena.write(&format!("work/r{at}/to-hooks.conf"), "[core]\nhooksPath = h\n");
        arena.write(&format!("work/r{at}/to-further.conf"), "[include]\npath = local.conf\n");
        symlink("real", tree.join("link")).expect("a link");
        files.push(format!("r{at}/{file}"));
    }
    (arena, files)
}

fn attack(files: &[String]) -> String {
    let lines = files.iter().map(|file| {
        format!("echo evil 2>/dev/null >> '{file}'; echo evil > new; mv -f new '{file}' 2>/dev/null; rm -f '{file}' 2>/dev/null\n")
    });
    lines.collect::<String>() + "true\n"
}

fn changed<'f>(arena: &Arena, files: &'f [String]) -> Vec<&'f String> {
    let kept =
        |file: &String| std::fs::read_to_string(arena.path(&format!("work/{file}"))).is_ok_and(|text| text == "kept\n");
    files.iter().filter(|file| !kept(file)).collect()
}

#[test]
fn l36_what_git_runs_by_its_settings_is_read_only_in_every_spelling() {
    for who in EVERYBODY {
        let (arena, files) = arena_with_settings(who);
        sh(&arena, &attack(&files)).ends(0);
        assert_eq!(changed(&arena, &files), Vec::<&String>::new(), "{who:?}");
        sh(&arena, "echo fine > r1/src.c; git -C r1 --version").ends(0);
        assert_eq!(arena.read("work/r1/src.c"), "fine\n");

        let (control, files) = arena_with_settings(who);
        assert!(control.as_this_person("/bin/sh").args(["-c", &attack(&files)]).status().expect("it runs").success());
        assert_eq!(changed(&control, &files).len(), SETTINGS.len(), "{who:?}");
    }
}

#[test]
fn l36_a_place_behind_a_link_lets_commands_run_and_is_read_only() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let files = ["cfg/config.toml", "gh/workflows/ci.yml", "real/config", "real/hooks/pre-push", "tools/hook.sh"];
        let files: Vec<String> = files.map(str::to_owned).to_vec();
        for file in &files {
            arena.write(&format!("work/{file}"), "kept\n");
        }
        arena.write("work/b/.git/hooks/sample", "x\n");
        let host = arena.path("work/gh");
        symlink("cfg", arena.path("work/.cargo")).expect("a link");
        symlink(host, arena.path("work/.github")).expect("a link");
        std::fs::create_dir(arena.path("work/a")).expect("made");
        symlink("../real", arena.path("work/a/.git")).expect("a link");
        symlink("../../../tools/hook.sh", arena.path("work/b/.git/hooks/pre-push")).expect("a link");
        sh(&arena, &attack(&files)).ends(0);
        assert_eq!(changed(&arena, &files), Vec::<&String>::new(), "{who:?}");
        sh(&arena, "echo fine > cfg/other; echo fine > real/index").ends(0);
    }
}

#[test]
fn l36_a_link_that_leads_elsewhere_is_told() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        for name in ["good.sh", "x/tasks/tasks.json", "evil.sh", "lnk1/hooks/a", "lnk2/hooks/a"] {
            arena.write(&format!("work/{name}"), "x\n");
        }
        arena.write("work/r/.git/config", "[core]\nhooksPath = ../lnk/hooks\n");
        symlink("good.sh", arena.path("work/.envrc")).expect("a link");
        symlink("tasks", arena.path("work/x/.vscode")).expect("a link");
        symlink("nothing", arena.path("work/x/.envrc")).expect("a link");
        symlink("lnk1", arena.path("work/lnk")).expect("a link");
        let quiet = sh(&arena, "echo x > y; ls -l .envrc").ends(0);
        assert!(!quiet.err.contains("was not there before"), "{}", quiet.err);
        for (line, path) in [
            ("rm .envrc; ln -s /proc/self/cwd/evil.sh .envrc", "/workspace/.envrc"),
            ("ln -sfn /proc/self/cwd/evil x/.vscode", "/workspace/x/.vscode"),
            ("ln -sfn ../other x/.envrc", "/workspace/x/.envrc"),
            ("ln -sfn lnk2 lnk", "/workspace/lnk"),
            ("rm lnk; ln -s nowhere lnk", "/workspace/lnk"),
        ] {
            let ran = sh(&arena, line).ends(0);
            assert!(ran.err.contains(&format!("{path} was not there before this command")), "{line}: {}", ran.err);
        }
    }
}

#[test]
fn l36_every_submodule_is_guarded_and_what_is_too_much_is_told() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        let files: Vec<String> = (0..120).map(|at| format!(".git/modules/m{at}/config")).collect();
        arena.write("work/.git/HEAD", "ref: refs/heads/x\n");
        for file in &files {
            arena.write(&format!("work/{}", file.replace("config", "HEAD")), "x\n");
            arena.write(&format!("work/{file}"), "kept\n");
        }
        sh(&arena, &attack(&files)).ends(0);
        assert_eq!(changed(&arena, &files), Vec::<&String>::new(), "{who:?}");
    }
    let arena = Arena::of(Who::Root);
    for at in 0..520 {
        arena.write(&format!("work/.git/modules/m{at}/HEAD"), "x\n");
        arena.write(&format!("work/.git/modules/m{at}/config"), "kept\n");
    }
    sh(&arena, "true").ends(0).warns("20 files and folders that run later outside of the sandbox could not be kept");
}

#[test]
fn a_pipe_or_a_device_in_place_of_a_git_file_holds_no_call() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/b/.git/HEAD", "x\n");
        sh(&arena, "mkfifo .git; mkdir a; mkfifo a/.git b/.git/commondir; ln -s /dev/zero b/.git/config").ends(0);
        sh(&arena, "echo fine > x").ends(0);
        assert_eq!(arena.read("work/x"), "fine\n");
    }
}

#[test]
fn l31_write_asks_for_what_only_a_setting_or_a_link_makes_a_place() {
    let broad = "[[rules]]\naction = \"*\"\npath = \"/workspace/**\"\neffect = \"allow\"\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.configure(broad);
        arena.write("work/.git/config", "[core]\nhooksPath = scripts/hooks\n[include]\npath = ../local.conf\n");
        arena.write("work/local.conf", "[core]\nfsmonitor = ./watch.sh\n");
        arena.write("work/env/real.sh", "x\n");
        arena.write("work/sub/.git", "gitdir: ../gd\n");
        arena.write("work/gd/config", "\n");
        symlink("real.sh", arena.path("work/env/.envrc")).expect("a link");
        let write =
            |name: &str| arena.run(&["call", "write", &json!({ "file_path": name, "content": "evil\n" }).to_string()]);
        write("src/main.rs").ends(0);
        // Most of them do not exist yet.
        for name in ["scripts/hooks/pre-push", "watch.sh", "gd/config.worktree", "gd/hooks/x"] {
            write(name).ends(3).says("built_in:runs_later");
            assert!(!arena.exists(&format!("work/{name}")), "{name}");
        }
        for name in ["local.conf", "env/real.sh"] {
            // A file that is there must have been read first; what would be decided is the same.
            let input = json!({ "file_path": name, "content": "evil\n" }).to_string();
            arena.run(&["policy", "explain", "write", &input]).ends(3).says("runs later outside of the sandbox");
        }
        arena.configure(&format!(
            "{broad}[[rules]]\naction = \"write\"\npath = \"scripts/hooks/pre-push\"\neffect = \"allow\"\n"
        ));
        write("scripts/hooks/pre-push").ends(0);
    }
}

/// A repository in two folders, neither of which is called `.git`: `f` has a `HEAD` and says that the rest is in `e`.
const IN_TWO_FOLDERS: [(&str, &str); 6] = [
    ("e/objects/k", "x\n"),
    ("e/refs/k", "x\n"),
    ("e/config", "[core]\nrepositoryformatversion = 1\nbare = false\n[extensions]\nworktreeConfig = true\n"),
    ("f/commondir", "../e\n"),
    ("f/config.worktree", "[core]\nworktree = .\nfsmonitor = \"touch ../ran; false\"\n"),
    ("f/HEAD", "ref: refs/heads/x\n"),
];

/// Whether a person's `git status` in `f` runs what was planted.
fn runs_in_two_folders(arena: &Arena) -> bool {
    let mut git = arena.as_this_person("/usr/bin/git");
    drop(git.arg("status").current_dir(arena.path("work/f")).output());
    arena.exists("work/ran")
}

#[test]
fn l31_a_repository_in_two_folders_is_not_made_unasked_in_any_order() {
    let broad = "[[rules]]\naction = \"*\"\npath = \"/workspace/**\"\neffect = \"allow\"\n";
    for who in EVERYBODY {
        // Each file comes last once.
        for turn in 0..IN_TWO_FOLDERS.len() {
            let mut order = IN_TWO_FOLDERS;
            order.rotate_left(turn);
            if who == Who::OrdinaryUser {
                order.reverse();
            }
            let arena = Arena::of(who);
            arena.configure(broad);
            let mut asked = Vec::new();
            for (name, content) in order {
                let input = json!({ "file_path": name, "content": content }).to_string();
                let ran = arena.run(&["call", "write", &input]);
                if ran.code != 0 {
                    ran.ends(3).says("built_in:runs_later");
                    asked.push(name);
                }
            }
            assert!(!asked.is_empty() && !runs_in_two_folders(&arena), "{who:?} {order:?}: {asked:?}");
        }
        let control = Arena::of(who);
        for (name, content) in IN_TWO_FOLDERS {
            control.write(&format!("work/{name}"), content);
        }
        assert!(runs_in_two_folders(&control), "{who:?}");
    }
}

#[test]
fn l36_a_repository_in_two_folders_that_a_command_makes_is_told_and_one_that_exists_is_kept() {
    let make = |(name, content): (&str, &str)| {
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("mkdir -p {folder}; printf %s '{content}' > {name}; ")
    };
    for who in EVERYBODY {
        let arena = Arena::of(who);
        sh(&arena, &IN_TWO_FOLDERS.map(make).concat())
            .ends(0)
            .warns("/workspace/f was not there before this command")
            .warns("/workspace/e was not there before this command");
        let files = ["f/commondir", "f/config.worktree", "e/config"].map(str::to_owned);
        for file in &files {
            arena.write(&format!("work/{file}"), "kept\n");
        }
        arena.write("work/f/commondir", "../e\n");
        sh(&arena, &attack(&files)).ends(0);
        assert_eq!(changed(&arena, &files[1..]), Vec::<&String>::new(), "{who:?}");
        assert_eq!(arena.read("work/f/commondir"), "../e\n", "{who:?}");
    }
}
