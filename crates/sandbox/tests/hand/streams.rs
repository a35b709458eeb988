//! Streams that the caller gave: programs joined by a pipe, and one place for both streams.

use std::io::Read;
use std::os::fd::OwnedFd;

use portcullis_sandbox::hand::{Exit, Output, Stdin};

use crate::world::world;

fn pipe() -> (std::io::PipeReader, OwnedFd) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    (reader, writer.into())
}

#[tokio::test]
async fn two_programs_are_joined_by_a_pipe_and_the_first_is_told_when_the_second_has_enough() {
    let world = world();
    let (between, write) = pipe();
    let mut first = world.plan(&["seq", "1000000"]);
    first.stdout = Output::Fd(write);
    let mut second = world.plan(&["head", "-n", "2"]);
    second.stdin = Stdin::Fd(between.into());
    let mut first = world.launch(first).await.expect("launched");
    assert!(first.take_stdout().is_none(), "it is not ours to read");
    assert_eq!(world.run(second).await.ok(), "1\n2\n");
    assert_eq!(first.wait().await.expect("ended").exit, Exit::Signal(13), "as in any pipeline");
}

#[tokio::test]
async fn both_streams_in_one_place_keep_their_order() {
    let world = world();
    let (mut reader, write) = pipe();
    let mut plan = world.sh("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
    plan.stderr = Output::Fd(write.try_clone().expect("a copy"));
    plan.stdout = Output::Fd(write);
    let mut running = world.launch(plan).await.expect("launched");
    assert_eq!(running.wait().await.expect("ended").exit, Exit::Code(0));
    drop(running);
    let mut text = String::new();
    tokio::task::spawn_blocking(move || {
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "1\n2\n3\n4\n");
    })
    .await
    .expect("as written");
}
