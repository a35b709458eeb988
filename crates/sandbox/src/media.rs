//! What a file's bytes are: text, a medium a model can look at, or neither.

/// How content is delivered to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    /// UTF-8 without NUL.
    Text,
    /// An image or PDF, with its media type.
    Media(&'static str),
    Binary,
}

/// Looks at all of `bytes`: a NUL or a broken sequence anywhere makes it no text.
#[must_use]
pub fn content_kind(bytes: &[u8]) -> ContentKind {
    let text = is_text(bytes);
    match magic(bytes) {
        // A PDF may be plain ASCII; of the others, real ones never are valid text, so a text that
        // merely begins with `GIF89a` stays text.
        Some(mime) if !text || mime == "application/pdf" => ContentKind::Media(mime),
        _ if text => ContentKind::Text,
        _ => ContentKind::Binary,
    }
}

pub(crate) fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

fn magic(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else if bytes.starts_with(b"%PDF-") {
        Some("application/pdf")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_known_by_its_bytes() {
        let cases: [(&[u8], ContentKind); 11] = [
            (b"", ContentKind::Text),
            ("grüße\n".as_bytes(), ContentKind::Text),
            (b"a\0b", ContentKind::Binary),
            (b"\xff\xfea\0", ContentKind::Binary),
            (b"\xc3", ContentKind::Binary),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ContentKind::Media("image/png")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", ContentKind::Media("image/jpeg")),
            (b"GIF89a\x01\0\x01\0", ContentKind::Media("image/gif")),
            (b"GIF89a is a format", ContentKind::Text),
            (b"RIFF\x24\0\0\0WEBPVP8 ", ContentKind::Media("image/webp")),
            (b"%PDF-1.7\n", ContentKind::Media("application/pdf")),
        ];
        for (bytes, kind) in cases {
            assert_eq!(content_kind(bytes), kind, "{bytes:?}");
        }
    }
}
