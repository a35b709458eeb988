//! Which processes there are, as `/proc` tells it.

use std::collections::BTreeMap;

/// What `/proc` tells of one process: its parent and when it began, which together with its id names it for good.
fn process(pid: u32) -> Option<(u32, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // One that ended and was not reaped yet runs nothing.
    (state != "Z").then(|| (parent, fields.nth(17).unwrap_or_default().to_owned()))
}

fn processes() -> BTreeMap<u32, (u32, String)> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, process(pid)?))).collect()
}

/// Everything that a process started, and what that started.
pub fn descendants(of: u32) -> Vec<(u32, String)> {
    let all = processes();
    let (mut found, mut next) = (Vec::new(), vec![of]);
    while let Some(parent) = next.pop() {
        for (pid, (_, began)) in all.iter().filter(|(_, (of, _))| *of == parent) {
            found.push((*pid, began.clone()));
            next.push(*pid);
        }
    }
    found
}

pub fn runs_still((pid, began): &(u32, String)) -> bool {
    process(*pid).is_some_and(|(_, now)| now == *began)
}

/// Whether any process has this word on its command line.
pub fn marked(mark: &str) -> bool {
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    processes().keys().any(has)
}
