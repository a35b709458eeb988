//! Who sits at the terminal.

use std::fs;
use std::io::{self, IsTerminal as _};

/// The login name of the real user: from the password file, since a variable is anyone's to set.
pub fn login() -> String {
    let uid = rustix::process::getuid().as_raw();
    let known = fs::read_to_string("/etc/passwd").ok().and_then(|text| name_of(uid, &text));
    known.unwrap_or_else(|| format!("uid-{uid}"))
}

fn name_of(uid: u32, passwd: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The device that standard input is, if it is a terminal.
pub fn terminal() -> Option<String> {
    let named = || fs::read_link("/proc/self/fd/0").ok().map(|path| path.display().to_string());
    if io::stdin().is_terminal() { named() } else { None }
}

/// The process that started this one.
pub fn parent_process() -> Option<String> {
    let pid = rustix::process::getppid()?.as_raw_nonzero();
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{} (pid {pid})", name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_of(1000, passwd).as_deref(), Some("ada"));
        assert_eq!(name_of(7, passwd), None);
    }
}
