//! How much this process grows.

use anyhow::{Context as _, Result};

/// The most memory that was resident since it was made.
pub struct Peak(i64);

impl Peak {
    /// From now on. What was resident before and is not any more does not count.
    pub fn begin() -> Result<Self> {
        // 5: "reset the peak resident set size" (proc(5)).
        std::fs::write("/proc/self/clear_refs", "5").context("/proc/self/clear_refs")?;
        Ok(Self(kib("VmRSS:")?))
    }

    /// By how many KiB it has grown at most.
    pub fn grown_kib(&self) -> Result<i64> {
        Ok(kib("VmHWM:")? - self.0)
    }
}

/// The most that another process had resident so far.
pub fn peak_kib(process: u32) -> Result<i64> {
    of(&format!("/proc/{process}/status"), "VmHWM:")
}

fn kib(name: &str) -> Result<i64> {
    of("/proc/self/status", name)
}

fn of(file: &str, name: &str) -> Result<i64> {
    let status = std::fs::read_to_string(file)?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
    number.with_context(|| format!("{file} has no {name}"))
}
