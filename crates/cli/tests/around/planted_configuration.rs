//! A command plants our own configuration, or takes our folders away, so that the next start obeys it.
//!
//! The workspace holds a home, which somebody said is meant. Each line tries to put a file that allows everything where
//! the next start looks. The control runs the same line outside of the hand, and shows that the next start obeys it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::json;

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::Ran;

/// Allows every call of a tool.
const EVIL: &str = "[[rules]]\nid = \"planted\"\naction = \"*\"\neffect = \"allow\"\n";

/// Where the home is for a line: `@`. `evil.toml` and `new/portcullis/config.toml` with the planted text lie in it. Every
/// line is run for each name that the home has in the view.
const LINES: &[&str] = &[
    "mkdir -p @/.config/portcullis; cp @/evil.toml @/.config/portcullis/config.toml",
    "mkdir -p @/.config/portcullis; cat @/evil.toml > @/.config/portcullis/config.toml",
    "install -D -m 600 @/evil.toml @/.config/portcullis/config.toml",
    "mkdir -p @/.config/portcullis; ln @/evil.toml @/.config/portcullis/config.toml",
    "mkdir -p @/.config/portcullis; ln -s @/evil.toml @/.config/portcullis/config.toml",
    "mkdir -p @/.config; mv @/new/portcullis @/.config/portcullis; mv -T @/new/portcullis @/.config/portcullis",
    "mkdir -p @/.config; rm -rf @/.config/portcullis; cp -a @/new/portcullis @/.config/portcullis",
    "mkdir -p @/.config; rmdir @/.config/portcullis; ln -s ../new/portcullis @/.config/portcullis",
    "mkdir -p @/.config; mv @/.config @/x; mkdir -p @/.config/portcullis; cp @/evil.toml @/.config/portcullis/config.toml",
    "mkdir -p @/.config; mv @/.config @/x; mv @/new @/.config",
    "mkdir -p @/.config; rm -rf @/.config; ln -s new @/.config",
    "cd @ && tar -cf t.tar --transform s,^new,.config, new && tar -xf t.tar --overwrite --recursive-unlink",
    "mkdir -p @/.config; cd @/.config && tar -C ../new -cf - portcullis | tar -xf - --unlink-first",
    "python3 -c 'import os,shutil\nos.makedirs(\"@/.config\", exist_ok=True)\nshutil.copytree(\"@/new\", \"@/.config\", \
     dirs_exist_ok=True)'",
    // RENAME_EXCHANGE.
    "mkdir -p @/.config; python3 -c 'import ctypes\nctypes.CDLL(None).renameat2(-100, b\"@/new\", -100, b\"@/.config\", 2)'",
    "mkdir -p @/.config/portcullis; python3 -c 'import ctypes\nctypes.CDLL(None).renameat2(-100, b\"@/new/portcullis\", -100, \
     b\"@/.config/portcullis\", 2)'",
    "mkdir -p @/.config/portcullis; chmod -R 777 @/.config; umount @/.config/portcullis @/.config; \
     cp @/evil.toml @/.config/portcullis/config.toml",
    "cd @ && mkdir -p .config/portcullis && cd .config/portcullis && cp ../../evil.toml config.toml",
    "mkdir -p @/.config/portcullis; python3 -c 'import os\nd = os.open(\"@/.config\", os.O_RDONLY)\nos.rename(\"@/evil.toml\", \
     \"portcullis/config.toml\", dst_dir_fd=d)'",
    "mkdir -p @/.config/portcullis; dd if=@/evil.toml of=@/.config/portcullis/config.toml",
    "mkdir -p @/.config; find @/.config -depth -delete; mkdir -p @/.config; cp -r @/new/portcullis @/.config/",
    "mkdir @/.config; mkdir @/.config/portcullis; sed -n p @/evil.toml | tee @/.config/portcullis/config.toml",
];

/// The binary for somebody whose home is this folder of the arena.
fn start(arena: &Arena, home: &str, args: &[&str]) -> Ran {
    let mut command = arena.command(args);
    command.env("HOME", arena.path(home)).output().expect("it runs").into()
}

