//! Opening what a command needs, and no more: the store, or a runtime over it for one workspace.

use std::ops::Deref;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portcullis::local::{Installation, StorePresence};
use portcullis_base::SessionId;
use portcullis_config::{ELSEWHERE, Settings};
use portcullis_terminal::render::{Term, place, quoted};

use crate::args::Globals;
use crate::exit::{ExitKind, failed, fault, usage};
use crate::{last_start, loss, telemetry};

/// Notices of commits are hints and may be lost; whoever waits for one looks again after this.
pub const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A session that is none: to look at what is offered to every one.
pub const NO_SESSION: SessionId = SessionId::from_u128(0);

/// The folder that this run is about, links in its path resolved.
pub fn workspace(globals: &Globals) -> anyhow::Result<PathBuf> {
    let named = globals.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    let cannot =
        |why: &dyn std::fmt::Display| usage(format!("the workspace {} cannot be used: {why}", named.display()));
    let folder = named.canonicalize().map_err(|e| cannot(&e))?;
    if !folder.is_dir() {
        return Err(cannot(&"it is not a folder"));
    }
    Ok(folder)
}

/// An open store, and the command lines that lead to it again.
pub struct World {
    installation: Arc<Installation>,
    /// Flags that a command must repeat to find this store again.
    flags: String,
}

impl Deref for World {
    type Target = Arc<Installation>;

    fn deref(&self) -> &Arc<Installation> {
        &self.installation
    }
}

impl World {
    /// Opens the store, making it and its keys if there are none.
    pub fn open(settings: Settings, term: &Term) -> anyhow::Result<Self> {
        telemetry::warn_unsent(&settings, term);
        let told = *term;
        let opened = Installation::open(settings, |key| {
            told.note(&format!(
                "warning: {} is missing: events are recorded without checkpoints; restore it from a backup",
                place(key)
            ));
        })?;
        let world = Self::of(opened.telling(Arc::new(move |folder, why| {
            let text = "and no command can make it either: what would hold it is read-only for commands";
            told.note(&format!("warning: {} cannot be made ({why}), {text}", place(folder)));
        })));
        last_start::tell_network(&world.settings, term);
        Ok(world)
    }

    /// Opens the store if there is one, to look at it.
    pub fn look(settings: Settings) -> anyhow::Result<Option<Self>> {
        if !is_there(&settings)? {
            return Ok(None);
        }
        Ok(Some(Self::of(Installation::look(settings)?)))
    }

    /// Opens the store, which must be there.
    pub fn existing(globals: &Globals) -> anyhow::Result<Self> {
        let settings = globals.settings()?;
        let database = settings.database.clone();
        Self::look(settings)?.ok_or_else(|| {
            failed(format!("there is no store at {} yet; `portcullis call` makes one", database.display()))
        })
    }

    fn of(installation: Installation) -> Self {
        loss::tell(installation.lost());
        let flags = repeated_flags(&installation.settings);
        Self { installation: Arc::new(installation), flags }
    }

    /// A command line that goes on from here.
    pub fn command(&self, words: &str) -> String {
        format!("portcullis{} {words}", self.flags)
    }
}

/// Whether there is a store to look at. The usual one may be yet to come; one that a person named and that is not there
/// is a slip, and must not pass for one in which nothing happened. Neither must one that was there and is gone.
pub fn is_there(settings: &Settings) -> anyhow::Result<bool> {
    let database = &settings.database;
    let presence = StorePresence::of(settings)
        .map_err(|e| fault(ExitKind::Broken, format!("cannot look at {}: {e}; {ELSEWHERE}", database.display())))?;
    match presence {
        StorePresence::There => Ok(true),
        StorePresence::Gone(lost) => Err(loss::gone_fault(database, &lost)),
        StorePresence::NotYet if settings.chosen.store => Err(usage(format!(
            "there is no store at {}, which --store or PORTCULLIS_STORE names; correct the path, or make a store there \
             with `portcullis call`",
            database.display()
        ))),
        StorePresence::NotYet => Ok(false),
    }
}

fn repeated_flags(settings: &Settings) -> String {
    let mut flags = String::new();
    let mut add = |flag: &str, scheme: &str, path: &Path| {
        let word = [scheme.as_bytes(), path.as_os_str().as_bytes()].concat();
        flags.push_str(&format!(" {flag} {}", quoted(&word)));
    };
    let chosen = &settings.chosen;
    if chosen.store {
        add("--store", "sqlite:", &settings.database);
    }
    if chosen.artifacts {
        add("--artifacts", "file:", &settings.artifacts);
    }
    if let Some(path) = &chosen.config {
        add("--config", "", &std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    }
    if chosen.workspace_is_home {
        flags.push_str(" --workspace-is-home");
    }
    if let Some(level) = chosen.sandbox {
        flags.push_str(&format!(" --sandbox {level}"));
    }
    flags
}
