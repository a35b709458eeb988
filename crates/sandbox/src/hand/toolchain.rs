//! Real builds: which parts of the host's home a command sees, so that compilers work in the hand.
//!
//! Programs and toolchains are bound read-only where they are, for they know their own place. Caches
//! are folders of their own for each workspace, writable, at the place where the tool looks for them:
//! what one agent leaves in a cache is never compiled into another agent's program. Where commands have no
//! network such a folder could never be filled, so while it is empty the person's own downloads are shown
//! in it, read-only. Nothing named `bin` is ever writable, and the rest of the home stays hidden: credentials lie beside toolchains
//! (`~/.cargo/credentials.toml`, `~/.npmrc`), so a toolchain's home is bound in part where it has any.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::identity;
use super::plan::{Bind, BindAccess, Network, Source};

/// What is known of the person's environment.
#[derive(Debug, Clone)]
pub struct Host {
    pub home: PathBuf,
    /// `PATH` and the variables that name toolchain homes ([`Host::VARIABLES`]).
    pub variables: Vec<(OsString, OsString)>,
}

impl Host {
    /// Variables that say where a toolchain lies. Their values are places, no secrets.
    pub const VARIABLES: &'static [&'static str] = &[
        "RUSTUP_HOME",
        "CARGO_HOME",
        "RUSTUP_TOOLCHAIN",
        "NVM_DIR",
        "FNM_DIR",
        "VOLTA_HOME",
        "PYENV_ROOT",
        "VIRTUAL_ENV",
        "GOROOT",
        "GOPATH",
        "MISE_DATA_DIR",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "JAVA_HOME",
    ];

    /// Of this process. None if it has no home.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())?;
        let names = Self::VARIABLES.iter().chain(&["PATH"]);
        let variables = names.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect();
        Some(Self { home, variables })
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_os_str())
    }

    /// The place a variable names, or the usual one in the home.
    fn place(&self, variable: &str, usual: &str) -> PathBuf {
        let named = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.unwrap_or_else(|| self.home.join(usual))
    }
}

/// What to add to a plan. The view's `home` must be [`Host::home`].
#[derive(Debug, Clone)]
pub struct Toolchains {
    /// In an order in which each can be made.
    pub binds: Vec<Bind>,
    /// `HOME`, `PATH` (only what is in view) and the variables of [`Host::VARIABLES`] that are set.
    pub env: Vec<(OsString, OsString)>,
    /// Who the person is, for git, where their home is not in view.
    pub identity: Option<Bind>,
}

/// Already in every view, or never to be shown as a whole.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/dev", "/etc", "/sys"];

/// Folders that hold far more than programs.
const TOO_WIDE: &[&str] = &["/", "/tmp", "/var", "/home", "/root", "/opt", "/mnt", "/srv", "/run", "/var/tmp"];

/// Read-only: variable, usual place in the home, and the parts to bind (none: all of it).
const HOMES: &[(&str, &str, &[&str])] = &[
    ("RUSTUP_HOME", ".rustup", &["toolchains", "settings.toml", "update-hashes"]),
    ("CARGO_HOME", ".cargo", &["bin"]),
    ("NVM_DIR", ".nvm", &["versions", "alias", "nvm.sh"]),
    ("FNM_DIR", ".local/share/fnm", &["node-versions", "aliases"]),
    ("VOLTA_HOME", ".volta", &["bin", "tools"]),
    ("PYENV_ROOT", ".pyenv", &["bin", "shims", "versions", "libexec", "plugins", "pyenv.d", "completions", "version"]),
    ("", ".local/share/uv", &["python", "tools"]),
    ("GOROOT", "sdk", &[]),
    ("GOPATH", "go", &["bin"]),
    ("MISE_DATA_DIR", ".local/share/mise", &["installs", "shims"]),
    ("ASDF_DATA_DIR", ".asdf", &["bin", "lib", "libexec", "shims", "installs", "plugins", "asdf.sh"]),
    ("ASDF_DIR", ".asdf", &["bin", "lib", "libexec", "shims", "installs", "plugins", "asdf.sh"]),
    ("JAVA_HOME", ".sdkman/candidates", &[]),
    ("VIRTUAL_ENV", ".no-virtual-env", &[]),
];

/// Writable for one workspace: variable, usual place, part, and the folder's name in the caches.
const CACHES: &[(&str, &str, &str, &str)] = &[
    ("CARGO_HOME", ".cargo", "registry", "cargo-registry"),
    ("CARGO_HOME", ".cargo", "git", "cargo-git"),
    ("GOPATH", "go", "pkg", "go-pkg"),
    ("", ".npm", "", "npm"),
    ("", ".cache", "", "cache"),
    ("", ".local/share/pnpm/store", "", "pnpm-store"),
];

