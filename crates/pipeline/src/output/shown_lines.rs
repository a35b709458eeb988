//! Which lines of which files a model still has before it: nobody is sent the same bytes twice (tool-contract §19,
//! L65).
//!
//! The builder of a model's context keeps this book, because only it can know: an observation enters when the context
//! takes it in, and leaves when a compaction takes it out. It never answers a read by itself. The call has read the file
//! and hashed it; only then is what it found compared with what stands here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{Code, Digest, FileFact, LineRange, Recorded};
use portcullis_contract::Content;
use portcullis_event::{EarlierObservation, Observed};

use crate::phases::intent::Intent;
use crate::sessions::session::SessionShared;

/// The pages of files in one context. Clones are the same book.
#[derive(Debug, Clone, Default)]
pub struct InContext {
    /// By the session's name for a file.
    pages: Arc<Mutex<HashMap<String, Vec<Page>>>>,
}

#[derive(Debug, Clone)]
struct Page {
    sha256: Digest,
    lines: Vec<LineRange>,
    shown_by: EarlierObservation,
    /// The seq of the answer that asked for it: a compaction takes out whole answers.
    answer: u64,
}

impl InContext {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Page>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A book of its own with the same pages.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self { pages: Arc::new(Mutex::new(self.lock().clone())) }
    }

    /// The context holds this observation now, as the result of a call of the answer at `answer`.
    pub fn enter(&self, observed: &Observed, answer: u64) {
        // One that only points to another shows nothing itself.
        let ([FileFact::Delivered { path, sha256, lines, .. }], Some(Code::Ok)) =
            (observed.files.as_slice(), observed.code.known())
        else {
            return;
        };
        if lines.is_empty() {
            return;
        }
        let shown_by =
            EarlierObservation { observation_id: observed.observation_id, call_id: observed.call_id.clone() };
        let page = Page { sha256: *sha256, lines: lines.clone(), shown_by, answer };
        self.lock().entry(path.clone()).or_default().push(page);
    }

    /// The context has nothing any more of answers before the one at `kept_from`.
    pub fn leave_before(&self, kept_from: u64) {
        self.lock().retain(|_, pages| {
            pages.retain(|page| page.answer >= kept_from);
            !pages.is_empty()
        });
    }

    /// The context has not the whole of what a call of this id showed any more.
    pub fn leave(&self, call_id: &str) {
        self.lock().retain(|_, pages| {
            pages.retain(|page| page.shown_by.call_id != call_id);
            !pages.is_empty()
        });
    }

    /// Whether it has lines that a call of this id showed.
    #[must_use]
    pub fn shows(&self, call_id: &str) -> bool {
        self.lock().values().flatten().any(|page| page.shown_by.call_id == call_id)
    }

    fn shown(&self, path: &str, sha256: Digest, lines: &[LineRange]) -> Option<EarlierObservation> {
        let book = self.lock();
        let same = |page: &&Page| page.sha256 == sha256 && page.lines == lines;
        book.get(path)?.iter().rev().find(same).map(|page| page.shown_by.clone())
    }
}

/// A read of lines that stand in the context already says so instead of showing them again.
pub(crate) fn unchanged(
    session: &SessionShared,
    intent: &Intent,
    observed: &mut Observed,
    content: &mut Option<Vec<Content>>,
) {
    let Some(book) = intent.turn.as_ref().and_then(|turn| turn.in_context.as_ref()) else { return };
    // The text of a read is its lines and nothing else, so nothing else is left out with it.
    let ([FileFact::Delivered { path, sha256, lines, .. }], Some([Content::Text { .. }]), Some(Code::Ok)) =
        (observed.files.as_slice(), content.as_deref(), observed.code.known())
    else {
        return;
    };
    // What was read or written last must be this very content: else the model read something newer in between.
    let current = session.state().baselines.get(path).is_some_and(|baseline| baseline.sha256 == *sha256);
    let Some(earlier) = current.then(|| book.shown(path, *sha256, lines)).flatten() else { return };
    observed.code = Recorded::Known(Code::FileUnchanged);
    observed.summary = format!("unchanged since call `{}` showed it: {}", earlier.call_id, observed.summary);
    observed.unchanged_since = Some(earlier);
    *content = Some(Vec::new());
}
