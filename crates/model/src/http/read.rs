//! Reads an answer off the wire: bytes in any portions to events, within limits.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use sse_stream::SseStream;

use super::lines::{EventStreamFilter, whole_characters};
use super::{Fault, HttpLimits};
use crate::{Answer, Delta, DeltaSink, Failure};

/// What is left of a stream after its last event is usually there already. Who reads it may use the connection again.
const LAST_BYTES: Duration = Duration::from_millis(20);

/// How long counts may come after the answer itself, where nobody promised any.
const COUNTS: Duration = Duration::from_secs(2);

/// The same where the server was asked to count: gateways count after the provider's last piece, some of them slowly.
const PROMISED_COUNTS: Duration = Duration::from_secs(30);

/// How long more of an answer may come after a part that called itself the last, and may not be.
const PERHAPS: Duration = Duration::from_secs(20);

/// Whether the answer is whole though its last event has not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    No,
    /// Its end was told together with a piece of it. Some gateways write that into every piece.
    Perhaps,
    /// Only counts may follow, and the server was asked for them.
    ButCounts,
    /// Nothing that was asked for may follow.
    Yes,
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// The answer is whole; what follows is not looked at.
    Done,
}

/// Hears one answer and puts it together.
pub(crate) trait Reader: Send {
    /// One event of the stream. Events without data are not told.
    fn event(&mut self, name: Option<&str>, data: &str, heard: DeltaSink<'_>) -> Result<Flow, Fault>;

    /// The answer as one JSON document, from a server that does not stream.
    fn whole(&mut self, body: &str, heard: DeltaSink<'_>) -> Result<(), Fault>;

    /// Whether the answer is whole by now. A server that then neither says more nor hangs up is not waited for.
    fn enough(&self) -> StreamEnd {
        StreamEnd::No
    }

    /// The answer. [`Fault::cut_off`] if its end never came.
    fn finish(self: Box<Self>) -> Result<Answer, Fault>;
}

const UNENDED: &str = "the server never ended its answer; the last piece called itself the last, and is taken for it";

/// Why the stream of an answer ends without its last event.
#[derive(Debug)]
enum BrokenStream {
    Idle(Duration),
    TooLong(usize),
    /// The connection broke; whether a byte had come before.
    Dropped {
        begun: bool,
        why: String,
    },
}

impl fmt::Display for BrokenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(limit) => write!(f, "no byte came for {} s", limit.as_secs_f64()),
            Self::TooLong(limit) => write!(f, "the answer is longer than {limit} bytes, more than is taken in"),
            Self::Dropped { why, .. } => write!(f, "the connection broke: {why}"),
        }
    }
}

impl std::error::Error for BrokenStream {}

impl From<&BrokenStream> for Fault {
    fn from(broken: &BrokenStream) -> Self {
        let failure = match broken {
            BrokenStream::Idle(_) => Failure::Timeout,
            BrokenStream::TooLong(_) => Failure::InvalidResponse,
            BrokenStream::Dropped { begun: false, .. } => Failure::Connection,
            BrokenStream::Dropped { begun: true, .. } => Failure::CutOff,
        };
        Self::new(failure, broken.to_string())
    }
}

/// Lets bytes through while they keep coming and are not too many.
fn bounded<E: fmt::Display>(
    source: impl Stream<Item = Result<Bytes, E>> + Unpin,
    limits: HttpLimits,
) -> impl Stream<Item = Result<Bytes, BrokenStream>> {
    stream::unfold(Some((source, 0_usize)), move |state| async move {
        let (mut source, seen) = state?;
        let broken = match tokio::time::timeout(limits.idle, source.next()).await {
            Err(_) => BrokenStream::Idle(limits.idle),
            Ok(None) => return None,
            Ok(Some(Err(why))) => BrokenStream::Dropped { begun: seen > 0, why: why.to_string() },
            Ok(Some(Ok(bytes))) => {
                let seen = seen.saturating_add(bytes.len());
                if seen <= limits.answer_bytes {
                    return Some((Ok(bytes), Some((source, seen))));
                }
                BrokenStream::TooLong(limits.answer_bytes)
            }
        };
        Some((Err(broken), None))
    })
}

