//! Memory and process limits of a whole tree, where a control group can be had: version 2 with both
//! controllers, in a place where we may make one. Nothing outside of a group of our own is changed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::plan::Limits;

/// Where groups may be made, or why none can.
pub(crate) fn base() -> Result<PathBuf, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| format!("no list of mounts: {error}"))?;
    let root = mount_point(&mounts).ok_or("cgroup version 2 is not mounted")?;
    let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| format!("no list of cgroups: {error}"))?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("we are in no cgroup of version 2")?;
    let own = root.join(own);
    // A group with processes hands nothing on, so our neighbour's place is as good as our own.
    let candidates = [Some(own.as_path()), own.parent().filter(|parent| parent.starts_with(&root))];
    candidates
        .into_iter()
        .flatten()
        .find(|place| hands_on(place) && may_make(place))
        .map(Path::to_path_buf)
        .ok_or_else(|| "neither our cgroup nor the one around it hands on `memory` and `pids` to us".to_owned())
}

fn mount_point(mountinfo: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        right.starts_with("cgroup2 ").then(|| left.split(' ').nth(4).map(PathBuf::from))?
    })
}

fn hands_on(place: &Path) -> bool {
    fs::read_to_string(place.join("cgroup.subtree_control")).is_ok_and(|text| {
        let has = |name| text.split_ascii_whitespace().any(|word| word == name);
        has("memory") && has("pids")
    })
}

fn may_make(place: &Path) -> bool {
    Cgroup::make(place).is_ok()
}

/// A group of one launch; gone with it.
#[derive(Debug)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    fn make(base: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("portcullis-hand-{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// With its limits set, and the handle by which a launcher joins it.
    pub(crate) fn new(base: &Path, limits: &Limits) -> io::Result<(Self, File)> {
        let group = Self::make(base)?;
        if let Some(memory) = limits.memory {
            fs::write(group.0.join("memory.max"), memory.to_string())?;
            // Swap would only make a bomb slower; not every kernel counts it.
            let _ = fs::write(group.0.join("memory.swap.max"), "0");
            // The whole tree goes, not one process that a build then waits for.
            let _ = fs::write(group.0.join("memory.oom.group"), "1");
        }
        if let Some(pids) = limits.pids {
            // Ours are the launcher and init.
            fs::write(group.0.join("pids.max"), (u64::from(pids) + 2).to_string())?;
        }
        let procs = File::options().write(true).open(group.0.join("cgroup.procs"))?;
        Ok((group, procs))
    }

    /// Whether the kernel killed somebody in it for want of memory.
    pub(crate) fn out_of_memory(&self) -> bool {
        fs::read_to_string(self.0.join("memory.events")).is_ok_and(|text| counts(&text, "oom_kill "))
    }
}

impl Cgroup {
    /// Whether somebody in it was refused another process.
    pub(crate) fn out_of_processes(&self) -> bool {
        fs::read_to_string(self.0.join("pids.events")).is_ok_and(|text| counts(&text, "max "))
    }
}

/// Whether a line of such a file counts something.
fn counts(events: &str, name: &str) -> bool {
    events.lines().any(|line| line.strip_prefix(name).is_some_and(|count| count.trim() != "0"))
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        // The dead leave it a moment later than they are reaped.
        for _ in 0..50 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_version_2_is_found_among_others() {
        let text = "30 24 0:26 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n\
                    42 32 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(text), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mount_point("30 24 0:26 / /x rw - tmpfs tmpfs rw\n"), None);
    }

    #[test]
    fn what_a_group_was_refused_is_counted() {
        assert!(counts("low 0\nmax 3\noom 1\noom_kill 1\n", "oom_kill "));
        assert!(!counts("low 0\nmax 3\noom 1\noom_kill 0\n", "oom_kill "));
        assert!(counts("max 1\n", "max ") && !counts("max 0\n", "max "));
    }
}