/// What the person has downloaded: the cache of [`CACHES`] it is shown in, and the parts of that, which go together.
/// The first is empty until something was downloaded; a failed attempt leaves its traces in the others.
const DOWNLOADS: &[(&str, &[&str])] = &[("cargo-registry", &["cache", "index"]), ("go-pkg", &["mod"])];

/// What a command of one workspace sees of the toolchains. `caches` is that workspace's folder for
/// them in the data directory (made if it is not there); `hidden` are places that no bind may show,
/// above all the data directory itself. `network` says whether commands can download for themselves.
///
/// # Errors
///
/// If a cache folder cannot be made.
pub fn toolchains(host: &Host, caches: &Path, hidden: &[PathBuf], network: Network) -> io::Result<Toolchains> {
    let mut shown = ToolchainBinds { host, hidden, binds: Vec::new() };
    for (variable, usual, parts) in HOMES {
        let home = host.place(variable, usual);
        if parts.is_empty() {
            shown.read_only(&home);
        }
        for part in *parts {
            shown.read_only(&home.join(part));
        }
    }
    let path = host.variable("PATH").unwrap_or(OsStr::new("/usr/bin:/bin"));
    let folders = std::env::split_paths(path).filter(|folder| in_system(folder) || shown.read_only(folder));
    let path = std::env::join_paths(folders.collect::<Vec<_>>()).map_err(io::Error::other)?;

    let mut binds = shown.binds;
    for (variable, usual, part, name) in CACHES {
        let source = caches.join(name);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&source)?;
        let place = host.place(variable, usual).join(part);
        // `join("")` leaves a slash at the end.
        let place: PathBuf = place.components().collect();
        if network == Network::Disabled {
            let parts = DOWNLOADS.iter().find(|(cache, _)| cache == name).map_or(&[][..], |(_, parts)| parts);
            binds.extend(downloads(&place, &source, parts, hidden));
        }
        binds.push(Bind { source: Source::Path(source), place, access: BindAccess::ReadWrite, optional: false });
    }
    // What lies inside another comes after it. Caches cover no toolchain: `~/.cache` holds none.
    binds.sort_by_key(|bind| bind.place.components().count());
    let mut env = vec![("HOME".into(), host.home.clone().into_os_string()), ("PATH".into(), path)];
    env.extend(host.variables.iter().filter(|(name, _)| name != "PATH").cloned());
    let place = host.home.join(".gitconfig");
    let identity = identity::file(&host.home, caches)?;
    let identity =
        identity.map(Source::Path).map(|source| Bind { source, place, access: BindAccess::ReadOnly, optional: true });
    Ok(Toolchains { binds, env, identity })
}

/// Shows what the person has in `place` inside the cache at `source`, as long as that has nothing of its own.
fn downloads(place: &Path, source: &Path, parts: &[&str], hidden: &[PathBuf]) -> Vec<Bind> {
    let mut binds = Vec::new();
    for part in parts {
        let (theirs, own) = (place.join(part), source.join(part));
        let Ok(real) = theirs.canonicalize() else { return Vec::new() };
        if hidden.iter().any(|hidden| hidden.starts_with(&real) || real.starts_with(hidden)) {
            return Vec::new();
        }
        // A command may have put anything there, and nothing can stand on a link; that must not stop the next one.
        let _ = std::fs::create_dir_all(&own);
        let is_folder = own.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let is_empty = || std::fs::read_dir(&own).is_ok_and(|mut entries| entries.next().is_none());
        if !is_folder || (binds.is_empty() && !is_empty()) {
            return Vec::new();
        }
        binds.push(Bind { source: Source::Path(real), place: theirs, access: BindAccess::ReadOnly, optional: true });
    }
    binds
}

/// Collects the binds that show a toolchain to a command.
struct ToolchainBinds<'a> {
    host: &'a Host,
    hidden: &'a [PathBuf],
    binds: Vec<Bind>,
}

