//! A provider that says what it is told to, byte by byte, and remembers what it was asked.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use portcullis_base::{ManualClock, Timestamp};
use portcullis_model::{
    Answer, Conversation, Delta, HttpLimits, HttpModel, HttpSettings, Message, Model, ModelError, ToolSpec, UserPart,
    WireFormat,
};
use portcullis_secret::SecretText;

pub const KEY: &str = "sk-test-0123456789abcdef";

/// A piece of an answer.
#[derive(Clone)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// The connection breaks.
    Break,
    /// Nothing more comes, and the connection stays.
    Hang,
    /// These bytes, for ever.
    Endless(&'static str),
}

/// One answer.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, &'static str)>,
    pub pieces: Vec<Piece>,
}

impl Reply {
    /// An event stream, as one piece.
    pub fn stream(text: &str) -> Self {
        Self::pieces(vec![Piece::Bytes(text.as_bytes().to_vec())])
    }

    /// An event stream, as many pieces.
    pub fn pieces(pieces: Vec<Piece>) -> Self {
        Self { status: 200, headers: vec![("content-type", "text/event-stream")], pieces }
    }

    /// A document.
    pub fn json(status: u16, text: &str) -> Self {
        let pieces = vec![Piece::Bytes(text.as_bytes().to_vec())];
        Self { status, headers: vec![("content-type", "application/json")], pieces }
    }

    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// What was asked.
#[derive(Clone)]
pub struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
    /// Who asked: one address a connection.
    peer: SocketAddr,
}

#[derive(Clone)]
pub struct Fake {
    pub url: String,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    /// Answers in this order; afterwards with 418.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        tls();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        let fake = Self { url, replies, seen: Arc::default() };
        let app = Router::new().fallback(answer).with_state(fake.clone());
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await });
        fake
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("lock").clone()
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.seen().into_iter().map(|seen| seen.peer).collect::<HashSet<_>>().len()
    }

    pub fn settings(&self) -> HttpSettings {
        HttpSettings { base_url: Some(self.url.clone()), ..settings() }
    }
}

async fn answer(State(fake): State<Fake>, ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.expect("a body");
    let body = String::from_utf8(body.to_vec()).expect("text");
    fake.seen.lock().expect("lock").push(Seen { path: head.uri.to_string(), headers: head.headers, body, peer });
    let reply = fake.replies.lock().expect("lock").pop_front();
    let reply = reply.unwrap_or_else(|| Reply::json(418, r#"{"error":"nothing more is scripted"}"#));
    let mut response = Response::builder().status(StatusCode::from_u16(reply.status).expect("a status"));
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let pieces = stream::iter(reply.pieces).flat_map(|piece| match piece {
        Piece::Bytes(bytes) => stream::iter([Ok(Bytes::from(bytes))]).boxed(),
        Piece::Break => stream::iter([Err(std::io::Error::other("broken by the script"))]).boxed(),
        Piece::Hang => stream::pending().boxed(),
        Piece::Endless(text) => stream::repeat_with(move || Ok(Bytes::from_static(text.as_bytes()))).boxed(),
    });
    // Each piece is a chunk of its own on the wire.
    let pieces = pieces.then(|piece| async move {
        tokio::task::yield_now().await;
        piece
    });
    response.body(Body::from_stream(pieces)).expect("a response")
}

/// Installs the TLS provider, once, as a binary does.
pub fn tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Settings with a key, and a clock that stands at 2026-11-16T10:00:00Z.
pub fn settings() -> HttpSettings {
    let clock = ManualClock::new(Timestamp::from_micros(1_794_823_200_000_000));
    let mut settings = HttpSettings::new(Arc::new(clock));
    settings.key = Some(SecretText::new(KEY));
    settings.limits = HttpLimits { idle: Duration::from_secs(20), ..HttpLimits::default() };
    settings
}

/// A model by its name.
pub fn opened(format: WireFormat, name: &str, settings: HttpSettings) -> HttpModel {
    HttpModel::new(format, name.parse().expect("a name"), settings).expect("a model")
}

/// A conversation of one sentence.
pub fn said(text: &str) -> Conversation {
    let mut talk = Conversation::new();
    talk.push(Message::User(vec![UserPart::Text(text.to_owned())]));
    talk
}

pub fn tool(name: &str) -> ToolSpec {
    let input_schema = serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolSpec { name: name.to_owned(), description: format!("the tool {name}"), input_schema }
}

/// What was heard on the way, kind by kind.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct HeardAll {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<String>,
}

impl HeardAll {
    pub fn of(text: &str, thinking: &str, calls: &[&str]) -> Self {
        let calls = calls.iter().map(|&name| name.to_owned()).collect();
        Self { text: text.to_owned(), thinking: thinking.to_owned(), calls }
    }
}

pub struct Asked {
    pub answer: Result<Answer, ModelError>,
    pub heard: HeardAll,
}

impl Asked {
    pub fn answer(self) -> Answer {
        self.answer.expect("an answer")
    }

    pub fn error(self) -> ModelError {
        let error = self.answer.expect_err("an error");
        assert!(!error.message.contains(KEY) && !format!("{error:?}").contains(KEY), "L69: {error:?}");
        error
    }
}

/// Asks with the tools `read` and `write`.
pub async fn ask(model: &dyn Model, talk: &Conversation) -> Asked {
    ask_with(model, talk, false).await
}

pub async fn ask_with(model: &dyn Model, talk: &Conversation, tools_off: bool) -> Asked {
    let all = Mutex::new(HeardAll::default());
    let hear = |delta: Delta<'_>| {
        let mut all = all.lock().expect("lock");
        match delta {
            Delta::Text(text) => all.text.push_str(text),
            Delta::Thinking(text) => all.thinking.push_str(text),
            Delta::Call { name } => all.calls.push(name.to_owned()),
            Delta::Alive => {}
        }
    };
    let request = portcullis_model::Request {
        system: "Be brief.",
        tools: Arc::from([tool("read"), tool("write")]),
        tools_off,
        conversation: talk,
        max_output_tokens: 1_000,
    };
    let answer = model.ask(&request, &hear).await;
    Asked { answer, heard: all.into_inner().expect("lock") }
}

/// Events as the provider frames them: `event: TYPE` and the object.
pub fn events(objects: &[serde_json::Value]) -> String {
    let frame = |object: &serde_json::Value| {
        let kind = object["type"].as_str().expect("a type");
        format!("event: {kind}\ndata: {object}\n\n")
    };
    objects.iter().map(frame).collect()
}
