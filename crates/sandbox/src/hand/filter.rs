//! Which system calls a command may not make. The programs are compiled once a process, here, and go
//! to the launcher as instructions.
//!
//! A deny list: real builds use most of what a kernel has. What is denied are ways to more kernel
//! than a build needs, ways to other processes, and ways around the other layers. Denied is `EPERM`;
//! `clone3` is `ENOSYS`, for its flags lie in memory where no filter can see them, and callers then
//! fall back to `clone`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::plan::Network;
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

/// Sockets that may be made, by where the command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// A network namespace of its own: nobody is there to be reached.
    OwnNetwork,
    /// The host's network, with a root of its own.
    HostNetwork,
    /// The host's network and the host's files: no local sockets, for a daemon's would be reachable.
    HostNetworkAndFiles,
    /// No namespace keeps anybody apart: none at all. (`socketpair` needs no address and stays.)
    None,
}

impl Sockets {
    pub(crate) fn of(network: Network, own_network: bool, private_root: bool) -> Self {
        match network {
            Network::Disabled if own_network => Self::OwnNetwork,
            Network::Disabled => Self::None,
            Network::Host if private_root => Self::HostNetwork,
            Network::Host => Self::HostNetworkAndFiles,
        }
    }

    /// `getaddrinfo` asks netlink for addresses, so it goes wherever the Internet goes.
    fn families(self) -> &'static [libc::c_int] {
        match self {
            Self::OwnNetwork | Self::HostNetwork => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            Self::HostNetworkAndFiles => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            Self::None => &[],
        }
    }
}

/// The filters for a place, to be put up in this order. Empty where this processor is not known.
pub(crate) fn filters(sockets: Sockets) -> &'static [Vec<Instruction>] {
    static COMPILED: OnceLock<[Vec<Vec<Instruction>>; 4]> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        [Sockets::OwnNetwork, Sockets::HostNetwork, Sockets::HostNetworkAndFiles, Sockets::None]
            .map(|sockets| compile(sockets).unwrap_or_default())
    });
    &compiled[sockets as usize]
}

fn compile(sockets: Sockets) -> Option<Vec<Vec<Instruction>>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).ok()?;
    let filter = |rules, errno: libc::c_int| -> Option<Vec<Instruction>> {
        let action = SeccompAction::Errno(errno.cast_unsigned());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).ok()?;
        let program: BpfProgram = filter.try_into().ok()?;
        Some(program.iter().map(|one| (one.code, one.jt, one.jf, one.k)).collect())
    };
    let denied = filter(rules(sockets)?, libc::EPERM)?;
    let absent = filter(every_door(libc::SYS_clone3).map(|call| (call, Vec::new())).collect(), libc::ENOSYS)?;
    Some(vec![absent, denied])
}

fn every_door(call: libc::c_long) -> impl Iterator<Item = libc::c_long> {
    #[cfg(target_arch = "x86_64")]
    let doors = [call, call | X32_BIT];
    #[cfg(not(target_arch = "x86_64"))]
    let doors = [call];
    doors.into_iter()
}

fn rules(sockets: Sockets) -> Option<BTreeMap<libc::c_long, Vec<SeccompRule>>> {
    let mut rules: BTreeMap<_, Vec<SeccompRule>> = BTreeMap::new();
    for call in DENIED {
        rules.extend(every_door(*call).map(|door| (door, Vec::new())));
    }
    #[cfg(target_arch = "x86_64")]
    rules.extend(X32_OWN.iter().map(|call| (call | X32_BIT, Vec::new())));

    let when = |argument, length, op, value| SeccompCondition::new(argument, length, op, value).ok();
    let dword = SeccompCmpArgLen::Dword;
    let new_user = libc::CLONE_NEWUSER as u64;
    let clone =
        SeccompRule::new(vec![when(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(new_user), new_user)?]).ok()?;
    // Typing into somebody's terminal, and the console's selection.
    let type_in = SeccompRule::new(vec![when(1, dword.clone(), SeccompCmpOp::Eq, libc::TIOCSTI)?]).ok()?;
    let select = SeccompRule::new(vec![when(1, dword.clone(), SeccompCmpOp::Eq, libc::TIOCLINUX)?]).ok()?;
    let families = sockets.families();
    let other_family = if families.is_empty() {
        Vec::new()
    } else {
        let unlike =
            families.iter().map(|family| when(0, dword.clone(), SeccompCmpOp::Ne, u64::from(family.cast_unsigned())));
        vec![SeccompRule::new(unlike.collect::<Option<_>>()?).ok()?]
    };
    for (call, call_rules) in
        [(libc::SYS_clone, vec![clone]), (libc::SYS_ioctl, vec![type_in, select]), (libc::SYS_socket, other_family)]
    {
        rules.extend(every_door(call).map(|door| (door, call_rules.clone())));
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_filters_on_this_processor() {
        for sockets in [Sockets::OwnNetwork, Sockets::HostNetwork, Sockets::HostNetworkAndFiles, Sockets::None] {
            assert_eq!(filters(sockets).len(), 2, "{sockets:?}");
        }
        assert_ne!(filters(Sockets::OwnNetwork), filters(Sockets::None));
    }
}
