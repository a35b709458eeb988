//! `kill -9` of `run` at random instants under load: what was finished stays, what was in flight is unknown, and nothing
//! of it goes on running.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{World, comes, soak};
use crate::driven::{count, events, payload, script, signal};
use crate::processes::{descendants, marked, runs_still};

/// How many kills; `cargo xtask soak` multiplies it.
const KILLS: usize = 20;
/// Sessions that are at it at once: each is the others' load.
const AT_ONCE: usize = 2;
/// Commands of one session.
const COMMANDS: usize = 8;

/// Each turn leaves a line in a file and takes a moment after it; `mark` is on the command line of its process.
fn turns(mark: &str) -> String {
    let mut text = String::new();
    for n in 0..COMMANDS {
        text.push_str(&format!(
            "[[turn]]\ncalls = [{{ name = \"read\", input = {{ file_path = \"a.txt\" }} }}, {{ name = \"bash\", input = \
             {{ command = \"sh -c 'echo n{n} >> effects.txt; sleep 0.15' {mark}\" }} }}]\n"
        ));
    }
    text.push_str("[[turn]]\ntext = \"That was all.\"\n");
    text
}

/// What a run said before it died.
#[derive(Default)]
struct Heard {
    session: String,
    /// Observations the model was shown: a request went out after them, so they are durable.
    shown: BTreeMap<String, String>,
    ended: bool,
}

fn hear(lines: impl Iterator<Item = String>) -> Heard {
    let mut heard = Heard::default();
    let mut fresh: Vec<(String, String)> = Vec::new();
    // The last line may be half of one.
    for line in lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok()) {
        let word = |value: &Value| value.as_str().expect("a word").to_owned();
        match line["type"].as_str() {
            Some("session") => heard.session = word(&line["session_id"]),
            Some("observation") => {
                let seen = &line["observation"];
                fresh.push((word(&seen["observation_id"]), word(&seen["code"])));
            }
            Some("request") => heard.shown.extend(fresh.drain(..)),
            Some("end") => heard.ended = true,
            _ => {}
        }
    }
    heard
}

/// Kills a run after `pause`, and says what it had said and what it had started.
fn kill(mut child: Child, pause: Duration) -> (Heard, Vec<(u32, String)>) {
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut first = String::new();
    out.read_line(&mut first).expect("its output");
    std::thread::sleep(pause);
    // Stopped first, so that whatever it started by then can be listed.
    signal(&child, Signal::STOP);
    let started = descendants(child.id());
    signal(&child, Signal::KILL);
    child.wait().expect("reaped");
    let rest = out.lines().map_while(Result::ok);
    (hear(std::iter::once(first).chain(rest)), started)
}

/// Invocations that began and have no observation.
fn in_flight(log: &[Value]) -> BTreeSet<String> {
    let ids = |kind: &str| -> BTreeSet<String> {
        let of = log.iter().filter(|event| event["type"] == kind);
        of.filter_map(|event| payload(event)["intent_id"].as_str().map(str::to_owned)).collect()
    };
    &ids("tool.invocation.started") - &ids("tool.observation")
}

