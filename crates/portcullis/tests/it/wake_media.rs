//! Images and documents that `read` hands to a model.

use portcullis::harness::Settings;

use crate::brain::{Brain, call, said};
use crate::world::{World, executed, world};

const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\0IEND\xaeB`\x82";

/// So many bytes behind `head`, of which none is like another.
fn filled(head: &[u8], bytes: u32) -> Vec<u8> {
    head.iter().copied().chain((0..bytes).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)).collect()
}

#[tokio::test]
async fn l71_what_a_model_looks_at_is_in_the_very_next_request_and_stays_there() {
    let files = [
        ("a.png", PNG.to_vec()),
        ("b.png", filled(PNG, 300_000)),
        ("c.pdf", filled(b"%PDF-1.4\n", 1_000)),
        ("d.pdf", filled(b"%PDF-1.4\n", 400_000)),
    ];
    for (name, bytes) in files {
        let look = vec![call("c0", "read", &format!(r#"{{"file_path":"{name}"}}"#))];
        let world = world(Brain::new([look, vec![said("one")], vec![said("two")]])).await;
        std::fs::write(world.folder.path().join(name), &bytes).expect("a file");
        world.say("look at it").await;
        executed(world.wake().await);
        world.say("and again").await;
        executed(world.wake().await);
        let heard = world.brain.requests();
        let digest = portcullis_base::Digest::of(&bytes).to_string();
        assert!(heard[1].contains(r#"{"Media":"#) && heard[1].contains(&digest), "{name}: {}", heard[1]);
        assert!(heard[2].starts_with(&heard[1]), "{name}: live and from the log the same");
    }
}

#[tokio::test]
async fn h38_a_document_weighs_in_the_budget() {
    let answers = (0..6).map(|n| vec![call(&format!("c{n}"), "read", &format!(r#"{{"file_path":"d{n}.pdf"}}"#))]);
    let settings = Settings { token_budget: Some(20_000), ..Settings::default() };
    let world = World::with(Brain::new(answers.chain([vec![said("done")]])), settings, |builder| builder).await;
    for n in 0..6u8 {
        std::fs::write(
            world.folder.path().join(format!("d{n}.pdf")),
            filled(&[b"%PDF-1.4\n".as_slice(), &[n]].concat(), 400_000),
        )
        .expect("a file");
    }
    world.say("read them").await;
    executed(world.wake().await);
    assert!(world.count("agent.thread_context_compacted").await > 0, "six documents are more than 20,000 tokens");
}
