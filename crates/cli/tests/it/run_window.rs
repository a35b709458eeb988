//! The notice of a compaction names the setting that avoids it, where the model's window is not known.

use crate::common::World;
use crate::driven::script;

const NOTICE: &str = "The context window of this model is not known, and 16000 tokens are assumed for a conversation: set \
                      `window = N` under `[model]`";

/// About 30,000 tokens of conversation.
fn long() -> String {
    let words = "words and more ".repeat(700);
    let turns = (0..12).map(|n| {
        format!("[[turn]]\ntext = \"{words}\"\ncalls = [{{ name = \"glob\", input = {{ pattern = \"{n}*\" }} }}]\n")
    });
    turns.chain(["[[turn]]\ntext = \"Done.\"\n".to_owned()]).collect()
}

#[test]
fn the_notice_of_a_compaction_names_the_window_where_it_is_not_known() {
    let world = World::new();
    let model = script(&world, "long.toml", &long());
    let args = ["run", "go", "--model", &model];
    let ran = world.run(&args).ends(0).warns("messages gave way to a summary").warns(NOTICE);
    assert_eq!(ran.err.matches("gave way to a summary").count(), ran.err.matches(NOTICE).count(), "{}", ran.err);
    let assumed = |more: &[&str]| {
        let lines = world.run(&[&args[..], more].concat()).ends(0).lines();
        let found = lines.iter().find(|line| line["type"] == "compacted").map(|line| line["assumed_tokens"].clone());
        found.unwrap_or_else(|| panic!("nothing was compacted: {lines:?}"))
    };
    assert_eq!(assumed(&["--json"]), 16_000);

    // What the person says counts, and the notice does not ask for it again.
    world.configure("[model]\nwindow = 32000\n");
    let ran = world.run(&args).ends(0).warns("messages gave way to a summary");
    assert!(!ran.err.contains("not known"), "{}", ran.err);
    assert!(assumed(&["--json"]).is_null());
    world.configure("[model]\nwindow = 200000\n");
    let ran = world.run(&args).ends(0);
    assert!(!ran.err.contains("gave way"), "{}", ran.err);
}

/// A model that refuses a long conversation says so before ours does: the warning names the setting as well.
#[test]
fn the_warning_of_a_cut_names_the_window_where_it_is_not_known() {
    let words = "words and more ".repeat(4_000);
    let text = format!(
        "[[turn]]\ntext = \"{words}\"\ncalls = [{{ name = \"glob\", input = {{ pattern = \"1*\" }} }}]\n[[turn]]\ntext = \"Done.\"\n"
    );
    let world = World::new();
    let model = script(&world, "wide.toml", &(text.clone() + "[defaults]\nfail = [{ turn = 2, status = 413 }]\n"));
    let ran = world.run(&["run", "go", "--model", &model]);
    ran.warns("are longer than the model can read").warns("set `window` under `[model]` to its tokens");
}
