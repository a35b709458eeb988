//! Captured streams (15.3): any length, constant memory. What was written before a cancel, a
//! timeout or a panic is kept, because the runtime holds it, not the tool.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_base::{ArtifactId, Clock, IdGen, TenantId, Window, limits};
use portcullis_contract::SpoolRef;
use portcullis_contract::seam::{Host, SpoolSink};
use portcullis_secret::{RedactingStream, Redactor};
use portcullis_store::{ArtifactWriter, Artifacts, Stored};

/// Where the bytes of a stream are.
enum Body {
    /// Small enough to ride in an append.
    Inline(Vec<u8>),
    Spilled(Box<dyn ArtifactWriter>),
    /// Could not be kept; the reason.
    Lost(String),
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
}

impl Capture {
    fn take_in(&mut self, bytes: &[u8]) {
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
                self.body = Body::Spilled(writer);
                Ok(())
            }
            Body::Spilled(writer) => writer.write(bytes),
            Body::Lost(_) => Ok(()),
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
pub(crate) struct Captured {
    pub(crate) name: String,
    pub(crate) total: u64,
    pub(crate) kept: u64,
    pub(crate) dropped: bool,
    pub(crate) bytes: CapturedBytes,
}

pub(crate) enum CapturedBytes {
    Inline(Arc<Vec<u8>>),
    Stored(Stored),
    Lost(String),
}

impl Captured {
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

/// The runtime's side of one invocation's context.
pub(crate) struct InvocationHost {
    captures: Mutex<Vec<Arc<Mutex<Capture>>>>,
    artifacts: Arc<dyn Artifacts>,
    tenant: TenantId,
    redactor: Arc<Redactor>,
    ids: Arc<dyn IdGen>,
    clock: Arc<dyn Clock>,
}

impl InvocationHost {
    pub(crate) fn new(
        artifacts: Arc<dyn Artifacts>,
        tenant: TenantId,
        redactor: Arc<Redactor>,
        ids: Arc<dyn IdGen>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { captures: Mutex::default(), artifacts, tenant, redactor, ids, clock }
    }

    /// Ends every stream and makes the large ones durable. Blocks on the disk.
    pub(crate) fn collect(&self) -> Vec<Captured> {
        let captures = std::mem::take(&mut *self.captures.lock().unwrap_or_else(PoisonError::into_inner));
        captures.iter().map(|capture| collect(&mut lock(capture))).collect()
    }

    pub(crate) fn has_streams(&self) -> bool {
        !self.captures.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

fn collect(capture: &mut Capture) -> Captured {
    capture.flush_redactor();
    let bytes = match std::mem::replace(&mut capture.body, Body::Lost("the stream had ended".to_owned())) {
        Body::Inline(bytes) => CapturedBytes::Inline(Arc::new(bytes)),
        Body::Spilled(writer) => match writer.finish() {
            Ok(stored) => CapturedBytes::Stored(stored),
            Err(error) => CapturedBytes::Lost(error.to_string()),
        },
        Body::Lost(why) => CapturedBytes::Lost(why),
    };
    let Capture { total, kept, dropped, .. } = *capture;
    Captured { name: capture.name.clone(), total, kept, dropped, bytes }
}

impl Host for InvocationHost {
    fn artifact_id(&self) -> ArtifactId {
        ArtifactId::make(&*self.ids, self.clock.now())
    }

    fn open_spool(&self, name: &str) -> Box<dyn SpoolSink> {
        let mut captures = self.captures.lock().unwrap_or_else(PoisonError::into_inner);
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
        }));
        captures.push(Arc::clone(&capture));
        Box::new(Sink(capture))
    }

    fn progress(&self, _text: &str) {
        // Nobody watches live deltas yet: they are never durable, so there is nowhere to put them.
    }
}
