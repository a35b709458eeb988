//! Captured streams (tool-contract 15.3): any length, constant memory. What was written before a cancel, a
//! timeout or a panic is kept, because the runtime holds it, not the tool.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portcullis_base::{TenantId, Window, limits};
use portcullis_contract::SpoolRef;
use portcullis_contract::seam::SpoolSink;
use portcullis_secret::{RedactingStream, Redactor};
use portcullis_store::{ArtifactWriter, Artifacts, StoredBlob};
use tokio::time::Instant;

use crate::tasks::progress::Words;

/// Where the bytes of a stream are.
enum Body {
    /// Small enough to ride in an append.
    Inline(Vec<u8>),
    Spilled(Box<dyn ArtifactWriter>, Option<StreamEnds>),
    /// Could not be kept; the reason.
    Lost(String),
}

/// The beginning and the end of a stream that is on its way to disk, for a reader while it runs.
struct StreamEnds {
    head: Vec<u8>,
    tail: VecDeque<u8>,
}

/// The most of a stream's end that is held, as much as of its beginning.
const TAIL: usize = limits::SPOOL_MEM - limits::ARTIFACT_INLINE_MAX;

impl StreamEnds {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(TAIL)..];
        let over = (self.tail.len() + bytes.len()).saturating_sub(TAIL);
        self.tail.drain(..over);
        self.tail.extend(bytes);
    }
}

/// What can be seen of a stream while it is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoFar {
    pub name: String,
    /// Bytes written by the tool.
    pub total_bytes: u64,
    /// Bytes kept, secrets masked; the places below are counted in these.
    pub kept_bytes: u64,
    /// The beginning.
    pub head: Vec<u8>,
    /// Where `tail` begins; what lies between can be read when the task has ended.
    pub tail_at: u64,
    pub tail: Vec<u8>,
}

struct Capture {
    name: String,
    index: u32,
    body: Body,
    total: u64,
    kept: u64,
    /// Bytes were written that are not kept. Masking a secret shortens a stream without dropping anything.
    dropped: bool,
    redactor: Option<RedactingStream>,
    artifacts: Arc<dyn Artifacts>,
    tenant: TenantId,
    /// Someone may look at it while it runs.
    watched: bool,
    live: StreamNotifier,
}

/// Collects what a stream wrote since the watcher was last told (tool-contract §14: commands stream).
struct StreamNotifier {
    words: Arc<Words>,
    pending: Vec<u8>,
    told: Option<Instant>,
    /// When it was last written to, until what is held back was told.
    wrote: Option<Instant>,
}

/// How often a watcher is told of a stream that goes on: faster than a person reads, slower than a flood.
const LIVE_EVERY: Duration = Duration::from_millis(100);
/// A stream that was quiet for so long is told to its end. Until then its last bytes are held back, in which a secret may
/// have begun: with the shapes of a long key that is several lines.
const LIVE_QUIET: Duration = Duration::from_millis(300);

impl StreamNotifier {
    /// Takes in what was masked. Of more than one delta holds only the end counts.
    fn take(&mut self, name: &str, clean: &[u8]) {
        if !self.words.is_watched() {
            return;
        }
        self.pending.extend_from_slice(clean);
        let over = self.pending.len().saturating_sub(limits::PROGRESS_LIVE);
        self.pending.drain(..over);
        if self.told.is_none_or(|told| told.elapsed() >= LIVE_EVERY) {
            self.tell(name);
        }
    }

    fn tell(&mut self, name: &str) {
        if self.pending.is_empty() {
            return;
        }
        // A character that has not come whole waits for its rest.
        let whole = match std::str::from_utf8(&self.pending) {
            Err(cut) if cut.error_len().is_none() => cut.valid_up_to(),
            _ => self.pending.len(),
        };
        let rest = self.pending.split_off(whole);
        let piece = std::mem::replace(&mut self.pending, rest);
        if !piece.is_empty() {
            let text = String::from_utf8_lossy(&piece);
            // A byte that is no text takes three when it is shown.
            let from = text.ceil_char_boundary(text.len().saturating_sub(limits::PROGRESS_LIVE));
            self.words.wrote(name, false, text[from..].to_owned());
        }
        self.told = Some(Instant::now());
    }

