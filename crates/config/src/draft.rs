//! A file that is written beside its place and takes it only when it is whole and durable: whoever looks there finds all of
//! it or nothing, whatever fails in between.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What is written so far. Dropped, it is gone.
#[derive(Debug)]
pub struct DraftFile {
    place: PathBuf,
    beside: PathBuf,
    file: File,
}

impl DraftFile {
    /// Begins one for `place`, which nobody but its owner may read.
    pub fn begin(place: &Path) -> io::Result<Self> {
        let name = place.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
        let mut draft = OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}.tmp", std::process::id()));
        let beside = place.with_file_name(draft);
        // One of this very name is left from a process that died and had the same number.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        Ok(Self { place: place.to_owned(), beside, file })
    }

    /// Takes the place of what is there.
    pub fn replace(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.place)?;
        self.settle()
    }

    /// Takes its place if nothing is there.
    pub fn put_new(self) -> io::Result<()> {
        self.file.sync_all()?;
        match fs::hard_link(&self.beside, &self.place) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(e),
            // A file system without links.
            Err(_) if !self.place.exists() => fs::rename(&self.beside, &self.place)?,
            Err(e) => return Err(e),
        }
        self.settle()
    }

    /// Makes the name durable, too.
    fn settle(&self) -> io::Result<()> {
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for DraftFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // It took its place under another name, or is not wanted any more.
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_there_whole_or_not_at_all_and_replaces_only_if_it_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("kept");
        let begun = |text: &str| {
            let mut draft = DraftFile::begin(&place).expect("begun");
            draft.write_all(text.as_bytes()).expect("written");
            draft
        };
        drop(begun("half"));
        assert_eq!(fs::read_dir(folder.path()).expect("a list").count(), 0, "nothing is left of it");
        begun("one").put_new().expect("nothing was there");
        let refused = begun("two").put_new().expect_err("something is there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&place).expect("there"), "one");
        begun("three").replace().expect("replaced");
        assert_eq!(fs::read_to_string(&place).expect("there"), "three");
        assert_eq!(fs::read_dir(folder.path()).expect("a list").count(), 1);
    }
}
