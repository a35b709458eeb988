//! What is done when the disk is full (F7): new work is refused before anything happens, what already happened is still
//! recorded in the room of the ballast, and writing goes on by itself once there is room again.

use std::fs;
use std::path::Path;

use portcullis_store::StoreError;
use rusqlite::ErrorCode;
use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};

use crate::ballast::{BALLAST_BYTES, Ballast};
use crate::connect::DatabaseFile;

/// Work begins only where this much is free: the largest append, so that a call that may start can also end.
pub(crate) const ROOM_TO_WORK: u64 = 4 << 20;
/// With less than this an I/O error is taken for a full disk. SQLite says so itself only of plain writes: memory it
/// shares and files at their size limit fail otherwise.
const NO_ROOM: u64 = 1 << 20;
/// On a smaller disk the ballast is not missed: it would hold a good part of it.
const DISK_FOR_BALLAST: u64 = 4 * BALLAST_BYTES;

/// Whether there is room, as far as this process knows.
pub(crate) struct Headroom {
    ballast: Ballast,
    /// The last write found room. Not so at first: another process may have given the ballast away.
    roomy: bool,
}

impl Headroom {
    pub(crate) fn beside(database: &Path) -> Self {
        Self { ballast: Ballast::beside(database), roomy: false }
    }

    /// Whether new work may be taken. Where the ballast was given away, its room does not count: it is for those who
    /// have something to end.
    pub(crate) fn admits(&mut self, place: &DatabaseFile) -> bool {
        if !self.roomy {
            self.roomy = room(place) >= needed(place, &self.ballast);
        }
        self.roomy
    }

    /// Whether this error means that there is no room.
    pub(crate) fn is_full(place: &DatabaseFile, error: &rusqlite::Error) -> bool {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => true,
            Some(ErrorCode::SystemIoFailure) => room(place) < NO_ROOM,
            _ => false,
        }
    }

    /// A write met a full disk.
    pub(crate) fn met_full(&mut self) {
        self.roomy = false;
    }

    /// Gives the ballast away, to the writers of ends that must still be recorded.
    pub(crate) fn give(&self) {
        // If it cannot be deleted, the write that follows says that there is no room.
        let _ = self.ballast.give();
    }

    /// The refusal of new work.
    pub(crate) fn refusal(place: &DatabaseFile) -> StoreError {
        StoreError::DiskFull { free: room(place), needed: needed(place, &Ballast::beside(&place.path)) }
    }
}

/// What must be free for new work to begin. Where the ballast was given away, its room is spoken for.
fn needed(place: &DatabaseFile, ballast: &Ballast) -> u64 {
    let size = statvfs(folder(place)).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let missed = size >= DISK_FOR_BALLAST && limit >= BALLAST_BYTES && !ballast.is_kept() && ballast.was_made();
    ROOM_TO_WORK + if missed { BALLAST_BYTES } else { 0 }
}

/// Bytes that can still be written: what the disk has, and what the limit of a file's size leaves. What cannot be asked
/// is no obstacle; the write itself will tell.
fn room(place: &DatabaseFile) -> u64 {
    let free = statvfs(folder(place)).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    let longest = ["", "-wal", "-shm"].iter().map(|suffix| {
        let mut name = place.path.clone().into_os_string();
        name.push(suffix);
        fs::metadata(name).map_or(0, |found| found.len())
    });
    free.min(limit.saturating_sub(longest.max().unwrap_or(0)))
}

fn folder(place: &DatabaseFile) -> &Path {
    place.path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
