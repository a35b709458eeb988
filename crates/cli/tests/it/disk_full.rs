//! F7: a full disk under the real binary and under one long-lived runtime. Each test runs again in a mount namespace of
//! its own, so that a small disk can be mounted without a trace, as root or not.

use crate::common;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use common::{Ran, World, edit};
use portcullis::{
    AccessRequest, Action, CallOutcome, DefaultPolicy, Resource, Risk, Runtime, RuntimeError, Semantics, SessionId,
    SideEffect, SystemIds, Tool, ToolFailure,
};
use portcullis_event::{Body, LOCAL_TENANT};
use portcullis_store::{LocalArtifacts, Log as _, SessionKey, StoreError, deliver_outbox, verify_tenant};
use portcullis_store_sqlite::SqliteStore;
use rustix::process::{Resource as Limit, Rlimit, setrlimit};
use schemars::JsonSchema;
use serde::Deserialize;

/// As [`common::inside`], for a test of this file.
fn inside(test: &str) -> bool {
    common::inside(&format!("disk_full::{test}"))
}

/// A disk of this many MiB at `folder`.
fn disk(folder: &Path, mib: u64) {
    fs::create_dir_all(folder).expect("a folder");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"]).arg(folder).status();
    assert!(mounted.expect("`mount` runs").success(), "a small disk is mounted");
}

/// Text that packing does not make shorter.
fn noise(bytes: usize) -> String {
    let hashes = (0_u32..).flat_map(|n| *portcullis_base::Digest::of(&n.to_be_bytes()).as_bytes());
    hashes.map(|byte| char::from(b'0' + byte % 75)).filter(|c| c.is_ascii_alphanumeric()).take(bytes).collect()
}

/// Takes all room of the disk but `left` bytes; the file that holds it.
fn fill(folder: &Path, left: u64) -> PathBuf {
    let path = folder.join("filler");
    let mut file = fs::File::create(&path).expect("a filler");
    for size in [1 << 20, 4096] {
        let chunk = vec![1u8; size];
        while file.write_all(&chunk).is_ok() {}
    }
    let len = file.metadata().expect("its size").len() / 4096 * 4096;
    file.set_len(len.saturating_sub(left)).expect("cut");
    path
}

fn lines(n: usize) -> String {
    (0..n).map(|i| format!("line {i} of a text that is long enough\n")).collect()
}

/// As a person edits: read, then edit and allow.
fn edited(world: &World, name: &str, old: &str, new: &str) -> Ran {
    world.run(&["call", "edit", &edit(name, old, new), "--approvals", "allow"])
}

