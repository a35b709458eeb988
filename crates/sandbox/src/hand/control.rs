//! The socket between us and a launcher: its first message, and what we ask of init later.

/// What the first message says; the orders come as a handle with it.
pub(crate) const HEADER: &[u8; 8] = b"pchand01";

/// Handles in one message; the kernel takes 253.
pub(crate) const MAX_HANDLES: usize = 240;

/// Descriptors of the launcher's own stand from here on, so that the program's (3, 4, …, at most
/// [`MAX_HANDLES`] of them) never meet one.
pub(crate) const OUT_OF_THE_WAY: i32 = 300;

pub(crate) const TARGET_TREE: u8 = 0;
pub(crate) const TARGET_MAIN: u8 = 1;
pub(crate) const TARGET_OTHERS: u8 = 2;

/// A signal for part of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) signal: u8,
    pub(crate) target: u8,
}

impl Request {
    pub(crate) const BYTES: usize = 2;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        [self.signal, self.target]
    }

    pub(crate) fn from_bytes([signal, target]: [u8; Self::BYTES]) -> Self {
        Self { signal, target }
    }
}
