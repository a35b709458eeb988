//! One way of asking for every provider over HTTP: what a server refuses before a word was said is changed, and asked
//! again. An adapter says how its server is spoken to, and what of that a refusal is about.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use crate::http::{HttpClient, HttpSettings};
use crate::wire::{Origin, Sending, told_of};
use crate::{Answer, Failure, Heard, Model, ModelError, ModelName, Request, ToolSpec};

/// Said once of a model: who does not count this time does not count the next time.
const UNCOUNTED: &str = "the provider did not count the tokens";

/// One model at one address.
#[derive(Debug)]
pub(crate) struct Provider {
    pub name: ModelName,
    pub settings: HttpSettings,
    pub http: HttpClient,
    pub origin: Origin,
    /// It was said that it does not count.
    told_uncounted: AtomicBool,
}

impl Provider {
    /// A model that is spoken to in a wire format.
    pub fn new(wire: &'static str, name: ModelName, settings: HttpSettings, http: HttpClient) -> Self {
        let origin = Origin::new(wire, &name, http.base());
        Self { name, settings, http, origin, told_uncounted: AtomicBool::new(false) }
    }

    /// Whether it has not shown yet that it does not count.
    pub fn may_count(&self) -> bool {
        !self.told_uncounted.load(Ordering::Relaxed)
    }

    /// The answer, with a word on counts that are missing if that is news.
    fn told_of_counts(&self, mut answer: Answer) -> Answer {
        if answer.usage.is_none() && !self.told_uncounted.swap(true, Ordering::Relaxed) {
            answer.warnings.push(UNCOUNTED.to_owned());
        }
        answer
    }
}

/// How a server is spoken to in one request.
pub(crate) trait Style: Send + Sync {
    /// Whose parts are sent back, and whether images and documents are.
    fn sent(&mut self) -> (&mut Origin, &mut Sending);
}

/// What differs from provider to provider.
#[async_trait]
pub(crate) trait Adapter: Send + Sync {
    /// The wire format's name.
    const WIRE: &'static str;

    type Style: Style;

    fn provider(&self) -> &Provider;

    /// As [`Model::fits`].
    fn takes(&self, tools: &[ToolSpec]) -> Result<(), ModelError>;

    /// How this server has shown so far that it is spoken to.
    fn style(&self, request: &Request<'_>) -> Self::Style;

    /// Changes what servers of this kind are known to refuse; false if the error is about nothing of that.
    fn adapt(&self, _style: &mut Self::Style, _error: &ModelError) -> bool {
        false
    }

    /// Whether a refusal is about parts of its own that were sent back: reasoning, signatures.
    fn refuses_parts(message: &str) -> bool;

    /// Sends one request and reads its answer.
    async fn send(&self, request: &Request<'_>, heard: Heard<'_>, style: &Self::Style) -> Result<Answer, ModelError>;

    /// An error in the classes that all providers share.
    fn classed(&self, error: ModelError) -> ModelError {
        error
    }
}

#[async_trait]
impl<A: Adapter> Model for A {
    fn name(&self) -> &ModelName {
        &self.provider().name
    }

    fn wire(&self) -> &'static str {
        A::WIRE
    }

    fn window(&self) -> Option<u64> {
        self.provider().settings.window
    }

    fn fits(&self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        self.takes(tools)
    }

    async fn ask(&self, request: &Request<'_>, heard: Heard<'_>) -> Result<Answer, ModelError> {
        self.takes(&request.tools)?;
        let mut style = self.style(request);
        let before = *style.sent().1;
        loop {
            match self.send(request, heard, &style).await {
                // Nothing was heard of what is refused, so nothing is heard twice.
                Err(error) if self.adapt(&mut style, &error) || leaves_out::<A>(&mut style, request, &error) => {}
                Err(error) => return Err(self.classed(error)),
                Ok(answer) => {
                    let answer = self.provider().told_of_counts(answer);
                    return Ok(told_of(before, *style.sent().1, answer));
                }
            }
        }
    }
}

/// Leaves out what was refused of the conversation itself: a session must not end because something that stays in its
/// log is not taken back.
fn leaves_out<A: Adapter>(style: &mut A::Style, request: &Request<'_>, error: &ModelError) -> bool {
    let (origin, media) = style.sent();
    let refused = error.failure == Failure::BadRequest;
    if refused && A::refuses_parts(&error.message) && origin.owns_some(request.conversation) {
        *origin = origin.without_parts();
    } else if media.is_refused(error, request.conversation) {
        *media = Sending::Refused;
    } else {
        return false;
    }
    true
}
