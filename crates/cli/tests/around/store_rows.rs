//! Rows that are served or obeyed, changed behind the program's back: `audit verify` names each, and none is obeyed.

use rusqlite::Connection;

use crate::common::World;

fn sql(world: &World, text: &str) -> usize {
    let conn = Connection::open(world.database()).expect("it opens");
    conn.execute(text, []).unwrap_or_else(|error| panic!("{text}: {error}"))
}

const A: &str = r#"{"file_path":"a.txt","content":"hello\n"}"#;
const B: &str = r#"{"file_path":"b.txt","content":"hello\n"}"#;

/// A world with artifacts that can be read and a grant; the id of an artifact.
fn lived_in() -> (World, String) {
    let world = World::new();
    let seq = r#"{"command":"seq 1 30000"}"#;
    world.run(&["call", "shell_run", seq, "--approvals", "allow"]).ends(0);
    world.run(&["call", "shell_run", r#"{"command":"seq 1 40000"}"#, "--approvals", "allow"]).ends(0);
    let ask = world.run(&["call", "write", A]).ends(3).id("ask_");
    world.run(&["approvals", "allow", &ask, "--save"]).ends(0);
    let session = world.run(&["sessions", "--json"]).ends(0).id("sesn_");
    let artifact = world.run(&["sessions", "events", &session, "--json"]).ends(0).id("art_");
    (world, artifact)
}

#[test]
fn rows_that_nobody_touched_verify_and_serve() {
    let (world, artifact) = lived_in();
    world.run(&["audit", "verify"]).ends(0);
    world.run(&["call", "artifact_read", &format!(r#"{{"id":"{artifact}"}}"#)]).ends(0);
}

#[test]
fn a_row_that_is_not_what_its_events_say_is_named_by_the_audit() {
    // Each leaves the chain, the checkpoints and the ledger as they were.
    let attacks = [
        (
            "an artifact names the content of another",
            "UPDATE artifacts SET sha256 = (SELECT sha256 FROM artifacts ORDER BY artifact_id DESC LIMIT 1)",
        ),
        (
            "an artifact's row is deleted",
            "DELETE FROM artifacts WHERE artifact_id = (SELECT artifact_id FROM artifacts LIMIT 1)",
        ),
        ("all rows of artifacts are deleted", "DELETE FROM artifacts"),
        ("an artifact is trusted", "UPDATE artifacts SET trust = 'operator_policy'"),
        ("an artifact is of another size", "UPDATE artifacts SET bytes = bytes + 1"),
        ("an artifact is of another kind of file", "UPDATE artifacts SET mime = 'application/x-sh'"),
        ("an artifact is of another session", "UPDATE artifacts SET session = zeroblob(16)"),
        ("an artifact counts as whole", "UPDATE artifacts SET complete = 1 - complete"),
        (
            "a grant allows more",
            "UPDATE records SET body = replace(body, '/workspace/a.txt', '/workspace/**') WHERE kind = 'grant'",
        ),
        (
            "a grant holds everywhere",
            "UPDATE records SET body = json_set(body, '$.scope', json('{}')) WHERE kind = 'grant'",
        ),
        (
            "a grant never ends",
            "UPDATE records SET body = json_set(body, '$.expires_at', 9000000000000000) WHERE kind = 'grant'",
        ),
        (
            "a grant counts as revoked",
            "UPDATE records SET body = json_set(body, '$.revoked', json('{\"by\":\"x\",\"at\":1}')) WHERE kind = 'grant'",
        ),
        (
            "a grant was given elsewhere",
            "UPDATE records SET id = 'grant_01m00000000000000000000000' WHERE kind = 'grant'",
        ),
        ("a hash stands beside a payload", "UPDATE events SET payload_hash = zeroblob(32) WHERE seq = 2"),
        ("an intent has not started", "UPDATE intents SET state = 'admitted'"),
        ("an ask was answered otherwise", "UPDATE asks SET reply = 'deny'"),
        ("an ask is about something else", "UPDATE asks SET facts = '{}'"),
        ("an ask waits again", "UPDATE asks SET state = 'pending'"),
        ("an artifact is neither whole nor cut", "UPDATE artifacts SET complete = 7"),
        ("a policy took an artifact", "UPDATE artifacts SET tombstone = 1"),
        ("a policy took an artifact long ago", "UPDATE artifacts SET tombstone = 1, freed = 1"),
        ("an artifact does not count", "UPDATE artifacts SET freed = 1"),
        ("a session works elsewhere", "UPDATE sessions SET workspace = '/other'"),
        ("a session has another name", "UPDATE sessions SET title = 'other'"),
        ("a session has other tags", "UPDATE sessions SET tags = '[\"x\"]'"),
        ("a session was made at another time", "UPDATE sessions SET created_at = created_at + 1"),
        ("a session is another one's child", "UPDATE sessions SET root = zeroblob(16)"),
        ("a session has a parent", "UPDATE sessions SET parent = session"),
        ("a session was made under other rules", "UPDATE sessions SET config_hash = zeroblob(32)"),
        ("a session is not listed", "DELETE FROM sessions"),
        ("a small content is another one", "UPDATE blobs SET bytes = x'00'"),
        ("a menu is gone", "DELETE FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM artifacts)"),
        ("a menu is another one", "UPDATE blobs SET bytes = x'00' WHERE sha256 NOT IN (SELECT sha256 FROM artifacts)"),
        ("a session is idle by its head", "UPDATE session_heads SET blocked_n = blocked_n + 1"),
        ("a session is never due", "UPDATE session_heads SET next_due_at = coalesce(next_due_at, 0) + 1"),
        ("a session has work", "UPDATE session_heads SET work_due_at = coalesce(work_due_at, 0) + 1"),
        ("a session is more urgent", "UPDATE session_heads SET priority = priority + 1"),
        ("a session wakes", "UPDATE session_heads SET wake_due_at = 1, wake_priority = 1"),
        ("half a wake", "UPDATE session_heads SET wake_due_at = 1"),
        ("a wake is more urgent", "UPDATE session_heads SET wake_priority = 1"),
        ("the head forgets a checkpoint", "UPDATE session_heads SET checkpoint_seq = checkpoint_seq + 1"),
    ];
    let (world, _) = lived_in();
    let whole: Vec<_> = ["", "-wal"].iter().map(|suffix| format!("{}{suffix}", world.database().display())).collect();
    let kept: Vec<_> = whole.iter().map(|path| std::fs::read(path).unwrap_or_default()).collect();
    for (what, attack) in attacks {
        for (path, bytes) in whole.iter().zip(&kept) {
            std::fs::write(path, bytes).expect("written");
        }
        let _ = std::fs::remove_file(format!("{}-shm", world.database().display()));
        assert!(sql(&world, attack) > 0, "{what}: it changes something");
        let ran = world.run(&["audit", "verify"]);
        assert!(matches!(ran.code, 1 | 5) && !ran.err.is_empty(), "{what}: {} {}", ran.out, ran.err);
    }
}

#[test]
fn a_session_goes_on_only_where_its_log_says_that_it_works() {
    let world = World::new();
    let script = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(script.path(), "[[turn]]\ntext = \"hello\"\n[[turn]]\ntext = \"again\"\n").expect("written");
    let model = format!("scripted:{}", script.path().display());
    let began = world.run(&["run", "go", "--model", &model]).ends(0);
    world.run(&["run", "--continue", "on", "--model", &model]).ends(0).says("again");

    let elsewhere = tempfile::tempdir().expect("a folder");
    let elsewhere = elsewhere.path().canonicalize().expect("it exists").display().to_string();
    assert_eq!(sql(&world, &format!("UPDATE sessions SET workspace = '{elsewhere}'")), 1, "the control: one session");
    let ran = world.run(&["run", "--continue", "on", "--model", &model, "--workspace", &elsewhere]).ends(1);
    ran.warns("by its log in").warns("audit verify");
    let session = began.id("sesn_");
    let shown = world.run(&["sessions", "show", &session]).ends(0);
    assert!(!shown.out.contains(&elsewhere), "{}", shown.out);
    world.run(&["audit", "verify", &session]).ends(1).says("workspace: the log says");
}

#[test]
fn an_artifact_whose_row_was_swapped_is_not_served() {
    let (world, artifact) = lived_in();
    // Each takes the content of the other: both contents are there, and have the hashes that their rows name.
    sql(
        &world,
        "UPDATE artifacts SET sha256 = (SELECT sha256 FROM artifacts b WHERE b.sha256 <> artifacts.sha256 LIMIT 1)",
    );
    let ran = world.run(&["call", "artifact_read", &format!(r#"{{"id":"{artifact}"}}"#)]);
    assert!(ran.code == 1 && !ran.out.contains("30000"), "{} {}", ran.out, ran.err);
}

#[test]
fn a_grant_that_was_widened_answers_nothing() {
    let (world, _) = lived_in();
    world.run(&["call", "write", A]).ends(0);
    let widened =
        "UPDATE records SET body = replace(body, '/workspace/a.txt', '/workspace/b.txt') WHERE kind = 'grant'";
    assert_eq!(sql(&world, widened), 1, "the control: the grant is there, and has just answered");
    for input in [A, B] {
        world.run(&["call", "write", input]).ends(3);
    }
}
