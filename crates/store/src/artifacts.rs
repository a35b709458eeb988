//! Bytes of large artifacts, addressed by hash, per tenant (store §8). Small ones are rows of the
//! append that names them and never come here.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use portcullis_base::{Digest, DigestWriter, Entropy, TenantId, Window};

use crate::sweep;

/// Bytes that are read at once to check a hash.
const CHECK_BYTES: usize = 1 << 16;

/// Bytes that are durable and hash-verified: only now may a row refer to them (S13).
pub struct StoredBlob {
    pub sha256: Digest,
    pub bytes: u64,
    pub window: Arc<dyn Window>,
}

/// Takes in one artifact. Dropping it before `finish` leaves nothing behind.
pub trait ArtifactWriter: Send {
    /// Takes more bytes.
    ///
    /// # Errors
    /// If they cannot be kept; the artifact is then lost as a whole.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// What was written so far, readable before it is durable.
    ///
    /// # Errors
    /// If it cannot be read back.
    fn window(&self) -> io::Result<Arc<dyn Window>>;

    /// Makes it durable. `Ok` = it survives a crash and is found under its hash.
    ///
    /// # Errors
    /// If that failed; nothing may refer to it then.
    fn finish(self: Box<Self>) -> io::Result<StoredBlob>;
}

/// Where large artifacts are kept. Calls block on the disk; async callers use a blocking thread.
pub trait Artifacts: Send + Sync {
    /// Begins a new artifact.
    ///
    /// # Errors
    /// If there is no place to write to.
    fn begin(&self, tenant: TenantId) -> io::Result<Box<dyn ArtifactWriter>>;

    /// Opens one by hash. What is given out has that hash: bytes that were changed are as good as gone.
    ///
    /// # Errors
    /// If it is not there (`NotFound`), is not what was stored (`InvalidData`) or cannot be read. The artifact is lost
    /// then, which is corruption if a row names it.
    fn open(&self, tenant: TenantId, sha256: Digest) -> io::Result<Arc<dyn Window>>;
}

/// A folder: `tenant/ab/cd/sha256`, written by temp file, fsync, rename, fsync of the folder.
pub struct LocalArtifacts {
    root: PathBuf,
    entropy: Arc<dyn Entropy>,
}

impl LocalArtifacts {
    /// Keeps artifacts beneath `root`, made 0700 if missing.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(root: &Path, entropy: Arc<dyn Entropy>) -> io::Result<Self> {
        make_dirs(&root.join("tmp"))?;
        Ok(Self { root: root.to_owned(), entropy })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

/// `root/tenant/ab/cd/sha256`.
pub(crate) fn place(root: &Path, tenant: TenantId, sha256: Digest) -> PathBuf {
    let hex = sha256.to_string();
    root.join(tenant.to_string()).join(&hex[..2]).join(&hex[2..4]).join(hex)
}

fn make_dirs(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

struct LocalWriter {
    file: File,
    temp: PathBuf,
    root: PathBuf,
    tenant: TenantId,
    hasher: DigestWriter,
    bytes: u64,
    kept: bool,
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing refers to it; a leftover is swept as an orphan.
            let _ = fs::remove_file(&self.temp);
        }
    }
}

impl ArtifactWriter for LocalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn window(&self) -> io::Result<Arc<dyn Window>> {
        Ok(Arc::new(File::open(&self.temp)?))
    }

    fn finish(mut self: Box<Self>) -> io::Result<StoredBlob> {
        // From now on its age counts, however long it took to write.
        self.file.set_modified(SystemTime::now())?;
        self.file.sync_all()?;
        let sha256 = std::mem::take(&mut self.hasher).finish();
        let place = place(&self.root, self.tenant, sha256);
        let folder = place.parent().unwrap_or(&self.root).to_owned();
        make_dirs(&folder)?;
        let lock = sweep::lock(&self.root)?;
        lock.lock_shared()?;
        fs::rename(&self.temp, &place)?;
        drop(lock);
        self.kept = true;
        // The rename and every folder above it that may be new.
        for dir in folder.ancestors().take(4) {
            File::open(dir)?.sync_all()?;
            if dir == self.root {
                break;
            }
        }
        Ok(StoredBlob { sha256, bytes: self.bytes, window: Arc::new(File::open(&place)?) })
    }
}

impl Artifacts for LocalArtifacts {
    fn begin(&self, tenant: TenantId) -> io::Result<Box<dyn ArtifactWriter>> {
        let mut random = [0u8; 16];
        self.entropy.fill(&mut random);
        let temp = self.root.join("tmp").join(format!("{:032x}", u128::from_be_bytes(random)));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp)?;
        // Held while it is written, so that no sweep takes it for a leftover.
        file.lock_shared()?;
        Ok(Box::new(LocalWriter {
            file,
            temp,
            root: self.root.clone(),
            tenant,
            hasher: DigestWriter::default(),
            bytes: 0,
            kept: false,
        }))
    }

    fn open(&self, tenant: TenantId, sha256: Digest) -> io::Result<Arc<dyn Window>> {
        let file = File::open(place(&self.root, tenant, sha256))?;
        check(&file, sha256)?;
        Ok(Arc::new(file))
    }
}

/// Reads all of it once: a process that may write the folder must not change what is served from it.
fn check(window: &dyn Window, sha256: Digest) -> io::Result<()> {
    let mut hasher = DigestWriter::default();
    let mut buf = vec![0; CHECK_BYTES];
    let mut at = 0;
    loop {
        match window.read_at(at, &mut buf)? {
            0 => break,
            n => {
                hasher.update(&buf[..n]);
                at += n as u64;
            }
        }
    }
    if hasher.finish() == sha256 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the stored bytes are not those that were kept: their hash differs"))
}

type Objects = HashMap<(TenantId, Digest), Arc<Vec<u8>>>;

/// Artifacts of a process that keeps nothing.
#[derive(Default, Clone)]
pub struct MemoryArtifacts {
    objects: Arc<Mutex<Objects>>,
}

struct MemoryWriter {
    bytes: Vec<u8>,
    tenant: TenantId,
    home: MemoryArtifacts,
}

impl ArtifactWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn window(&self) -> io::Result<Arc<dyn Window>> {
        Ok(Arc::new(self.bytes.clone()))
    }

    fn finish(self: Box<Self>) -> io::Result<StoredBlob> {
        let sha256 = Digest::of(&self.bytes);
        let bytes = Arc::new(self.bytes);
        let stored = StoredBlob { sha256, bytes: bytes.len() as u64, window: Arc::clone(&bytes) as Arc<dyn Window> };
        let mut objects = self.home.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.insert((self.tenant, sha256), bytes);
        Ok(stored)
    }
}

impl Artifacts for MemoryArtifacts {
    fn begin(&self, tenant: TenantId) -> io::Result<Box<dyn ArtifactWriter>> {
        Ok(Box::new(MemoryWriter { bytes: Vec::new(), tenant, home: self.clone() }))
    }

    fn open(&self, tenant: TenantId, sha256: Digest) -> io::Result<Arc<dyn Window>> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        match objects.get(&(tenant, sha256)) {
            Some(bytes) => Ok(Arc::clone(bytes) as Arc<dyn Window>),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such artifact")),
        }
    }
}
