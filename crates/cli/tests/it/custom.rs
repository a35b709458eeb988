//! Tools that whoever starts a session runs, from the command line.

use crate::common::World;
use crate::driven::{codes, count, events, script, scripted, status, wake};

const WEATHER: &str = r#"[{"type": "custom", "name": "get_weather", "description": "The weather of a city.",
  "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}]"#;

const ASKS: &str = r#"
[[turn]]
text = "I ask."
calls = [{ name = "get_weather", input = { city = "Bern" } }]
[[turn]]
when = { contains = "12 degrees" }
text = "It is cold."
"#;

fn declared(world: &World, text: &str) -> String {
    let file = world.home.with_file_name("tools.json");
    std::fs::write(&file, text).expect("written");
    file.to_str().expect("text").to_owned()
}

#[test]
fn a_run_pauses_for_its_clients_tool_and_goes_on_with_the_printed_commands() {
    let (world, model) = scripted(ASKS);
    let file = declared(&world, WEATHER);
    let paused = world.run(&["run", "how is it?", "--model", &model, "--custom-tools", &file]).ends(3);
    let paused = paused.says("I ask.").warns("get_weather {\"city\":\"Bern\"} is run by its client");
    let (session, request) = (paused.id("sesn_"), paused.id("sevt_"));
    // Going on before the answer says the same again, and asks no model.
    world.run(&["run", "--continue", "--model", &model]).ends(3).warns(&request);
    assert_eq!(count(&events(&world, &session), "span.model_request_start"), 1);
    let line =
        paused.err.lines().find_map(|line| line.split_once("give the result with: portcullis ")).expect("a command");
    let words: Vec<&str> = line.1.split(' ').map(|word| if word == "'OUTPUT'" { "12 degrees" } else { word }).collect();
    world.run(&words).ends(0);
    world.run(&words).ends(1).warns("names no custom call that waits");
    let done = world.run(&["run", "--continue", "--model", &model]).ends(0);
    assert_eq!(done.out, "It is cold.\n");
    assert_eq!(codes(&events(&world, &session)), ["ok"]);
    world.run(&["audit", "verify", &session]).ends(0);
    world.run(&["replay", &session, "--mode", "rebuild"]).ends(0);
    // A program is told the same.
    let run = ["run", "how is it?", "--model", &model, "--custom-tools", &file, "--json"];
    let lines = world.run(&run).ends(3).lines();
    assert!(lines.iter().any(|line| line["type"] == "custom_tool_use" && line["tool"] == "get_weather"));
    assert_eq!(lines.last().expect("an end")["custom"][0]["name"], "get_weather");
}

#[test]
fn a_session_of_an_operator_waits_for_its_clients_tool_and_a_crash_in_between_changes_nothing() {
    let (world, model) = scripted(ASKS);
    let file = declared(&world, WEATHER);
    let session = world.run(&["sessions", "new", "how is it?", "--custom-tools", &file]).ends(0).id("sesn_");
    wake(&world, &session, &model).ends(3);
    let waits = status(&world, &session);
    assert_eq!(
        (&waits["status"], &waits["pending_custom_tool"]["name"]),
        (&"requires_action".into(), &"get_weather".into())
    );
    world.run(&["sessions", "answer", &session, "12 degrees"]).ends(0);
    // Whoever takes it up next knows the tool from the log alone.
    world.run(&["worker", "--model", &model]).ends(0).says("It is cold.");
    let log = events(&world, &session);
    assert_eq!((codes(&log), count(&log, "tool.invocation.started")), (vec!["ok".to_owned()], 1));
}

#[test]
fn a_declaration_with_a_mistake_stops_before_anything_is_made() {
    let world = World::with_file("a.txt", "hello\n");
    let model = script(&world, "script.toml", ASKS);
    let cases = [
        ("{", "is not a JSON array"),
        (&*WEATHER.replace("get_weather", "no spaces"), "no spaces"),
        (&*WEATHER.replace("get_weather", "read"), "rename it"),
        (&*WEATHER.replace("\"custom\"", "\"mcp\""), "only `custom`"),
        (&*WEATHER.replace("\"description\"", "\"descripton\""), "descripton"),
        (&*WEATHER.replace("\"type\": \"object\"", "\"type\": \"string\""), "object"),
    ];
    for (text, why) in cases {
        let file = declared(&world, text);
        world.run(&["run", "x", "--model", &model, "--custom-tools", &file]).ends(2).one_error_line().warns(why);
    }
    let file = declared(&world, WEATHER);
    world.run(&["run", "x", "--model", &model, "--custom-tools", &file, "--continue"]).ends(2).warns("--continue");
    assert!(!world.database().exists() || world.run(&["sessions"]).ends(0).out.lines().count() <= 1);
}

#[test]
fn allowing_a_call_that_its_client_runs_names_the_command_that_answers_it() {
    let (world, model) = scripted(ASKS);
    world.configure("[[rules]]\naction = \"get_weather\"\neffect = \"ask\"\n");
    let file = declared(&world, WEATHER);
    let asked = world.run(&["run", "how is it?", "--model", &model, "--custom-tools", &file]).ends(3);
    let allowed = world.run(&["approvals", "allow", &asked.id("ask_")]).ends(3);
    let line = allowed.err.lines().find_map(|line| line.split_once("give the result with: portcullis ")).expect("it");
    let words: Vec<&str> = line.1.split(' ').map(|word| if word == "'OUTPUT'" { "12 degrees" } else { word }).collect();
    world.run(&words).ends(0);
    assert_eq!(world.run(&["run", "--continue", "--model", &model]).ends(0).out, "It is cold.\n");
}

#[test]
fn the_status_shows_every_call_that_waits_for_its_client() {
    let both = r#"calls = [{ name = "get_weather", input = { city = "Bern" } }, { name = "get_weather", input = { city = "Rome" } }]"#;
    let (world, model) =
        scripted(&ASKS.replace(r#"calls = [{ name = "get_weather", input = { city = "Bern" } }]"#, both));
    let file = declared(&world, WEATHER);
    let session = world.run(&["sessions", "new", "how is it?", "--custom-tools", &file]).ends(0).id("sesn_");
    wake(&world, &session, &model).ends(3);
    let waits = status(&world, &session);
    let calls = waits["pending_custom_tools"].as_array().expect("a list");
    let cities: Vec<&str> = calls.iter().filter_map(|call| call["input"]["city"].as_str()).collect();
    assert_eq!(cities, ["Bern", "Rome"]);
    assert_eq!(waits["pending_custom_tool"], calls[0], "the first is where it always was");
    let commands: Vec<&str> = calls.iter().filter_map(|call| call["answer_command"].as_str()).collect();
    assert_eq!(waits["commands"], serde_json::json!(commands));
    let text = world.run(&["sessions", "status", &session]).ends(0).out;
    for command in commands {
        assert!(text.contains(&format!("waits for an answer: {command}\n")), "{text}");
    }
}
