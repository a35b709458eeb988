//! Large artifacts in a folder: what is served is what was kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_base::{
    ArtifactId, ArtifactKind, ArtifactRef, Clock as _, Digest, SystemClock, SystemIds, TenantId, Trust,
};
use portcullis_event::facts::ArtifactStored;
use portcullis_store::{
    ArtifactRow, Artifacts as _, Blob, LocalArtifacts, Log as _, NamedArtifacts, ORPHAN_GRACE, SessionKey,
    SweepArtifacts as _, grace, unreferenced, verify_artifacts,
};
use portcullis_store_testkit::World;

const TENANT: TenantId = TenantId::from_u128(1);

/// Keeps `bytes` and says where they are.
fn kept(artifacts: &LocalArtifacts, root: &Path, bytes: &[u8]) -> (Digest, PathBuf) {
    let mut writer = artifacts.begin(TENANT).expect("a place to write to");
    writer.write(bytes).expect("written");
    let sha256 = writer.finish().expect("kept").sha256;
    (sha256, place(root, TENANT, sha256))
}

#[tokio::test]
async fn s13_the_audit_names_artifacts_whose_bytes_were_changed_or_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let artifacts = Arc::new(LocalArtifacts::open(folder.path(), Arc::new(SystemIds::new())).expect("artifacts"));
    let world = World::new(1);
    let store = world.memory();
    let key = world.session(&store).await.expect("a session");
    let lease = world.claim(&store, key, 1).await.expect("a lease");
    let mut commit = world.work(key, &lease, world.inert_call("x"));
    let mut files = Vec::new();
    for n in 1..=3u8 {
        let mut writer = artifacts.begin(world.tenant).expect("a place to write to");
        writer.write(&vec![n; 100_000]).expect("written");
        let sha256 = writer.finish().expect("kept").sha256;
        files.push(place(folder.path(), world.tenant, sha256));
        commit.artifacts.push(row(key, u128::from(n), sha256));
    }
    let small = Digest::of(b"small");
    commit.blobs.push(Blob { sha256: small, bytes: b"small".to_vec() });
    commit.artifacts.push(row(key, 4, small));
    let stored = |row: &ArtifactRow| world.draft(&ArtifactStored { artifact: row.artifact.clone(), intent_id: None });
    commit.events.extend(commit.artifacts.iter().map(stored).collect::<Vec<_>>());
    let mut named = NamedArtifacts::by_logs_of(world.tenant);
    let committed = store.commit(commit).await.expect("an append");
    committed.events.iter().for_each(|event| named.take_in(key.session, event));
    let audit =
        async || verify_artifacts(&store, artifacts.clone(), world.tenant, &named).await.expect("it can be read");
    assert_eq!(audit().await, []);
    fs::write(&files[1], b"other").expect("changed");
    fs::remove_file(&files[2]).expect("removed");
    let said: Vec<String> = audit().await.iter().map(ToString::to_string).collect();
    let fault = |n: u128, why: &str| format!("artifact {} of session {}: {why}", ArtifactId::from_u128(n), key.session);
    assert_eq!(said, [fault(2, "its bytes have another hash"), fault(3, "its bytes are gone")]);
}

fn row(key: SessionKey, id: u128, sha256: Digest) -> ArtifactRow {
    let artifact = ArtifactRef {
        id: ArtifactId::from_u128(id),
        kind: ArtifactKind::CommandOutput,
        mime: "text/plain".to_owned(),
        bytes: 1,
        lines: None,
        sha256,
        complete: true,
        trust: Trust::ToolOutputUntrusted,
        expires_at: None,
    };
    ArtifactRow::new(key.session, artifact)
}

fn place(root: &Path, tenant: TenantId, sha256: Digest) -> PathBuf {
    let hex = sha256.to_string();
    root.join(tenant.to_string()).join(&hex[..2]).join(&hex[2..4]).join(hex)
}