    /// Tells the whole lines of what is held back, once the stream was quiet for a while.
    fn tell_held(&mut self, name: &str, held: Option<&RedactingStream>) {
        let Some(held) = held.filter(|_| self.wrote.is_some_and(|wrote| wrote.elapsed() >= LIVE_QUIET)) else { return };
        self.wrote = None;
        let masked = held.peek();
        let lines = masked.iter().rposition(|byte| *byte == b'\n').map_or(&masked[..0], |end| &masked[..=end]);
        if !lines.is_empty() {
            self.words.wrote(name, true, String::from_utf8_lossy(lines).into_owned());
        }
    }
}

impl Capture {
    fn take_in(&mut self, bytes: &[u8]) {
        self.live.take(&self.name, bytes);
        let room = limits::SPOOL_MAX.saturating_sub(self.kept);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.dropped |= fits < bytes.len();
        if fits == 0 {
            return;
        }
        let bytes = &bytes[..fits];
        if let Err(error) = self.keep(bytes) {
            self.body = Body::Lost(error.to_string());
        }
        self.kept += fits as u64;
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.body {
            Body::Inline(held) if held.len() + bytes.len() <= limits::ARTIFACT_INLINE_MAX => {
                held.extend_from_slice(bytes);
                Ok(())
            }
            Body::Inline(held) => {
                let mut writer = self.artifacts.begin(self.tenant)?;
                writer.write(held)?;
                writer.write(bytes)?;
                let ends = self.watched.then(|| {
                    let mut ends = StreamEnds { head: std::mem::take(held), tail: VecDeque::new() };
                    ends.push(bytes);
                    ends
                });
                self.body = Body::Spilled(writer, ends);
                Ok(())
            }
            Body::Spilled(writer, ends) => {
                if let Some(ends) = ends {
                    ends.push(bytes);
                }
                writer.write(bytes)
            }
            Body::Lost(_) => Ok(()),
        }
    }

    fn so_far(&self) -> SoFar {
        let rest = self.redactor.as_ref().map_or(&[][..], RedactingStream::harmless);
        let (head, tail): (Vec<u8>, Vec<u8>) = match &self.body {
            Body::Inline(held) => ([held, rest].concat(), Vec::new()),
            Body::Spilled(_, Some(ends)) => (ends.head.clone(), ends.tail.iter().chain(rest).copied().collect()),
            Body::Spilled(_, None) | Body::Lost(_) => (Vec::new(), Vec::new()),
        };
        let kept = self.kept + rest.len() as u64;
        SoFar {
            name: self.name.clone(),
            total_bytes: self.total,
            kept_bytes: kept,
            head,
            tail_at: kept - tail.len() as u64,
            tail,
        }
    }

    fn flush_redactor(&mut self) {
        if let Some(redactor) = self.redactor.take() {
            let rest = redactor.finish();
            self.take_in(&rest);
        }
    }
}

struct Sink(Arc<Mutex<Capture>>);

fn lock(capture: &Mutex<Capture>) -> MutexGuard<'_, Capture> {
    capture.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpoolSink for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut capture = lock(&self.0);
        capture.total += bytes.len() as u64;
        capture.live.wrote = Some(Instant::now());
        match capture.redactor.as_mut().map(|redactor| redactor.push(bytes)) {
            Some(clean) => capture.take_in(&clean),
            None => capture.take_in(bytes),
        }
        if capture.total > limits::SPOOL_KILL {
            return Err(io::Error::other(format!("more than {} bytes were written", limits::SPOOL_KILL)));
        }
        Ok(())
    }

    fn finish(&mut self) -> SpoolRef {
        let mut capture = lock(&self.0);
        capture.flush_redactor();
        SpoolRef {
            index: capture.index,
            name: capture.name.clone(),
            total_bytes: capture.total,
            kept_bytes: capture.kept,
        }
    }
}

/// A stream as it was when the invocation ended.
pub(crate) struct CapturedStream {
    pub(crate) name: String,
    pub(crate) total: u64,
    pub(crate) kept: u64,
    pub(crate) dropped: bool,
    pub(crate) bytes: CapturedBytes,
}

