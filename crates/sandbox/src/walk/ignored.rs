//! `.gitignore`: what a search leaves out unless it is named. Only the files of the tree itself count,
//! from the mount's root down, with or without a repository; nothing outside the mount is read.

use std::io::Read as _;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};

use super::PassedOver;
use super::entry::WalkDir;
use super::list::Item;
use crate::handle::{Identity, kind_of, open_child_dir};
use crate::hidden_places::HiddenPlaces;
use crate::{Kind, Name, ResolvedPlace};

const FILE: &str = ".gitignore";

/// Of a longer file the rest is not read.
const FILE_MAX: u64 = 1 << 20;

/// The folders of version control systems: theirs, not the project's.
const CONTROL: [&[u8]; 4] = [b".git", b".hg", b".jj", b".svn"];

/// The rules of one file, and those of the files above it.
pub(super) struct Ignores {
    rules: Gitignore,
    /// From the rules' directory to the start, for one above the start.
    lead: String,
    /// How much of a path relative to the start leads to the rules' directory, for one beneath it.
    from: usize,
    above: Option<Arc<Ignores>>,
}

impl Ignores {
    /// Whether an entry is left out; the nearest file that speaks of it decides.
    fn leaves_out(&self, relative: &str, is_dir: bool) -> bool {
        let mut next = Some(self);
        while let Some(here) = next {
            let beneath = relative.get(here.from..).unwrap_or(relative);
            let path = if here.lead.is_empty() { beneath.into() } else { format!("{}{beneath}", here.lead) };
            match here.rules.matched(Path::new(&path), is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => next = here.above.as_deref(),
            }
        }
        false
    }
}

/// The rules that hold for the directory `names` beneath the mount, from the files above it.
pub(super) fn above(resolved: &ResolvedPlace, names: &[Name]) -> Option<Arc<Ignores>> {
    let mut dir = resolved.mount().dir().try_clone().ok()?;
    let mut found = None;
    for (depth, name) in names.iter().enumerate() {
        let lead: String = names[depth..].iter().flat_map(|name| [name.as_str(), "/"]).collect();
        if let Some(rules) = read(&dir, resolved.hidden()) {
            found = Some(Arc::new(Ignores { rules, lead, from: 0, above: found }));
        }
        dir = open_child_dir(&dir, name).ok()?;
    }
    found
}

/// The entries that are not left out; the directory learns its own rules.
pub(super) fn filter(dir: &mut WalkDir, mut items: Vec<Item>, over: &mut impl FnMut(&[u8], PassedOver)) -> Vec<Item> {
    let has_rules = items.binary_search_by(|item| item.name.to_bytes().cmp(FILE.as_bytes())).is_ok();
    if let Some(rules) = has_rules.then(|| read(dir, dir.hidden())).flatten() {
        let from = dir.relative().len();
        dir.ignores = Some(Arc::new(Ignores { rules, lead: String::new(), from, above: dir.ignores.take() }));
    }
    items.retain(|item| {
        let is_dir = item.kind == Kind::Directory;
        let control = is_dir && CONTROL.contains(&item.name.to_bytes());
        let ignored = || {
            let ignores = dir.ignores.as_ref()?;
            let relative = format!("{}{}", dir.relative(), item.text()?);
            Some(ignores.leaves_out(&relative, is_dir))
        };
        let left_out = control || ignored().unwrap_or(false);
        if left_out {
            over(item.name.to_bytes(), PassedOver::Ignored);
        }
        !left_out
    });
    items
}

/// The rules in the `.gitignore` of this directory. A link is not followed; a line that is no rule is
/// passed over, as git does.
fn read(dir: &impl AsFd, hidden: &HiddenPlaces) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, FILE, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    if kind_of(&stat) != Kind::File || hidden.contains(Identity::of(&stat)) {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::from(fd).take(FILE_MAX).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&bytes).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
