//! Which system calls a command may not make. The programs are compiled once a process, here, and go
//! to the launcher as instructions.
//!
//! A deny list: real builds use most of what a kernel has. What is denied are ways to more kernel
//! than a build needs, ways to other processes, ways around the other layers, and programs that would
//! lend their owner's rights to others later. Denied is `EPERM`; a few calls are `ENOSYS` ([`ABSENT`]).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::Layer;
use super::plan::Network;
use super::posture::Layers;
use super::wire::Instruction;

/// Denied whatever the arguments.
const DENIED: &[libc::c_long] = &[
    // A second way to nearly every call, which no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Files by number, past every path.
    libc::SYS_open_by_handle_at,
    // Keys of the person who started us.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // More kernel than a build needs.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_syslog,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// The same calls through the x32 door of x86-64, where most have the same number with this bit and a
/// few have numbers of their own.
#[cfg(target_arch = "x86_64")]
const X32_BIT: libc::c_long = 0x4000_0000;
#[cfg(target_arch = "x86_64")]
const X32_OWN: &[libc::c_long] = &[
    514, // ioctl
    521, // ptrace
    528, // kexec_load
    539, // process_vm_readv
    540, // process_vm_writev
];

/// Denied as well where the host's files are in sight. System V and POSIX queues go with them: their
/// names are neither paths nor addresses, so without a namespace of its own nothing else holds them.
const DENIED_AMONG_FILES: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Denied among the host's processes when this argument names one (0 is oneself): each changes
/// another process of the same user, and Landlock has a rule for signals only.
const DENIED_ON_OTHERS: &[(libc::c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];

/// Newer than the list of `libc`.
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;

/// The parts of the host that a command can reach at its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// A root of its own.
    Nothing,
    /// The host's files: a daemon's socket would be reachable, docker's for one.
    Files,
    /// No namespace keeps processes apart.
    FilesAndProcesses,
}

impl Exposure {
    pub(crate) fn of(layers: Layers) -> Self {
        if layers.has(Layer::PrivateRoot) {
            Self::Nothing
        } else if layers.has(Layer::Namespaces) {
            Self::Files
        } else {
            Self::FilesAndProcesses
        }
    }

    /// Families of socket that may be made; none is none at all. (`socketpair` needs no address and
    /// stays.) `getaddrinfo` asks netlink for addresses, so it goes wherever the Internet goes; [`other_sockets`] says
    /// what of each.
    fn families(self, network: Network) -> &'static [libc::c_int] {
        match (self, network) {
            (Self::Nothing, _) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            (Self::FilesAndProcesses, Network::Disabled) => &[],
            (_, _) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        }
    }
}

/// The filters for a place, to be put up in this order. Empty where this processor is not known.
pub(crate) fn filters(network: Network, around: Exposure) -> &'static [Vec<Instruction>] {
    static COMPILED: [OnceLock<Vec<Vec<Instruction>>>; 6] = [const { OnceLock::new() }; 6];
    let index = around as usize * 2 + usize::from(network == Network::Host);
    COMPILED[index].get_or_init(|| compile(network, around).unwrap_or_default())
}

fn compile(network: Network, around: Exposure) -> Option<Vec<Vec<Instruction>>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).ok()?;
    let filter = |rules, errno: libc::c_int| -> Option<Vec<Instruction>> {
        let action = SeccompAction::Errno(errno.cast_unsigned());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).ok()?;
        let program: BpfProgram = filter.try_into().ok()?;
        Some(program.iter().map(|one| (one.code, one.jt, one.jf, one.k)).collect())
    };
    let denied = filter(rules(network, around)?, libc::EPERM)?;
    let absent = ABSENT.iter().flat_map(|call| every_door(*call)).map(|call| (call, Vec::new()));
    Some(vec![filter(absent.collect(), libc::ENOSYS)?, denied])
}

/// Not there, so that callers fall back: what counts in these lies in memory, where no filter sees it
/// (flags of `clone3`, the mode of a new file in `openat2`).
const ABSENT: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

fn every_door(call: libc::c_long) -> impl Iterator<Item = libc::c_long> {
    #[cfg(target_arch = "x86_64")]
    let doors = [call, call | X32_BIT];
    #[cfg(not(target_arch = "x86_64"))]
    let doors = [call];
    doors.into_iter()
}

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

