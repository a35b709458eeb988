//! Files without an owner go after a day, and nothing else does (F14).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use portcullis_base::{
    ArtifactId, ArtifactKind, ArtifactRef, Clock as _, Digest, SystemClock, SystemIds, TenantId, Timestamp, Trust,
};
use portcullis_event::facts::ArtifactStored;
use portcullis_store::{
    ArtifactRow, Artifacts as _, LocalArtifacts, Log as _, SweepArtifacts as _, grace, unreferenced,
};
use portcullis_store_testkit::World;

fn open(root: &Path) -> Arc<LocalArtifacts> {
    Arc::new(LocalArtifacts::open(root, Arc::new(SystemIds::new())).expect("artifacts"))
}

fn put(artifacts: &LocalArtifacts, tenant: TenantId, bytes: &[u8]) -> Digest {
    let mut writer = artifacts.begin(tenant).expect("a place to write to");
    writer.write(bytes).expect("written");
    writer.finish().expect("kept").sha256
}

fn place(root: &Path, tenant: TenantId, sha256: Digest) -> PathBuf {
    let hex = sha256.to_string();
    root.join(tenant.to_string()).join(&hex[..2]).join(&hex[2..4]).join(hex)
}

fn age(path: &Path, by: Duration) {
    let file = File::options().write(true).open(path).expect("a file");
    file.set_modified(SystemTime::now() - by).expect("an older time");
}

const DAYS: Duration = Duration::from_secs(3 * 86_400);

fn now() -> Timestamp {
    SystemClock::new().now()
}

#[tokio::test]
async fn f14_only_old_files_that_nothing_names_go_largest_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let artifacts = open(folder.path());
    let world = World::new(1);
    let store = world.memory();
    let key = world.session(&store).await.expect("a session");
    let lease = world.claim(&store, key, 1).await.expect("a lease");
    let all: Vec<Digest> = (1..=5u8).map(|n| put(&artifacts, key.tenant, &vec![n; usize::from(n) * 70_000])).collect();
    let files: Vec<PathBuf> = all.iter().map(|sha256| place(folder.path(), key.tenant, *sha256)).collect();
    let artifact = |n: usize| ArtifactRef {
        id: ArtifactId::from_u128(n as u128 + 1),
        kind: ArtifactKind::CommandOutput,
        mime: "text/plain".to_owned(),
        bytes: 70_000,
        lines: None,
        sha256: all[n],
        complete: true,
        trust: Trust::ToolOutputUntrusted,
        expires_at: None,
    };
    // 0 is named by an event alone, 1 by a row alone; 2 and 3 by nothing; 4 by nothing, but it is young.
    let stored = world.draft(&ArtifactStored { artifact: artifact(0), intent_id: None });
    let mut commit = world.work(key, &lease, vec![stored]);
    commit.artifacts.push(ArtifactRow::new(key.session, artifact(1)));
    store.commit(commit).await.expect("an append");
    files[..4].iter().for_each(|file| age(file, DAYS));
    // A crash in the middle of a put, one a minute ago, and a put that is still under way.
    let tmp = folder.path().join("tmp");
    fs::write(tmp.join("crashed"), [0; 10]).expect("a leftover");
    age(&tmp.join("crashed"), DAYS);
    fs::write(tmp.join("a-minute-ago"), [0; 10]).expect("a leftover");
    let mut slow = artifacts.begin(key.tenant).expect("a place to write to");
    slow.write(b"a long silence").expect("written");
    for entry in fs::read_dir(&tmp).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_none_or(|name| name != "a-minute-ago") {
            age(&path, DAYS);
        }
    }

    let found = unreferenced(&store, artifacts.clone(), key.tenant, now()).await.expect("a list");
    let contents: Vec<_> = found.iter().filter_map(|leftover| leftover.sha256).collect();
    assert_eq!(contents, [all[3], all[2]], "largest first");
    let mut gone = 0;
    for leftover in &found {
        gone += usize::from(artifacts.sweep(leftover, grace(now())).expect("swept"));
    }
    assert_eq!(gone, 3, "two contents and the crashed one; what is being written is held");
    let there: Vec<bool> = files.iter().map(|file| file.exists()).collect();
    assert_eq!(there, [true, true, false, false, true]);
    assert!(tmp.join("a-minute-ago").exists() && !tmp.join("crashed").exists());
    let kept = slow.finish().expect("it ends as if nothing had been");
    assert_eq!(kept.sha256, Digest::of(b"a long silence"));
    let found = unreferenced(&store, artifacts.clone(), key.tenant, now()).await.expect("a list");
    assert_eq!(found, [], "just finished is young, however long it took to write");
}

#[test]
fn f14_a_put_between_the_look_and_the_sweep_keeps_its_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (artifacts, tenant) = (open(folder.path()), TenantId::from_u128(1));
    let sha256 = put(&artifacts, tenant, b"the same bytes");
    age(&place(folder.path(), tenant, sha256), DAYS);
    let found = artifacts.older_than(tenant, grace(now())).expect("a list");
    assert_eq!(found.len(), 1);
    put(&artifacts, tenant, b"the same bytes");
    assert!(!artifacts.sweep(&found[0], grace(now())).expect("looked at again"), "someone put it meanwhile");
    assert!(artifacts.open(tenant, sha256).is_ok());
}

#[test]
fn f14_puts_racing_sweeps_are_always_found_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let (artifacts, tenant) = (open(folder.path()), TenantId::from_u128(1));
    let sha256 = put(&artifacts, tenant, b"raced for");
    for _ in 0..100 {
        age(&place(folder.path(), tenant, sha256), DAYS);
        let found = artifacts.older_than(tenant, grace(now())).expect("a list");
        std::thread::scope(|scope| {
            scope.spawn(|| put(&artifacts, tenant, b"raced for"));
            scope.spawn(|| artifacts.sweep(&found[0], grace(now())).expect("a sweep"));
        });
        assert!(artifacts.open(tenant, sha256).is_ok(), "whoever put it finds it");
    }
}

#[tokio::test]
async fn f14_a_content_that_is_about_to_be_named_again_is_not_swept() {
    let folder = tempfile::tempdir().expect("a folder");
    let artifacts = open(folder.path());
    let tenant = TenantId::from_u128(1);
    let sha256 = put(&artifacts, tenant, &[7; 100_000]);
    let file = place(folder.path(), tenant, sha256);
    age(&file, DAYS);
    let found = artifacts.file_of(tenant, sha256).expect("read").expect("it is there");
    assert_eq!((found.sha256, found.bytes), (Some(sha256), 100_000));
    assert!(artifacts.renew(tenant, sha256).expect("renewed"));
    assert!(!artifacts.sweep(&found, grace(now())).expect("looked at"));
    assert!(file.exists());
    assert!(!artifacts.renew(tenant, Digest::of(b"never")).expect("no error"));
    assert_eq!(artifacts.file_of(tenant, Digest::of(b"never")).expect("no error"), None);
}