fn read(world: &World, name: &str) -> Ran {
    world.run(&["call", "read", &format!(r#"{{"file_path":"{name}","line_count":10}}"#)])
}

/// A world whose data lies on a disk of 96 MiB. One file was read, so the process left the ballast.
fn on_a_small_disk(name: &str, text: &str) -> World {
    let world = World::with_file(name, text);
    disk(&world.home, 96);
    read(&world, name).ends(0);
    world
}

/// Everything that only looks works, and the log holds.
fn looks(world: &World) {
    world.run(&["sessions"]).ends(0).says("calls in");
    world.run(&["audit", "verify"]).ends(0);
    world.run(&["approvals"]).ends(0);
    world.run(&["gc", "--dry-run"]).ends(0);
}

#[test]
fn f07_a_full_data_disk_refuses_a_call_before_anything_happens_and_goes_on_by_itself() {
    if !inside("f07_a_full_data_disk_refuses_a_call_before_anything_happens_and_goes_on_by_itself") {
        return;
    }
    let world = on_a_small_disk("a.txt", "one\n");
    let ballast = || fs::metadata(world.home.join("ballast")).expect("the ballast").len();
    assert_eq!(ballast(), 16 << 20);
    let before = world.run(&["sessions", "--json"]).out;
    let filler = fill(&world.home, 0);
    let refused = world.run(&["call", "edit", &edit("a.txt", "one", "two"), "--approvals", "allow", "--json"]);
    let error = refused.ends(5).json();
    assert_eq!(error["error"]["code"], "read_only_disk_full", "{error}");
    edited(&world, "a.txt", "one", "two").ends(5).one_error_line().warns("free some space");
    assert_eq!(world.read("a.txt"), "one\n");
    looks(&world);
    assert_eq!(world.run(&["sessions", "--json"]).out, before, "nothing was recorded");
    assert_eq!(ballast(), 16 << 20, "nothing had to be ended, so the ballast stays");
    fs::remove_file(filler).expect("room");
    edited(&world, "a.txt", "one", "two").ends(0);
    assert_eq!(world.read("a.txt"), "two\n");
    looks(&world);
}

#[test]
fn f07_evidence_without_room_is_told_and_the_file_is_whole() {
    if !inside("f07_evidence_without_room_is_told_and_the_file_is_whole") {
        return;
    }
    let rest = lines(300_000);
    let world = on_a_small_disk("big.txt", &format!("old\n{rest}"));
    // Room enough to begin, and not for the 12 MB of the file before.
    let filler = fill(&world.home, 6 << 20);
    let ran = edited(&world, "big.txt", "old\n", "new\n").ends(1);
    ran.warns("retention_failed").warns("side effects: occurred").warns("make room on the disk");
    assert!(world.read("big.txt") == format!("new\n{rest}"), "it is the new file, whole");
    looks(&world);
    fs::remove_file(filler).expect("room");
    read(&world, "big.txt").ends(0);
    edited(&world, "big.txt", "new\n", "newer\n").ends(0);
    looks(&world);
}

#[test]
fn f07_a_full_workspace_keeps_the_old_file_and_says_so() {
    if !inside("f07_a_full_workspace_keeps_the_old_file_and_says_so") {
        return;
    }
    let world = World::new();
    disk(&world.workspace, 8);
    let rest = lines(50_000);
    world.write("big.txt", &format!("old\n{rest}"));
    read(&world, "big.txt").ends(0);
    let filler = fill(&world.workspace, 1 << 20);
    let ran = edited(&world, "big.txt", "old\n", "new\n").ends(1);
    ran.warns("its disk is full").warns("side effects: none");
    assert!(world.read("big.txt") == format!("old\n{rest}"), "it is the old file, whole");
    let names: Vec<_> =
        fs::read_dir(&world.workspace).expect("a folder").map(|e| e.expect("one").file_name()).collect();
    assert_eq!(names.len(), 2, "nothing half is left: {names:?}");
    looks(&world);
    fs::remove_file(filler).expect("room");
    edited(&world, "big.txt", "old\n", "new\n").ends(0);
    assert!(world.read("big.txt") == format!("new\n{rest}"));
    looks(&world);
}

#[test]
fn f07_one_full_disk_for_data_and_workspace() {
    if !inside("f07_one_full_disk_for_data_and_workspace") {
        return;
    }
    let mut world = World::new();
    let both = world.workspace.join("disk");
    disk(&both, 96);
    (world.home, world.workspace) = (both.join("home"), both.join("work"));
    let rest = lines(100_000);
    world.write("big.txt", &format!("old\n{rest}"));
    read(&world, "big.txt").ends(0);
    let mut codes = std::collections::BTreeSet::new();
    for left in [0, 2 << 20, 5 << 20, 8 << 20, 16 << 20] {
        let filler = fill(&both, left);
        let ran = edited(&world, "big.txt", "old\n", "new\n");
        assert!(ran.code == 0 || ran.err.to_lowercase().contains("space"), "{left}: the person is told: {}", ran.err);
        let found = world.read("big.txt");
        let whole = [format!("old\n{rest}"), format!("new\n{rest}")];
        assert!(whole.contains(&found), "{left}: it is whole, old or new");
        // Where the record says that nothing happened, nothing did.
        match ran.code {
            0 => assert!(found == whole[1], "{left}: {}", ran.out),
            1 if ran.err.contains("side effects: occurred") => assert!(found == whole[1], "{left}: {}", ran.err),
            _ => assert!(found == whole[0], "{left}: {}", ran.err),
        }
        codes.insert(ran.code);
        looks(&world);
        fs::remove_file(filler).expect("room");
        world.write("big.txt", &whole[0]);
        read(&world, "big.txt").ends(0);
    }
    assert_eq!(codes, [0, 1, 5].into(), "refused, begun without room to end, and done");
    looks(&world);
}

#[test]
fn f07_a_limit_of_file_sizes_fails_the_write_and_not_the_process() {
    let rest = lines(300_000);
    let world = World::with_file("big.txt", &format!("old\n{rest}"));
    read(&world, "big.txt").ends(0);
    let limited = |blocks: u64| -> Ran {
        let plain = world.command(&["call", "edit", &edit("big.txt", "old\n", "new\n"), "--approvals", "allow"]);
        let mut command = Command::new("sh");
        // In blocks of 512 bytes, and with the usual meaning of the signal.
        command.args(["-c", "ulimit -f \"$1\"; shift; exec \"$@\"", "sh", &blocks.to_string()]);
        command.arg(plain.get_program()).args(plain.get_args()).current_dir(&world.workspace).env_clear();
        command.envs(plain.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))));
        command.env("PATH", "/usr/bin:/bin").output().expect("sh runs").into()
    };
    // Neither the new file nor its evidence fits, but the log does.
    let ran = limited(6 << 11);
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("file too large"), "{}", ran.err);
    assert!(world.read("big.txt") == format!("old\n{rest}"), "it is the old file, whole");
    // Not even the log fits.
    limited(8).ends(5).warns("read_only_disk_full");
    assert!(world.read("big.txt") == format!("old\n{rest}"), "it is the old file, whole");
    looks(&world);
    edited(&world, "big.txt", "old\n", "new\n").ends(0);
    looks(&world);
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    text: String,
}

