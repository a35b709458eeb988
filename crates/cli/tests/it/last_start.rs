//! Transcripts of settings that changed since the last start: told before anything is sent.

use std::io::{ErrorKind, Write as _};
use std::net::TcpListener;
use std::process::Command;

use crate::common::{Ran, World, binary, in_shell, until};

/// A server that answers nothing; whether anybody came.
struct Silent(TcpListener);

impl Silent {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        Self(listener)
    }

    fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().expect("bound"))
    }

    /// Whether somebody came since the last look. Whoever did gets no answer.
    fn was_reached(&self) -> bool {
        match self.0.accept() {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        }
    }
}

fn configured(world: &World, server: &Silent) {
    world.configure(&format!(
        "[model]\ndefault = \"openai-chat/m\"\nbase_url = \"{}\"\ntimeout = \"1s\"\n",
        server.url()
    ));
}

fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(&[&["run", "hello"], args].concat());
    command.env("OPENAI_API_KEY", "a-key-that-is-none-0123456789");
    command
}

fn run(world: &World, args: &[&str]) -> Ran {
    let ran: Ran = command(world, args).output().expect("it runs").into();
    assert!(!format!("{}{}", ran.out, ran.err).contains("that-is-none"), "{}", ran.err);
    ran
}

/// A run that reached the server, whatever came of it.
fn reaches(world: &World, server: &Silent, args: &[&str]) -> Ran {
    let mut child = command(world, args).spawn().expect("it runs");
    crate::common::comes("it asks the server", || server.was_reached());
    child.kill().expect("killed");
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn a_key_goes_to_no_other_address_of_a_file_unless_somebody_says_so() {
    let world = World::new();
    let (first, second) = (Silent::new(), Silent::new());
    configured(&world, &first);
    let ran = reaches(&world, &first, &[]);
    assert!(!ran.err.contains("at the last start"), "the first start has no last one: {}", ran.err);
    let ran = reaches(&world, &first, &[]);
    assert!(!ran.err.contains("at the last start"), "{}", ran.err);

    configured(&world, &second);
    let refused = run(&world, &[]).ends(2).one_error_line();
    let refused = refused.warns(&format!("with the key in OPENAI_API_KEY, go to {}", second.url()));
    refused.warns(&format!("at the last start they went to {}", first.url())).warns("--base-url");
    assert!(!second.was_reached(), "nothing was sent");
    run(&world, &[]).ends(2);
    // A flag that names the address says that it is meant.
    reaches(&world, &second, &["--model", "openai-chat/m", "--base-url", &second.url()]);
    reaches(&world, &second, &[]);
    let kept = std::fs::read_to_string(world.home.join("last-start.json")).expect("kept");
    assert!(kept.contains("OPENAI_API_KEY") && !kept.contains("that-is-none"), "{kept}");
    // Another provider's key is not sent there either.
    let evil = Silent::new();
    world.configure(&format!("[model]\ndefault = \"anthropic/m\"\nbase_url = \"{}\"\n", evil.url()));
    let mut other = command(&world, &[]);
    let ran: Ran = other.env("ANTHROPIC_API_KEY", "another-key-that-is-none").output().expect("it runs").into();
    let ran = ran.ends(2).warns("anthropic is used here for the first time");
    assert!(!ran.err.contains("at the last start"), "there was none: {}", ran.err);
    assert!(!evil.was_reached(), "nothing was sent");
}

#[test]
fn on_a_terminal_a_person_confirms_a_changed_address() {
    let world = World::new();
    let (first, second) = (Silent::new(), Silent::new());
    configured(&world, &first);
    reaches(&world, &first, &[]);
    configured(&world, &second);
    let line = format!("OPENAI_API_KEY=a-key-that-is-none-0123456789 {} run hello", binary().display());
    let (mut child, mut keys, mut out) = in_shell(&world, &line);
    until(&mut out, "Send the key there? Type yes: ");
    writeln!(keys, "no").expect("typed");
    until(&mut out, "nothing was sent");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(!second.was_reached());
    let (mut child, mut keys, mut out) = in_shell(&world, &line);
    until(&mut out, "Send the key there? Type yes: ");
    writeln!(keys, "yes").expect("typed");
    crate::common::comes("it asks the server", || second.was_reached());
    child.kill().expect("killed");
    child.wait().expect("gone");
    reaches(&world, &second, &[]);
}

#[test]
fn a_changed_variable_network_or_key_is_told_and_goes_on() {
    let world = World::new();
    let (first, second) = (Silent::new(), Silent::new());
    let model = ["--model", "openai-chat/m"];
    let with = |server: &Silent, key: bool| {
        let mut command = command(&world, &model);
        command.env("OPENAI_BASE_URL", server.url());
        if !key {
            command.env_remove("OPENAI_API_KEY");
        }
        let mut child = command.spawn().expect("it runs");
        crate::common::comes("it asks the server", || server.was_reached());
        child.kill().expect("killed");
        Ran::from(child.wait_with_output().expect("it ends"))
    };
    with(&first, true);
    let told = with(&second, true).warns("warning: requests to openai-chat, with the key in OPENAI_API_KEY, go to");
    told.warns("(OPENAI_BASE_URL); at the last start they went to");
    let told = with(&second, false)
        .warns("warning: OPENAI_API_KEY is not set any more; requests to openai-chat go without a key");
    assert!(!told.err.contains("they went to"), "{}", told.err);

    world.write("a.txt", "alpha\n");
    let read = ["call", "read", r#"{"file_path":"a.txt"}"#];
    assert_eq!(world.run(&read).ends(0).err.matches("warning").count(), 0);
    world.configure("[sandbox]\nnetwork = \"enabled\"\n");
    world.run(&read).ends(0).warns("the network of commands is enabled since this start, and was disabled");
    assert_eq!(world.run(&read).ends(0).err.matches("warning").count(), 0, "it is told once");
    world.configure("[sandbox]\nnetwork = \"disabled\"\n");
    let told = world.run(&read).ends(0).warns("the network of commands is disabled since this start, and was enabled");
    assert!(!told.err.contains("warning") && !told.err.contains("stop here"), "less is no alarm: {}", told.err);
}

#[test]
fn doctor_says_where_requests_would_go() {
    let world = World::new();
    let config = "[model]\ndefault = \"openai-chat/m\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    world.configure(config);
    world.run(&["doctor"]).says("requests go to http://127.0.0.1:9/v1 (base_url)");
    world.configure("");
    let of = |name: &str, address: &str| {
        let mut doctor = world.command(&["doctor", "--model", "openai/m"]);
        doctor.env("OPENAI_API_KEY", "a-key-that-is-none-0123456789").env(name, address);
        Ran::from(doctor.output().expect("it runs"))
    };
    of("OPENAI_BASE_URL", "http://127.0.0.1:9").says("requests go to http://127.0.0.1:9 (OPENAI_BASE_URL)");
    of("UNUSED", "x").says("requests go to the provider's own address");
}