#[test]
fn s13_changed_bytes_of_a_large_artifact_are_never_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let artifacts = LocalArtifacts::open(folder.path(), Arc::new(SystemIds::new())).expect("artifacts");
    let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_be_bytes).collect();
    let (sha256, file) = kept(&artifacts, folder.path(), &content);
    let whole = artifacts.open(TENANT, sha256).expect("what was kept is served");
    assert!(whole.slice(0, whole.len()).expect("bytes") == content);
    let mut flipped = content.clone();
    flipped[700_000] ^= 1;
    let longer = [&content[..], b"!"].concat();
    for changed in [&flipped[..], &content[..content.len() - 1], &longer[..], b""] {
        fs::write(&file, changed).expect("changed");
        let refused = artifacts.open(TENANT, sha256).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::InvalidData), "{} bytes", changed.len());
    }
    fs::remove_file(&file).expect("removed");
    assert_eq!(artifacts.open(TENANT, sha256).err().map(|error| error.kind()), Some(ErrorKind::NotFound));
}

/// Not a test by itself: the body of a process that dies at one step of a `put`.
#[test]
fn child_that_dies_in_a_put() {
    let Ok(order) = std::env::var("PORTCULLIS_TEST_PUT") else { return };
    let (step, root) = order.split_once(' ').expect("two words");
    let artifacts = LocalArtifacts::open(Path::new(root), Arc::new(SystemIds::new())).expect("artifacts");
    let mut writer = artifacts.begin(TENANT).expect("a place to write to");
    let bytes = content();
    if step != "begun" {
        writer.write(&bytes[..70_000]).expect("written");
    }
    if step != "begun" && step != "half" {
        writer.write(&bytes[70_000..]).expect("written");
    }
    if step == "finished" {
        writer.finish().expect("kept");
    }
    std::process::abort();
}

fn content() -> Vec<u8> {
    (0..200_000u32).flat_map(u32::to_le_bytes).take(300_000).collect()
}

#[tokio::test]
async fn f14_a_process_that_dies_in_a_put_leaves_nothing_half_and_nothing_for_ever() {
    let sha256 = Digest::of(&content());
    let world = World::new(1);
    let store = world.memory();
    for step in ["begun", "half", "written", "finished"] {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let mut child = std::process::Command::new(std::env::current_exe().expect("this test"));
        child.args(["--exact", "artifacts::child_that_dies_in_a_put"]).stdout(std::process::Stdio::null());
        child.stderr(std::process::Stdio::null());
        let status = child.env("PORTCULLIS_TEST_PUT", format!("{step} {}", root.display())).status().expect("it runs");
        assert!(!status.success(), "{step}: it died");
        let artifacts = Arc::new(LocalArtifacts::open(root, Arc::new(SystemIds::new())).expect("artifacts"));
        // Under its hash there is all of it or nothing.
        match artifacts.open(TENANT, sha256) {
            Ok(window) => {
                assert_eq!(step, "finished");
                assert_eq!(window.slice(0, window.len()).expect("read"), content());
            }
            Err(error) => assert!(step != "finished" && error.kind() == ErrorKind::NotFound, "{step}: {error}"),
        }
        // Nothing names it: after a day it can go, and not before.
        let now = SystemClock::new().now();
        let leftovers = async |now| unreferenced(&store, artifacts.clone(), TENANT, now).await.expect("listed");
        assert_eq!(leftovers(now).await, [], "{step}");
        let later = now.plus(ORPHAN_GRACE * 2);
        let found = leftovers(later).await;
        assert_eq!(found.len(), 1, "{step}");
        assert!(artifacts.sweep(&found[0], grace(later)).expect("swept"), "{step}");
        // The same content is kept as if nothing had been.
        kept(&artifacts, root, &content());
        assert!(artifacts.open(TENANT, sha256).is_ok(), "{step}");
        assert_eq!(fs::read_dir(root.join("tmp")).expect("the folder").count(), 0, "{step}");
    }
}
