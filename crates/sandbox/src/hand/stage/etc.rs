//! What programs need of `/etc`, and nothing else of it: no `shadow`, no other people's names.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::super::wire::Orders;

/// Copied, for they are small. Links are copied as links: what they point to lies in `/usr`.
const FILES: &[&str] = &[
    "ld.so.cache",
    "ld.so.conf",
    "localtime",
    "timezone",
    "os-release",
    "debian_version",
    "mime.types",
    "services",
    "protocols",
    "gitconfig",
    "inputrc",
    "locale.conf",
    "magic",
    "ssl/openssl.cnf",
    "ssl/cert.pem",
    "pki/tls/openssl.cnf",
    "pki/tls/cert.pem",
    "java-11-openjdk/net.properties",
    "java-11-openjdk/logging.properties",
    "java-17-openjdk/net.properties",
    "java-17-openjdk/logging.properties",
    "java-21-openjdk/net.properties",
    "java-21-openjdk/logging.properties",
    "java-25-openjdk/net.properties",
    "java-25-openjdk/logging.properties",
];

/// With the host's network only: who is found there is the host's matter.
const NETWORK_FILES: &[&str] = &["resolv.conf", "hosts", "host.conf", "gai.conf"];

/// Bound read-only by [`super::root`]. Of certificates only what is public: beside it lie private keys, and who
/// starts us may be root, whom no mode keeps out.
pub(super) const FOLDERS: &[&str] = &[
    "alternatives",
    "ssl/certs",
    "pki/ca-trust",
    "pki/java",
    "pki/tls/certs",
    "ca-certificates",
    "crypto-policies",
    "ld.so.conf.d",
    "fonts",
    "terminfo",
    "java",
    // Debian's Java keeps the files here without which no program of it starts. Not the folder beside it, `management`,
    // where a password may lie.
    "java-11-openjdk/security",
    "java-17-openjdk/security",
    "java-21-openjdk/security",
    "java-25-openjdk/security",
    "python3",
    "perl",
    "openmpi",
];

/// Larger ones are left out: a cache of libraries of a whole distribution is half of this.
const FILE_BYTES: u64 = 1024 * 1024;

/// Everything that is readable at a level without a root of its own, to be granted one by one.
pub(super) fn all(network: bool) -> impl Iterator<Item = String> {
    let network = if network { NETWORK_FILES } else { &[] };
    ["passwd", "group", "nsswitch.conf", "hosts"]
        .iter()
        .chain(FILES)
        .chain(FOLDERS)
        .chain(network)
        .map(|name| format!("/etc/{name}"))
}

/// Fills the folder. What cannot be had is left out: a program that misses it says so.
pub(super) fn fill(etc: &Path, orders: &Orders) -> std::io::Result<()> {
    let network: &[&str] = if orders.own_network { &[] } else { NETWORK_FILES };
    for name in FILES.iter().chain(network) {
        copy(&Path::new("/etc").join(name), &etc.join(name));
    }
    if orders.own_network {
        std::fs::write(etc.join("hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
    }
    std::fs::write(etc.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files dns\n")?;
    std::fs::write(etc.join("passwd"), people(orders))?;
    std::fs::write(etc.join("group"), groups())
}

fn copy(from: &Path, to: &Path) {
    let Ok(meta) = from.symlink_metadata() else { return };
    if let Some(folder) = to.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    if meta.is_symlink() {
        // `/etc/resolv.conf` is often a link into `/run`, which is not in the view: take the content.
        let inside = std::fs::read_link(from)
            .is_ok_and(|target| Path::new("/etc").join(&target).starts_with("/usr") || in_usr(&target));
        if inside {
            let _ = std::fs::read_link(from).and_then(|target| symlink(target, to));
            return;
        }
    }
    let Ok(meta) = from.metadata() else { return };
    if meta.is_file() && meta.len() <= FILE_BYTES {
        let _ = std::fs::read(from).and_then(|bytes| std::fs::write(to, bytes));
    }
}

/// A relative link such as `../usr/lib/os-release`.
fn in_usr(target: &Path) -> bool {
    target.strip_prefix("..").is_ok_and(|rest| rest.starts_with("usr"))
}

/// Root, nobody, and whoever we are.
fn people(orders: &Orders) -> Vec<u8> {
    let uid = rustix::process::geteuid().as_raw();
    let mut text =
        b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n".to_vec();
    if uid == 0 || uid == 65534 {
        return text;
    }
    let line = std::fs::read("/etc/passwd").ok().and_then(|bytes| {
        bytes.split(|byte| *byte == b'\n').find(|line| field(line, 2) == Some(uid)).map(<[u8]>::to_vec)
    });
    let line = line.unwrap_or_else(|| {
        let home = if orders.home.is_empty() { Path::new("/") } else { super::super::wire::as_path(&orders.home) };
        let gid = rustix::process::getegid().as_raw();
        [format!("user:x:{uid}:{gid}::").as_bytes(), home.as_os_str().as_bytes(), b":/bin/sh"].concat()
    });
    text.extend_from_slice(&line);
    text.push(b'\n');
    text
}

fn groups() -> Vec<u8> {
    let gid = rustix::process::getegid().as_raw();
    let mut text = b"root:x:0:\nnogroup:x:65534:\n".to_vec();
    if gid == 0 || gid == 65534 {
        return text;
    }
    let name = std::fs::read("/etc/group").ok().and_then(|bytes| {
        let line = bytes.split(|byte| *byte == b'\n').find(|line| field(line, 2) == Some(gid))?.to_vec();
        line.split(|byte| *byte == b':').next().map(<[u8]>::to_vec)
    });
    text.extend_from_slice(&name.unwrap_or_else(|| b"user".to_vec()));
    text.extend_from_slice(format!(":x:{gid}:\n").as_bytes());
    text
}

fn field(line: &[u8], index: usize) -> Option<u32> {
    let field = line.split(|byte| *byte == b':').nth(index)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}
