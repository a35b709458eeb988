//! The way that a program outside of the sandbox goes when it opens a path, as far as it lies in the mounts.
//!
//! [`MountTable::resolve`] refuses links that leave a mount by an absolute text. A program on the host follows them, also
//! back into the mount. A caller that must know what such a program finds goes this way and learns every link on it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD};

use crate::handle::{Identity, kind_of};
use crate::{Kind, Mount, MountTable};

/// As many links as Linux follows in one path.
const LINKS_MAX: usize = 40;

/// A place beneath a mount.
#[derive(Debug, Clone)]
pub struct MountSpot<'t> {
    pub mount: &'t Mount,
    /// From the mount to it; empty for the mount itself.
    pub beneath: PathBuf,
}

/// What a path leads to.
#[derive(Debug, Default)]
pub struct HostWay<'t> {
    /// Each link on the way that lies in a mount. No folder above one is a link.
    pub links: Vec<MountSpot<'t>>,
    /// What stands at its end, and is no link. No folder above it is one. `None` if nothing does, or not in a mount.
    pub end: Option<MountSpot<'t>>,
    /// Where something would stand that is not there yet.
    pub would_be: Option<MountSpot<'t>>,
}

/// The way from a folder, in which no link lies, along `name`. An absolute name is one of the host, or of the mounts.
#[must_use]
pub fn host_way<'t>(table: &'t MountTable, from: &MountSpot<'t>, name: &Path) -> HostWay<'t> {
    let mut way = HostWay::default();
    let mut at = from.clone();
    let mut todo: VecDeque<OsString> = VecDeque::new();
    let Some(mut next) = enter(table, &mut at, &mut todo, name) else { return way };
    let mut last = Kind::Directory;
    while let Some(step) = next.take().or_else(|| todo.pop_front()) {
        if last != Kind::Directory {
            return way;
        }
        if step == ".." {
            if at.beneath.pop() {
                continue;
            }
            // Above a mount's folder is what lies above it on the host.
            let Some(above) = at.mount.host_place().and_then(|host| Some(host.parent()?.to_owned())) else {
                return way;
            };
            let rest: PathBuf = std::iter::once(above.into_os_string()).chain(todo.drain(..)).collect();
            match enter(table, &mut at, &mut todo, &rest) {
                Some(first) => next = first,
                None => return way,
            }
            continue;
        }
        at.beneath.push(&step);
        let Ok(stat) = rustix::fs::statat(at.mount.dir(), &at.beneath, AtFlags::SYMLINK_NOFOLLOW) else {
            let plain = !todo.iter().any(|step| step == "..");
            at.beneath.extend(todo);
            way.would_be = plain.then_some(at);
            return way;
        };
        last = kind_of(&stat);
        if last != Kind::Other {
            continue;
        }
        // A pipe, a socket or a device ends here as well; it is no link that could be read.
        let Ok(text) = rustix::fs::readlinkat(at.mount.dir(), &at.beneath, Vec::new()) else {
            way.end = todo.is_empty().then_some(at);
            return way;
        };
        way.links.push(at.clone());
        at.beneath.pop();
        last = Kind::Directory;
        if way.links.len() > LINKS_MAX {
            return way;
        }
        match enter(table, &mut at, &mut todo, Path::new(&OsString::from_vec(text.into_bytes()))) {
            Some(first) => next = first,
            None => return way,
        }
    }
    way.end = Some(at);
    way
}

/// Puts the steps of `name` in front of what is to do, and gives the first one. `None` if it lies in no mount.
fn enter<'t>(
    table: &'t MountTable,
    at: &mut MountSpot<'t>,
    todo: &mut VecDeque<OsString>,
    name: &Path,
) -> Option<Option<OsString>> {
    let name = if name.is_absolute() {
        let (mount, rest) = beneath_a_mount(table, name)?;
        *at = MountSpot { mount, beneath: PathBuf::new() };
        rest
    } else {
        name.to_owned()
    };
    for part in name.components().rev() {
        match part {
            Component::Normal(_) | Component::ParentDir => todo.push_front(part.as_os_str().to_owned()),
            _ => {}
        }
    }
    Some(todo.pop_front())
}

