//! Large artifacts in a folder: what is served is what was kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_base::{Digest, SystemIds, TenantId};
use portcullis_store::{Artifacts as _, LocalArtifacts};

const TENANT: TenantId = TenantId::from_u128(1);

/// Keeps `bytes` and says where they are.
fn kept(artifacts: &LocalArtifacts, root: &Path, bytes: &[u8]) -> (Digest, PathBuf) {
    let mut writer = artifacts.begin(TENANT).expect("a place to write to");
    writer.write(bytes).expect("written");
    let sha256 = writer.finish().expect("kept").sha256;
    let hex = sha256.to_string();
    (sha256, root.join(TENANT.to_string()).join(&hex[..2]).join(&hex[2..4]).join(hex))
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
