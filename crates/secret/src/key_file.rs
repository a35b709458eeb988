//! The sealing key on disk: 64 hex digits in a file only its owner can read.
//!
//! The file appears whole or not at all (written beside, synced, then linked into place without
//! replacing), so that two processes starting at once end with the same key and a crash leaves none
//! that is cut short.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_base::Entropy;
use zeroize::{Zeroize as _, Zeroizing};

use crate::SealingKey;
use crate::key::KEY_BYTES;

/// Permission bits of group and others.
const NOT_OWNER: u32 = 0o077;
/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Why a key file was not used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot {doing} the key {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "the key {} may be read or written by others (mode {mode:03o}); make it yours alone with: chmod 600 {}",
        path.display(),
        path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "the folder {} of the key is open to others (mode {mode:03o}); close it with: chmod 700 {}",
        path.display(),
        path.display()
    )]
    OpenFolder { path: PathBuf, mode: u32 },
    #[error("{} is not a regular file; a key must be one", path.display())]
    NotAFile { path: PathBuf },
    #[error(
        "{} does not hold a key (64 hex digits); restore it from a backup: what was sealed with it cannot be opened with another",
        path.display()
    )]
    Malformed { path: PathBuf },
}

impl SealingKey {
    /// The key in `path`, made there if there is none: a file of mode 0600 in a folder of mode 0700.
    ///
    /// # Errors
    /// If the file or its folder is open to others, is not a key, or cannot be read or made. A bad
    /// file is never replaced: it may be the only copy.
    pub fn load_or_create(path: &Path, entropy: &dyn Entropy) -> Result<Self, KeyFileError> {
        if let Some(key) = load(path)? {
            return Ok(key);
        }
        create(path, entropy)?;
        // Read back what is there now: of two processes creating at once only one linked its key.
        load(path)?.ok_or_else(|| io_error("read", path)(io::ErrorKind::NotFound.into()))
    }
}

fn io_error<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> KeyFileError + 'a {
    move |source| KeyFileError::Io { doing, path: path.to_owned(), source }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn check_folder(folder: &Path, forbidden: u32) -> Result<(), KeyFileError> {
    let mode = fs::metadata(folder).map_err(io_error("look at the folder of", folder))?;
    let mode = mode.permissions().mode() & 0o777;
    if mode & forbidden != 0 {
        return Err(KeyFileError::OpenFolder { path: folder.to_owned(), mode });
    }
    Ok(())
}

fn load(path: &Path) -> Result<Option<SealingKey>, KeyFileError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io_error("open", path)(e)),
    };
    // Facts of the open file, not of the name: the name may point elsewhere a moment later.
    let facts = file.metadata().map_err(io_error("look at", path))?;
    if !facts.is_file() {
        return Err(KeyFileError::NotAFile { path: path.to_owned() });
    }
    let mode = facts.permissions().mode() & 0o777;
    if mode & NOT_OWNER != 0 {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    check_folder(folder_of(path), OTHERS_WRITE)?;
    // One byte more than the longest good file, so that a longer one is seen to be wrong.
    let mut text = Zeroizing::new([0u8; 2 * KEY_BYTES + 2]);
    let mut filled = 0;
    while filled < text.len() {
        match file.read(&mut text[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(io_error("read", path)(e)),
        }
    }
    let digits = text[..filled].strip_suffix(b"\n").unwrap_or(&text[..filled]);
    decode(digits).map(Some).ok_or_else(|| KeyFileError::Malformed { path: path.to_owned() })
}

fn create(path: &Path, entropy: &dyn Entropy) -> Result<(), KeyFileError> {
    let folder = folder_of(path);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io_error("make the folder of", path))?;
    check_folder(folder, NOT_OWNER)?;
    let mut tag = [0u8; 8];
    entropy.fill(&mut tag);
    let draft = folder.join(format!(".sealing-key.{:016x}.tmp", u64::from_be_bytes(tag)));
    let outcome = write_draft(&draft, &SealingKey::generate(entropy))
        .and_then(|()| match fs::hard_link(&draft, path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        })
        .and_then(|()| File::open(folder)?.sync_all());
    // The draft goes away on success and on failure; what remains is the linked name, or nothing.
    let removed = fs::remove_file(&draft);
    outcome.and(removed).map_err(io_error("create", path))
}

