//! What can go wrong once a command was launched. By then it may have changed anything, so each of these failures says
//! that what it did is not known.

use std::fmt;
use std::io;
use std::time::Duration;

use portcullis_contract::ToolFailure;
use portcullis_sandbox::hand::{DiskBreach, DiskLimit, Exit, Limits, ProcessEnd, Signal};

/// A failure of a command that was launched. Code that runs after a launch returns this, and a plain [`ToolFailure`] is
/// not one: so none can be made there that forgets to say that something may have happened.
#[derive(Debug)]
pub struct LaunchedFailure(ToolFailure);

impl LaunchedFailure {
    /// It was stopped at a limit.
    pub(crate) fn limit(hit: &Limit) -> Self {
        Self(hit.failure())
    }

    /// Its streams or its end cannot be read any more.
    pub(crate) fn unwatched(error: &io::Error) -> Self {
        Self(ToolFailure::new("io_error", format!("the command cannot be watched any more: {error}")))
    }

    /// The shell that it ran in is gone, and told nothing of it.
    pub(crate) fn shell_lost() -> Self {
        let text = "the shell was closed while the command may have been running in it; look at what it changed before \
                    running it again";
        Self(ToolFailure::new("shell_died", text))
    }
}

impl From<LaunchedFailure> for ToolFailure {
    fn from(LaunchedFailure(failure): LaunchedFailure) -> Self {
        failure.under_way()
    }
}

/// Something that a command used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    /// It wrote so much that it was stopped; in words how much.
    Output(String),
    /// Too little space is left on a file system that it writes to.
    Disk(DiskBreach),
    /// Bytes of memory of the whole tree.
    Memory(u64),
    /// Processes and threads of the whole tree.
    Processes(u32),
    /// Processor time of a process.
    Cpu(Duration),
    /// Bytes of one file.
    FileSize(u64),
}

impl Limit {
    /// What a command that failed ran into, where that is certain.
    pub(crate) fn hit(ended: &ProcessEnd, limits: &Limits) -> Option<Self> {
        let by = |signal: Signal| ended.exit == Exit::Signal(signal.as_raw());
        let memory = || limits.memory.filter(|_| ended.out_of_memory).map(Self::Memory);
        let processes = || limits.pids.filter(|_| ended.out_of_processes).map(Self::Processes);
        let cpu = || limits.cpu.filter(|_| by(Signal::XCPU)).map(Self::Cpu);
        let size = || limits.file_size.filter(|_| by(Signal::XFSZ)).map(Self::FileSize);
        memory().or_else(processes).or_else(cpu).or_else(size)
    }

    /// Which one, beside the code `resource_limit`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Output(_) => "output_limit",
            Self::Disk(_) => "disk_limit",
            Self::Memory(_) => "memory_limit",
            Self::Processes(_) => "process_limit",
            Self::Cpu(_) => "cpu_limit",
            Self::FileSize(_) => "file_size_limit",
        }
    }

    pub(crate) fn failure(&self) -> ToolFailure {
        ToolFailure::resource_limit(self.word(), self.to_string())
    }
}

/// The key that changes a limit, where one does.
fn setting(key: &str) -> String {
    format!("`{key}` in the [sandbox] table of the configuration")
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(why) => write!(
                f,
                "the command was stopped because of its output: {why}; have it write less, or to a file of the workspace"
            ),
            Self::Disk(DiskBreach { place, limit: DiskLimit::Used(bytes) }) => write!(
                f,
                "the command was stopped because free space on the file system of {} fell by more than {} while it ran; \
                 remove what it wrote, or raise {}",
                place.display(),
                Bytes(*bytes),
                setting("max_disk_use")
            ),
            Self::Disk(DiskBreach { place, limit: DiskLimit::Left(bytes) }) => write!(
                f,
                "the command was stopped because less than {} is free on the file system of {}; make room there, or lower {}",
                Bytes(*bytes),
                place.display(),
                setting("min_disk_free")
            ),
            Self::Memory(bytes) => write!(
                f,
                "the kernel ended the command because it used more than {} of memory; have it use less, or raise {}",
                Bytes(*bytes),
                setting("max_memory")
            ),
            Self::Processes(count) => write!(
                f,
                "the command wanted more than {count} processes and threads at once; have it start fewer, or raise {}",
                setting("max_processes")
            ),
            Self::Cpu(time) => {
                write!(f, "a process of the command used more than {} s of processor time", time.as_secs())
            }
            Self::FileSize(bytes) => write!(f, "the command wrote more than {} to one file", Bytes(*bytes)),
        }
    }
}

/// A size as a configuration writes it.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.iter().find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// The end of what a command wrote that is searched for the words of a refused allocation or process.
const LAST_WORDS: usize = 4 << 10;
/// How libraries and runtimes tell ENOMEM.
const NO_MEMORY: [&str; 5] =
    ["Cannot allocate memory", "MemoryError", "bad_alloc", "memory allocation of", "heap out of memory"];