fn rules(network: Network, around: Exposure) -> Option<Rules> {
    let mut rules = Rules::new();
    let among_files: &[_] = if around == Exposure::Nothing { &[] } else { DENIED_AMONG_FILES };
    for call in DENIED.iter().chain(among_files).chain(&[SYS_OPEN_TREE_ATTR]) {
        rules.extend(every_door(*call).map(|door| (door, Vec::new())));
    }
    #[cfg(target_arch = "x86_64")]
    rules.extend(X32_OWN.iter().map(|call| (call | X32_BIT, Vec::new())));

    let new_user = libc::CLONE_NEWUSER as u64;
    let mut conditional = vec![
        (libc::SYS_clone, vec![when(&[(0, has(new_user), new_user)])?]),
        // Typing into a person's terminal, and the console's selection.
        (libc::SYS_ioctl, vec![when(&[(1, Eq, libc::TIOCSTI)])?, when(&[(1, Eq, libc::TIOCLINUX)])?]),
    ];
    let families = around.families(network);
    conditional.push((libc::SYS_socket, other_sockets(families)?));
    if !families.contains(&libc::AF_UNIX) {
        // Half of a pair of datagram sockets can still be sent anywhere. `RAW` is another word for it.
        let kind = |kind: libc::c_int| when(&[(1, MaskedEq(0xf), u64::from(kind.cast_unsigned()))]);
        conditional.push((libc::SYS_socketpair, vec![kind(libc::SOCK_DGRAM)?, kind(libc::SOCK_RAW)?]));
    }
    conditional.extend(no_setuid()?);
    if around == Exposure::FilesAndProcesses {
        for (call, argument) in DENIED_ON_OTHERS {
            conditional.push((*call, vec![when(&[(*argument, Ne, 0)])?]));
        }
        // Everyone of this user, oneself included.
        let everyone = u64::from(libc::PRIO_USER);
        let others = conditional.iter_mut().find(|(call, _)| *call == libc::SYS_setpriority)?;
        others.1.push(when(&[(0, Eq, everyone)])?);
    }
    for (call, call_rules) in conditional {
        rules.extend(every_door(call).map(|door| (door, call_rules.clone())));
    }
    Some(rules)
}

/// Sockets that may not be made, where those of `families` may. No rule at all denies the call whatever its arguments.
///
/// Of netlink only `NETLINK_ROUTE` is left, as `getaddrinfo`, `getifaddrs` and the runtimes of languages use it; the other
/// protocols reach the firewall, the audit log, the crypto code and more of the kernel. Of the Internet only streams and
/// datagrams are left: raw sockets need a capability anyway, and the other kinds load protocols that no build speaks.
fn other_sockets(families: &[libc::c_int]) -> Option<Vec<SeccompRule>> {
    /// The lower bits of the second argument; the others are flags.
    const KIND: u64 = 0xf;
    const PACKET: libc::c_int = 10;
    const DCCP: libc::c_int = 6;
    let number = |number: libc::c_int| u64::from(number.cast_unsigned());
    let of_kind = |family, kind| when(&[(0, Eq, number(family)), (1, MaskedEq(KIND), number(kind))]);
    if families.is_empty() {
        return Some(Vec::new());
    }
    let unlike: Vec<_> = families.iter().map(|family| (0, Ne, number(*family))).collect();
    let mut rules = vec![when(&unlike)?];
    let odd = [libc::SOCK_RDM, libc::SOCK_SEQPACKET, DCCP, PACKET];
    for family in families.iter().copied().filter(|family| *family != libc::AF_UNIX) {
        let wrong = if family == libc::AF_NETLINK { libc::SOCK_STREAM } else { libc::SOCK_RAW };
        for kind in odd.into_iter().chain([wrong]) {
            rules.push(of_kind(family, kind)?);
        }
    }
    rules.push(when(&[(0, Eq, number(libc::AF_NETLINK)), (2, Ne, number(libc::NETLINK_ROUTE))])?);
    Some(rules)
}

/// A program that lends its owner's rights to its caller outlives the call, and where we are
/// root it is root's. Programs with the group's bit are let through: folders carry it as well.
fn no_setuid() -> Option<Vec<(libc::c_long, Vec<SeccompRule>)>> {
    let bit = u64::from(libc::S_ISUID);
    let mode = |argument| when(&[(argument, has(bit), bit)]);
    // Without these flags the argument is whatever was in the register.
    let open = |flags, mode| -> Option<Vec<SeccompRule>> {
        [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY]
            .iter()
            .map(|flag| u64::from(flag.cast_unsigned()))
            .map(|flag| when(&[(flags, has(flag), flag), (mode, has(bit), bit)]))
            .collect()
    };
    Some(vec![
        (libc::SYS_fchmod, vec![mode(1)?]),
        (libc::SYS_fchmodat, vec![mode(2)?]),
        (SYS_FCHMODAT2, vec![mode(2)?]),
        (libc::SYS_mknodat, vec![mode(2)?]),
        (libc::SYS_openat, open(2, 3)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, vec![mode(1)?]),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, vec![mode(1)?]),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, vec![mode(1)?]),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, open(1, 2)?),
    ])
}

fn has(bits: u64) -> SeccompCmpOp {
    MaskedEq(bits)
}

/// When all of these arguments are so.
fn when(conditions: &[(u8, SeccompCmpOp, u64)]) -> Option<SeccompRule> {
    let one = |(argument, op, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, op.clone(), *value).ok()
    };
    SeccompRule::new(conditions.iter().map(one).collect::<Option<_>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_filters_on_this_processor() {
        for network in [Network::Disabled, Network::Host] {
            for around in [Exposure::Nothing, Exposure::Files, Exposure::FilesAndProcesses] {
                assert_eq!(filters(network, around).len(), 2, "{network:?} {around:?}");
            }
        }
        assert_ne!(filters(Network::Disabled, Exposure::Nothing), filters(Network::Disabled, Exposure::Files));
    }
}
