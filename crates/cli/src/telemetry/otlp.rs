//! Spans to a collector: OTLP over HTTP with protobuf, on a thread of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter as Export,
};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::{OURS, genai};
use crate::exit::usage;

/// Nobody who is done waits longer for a collector.
const FLUSH: Duration = Duration::from_secs(2);
/// A collector that is slower than this for one batch is not there.
const EXPORT: Duration = Duration::from_secs(5);
/// Spans that wait to be sent: some hundred calls with their phases. What comes when it is full is dropped.
const QUEUE: usize = 8_192;
/// Where a collector takes traces.
const PATH: &str = "/v1/traces";

/// The way to a collector.
pub struct Collector {
    endpoint: String,
    provider: SdkTracerProvider,
    lost: Arc<LostSpans>,
}

/// What could not be sent, and why.
#[derive(Debug, Default)]
struct LostSpans {
    spans: AtomicUsize,
    why: Mutex<String>,
}

/// A layer that sends every span of ours, and what has to be seen to at the end. Events are not sent: their words are for
/// whoever has the machine before them.
pub fn connect<S>(endpoint: &str) -> anyhow::Result<(impl Layer<S> + use<S>, Collector)>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    // reqwest panics without one. Whoever comes second finds it installed, which is what is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{endpoint}{PATH}"))
        .with_timeout(EXPORT)
        .build()
        .map_err(|why| usage(format!("telemetry.otlp_endpoint: {why}")))?;
    let lost = Arc::new(LostSpans::default());
    let exporter = Renaming { exporter, lost: Arc::clone(&lost) };
    let batches = BatchConfigBuilder::default().with_max_queue_size(QUEUE).build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name(OURS).with_attribute(version).build();
    let provider = SdkTracerProvider::builder().with_span_processor(processor).with_resource(resource).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(OURS))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|of| of.is_span() && of.target().starts_with(OURS)));
    Ok((layer, Collector { endpoint: endpoint.to_owned(), provider, lost }))
}

impl Collector {
    /// Sends what is left, for at most [`FLUSH`]. What could not be sent, in words for a person.
    pub fn finish(self) -> Option<String> {
        let ended = self.provider.shutdown_with_timeout(FLUSH);
        let spans = self.lost.spans.load(Ordering::Relaxed);
        let Self { endpoint, lost, .. } = self;
        let why = lost.why.lock().unwrap_or_else(PoisonError::into_inner);
        match (spans, ended) {
            (0, Ok(())) => None,
            (0, Err(_)) => Some(format!(
                "the collector at {endpoint} did not take the last spans within {} s; they are lost",
                FLUSH.as_secs()
            )),
            (spans, _) => Some(format!("{spans} spans could not be sent to the collector at {endpoint}: {why}")),
        }
    }
}

/// Gives spans the names of the conventions on their way out, and counts what does not get there.
#[derive(Debug)]
struct Renaming<E> {
    exporter: E,
    lost: Arc<LostSpans>,
}

impl<E: Export> Export for Renaming<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        batch.iter_mut().for_each(genai::rename);
        let sent = self.exporter.export(batch).await;
        if let Err(why) = &sent {
            self.lost.spans.fetch_add(spans, Ordering::Relaxed);
            *self.lost.why.lock().unwrap_or_else(PoisonError::into_inner) = why.to_string();
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
