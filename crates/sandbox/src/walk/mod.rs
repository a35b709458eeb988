//! Walking a tree beneath a mount, in parallel, from directory handles alone.
//!
//! A directory is opened by one name in the handle of the directory above it and a file by one name in
//! the handle of its own, never following a link; so a walk is beneath its mount by construction and
//! costs one open a file, whatever the depth. What a walk finds may be moved while it runs: a caller that
//! shows a name afterwards checks it once more from the mount ([`MountTable::resolve`]).

mod entry;
mod ignored;
mod list;
mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use entry::Entry;
use entry::WalkDir;
use queue::{Queue, Task};

use crate::{FileError, Kind, MountTable, ResolvedPlace};

/// A directory is listed up to this many entries.
const ENTRIES_MAX: usize = 1_000_000;

/// How deep a walk goes below its start; it holds one handle a level.
const DEPTH_MAX: usize = 256;

/// Why an entry was passed over without being looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassedOver {
    /// A `.gitignore` names it, or it is the folder of a version control system.
    Ignored,
    /// Its name is not UTF-8: no path could name it.
    NotUtf8,
    /// It could not be opened or listed.
    Unreadable,
    /// It lies deeper, or in a larger directory, than a walk goes.
    TooMany,
}

/// What one thread of a walk does with what it finds.
pub trait Visitor: Send {
    /// Something stands there: a file, a directory, or something else (a link is something else).
    fn found(&mut self, entry: &Entry<'_>);
    /// Whether to go into this directory. Asked right before, in about the order of paths.
    fn enters(&mut self, dir: &Entry<'_>) -> bool;
    /// Something was passed over; `path` is relative to the start, lossy if it is not UTF-8.
    fn passed_over(&mut self, path: String, why: PassedOver);
}

/// What to walk, and how.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'w> {
    /// The table that `start` was resolved in: a mount inside another is walked in its place.
    pub table: &'w MountTable,
    /// A directory, or a file, which is then all there is to find.
    pub start: &'w ResolvedPlace,
    /// Entries directly in the start have depth 1.
    pub max_depth: usize,
    /// Also finds what a `.gitignore` names, and the folders of version control systems.
    pub ignored: bool,
    /// Ends the walk early when set, from whichever thread.
    pub stop: &'w AtomicBool,
}

impl Walk<'_> {
    /// Walks with one thread a visitor and gives them back. Hidden folders and files are never found.
    ///
    /// # Errors
    /// If the start is not there any more, or is not what it was.
    pub fn run<V: Visitor>(&self, visitors: Vec<V>) -> Result<Vec<V>, FileError> {
        let mut visitors = visitors.into_iter();
        let Some(mut here) = visitors.next() else { return Ok(Vec::new()) };
        let queue = Queue::new(self.first(&mut here)?);
        std::thread::scope(|scope| {
            let others: Vec<_> = visitors
                .map(|mut visitor| {
                    let queue = &queue;
                    scope.spawn(move || {
                        self.work(queue, &mut visitor);
                        visitor
                    })
                })
                .collect();
            self.work(&queue, &mut here);
            let mut done = vec![here];
            for other in others {
                match other.join() {
                    Ok(visitor) => done.push(visitor),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(done)
        })
    }

    fn first<V: Visitor>(&self, visitor: &mut V) -> Result<Vec<Task>, FileError> {
        let start = self.start;
        match start.kind() {
            Some(Kind::Directory) => {
                let dir = WalkDir::start(start, start.names())?;
                Ok(self.list(dir, visitor, &mut list::Listing::default()))
            }
            Some(found) => {
                let (above, name) = crate::parents::split(start)?;
                let dir = WalkDir::start(start, above)?;
                Ok(vec![Task::Entries(Arc::new(dir), vec![list::Item::new(name.as_str(), found)])])
            }
            None => Err(FileError::NotFound { path: start.path().clone() }),
        }
    }

    fn work<V: Visitor>(&self, queue: &Queue, visitor: &mut V) {
        let mut listing = list::Listing::default();
        while let Some(taken) = queue.next(self.stop) {
            match &taken.task {
                Task::Dir(above, item) => {
                    let entry = Entry::new(above, item);
                    visitor.found(&entry);
                    if entry.depth() >= self.max_depth || !visitor.enters(&entry) {
                        continue;
                    }
                    if entry.depth() >= DEPTH_MAX {
                        visitor.passed_over(entry.relative(), PassedOver::TooMany);
                        continue;
                    }
                    match above.child(item, self.table) {
                        Ok(Some(dir)) => queue.add(self.list(dir, visitor, &mut listing)),
                        // Hidden, or no directory any more: there is nothing to tell of.
                        Ok(None) => {}
                        Err(_) => visitor.passed_over(entry.relative(), PassedOver::Unreadable),
                    }
                }
                Task::Entries(dir, items) => {
                    for item in items {
                        if self.stop.load(Ordering::Relaxed) {
                            break;
                        }
                        visitor.found(&Entry::new(dir, item));
                    }
                }
            }
        }
    }

    /// The work that a directory is, first things last.
    fn list<V: Visitor>(&self, mut dir: WalkDir, visitor: &mut V, listing: &mut list::Listing) -> Vec<Task> {
        let prefix = dir.relative().to_owned();
        let mut over = |name: &[u8], why| {
            visitor.passed_over(format!("{prefix}{}", String::from_utf8_lossy(name)), why);
        };
        let mounted = dir.mounted(self.table);
        match listing.read(&dir, mounted, self.stop, &mut over) {
            Ok(items) => {
                let items = if self.ignored { items } else { ignored::filter(&mut dir, items, &mut over) };
                queue::tasks(&Arc::new(dir), items)
            }
            Err(_) => {
                over(b"", PassedOver::Unreadable);
                Vec::new()
            }
        }
    }
}