/// Reads a whole answer, an event stream or one JSON document.
pub(crate) async fn read_answer<E: fmt::Display>(
    source: impl Stream<Item = Result<Bytes, E>> + Unpin,
    limits: HttpLimits,
    mut reader: Box<dyn Reader>,
    heard: DeltaSink<'_>,
) -> Result<Answer, Fault> {
    let alive = |bytes| {
        heard(Delta::Alive);
        bytes
    };
    let mut source = pin!(bounded(source, limits).map(alive));
    // No line of an event stream begins with a bracket: a server that sends one does not stream.
    let mut first = Vec::new();
    while first.trim_ascii_start().is_empty() {
        match source.next().await {
            Some(bytes) => first.extend_from_slice(&bytes.map_err(|broken| Fault::from(&broken))?),
            None => return Err(Fault::cut_off()),
        }
    }
    if first.trim_ascii_start().first() == Some(&b'<') {
        // A proxy, a login, another service: the next try would bring the same.
        return Err(Fault::invalid("a page came (HTML), no answer of a model; check the address"));
    }
    if matches!(first.trim_ascii_start().first(), Some(b'{' | b'[')) {
        while let Some(bytes) = source.next().await {
            first.extend_from_slice(&bytes.map_err(|broken| Fault::from(&broken))?);
        }
        let body = String::from_utf8(first).map_err(|_| Fault::invalid("the answer is not UTF-8"))?;
        return match reader.whole(&whole_characters(&body), heard) {
            Ok(()) => reader.finish(),
            // A server that hangs up in the middle of its document.
            Err(fault) if fault.failure == Failure::InvalidResponse && is_half(&body) => Err(Fault::cut_off()),
            Err(fault) => Err(fault),
        };
    }

    // An event ends with an empty line. Some servers leave out the last one.
    let ended = AtomicBool::new(false);
    let last_line = stream::once(async {
        ended.store(true, Ordering::Relaxed);
        Ok(Bytes::from_static(b"\n\n"))
    });
    let bytes = stream::once(async { Ok(Bytes::from(first)) }).chain(source).chain(last_line);
    let mut lines = EventStreamFilter::default();
    let bytes = bytes.map(|bytes| bytes.map(|bytes| Bytes::from(lines.pass(&bytes))));
    let mut events = pin!(SseStream::from_bytes_stream(bytes));
    loop {
        let enough = reader.enough();
        let next = match enough {
            StreamEnd::No => events.next().await,
            StreamEnd::Perhaps => match tokio::time::timeout(PERHAPS, events.next()).await {
                Ok(next) => next,
                Err(_) => {
                    let mut answer = reader.finish()?;
                    answer.warnings.push(UNENDED.to_owned());
                    return Ok(answer);
                }
            },
            StreamEnd::ButCounts => tokio::time::timeout(PROMISED_COUNTS, events.next()).await.unwrap_or(None),
            StreamEnd::Yes => tokio::time::timeout(COUNTS, events.next()).await.unwrap_or(None),
        };
        let Some(event) = next else { break };
        if matches!(enough, StreamEnd::ButCounts | StreamEnd::Yes) && event.is_err() {
            break;
        }
        let event = event.map_err(|error| match &error {
            sse_stream::Error::Body(inner) => match inner.downcast_ref::<BrokenStream>() {
                Some(broken) => Fault::from(broken),
                None => Fault::invalid(error.to_string()),
            },
            // The line that our own last one completed is half a line.
            _ if ended.load(Ordering::Relaxed) => Fault::cut_off(),
            _ => Fault::invalid(format!("the answer is no event stream ({error})")),
        })?;
        let Some(data) = event.data else { continue };
        match reader.event(event.event.as_deref(), &whole_characters(&data), heard) {
            Ok(Flow::More) => {}
            Ok(Flow::Done) => {
                let rest = async { while events.next().await.is_some_and(|event| event.is_ok()) {} };
                let _ = tokio::time::timeout(LAST_BYTES, rest).await;
                break;
            }
            Err(fault) if ended.load(Ordering::Relaxed) && fault.failure == Failure::InvalidResponse => {
                return Err(Fault::cut_off());
            }
            Err(fault) => return Err(fault),
        }
    }
    reader.finish()
}

