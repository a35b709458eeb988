//! The shells at every level: they work, the log says at which level, and below what is demanded nothing runs.

use serde_json::{Value, json};

use crate::levels::setup::{How, LEVELS, Setup};

impl Setup {
    /// The level of each call that was started, with its tool.
    fn started(&self, session: &str) -> Vec<(String, String, usize)> {
        let ran = self.run(&["sessions", "events", session, "--json"]);
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a document"));
        let started = events.filter(|event| event["type"] == "tool.invocation.started");
        let told = started.map(|event| {
            let payload: Value = serde_json::from_str(event["payload"].as_str().expect("a payload")).expect("json");
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let missing = payload["sandbox"]["missing"].as_array().map_or(0, Vec::len);
            (word(&payload["executor"]), word(&payload["sandbox"]["level"]), missing)
        });
        told.filter(|(_, level, _)| !level.is_empty()).collect()
    }
}

fn shells_work(how: How, level: &str) {
    let setup = Setup::at(how, level);
    setup.folder("work/sub");
    let call = |tool: &str, input: Value| {
        let (code, out, err) = setup.call(level, tool, &input);
        assert_eq!(code, Some(0), "{how:?} {level} {tool} {input}: {out} {err}");
        out
    };
    // A fresh shell each: what carries over is the session's.
    let out = call("shell_exec", json!({"command": "cd sub; export A=1; f() { echo f; }; f; echo one > made"}));
    assert_eq!(out, "f\n", "{how:?} {level}");
    let out = call("shell_exec", json!({"command": "cat made; echo $A; basename \"$PWD\""}));
    assert_eq!(out, "one\n1\nsub\n", "{how:?} {level}");
    let out = call("shell_run", json!({"command": "cat made; echo $A; basename \"$PWD\""}));
    assert_eq!(out, "one\n1\nsub\n", "{how:?} {level}");
    let ran = setup.run(&["--json", "--sandbox", level, "call", "shell_describe"]);
    let described: Value = serde_json::from_slice::<Value>(&ran.stdout).expect("json")["structured"].take();
    assert_eq!((&described["cwd"], &described["env"]["keys"]), (&json!("/workspace/sub"), &json!(["A"])));

    let session = described["sessionId"].as_str().expect("an id");
    let started = setup.started(session);
    assert_eq!(started.len(), 3, "{started:?}");
    for (_, at, missing) in &started {
        assert_eq!(at, level, "{how:?}: {started:?}");
        assert!(*missing > 0 || level == "full", "what is missing is told: {started:?}");
    }

    let Some(better) = LEVELS.iter().take_while(|one| **one != level).last() else { return };
    for (tool, input) in [
        ("shell_exec", json!({"command": "touch ran"})),
        ("shell_exec", json!({"command": "touch ran", "background": true})),
        ("shell_open", json!({})),
        ("shell_restart", json!({})),
        ("shell_run", json!({"command": "touch ran"})),
        ("bash", json!({"command": "ls"})),
    ] {
        let (code, out, err) = setup.call(better, tool, &input);
        assert_eq!(code, Some(1), "{how:?} {level} {tool}: {out} {err}");
        assert!(err.contains("sandbox_unavailable") && err.contains(&format!("`{better}`")), "{tool}: {err}");
    }
    assert!(!setup.path("work/sub/ran").exists() && !setup.path("work/ran").exists());
}

#[test]
fn h08_shells_work_at_every_level_that_root_can_have_and_fail_closed_below_the_minimum() {
    How::Root.levels().iter().for_each(|level| shells_work(How::Root, level));
}

#[test]
fn h08_shells_work_at_every_level_that_a_user_can_have_and_fail_closed_below_the_minimum() {
    for how in [How::Somebody, How::NoUserNamespaces] {
        how.levels().iter().for_each(|level| shells_work(how, level));
    }
}
