//! The organisation's file: what nothing else weakens (tool-contract 13.2).

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use portcullis_base::IsolationLevel;
use serde::Deserialize as _;
use serde::de::value::{Error as WordError, StrDeserializer};

use crate::parse::rules_of;
use crate::tables::Document;
use crate::{Layer, PolicyError, Problem, Rule, RuleEffect};

const KEYS: [&str; 4] = ["rules", "min_sandbox", "approvals_allow", "workspace_is_home"];
/// Bytes of the file.
const MAX_BYTES: u64 = 4 << 20;
/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Who owns a file and who may write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOwner {
    pub uid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// Where the facts about an open file come from; tests give others than the system's.
pub trait OwnerCheck {
    /// The owner and mode of `file`. An error stops the program: facts that cannot be had are not
    /// good facts.
    ///
    /// # Errors
    /// If the file cannot be looked at.
    fn owner(&self, file: &File) -> io::Result<FileOwner>;
}

/// Asks the operating system.
#[derive(Debug, Clone, Copy)]
pub struct SystemOwner;

impl OwnerCheck for SystemOwner {
    fn owner(&self, file: &File) -> io::Result<FileOwner> {
        let facts = file.metadata()?;
        Ok(FileOwner { uid: facts.uid(), mode: facts.mode() & 0o7777 })
    }
}

/// What the organisation demands: deny rules, a least sandbox level, whether one may start a run with
/// `--approvals allow`, and whether a workspace may hold a home folder. The default demands nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnterprisePolicy {
    rules: Vec<Rule>,
    min_sandbox: Option<IsolationLevel>,
    approvals_allow: bool,
    workspace_is_home: bool,
}

impl Default for EnterprisePolicy {
    fn default() -> Self {
        Self { rules: Vec::new(), min_sandbox: None, approvals_allow: true, workspace_is_home: true }
    }
}

impl EnterprisePolicy {
    /// Where it is.
    pub const PATH: &'static str = "/etc/portcullis/policy.toml";

    /// Reads the file at `path`; without one the default holds.
    ///
    /// # Errors
    /// If there is a file and it is not root's alone, cannot be read, or is wrong in any way. The
    /// program must stop then: to go on would be to weaken it.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        Self::load_with(path, &SystemOwner)
    }

    /// [`Self::load`] with the owner told by `check`.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_with(path: &Path, check: &dyn OwnerCheck) -> Result<Self, PolicyError> {
        let unreadable = |source| PolicyError::Unreadable { path: path.to_owned(), source };
        // A link that leads nowhere is there, and is not "no file".
        match fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(unreadable(e)),
            // Opening a pipe would wait for a writer; only a file is read.
            Ok(_) if !fs::metadata(path).map_err(unreadable)?.is_file() => {
                return Err(unreadable(io::Error::other("it is not a regular file")));
            }
            Ok(_) => {}
        }
        let file = File::open(path).map_err(unreadable)?;
        // Facts of the open file, not of the name, which may lead elsewhere a moment later.
        let FileOwner { uid, mode } = check.owner(&file).map_err(unreadable)?;
        let problem = if uid != 0 {
            Some(format!("it belongs to user {uid}, not to root"))
        } else if mode & OTHERS_WRITE != 0 {
            Some(format!("others may write it (mode {:03o})", mode & 0o777))
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(PolicyError::NotTrusted { path: path.to_owned(), problem });
        }
        let mut text = String::new();
        let read = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        if read as u64 > MAX_BYTES {
            return Err(unreadable(io::Error::other("it is longer than 4 MiB")));
        }
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// If it is not TOML, has an unknown key, or holds anything but deny rules.
    pub fn parse(text: &str, file: &str) -> Result<Self, PolicyError> {
        let document = Document::new(file, text);
        let table = document.parse()?;
        document.only_known(&table, &KEYS)?;
        let rules = rules_of(&document, &table, Layer::Enterprise)?;
        if let Some(rule) = rules.iter().find(|rule| rule.effect != RuleEffect::Deny) {
            return Err(PolicyError::at(&rule.source, Problem::NotDeny(rule.effect.as_str())));
        }
        let min_sandbox = match table.get("min_sandbox") {
            None => None,
            Some(value) => {
                let word = document.text(value, "min_sandbox")?;
                let level = IsolationLevel::deserialize(StrDeserializer::<WordError>::new(word));
                Some(level.map_err(|_| {
                    let wanted = "none, seccomp_only, no_namespaces, no_pivot or full".to_owned();
                    let (key, value_text) = ("min_sandbox".to_owned(), word.to_owned());
                    document.fault(value.span().start, Problem::BadValue { key, value: value_text, wanted })
                })?)
            }
        };
        let flag = |key: &str| table.get(key).map_or(Ok(true), |value| document.flag(value, key));
        let (approvals_allow, workspace_is_home) = (flag("approvals_allow")?, flag("workspace_is_home")?);
        Ok(Self { rules, min_sandbox, approvals_allow, workspace_is_home })
    }

    /// Deny rules of the strongest layer.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The least isolation anything may run in.
    #[must_use]
    pub fn min_sandbox(&self) -> Option<IsolationLevel> {
        self.min_sandbox
    }

    /// Whether `--approvals allow` may be used.
    #[must_use]
    pub fn approvals_allow(&self) -> bool {
        self.approvals_allow
    }

    /// Whether a workspace may be, or hold, a home folder or a folder of Portcullis' own. If not, neither a flag nor a
    /// person's answer makes it one.
    #[must_use]
    pub fn workspace_is_home(&self) -> bool {
        self.workspace_is_home
    }
}
