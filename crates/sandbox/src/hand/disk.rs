//! Free space of the file systems that a command may write to, watched while it runs.

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::plan::{BindAccess, Plan, Source, Tmp};

/// How often free space is looked at while a command runs.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Tells how much space is free. A test gives its own, so that it need not fill a disk.
pub trait FreeSpace: Send + Sync + Debug {
    /// Bytes that an ordinary user may still write to the file system of this file.
    ///
    /// # Errors
    /// If it cannot be told. That file system is not watched then.
    fn free(&self, file: BorrowedFd<'_>) -> io::Result<u64>;
}

/// The kernel's own word.
#[derive(Debug)]
pub(super) struct Statvfs;

impl FreeSpace for Statvfs {
    fn free(&self, file: BorrowedFd<'_>) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(file)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Why a command must be stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskBreach {
    /// A place of the view on that file system.
    pub place: PathBuf,
    pub limit: DiskLimit,
}

/// A limit of free space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskLimit {
    /// So much less may be free than at the start.
    Used(u64),
    /// So much must stay free.
    Left(u64),
}

/// The file systems that a tree may write to.
#[derive(Debug, Clone)]
pub(super) struct Disks {
    probe: Arc<dyn FreeSpace>,
    /// One place of each.
    places: Vec<(PathBuf, Arc<OwnedFd>)>,
    used: Option<u64>,
    left: Option<u64>,
}

impl Disks {
    /// Those of a plan's writable binds and of its `/tmp`, if that is a folder; memory has limits of its own.
    pub(super) fn of(plan: &Plan, probe: &Arc<dyn FreeSpace>) -> Self {
        let (used, left) = (plan.limits.disk_use, plan.limits.disk_free);
        let mut disks = Self { probe: Arc::clone(probe), places: Vec::new(), used, left };
        if used.is_none() && left.is_none() {
            return disks;
        }
        let writable = plan.view.binds.iter().filter(|bind| bind.access == BindAccess::ReadWrite);
        let mut sources: Vec<_> = writable.map(|bind| (bind.place.clone(), &bind.source)).collect();
        if let Tmp::Folder(source) = &plan.view.tmp {
            sources.push((PathBuf::from("/tmp"), source));
        }
        let mut seen = Vec::new();
        for (place, source) in sources {
            // What is not there cannot be filled.
            let Some(file) = opened(source) else { continue };
            let Ok(stat) = rustix::fs::fstat(&file) else { continue };
            if !seen.contains(&stat.st_dev) {
                seen.push(stat.st_dev);
                disks.places.push((place, file));
            }
        }
        disks
    }

    /// A watch that counts from now.
    pub(super) fn watch(&self) -> DiskWatch {
        let free = |(_, file): &(PathBuf, Arc<OwnedFd>)| self.probe.free(file.as_fd()).ok();
        DiskWatch { at_start: self.places.iter().map(free).collect(), disks: Some(self.clone()) }
    }
}

fn opened(source: &Source) -> Option<Arc<OwnedFd>> {
    match source {
        Source::Handle(file) => Some(Arc::clone(file)),
        Source::Path(path) => {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::open(path, flags, Mode::empty()).ok().map(Arc::new)
        }
    }
}

/// Watches free space from one moment on, for instance from the start of one command of a shell.
#[derive(Debug, Clone, Default)]
pub struct DiskWatch {
    /// None if nothing is watched.
    disks: Option<Disks>,
    /// Of each place; none if it could not be told.
    at_start: Vec<Option<u64>>,
}

impl DiskWatch {
    /// The same file systems, counted from now.
    pub(super) fn anew(&self) -> Self {
        self.disks.as_ref().map(Disks::watch).unwrap_or_default()
    }

    /// Comes when a limit is passed, and never else. May be dropped and called again.
    pub async fn breached(&self) -> DiskBreach {
        if self.at_start.iter().all(Option::is_none) {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Some(breach) = self.look() {
                return breach;
            }
        }
    }

    /// A file system that was nearly full at the start does not stop a command for that alone.
    fn look(&self) -> Option<DiskBreach> {
        let Disks { probe, places, used, left } = self.disks.as_ref()?;
        places.iter().zip(&self.at_start).find_map(|((place, file), at_start)| {
            let at_start = (*at_start)?;
            let free = probe.free(file.as_fd()).ok()?;
            let too_much = used.filter(|used| at_start.saturating_sub(free) > *used).map(DiskLimit::Used);
            let too_little = || left.filter(|left| at_start >= *left && free < *left).map(DiskLimit::Left);
            let limit = too_much.or_else(too_little)?;
            Some(DiskBreach { place: place.clone(), limit })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::hand::Bind;

    const GIB: u64 = 1 << 30;

    #[derive(Debug, Default)]
    struct FixedSpace(AtomicU64);

    impl FreeSpace for FixedSpace {
        fn free(&self, _: BorrowedFd<'_>) -> io::Result<u64> {
            match self.0.load(Ordering::Relaxed) {
                u64::MAX => Err(io::Error::other("not to be told")),
                free => Ok(free),
            }
        }
    }

    fn plan() -> Plan {
        let mut plan = Plan::new(vec!["true".into()]);
        let bind = |place: &str, path: &str, access| Bind {
            source: Source::Path(path.into()),
            place: place.into(),
            access,
            optional: false,
        };
        plan.view.binds = vec![
            bind("/workspace", "/usr", BindAccess::ReadWrite),
            bind("/again", "/usr", BindAccess::ReadWrite),
            bind("/data", "/proc", BindAccess::ReadOnly),
            bind("/gone", "/no/such/place", BindAccess::ReadWrite),
        ];
        plan
    }

    fn after(at_start: u64, now: u64) -> Option<DiskLimit> {
        let said = Arc::new(FixedSpace::default());
        said.0.store(at_start, Ordering::Relaxed);
        let probe: Arc<dyn FreeSpace> = said.clone();
        let disks = Disks::of(&plan(), &probe);
        assert_eq!(disks.places.len(), 1, "each writable file system once: {disks:?}");
        let watch = disks.watch();
        said.0.store(now, Ordering::Relaxed);
        watch.look().map(|breach| {
            assert_eq!(breach.place, PathBuf::from("/workspace"));
            breach.limit
        })
    }

    #[test]
    fn space_that_falls_by_twenty_gibibytes_or_below_one_is_a_breach() {
        assert_eq!(after(100 * GIB, 80 * GIB), None);
        assert_eq!(after(100 * GIB, 80 * GIB - 1), Some(DiskLimit::Used(20 * GIB)));
        assert_eq!(after(5 * GIB, GIB), None);
        assert_eq!(after(5 * GIB, GIB - 1), Some(DiskLimit::Left(GIB)));
        assert_eq!(after(5 * GIB, 50 * GIB), None, "others made room");
        assert_eq!(after(GIB - 1, 0), None, "it was nearly full before");
        assert_eq!(after(u64::MAX, 0), None, "it could not be told at the start");
        assert_eq!(after(5 * GIB, u64::MAX), None, "it cannot be told now");
    }

    #[test]
    fn the_kernel_tells_the_free_space_of_a_folder() {
        let folder = rustix::fs::open("/usr", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("opened");
        assert!(Statvfs.free(folder.as_fd()).is_ok());
        let none = Plan { limits: crate::hand::Limits { disk_use: None, disk_free: None, ..plan().limits }, ..plan() };
        let probe: Arc<dyn FreeSpace> = Arc::new(Statvfs);
        assert!(Disks::of(&none, &probe).places.is_empty(), "without a limit nothing is watched");
    }
}