/// Whether a JSON document ends before its end.
fn is_half(body: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;

    /// Collects events; `end` is the last.
    #[derive(Default)]
    struct Collect {
        told: Vec<String>,
        done: bool,
    }

    impl Reader for Collect {
        fn event(&mut self, name: Option<&str>, data: &str, _heard: DeltaSink<'_>) -> Result<Flow, Fault> {
            if data == "bad" {
                return Err(Fault::invalid("bad"));
            }
            self.told.push(format!("{}={data}", name.unwrap_or("-")));
            self.done = data == "end";
            Ok(if self.done { Flow::Done } else { Flow::More })
        }

        fn whole(&mut self, body: &str, _heard: DeltaSink<'_>) -> Result<(), Fault> {
            self.told.push(format!("whole={body}"));
            self.done = true;
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<Answer, Fault> {
            if !self.done {
                return Err(Fault::cut_off());
            }
            Ok(Answer { parts: Vec::new(), stop: Stop::EndTurn, usage: None, warnings: self.told })
        }
    }

    #[tokio::test]
    async fn a_page_is_no_answer_that_broke_off() {
        assert_eq!(read(vec![Ok("\n <html><body>log in</body></html>")]).await, Err(Failure::InvalidResponse));
    }

    async fn read(pieces: Vec<Result<&'static str, &'static str>>) -> Result<Vec<String>, Failure> {
        let limits = HttpLimits { answer_bytes: 64, ..HttpLimits::default() };
        let source =
            stream::iter(pieces.into_iter().map(|piece| piece.map(|text| Bytes::from_static(text.as_bytes()))));
        let answer = read_answer(source, limits, Box::<Collect>::default(), &|_| {}).await;
        answer.map(|answer| answer.warnings).map_err(|fault| fault.failure)
    }

    #[tokio::test]
    async fn events_come_through_comments_crlf_and_a_missing_last_line() {
        let told = read(vec![Ok(": hi\r\n\r\nevent: a\r"), Ok("\ndata: 1\r\n\r\n"), Ok("data: e"), Ok("nd")]).await;
        assert_eq!(told, Ok(vec!["a=1".to_owned(), "-=end".to_owned()]));
    }

    #[tokio::test]
    async fn a_document_in_place_of_a_stream_is_read_whole() {
        assert_eq!(read(vec![Ok(" \n{\"a\""), Ok(":1}")]).await, Ok(vec!["whole= \n{\"a\":1}".to_owned()]));
    }

    #[tokio::test]
    async fn check_5_7_half_an_answer_is_no_answer() {
        assert_eq!(
            read(vec![Ok("data: 1\n\n")]).await,
            Err(Failure::CutOff),
            "ended in good order, but without its end"
        );
        assert_eq!(read(vec![Ok("data: 1\n\ndat")]).await, Err(Failure::CutOff), "half a line");
        assert_eq!(read(vec![Ok("data: 1\n\ndata: bad")]).await, Err(Failure::CutOff), "half an event");
        assert_eq!(read(vec![Ok("data: 1\n\n"), Err("reset")]).await, Err(Failure::CutOff));
        assert_eq!(read(vec![]).await, Err(Failure::CutOff));
        assert_eq!(read(vec![Err("reset")]).await, Err(Failure::Connection), "no byte came");
    }

    #[tokio::test]
    async fn what_is_no_stream_or_too_much_is_invalid() {
        assert_eq!(read(vec![Ok("<html>\n<body>")]).await, Err(Failure::InvalidResponse));
        assert_eq!(read(vec![Ok("data: bad\n\ndata: end\n\n")]).await, Err(Failure::InvalidResponse));
        let long = "data: 1\n\ndata: 2\n\ndata: 3\n\n";
        assert_eq!(read(vec![Ok(long), Ok(long), Ok(long)]).await, Err(Failure::InvalidResponse));
        assert_eq!(
            read(vec![Ok("data: "), Ok("0123456789012345678901234567890123456789012345678901234567890123")]).await,
            Err(Failure::InvalidResponse),
            "one line that never ends"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn check_5_7_silence_is_a_timeout() {
        let source = stream::iter([Ok::<_, &str>(Bytes::from_static(b"data: 1\n\n"))]).chain(stream::pending());
        let before = tokio::time::Instant::now();
        let fault =
            read_answer(source, HttpLimits::default(), Box::<Collect>::default(), &|_| {}).await.expect_err("silence");
        assert_eq!((fault.failure, fault.what.as_str()), (Failure::Timeout, "no byte came for 120 s"));
        // The clock stands still but for waits, so this is exactly how long it waited.
        assert_eq!(before.elapsed().as_secs(), 120);
    }

    #[tokio::test]
    async fn h28_every_portion_of_bytes_is_a_sign_of_life_whatever_it_holds() {
        let pieces = ["data: 1\n\n", ": keep-alive\n\n", "event: ping\n\n", "data: e", "nd\n\n"];
        let source = stream::iter(pieces.map(|text| Ok::<_, &str>(Bytes::from_static(text.as_bytes()))));
        let heard = std::sync::Mutex::new(0);
        let count = |delta: Delta<'_>| {
            assert_eq!(delta, Delta::Alive);
            *heard.lock().expect("whole") += 1;
        };
        read_answer(source, HttpLimits::default(), Box::<Collect>::default(), &count).await.expect("an answer");
        assert_eq!(heard.into_inner().expect("whole"), pieces.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_hang_up_is_not_waited_for() {
        let source = stream::iter([Ok::<_, &str>(Bytes::from_static(b"data: end\n\n"))]).chain(stream::pending());
        let before = tokio::time::Instant::now();
        assert!(read_answer(source, HttpLimits::default(), Box::<Collect>::default(), &|_| {}).await.is_ok());
        assert!(before.elapsed() <= Duration::from_millis(25));
    }
}
