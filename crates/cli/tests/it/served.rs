//! `run` with models that a fake server on loopback serves: what it asks for, and what it makes of answers that are none.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

use crate::common::{Ran, World};

/// What a request is answered with.
pub enum Reply {
    Whole(String),
    /// This much, and then the connection is closed.
    Half(String),
    /// This much, and then nothing more.
    Silent(String),
}

/// A provider that gives every request the same stream. Its address, and the bodies that came.
fn provider(stream: &'static str) -> (String, Receiver<Value>) {
    provider_of(std::iter::repeat_with(|| Reply::Whole(stream.to_owned())))
}

/// A provider that gives one request after another these replies.
pub fn provider_of<R: Iterator<Item = Reply> + Send + 'static>(
    replies: impl IntoIterator<IntoIter = R>,
) -> (String, Receiver<Value>) {
    let mut replies = replies.into_iter();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (send, bodies) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            serve(&connection.expect("a connection"), &mut replies, &send);
        }
    });
    (address, bodies)
}

/// One request of a connection, which ends with its answer. Only what posts something asks a model.
fn serve(mut connection: &TcpStream, replies: &mut impl Iterator<Item = Reply>, send: &Sender<Value>) {
    let mut reader = BufReader::new(connection);
    let (mut length, mut posts) = (0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).expect("a line") == 0 {
            return;
        }
        posts |= line.starts_with("POST ");
        if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = said.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
    }
    if !posts {
        let _ = write!(connection, "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        return;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    // The test may have ended.
    let _ = send.send(serde_json::from_slice(&body).expect("JSON"));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    let reply = replies.next().expect("a reply for every request");
    let (stream, missing) = match &reply {
        Reply::Whole(stream) => (stream, 0),
        Reply::Half(stream) | Reply::Silent(stream) => (stream, 1_000),
    };
    let _ = write!(connection, "{head}content-length: {}\r\n\r\n{stream}", stream.len() + missing);
    if matches!(reply, Reply::Silent(_)) {
        // Until the other side leaves.
        let _ = connection.read(&mut [0; 1]);
    }
}

const REFUSAL: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

"#;

const FILTERED: &str = r#"data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}

data: [DONE]

"#;

fn run(world: &World, model: &str, address: &str, more: &[&str]) -> Ran {
    let mut command = world.command(&["run", "do it", "--model", model, "--base-url", address]);
    command.args(more).env("ANTHROPIC_API_KEY", "key").env("OPENAI_API_KEY", "key");
    command.output().expect("it runs").into()
}

#[test]
fn what_a_provider_declines_is_said_to_be_refused() {
    let world = World::new();
    for (model, stream) in [("anthropic/claude-sonnet-5", REFUSAL), ("openai-chat/local", FILTERED)] {
        let (address, _bodies) = provider(stream);
        run(&world, model, &address, &[]).ends(1).warns("error: the model refused to answer, and gave no reason");
        let end = run(&world, model, &address, &["--json"]).ends(1).lines().pop().expect("an end");
        assert_eq!((&end["stop"], &end["text"]), (&"refusal".into(), &"".into()), "{end}");
    }
}

#[test]
fn an_answer_may_be_as_long_as_the_configuration_says() {
    let world = World::new();
    let (address, bodies) = provider(REFUSAL);
    run(&world, "anthropic/claude-sonnet-5", &address, &[]).ends(1);
    assert_eq!(bodies.recv().expect("a request")["max_tokens"], 8_192);
    world.configure("[model]\nmax_output_tokens = 1234\n");
    run(&world, "anthropic/claude-sonnet-5", &address, &[]).ends(1);
    assert_eq!(bodies.recv().expect("a request")["max_tokens"], 1_234);
}

const LOOKS: &str = r#"data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","function":{"name":"read","arguments":"{\"file_path\":\"p.png\"}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"#;

#[test]
fn a_compatible_server_gets_images_where_the_configuration_says_that_it_sees() {
    let world = World::new();
    std::fs::write(world.workspace.join("p.png"), b"\x89PNG\r\n\x1a\nand the rest").expect("a file");
    let (address, bodies) = provider(LOOKS);
    for (media, sent) in [("", false), ("media = true\n", true), ("media = false\n", false)] {
        world.configure(&format!("[model]\nmax_turns = 2\n{media}"));
        run(&world, "openai-chat/local", &address, &[]).ends(1);
        let requests = [bodies.recv().expect("a request"), bodies.recv().expect("the next")];
        assert_eq!(requests[1].to_string().contains("data:image/png;base64,"), sent, "{media}: {}", requests[1]);
    }
    world.configure("[model]\nmedia = \"yes\"\n");
    run(&world, "openai-chat/local", &address, &[]).ends(2).warns("`model.media`");
}