/// Whether the next start of somebody with this home obeys a planted file: it would not ask about a write any more.
fn obeys(arena: &Arena, home: &str) -> bool {
    let ran = start(arena, home, &["policy", "explain", "write", r#"{"file_path":"x","content":""}"#]);
    assert!([0, 3].contains(&ran.code), "it says what it decides: {} {}", ran.out, ran.err);
    ran.code == 0
}

/// A home with what the lines take.
fn furnish(arena: &Arena, home: &str) {
    arena.write(&format!("{home}/.profile"), "");
    arena.write(&format!("{home}/evil.toml"), EVIL);
    arena.write(&format!("{home}/new/portcullis/config.toml"), EVIL);
}

/// A command in the hand, in a workspace that holds a home.
fn in_hand(arena: &Arena, home: &str, workspace: &str, line: &str) -> Ran {
    let (input, workspace) = (json!({"command": line}).to_string(), arena.path(workspace).display().to_string());
    let flags = ["--workspace", &workspace, "--workspace-is-home", "--approvals", "allow"];
    start(arena, home, &[&flags[..], &["call", "shell_run", &input]].concat())
}

/// Every line against `victim`, a home in `workspace`, by a command that somebody whose home is `home` started.
/// `controls` are run outside of the hand as well.
fn nothing_is_planted(who: Who, home: &str, workspace: &str, victim: &str, controls: &[&str]) {
    let (arena, control) = (Arena::of(who), Arena::of(who));
    arena.write(&format!("{home}/.profile"), "");
    furnish(&arena, victim);
    // Both names of the victim in the view. A file that was planted is seen there: no mask covers it.
    let host = arena.path(victim);
    let virtual_name = Path::new("/workspace").join(host.strip_prefix(arena.path(workspace)).expect("beneath"));
    for name in [virtual_name.as_path(), &host] {
        let name = name.to_str().expect("text").trim_end_matches('/');
        let again = format!("cp {name}/evil.toml /tmp/evil.toml 2> /tmp/0");
        let tries = LINES.iter().enumerate().map(|(at, line)| {
            let line = line.replace('@', name);
            format!(
                "rm -rf {name}/new {name}/x; mkdir -p {name}/new/portcullis; cp /tmp/evil.toml {name}/evil.toml\n\
                 cp /tmp/evil.toml {name}/new/portcullis/config.toml\n( {line}\n)\n\
                 cat {name}/.config/portcullis/config.toml && echo planted by {at}\n"
            )
        });
        let all = format!("{again}\n{}\necho tried", tries.collect::<String>());
        let ran = in_hand(&arena, home, workspace, &all).ends(0).says("tried");
        assert!(!ran.out.contains("planted by"), "{who:?}: {}", ran.out);
        let config = host.join(".config/portcullis");
        let kept = config.symlink_metadata().expect("it is still there");
        assert!(kept.is_dir() && kept.permissions().mode() & 0o7777 == 0o700, "{who:?}");
        assert_eq!(fs::read_dir(&config).expect("read").count(), 0, "{who:?}");
    }
    assert!(!obeys(&arena, victim), "{who:?}");

    furnish(&control, victim);
    assert!(!obeys(&control, victim), "nothing is planted yet");
    for line in controls {
        let free = control.path(victim);
        fs::remove_dir_all(&free).expect("wiped");
        furnish(&control, victim);
        let planting = line.replace('@', free.to_str().expect("text"));
        control.as_this_person("/bin/sh").args(["-c", &planting]).output().expect("it runs");
        assert!(obeys(&control, victim), "{who:?}: the control does not plant: {line}");
    }
}

#[test]
fn no_command_plants_a_configuration_in_the_home_that_it_works_in() {
    for who in EVERYBODY {
        nothing_is_planted(who, "home", "home", "home", LINES);
    }
}

#[test]
fn no_command_plants_a_configuration_in_another_home_below_the_workspace() {
    for who in EVERYBODY {
        // Which home it is makes no difference to a line.
        nothing_is_planted(who, "homes/ada", "homes", "homes/bob", &LINES[..2]);
    }
}

#[test]
fn a_configuration_that_is_there_stays_and_is_not_read() {
    let mine = "# mine: CANARY\n[[rules]]\naction = \"web_*\"\neffect = \"deny\"\n";
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.configure(mine);
        furnish(&arena, "home");
        let lines: Vec<String> = LINES.iter().map(|line| format!("( {}\n)", line.replace('@', "/workspace"))).collect();
        let all = format!("{}; cat /workspace/.config/portcullis/*; echo tried", lines.join("; "));
        let ran = in_hand(&arena, "home", "home", &all).ends(0).says("tried");
        assert!(!ran.out.contains("CANARY"), "{}", ran.out);
        assert_eq!(arena.read("home/.config/portcullis/config.toml"), mine, "{who:?}");
    }
}

/// The data folder holds trust, history, keys and what a person confirmed.
#[test]
fn no_command_takes_the_data_folder_away_or_puts_another_in_its_place() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("home/other/portcullis/trusted/x.json", "{}");
        let before = |arena: &Arena| {
            let meta = arena.path("home/.local/share/portcullis").symlink_metadata().expect("there");
            (meta.ino(), meta.is_dir())
        };
        in_hand(&arena, "home", "home", "true").ends(0);
        let kept = before(&arena);
        let mut lines = Vec::new();
        for name in ["/workspace".to_owned(), arena.home().display().to_string()] {
            let share = format!("{name}/.local/share");
            for line in [
                format!("mv {share}/portcullis {share}/x"),
                format!("mv {share} {name}/.local/x; mkdir -p {share}; mv {name}/other/portcullis {share}/portcullis"),
                format!("mv {name}/.local {name}/x; mkdir -p {share}; cp -r {name}/other/portcullis {share}"),
                format!("rm -rf {share}/portcullis {name}/.local; mkdir -p {share}/portcullis/trusted"),
                format!("mkdir -p {share}/portcullis/trusted; echo x > {share}/portcullis/trusted/x.json"),
                format!("ls {share}/portcullis/keys; cp -r {share}/portcullis {name}/stolen"),
            ] {
                lines.push(line);
            }
        }
        in_hand(&arena, "home", "home", &format!("{}; echo tried", lines.join("; "))).ends(0).says("tried");
        assert_eq!(before(&arena), kept, "{who:?}");
        assert!(!arena.exists("home/.local/share/portcullis/trusted/x.json"), "{who:?}");
        assert!(!arena.exists("home/stolen/keys/sealing.key"), "{who:?}");
        // The control: outside of the hand the first line works.
        let line = "mv ~/.local/share/portcullis ~/.local/share/x";
        arena.as_this_person("/bin/sh").args(["-c", line]).output().expect("it runs");
        assert!(!arena.exists("home/.local/share/portcullis"));
    }
}

