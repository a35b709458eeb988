//! A root of its own: a small memory file system with the system, the view, and nothing else in it.
//!
//! Every source is taken by a handle opened in our own mount namespace, and every target is reached
//! step by step without following a link, so that nothing in a person's tree can send a mount
//! elsewhere. Folders are made only in file systems that are ours.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change, move_mount,
    open_tree, unmount,
};

use super::super::posture::Layer;
use super::super::wire::{BindSource, MountKind, MountOrder, Orders, Step, as_path};
use super::{Failure, StageResult, etc, proc, sys};

/// The system, read-only. What is a link on the host is the same link here.
const SYSTEM: &[&str] = &["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// The skeleton, and copies of a few files of `/etc`.
const ROOT_OPTIONS: &std::ffi::CStr = c"size=16m,mode=0755";

/// Where the new root is put together; hidden from nobody, for the namespace is ours.
const WORKSHOPS: &[&str] = &["/tmp", "/run", "/mnt", "/var"];

pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
const WRITABLE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Writable by kernel rule, beyond what is read.
pub(super) struct Grants {
    pub(super) read: Vec<OwnedFd>,
    pub(super) write: Vec<OwnedFd>,
}

pub(super) fn build(orders: &Orders, handles: &[OwnedFd]) -> StageResult<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(Failure::at(Step::Propagation))?;
    // Before anything is mounted over, for a source may lie anywhere.
    let sources = sources(orders, handles)?;
    let system = system()?;
    let workshop = WORKSHOPS.iter().find(|place| Path::new(place).is_dir()).copied().unwrap_or("/usr");
    mount("tmpfs", workshop, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, ROOT_OPTIONS)
        .map_err(Failure::at(Step::RootTmpfs))?;
    rustix::process::chdir(workshop).map_err(Failure::at(Step::RootTmpfs))?;

    let mut ours = OwnFileSystems::default();
    ours.add_here()?;
    for (name, tree) in &system {
        make_folder(name)?;
        attach(tree, &at(name)?).map_err(Failure::at(Step::SystemBind))?;
    }
    etc_folder(orders)?;
    devices()?;
    memory("tmp", orders.tmp_bytes, &mut ours)?;
    if !orders.home.is_empty() {
        let place = as_path(&orders.home);
        let target =
            ours.walk(place, true).map_err(Failure::at(Step::Tmp))?.ok_or(Failure::at(Step::Tmp)(Errno::NOENT))?;
        mount_memory(proc_path(&target).as_str(), orders.tmp_bytes, "0700")?;
        ours.add(place)?;
    }
    if orders.layers.has(Layer::FreshProc) {
        proc::mount_fresh(orders)?;
    } else {
        make_folder("proc")?;
    }
    let mut pinned = Vec::new();
    let mut empty = EmptyObjects::default();
    for (index, (order, source)) in (0_u32..).zip(orders.mounts.iter().zip(&sources)) {
        let failed = |errno| Failure { step: Step::View, errno, index };
        if matches!(order.kind, MountKind::Guard | MountKind::Pin) {
            pin_way_to(order, orders, &ours, &mut pinned).map_err(failed)?;
        }
        place(order, source.as_ref(), &ours, &mut empty).map_err(failed)?;
    }
    empty.remove().map_err(Failure::at(Step::View))?;
    pivot()
}

/// A detached copy of each source, in the order of the mounts.
fn sources(orders: &Orders, handles: &[OwnedFd]) -> StageResult<Vec<Option<OwnedFd>>> {
    (0_u32..)
        .zip(&orders.mounts)
        .map(|(index, order)| {
            let failed = |errno| Failure { step: Step::View, errno, index };
            match open_source(order, handles) {
                Ok(None) => Ok(None),
                Ok(Some(fd)) => {
                    let tree = clone_tree(&fd).map_err(failed)?;
                    let set = if order.kind == MountKind::ReadWrite { WRITABLE } else { READ_ONLY };
                    sys::mount_setattr(&tree, set, true).map_err(Failure::at(Step::MountAttributes))?;
                    Ok(Some(tree))
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) if order.optional => Ok(None),
                Err(errno) => Err(failed(errno)),
            }
        })
        .collect()
}

/// The source as a handle of this mount namespace.
pub(super) fn open_source(order: &MountOrder, handles: &[OwnedFd]) -> Result<Option<OwnedFd>, Errno> {
    let open = |path: &Path| rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    match &order.from {
        BindSource::Nothing => Ok(None),
        BindSource::Path(path) => {
            let fd = open(as_path(path))?;
            if is(&rustix::fs::fstat(&fd)?, FileType::Symlink) {
                return Err(Errno::LOOP);
            }
            Ok(Some(fd))
        }
        BindSource::Handle(index) => {
            let handle = handles.get(*index as usize).ok_or(Errno::BADF)?;
            // A handle from another mount namespace cannot be bound. Its path as it is now is opened
            // here instead, and must be the very same object.
            let path = rustix::fs::readlink(proc_path(handle), Vec::new())?;
            let fd = open(Path::new(OsStr::from_bytes(path.as_bytes())))?;
            let (theirs, here) = (rustix::fs::fstat(handle)?, rustix::fs::fstat(&fd)?);
            if (theirs.st_dev, theirs.st_ino) == (here.st_dev, here.st_ino) { Ok(Some(fd)) } else { Err(Errno::STALE) }
        }
    }
}