/// One kill and what comes after it. `None`: it was done before; else whether a command was in flight.
fn round(seed: u64, mark: &str) -> Option<bool> {
    let world = World::with_file("a.txt", "hello\n");
    let model = script(&world, "script.toml", &turns(mark));
    let run = ["--model", &model, "--approvals", "allow", "--json"];
    let child = world.command(&[&["run", "go"], &run[..]].concat()).spawn().expect("starts");
    let (heard, started) = kill(child, Duration::from_micros(seed % 1_200_000));
    if heard.ended {
        return None;
    }
    comes("nothing that it started runs", || !started.iter().any(runs_still) && !marked(mark));
    let left = world.read_or_nothing("effects.txt");
    let session = heard.session.as_str();
    let flying = in_flight(&events(&world, session));
    assert!(flying.len() <= 1, "commands of a turn run one after the other: {flying:?}");
    assert_eq!(left, world.read_or_nothing("effects.txt"), "nothing of it goes on");

    world.run(&[&["run", "--continue"], &run[..]].concat()).ends(0).says("That was all.");
    let log = events(&world, session);
    let mut observed: BTreeMap<String, Value> = BTreeMap::new();
    for event in log.iter().filter(|event| event["type"] == "tool.observation") {
        let seen = payload(event);
        let intent = seen["intent_id"].as_str().expect("an intent").to_owned();
        assert!(observed.insert(intent, seen).is_none(), "an intent has one observation");
    }
    for (observation, code) in &heard.shown {
        let times = observed.values().filter(|seen| seen["observation_id"] == **observation);
        let codes: Vec<&Value> = times.map(|seen| &seen["code"]).collect();
        assert_eq!(codes, [code.as_str()], "what was finished is there once, as it was");
    }
    let unknown: BTreeSet<String> = observed
        .iter()
        .filter(|(_, seen)| seen["code"] == "outcome_unknown")
        .map(|(intent, _)| intent.clone())
        .collect();
    assert_eq!(unknown, flying, "what was in flight is unknown, and nothing else is");
    assert_eq!(count(&log, "tool.intent"), observed.len());
    assert_eq!(count(&log, "span.started"), count(&log, "span.completed"), "no wake is left open");
    let effects = world.read("effects.txt");
    for event in log.iter().filter(|event| event["type"] == "tool.intent") {
        let intent = payload(event);
        let Some(n) = (0..COMMANDS).find(|n| intent.to_string().contains(&format!("echo n{n} >>"))) else { continue };
        let seen = &observed[intent["intent_id"].as_str().expect("an id")];
        let times = effects.lines().filter(|line| *line == format!("n{n}")).count();
        match seen["code"].as_str() {
            Some("ok") => assert_eq!(times, 1, "n{n} is said to have happened, once: {effects}"),
            _ => assert!(times <= 1, "n{n} happened twice: {effects}"),
        }
    }
    world.run(&["audit", "verify", session]).ends(0);
    world.run(&["replay", session, "--mode", "rebuild"]).ends(0);
    Some(!flying.is_empty())
}

#[test]
fn f04_a_run_killed_at_random_loses_nothing_repeats_nothing_and_leaves_nothing_running() {
    let began = Instant::now();
    let each = KILLS * soak() / AT_ONCE;
    let rounds = (0..AT_ONCE).map(|lane| {
        std::thread::spawn(move || {
            let mut seed = 0x9e37_79b9_7f4a_7c15_u64 ^ lane as u64;
            let (mut kills, mut tries, mut flying) = (0, 0, 0);
            while kills < each {
                tries += 1;
                assert!(tries <= 4 * each, "most runs were done before they were killed");
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let mark = format!("killed-{}-{lane}-{tries}", std::process::id());
                if let Some(in_flight) = round(seed >> 20, &mark) {
                    kills += 1;
                    flying += usize::from(in_flight);
                }
            }
            flying
        })
    });
    let flying: usize =
        rounds.collect::<Vec<_>>().into_iter().map(|lane| lane.join().expect("a lane that went well")).sum();
    println!("{} kills, {flying} with a command in flight, {:?}", each * AT_ONCE, began.elapsed());
    // Else it would prove nothing of commands.
    assert!(flying * 5 >= each * AT_ONCE, "only {flying} of the kills met a command");
}

/// Every request is a wake of its own here, so that most kills hit the time between two wakes or the first append of one.
#[test]
fn f04_kill_9_between_two_wakes_of_one_piece_of_work_loses_nothing_and_runs_nothing_twice() {
    let world = World::new();
    world.configure(
        "[limits]\nmax_turns_per_wake = 1\n[[rules]]\naction = \"*\"\nargv = [\"touch\"]\neffect = \"allow\"\n",
    );
    let call =
        |n: usize| format!("[[turn]]\ncalls = [{{ name = \"bash\", input = {{ command = \"touch made{n}\" }} }}]\n");
    let script = (0..8).map(call).collect::<String>() + "[[turn]]\ntext = \"All done.\"\n";
    let model = crate::run_talk::model(&world, &script);
    let mut child = world.command(&["run", "go", "--model", &model]).spawn().expect("starts");
    for n in [1, 3, 5] {
        crate::common::comes("it works", || world.workspace.join(format!("made{n}")).exists());
        child.kill().expect("killed");
        child.wait().expect("gone");
        child = world.command(&["run", "--continue", "--model", &model]).spawn().expect("starts");
    }
    let ran: crate::common::Ran = child.wait_with_output().expect("ends").into();
    ran.ends(0).says("All done.");
    let session = world.run(&["sessions", "list"]).ends(0).id("sesn_");
    let events = world.run(&["sessions", "events", &session, "--json"]).ends(0).lines();
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("tool.intent"), count("tool.observation")), (8, 8));
    assert_eq!(count("span.started"), count("span.completed"));
    world.run(&["audit", "verify", &session]).ends(0);
}