pub(crate) enum CapturedBytes {
    Inline(Arc<Vec<u8>>),
    Stored(StoredBlob),
    Lost(String),
}

impl CapturedStream {
    pub(crate) fn window(&self) -> Option<Arc<dyn Window>> {
        match &self.bytes {
            CapturedBytes::Inline(bytes) => Some(Arc::clone(bytes) as Arc<dyn Window>),
            CapturedBytes::Stored(stored) => Some(Arc::clone(&stored.window)),
            CapturedBytes::Lost(_) => None,
        }
    }

    /// Whether every byte the producer wrote is there.
    pub(crate) fn complete(&self) -> bool {
        !self.dropped && !matches!(self.bytes, CapturedBytes::Lost(_))
    }
}

/// The streams of one invocation.
pub(crate) struct Streams {
    captures: Mutex<Vec<Arc<Mutex<Capture>>>>,
    artifacts: Arc<dyn Artifacts>,
    tenant: TenantId,
    redactor: Arc<Redactor>,
    words: Arc<Words>,
    watched: bool,
}

impl Streams {
    /// `watched`: someone may look at them while they are written, so that their ends are held.
    pub(crate) fn new(artifacts: Arc<dyn Artifacts>, tenant: TenantId, words: Arc<Words>, watched: bool) -> Self {
        let redactor = Arc::clone(&words.redactor);
        Self { captures: Mutex::default(), artifacts, tenant, redactor, words, watched }
    }

    /// Tells the watcher what was written and not yet told, for as long as it is polled. Never ends.
    pub(crate) async fn tell_live(&self) {
        if !self.words.is_watched() {
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(LIVE_EVERY).await;
            for capture in self.captures().iter() {
                let capture = &mut *lock(capture);
                capture.live.tell(&capture.name);
                capture.live.tell_held(&capture.name, capture.redactor.as_ref());
            }
        }
    }

    fn captures(&self) -> MutexGuard<'_, Vec<Arc<Mutex<Capture>>>> {
        self.captures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every stream and makes the large ones durable. Blocks on the disk.
    pub(crate) fn collect(&self) -> Vec<CapturedStream> {
        let captures = std::mem::take(&mut *self.captures());
        captures.iter().map(|capture| collect(&mut lock(capture))).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.captures().is_empty()
    }

    /// What they hold now.
    pub(crate) fn so_far(&self) -> Vec<SoFar> {
        self.captures().iter().map(|capture| lock(capture).so_far()).collect()
    }

    pub(crate) fn open(&self, name: &str) -> Box<dyn SpoolSink> {
        let mut captures = self.captures();
        let capture = Arc::new(Mutex::new(Capture {
            name: name.to_owned(),
            index: u32::try_from(captures.len()).unwrap_or(u32::MAX),
            body: Body::Inline(Vec::new()),
            total: 0,
            kept: 0,
            dropped: false,
            redactor: (!self.redactor.is_empty()).then(|| self.redactor.stream()),
            artifacts: Arc::clone(&self.artifacts),
            tenant: self.tenant,
            watched: self.watched,
            live: StreamNotifier { words: Arc::clone(&self.words), pending: Vec::new(), told: None, wrote: None },
        }));
        captures.push(Arc::clone(&capture));
        Box::new(Sink(capture))
    }
}

fn collect(capture: &mut Capture) -> CapturedStream {
    capture.flush_redactor();
    let bytes = match std::mem::replace(&mut capture.body, Body::Lost("the stream had ended".to_owned())) {
        Body::Inline(bytes) => CapturedBytes::Inline(Arc::new(bytes)),
        Body::Spilled(writer, _) => match writer.finish() {
            Ok(stored) => CapturedBytes::Stored(stored),
            Err(error) => CapturedBytes::Lost(error.to_string()),
        },
        Body::Lost(why) => CapturedBytes::Lost(why),
    };
    let Capture { total, kept, dropped, .. } = *capture;
    CapturedStream { name: capture.name.clone(), total, kept, dropped, bytes }
}
