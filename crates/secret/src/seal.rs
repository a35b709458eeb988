//! Sealing at rest: XChaCha20-Poly1305, bound to whose secret it is, its name and its version.
//!
//! A sealed value is `1 | nonce (24) | ciphertext and tag`. The nonce is random, and at 24 bytes long
//! enough that random ones do not meet. The associated data makes a sealed value worthless under
//! another tenant, name or version: rows of the store cannot be swapped.

use std::borrow::Cow;
use std::fmt;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use portcullis_base::{Digest, Entropy, TenantId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::key::KEY_BYTES;
use crate::{SealingKey, SecretBytes};

const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const HEX: &[u8; 16] = b"0123456789abcdef";
/// Keeps these keys' messages apart from any other use the same key might be put to.
const DOMAIN: &[u8] = b"portcullis sealed value v1";

/// What a sealed value is bound to. It is not secret, and not stored with the value: whoever opens
/// it must already know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aad<'a> {
    pub tenant: TenantId,
    pub name: &'a str,
    pub version: u64,
}

impl Aad<'_> {
    /// Every part with its length before it, so that no two different triples give equal bytes.
    fn bytes(&self) -> Vec<u8> {
        let tenant = self.tenant.to_string();
        let version = self.version.to_be_bytes();
        let parts = [DOMAIN, &[FORMAT], tenant.as_bytes(), self.name.as_bytes(), &version];
        let mut out = Vec::with_capacity(parts.iter().map(|part| 8 + part.len()).sum());
        for part in parts {
            out.extend_from_slice(&(part.len() as u64).to_be_bytes());
            out.extend_from_slice(part);
        }
        out
    }
}

/// A sealed value as it is stored. Safe to print: it tells nothing but its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// Wraps stored bytes; whether they are a sealed value shows when they are opened.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes to store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes to store.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Lower-case hex, for rows that hold documents.
impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(2 * self.0.len());
        for byte in &self.0 {
            text.extend([byte >> 4, byte & 15].map(|nibble| char::from(HEX[usize::from(nibble)])));
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let nibble = |digit: &u8| HEX.iter().position(|hex| hex == digit);
        let byte = |pair: &[u8]| match pair {
            [high, low] => u8::try_from(nibble(high)? << 4 | nibble(low)?).ok(),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.map(Self).ok_or_else(|| de::Error::custom("a sealed value is written as pairs of lower-case hex digits"))
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// Why a value could not be sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot seal `{name}`: the value is too long ({bytes} bytes)")]
pub struct SealError {
    name: String,
    bytes: usize,
}

/// Why a sealed value could not be opened. A wrong key, a wrong binding and tampering look the same
/// by design of the cipher; none of them reveals content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the stored value of `{name}` is not in a sealed format this program knows (first byte {found:?}, {bytes} bytes); it may come from a newer Portcullis"
    )]
    Format { name: String, found: Option<u8>, bytes: usize },
    #[error(
        "cannot open the sealed value of `{name}` (version {version}): the key is another one, or the stored bytes were changed or moved; restore the key file, or set the value anew"
    )]
    Refused { name: String, version: u64 },
}

fn mac(key: &[u8; KEY_BYTES], parts: &[&[u8]]) -> [u8; 32] {
    // Invariant: HMAC takes a key of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a 32-byte key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Seals and opens values with one key.
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    /// Of its own, so that no mark helps against the cipher.
    marks: Zeroizing<[u8; KEY_BYTES]>,
}

impl Sealer {
    /// A sealer that owns its key.
    #[must_use]
    pub fn new(key: &SealingKey) -> Self {
        let marks = Zeroizing::new(mac(key.bytes(), &[b"portcullis marks 1"]));
        Self { cipher: XChaCha20Poly1305::new(key.bytes().into()), marks }
    }

    /// A digest that tells values apart and that nobody without the key can compute: a value that is easily guessed
    /// cannot be found out by it. `label` says what it is the mark of; equal values under two labels have two marks.
    #[must_use]
    pub fn mark(&self, label: &str, value: &[u8]) -> Digest {
        let length = (label.len() as u64).to_be_bytes();
        Digest::from_bytes(mac(&self.marks, &[&length, label.as_bytes(), value]))
    }