const SESSION: SessionId = SessionId::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0001);

/// One runtime as an embedder has it. Its tool writes a file, and fills the disk of the store while it runs if told to.
fn embedder(world: &World) -> (Runtime, Arc<SqliteStore>) {
    let (target, home) = (world.workspace.join("file"), world.home.clone());
    let tool = Tool::builder::<Write, String>("Writes a file.")
        .semantics(Semantics { default_policy: DefaultPolicy::Allow, ..Semantics::mutating() })
        .plan_access(|_, _| {
            let resource = Resource::path("/workspace/file", "file");
            vec![AccessRequest::new(Action::new("put"), resource, [Risk::Write].into())]
        })
        .execute(move |input, context| {
            let (target, home) = (target.clone(), home.clone());
            async move {
                if input.text.starts_with("fill") {
                    fill(&home, 0);
                }
                let failed = |e: std::io::Error| ToolFailure::new("io_error", e.to_string());
                fs::write(&target, &input.text).map_err(failed)?;
                let kind = "written".to_owned();
                context.did(SideEffect { kind, target: "file".into(), before: None, after: None, reversible: false });
                Ok("written".to_owned())
            }
        })
        .build()
        .expect("a sound tool");
    let store = common::store(world);
    let artifacts = LocalArtifacts::open(&world.home.join("artifacts"), Arc::new(SystemIds::new())).expect("opens");
    let builder = Runtime::builder().store(store.clone(), Arc::new(artifacts)).tool("put", tool).expect("a name");
    (builder.called("an embedder").build().expect("builds"), store)
}

async fn put(runtime: &Runtime, text: &str) -> Result<(), RuntimeError> {
    let input = serde_json::json!({"text": text}).to_string();
    match runtime.call(SESSION, "put", &input).await? {
        CallOutcome::Observed(seen) => {
            assert!(seen.ok(), "{:?}", seen.session_view());
            Ok(())
        }
        other => panic!("{other:?}"),
    }
}

fn is_full(outcome: &Result<(), RuntimeError>) -> bool {
    use portcullis_pipeline::Halt;
    matches!(
        outcome,
        Err(RuntimeError::Store(StoreError::DiskFull { .. })
            | RuntimeError::Halted(Halt::PersistFailed(StoreError::DiskFull { .. })))
    )
}

/// Puts a text until there is no room for it; how often that went well.
async fn puts_until_full(runtime: &Runtime, text: &str) -> usize {
    for done in 0..1_000 {
        let put = put(runtime, text).await;
        if put.is_err() {
            assert!(is_full(&put), "{put:?}");
            return done;
        }
    }
    panic!("it never fills up")
}

/// How many calls ended well; the log holds and every call has one observation.
async fn told(store: &SqliteStore) -> usize {
    deliver_outbox(store).await.expect("delivered");
    let audit = verify_tenant(store, LOCAL_TENANT, None, None).await.expect("verified");
    assert!(audit.holds(), "{:?}", audit.faults);
    let key = SessionKey { tenant: LOCAL_TENANT, session: SESSION };
    let events = store.read(key, 0, usize::MAX >> 1).await.expect("read");
    let intents = events.iter().filter(|event| matches!(event.body(), Body::IntentProposed(_))).count();
    let seen: Vec<bool> = events
        .iter()
        .filter_map(|event| if let Body::Observed(seen) = event.body() { Some(seen.ok) } else { None })
        .collect();
    assert_eq!(intents, seen.len(), "every intent has one observation");
    seen.into_iter().filter(|ok| *ok).count()
}