/// XDG variables and `PORTCULLIS_HOME` move our folders into the workspace; a dotfile manager makes links of them.
#[test]
fn folders_that_were_moved_or_linked_are_held_as_well() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        arena.write("work/evil.toml", EVIL);
        let line = "true; mv cfg x; mkdir -p cfg/portcullis; cp evil.toml cfg/portcullis/config.toml; mv data y; mkdir data; \
                    rm -rf cfg data; echo tried";
        let moved = |args: &[&str]| -> Ran {
            let mut command = arena.command(args);
            command.env("XDG_CONFIG_HOME", arena.path("work/cfg")).env("PORTCULLIS_HOME", arena.path("work/data"));
            command.output().expect("it runs").into()
        };
        let input = json!({"command": line}).to_string();
        moved(&["--workspace-is-home", "--approvals", "allow", "call", "shell_run", &input]).ends(0).says("tried");
        assert!(arena.exists("work/cfg/portcullis") && !arena.exists("work/cfg/portcullis/config.toml"), "{who:?}");
        assert!(arena.exists("work/data/portcullis.db") && arena.exists("work/data/keys"), "{who:?}");

        // A link in a folder of the home: that folder is read-only.
        let arena = Arena::of(who);
        furnish(&arena, "home");
        arena.write("home/dotfiles/portcullis/config.toml", "");
        arena.write("home/.config/app/settings", "");
        symlink("../dotfiles/portcullis", arena.path("home/.config/portcullis")).expect("linked");
        let plant = "true; rm -f .config/portcullis; mkdir -p .config/portcullis; cp evil.toml .config/portcullis/config.toml; \
                     cp evil.toml dotfiles/portcullis/config.toml; mv dotfiles d2; mkdir -p dotfiles/portcullis; echo tried";
        in_hand(&arena, "home", "home", plant).ends(0).says("tried");
        assert!(!obeys(&arena, "home"), "{who:?}");
        assert_eq!(arena.read("home/dotfiles/portcullis/config.toml"), "", "{who:?}");
        // A link in the workspace itself cannot be held: nothing runs, and it is said.
        let arena = Arena::of(who);
        furnish(&arena, "home");
        arena.write("home/dotfiles/portcullis/config.toml", "");
        symlink("dotfiles", arena.path("home/.config")).expect("linked");
        let ran = in_hand(&arena, "home", "home", "touch ran").ends(1).warns("sandbox_unavailable");
        ran.warns("/workspace/.config is missing, or is a link");
        assert!(!arena.exists("home/ran"), "{who:?}");
    }
}

