//! Retention as a person sets it: nothing goes without a policy; by one, tombstones first and bytes a day later.

use crate::common;

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use common::World;
use serde_json::Value;

const DAY: Duration = Duration::from_secs(86_400);

/// Two edits of a large file: each keeps a file before, a file after and a small diff.
fn edited_twice(world: &World) {
    world.write("big.txt", &format!("one\n{}", "a line of text that is long enough\n".repeat(40_000)));
    for (old, new) in [("one", "two"), ("two", "three")] {
        world.run(&["call", "read", r#"{"file_path":"big.txt","line_count":3}"#]).ends(0);
        world.run(&["call", "edit", &common::edit("big.txt", old, new), "--approvals", "allow"]).ends(0);
    }
}

fn rows(world: &World, sql: &str) -> i64 {
    let raw = rusqlite::Connection::open(world.database()).expect("the file opens");
    raw.query_row(sql, [], |row| row.get(0)).expect("a number")
}

fn ids(report: &Value) -> Vec<String> {
    let found = report["expired"].as_array().expect("a list");
    found.iter().map(|one| one["artifact_id"].as_str().expect("an id").to_owned()).collect()
}

/// As if the tombstones and files were older.
fn two_days_pass(world: &World) {
    let raw = rusqlite::Connection::open(world.database()).expect("the file opens");
    raw.execute("UPDATE artifacts SET tombstone = tombstone - 172800000000", []).expect("older");
    for file in world.artifact_files() {
        let file = File::options().write(true).open(file).expect("a file");
        file.set_modified(SystemTime::now() - 2 * DAY).expect("an older time");
    }
}

#[test]
fn f14_without_a_policy_nothing_goes_and_with_one_tombstones_come_first() {
    let world = World::new();
    edited_twice(&world);
    let kept = world.artifact_files();
    assert_eq!(kept.len(), 3, "one, two, three");
    let all = rows(&world, "SELECT count(*) FROM artifacts");
    two_days_pass(&world);
    // What is large is shown, and stays.
    world.run(&["gc", "--apply"]).ends(0).says("0 files, 0 bytes freed").says("large, and kept");
    assert_eq!(world.artifact_files().len(), 3);

    // The two newest rows stay, but one of the others is pinned.
    world.configure("[retention]\nartifact_count = 2\n");
    let pinned = "UPDATE artifacts SET pinned = 1 WHERE artifact_id = (SELECT min(artifact_id) FROM artifacts)";
    rusqlite::Connection::open(world.database()).expect("opens").execute(pinned, []).expect("pinned");
    let shown = world.run(&["gc", "--dry-run", "--json"]).ends(0).json();
    assert_eq!(ids(&shown).len() as i64, all - 3, "{shown}");
    let sizes: Vec<u64> =
        shown["expired"].as_array().expect("a list").iter().map(|e| e["bytes"].as_u64().expect("n")).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "largest first: {sizes:?}");
    assert_eq!(
        rows(&world, "SELECT count(*) FROM artifacts WHERE tombstone IS NOT NULL"),
        0,
        "a dry run changes nothing"
    );
    world.run(&["gc", "--dry-run"]).ends(0).says("would expire").says("over artifact_count");

    let applied = world.run(&["gc", "--apply", "--json"]).ends(0).json();
    assert_eq!(ids(&applied), ids(&shown));
    assert_eq!(applied["bytes"], 0, "no byte goes at once");
    assert_eq!(world.artifact_files().len(), 3);
    world.run(&["gc", "--apply"]).ends(0).says("0 files, 0 bytes freed");

    // The tool says what it was; nothing else changes.
    let gone = &ids(&shown)[0];
    let read = world.run(&["call", "artifact_read", &format!(r#"{{"id":"{gone}"}}"#), "--json"]).ends(1).json();
    assert_eq!((&read["code"], &read["tool_code"]), (&"tool_failure".into(), &"artifact_expired".into()), "{read}");
    let said = read.to_string();
    assert!(
        said.contains(shown["expired"][0]["sha256"].as_str().expect("a hash")) && said.contains(&sizes[0].to_string())
    );
    let grep = format!(r#"{{"id":"{gone}","pattern":"x"}}"#);
    world.run(&["call", "artifact_grep", &grep]).ends(1).warns("artifact_expired");

    two_days_pass(&world);
    let freed = world.run(&["gc", "--apply", "--json"]).ends(0).json();
    assert!(freed["bytes"].as_u64().expect("a number") > 1_000_000, "{freed}");
    // The file before the first edit is pinned; the newest is kept; the one between is shared by two tombstones.
    let held = rows(&world, "SELECT count(DISTINCT sha256) FROM artifacts WHERE freed = 0 AND bytes > 65536");
    assert_eq!(world.artifact_files().len() as i64, held);
    assert!(held < 3);
    world.run(&["gc", "--apply"]).ends(0).says("0 files, 0 bytes freed");
    world.run(&["call", "artifact_read", &format!(r#"{{"id":"{gone}"}}"#)]).ends(1).warns("artifact_expired");
    world.run(&["audit", "verify"]).ends(0).says("expired by the retention policy");
    world.run(&["replay", &session(&world), "--mode", "rebuild"]).ends(0);
    world.run(&["replay", &session(&world)]).ends(0);
}

fn session(world: &World) -> String {
    world.run(&["sessions", "--json"]).ends(0).json()["sessions"][0]["session_id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_export_names_what_expired_and_an_import_takes_it_in_as_tombstones() {
    let world = World::new();
    edited_twice(&world);
    world.configure("[retention]\nartifact_bytes = \"100kB\"\n");
    world.run(&["gc", "--apply"]).ends(0).says("expired");
    two_days_pass(&world);
    world.run(&["gc", "--apply"]).ends(0);
    let buried = rows(&world, "SELECT count(*) FROM artifacts WHERE tombstone IS NOT NULL");
    assert!(buried > 0 && rows(&world, "SELECT count(*) FROM artifacts WHERE freed = 1") > 0);
    let out = world.workspace.join("log.ndjson").display().to_string();
    world.run(&["sessions", "export", &session(&world), "--with-artifacts", "--out", &out]).ends(0);
    world.run(&["audit", "verify", "--export", &out]).ends(0);
    let other = World::new();
    other.run(&["sessions", "import", &out]).ends(0);
    assert_eq!(rows(&other, "SELECT count(*) FROM artifacts WHERE tombstone IS NOT NULL"), buried);
    other.run(&["audit", "verify"]).ends(0).says("expired by the retention policy");
}

#[test]
fn idle_sessions_expire_and_the_quota_counts_what_is_held() {
    let world = World::new();
    edited_twice(&world);
    world.configure("[retention]\nartifact_idle = \"30d\"\n");
    world.run(&["gc", "--dry-run"]).ends(0).says("0 files, 0 bytes can be freed");
    let older = "UPDATE session_heads SET updated_at = updated_at - 40 * 86400000000";
    rusqlite::Connection::open(world.database()).expect("opens").execute(older, []).expect("older");
    world.run(&["gc", "--apply"]).ends(0).says("expired");
    assert_eq!(rows(&world, "SELECT count(*) FROM artifacts WHERE tombstone IS NULL"), 0);
    // A quota of a little: over it as long as the bytes are there, and not any more when they went.
    world.configure("[artifacts]\nquota = \"1MB\"\n");
    world.write("small.txt", "one\n");
    world.run(&["call", "read", r#"{"file_path":"small.txt"}"#]).ends(0);
    let edit = common::edit("small.txt", "one", "two");
    world.run(&["call", "edit", &edit, "--approvals", "allow"]).ends(1).warns("gc --dry-run");
    two_days_pass(&world);
    world.run(&["gc", "--apply"]).ends(0);
    world.run(&["call", "edit", &edit, "--approvals", "allow"]).ends(0);
    world.configure("[retention]\nartifact_count = \"many\"\n");
    world.run(&["gc", "--dry-run"]).ends(2).warns("retention.artifact_count");
}

/// The first artifact of a size, as the store has it: its id and where its bytes are.
fn one(world: &World, large: bool) -> (String, String) {
    let raw = rusqlite::Connection::open(world.database()).expect("the file opens");
    let sql = format!("SELECT artifact_id, lower(hex(sha256)) FROM artifacts WHERE (bytes > 65536) = {large} LIMIT 1");
    let (id, sha256): (Vec<u8>, String) = raw.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("one");
    let id = u128::from_be_bytes(id.try_into().expect("16 bytes"));
    (portcullis_base::ArtifactId::from_u128(id).to_string(), sha256)
}

#[test]
fn f14_lost_and_changed_bytes_are_named_and_never_served_as_empty() {
    // Each fault in a store of its own: a file that is gone or changed, a row that is gone or changed.
    for (large, gone) in [(true, true), (true, false), (false, true), (false, false)] {
        let world = World::new();
        edited_twice(&world);
        let (id, sha256) = one(&world, large);
        let input = format!(r#"{{"id":"{id}"}}"#);
        world.run(&["call", "artifact_read", &input]).ends(0);
        if large {
            let kept = world.artifact_files();
            let file = kept.into_iter().find(|path| path.ends_with(&sha256)).expect("its file");
            let mut bytes = fs::read(&file).expect("read");
            bytes[70_000] ^= 1;
            if gone { fs::remove_file(&file).expect("gone") } else { fs::write(&file, bytes).expect("changed") }
        } else {
            let raw = rusqlite::Connection::open(world.database()).expect("the file opens");
            let change = if gone { "DELETE FROM blobs" } else { "UPDATE blobs SET bytes = X'00' || substr(bytes, 2)" };
            let changed = raw.execute(&format!("{change} WHERE lower(hex(sha256)) = ?1"), [&sha256]).expect("done");
            assert_eq!(changed, 1);
        }
        let read = world.run(&["call", "artifact_read", &input, "--json"]).ends(1).json();
        assert_eq!((&read["code"], &read["tool_code"]), (&"tool_failure".into(), &"artifact_lost".into()), "{read}");
        let grep = format!(r#"{{"id":"{id}","pattern":"x"}}"#);
        world.run(&["call", "artifact_grep", &grep]).ends(1).warns("artifact_lost");
        world.run(&["audit", "verify"]).ends(1).says(&id);
        // What is lost is no reason to lose more: nothing of it can be freed, and the rest goes on.
        world.run(&["gc", "--apply"]).ends(0).says("0 files");
        world.run(&["call", "read", r#"{"file_path":"big.txt","line_count":3}"#]).ends(0);
    }
}