impl ToolchainBinds<'_> {
    /// Binds a place where it is, if it is there and no more than a toolchain. Says whether it is in view.
    fn read_only(&mut self, place: &Path) -> bool {
        let plain = place.is_absolute() && !place.components().any(|part| part == std::path::Component::ParentDir);
        let Ok(real) = place.canonicalize() else { return false };
        if !plain || self.too_wide(place) || self.too_wide(&real) {
            return false;
        }
        // A link in the home becomes a folder with what it leads to, and what it leads to stands at its
        // own place, too: scripts in it may name that.
        for at in [place, real.as_path()] {
            let at: PathBuf = at.components().collect();
            let covered = in_system(&at) || self.binds.iter().any(|bind| at.starts_with(&bind.place));
            if !covered {
                let source = Source::Path(real.clone());
                self.binds.push(Bind { source, place: at, access: BindAccess::ReadOnly, optional: true });
            }
        }
        true
    }

    fn too_wide(&self, place: &Path) -> bool {
        TOO_WIDE.iter().any(|wide| place == Path::new(wide))
            || self.host.home.starts_with(place)
            || self.hidden.iter().any(|hidden| hidden.starts_with(place) || place.starts_with(hidden))
    }
}

fn in_system(place: &Path) -> bool {
    SYSTEM.iter().any(|system| place.starts_with(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(home: &Path, path: &str) -> Host {
        Host { home: home.to_owned(), variables: vec![("PATH".into(), path.into())] }
    }

    #[test]
    fn toolchains_are_shown_and_what_lies_beside_them_is_not() {
        let home = tempfile::tempdir().expect("a folder");
        let data = home.path().join("data");
        let made = [".cargo/bin", ".cargo/registry", ".rustup/toolchains", ".ssh", "bin", "data/store"];
        for name in made {
            std::fs::create_dir_all(home.path().join(name)).expect("made");
        }
        std::fs::write(home.path().join(".cargo/credentials.toml"), "token").expect("written");
        let wide = home.path().display();
        let path = format!("/usr/bin:{wide}/bin:{wide}:/:{wide}/data/store:relative:{wide}/missing");
        let found =
            toolchains(&host(home.path(), &path), &data.join("caches"), std::slice::from_ref(&data), Network::Disabled)
                .expect("found");

        let read_only: Vec<_> = found.binds.iter().filter(|bind| bind.access == BindAccess::ReadOnly).collect();
        let mut places: Vec<_> =
            read_only.iter().filter_map(|bind| bind.place.strip_prefix(home.path()).ok()).collect();
        places.sort();
        assert_eq!(places, [".cargo/bin", ".rustup/toolchains", "bin"].map(Path::new));
        let path = found.env.iter().find(|(name, _)| name == "PATH").expect("a PATH");
        assert_eq!(path.1, OsString::from(format!("/usr/bin:{wide}/bin")));
        // Writable are caches of ours alone, never a `bin`.
        for bind in found.binds.iter().filter(|bind| bind.access == BindAccess::ReadWrite) {
            assert!(
                matches!(&bind.source, Source::Path(source) if source.starts_with(data.join("caches"))),
                "{bind:?}"
            );
            assert!(!bind.place.ends_with("bin"), "{bind:?}");
        }
    }

    #[test]
    fn what_the_person_downloaded_is_shown_read_only_where_nothing_else_can_be_had() {
        let home = tempfile::tempdir().expect("a folder");
        let caches = home.path().join("caches");
        for name in [".cargo/registry/index/x", ".cargo/registry/cache/x"] {
            std::fs::create_dir_all(home.path().join(name)).expect("made");
        }
        let shown = |network| -> Vec<PathBuf> {
            let found = toolchains(&host(home.path(), "/usr/bin"), &caches, &[], network).expect("found");
            let read_only = found.binds.iter().filter(|bind| bind.access == BindAccess::ReadOnly);
            read_only.map(|bind| bind.place.clone()).collect()
        };
        let registry = home.path().join(".cargo/registry");
        assert_eq!(shown(Network::Disabled), [registry.join("cache"), registry.join("index")]);
        std::fs::create_dir_all(caches.join("cargo-registry/index/tried")).expect("made");
        assert_eq!(shown(Network::Disabled).len(), 2, "a failed attempt is no download");
        assert_eq!(shown(Network::Host), Vec::<PathBuf>::new(), "a command fills its own");
        std::fs::create_dir_all(caches.join("cargo-registry/cache/own")).expect("made");
        assert_eq!(shown(Network::Disabled), Vec::<PathBuf>::new(), "what it has is not covered");
        std::fs::remove_dir_all(caches.join("cargo-registry/cache")).expect("removed");
        for target in [home.path(), Path::new("/nowhere/at/all")] {
            std::os::unix::fs::symlink(target, caches.join("cargo-registry/cache")).expect("a link");
            assert_eq!(shown(Network::Disabled), Vec::<PathBuf>::new(), "nothing stands on a link");
            std::fs::remove_file(caches.join("cargo-registry/cache")).expect("removed");
        }
    }
}
