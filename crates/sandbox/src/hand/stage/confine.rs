//! What is taken from the process itself: capabilities, new privileges, files (Landlock), calls.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use rustix::io::Errno;
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::super::posture::Layer;
use super::super::wire::{Orders, Step};
use super::root::Grants;
use super::{Failure, StageResult};

/// In this order: Landlock and seccomp need `no_new_privs`, and seccomp denies what comes before it.
pub(super) fn confine(orders: &Orders, grants: Grants) -> StageResult<()> {
    drop_capabilities().map_err(Failure::at(Step::Capabilities))?;
    // Init has the program's user and lives in its pid namespace: nobody there may look into it.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Failure::at(Step::Capabilities))?;
    rustix::thread::set_no_new_privs(true).map_err(Failure::at(Step::NoNewPrivileges))?;
    if orders.layers.has(Layer::Landlock) {
        landlock(grants).map_err(Failure::at(Step::Landlock))?;
    }
    if orders.layers.has(Layer::Seccomp) {
        seccomp(orders)?;
    }
    Ok(())
}

fn drop_capabilities() -> Result<(), Errno> {
    // Without these, root would get every capability back by its next exec.
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED;
    match rustix::thread::set_capabilities_secure_bits(bits) {
        // Who has none to lose has no right to say so.
        Err(Errno::PERM) if nothing_to_gain() => {}
        other => other?,
    }
    for number in 0..64 {
        match rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // Past the last one this kernel knows.
            Err(Errno::INVAL) => break,
            Err(Errno::PERM) if nothing_to_gain() => break,
            Err(errno) => return Err(errno),
        }
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Whether no exec can bring a capability: an ordinary user under `no_new_privs`, or a root whose
/// bounding set is empty.
fn nothing_to_gain() -> bool {
    let bounded = |number: u32| {
        let one = CapabilitySet::from_bits_retain(1_u64 << number);
        rustix::thread::capability_is_in_bounding_set(one).unwrap_or(false)
    };
    !rustix::process::geteuid().is_root() || !(0..64).any(bounded)
}

fn landlock(grants: Grants) -> Result<(), Errno> {
    let read = AccessFs::from_read(ABI::V5);
    let all = AccessFs::from_all(ABI::V5);
    let allow = |access| move |fd: OwnedFd| Ok::<_, landlock::RulesetError>(PathBeneath::new(fd, access));
    let ruleset = Ruleset::default()
        // Where files may not be moved between folders at all, no build works: then rather without.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .map_err(|_| Errno::NOSYS)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|ruleset| ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rules(grants.read.into_iter().map(allow(read))))
        .and_then(|ruleset| ruleset.add_rules(grants.write.into_iter().map(allow(all))))
        .map_err(|_| Errno::NOSYS)?;
    match ruleset.restrict_self() {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
        _ => Err(Errno::NOSYS),
    }
}

/// From here on nobody outside can be signalled, where the kernel knows how (Landlock ABI 6).
pub(super) fn no_signals_out() -> Result<(), Errno> {
    let ruleset = Ruleset::default().scope(Scope::Signal).and_then(Ruleset::create).map_err(|_| Errno::NOSYS)?;
    ruleset.restrict_self().map(drop).map_err(|_| Errno::NOSYS)
}

fn seccomp(orders: &Orders) -> StageResult<()> {
    if orders.filters.is_empty() {
        return Err(Failure::at(Step::Seccomp)(Errno::NOSYS));
    }
    for filter in &orders.filters {
        let program: Vec<_> =
            filter.iter().map(|&(code, jt, jf, k)| seccompiler::sock_filter { code, jt, jf, k }).collect();
        seccompiler::apply_filter(&program).map_err(|error| {
            let errno = match &error {
                seccompiler::Error::Seccomp(io) | seccompiler::Error::Prctl(io) => Errno::from_io_error(io),
                _ => None,
            };
            Failure::at(Step::Seccomp)(errno.unwrap_or(Errno::INVAL))
        })?;
    }
    Ok(())
}