/// The mount that an absolute path leads into, and the rest of the path. One of its leading folders must be the mount's, as
/// an object, whatever text and links lead there; or its text is that of a virtual path.
fn beneath_a_mount<'t>(table: &'t MountTable, path: &Path) -> Option<(&'t Mount, PathBuf)> {
    let mut folder = PathBuf::new();
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        folder.push(part);
        let Ok(stat) = rustix::fs::statat(CWD, &folder, AtFlags::NO_AUTOMOUNT) else { break };
        let here = Identity::of(&stat);
        if let Some(mount) = table.mounts().find(|mount| mount.itself_and_above().next() == Some(here)) {
            return Some((mount, rest.as_path().to_owned()));
        }
    }
    let virtual_mount = table.mounts().filter(|mount| path.starts_with(mount.root().as_str()));
    let mount = virtual_mount.max_by_key(|mount| mount.root().as_str().len())?;
    Some((mount, path.strip_prefix(mount.root().as_str()).ok()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::TreeOwner;

    #[test]
    fn the_way_of_the_host_is_gone_through_links_of_every_text() {
        let outer = tempfile::tempdir().expect("a folder");
        let tree = outer.path().join("tree");
        let at = |name: &str| tree.join(name);
        fs::create_dir_all(at("a/real")).expect("folders");
        fs::write(at("a/real/file"), "x").expect("written");
        symlink("real", at("a/near")).expect("a link");
        symlink(at("a"), at("host")).expect("a link");
        symlink("/workspace/a", at("virtual")).expect("a link");
        symlink("../tree/a", at("around")).expect("a link");
        symlink("a/near/file", at("end")).expect("a link");
        symlink("loop", at("loop")).expect("a link");
        symlink("/etc/passwd", at("out")).expect("a link");
        symlink("nothing", at("dangling")).expect("a link");
        let table = MountTable::workspace(&tree, TreeOwner::PersonsTree).expect("a mount");
        let mount = table.mounts().next().expect("a mount");
        let root = MountSpot { mount, beneath: PathBuf::new() };
        let host = at("a/near/file");
        let goes = |name: &Path| {
            let way = host_way(&table, &root, name);
            let text = |spot: MountSpot<'_>| spot.beneath.display().to_string();
            (way.links.into_iter().map(text).collect::<Vec<_>>().join(" "), way.end.map(text))
        };
        for (name, links, end) in [
            ("a/real/file", "", Some("a/real/file")),
            ("./a/../a/near/file", "a/near", Some("a/real/file")),
            ("host/near/file", "host a/near", Some("a/real/file")),
            ("virtual/real/file", "virtual", Some("a/real/file")),
            ("around/real/file", "around", Some("a/real/file")),
            ("end", "end a/near", Some("a/real/file")),
            ("../tree/a/real/file", "", Some("a/real/file")),
            ("/workspace/a/real/file", "", Some("a/real/file")),
            (host.to_str().expect("text"), "a/near", Some("a/real/file")),
            ("a", "", Some("a")),
            ("a/..", "", Some("")),
            ("out", "out", None),
            ("dangling", "dangling", None),
            ("a/real/file/x", "", None),
            ("missing", "", None),
        ] {
            assert_eq!(goes(Path::new(name)), (links.to_owned(), end.map(str::to_owned)), "{name}");
        }
        assert_eq!(goes(Path::new("loop")).1, None);
        let would_be = |name: &str| host_way(&table, &root, Path::new(name)).would_be.map(|spot| spot.beneath);
        assert_eq!(would_be("host/new/file"), Some(PathBuf::from("a/new/file")));
        assert_eq!((would_be("new/../a"), would_be("out/x"), would_be("a")), (None, None, None));
    }
}
