//! What to run, and what it may see.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portcullis_base::IsolationLevel;

/// Where a bind comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A place on the host, opened by the launcher without following a link at its end.
    Path(PathBuf),
    /// An open directory or file (`O_PATH` is enough). The launcher finds it again in its own mount
    /// namespace and refuses another object than this one.
    Handle(Arc<OwnedFd>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindAccess {
    ReadOnly,
    ReadWrite,
}

/// A host directory or file at a place of the view.
#[derive(Debug, Clone)]
pub struct Bind {
    pub source: Source,
    /// Absolute, without `.` and `..`. In a bind before it, it must exist: nothing is ever made there.
    pub place: PathBuf,
    pub access: BindAccess,
    /// Left out in silence if the source is not there (toolchains and caches that may be absent).
    pub optional: bool,
}

/// What to do where a promise about one path cannot be kept at the level reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnheld {
    /// The launch fails with [`CannotHold`](super::CannotHold).
    Must,
    /// It goes on, and [`Running::unheld`](super::Running::unheld) names it.
    IfPossible,
}

/// A place inside a writable bind that must stay as it is.
#[derive(Debug, Clone)]
pub struct Guard {
    /// In the view, like [`Bind::place`]. What is there is read-only, and the folders on the way to
    /// it, up to the bind, cannot be renamed: else another tree could take its place. What is not
    /// there cannot be kept away by a mount, for a mount point would be a write into a person's tree; it is looked
    /// for when asked, see [`Running::appeared`](super::Running::appeared).
    pub place: PathBuf,
    pub hold: OnUnheld,
}

/// Where `/tmp` comes from.
#[derive(Debug, Clone)]
pub enum Tmp {
    /// Memory of its own, gone with the process. Only with a root of its own; below that level there
    /// is no writable `/tmp` at all.
    Memory { bytes: u64 },
    /// A host folder; at every level.
    Folder(Source),
}

/// Half a gibibyte: what compilers and test suites put aside, far below what hurts a machine.
pub const TMP_BYTES: u64 = 512 * 1024 * 1024;

/// What a process sees besides the system (`/usr`, what programs need of `/etc`, `/dev`, `/proc`).
#[derive(Debug, Clone)]
pub struct View {
    /// In this order: a later one may lie inside an earlier one.
    pub binds: Vec<Bind>,
    /// Files and folders, in the view, that show up empty and cannot be opened. Each must exist and be
    /// no link.
    pub masks: Vec<PathBuf>,
    /// Files and folders, in the view, that show up empty, can be opened, and cannot be changed. Each must exist and be
    /// no link. Where this level cannot hold it the launch goes on, and [`Running::unheld`](super::Running::unheld) names
    /// it.
    pub empty: Vec<PathBuf>,
    /// Places, in the view, that must stay where they are: the folders on the way to each, up to the bind, cannot be
    /// renamed. A mask moves along with what it masks only for the command that moves it; the next one is masked by
    /// names again.
    pub pinned: Vec<PathBuf>,
    pub guards: Vec<Guard>,
    pub tmp: Tmp,
    /// A home folder in memory, empty but for binds inside it.
    pub home: Option<PathBuf>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            binds: Vec::new(),
            masks: Vec::new(),
            empty: Vec::new(),
            pinned: Vec::new(),
            guards: Vec::new(),
            tmp: Tmp::Memory { bytes: TMP_BYTES },
            home: None,
        }
    }
}

const GIB: u64 = 1 << 30;

/// What a process tree may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Processor time of each process.
    pub cpu: Option<Duration>,
    /// Bytes of memory: of the whole tree with a cgroup, else of each process (private writable
    /// memory, so that reserved address space does not count).
    pub memory: Option<u64>,
    /// Processes and threads of the whole tree.
    pub pids: Option<u32>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// So much less may be free, on a file system that the tree may write to, than at its start. The launcher does not
    /// enforce it: [`Running::disk_since_launch`](super::Running::disk_since_launch) tells when it is passed.
    pub disk_use: Option<u64>,
    /// So much must stay free there, if so much was free at the start. Told in the same way.
    pub disk_free: Option<u64>,
}

impl Default for Limits {
    /// Wide enough for real builds (a linker, a type checker), narrow enough that a bomb ends.
    fn default() -> Self {
        Self {
            cpu: None,
            memory: Some(8 * GIB),
            pids: Some(2_048),
            file_size: None,
            open_files: Some(4_096),
            disk_use: Some(20 * GIB),
            disk_free: Some(GIB),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// None but a loopback of its own (below the namespaces: none at all).
    Disabled,
    /// The host's.
    Host,
}

#[derive(Debug)]
pub enum Stdin {
    Null,
    Fd(OwnedFd),
}

/// Where a stream that the program writes goes.
#[derive(Debug, Default)]
pub enum Output {
    /// A pipe of its own, whose reading end the [`Running`](super::Running) gives away.
    #[default]
    Pipe,
    /// This: a pipe between two programs, one place for both streams, or `/dev/null`.
    Fd(OwnedFd),
}

/// One launch.
#[derive(Debug)]
pub struct Plan {
    /// The program first: a path of the view, or a name looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// The environment to the letter.
    pub env: Vec<(OsString, OsString)>,
    /// A directory of the view.
    pub cwd: PathBuf,
    pub view: View,
    pub limits: Limits,
    pub network: Network,
    /// Below this nothing runs.
    pub minimum: IsolationLevel,
    /// Above this no layer is put up: to see on one machine what a lesser one gives. It only takes
    /// away, so a minimum above it is never met.
    pub at_most: IsolationLevel,
    /// Handed on as descriptors 3, 4, …
    pub extra_fds: Vec<OwnedFd>,
    pub stdin: Stdin,
    pub stdout: Output,
    pub stderr: Output,
}

impl Plan {
    /// With nothing in view, no network, and the strictest minimum.
    #[must_use]
    pub fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            env: Vec::new(),
            cwd: PathBuf::from("/"),
            view: View::default(),
            limits: Limits::default(),
            network: Network::Disabled,
            minimum: IsolationLevel::Full,
            at_most: IsolationLevel::Full,
            extra_fds: Vec::new(),
            stdin: Stdin::Null,
            stdout: Output::Pipe,
            stderr: Output::Pipe,
        }
    }
}
