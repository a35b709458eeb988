//! Reading one directory's entries, sorted.

use std::ffi::CString;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::RawDir;

use super::entry::{WalkDir, kind_listed};
use super::{ENTRIES_MAX, PassedOver};
use crate::Kind;

/// Bytes of entries asked for at once.
const BUFFER: usize = 64 << 10;

/// One name of a directory, valid UTF-8 and never `.` or `..`.
pub(super) struct Item {
    pub(super) name: CString,
    pub(super) kind: Kind,
}

impl Item {
    /// `name` holds no NUL: it comes from a [`crate::Name`] or the kernel.
    pub(super) fn new(name: &str, kind: Kind) -> Self {
        Self { name: CString::new(name).unwrap_or_default(), kind }
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.name.to_str().ok()
    }
}

/// The buffer of a thread's listings.
#[derive(Default)]
pub(super) struct Listing {
    buffer: Vec<u8>,
}

impl Listing {
    /// The entries of `dir` by name, with the names at which mounts stand in their place.
    pub(super) fn read(
        &mut self,
        dir: &WalkDir,
        mounted: Vec<&str>,
        stop: &AtomicBool,
        over: &mut impl FnMut(&[u8], PassedOver),
    ) -> io::Result<Vec<Item>> {
        self.buffer.reserve(BUFFER);
        let mut items: Vec<Item> = mounted.iter().map(|name| Item::new(name, Kind::Directory)).collect();
        let mut entries = RawDir::new(dir, self.buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if bytes == b"." || bytes == b".." || mounted.iter().any(|mounted| mounted.as_bytes() == bytes) {
                continue;
            }
            if items.len() == ENTRIES_MAX {
                over(b"", PassedOver::TooMany);
                break;
            }
            if name.to_str().is_err() {
                over(bytes, PassedOver::NotUtf8);
            } else if let Some(kind) = kind_listed(dir, name, entry.file_type()) {
                items.push(Item { name: name.to_owned(), kind });
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        items.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(items)
    }
}
