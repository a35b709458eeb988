//! What this machine can do, found by trying it, and in words what is missing.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::plan::{Limits, Network, TMP_BYTES};
use super::posture::Layers;
use super::spawn::{self, Outputs, PreparedLaunch};
use super::wire::{LimitOrders, Orders, REPORT_BYTES, Report, Step};
use super::{Layer, MissingLayer, Posture, cgroup, filter};

/// What a probe found.
#[derive(Debug, Clone)]
pub(crate) struct Probed {
    pub(crate) layers: Layers,
    /// Where limits of a whole tree can be set.
    pub(crate) cgroups: Option<PathBuf>,
    pub(crate) posture: Posture,
}

/// A launcher that says nothing for so long is broken, not slow.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries all layers, then less and less until it works.
pub(crate) fn probe(program: &Path) -> Result<Probed, String> {
    let mut layers = Layers::ALL;
    let mut missing = Vec::new();
    loop {
        match try_once(program, layers).map_err(|error| error.to_string())? {
            Report::Started => break,
            Report::Failed { step, errno, .. } => match absent(step, errno) {
                Some(layer) if layers.has(layer) => {
                    missing.push(describe(layer, step, errno));
                    missing.extend(gone_with(layer, layers));
                    layers = layers.without(layer);
                }
                _ => return Err(format!("{}: {}", step.name(), io::Error::from_raw_os_error(errno))),
            },
            Report::Exited { .. } => return Err("the launcher ended without a word".into()),
        }
    }
    let cgroups = match cgroup::base() {
        Ok(place) => Some(place),
        Err(why) => {
            missing.push(no_cgroup(&why, layers));
            None
        }
    };
    Ok(Probed { layers, cgroups, posture: Posture { level: layers.level(), missing } })
}

/// A launch of nothing.
pub(crate) fn orders(layers: Layers, network: Network) -> Orders {
    let own_network = layers.has(Layer::Namespaces) && network == Network::Disabled;
    Orders {
        layers,
        parent: std::process::id(),
        own_network,
        probe: false,
        has_stdin: false,
        has_cgroup: false,
        handles: 0,
        extra_fds: 0,
        tmp_bytes: TMP_BYTES,
        home: Vec::new(),
        argv: Vec::new(),
        env: Vec::new(),
        cwd: b"/".to_vec(),
        mounts: Vec::new(),
        limits: LimitOrders::of(&Limits::default(), false),
        filters: filter::filters(network, filter::Exposure::of(layers)).to_vec(),
    }
}

fn try_once(program: &Path, layers: Layers) -> io::Result<Report> {
    let orders = Orders { probe: true, ..orders(layers, Network::Disabled) };
    let spawned = spawn::spawn_blocking(PreparedLaunch::new(program, &orders, &[], Outputs::default())?)?;
    let mut end = [PollFd::new(&spawned.socket, PollFlags::IN)];
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    if rustix::event::poll(&mut end, Some(&patience))? == 0 {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the launcher does not answer"));
    }
    let mut bytes = [0; REPORT_BYTES];
    let count = match rustix::net::recv(&spawned.socket, &mut bytes, RecvFlags::DONTWAIT) {
        Ok((_, count)) => count,
        // It ended without reading its orders.
        Err(Errno::CONNRESET) => 0,
        Err(errno) => return Err(errno.into()),
    };
    Report::from_bytes(&bytes[..count]).ok_or_else(|| {
        io::Error::other(
            "the launcher ended without a word: is it a program that calls `hand::init()` first in `main`?",
        )
    })
}

/// Which layer a failure says is not there. Nothing else may make us go on with less.
pub(crate) fn absent(step: Step, errno: i32) -> Option<Layer> {
    // Used up or set to 0 is ENOSPC or EUSERS; a filter of a container answers EPERM or ENOSYS.
    let is_absence = [
        Errno::PERM,
        Errno::ACCESS,
        Errno::NOSPC,
        Errno::NOSYS,
        Errno::INVAL,
        Errno::OPNOTSUPP,
        Errno::USERS,
        Errno::NODEV,
        Errno::ROFS,
    ]
    .iter()
    .any(|one| one.raw_os_error() == errno);
    if !is_absence {
        return None;
    }
    Some(match step {
        Step::UserNamespace | Step::IdMaps => Layer::UserNamespace,
        Step::Namespaces | Step::Hostname => Layer::Namespaces,
        Step::Propagation
        | Step::RootTmpfs
        | Step::SystemBind
        | Step::Skeleton
        | Step::Devices
        | Step::MountAttributes
        | Step::Tmp
        | Step::Pivot => Layer::PrivateRoot,
        Step::Proc => Layer::FreshProc,
        Step::CgroupJoin => Layer::Cgroup,
        Step::Landlock => Layer::Landlock,
        Step::Seccomp => Layer::Seccomp,
        Step::Orders
        | Step::ParentGone
        | Step::ForkInit
        | Step::View
        | Step::Capabilities
        | Step::NoNewPrivileges
        | Step::Descriptors
        | Step::ForkProgram
        | Step::Limits
        | Step::Cwd
        | Step::Exec => return None,
    })
}

