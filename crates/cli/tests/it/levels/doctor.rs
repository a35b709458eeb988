//! What `doctor` says of the isolation agrees with a look from inside.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::levels::setup::{How, Setup};

/// What a program finds about itself.
struct Inside(String);

impl Inside {
    /// What a command finds about itself: its namespaces, its filters, what it can see and write.
    const LOOK: &str = "grep -E '^(Seccomp|Seccomp_filters|NoNewPrivs):' /proc/self/status; \
                        for n in user mnt pid net ipc uts; do echo \"$n $(readlink /proc/self/ns/$n)\"; done; ";

    fn filters(&self) -> u32 {
        let line = self.0.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
        line.expect("a kernel that counts filters (5.9)").trim().parse().expect("a number")
    }

    fn namespace(&self, name: &str) -> &str {
        let line = self.0.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no namespace {name}: {}", self.0))
    }

    fn says(&self, word: &str) -> bool {
        self.0.lines().any(|line| line == word)
    }
}

fn agrees(how: How, level: &str) {
    let setup = Setup::at(how, level);
    let said = setup.doctor(&["--sandbox", "none"]);
    let isolation = &said["isolation"];
    assert_eq!(isolation["level"], level, "{how:?}: {said}");
    assert_eq!(isolation["runs"], true);
    let missing: Vec<&Value> = isolation["missing"].as_array().expect("a list").iter().collect();
    let has = |layer: &str| !missing.iter().any(|one| one["layer"] == layer);
    for one in &missing {
        assert!(!one["why"].as_str().unwrap_or_default().is_empty(), "{one}");
        assert!(!one["raise"].as_str().unwrap_or_default().is_empty(), "{one}");
    }

    fs::write(setup.path("home/secret"), "CANARY\n").expect("written");
    let outside = setup.path("outside");
    let look = Inside::LOOK;
    let script = format!(
        "{look} cat {home}/secret 2>/dev/null; (echo x > {outside}/made) 2>/dev/null && echo WRITES; \
         touch made && echo WORKS; test -d /workspace && echo VIRTUAL; test -e /proc/1/root && echo PROC; true",
        home = setup.path("home").display(),
        outside = outside.display()
    );
    let plain = setup.as_somebody(&["/bin/sh", "-c", look]);
    let plain = Inside(String::from_utf8_lossy(&plain.stdout).into_owned());
    let (code, out, err) = setup.call(level, "shell_run", &json!({ "command": script }));
    assert_eq!(code, Some(0), "{how:?} {level}: {out} {err}");
    let inside = Inside(out);
    let what = format!("{how:?} {level}: {}\n{said}", inside.0);

    assert!(inside.says("NoNewPrivs:\t1"), "{what}");
    assert_eq!(inside.filters() > plain.filters(), has("seccomp"), "{what}");
    assert!(inside.says("Seccomp:\t2") || !has("seccomp"), "{what}");
    let own = |name: &str| inside.namespace(name) != plain.namespace(name);
    for name in ["mnt", "pid", "net", "ipc", "uts"] {
        assert_eq!(own(name), has("namespaces"), "{name}: {what}");
    }
    // Without user namespaces each run here is in one that was made around Portcullis, whose number may come again.
    if how != How::NoUserNamespaces {
        assert_eq!(own("user"), has("user_namespace"), "{what}");
    }
    assert!(inside.says("WORKS") && setup.path("work/made").exists(), "{what}");
    assert_eq!(inside.says("VIRTUAL"), has("private_root"), "{what}");
    // Files of others are kept away by a root of its own, or by Landlock.
    let kept_away = has("private_root") || has("landlock");
    assert_eq!(inside.says("CANARY"), !kept_away, "{what}");
    assert_eq!(inside.says("WRITES"), !kept_away, "{what}");
    assert_eq!(outside.join("made").exists(), !kept_away, "{what}");

    // And below what is demanded nothing runs, of which doctor says so.
    let Some(better) = crate::levels::setup::LEVELS.iter().take_while(|one| **one != level).last() else { return };
    let said = setup.doctor(&["--sandbox", better]);
    assert_eq!((&said["isolation"]["runs"], &said["isolation"]["minimum"]), (&json!(false), &json!(better)));
    let (code, _, err) = setup.call(better, "shell_run", &json!({"command": "touch ran"}));
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("sandbox_unavailable") && err.contains(&format!("`{better}`")), "{err}");
    assert!(!setup.path("work/ran").exists(), "{what}");
}

