//! Who listens to the spans and events of this process: a person at standard error (`--log`), and in builds with the
//! feature `otel` a collector (`[telemetry]`).
//!
//! Invariant: only what our own crates say is heard. Others may log what they send and read; ours hold no input, no output,
//! no prompt and no secret (docs/telemetry.md).

#[cfg(feature = "otel")]
mod genai;
#[cfg(feature = "otel")]
mod otlp;

use std::io;

use portcullis_config::Settings;
use portcullis_terminal::render::Term;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::args::Globals;
use crate::exit::usage;

/// How the names of our crates begin.
const OURS: &str = "portcullis";

/// What has to be seen to at the end.
#[derive(Default)]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    collector: Option<otlp::Collector>,
}

/// Begins to listen, if somebody wants to. Without it spans cost nothing.
pub fn start(globals: &Globals) -> anyhow::Result<Telemetry> {
    let log = match &globals.log {
        Some(text) => Some(filter(text).map_err(|why| usage(format!("--log: {why}")))?),
        None => match portcullis_config::variable("PORTCULLIS_LOG")? {
            Some(text) => Some(filter(&text).map_err(|why| usage(format!("PORTCULLIS_LOG: {why}")))?),
            None => None,
        },
    };
    // Times are those of ended spans: when a span begins nothing is known of it yet.
    let to_person = log.map(|filter| {
        let ours = filter_fn(|of| of.target().starts_with(OURS));
        tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .with_span_events(FmtSpan::CLOSE)
            .with_filter(filter.and(ours))
    });
    #[cfg(feature = "otel")]
    {
        // A configuration that cannot be read is told by the command that needs it.
        let endpoint = globals.settings().ok().and_then(|settings| settings.otlp_endpoint);
        let (to_collector, collector) = endpoint.map(|endpoint| otlp::connect(&endpoint)).transpose()?.unzip();
        if to_person.is_some() || to_collector.is_some() {
            listen(tracing_subscriber::registry().with(to_person).with(to_collector))?;
        }
        Ok(Telemetry { collector })
    }
    #[cfg(not(feature = "otel"))]
    {
        if to_person.is_some() {
            listen(tracing_subscriber::registry().with(to_person))?;
        }
        Ok(Telemetry::default())
    }
}

fn listen(subscriber: impl tracing::Subscriber + Send + Sync) -> anyhow::Result<()> {
    Ok(tracing::subscriber::set_global_default(subscriber)?)
}

impl Telemetry {
    /// Sends what is left, for a bounded time, and says so if something could not be sent.
    #[cfg_attr(not(feature = "otel"), expect(unused_variables, reason = "without a collector there is nothing to say"))]
    pub fn finish(self, term: &Term) {
        #[cfg(feature = "otel")]
        if let Some(why) = self.collector.and_then(otlp::Collector::finish) {
            term.note(&format!("warning: {}", crate::render::safe_line(&why, 400)));
        }
    }
}

/// A demand that this build cannot meet is not passed over.
pub fn warn_unsent(settings: &Settings, term: &Term) {
    if let Some(why) = unsent(settings) {
        term.note(&format!("warning: {why}"));
    }
}

/// Why nothing is sent to the collector that the configuration names.
pub fn unsent(settings: &Settings) -> Option<&'static str> {
    let wanted = settings.otlp_endpoint.is_some() && cfg!(not(feature = "otel"));
    wanted.then_some(
        "`telemetry.otlp_endpoint` is set, but this build sends nothing; build it with `cargo build --features otel`",
    )
}

/// What is shown: a level, or levels of our crates. A word that is neither would show nothing and say nothing.
fn filter(text: &str) -> Result<Targets, String> {
    const WANTED: &str = "error, warn, info, debug, trace or off, or levels of crates: info,portcullis_pipeline=debug";
    let targets: Targets = text.parse().map_err(|_| format!("`{text}` is not one of {WANTED}"))?;
    match targets.iter().find(|(target, _)| !target.starts_with(OURS)) {
        Some((target, _)) => Err(format!("`{target}` is not one of {WANTED}")),
        None => Ok(targets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_levels_of_our_crates() {
        for good in ["info", "DEBUG", "off", "warn,portcullis_pipeline=debug", "portcullis_harness::wake=trace"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["inof", "hyper=trace", "info,h2=debug", "portcullis_pipeline=loud"] {
            let why = filter(bad).expect_err(bad);
            assert!(why.contains("portcullis_pipeline=debug"), "{why}");
        }
    }
}