fn system() -> StageResult<Vec<(&'static str, OwnedFd)>> {
    let failed = Failure::at(Step::SystemBind);
    let mut trees = Vec::new();
    for name in SYSTEM {
        let path = Path::new("/").join(name);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            let fd = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(&failed)?;
            trees.push((*name, read_only_tree(&fd)?));
        }
    }
    Ok(trees)
}

fn read_only_tree(fd: &OwnedFd) -> StageResult<OwnedFd> {
    let tree = clone_tree(fd).map_err(Failure::at(Step::SystemBind))?;
    sys::mount_setattr(&tree, READ_ONLY, true).map_err(Failure::at(Step::MountAttributes))?;
    Ok(tree)
}

pub(super) fn clone_tree(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    open_tree(
        fd,
        "",
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE,
    )
}

pub(super) fn attach(tree: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    move_mount(tree, "", target, "", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH)
}

fn etc_folder(orders: &Orders) -> StageResult<()> {
    let failed = |error: std::io::Error| Failure::at(Step::Skeleton)(errno_of(&error));
    // Links such as /bin -> usr/bin, which were not bound.
    for name in SYSTEM {
        let path = Path::new("/").join(name);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            std::fs::read_link(&path).and_then(|target| symlink(target, name)).map_err(failed)?;
        }
    }
    make_folder("etc")?;
    etc::fill(Path::new("etc"), orders).map_err(failed)?;
    for name in etc::FOLDERS {
        let from = Path::new("/etc").join(name);
        if from.is_dir() {
            let Ok(fd) = rustix::fs::open(&from, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { continue };
            let to = format!("etc/{name}");
            std::fs::create_dir_all(&to).map_err(failed)?;
            attach(&read_only_tree(&fd)?, &at(&to)?).map_err(Failure::at(Step::SystemBind))?;
        }
    }
    Ok(())
}