#[test]
fn doctor_agrees_with_a_look_from_inside_as_root() {
    How::Root.levels().iter().for_each(|level| agrees(How::Root, level));
}

#[test]
fn doctor_agrees_with_a_look_from_inside_as_an_ordinary_user() {
    How::Somebody.levels().iter().for_each(|level| agrees(How::Somebody, level));
}

#[test]
fn doctor_agrees_with_a_look_from_inside_without_user_namespaces() {
    How::NoUserNamespaces.levels().iter().for_each(|level| agrees(How::NoUserNamespaces, level));
}

#[test]
fn below_the_minimum_nothing_runs_and_what_cannot_be_hidden_is_refused_by_its_rule() {
    let setup = Setup::at(How::NoUserNamespaces, "no_namespaces");
    // By default only the full level will do.
    let said = setup.doctor(&[]);
    assert_eq!((&said["isolation"]["runs"], &said["isolation"]["minimum"]), (&json!(false), &json!("full")));
    let call = || {
        let input = json!({"command": "touch ran"}).to_string();
        let ran = setup.run(&["--approvals", "allow", "call", "shell_run", &input]);
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, err) = call();
    assert!(code == Some(1) && err.contains("sandbox_unavailable") && err.contains("`full`"), "{err}");
    assert!(!setup.path("work/ran").exists());

    // A rule with a match cannot be kept at this level; without one it can.
    fs::create_dir_all(setup.path("home/config/portcullis")).expect("made");
    let rule = "[sandbox]\nminimum = \"no_namespaces\"\n[[rules]]\nid = \"no-env\"\naction = \"read\"\npath = \"**/.env\"\neffect = \"deny\"\n";
    fs::write(setup.path("home/config/portcullis/config.toml"), rule).expect("written");
    fs::write(setup.path("work/.env"), "CANARY").expect("written");
    let (code, err) = call();
    assert!(code == Some(1) && err.contains("sandbox_unavailable"), "{err}");
    assert!(err.contains("`no-env`") && err.contains("`no_namespaces`"), "{err}");
    assert!(!setup.path("work/ran").exists());
    fs::remove_file(setup.path("work/.env")).expect("removed");
    let (code, err) = call();
    assert_eq!(code, Some(0), "{err}");
    assert!(setup.path("work/ran").exists());
}

/// Root reads and writes everywhere: only somebody else can be kept out.
#[test]
fn a_data_folder_that_cannot_be_read_or_written_is_one_finding_with_what_to_do() {
    let setup = Setup::at(How::Somebody, "full");
    setup.run(&["call", "shell_describe"]);
    let data = setup.path("home/data");
    let keys = data.join("keys");
    let mode = |path: &std::path::Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
    };
    for (folder, closed) in [(&data, 0o000), (&data, 0o500), (&data, 0o300), (&keys, 0o000), (&keys, 0o500)] {
        mode(folder, closed);
        let said = setup.doctor(&[]);
        let ran = setup.run(&["doctor"]);
        mode(folder, 0o700);
        assert_eq!(ran.status.code(), Some(1), "{closed:o}: {said}");
        let findings = said["findings"].as_array().expect("a list");
        let broken: Vec<&Value> = findings.iter().filter(|one| one["grade"] == "broken").collect();
        assert_eq!(broken.len(), 1, "{} {closed:o}: {said}", folder.display());
        let (what, to_do) = (broken[0]["what"].as_str().expect("text"), broken[0]["to_do"].as_str().expect("text"));
        assert!(what.contains(&format!("the data folder {}", data.display())), "{what}");
        assert!(to_do.contains("chmod") && to_do.contains("set PORTCULLIS_HOME"), "{to_do}");
        assert!(!findings.iter().any(|one| one["about"] == "keys" || one["about"] == "store"), "{said}");
        let shown = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(shown.contains("isolation") && !shown.contains("error: "), "it goes on with the rest: {shown}");
    }
    // Another's folder: that is said, too.
    let theirs = setup.run(&["doctor"]);
    assert_eq!(theirs.status.code(), Some(0), "{}", String::from_utf8_lossy(&theirs.stdout));
    std::os::unix::fs::chown(&data, Some(0), Some(0)).expect("given away");
    let ran = setup.run(&["doctor"]);
    let shown = String::from_utf8_lossy(&ran.stdout);
    assert!(shown.contains("it is user 0's, and you are 54321") && shown.contains("chown -R 54321"), "{shown}");
}
