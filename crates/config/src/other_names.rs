//! Folders that have a second name by a bind mount. Commands are kept from what is ours by its name, so a workspace in
//! which it has another one cannot be guarded.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A place in the workspace, or the workspace itself, that is another name of a folder which holds one of `ours`, with the
/// name that is known.
pub fn other_name(workspace: &Path, ours: &[PathBuf]) -> Option<(PathBuf, PathBuf)> {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let inside = mount_points(&mounts).into_iter().filter(|point| point.starts_with(workspace));
    let known: Vec<(PathBuf, (u64, u64))> = ours
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .flat_map(|path| path.ancestors().map(Path::to_owned).collect::<Vec<_>>())
        .filter_map(|path| identity(&path).map(|found| (path, found)))
        .collect();
    inside.chain([workspace.to_owned()]).find_map(|place| {
        let found = identity(&place)?;
        let same = |(path, other): &&(PathBuf, (u64, u64))| *other == found && *path != place;
        known.iter().find(same).map(|(path, _)| (place.clone(), path.clone()))
    })
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// The fifth word of each line, in which blanks and backslashes are written in octal.
fn mount_points(mountinfo: &[u8]) -> Vec<PathBuf> {
    let point = |line: &[u8]| Some(PathBuf::from(OsString::from_vec(unescaped(line.split(|b| *b == b' ').nth(4)?))));
    mountinfo.split(|byte| *byte == b'\n').filter_map(point).collect()
}

fn unescaped(word: &[u8]) -> Vec<u8> {
    let (mut out, mut left) = (Vec::new(), word);
    while let Some((first, rest)) = left.split_first() {
        let octal = rest
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::ffi::OsStr::from_bytes(digits).to_str()?, 8).ok());
        out.push(octal.unwrap_or(*first));
        left = if octal.is_some() { &rest[3..] } else { rest };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_blanks() {
        let text =
            b"36 35 98:0 /mnt1 /a\\040b\\134 rw shared:1 - ext3 /dev/root rw\n37 36 0:5 / /proc rw - proc proc rw\nx\n";
        assert_eq!(mount_points(text), [PathBuf::from("/a b\\"), PathBuf::from("/proc")]);
    }
}
