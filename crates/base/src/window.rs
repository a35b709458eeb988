//! Reading a large text without holding it.

use std::io;

/// Bytes that can be read at any place. Reading is pure: equal calls give equal bytes.
pub trait Window: Send + Sync {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Fills as much of `buf` as there are bytes from `offset`; fewer only at the end.
    ///
    /// # Errors
    /// If the bytes are gone or cannot be read.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`, cut at the end.
    ///
    /// # Errors
    /// If the bytes are gone or cannot be read.
    fn slice(&self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let end = end.min(self.len());
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
        let mut filled = 0;
        while filled < bytes.len() {
            let n = self.read_at(start + filled as u64, &mut bytes[filled..])?;
            if n == 0 {
                break;
            }
            filled += n;
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

impl Window for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(<[u8]>::len(self));
        let n = buf.len().min(<[u8]>::len(self) - start);
        buf[..n].copy_from_slice(&self[start..start + n]);
        Ok(n)
    }
}

impl Window for Vec<u8> {
    fn len(&self) -> u64 {
        Window::len(self.as_slice())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buf)
    }
}

impl Window for std::fs::File {
    fn len(&self) -> u64 {
        self.metadata().map(|m| m.len()).unwrap_or(0)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buf, offset)
    }
}
