//! Images and documents as a provider takes them, or words about what it does not take.

use data_encoding::BASE64;

use crate::{Media, MediaKind};

/// What a provider takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Takes {
    pub images: &'static [&'static str],
    /// Bytes of one image before they are encoded.
    pub image_bytes: usize,
    /// The same for a PDF; 0 if it takes none.
    pub pdf_bytes: usize,
}

/// A media part, ready to be written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    Image {
        mime: &'a str,
        base64: String,
    },
    Pdf {
        base64: String,
    },
    /// Said in its place, so that the model does not think it saw it.
    LeftOut(String),
}

impl Takes {
    pub fn show<'a>(&self, media: &'a Media) -> Shown<'a> {
        let (what, known, most) = match media.kind {
            MediaKind::Image => ("an image", self.images.contains(&media.mime.as_str()), self.image_bytes),
            MediaKind::Pdf => ("a PDF document", self.pdf_bytes > 0, self.pdf_bytes),
        };
        let size = media.bytes.len();
        if !known {
            let mime = &media.mime;
            return Shown::LeftOut(format!("[left out: {what} ({mime}, {size} bytes); this model cannot be sent it]"));
        }
        if size > most {
            return Shown::LeftOut(format!("[left out: {what} of {size} bytes; this model takes at most {most}]"));
        }
        let base64 = BASE64.encode(&media.bytes);
        match media.kind {
            MediaKind::Image => Shown::Image { mime: &media.mime, base64 },
            MediaKind::Pdf => Shown::Pdf { base64 },
        }
    }
}