    /// Seals `plain` under a fresh nonce; `entropy` must never repeat for one key.
    ///
    /// # Errors
    /// If the value is beyond what the cipher can carry (256 GiB).
    pub fn seal(&self, aad: Aad<'_>, plain: &[u8], entropy: &dyn Entropy) -> Result<Sealed, SealError> {
        let mut nonce = XNonce::default();
        entropy.fill(&mut nonce);
        let payload = Payload { msg: plain, aad: &aad.bytes() };
        let body = self
            .cipher
            .encrypt(&nonce, payload)
            .map_err(|_| SealError { name: aad.name.to_owned(), bytes: plain.len() })?;
        let mut out = Vec::with_capacity(1 + NONCE_BYTES + body.len());
        out.push(FORMAT);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&body);
        Ok(Sealed(out))
    }

    /// The value that was sealed under the same binding.
    ///
    /// # Errors
    /// If the bytes are not a sealed value, or were not sealed with this key and binding.
    pub fn open(&self, aad: Aad<'_>, sealed: &Sealed) -> Result<SecretBytes, OpenError> {
        let bytes = sealed.as_bytes();
        let format =
            || OpenError::Format { name: aad.name.to_owned(), found: bytes.first().copied(), bytes: bytes.len() };
        let rest = match bytes.split_first() {
            Some((&FORMAT, rest)) if rest.len() >= NONCE_BYTES + TAG_BYTES => rest,
            _ => return Err(format()),
        };
        let (nonce, body) = rest.split_at(NONCE_BYTES);
        let nonce = XNonce::try_from(nonce).map_err(|_| format())?;
        let payload = Payload { msg: body, aad: &aad.bytes() };
        self.cipher
            .decrypt(&nonce, payload)
            .map(SecretBytes::new)
            .map_err(|_| OpenError::Refused { name: aad.name.to_owned(), version: aad.version })
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_base::SeededIds;
    use proptest::prelude::*;

    fn aad(tenant: u128, name: &str, version: u64) -> Aad<'_> {
        Aad { tenant: TenantId::from_u128(tenant), name, version }
    }

    fn sealer(seed: u64) -> Sealer {
        Sealer::new(&SealingKey::generate(&SeededIds::new(seed)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_sealed_opens_and_any_changed_byte_does_not(
            plain in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            flip in 1u8..,
        ) {
            let entropy = SeededIds::new(5);
            let sealer = sealer(1);
            let sealed = sealer.seal(aad(1, "token", 1), &plain, &entropy).expect("short");
            let opened = sealer.open(aad(1, "token", 1), &sealed).expect("ours");
            prop_assert_eq!(opened.expose(), &plain[..]);
            let text = serde_json::to_string(&sealed).expect("text");
            prop_assert_eq!(&serde_json::from_str::<Sealed>(&text).expect("the same"), &sealed);
            let mut bytes = sealed.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(sealer.open(aad(1, "token", 1), &Sealed::from_bytes(bytes)).is_err());
        }

        #[test]
        fn different_bindings_never_share_their_bytes(
            a in (0u128..4, "[a-c]{0,3}", 0u64..4),
            b in (0u128..4, "[a-c]{0,3}", 0u64..4),
        ) {
            let equal = aad(a.0, &a.1, a.2).bytes() == aad(b.0, &b.1, b.2).bytes();
            prop_assert_eq!(equal, a == b);
        }
    }

    #[test]
    fn another_tenant_name_version_or_key_is_refused_without_content() {
        let plain = b"swordfish-swordfish";
        let sealed = sealer(1).seal(aad(1, "token", 1), plain, &SeededIds::new(5)).expect("short");
        for (who, what) in [
            (sealer(1), aad(2, "token", 1)),
            (sealer(1), aad(1, "tokem", 1)),
            (sealer(1), aad(1, "token", 2)),
            (sealer(2), aad(1, "token", 1)),
        ] {
            let error = who.open(what, &sealed).expect_err("not the same binding");
            assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
            assert!(!format!("{error} {error:?}").contains("swordfish"));
        }
    }

    #[test]
    fn the_same_value_seals_differently_each_time() {
        let entropy = SeededIds::new(5);
        let seal = || sealer(1).seal(aad(1, "t", 1), b"same", &entropy).expect("short");
        assert_ne!(seal(), seal());
    }

    #[test]
    fn text_that_is_no_sealed_value_is_refused() {
        for text in ["\"0\"", "\"0G\"", "\"AB\"", "\"ä\"", "7"] {
            assert!(serde_json::from_str::<Sealed>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn foreign_and_short_bytes_are_a_format_error() {
        for bytes in [vec![], vec![1; 30], vec![2; 80]] {
            let error = sealer(1).open(aad(1, "t", 1), &Sealed::from_bytes(bytes));
            assert!(matches!(error, Err(OpenError::Format { .. })), "{error:?}");
        }
    }

    #[test]
    fn a_mark_tells_values_and_labels_apart_and_needs_the_key() {
        let (sealer, other) =
            (Sealer::new(&SealingKey::from_bytes([1; 32])), Sealer::new(&SealingKey::from_bytes([2; 32])));
        assert_eq!(sealer.mark("a", b"x"), sealer.mark("a", b"x"));
        assert_ne!(sealer.mark("a", b"x"), sealer.mark("a", b"y"));
        assert_ne!(sealer.mark("a", b"x"), sealer.mark("b", b"x"));
        assert_ne!(sealer.mark("a", b"bx"), sealer.mark("ab", b"x"));
        assert_ne!(sealer.mark("a", b"x"), other.mark("a", b"x"));
    }
}