fn devices() -> StageResult<()> {
    let failed = Failure::at(Step::Devices);
    make_folder("dev")?;
    for name in DEVICES {
        let from =
            rustix::fs::open(format!("/dev/{name}"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(&failed)?;
        let to = format!("dev/{name}");
        make_file(&to, Mode::from_raw_mode(0o600)).map_err(&failed)?;
        let tree = clone_tree(&from).map_err(&failed)?;
        let set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
        sys::mount_setattr(&tree, set, true).map_err(Failure::at(Step::MountAttributes))?;
        attach(&tree, &at(&to)?).map_err(&failed)?;
    }
    for (target, name) in [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ] {
        symlink(target, format!("dev/{name}")).map_err(|error| failed(errno_of(&error)))?;
    }
    make_folder("dev/shm")?;
    mount_memory("dev/shm", SHM_BYTES, "1777")
}

/// So small files are on average, where a tree has very many.
const BYTES_A_FILE: u64 = 2048;

/// Shared memory of test suites and browsers; more than that is a bomb.
const SHM_BYTES: u64 = 64 * 1024 * 1024;

fn memory(place: &'static str, bytes: u64, ours: &mut OwnFileSystems) -> StageResult<()> {
    make_folder(place)?;
    if bytes > 0 {
        mount_memory(place, bytes, "1777")?;
        ours.add(Path::new("/").join(place).as_path())?;
    }
    Ok(())
}

fn mount_memory(place: &str, bytes: u64, mode: &str) -> StageResult<()> {
    let failed = Failure::at(Step::Tmp);
    // Without a number a tree of empty files could fill half of the machine's memory.
    let files = (bytes / BYTES_A_FILE).max(1024);
    let options = std::ffi::CString::new(format!("size={bytes},nr_inodes={files},mode={mode}"))
        .map_err(|_| failed(Errno::INVAL))?;
    mount("tmpfs", place, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str()).map_err(failed)
}

/// Makes a mount of every folder between a place and its bind. A mount cannot be renamed; else `.git` could be
/// moved away and another one, with hooks of its own, be put in its place.
fn pin_way_to<'a>(
    held: &'a MountOrder,
    orders: &Orders,
    ours: &OwnFileSystems,
    pinned: &mut Vec<&'a Path>,
) -> Result<(), Errno> {
    let place = as_path(&held.place);
    if ours.find(place)?.is_none() {
        return Ok(());
    }
    let binds = orders.mounts.iter().filter(|order| matches!(order.kind, MountKind::ReadOnly | MountKind::ReadWrite));
    let around = binds.map(|order| as_path(&order.place)).filter(|bind| place.starts_with(bind));
    let Some(bind) = around.max_by_key(|bind| bind.components().count()) else { return Ok(()) };
    let way: Vec<&Path> = place.ancestors().skip(1).take_while(|folder| *folder != bind).collect();
    for folder in way.into_iter().rev() {
        if !pinned.contains(&folder) {
            let target = ours.find(folder)?.ok_or(Errno::NOENT)?;
            attach(&clone_tree(&target)?, &target)?;
            pinned.push(folder);
        }
    }
    Ok(())
}

/// The objects that stand in the place of others, made when the first is needed: thousands of mounts show the same four.
#[derive(Default)]
struct EmptyObjects {
    made: [Option<OwnedFd>; 4],
}

impl EmptyObjects {
    /// By `is a folder` and `can be read`.
    const NAMES: [&'static str; 4] = [".no-file", ".empty-file", ".nothing", ".empty-folder"];

    /// What a mask shows cannot be opened: there is no right on it, and it is read-only, so that its owner cannot give
    /// himself one. What is shown empty can be read, and holds nothing.
    fn tree(&mut self, folder: bool, readable: bool) -> Result<OwnedFd, Errno> {
        let which = usize::from(folder) * 2 + usize::from(readable);
        let name = Self::NAMES[which];
        let fd = match &mut self.made[which] {
            Some(fd) => fd,
            kept => {
                let rights = match (folder, readable) {
                    (_, false) => 0,
                    (true, true) => 0o555,
                    (false, true) => 0o444,
                };
                if folder {
                    rustix::fs::mkdir(name, Mode::from_raw_mode(rights))?;
                } else {
                    make_file(name, Mode::from_raw_mode(rights))?;
                }
                kept.insert(rustix::fs::open(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
            }
        };
        let tree = clone_tree(fd)?;
        sys::mount_setattr(&tree, READ_ONLY | libc::MOUNT_ATTR_NOEXEC, true)?;
        Ok(tree)
    }

    /// Takes their names away; what is mounted stays.
    fn remove(self) -> Result<(), Errno> {
        for (which, name) in Self::NAMES.iter().enumerate().filter(|(which, _)| self.made[*which].is_some()) {
            let folder = which >= 2;
            rustix::fs::unlinkat(CWD, *name, if folder { AtFlags::REMOVEDIR } else { AtFlags::empty() })?;
        }
        Ok(())
    }
}

/// One place of the view.
fn place(
    order: &MountOrder,
    source: Option<&OwnedFd>,
    ours: &OwnFileSystems,
    empty: &mut EmptyObjects,
) -> Result<(), Errno> {
    let place = as_path(&order.place);
    match order.kind {
        MountKind::ReadOnly | MountKind::ReadWrite => {
            // Left out because it is optional and not there.
            let Some(tree) = source else { return Ok(()) };
            let folder = is(&rustix::fs::fstat(tree)?, FileType::Directory);
            let target = ours.walk(place, folder)?.ok_or(Errno::NOENT)?;
            attach(tree, &target)
        }
        // Its way is all there is to it.
        MountKind::Pin => Ok(()),
        MountKind::Guard => {
            let Some(target) = ours.find(place)? else { return Ok(()) };
            let tree = clone_tree(&target)?;
            sys::mount_setattr(&tree, READ_ONLY, true)?;
            attach(&tree, &target)
        }
        MountKind::Mask | MountKind::Empty => {
            let target = ours.find(place)?.ok_or(Errno::NOENT)?;
            let folder = is(&rustix::fs::fstat(&target)?, FileType::Directory);
            attach(&empty.tree(folder, order.kind == MountKind::Empty)?, &target)
        }
    }
}

fn pivot() -> StageResult<()> {
    let failed = Failure::at(Step::Pivot);
    rustix::process::pivot_root(".", ".").map_err(&failed)?;
    unmount(".", UnmountFlags::DETACH).map_err(&failed)?;
    rustix::process::chdir("/").map_err(&failed)?;
    let root =
        rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(&failed)?;
    sys::mount_setattr(&root, READ_ONLY, false).map_err(Failure::at(Step::MountAttributes))
}

/// Which file systems are ours to make folders in, by their device numbers. All paths are of the new
/// root, which is the working directory.
#[derive(Default)]
struct OwnFileSystems(Vec<u64>);

impl OwnFileSystems {
    fn add_here(&mut self) -> StageResult<()> {
        let stat = rustix::fs::stat(".").map_err(Failure::at(Step::Skeleton))?;
        self.0.push(stat.st_dev);
        Ok(())
    }

    fn add(&mut self, place: &Path) -> StageResult<()> {
        let failed = Failure::at(Step::Skeleton);
        let fd = self.find(place).map_err(&failed)?.ok_or_else(|| failed(Errno::NOENT))?;
        self.0.push(rustix::fs::fstat(&fd).map_err(&failed)?.st_dev);
        Ok(())
    }

    /// What stands at a place; none if nothing does.
    fn find(&self, place: &Path) -> Result<Option<OwnedFd>, Errno> {
        self.step_by_step(place, None)
    }

    /// What stands at a place, made if it lies in a file system of ours.
    fn walk(&self, place: &Path, folder: bool) -> Result<Option<OwnedFd>, Errno> {
        self.step_by_step(place, Some(folder))
    }

    fn step_by_step(&self, place: &Path, make: Option<bool>) -> Result<Option<OwnedFd>, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut here = rustix::fs::open(".", flags, Mode::empty())?;
        let names: Vec<&OsStr> = place
            .components()
            .filter(|part| !matches!(part, Component::RootDir))
            .map(|part| match part {
                Component::Normal(name) => Ok(name),
                _ => Err(Errno::INVAL),
            })
            .collect::<Result<_, _>>()?;
        for (at, name) in names.iter().enumerate() {
            let last = at + 1 == names.len();
            let next = match rustix::fs::openat(&here, *name, flags, Mode::empty()) {
                Err(Errno::NOENT) => {
                    let Some(folder) = make else { return Ok(None) };
                    // Never in a tree of another owner.
                    if !self.0.contains(&rustix::fs::fstat(&here)?.st_dev) {
                        return Ok(None);
                    }
                    if folder || !last {
                        rustix::fs::mkdirat(&here, *name, Mode::from_raw_mode(0o755))?;
                    } else {
                        let file = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                        drop(rustix::fs::openat(&here, *name, file, Mode::from_raw_mode(0o600))?);
                    }
                    rustix::fs::openat(&here, *name, flags, Mode::empty())?
                }
                other => other?,
            };
            let stat = rustix::fs::fstat(&next)?;
            if is(&stat, FileType::Symlink) {
                return Err(Errno::LOOP);
            }
            if !last && !is(&stat, FileType::Directory) {
                return if make.is_some() { Err(Errno::NOTDIR) } else { Ok(None) };
            }
            here = next;
        }
        Ok(Some(here))
    }
}

/// What Landlock grants inside the root: all of it to read, and to write what is writable.
pub(super) fn grants(orders: &Orders) -> StageResult<Grants> {
    let failed = Failure::at(Step::Landlock);
    let open = |path: &Path| rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let mut write = Vec::new();
    let writable = orders.mounts.iter().filter(|order| order.kind == MountKind::ReadWrite);
    for place in writable.map(|order| as_path(&order.place)).chain([Path::new("/dev"), Path::new("/tmp")]) {
        match open(place) {
            Ok(fd) => write.push(fd),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    if !orders.home.is_empty() {
        write.push(open(as_path(&orders.home)).map_err(&failed)?);
    }
    Ok(Grants { read: vec![open(Path::new("/")).map_err(&failed)?], write })
}

/// The same without a root of its own: the host's places one by one, by handle.
pub(super) fn host_grants(orders: &Orders, handles: &[OwnedFd]) -> StageResult<Grants> {
    let mut grants = Grants { read: Vec::new(), write: Vec::new() };
    let open = |path: &str| rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let system = SYSTEM.iter().map(|name| format!("/{name}"));
    for path in system.chain(etc::all(!orders.own_network)).chain(["/proc".to_owned()]) {
        grants.read.extend(open(&path));
    }
    for name in DEVICES {
        grants.write.extend(open(&format!("/dev/{name}")));
    }
    for (index, order) in (0_u32..).zip(&orders.mounts) {
        let failed = |errno| Failure { step: Step::View, errno, index };
        match open_source(order, handles) {
            Ok(None) => {}
            Ok(Some(fd)) if order.kind == MountKind::ReadWrite => grants.write.push(fd),
            Ok(Some(fd)) => grants.read.push(fd),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) if order.optional => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(grants)
}

pub(super) fn make_folder(name: &str) -> StageResult<()> {
    rustix::fs::mkdir(name, Mode::from_raw_mode(0o755)).map_err(Failure::at(Step::Skeleton))
}

pub(super) fn make_file(name: &str, mode: Mode) -> Result<(), Errno> {
    rustix::fs::open(name, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC, mode).map(drop)
}

pub(super) fn at(name: &str) -> StageResult<OwnedFd> {
    rustix::fs::open(name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        .map_err(Failure::at(Step::Skeleton))
}

fn proc_path(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd.as_fd()))
}

pub(super) fn is(stat: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(stat.st_mode) == kind
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
