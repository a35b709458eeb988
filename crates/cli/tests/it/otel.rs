//! With the feature `otel`: spans of the real binary at a real receiver of OTLP.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::common::World;
use crate::telemetry::world;

/// What a collector got: the path, the kind of content, and the bytes of each request.
type Got = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

/// A collector on loopback that takes everything. Its address, and what it got.
fn receiver() -> (String, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let got = Got::default();
    let kept = Arc::clone(&got);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, kept) = (stream.expect("a connection"), Arc::clone(&kept));
            std::thread::spawn(move || serve(&stream, &kept));
        }
    });
    (address, got)
}

/// Answers requests of one connection until it ends.
fn serve(stream: &TcpStream, kept: &Got) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).expect("a line") == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let header = |name: &str| {
            let of =
                head.iter().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
            of.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let mut body = vec![0; header("content-length").parse().expect("a length")];
        reader.read_exact(&mut body).expect("a body");
        let path = head[0].split(' ').nth(1).expect("a path").to_owned();
        kept.lock().expect("whole").push((path, header("content-type"), body));
        let mut stream = stream;
        // Whoever sent it may have left.
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n");
    }
}

fn configured(address: &str) -> (World, String) {
    let (world, model) = world();
    world.configure(&format!("[telemetry]\notlp_endpoint = \"{address}\"\n"));
    (world, model)
}

fn attributes(of: &[KeyValue]) -> BTreeMap<String, String> {
    fn text(value: &AnyValue) -> String {
        match value.value.as_ref().expect("a value") {
            Value::StringValue(text) => text.clone(),
            Value::IntValue(number) => number.to_string(),
            Value::ArrayValue(array) => format!("[{}]", array.values.iter().map(text).collect::<Vec<_>>().join(",")),
            other => panic!("{other:?}"),
        }
    }
    of.iter().map(|pair| (pair.key.clone(), text(pair.value.as_ref().expect("a value")))).collect()
}

#[test]
fn otel_a_collector_gets_a_run_in_the_words_of_the_conventions() {
    let (address, got) = receiver();
    let (world, model) = configured(&address);
    let ran = world.run(&["run", "read it", "--model", &model]).ends(0);
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    let session = ran.id("sesn_");
    let got = got.lock().expect("whole").clone();
    assert!(got.iter().all(|(path, kind, _)| path == "/v1/traces" && kind == "application/x-protobuf"), "{got:?}");
    let requests: Vec<_> =
        got.iter().map(|(_, _, body)| ExportTraceServiceRequest::decode(&body[..]).expect("protobuf")).collect();
    let resources: Vec<_> = requests.iter().flat_map(|request| &request.resource_spans).collect();
    let service = attributes(&resources[0].resource.as_ref().expect("a resource").attributes);
    assert_eq!(service["service.name"], "portcullis");
    let spans: Vec<&Span> = resources.iter().flat_map(|of| &of.scope_spans).flat_map(|of| &of.spans).collect();
    let named = |name: &str| -> Vec<&Span> { spans.iter().copied().filter(|span| span.name == name).collect() };

    let agents = named("invoke_agent");
    let [agent] = agents[..] else { panic!("one wake: {spans:#?}") };
    let told = attributes(&agent.attributes);
    assert_eq!(told["gen_ai.operation.name"], "invoke_agent");
    assert_eq!((&told["gen_ai.conversation.id"], &told["gen_ai.provider.name"]), (&session, &"scripted".to_owned()));
    assert_eq!((&*told["portcullis.end"], &*told["portcullis.requests"]), ("end_turn", "2"));

    let chats = named("chat script.toml");
    assert_eq!(chats.len(), 2, "{spans:#?}");
    for (chat, stop) in chats.iter().zip(["[tool_use]", "[end_turn]"]) {
        let told = attributes(&chat.attributes);
        assert_eq!((&chat.parent_span_id, &chat.trace_id), (&agent.span_id, &agent.trace_id));
        assert_eq!((&*told["gen_ai.operation.name"], &*told["gen_ai.request.model"]), ("chat", "script.toml"));
        assert_eq!(told["gen_ai.response.finish_reasons"], stop);
        for tokens in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
            let number = chat.attributes.iter().find(|pair| pair.key == tokens).and_then(|pair| pair.value.clone());
            assert!(matches!(number.and_then(|value| value.value), Some(Value::IntValue(n)) if n > 0), "{told:?}");
        }
        assert_eq!(chat.kind(), opentelemetry_proto::tonic::trace::v1::span::SpanKind::Client);
    }

    let tools = named("execute_tool read");
    let [tool] = tools[..] else { panic!("one call: {spans:#?}") };
    let told = attributes(&tool.attributes);
    assert_eq!(tool.parent_span_id, agent.span_id);
    assert_eq!((&*told["gen_ai.operation.name"], &*told["gen_ai.tool.name"]), ("execute_tool", "read"));
    assert_eq!((&*told["gen_ai.tool.call.id"], &*told["portcullis.code"]), ("call_1", "ok"));
    let [execute] = named("execute")[..] else { panic!("one phase: {spans:#?}") };
    assert_eq!(execute.parent_span_id, tool.span_id);
    assert!(execute.start_time_unix_nano >= tool.start_time_unix_nano);
    assert!(execute.end_time_unix_nano <= tool.end_time_unix_nano);

    for never in ["what-the-file-holds", "a.txt", "read it", "It was read", &*world.workspace.to_string_lossy()] {
        let holds = |body: &[u8]| body.windows(never.len()).any(|part| part == never.as_bytes());
        assert!(got.iter().all(|(_, _, body)| !holds(body)), "`{never}` was sent");
    }
}

#[test]
fn otel_a_refused_call_is_an_error_by_its_code() {
    let (address, got) = receiver();
    let (world, _) = world();
    let rule = "[[rules]]\nid = \"no\"\naction = \"read\"\npath = \"/workspace/a.txt\"\neffect = \"deny\"\n";
    world.configure(&format!("{rule}[telemetry]\notlp_endpoint = \"{address}\"\n"));
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(4);
    let got = got.lock().expect("whole").clone();
    let requests = got.iter().map(|(_, _, body)| ExportTraceServiceRequest::decode(&body[..]).expect("protobuf"));
    let spans: Vec<Span> = requests
        .flat_map(|request| request.resource_spans)
        .flat_map(|of| of.scope_spans)
        .flat_map(|of| of.spans)
        .collect();
    let call = spans.iter().find(|span| span.name == "execute_tool read").expect("the call");
    assert_eq!(attributes(&call.attributes)["error.type"], "policy_denied");
    assert_eq!(call.status.as_ref().map(|status| status.code), Some(2), "{call:?}");
    assert!(spans.iter().all(|span| span.name != "execute"), "it ran nothing");
}

#[test]
fn otel_a_collector_that_is_not_there_costs_a_line_and_no_result() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let (world, model) = configured(&address);
    let ran = world.run(&["run", "read it", "--model", &model]).ends(0);
    assert_eq!(ran.out, "It was read.\n");
    assert_eq!(ran.err.lines().filter(|line| line.contains(&address)).count(), 1, "one line: {}", ran.err);
}

#[test]
fn otel_a_collector_that_never_answers_is_waited_for_two_seconds() {
    // It takes connections, as the kernel does for every listener, and reads nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (world, _) = configured(&address);
    let began = Instant::now();
    let ran = world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0).warns(&address);
    let took = began.elapsed();
    assert!(ran.out.contains("what-the-file-holds"), "{}", ran.out);
    // One attempt alone may take five.
    assert!((Duration::from_millis(1_900)..Duration::from_millis(4_500)).contains(&took), "{took:?}");
}
