//! Answers that break off in the middle: what of them is printed, where, and how often. The models are served on loopback.

use serde_json::{Value, json};

use crate::common::{Ran, World, binary, in_shell, interrupt, until};
use crate::run_talk::Terminal;
use crate::served::{Reply, provider_of};

const FIRST: &str = "The first words ";
const REST: &str = "and the rest.";

fn events(all: &[Value]) -> String {
    let event = |value: &Value| match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    };
    all.iter().map(event).collect()
}

/// How a provider streams an answer of two pieces.
struct Wire {
    model: &'static str,
    begin: Vec<Value>,
    piece: fn(&str) -> Value,
    end: Vec<Value>,
}

impl Wire {
    fn half(&self) -> String {
        events(&self.begin) + &events(&[(self.piece)(FIRST)])
    }

    fn whole(&self) -> String {
        self.half() + &events(&[(self.piece)(REST)]) + &events(&self.end)
    }
}

fn anthropic() -> Wire {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1}});
    Wire {
        model: "anthropic/claude-sonnet-5",
        begin: vec![
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ],
        piece: |text| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        end: vec![
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ],
    }
}

fn chat() -> Wire {
    Wire {
        model: "openai-chat/local",
        begin: vec![],
        piece: |text| json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}),
        end: vec![json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})],
    }
}

fn responses() -> Wire {
    let content = json!([{"type": "output_text", "text": format!("{FIRST}{REST}"), "annotations": []}]);
    let item = json!({"type": "message", "id": "msg", "role": "assistant", "content": content});
    let response = json!({"status": "completed", "output": [item], "usage": {"input_tokens": 9, "output_tokens": 7}});
    Wire {
        model: "openai/gpt-x",
        begin: vec![json!({"type": "response.created", "response": {"status": "in_progress", "output": []}})],
        piece: |text| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
        end: vec![
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response}),
        ],
    }
}

fn gemini() -> Wire {
    Wire {
        model: "gemini/gemini-3.6-flash",
        begin: vec![],
        piece: |text| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}]}),
        end: vec![json!({"candidates": [{"finishReason": "STOP", "index": 0}], "usageMetadata": {}})],
    }
}

const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];

fn command(world: &World, wire: &Wire, address: &str, more: &[&str]) -> std::process::Command {
    let mut command = world.command(&["run", "go", "--model", wire.model, "--base-url", address]);
    command.args(more).envs(KEYS.map(|name| (name, "key")));
    command
}

/// Half an answer, and the whole one when it is asked for again.
fn breaks_off_once(wire: &Wire, more: &[&str]) -> Ran {
    let world = World::new();
    let (address, _bodies) = provider_of([Reply::Half(wire.half()), Reply::Whole(wire.whole())]);
    Ran::from(command(&world, wire, &address, more).output().expect("it runs")).ends(0)
}

#[test]
fn standard_output_holds_a_retried_answer_once_and_whole() {
    // At the same time: each waits five seconds for the next try.
    std::thread::scope(|scope| {
        for wire in [anthropic(), chat(), responses(), gemini()] {
            scope.spawn(move || {
                let ran =
                    breaks_off_once(&wire, &[]).warns("next try in").warns("an answer broke off after 16 characters");
                assert_eq!(ran.out, format!("{FIRST}{REST}\n"), "{}", wire.model);
            });
        }
        scope.spawn(|| {
            let ran = breaks_off_once(&anthropic(), &["--json"]);
            let lines = ran.lines();
            let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
            let at = |name: &str| {
                types.iter().position(|kind| *kind == name).unwrap_or_else(|| panic!("no {name}: {types:?}"))
            };
            assert!(at("text") < at("message_broken_off") && at("message_broken_off") < at("retry"), "{types:?}");
            let (dropped, kept) = lines.split_at(at("message_broken_off"));
            let said = |lines: &[Value]| -> String {
                lines.iter().filter(|line| line["type"] == "text").filter_map(|line| line["text"].as_str()).collect()
            };
            assert_eq!((said(dropped), said(kept)), (FIRST.to_owned(), format!("{FIRST}{REST}")), "{}", ran.out);
            assert_eq!(lines.last().expect("an end")["text"], format!("{FIRST}{REST}"));
        });
    });
}

#[test]
fn on_a_terminal_a_line_stands_between_the_half_answer_and_the_whole_one() {
    let (world, wire) = (World::new(), chat());
    let (address, _bodies) = provider_of([Reply::Half(wire.half()), Reply::Whole(wire.whole())]);
    let line = format!(
        "OPENAI_API_KEY=key {} run go --model {} --base-url {address}; echo over",
        binary().display(),
        wire.model
    );
    let (mut child, keys, out) = in_shell(&world, &line);
    let mut terminal = Terminal::new(keys, out);
    // Shown while it comes.
    terminal.until(FIRST.trim());
    terminal.until("a line you type tries at once");
    terminal.types("now\r");
    terminal.until("the answer above broke off; the model is asked again:");
    let shown = terminal.until(REST);
    assert!(shown.contains(FIRST), "{shown:?}");
    terminal.until("over");
    child.wait().expect("ends");
}

#[test]
fn what_came_of_an_answer_that_is_not_asked_for_again_is_told_on_standard_error() {
    let told = |err: &str| {
        let lines = "What came of it is neither on standard output nor in the log:\n│ The first words";
        assert!(err.contains(lines), "{err}");
    };
    // The provider says in the middle that the request is wrong: nobody tries again.
    let (world, wire) = (World::new(), anthropic());
    let wrong = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    let (address, _bodies) = provider_of([Reply::Whole(wire.half() + &events(&[wrong]))]);
    let ran = Ran::from(command(&world, &wire, &address, &["--quiet"]).output().expect("it runs")).ends(1);
    assert_eq!(ran.out, "");
    told(&ran.err);

    // The model falls silent in the middle, and somebody does not want to wait for the next try.
    world.configure("[model]\ntimeout = \"1s\"\n");
    let (address, _bodies) = provider_of([Reply::Silent(wire.half())]);
    let mut child = command(&world, &wire, &address, &[]).spawn().expect("starts");
    let mut err = child.stderr.take().expect("piped");
    until(&mut err, "next try in");
    interrupt(&child);
    told(&until(&mut err, "go on with: portcullis run --session"));
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0));
}
