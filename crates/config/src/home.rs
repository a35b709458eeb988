//! Where things are on disk (cli §3). Nothing is ever kept in the workspace.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use portcullis_base::{Digest, Entropy};
use portcullis_event::CheckpointKey;
use portcullis_secret::SealingKey;

use crate::error::ConfigError;

/// What to do where data cannot be kept.
pub const ELSEWHERE: &str = "make it yours, or set PORTCULLIS_HOME to a folder that you may write to";

/// The data folder.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

/// A variable that names an absolute path; XDG says to ignore any other.
fn folder(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// `$xdg/portcullis`, else `~/fallback/portcullis`.
fn xdg(variable: &str, fallback: &str) -> Option<PathBuf> {
    let base = folder(variable).or_else(|| folder("HOME").map(|home| home.join(fallback)))?;
    Some(base.join("portcullis"))
}

/// The user's configuration, if there is a place for one.
pub fn user_config() -> Option<PathBuf> {
    xdg("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("config.toml"))
}

impl Home {
    /// Finds it; makes nothing.
    pub fn find() -> Result<Self, ConfigError> {
        if let Some(named) = env::var_os("PORTCULLIS_HOME").filter(|name| !name.is_empty()) {
            let root = PathBuf::from(&named);
            // Taken from wherever a command happens to run, it would be another store in each project.
            if !root.is_absolute() {
                let text = format!(
                    "PORTCULLIS_HOME is `{}`, which is not a whole path; set it to one that begins with /",
                    root.display()
                );
                return Err(ConfigError::Invalid(text));
            }
            return Ok(Self { root });
        }
        let root = xdg("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
            let why = match env::var_os("HOME").filter(|home| !home.is_empty()) {
                Some(home) => format!("HOME is `{}`, which is not a whole path", Path::new(&home).display()),
                None => "HOME is not set".to_owned(),
            };
            ConfigError::invalid(format!(
                "there is no place for data: {why}; set HOME to a path that begins with /, or PORTCULLIS_HOME to a folder \
                 of your own"
            ))
        })?;
        Ok(Self { root })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder and the one of the keys, each for its owner alone.
    pub fn prepare(&self) -> Result<(), ConfigError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(self.keys());
        made.map_err(|e| ConfigError::DataFolder(format!("{}; {}", self.cannot_be_made(&e), self.to_do())))
    }

    fn to_do(&self) -> String {
        if self.file_in_the_way().is_some() { self.way_out() } else { ELSEWHERE.to_owned() }
    }

    /// What stands in the way of a call, which makes the folder and writes to it; nothing is left behind.
    pub fn obstacle(&self) -> Option<String> {
        [self.root.clone(), self.keys()]
            .iter()
            .find_map(|folder| {
                let there = folder.ancestors().find(|folder| !matches!(folder.try_exists(), Ok(false)))?;
                // Only making something proves that something can be made, and only reading that it can be read.
                let probe = there.join(format!(".portcullis-doctor-{}", std::process::id()));
                let made = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
                made.and_then(|()| if there == folder { fs::read_dir(there).map(drop) } else { Ok(()) }).err()
            })
            .map(|why| self.cannot_be_made(&why))
    }

    /// What a person can do about that.
    pub fn way_out(&self) -> String {
        if let Some(file) = self.file_in_the_way() {
            return format!("move the file {} away, or set PORTCULLIS_HOME to a folder", file.display());
        }
        if self.read_only() {
            return "its file system is mounted read-only, and no permission changes that: mount it so that it can be written to, \
                    or set PORTCULLIS_HOME to a folder elsewhere"
                .to_owned();
        }
        let Ok(facts) = fs::metadata(&self.root) else { return ELSEWHERE.to_owned() };
        let (owner, mode, me) = (facts.uid(), facts.mode() & 0o7777, rustix::process::geteuid().as_raw());
        let root = self.root.display();
        let whose =
            if owner == me { "it is yours".to_owned() } else { format!("it is user {owner}'s, and you are {me}") };
        let mine = if owner == me { String::new() } else { format!("`chown -R {me} {root}` as root, then ") };
        format!(
            "{whose}, with mode {mode:03o}: {mine}`chmod -R u+rwX {root}`; or set PORTCULLIS_HOME to a folder that you may write to"
        )
    }

    /// Whether nothing at all can be written where it is, or would be.
    fn read_only(&self) -> bool {
        let there = self.root.ancestors().find(|place| place.exists());
        let facts = there.and_then(|place| rustix::fs::statvfs(place).ok());
        facts.is_some_and(|facts| facts.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
    }

    /// A file where there must be a folder: no permission helps.
    fn file_in_the_way(&self) -> Option<&Path> {
        self.root.ancestors().find(|place| place.exists()).filter(|place| !place.is_dir())
    }

    fn cannot_be_made(&self, why: &io::Error) -> String {
        if let Some(file) = self.file_in_the_way() {
            let root = self.root.display();
            return format!("the data folder {root} cannot be made: {} is a file, not a folder", file.display());
        }
        format!("the data folder {} cannot be made or written to: {why}", self.root.display())
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("portcullis.db")
    }

    /// Where `audit export` puts its folders if no other place is named.
    pub fn evidence(&self) -> PathBuf {
        self.root.join("evidence")
    }

    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Where toolchains keep what they fetch and build for one workspace: never shared, for what one agent leaves in a
    /// cache must not be built into another's program.
    pub fn caches(&self, workspace: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let name = Digest::of(workspace.as_os_str().as_bytes()).to_string();
        self.all_caches().join(name.get(..32).unwrap_or(&name))
    }

    /// The caches of every workspace.
    pub fn all_caches(&self) -> PathBuf {
        self.root.join("caches")
    }

    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    pub fn checkpoint_key_path(&self) -> PathBuf {
        self.keys().join("checkpoint.key")
    }

    pub fn sealing_key_path(&self) -> PathBuf {
        self.keys().join("sealing.key")
    }

    /// The key that inputs are sealed with until they settle; made if missing.
    pub fn sealing_key(&self, entropy: &dyn Entropy) -> Result<SealingKey, ConfigError> {
        self.prepare()?;
        Ok(SealingKey::load_or_create(&self.sealing_key_path(), entropy)?)
    }

    /// The key of checkpoints; made if missing.
    pub fn checkpoint_key(&self, entropy: &dyn Entropy) -> Result<CheckpointKey, ConfigError> {
        self.prepare()?;
        let path = self.checkpoint_key_path();
        // Both keys are files of one form with one set of checks: making and checking it is done there.
        SealingKey::load_or_create(&path, entropy)?;
        let text = fs::read_to_string(&path).map_err(|e| ConfigError::cannot_read(&path, e))?;
        let bytes: Result<Digest, _> = text.trim_end().to_ascii_lowercase().parse();
        let bytes = bytes.map_err(|e| ConfigError::cannot_read(&path, e))?;
        Ok(CheckpointKey::from_bytes(*bytes.as_bytes()))
    }

    /// The key of checkpoints, if there is one.
    pub fn existing_checkpoint_key(&self, entropy: &dyn Entropy) -> Result<Option<CheckpointKey>, ConfigError> {
        match self.checkpoint_key_path().try_exists() {
            Ok(false) => Ok(None),
            _ => self.checkpoint_key(entropy).map(Some),
        }
    }
}
