//! Transcripts of what the inbox says of an ask: which project it is about, and how it stands.

use crate::common::{World, edit};

fn asking() -> (World, String) {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    let ask = world.ask_to_edit("a.txt", "beta", "gamma");
    (world, ask)
}

#[test]
fn an_ask_names_the_folder_and_the_session_it_belongs_to_wherever_it_is_shown() {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    world.run(&["call", "read", r#"{"file_path":"a.txt"}"#]).ends(0);
    let folder = world.workspace.display().to_string();
    let asked = world.run(&["call", "edit", &edit("a.txt", "beta", "gamma")]).ends(3);
    let (ask, session) = (asked.id("ask_"), asked.id("sesn_"));
    asked.says(&format!("  in: {folder} (session {session})"));
    world.run(&["approvals", "list"]).ends(0).says("WORKSPACE").says(&folder).says(&session);
    world.run(&["approvals", "show", &ask]).ends(0).says(&format!("  in              {folder}")).says(&session);
    let listed = world.run(&["approvals", "list", "--json"]).ends(0).json();
    let shown = world.run(&["approvals", "show", &ask, "--json"]).ends(0).json();
    for ask in [&listed["asks"][0], &shown] {
        assert_eq!((&ask["cwd"], &ask["workspace"]), (&folder.clone().into(), &folder.clone().into()));
    }
    let waits = world.run(&["call", "edit", &edit("a.txt", "alpha", "x"), "--json"]).ends(3).json();
    assert_eq!(waits["requires_action"]["cwd"], folder);
}

#[test]
fn a_settled_ask_says_who_settled_it_how_and_offers_nothing_more() {
    let (world, ask) = asking();
    world.run(&["approvals", "allow", &ask]).ends(0);
    let shown = world.run(&["approvals", "show", &ask]).ends(0).says("state           allowed by ");
    for gone in ["a rule would settle this", "expires ", "approvals deny"] {
        assert!(!shown.out.contains(gone), "`{gone}` in {}", shown.out);
    }
    let ask = world.ask_to_edit("a.txt", "gamma", "delta");
    world.run(&["approvals", "deny", &ask]).ends(0);
    world.run(&["approvals", "show", &ask]).ends(0).says("state           denied by ");
}

#[test]
fn an_approval_that_a_changed_file_voided_is_not_blamed_on_whoever_gave_it() {
    let (world, ask) = asking();
    world.write("a.txt", "alpha\nbeta\nmore\n");
    world.run(&["approvals", "allow", &ask]).ends(1).warns("stale_file_baseline");
    world
        .run(&["approvals", "show", &ask])
        .ends(0)
        .says("state           void: allowed by ")
        .says("no longer as shown");
    let again = world.run(&["approvals", "allow", &ask]).ends(1).one_error_line();
    again.warns("is void: allowed by").warns("no longer as shown");
}

/// An ask whose time was over before anyone could look.
fn expired() -> (World, String) {
    let world = World::with_file("a.txt", "alpha\nbeta\n");
    world.configure("[approvals]\nask_expiry = \"1ms\"\n");
    let ask = world.ask_to_edit("a.txt", "beta", "gamma");
    (world, ask)
}

#[test]
fn an_expired_ask_is_not_listed_and_says_the_same_each_time() {
    let (world, ask) = expired();
    world.run(&["approvals", "list"]).ends(0).warns("nothing waits");
    let shown =
        world.run(&["approvals", "show", &ask]).ends(0).says("state           expired: nobody answered in time");
    assert!(!shown.out.contains("approvals allow"), "{}", shown.out);
    for _ in 0..2 {
        world.run(&["approvals", "allow", &ask]).ends(4).warns("has expired").one_error_line();
    }
    assert_eq!(world.read("a.txt"), "alpha\nbeta\n");
}