/// What cannot be made cannot be made by a command, either.
#[test]
fn a_folder_that_cannot_be_made_is_said_and_its_parent_is_held() {
    let arena = Arena::of(Who::OrdinaryUser);
    furnish(&arena, "home");
    // Root's, in a home of somebody else: it can be renamed there, but nothing can be made in it.
    fs::create_dir(arena.path("home/.config")).expect("made");
    let line =
        "true; mv .config x; mkdir -p .config/portcullis; cp evil.toml .config/portcullis/config.toml; echo tried";
    let ran = in_hand(&arena, "home", "home", line).ends(0).says("tried");
    ran.warns(".config/portcullis cannot be made").warns("no command can make it either");
    assert!(!obeys(&arena, "home") && !arena.exists("home/x"));
    // The control.
    arena.as_this_person("/bin/sh").args(["-c", &format!("cd ~; {line}")]).output().expect("it runs");
    assert!(obeys(&arena, "home"));
}

#[test]
fn no_file_tool_makes_or_changes_what_is_ours() {
    for who in EVERYBODY {
        let arena = Arena::of(who);
        furnish(&arena, "home");
        let home = arena.home().display().to_string();
        let call = |tool: &str, input: &serde_json::Value| {
            let flags = ["--workspace", &home, "--workspace-is-home", "--approvals", "allow", "call", tool];
            start(&arena, "home", &[&flags[..], &[&input.to_string()]].concat())
        };
        let host = format!("{home}/.config/portcullis/config.toml");
        for name in [
            ".config/portcullis/config.toml",
            ".config/portcullis/deeper/x",
            ".config/portcullis",
            ".local/share/portcullis/trusted/x.json",
            "new/../.config/portcullis/config.toml",
            "/workspace/.local/share/portcullis/portcullis.db",
            &host,
        ] {
            call("write", &json!({"file_path": name, "content": EVIL})).ends(1);
            let mkdir = json!({"name": "mkdir", "input": {"path": name, "recursive": true}});
            assert_ne!(call("sandbox_execute", &mkdir).code, 0, "{name}");
        }
        assert!(!obeys(&arena, "home"), "{who:?}");
        assert_eq!(fs::read_dir(arena.path("home/.config/portcullis")).expect("read").count(), 0);
        // The control: beside it everything can be made.
        call("write", &json!({"file_path": ".config/other/config.toml", "content": EVIL})).ends(0);
    }
}
