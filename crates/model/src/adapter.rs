//! One model at one address over HTTP, in any wire format. What a server refuses before a word was said is changed, and
//! asked again.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use async_trait::async_trait;
use bytes::Bytes;

use crate::http::{HttpClient, HttpSettings};
use crate::protocol::{Endpoint, Protocol, Quirks, Style, WireFormat};
use crate::wire::{Body, Ids, MediaSending, Origin, told_of};
use crate::{Answer, DeltaSink, Failure, Message, Model, ModelError, ModelName, Request, ToolSpec};

/// Told once of a model: a server that does not count this time does not count the next time.
const UNCOUNTED: &str = "the provider did not count the tokens";

/// A model of a provider over HTTP.
#[derive(Debug)]
pub struct HttpModel {
    name: ModelName,
    settings: HttpSettings,
    http: HttpClient,
    origin: Origin,
    endpoint: &'static Endpoint,
    protocol: Box<dyn Protocol>,
    /// The [`Quirks`] that the server has shown.
    quirks: AtomicU8,
    /// A warning has told that it does not count.
    told_uncounted: AtomicBool,
}

impl HttpModel {
    /// A model that is spoken to in a wire format. Without a base url it is the provider's own. Nothing is sent.
    ///
    /// # Errors
    /// [`Failure::Config`]: no key for the provider's own address, or settings that cannot work.
    pub fn new(format: WireFormat, name: ModelName, settings: HttpSettings) -> Result<Self, ModelError> {
        let endpoint = format.endpoint();
        if settings.key.is_none() && (endpoint.is_own)(&settings) {
            let (variable, or) = (endpoint.place.key_variable, endpoint.without_key);
            return Err(ModelError::new(Failure::Config, format!("{name}: no key; set {variable}{or}")));
        }
        let protocol = format.protocol(&name, &settings)?;
        Body::check_extra(&name, &settings.extra, endpoint.own_fields)?;
        let http = HttpClient::new(&name, endpoint.place, &settings)?;
        let origin = Origin::new(endpoint.wire, &name, http.base());
        let (quirks, told_uncounted) = (AtomicU8::default(), AtomicBool::default());
        Ok(Self { name, settings, http, origin, endpoint, protocol, quirks, told_uncounted })
    }

    /// The ids of the models that the server offers, in its order.
    ///
    /// # Errors
    /// [`Failure::Config`] for a wire format without a list; whatever stood in the way of the list otherwise.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        match &self.endpoint.listing {
            Some(listing) => listing.ids(&self.http).await,
            None => {
                let what = format!("{}: this provider is not asked for its models", self.name);
                Err(ModelError::new(Failure::Config, what))
            }
        }
    }

    /// The connection to the server.
    pub(crate) fn http(&self) -> &HttpClient {
        &self.http
    }

    /// How this server has shown so far that it is spoken to.
    fn style(&self, request: &Request<'_>) -> Style {
        let Self { origin, protocol, .. } = self;
        let quirks = Quirks(self.quirks.load(Ordering::Relaxed));
        let media = MediaSending::of(self.settings.media.unwrap_or_else(|| protocol.sends_media()));
        let media = media.standing(origin, request.conversation, |media| protocol.rendering(media, quirks));
        let origin = origin.standing(request.conversation, &protocol.rendering(media, quirks));
        Style { origin, media, quirks, may_count: !self.told_uncounted.load(Ordering::Relaxed) }
    }

    /// Sends one request and reads its answer.
    async fn send(&self, request: &Request<'_>, heard: DeltaSink<'_>, style: &Style) -> Result<Answer, ModelError> {
        let Self { name, settings, origin, protocol, .. } = self;
        let head = protocol.head(&name.id, &settings.extra, request, style);
        let body = Bytes::from(body(self.endpoint, &**protocol, head, request, style));
        let ids = Ids::new(request.conversation, body.clone());
        let reader = protocol.reader(request, style, origin.clone(), ids);
        self.http.ask(protocol.path(), protocol.headers(), body, reader, heard).await
    }

    /// Changes what the server was shown to refuse; false if the error is about nothing of that.
    fn adapts(&self, style: &mut Style, request: &Request<'_>, error: &ModelError) -> bool {
        let news = self.protocol.quirks_shown(error).into_iter().find(|quirk| !style.quirks.has(*quirk));
        if let Some(quirk) = news {
            self.quirks.fetch_or(Quirks::bit(quirk), Ordering::Relaxed);
            style.quirks = style.quirks.with(quirk);
            return true;
        }
        // What was refused of the conversation itself is left out: a session must not end because something that stays
        // in its log is not taken back.
        let refused = error.failure == Failure::BadRequest;
        if refused && self.protocol.refuses_parts(&error.message) && style.origin.owns_some(request.conversation) {
            style.origin = style.origin.without_parts();
        } else if style.media.is_refused(error, request.conversation) {
            style.media = MediaSending::Refused;
        } else {
            return false;
        }
        true
    }

    /// An error in the classes that all providers share.
    fn classed(&self, error: ModelError) -> ModelError {
        if error.failure != Failure::BadRequest || !self.protocol.refuses_key(&error.message) {
            return error;
        }
        let what = format!("{}: the key was refused. Check {}", self.name, self.endpoint.place.key_variable);
        ModelError { failure: Failure::Auth, message: what, ..error }
    }

    /// The answer, with a warning about missing counts if that is news.
    fn told_of_counts(&self, mut answer: Answer) -> Answer {
        if answer.usage.is_none() && !self.told_uncounted.swap(true, Ordering::Relaxed) {
            answer.warnings.push(UNCOUNTED.to_owned());
        }
        answer
    }
}

/// The whole body: all that stays the same, then the messages, then what holds for this request alone (agent-runtime 6.3).
pub(crate) fn body(
    endpoint: &Endpoint,
    protocol: &dyn Protocol,
    head: Body,
    request: &Request<'_>,
    style: &Style,
) -> Vec<u8> {
    let off = (request.tools_off && !request.tools.is_empty()).then(|| protocol.tools_off());
    let opening = protocol.opening(request).map(|element| element.to_string()).unwrap_or_default();
    let rendering = style.origin.rendering(&protocol.rendering(style.media, style.quirks));
    let no_answer = protocol.no_answer().to_string();
    let render = |message: &Message, out: &mut Vec<u8>| protocol.render(message, style, out);
    let end = |messages: &[u8]| head.last(endpoint.messages, [opening.as_bytes(), messages], off);
    request.conversation.with_turns(&rendering, &no_answer, render, end)
}

#[async_trait]
impl Model for HttpModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn wire(&self) -> &'static str {
        self.endpoint.wire
    }

    fn window(&self) -> Option<u64> {
        self.settings.window
    }

    fn fits(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        self.protocol.dialect().check(&self.name, tools)
    }

    async fn ask(&self, request: &Request<'_>, heard: DeltaSink<'_>) -> Result<Answer, ModelError> {
        self.fits(&request.tools)?;
        let mut style = self.style(request);
        let before = style.media;
        loop {
            match self.send(request, heard, &style).await {
                // Nothing was heard of what is refused, so nothing is heard twice.
                Err(error) if self.adapts(&mut style, request, &error) => {}
                Err(error) => return Err(self.classed(error)),
                Ok(answer) => return Ok(told_of(before, style.media, self.told_of_counts(answer))),
            }
        }
    }
}
