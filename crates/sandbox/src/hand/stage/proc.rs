//! `/proc` of a hand: fresh, read-only, and without the files that tell of the machine instead of the command.
//!
//! `/sys` is not shown at all, so nothing of it needs a mask.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use super::super::wire::{Orders, Step};
use super::root::{READ_ONLY, at, attach, clone_tree, is, make_file, make_folder};
use super::{Failure, StageResult, sys};

/// Files and folders that nobody can open in a hand. The first ten are Docker's. The others root could still read as their
/// owner, without any capability: the kernel's memory page by page, its log, its allocations.
const MASKED: &[&str] = &[
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
    "key-users",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "mtrr",
    "slabinfo",
    "vmallocinfo",
];

/// In the new root, which is the working directory.
pub(super) fn mount_fresh(orders: &Orders) -> StageResult<()> {
    let failed = Failure::at(Step::Proc);
    make_folder("proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "proc", "proc", flags, None::<&std::ffi::CStr>).map_err(&failed)?;
    limit_pids(orders.limits.pids);
    // Without its masks there is rather no /proc at all.
    mask().map_err(&failed)?;
    // Read-only, for root without capabilities could still write the machine's settings in it. That covers `bus`, `fs`,
    // `irq`, `sys` and `sysrq-trigger`.
    let fd = at("proc")?;
    sys::mount_setattr(&fd, READ_ONLY | libc::MOUNT_ATTR_NOEXEC, false).map_err(Failure::at(Step::MountAttributes))
}

fn mask() -> Result<(), Errno> {
    /// Stand in for what is masked. They have no mode bits, and their mounts are read-only, so that their owner cannot
    /// give himself any.
    const FOLDER: &str = ".no-folder";
    const FILE: &str = ".no-file";
    let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |name: &str| rustix::fs::open(name, path, Mode::empty());
    rustix::fs::mkdir(FOLDER, Mode::empty())?;
    make_file(FILE, Mode::empty())?;
    let (folder, file) = (open(FOLDER)?, open(FILE)?);
    let proc = open("proc")?;
    for name in MASKED {
        let target: OwnedFd = match rustix::fs::openat(&proc, *name, path, Mode::empty()) {
            Ok(target) => target,
            // Not every kernel has every one.
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        let is_folder = is(&rustix::fs::fstat(&target)?, FileType::Directory);
        let tree = clone_tree(if is_folder { &folder } else { &file })?;
        sys::mount_setattr(&tree, READ_ONLY | libc::MOUNT_ATTR_NOEXEC, false)?;
        attach(&tree, &target)?;
    }
    rustix::fs::unlinkat(CWD, FOLDER, AtFlags::REMOVEDIR)?;
    rustix::fs::unlinkat(CWD, FILE, AtFlags::empty())
}

/// Since Linux 6.14 a pid namespace has a `pid_max` of its own, which bounds its processes, whichever user
/// owns them. Before that the same file is the whole machine's, so the version is asked first.
fn limit_pids(pids: u64) {
    /// The kernel never hands these out a second time.
    const RESERVED: u64 = 300;
    if pids != u64::MAX && kernel_at_least(6, 14) {
        let _ = std::fs::write("proc/sys/kernel/pid_max", (RESERVED + pids.max(1)).to_string());
    }
}

fn kernel_at_least(major: u32, minor: u32) -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}
