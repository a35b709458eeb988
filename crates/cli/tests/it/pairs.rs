//! Many answers at the same moment, each by a process of its own.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::common::{Ran, World, embedded};
use portcullis::CallOutcome;

const ASKS: usize = 200;
/// Asks of one session: their answers wait for one another's lease, others do not.
const OF_ONE_SESSION: usize = 10;
/// Pairs that are in flight at once.
const AT_ONCE: usize = 8;

/// One ask for each file that is to be made.
fn ask_for_files(world: &World) -> Vec<String> {
    let runtime = embedded(world);
    let asked = async {
        let mut asks = Vec::new();
        for first in (0..ASKS).step_by(OF_ONE_SESSION) {
            let session = runtime.create_session("pairs").await.expect("made");
            for n in first..first + OF_ONE_SESSION {
                let input = serde_json::json!({"file_path": format!("{n}.txt"), "content": "once\n"}).to_string();
                match runtime.call(session, "write", &input).await.expect("called") {
                    CallOutcome::Waiting(ask) => asks.push(ask.to_string()),
                    _ => panic!("it asks"),
                }
            }
        }
        runtime.shutdown().await;
        asks
    };
    tokio::runtime::Runtime::new().expect("runs").block_on(asked)
}

/// Two processes that allow the same ask at the same time.
fn pair(world: &World, ask: &str) -> [Ran; 2] {
    [(); 2]
        .map(|()| world.command(&["approvals", "allow", ask]).spawn().expect("it runs"))
        .map(|child| child.wait_with_output().expect("it ends").into())
}

#[test]
fn check01_l35_of_two_hundred_pairs_of_answers_one_wins_each_and_every_call_runs_once() {
    let world = World::new();
    let asks = ask_for_files(&world);
    let waiting = Mutex::new(asks.iter());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(ask) = waiting.lock().expect("held by nobody who fails").next() else { return };
                    let both = pair(&world, ask);
                    let told = both.iter().filter(|ran| ran.err.contains("already_settled")).count();
                    assert_eq!(told, 1, "one of two wins:\n{}\n{}", both[0].err, both[1].err);
                    for ran in both {
                        let wanted = i32::from(ran.err.contains("already_settled"));
                        assert_eq!(ran.code, wanted, "the one that lost ends with 1, always: {}", ran.err);
                    }
                }
            });
        }
    });
    for n in 0..ASKS {
        assert_eq!(world.read(&format!("{n}.txt")), "once\n");
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for session in world.run(&["sessions", "list", "--json"]).ends(0).json()["sessions"].as_array().expect("a list") {
        let id = session["session_id"].as_str().expect("an id");
        for event in world.run(&["sessions", "events", id, "--limit", "1000", "--json"]).ends(0).lines() {
            *counts.entry(event["type"].as_str().expect("a type").to_owned()).or_default() += 1;
        }
    }
    for kind in ["tool.permission.asked", "tool.permission.replied", "tool.invocation.started", "tool.observation"] {
        assert_eq!(counts.get(kind), Some(&ASKS), "{kind}: {counts:?}");
    }
    world.run(&["audit", "verify"]).ends(0);
}
