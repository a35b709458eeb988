//! L69 for command lines: the parser beneath tells nobody what it read.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use portcullis_command::{analyse, read_only};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber};

const SECRET: &str = "correct-horse-battery";

/// Keeps every word of every event, at every level.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<String>>);

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut Words(&self.0));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Words<'a>(&'a Mutex<String>);

impl Visit for Words<'_> {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        self.0.lock().expect("nobody panicked").push_str(&format!("{value:?}"));
    }
}

#[test]
fn l69_no_log_line_tells_a_command() {
    let heard = Listener::default();
    with_default(heard.clone(), || {
        // The positive control, and first: what the parser says where nobody keeps it from speaking.
        let options = brush_parser::ParserOptions::default();
        let tokens = brush_parser::uncached_tokenize_str("echo aloud", &options.tokenizer_options()).expect("tokens");
        brush_parser::parse_tokens(&tokens, &options).expect("a program");
        let line = format!("curl -H 'Authorization: {SECRET}' localhost | tee out");
        assert!(!analyse(&line).commands.is_empty());
        let _ = read_only(&format!("cat {SECRET}"));
    });
    let heard = heard.0.lock().expect("nobody panicked");
    assert!(heard.contains("aloud"), "{heard}");
    assert!(!heard.contains(SECRET), "{heard}");
}