#[test]
fn f07_what_ran_while_the_disk_filled_is_recorded_in_the_room_of_the_ballast() {
    if !inside("f07_what_ran_while_the_disk_filled_is_recorded_in_the_room_of_the_ballast") {
        return;
    }
    let world = on_a_small_disk("a.txt", "one\n");
    tokio::runtime::Runtime::new().expect("threads").block_on(async {
        let (runtime, store) = embedder(&world);
        runtime.create_session_as(SESSION, "embedder").await.expect("a session");
        assert!(store.has_ballast());
        put(&runtime, "fill the disk").await.expect("it ran, and it is told");
        assert_eq!(world.read("file"), "fill the disk");
        assert!(!store.has_ballast(), "it was given away for that");
        // Its room is for ends alone: nothing new begins in it, by this process or another.
        for _ in 0..3 {
            let refused = put(&runtime, "more").await;
            assert!(is_full(&refused), "{refused:?}");
        }
        read(&world, "a.txt").ends(5).warns("read_only_disk_full");
        assert_eq!(world.read("file"), "fill the disk");
        fs::remove_file(world.home.join("filler")).expect("room");
        put(&runtime, "after").await.expect("without a restart");
        assert_eq!(told(&store).await, 2);
        drop((runtime, store));
        assert!(common::store(&world).has_ballast(), "it is made again when there is room");
    });
}

#[test]
fn f07_load_until_the_disk_is_full_then_room_again_without_a_restart() {
    if !inside("f07_load_until_the_disk_is_full_then_room_again_without_a_restart") {
        return;
    }
    let world = World::new();
    disk(&world.home, 32);
    tokio::runtime::Runtime::new().expect("threads").block_on(async {
        let (runtime, store) = embedder(&world);
        runtime.create_session_as(SESSION, "embedder").await.expect("a session");
        let filler = fill(&world.home, 6 << 20);
        let text = noise(200_000);
        let mut done = 0;
        for round in 1..=2 {
            done += puts_until_full(&runtime, &text).await;
            assert!(done >= round, "some went through");
            assert!(is_full(&put(&runtime, &text).await));
            // Reading goes on, and what was acknowledged is there.
            let key = SessionKey { tenant: LOCAL_TENANT, session: SESSION };
            assert!(store.read(key, 0, 50).await.expect("reads work").len() > 5);
            let cut = fs::File::options().write(true).open(&filler).expect("the filler");
            cut.set_len(cut.metadata().expect("its size").len() - (8 << 20)).expect("room");
        }
        put(&runtime, "after").await.expect("without a restart");
        assert!(told(&store).await > done, "all acknowledged are told, and the last");
    });
}

#[test]
fn f07_f08_a_database_at_its_size_limit_is_read_only_until_the_limit_is_raised() {
    // A process of its own, for its limit. A write that crosses it is cut short first.
    if !inside("f07_f08_a_database_at_its_size_limit_is_read_only_until_the_limit_is_raised") {
        return;
    }
    let world = World::new();
    tokio::runtime::Runtime::new().expect("threads").block_on(async {
        let kind = tokio::signal::unix::SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        let _caught = tokio::signal::unix::signal(kind).expect("caught");
        let (runtime, store) = embedder(&world);
        runtime.create_session_as(SESSION, "embedder").await.expect("a session");
        setrlimit(Limit::Fsize, Rlimit { current: Some(6 << 20), maximum: None }).expect("a limit");
        let text = noise(200_000);
        let done = puts_until_full(&runtime, &text).await;
        for _ in 0..3 {
            assert!(is_full(&put(&runtime, &text).await), "never closed for good");
        }
        let key = SessionKey { tenant: LOCAL_TENANT, session: SESSION };
        assert!(store.read(key, 0, 50).await.expect("reads work").len() > 5);
        setrlimit(Limit::Fsize, Rlimit { current: None, maximum: None }).expect("no limit");
        put(&runtime, "after").await.expect("without a restart");
        assert!(done > 5 && told(&store).await > done, "all acknowledged are told, and the last");
    });
}