fn write_draft(draft: &Path, key: &SealingKey) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    let mut text = Zeroizing::new([b'\n'; 2 * KEY_BYTES + 1]);
    for (i, byte) in key.bytes().iter().enumerate() {
        text[2 * i] = crate::forms::HEX_LOWER[usize::from(byte >> 4)];
        text[2 * i + 1] = crate::forms::HEX_LOWER[usize::from(byte & 15)];
    }
    file.write_all(text.as_ref())?;
    file.sync_all()
}

fn decode(digits: &[u8]) -> Option<SealingKey> {
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut bytes = [0u8; KEY_BYTES];
    for (slot, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *slot = u8::try_from(high << 4 | low).ok()?;
    }
    let key = SealingKey::from_bytes(bytes);
    bytes.zeroize();
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_base::SeededIds;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("exists").permissions().mode() & 0o777
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours to change");
    }

    #[test]
    fn a_key_is_made_once_with_closed_modes_and_found_again() {
        let home = tempfile::tempdir().expect("scratch");
        let path = home.path().join("keys/seal.key");
        let entropy = SeededIds::new(3);
        let first = SealingKey::load_or_create(&path, &entropy).expect("made");
        let again = SealingKey::load_or_create(&path, &entropy).expect("found");
        assert_eq!(first.bytes(), again.bytes());
        assert_eq!((mode(&path), mode(&home.path().join("keys"))), (0o600, 0o700));
        let names = fs::read_dir(home.path().join("keys")).expect("listed").count();
        assert_eq!(names, 1, "no draft is left behind");
    }

    #[test]
    fn a_key_that_others_may_read_is_refused_with_the_remedy() {
        let home = tempfile::tempdir().expect("scratch");
        let path = home.path().join("keys/seal.key");
        SealingKey::load_or_create(&path, &SeededIds::new(3)).expect("made");
        for bad in [0o640, 0o604, 0o620, 0o666] {
            chmod(&path, bad);
            let error = SealingKey::load_or_create(&path, &SeededIds::new(3)).expect_err("exposed");
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        chmod(&path, 0o400);
        SealingKey::load_or_create(&path, &SeededIds::new(3)).expect("read-only is fine");
    }

    #[test]
    fn an_open_folder_is_refused() {
        let home = tempfile::tempdir().expect("scratch");
        let folder = home.path().join("keys");
        fs::create_dir(&folder).expect("made");
        chmod(&folder, 0o755);
        let error = SealingKey::load_or_create(&folder.join("k"), &SeededIds::new(3));
        assert!(matches!(error, Err(KeyFileError::OpenFolder { mode: 0o755, .. })), "{error:?}");
        assert_eq!(fs::read_dir(&folder).expect("listed").count(), 0);
    }

    #[test]
    fn a_damaged_key_is_an_error_and_is_never_replaced() {
        let home = tempfile::tempdir().expect("scratch");
        let path = home.path().join("keys/seal.key");
        SealingKey::load_or_create(&path, &SeededIds::new(3)).expect("made");
        let good = fs::read(&path).expect("read");
        let mut long = good.clone();
        long.push(b'0');
        for bad in [&b""[..], &good[..40], b"not a key", &long] {
            fs::write(&path, bad).expect("damaged");
            let error = SealingKey::load_or_create(&path, &SeededIds::new(4)).expect_err("malformed");
            assert!(error.to_string().contains("64 hex digits"), "{error}");
            assert_eq!(fs::read(&path).expect("read"), bad);
        }
    }
}
