//! Leases and fences (store §5): one writer a session, and how the death of one is proven.

use portcullis_base::{SessionId, Timestamp, WorkerId};
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// Who holds a lease: enough to prove its death on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseOwner {
    pub worker: WorkerId,
    /// Which boot of which machine.
    pub host: String,
    pub pid: u32,
    /// The process's start time in the kernel's own unit: a reused pid has another.
    pub started: u64,
    /// What a person calls it, such as `portcullis call`.
    pub what: String,
    #[serde(default)]
    pub kind: HolderKind,
}

/// How long a process means to hold a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// For one call or answer. It lets go by itself, so another caller waits for it.
    Brief,
    /// For as long as it likes: a worker, a conversation, an embedding program. Another caller leaves it what is to be done.
    #[default]
    Standing,
}

impl LeaseOwner {
    /// The same for one call or answer.
    #[must_use]
    pub fn brief(self) -> Self {
        Self { kind: HolderKind::Brief, ..self }
    }
}

impl std::fmt::Display for LeaseOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", self.what, self.pid)
    }
}

/// A timed right to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub session: SessionId,
    pub fence: u64,
    pub owner: LeaseOwner,
    pub until: Timestamp,
    pub last_seq: u64,
    pub before: PreviousLease,
}

/// How the lease before this one ended: what its holder had begun may still be going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousLease {
    /// It was given back, or there was none.
    GivenBack,
    /// Its holder is proven dead: nothing of it goes on.
    Dead,
    /// It ran out; its holder may live, and be inside an effect.
    RanOut,
}

/// What a claim gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    Granted(Lease),
    /// Someone else holds it, and is not known to be dead.
    Held {
        owner: LeaseOwner,
        until: Timestamp,
    },
    /// It is due, and no process may take it: what is recorded of it does not hold ([`StoreError::Damaged`]).
    Refused(StoreError),
}

impl Claim {
    /// The lease, if the claim gave one.
    #[must_use]
    pub fn granted(self) -> Option<Lease> {
        match self {
            Self::Granted(lease) => Some(lease),
            Self::Held { .. } | Self::Refused(_) => None,
        }
    }
}

/// What is known of a lease owner's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    /// Proven: its lease counts as expired.
    Dead,
    /// On another host, or not to be told: only the lease's end frees it.
    Unknown,
}

/// Who can tell whether a lease owner lives.
pub trait LivenessOracle: Send + Sync {
    fn liveness(&self, owner: &LeaseOwner) -> Liveness;
}

/// Asks this host's process table.
#[derive(Debug, Clone)]
pub struct HostLiveness {
    host: String,
}

impl HostLiveness {
    /// Reads this boot's identity; without one no death can be proven and leases simply run out.
    #[must_use]
    pub fn new() -> Self {
        let read = |path| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
        let boot = read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        // A pid means nothing outside its namespace: processes of two containers must not judge each other.
        let namespace = std::fs::read_link("/proc/self/ns/pid").map(|p| p.display().to_string()).unwrap_or_default();
        Self { host: format!("{boot}/{namespace}") }
    }

    /// The owner record of this process, which holds a session for as long as it likes.
    #[must_use]
    pub fn this_process(&self, worker: WorkerId, what: &str) -> LeaseOwner {
        let pid = std::process::id();
        LeaseOwner {
            worker,
            host: self.host.clone(),
            pid,
            started: start_time(pid).unwrap_or(0),
            what: what.to_owned(),
            kind: HolderKind::default(),
        }
    }
}

impl Default for HostLiveness {
    fn default() -> Self {
        Self::new()
    }
}

/// Field 22 of `/proc/PID/stat`, after the command name in parentheses; `None` if there is no such
/// process, or only its zombie: that one runs nothing any more.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit_once(") ")?.1;
    let mut fields = after_name.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl LivenessOracle for HostLiveness {
    fn liveness(&self, owner: &LeaseOwner) -> Liveness {
        if owner.host != self.host || self.host == "/" {
            return Liveness::Unknown;
        }
        match start_time(owner.pid) {
            Some(started) if started == owner.started => Liveness::Alive,
            _ => Liveness::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_a_dead_and_a_foreign_owner_are_told_apart() {
        let host = HostLiveness::new();
        let me = host.this_process(WorkerId::from_u128(1), "test");
        assert_eq!(host.liveness(&me), Liveness::Alive);
        let reused = LeaseOwner { started: me.started + 1, ..me.clone() };
        assert_eq!(host.liveness(&reused), Liveness::Dead);
        let elsewhere = LeaseOwner { host: "another".to_owned(), ..me };
        assert_eq!(host.liveness(&elsewhere), Liveness::Unknown);
        let mut child = std::process::Command::new("true").spawn().expect("`true` runs");
        let dead = LeaseOwner { pid: child.id(), ..host.this_process(WorkerId::from_u128(2), "child") };
        child.wait().expect("it ends");
        assert_eq!(host.liveness(&dead), Liveness::Dead);
    }
}
