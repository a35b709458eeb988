//! Where a database may live. SQLite's locks and shared memory do not hold across machines: on a
//! network file system two writers would each believe to be alone.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use portcullis_store::StoreError;

const NFS: u64 = 0x6969;
const SMB: u64 = 0x517b;
const CIFS: u64 = 0xff53_4d42;
const SMB2: u64 = 0xfe53_4d42;
const CEPH: u64 = 0x00c3_6400;
const AFS: u64 = 0x5346_414f;
const CODA: u64 = 0x7375_7245;
const FUSE: u64 = 0x6573_5546;

/// FUSE is local more often than not; these are the ones that are not.
const REMOTE_FUSE: &[&str] = &[
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.s3ql",
    "fuse.gcsfuse",
    "fuse.goofys",
    "fuse.mount-s3",
    "fuse.blobfuse",
    "fuse.blobfuse2",
    "fuse.glusterfs",
    "fuse.ceph-fuse",
    "fuse.juicefs",
    "fuse.davfs",
    "fuse.curlftpfs",
    "fuse.nfs",
];

/// Refuses a folder on a network file system.
pub(crate) fn refuse_network(folder: &Path) -> Result<(), StoreError> {
    let Ok(stat) = rustix::fs::statfs(folder) else {
        // What cannot be asked cannot be refused; opening the file will say what is wrong.
        return Ok(());
    };
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "the kernel's type of this field differs by target; the magic is its low 32 bits"
    )]
    let magic = (stat.f_type as u64) & 0xffff_ffff;
    let mounted = || {
        let device = std::fs::metadata(folder).ok()?.dev();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        mount_type(&mounts, device)
    };
    match network_name(magic, mounted) {
        None => Ok(()),
        Some(name) => Err(StoreError::Unavailable(format!(
            "{} is on a network file system ({name}), where locks do not hold and a log could be \
             damaged; keep the store on a local disk",
            folder.display()
        ))),
    }
}

/// What a network file system is called, `None` for a local one. `mounted` names a FUSE mount.
fn network_name(magic: u64, mounted: impl FnOnce() -> Option<String>) -> Option<String> {
    let name = match magic {
        NFS => "NFS",
        SMB | CIFS | SMB2 => "SMB",
        CEPH => "Ceph",
        AFS => "AFS",
        CODA => "Coda",
        FUSE => return mounted().filter(|name| REMOTE_FUSE.contains(&name.as_str())),
        _ => return None,
    };
    Some(name.to_owned())
}

/// The type word of the mount of `device` in the text of `/proc/self/mountinfo`.
fn mount_type(mounts: &str, device: u64) -> Option<String> {
    let wanted = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        (before.split(' ').nth(2)? == wanted).then(|| after.split(' ').next().unwrap_or_default().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_refused_and_local_ones_are_not() {
        let local = || None;
        for magic in [NFS, SMB, CIFS, SMB2, CEPH, AFS, CODA] {
            assert!(network_name(magic, local).is_some(), "{magic:x}");
        }
        const EXT4: u64 = 0xef53;
        assert_eq!(network_name(EXT4, local), None);
        assert_eq!(network_name(FUSE, || Some("fuse.sshfs".to_owned())).as_deref(), Some("fuse.sshfs"));
        assert_eq!(network_name(FUSE, || Some("fuse.fuse-overlayfs".to_owned())), None);
        assert_eq!(network_name(FUSE, local), None);
    }

    #[test]
    fn a_mount_is_found_by_its_device() {
        let mounts = "36 35 98:0 / / rw,noatime - ext4 /dev/root rw\n\
                      40 36 0:52 / /mnt/a\\040b rw shared:1 - fuse.sshfs host:/ rw\n";
        let device = rustix::fs::makedev(0, 52);
        assert_eq!(mount_type(mounts, device).as_deref(), Some("fuse.sshfs"));
        assert_eq!(mount_type(mounts, rustix::fs::makedev(0, 53)), None);
    }

    #[test]
    fn this_machine_s_temporary_folder_is_allowed() {
        assert_eq!(refuse_network(&std::env::temp_dir()), Ok(()));
    }
}