pub(crate) fn describe(layer: Layer, step: Step, errno: i32) -> MissingLayer {
    let (open, raise) = words(layer);
    let error = io::Error::from_raw_os_error(errno);
    MissingLayer { layer, why: format!("{} failed ({error}); {open}", step.name()), raise: raise.to_owned() }
}

/// The layer of the most promises that cannot be put up without this one, if it was there: a reader of which layers
/// are missing need not know which rest on which.
pub(crate) fn gone_with(layer: Layer, layers: Layers) -> Option<MissingLayer> {
    let root = Layer::PrivateRoot;
    if layer == root || !layers.has(root) || layers.without(layer).has(root) {
        return None;
    }
    let why = format!("it needs {}; {}", layer.as_str(), words(root).0);
    Some(MissingLayer { layer: root, why, raise: words(layer).1.to_owned() })
}

/// What the absence leaves open, and what would raise it.
fn words(layer: Layer) -> (&'static str, &'static str) {
    match layer {
        Layer::Launcher => ("no command can be started", "call `portcullis::hand::init()` as the first line of `main`"),
        Layer::UserNamespace => (
            "a command is not kept apart from its user by a namespace",
            "set the sysctl user.max_user_namespaces above 0 (and kernel.unprivileged_userns_clone=1, \
             kernel.apparmor_restrict_unprivileged_userns=0 where they exist); in a container, use a seccomp \
             profile that allows unshare",
        ),
        Layer::Namespaces => (
            "other processes and the host's files can be seen; a command's processes are found by their \
             parents, so one that kills the launcher itself may outlive the call",
            "allow user namespaces, or run as root; in a container: --cap-add SYS_ADMIN",
        ),
        Layer::PrivateRoot => (
            "a command sees the host's paths, nothing inside a folder it may use can be masked or guarded, and it \
             can change modes, times and attributes of its user's other files, which Landlock does not cover",
            "Linux 5.12 or newer; in a container, a profile that allows mount (docker: --security-opt \
             apparmor=unconfined --security-opt seccomp=unconfined)",
        ),
        Layer::FreshProc => (
            "there is no /proc in the hand, which some programs need",
            "a container with all of /proc (docker: --security-opt systempaths=unconfined; podman: --security-opt \
             unmask=ALL)",
        ),
        Layer::Cgroup => (
            "memory is limited for each process, not for the tree",
            "a delegated cgroup of version 2: start Portcullis by `systemd-run --user --scope -p Delegate=yes`",
        ),
        Layer::Landlock => (
            "files are kept away by mounts alone, if at all",
            "Linux 5.19 or newer with `landlock` in the boot parameter lsm=",
        ),
        Layer::Seccomp => ("every system call is open", "a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or arm64"),
    }
}

/// The layers that a plan did not want.
pub(crate) fn not_wanted(left: Layers) -> impl Iterator<Item = MissingLayer> {
    let all = [Layer::UserNamespace, Layer::Namespaces, Layer::PrivateRoot, Layer::Landlock, Layer::Seccomp];
    all.into_iter().filter(move |layer| !left.has(*layer)).map(|layer| {
        let why = format!("the plan wants no better level; {}", words(layer).0);
        MissingLayer { layer, why, raise: "raise `Plan::at_most`".to_owned() }
    })
}

fn no_cgroup(why: &str, layers: Layers) -> MissingLayer {
    let (_, raise) = words(Layer::Cgroup);
    let pids = if layers.has(Layer::FreshProc) {
        "processes by the pid namespace (Linux 6.14) and RLIMIT_NPROC"
    } else {
        "processes by RLIMIT_NPROC alone, which counts all of the user's and does not bind root"
    };
    MissingLayer {
        layer: Layer::Cgroup,
        why: format!("{why}; memory is limited for each process (RLIMIT_DATA), not for the tree; {pids}"),
        raise: raise.to_owned(),
    }
}

/// The posture of a program that cannot start commands.
pub(crate) fn unavailable(why: &str) -> Posture {
    let (_, raise) = words(Layer::Launcher);
    let missing = MissingLayer { layer: Layer::Launcher, why: why.to_owned(), raise: raise.to_owned() };
    Posture { level: portcullis_base::IsolationLevel::None, missing: vec![missing] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_absent_layer_lets_a_launch_go_on_with_less() {
        let (perm, nomem) = (Errno::PERM.raw_os_error(), Errno::NOMEM.raw_os_error());
        assert_eq!(absent(Step::UserNamespace, Errno::NOSPC.raw_os_error()), Some(Layer::UserNamespace));
        assert_eq!(absent(Step::Pivot, perm), Some(Layer::PrivateRoot));
        assert_eq!(absent(Step::Seccomp, Errno::INVAL.raw_os_error()), Some(Layer::Seccomp));
        // No memory is trouble, not absence; and the caller's own mistakes are nobody's layer.
        assert_eq!(absent(Step::Pivot, nomem), None);
        for step in [Step::View, Step::Cwd, Step::Exec, Step::Capabilities, Step::NoNewPrivileges, Step::ParentGone] {
            assert_eq!(absent(step, perm), None, "{step:?}");
        }
    }
}
