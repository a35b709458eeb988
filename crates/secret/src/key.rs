//! The key that seals secrets at rest.

use std::fmt;

use portcullis_base::Entropy;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 32;

/// 32 secret bytes, wiped when dropped. Neither `Clone` nor `Serialize`: one key, one owner; how it
/// reaches the disk is [`SealingKey::load_or_create`]'s business alone.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SealingKey([u8; KEY_BYTES]);

impl SealingKey {
    /// A fresh key. `entropy` must be unpredictable outside of tests.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut key = Self([0; KEY_BYTES]);
        entropy.fill(&mut key.0);
        key
    }

    /// A key kept elsewhere, such as in a KMS. The caller wipes its own copy.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_base::SeededIds;

    #[test]
    fn a_key_does_not_print_itself() {
        assert_eq!(format!("{:?}", SealingKey::from_bytes([65; 32])), "SealingKey(***)");
    }

    #[test]
    fn a_generated_key_is_the_entropy_it_was_given() {
        let (a, b) = (SeededIds::new(1), SeededIds::new(1));
        assert_eq!(SealingKey::generate(&a).bytes(), SealingKey::generate(&b).bytes());
        assert_ne!(SealingKey::generate(&a).bytes(), SealingKey::generate(&SeededIds::new(2)).bytes());
    }
}
