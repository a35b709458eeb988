//! What a medium must be to be handed to a model (tool-contract 17.1): small enough to send, and no
//! larger in pixels than a model looks at.

use portcullis_base::limits;

/// Pixels of one side.
const SIDE_MAX: u32 = 2_000;
/// Bytes of an image as base64, the form providers take it in.
const BASE64_MAX: u64 = 5 << 20;

/// Why a medium is not taken in, if it is not; says what to do.
pub(crate) fn refusal(mime: &str, bytes: &[u8]) -> Option<String> {
    let size = bytes.len() as u64;
    if size > limits::MEDIA_INGEST {
        return Some(format!(
            "it has {size} bytes, more than the limit of {}; make a smaller one",
            limits::MEDIA_INGEST
        ));
    }
    if !mime.starts_with("image/") {
        return None;
    }
    let encoded = size.div_ceil(3) * 4;
    if encoded > BASE64_MAX {
        return Some(format!(
            "it has {size} bytes, more than the limit of {} for images; scale it down",
            BASE64_MAX / 4 * 3
        ));
    }
    match dimensions(mime, bytes) {
        Some((width, height)) if width > SIDE_MAX || height > SIDE_MAX => {
            Some(format!("it is {width}×{height} pixels, more than {SIDE_MAX}×{SIDE_MAX}; scale it down"))
        }
        _ => None,
    }
}

/// Width and height as the header says; `None` where it cannot be told.
fn dimensions(mime: &str, bytes: &[u8]) -> Option<(u32, u32)> {
    match mime {
        "image/png" => Some((be32(bytes, 16)?, be32(bytes, 20)?)),
        "image/gif" => Some((le16(bytes, 6)?, le16(bytes, 8)?)),
        "image/webp" => webp(bytes),
        "image/jpeg" => jpeg(bytes),
        _ => None,
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let low24 = |at: usize| Some(le16(bytes, at)? | u32::from(*bytes.get(at + 2)?) << 16);
    match bytes.get(12..16)? {
        b"VP8X" => Some((low24(24)? + 1, low24(27)? + 1)),
        b"VP8 " => Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff)),
        b"VP8L" => {
            let packed = le16(bytes, 21)? | le16(bytes, 23)? << 16;
            Some(((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

/// Walks the segments to the frame header.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            0xff => at += 1,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + be16(bytes, at + 2)? as usize,
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?).into())
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?).into())
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    #[test]
    fn sizes_are_read_from_the_headers() {
        assert_eq!(dimensions("image/png", &png(3, 2001)), Some((3, 2001)));
        assert_eq!(dimensions("image/gif", b"GIF89a\x02\x01\x04\0"), Some((258, 4)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\x01\x02\x03\x04";
        assert_eq!(dimensions("image/jpeg", jpeg), Some((0x304, 0x102)));
        let mut webp = b"RIFF....WEBPVP8X".to_vec();
        webp.extend([0; 8]);
        webp.extend([9, 0, 0, 19, 0, 0]);
        assert_eq!(dimensions("image/webp", &webp), Some((10, 20)));
        assert_eq!(dimensions("image/png", b"\x89PNG"), None);
        assert_eq!(dimensions("image/jpeg", b"\xff\xd8\xff\xe0\0"), None);
    }

    #[test]
    fn what_is_over_a_limit_is_refused_with_a_remedy() {
        assert_eq!(refusal("image/png", &png(2000, 2000)), None);
        assert!(refusal("image/png", &png(2001, 1)).expect("too wide").contains("2001×1"));
        assert!(refusal("image/gif", &vec![0; 4 << 20]).is_some());
        assert_eq!(refusal("application/pdf", &vec![0; 4 << 20]), None);
        assert!(refusal("application/pdf", &vec![0; (20 << 20) + 1]).is_some());
    }
}