/// How they tell EAGAIN of fork and clone.
const NO_PROCESS: [&str; 3] = ["Resource temporarily unavailable", "Cannot fork", "can't start new thread"];

/// Without a control group nobody tells that a limit was reached: an allocation or a fork fails, and the command says so in
/// its own words. That is worth a hint, and is no proof.
pub(crate) fn hint(stderr: &[u8], limits: &Limits) -> Option<String> {
    let last = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(LAST_WORDS)..]).into_owned();
    let says = |words: &[&str]| words.iter().any(|word| last.contains(word));
    if let Some(memory) = limits.memory.filter(|_| says(&NO_MEMORY)) {
        return Some(format!(
            "by its words it was refused memory: in the sandbox a command has {}; {} changes that",
            Bytes(memory),
            setting("max_memory")
        ));
    }
    let pids = limits.pids.filter(|_| says(&NO_PROCESS))?;
    Some(format!(
        "by its words it was refused a process or thread: in the sandbox a command has {pids}; {} changes that",
        setting("max_processes")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(exit: Exit) -> ProcessEnd {
        ProcessEnd { exit, out_of_memory: false, out_of_processes: false }
    }

    #[test]
    fn a_limit_is_named_with_its_amount_and_its_setting() {
        let limits = Limits::default();
        let oom = ProcessEnd { out_of_memory: true, ..ended(Exit::Signal(9)) };
        let hit = Limit::hit(&oom, &limits).expect("a limit");
        assert_eq!(hit.word(), "memory_limit");
        assert!(hit.to_string().contains("8 GiB") && hit.to_string().contains("`max_memory`"), "{hit}");
        let full = ProcessEnd { out_of_processes: true, ..ended(Exit::Code(254)) };
        let hit = Limit::hit(&full, &limits).expect("a limit");
        assert!(
            hit.word() == "process_limit"
                && hit.to_string().contains("2048")
                && hit.to_string().contains("`max_processes`")
        );
        assert_eq!(Limit::hit(&ended(Exit::Signal(Signal::XCPU.as_raw())), &limits), None, "there is no such limit");
        let limits = Limits { cpu: Some(Duration::from_secs(3)), file_size: Some(5), ..limits };
        assert_eq!(
            Limit::hit(&ended(Exit::Signal(Signal::XCPU.as_raw())), &limits).map(|hit| hit.word()),
            Some("cpu_limit")
        );
        let size = Limit::hit(&ended(Exit::Signal(Signal::XFSZ.as_raw())), &limits).expect("a limit");
        assert_eq!(size.to_string(), "the command wrote more than 5 bytes to one file");
        assert_eq!(Limit::hit(&ended(Exit::Code(1)), &limits), None);
        let place = std::path::PathBuf::from("/workspace");
        let used = Limit::Disk(DiskBreach { place: place.clone(), limit: DiskLimit::Used(20 << 30) }).to_string();
        assert!(used.contains("/workspace fell by more than 20 GiB") && used.contains("`max_disk_use`"), "{used}");
        let left = Limit::Disk(DiskBreach { place, limit: DiskLimit::Left(1 << 30) }).to_string();
        assert!(left.contains("less than 1 GiB is free") && left.contains("`min_disk_free`"), "{left}");
    }

    #[test]
    fn every_failure_after_a_launch_says_that_work_was_under_way() {
        use crate::hand::StreamFault;
        let flood = ToolFailure::from(LaunchedFailure::from(StreamFault::Flood("too much".to_owned())));
        let limit = Limit::Output("too much".to_owned());
        assert_eq!(flood, ToolFailure::resource_limit("output_limit", limit.to_string()).under_way());
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        for failure in [
            LaunchedFailure::from(StreamFault::Io(broken())),
            LaunchedFailure::unwatched(&broken()),
            LaunchedFailure::shell_lost(),
            LaunchedFailure::limit(&limit),
        ] {
            let failure = ToolFailure::from(failure);
            assert_eq!(failure.clone().under_way(), failure);
        }
    }

    #[test]
    fn words_of_a_refused_allocation_are_a_hint() {
        let limits = Limits::default();
        for words in ["x\nMemoryError\n", "bash: xrealloc: Cannot allocate memory", "std::bad_alloc"] {
            assert!(hint(words.as_bytes(), &limits).expect("a hint").contains("`max_memory`"), "{words}");
        }
        let fork = hint(b"bash: fork: retry: Resource temporarily unavailable", &limits).expect("a hint");
        assert!(fork.contains("2048") && fork.contains("`max_processes`"), "{fork}");
        assert_eq!(hint(b"error[E0308]: mismatched types", &limits), None);
        let long_ago = [b"MemoryError".as_slice(), &[b'x'; LAST_WORDS]].concat();
        assert_eq!(hint(&long_ago, &limits), None, "only its last words count");
        assert_eq!(hint(b"MemoryError", &Limits { memory: None, ..limits }), None);
    }
}
