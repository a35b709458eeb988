//! Images and documents as a provider takes them, or words about what it does not take.

use data_encoding::BASE64;

use super::Origin;
use crate::{Answer, Conversation, Failure, Media, MediaKind, Message, ModelError, ResultPart, UserPart};

/// The images and documents that a provider takes, and their largest sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MediaLimits {
    pub images: &'static [&'static str],
    /// Bytes of one image before they are encoded.
    pub image_bytes: usize,
    /// The same for a PDF; 0 if it takes none.
    pub pdf_bytes: usize,
    /// Nothing, because one was refused.
    pub refused: bool,
}

/// Whether images and documents are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaSending {
    Yes,
    /// The server is not known to take any.
    No,
    /// One of this conversation was refused.
    Refused,
}

/// What a person is told when they are sent no more.
const REFUSED: &str = "the provider refused an image or a document of this conversation; from here on it is sent \
none of them, and the model is told so in their place";

impl MediaSending {
    pub fn of(sent: bool) -> Self {
        if sent { Self::Yes } else { Self::No }
    }

    /// As it stands in a conversation: what was refused once would be refused in every later request.
    pub fn standing(self, origin: &Origin, conversation: &Conversation, style: impl Fn(Self) -> String) -> Self {
        let refused = style(Self::Refused);
        let rendered = |origin: &Origin| conversation.was_rendered(&origin.rendering(&refused));
        if self == Self::Yes && (rendered(origin) || rendered(&origin.without_parts())) { Self::Refused } else { self }
    }

    /// Whether an error is about what was sent, so that the conversation can go on without.
    pub fn is_refused(self, error: &ModelError, conversation: &Conversation) -> bool {
        let words = error.message.to_lowercase().replace("documentation", "");
        let named = ["image", "pdf", "document", "multimodal", "mmproj", "inline_data", "file_data", "media"];
        // Some servers call it their own fault that their model cannot see.
        let blind = error.failure == Failure::Server && words.contains("not supported");
        self == Self::Yes
            && (error.failure == Failure::BadRequest || blind)
            && named.iter().any(|word| words.contains(word))
            && conversation.messages().iter().any(has_media)
    }

    /// What is taken then.
    pub fn takes(self, takes: MediaLimits) -> MediaLimits {
        match self {
            Self::Yes => takes,
            Self::No => MediaLimits { images: &[], image_bytes: 0, pdf_bytes: 0, refused: false },
            Self::Refused => MediaLimits { images: &[], image_bytes: 0, pdf_bytes: 0, refused: true },
        }
    }

    /// Its name among the styles of rendering.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "media",
            Self::No => "text",
            Self::Refused => "media refused",
        }
    }
}

/// The answer, which tells a person if something was refused on the way to it.
pub(crate) fn told_of(before: MediaSending, after: MediaSending, mut answer: Answer) -> Answer {
    if before != after {
        answer.warnings.insert(0, REFUSED.to_owned());
    }
    answer
}

fn has_media(message: &Message) -> bool {
    let Message::User(parts) = message else { return false };
    parts.iter().any(|part| match part {
        UserPart::Media(_) => true,
        UserPart::Result(result) => result.parts.iter().any(|part| matches!(part, ResultPart::Media(_))),
        UserPart::Text(_) => false,
    })
}

/// A media part, ready to be written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MediaForm<'a> {
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

impl MediaLimits {
    pub fn show<'a>(&self, media: &'a Media) -> MediaForm<'a> {
        let (what, known, most) = match media.kind {
            MediaKind::Image => ("an image", self.images.contains(&media.mime.as_str()), self.image_bytes),
            MediaKind::Pdf => ("a PDF document", self.pdf_bytes > 0, self.pdf_bytes),
        };
        let size = media.bytes.len();
        if !known {
            let mime = &media.mime;
            if self.refused {
                let why = "the provider refused it, or another one of this conversation";
                return MediaForm::LeftOut(format!("[left out: {what} ({mime}, {size} bytes); {why}]"));
            }
            return MediaForm::LeftOut(format!(
                "[left out: {what} ({mime}, {size} bytes); this model cannot be sent it]"
            ));
        }
        if size > most {
            return MediaForm::LeftOut(format!("[left out: {what} of {size} bytes; this model takes at most {most}]"));
        }
        let base64 = BASE64.encode(&media.bytes);
        match media.kind {
            MediaKind::Image => MediaForm::Image { mime: &media.mime, base64 },
            MediaKind::Pdf => MediaForm::Pdf { base64 },
        }
    }
}
