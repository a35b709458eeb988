//! Real builds in the full level, with the network off.

use portcullis_sandbox::hand::{BindAccess, Host, Network, toolchains};

use crate::world::{bind, world};

#[tokio::test]
async fn cargo_test_works_with_the_network_off() {
    let world = world();
    world.write("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n");
    world.write(
        "src/lib.rs",
        "#[test]\nfn it_runs() { assert_eq!(2 + 2, 4); std::fs::write(\"ran\", \"yes\").unwrap(); }\n",
    );
    let data = tempfile::tempdir().expect("a folder");
    let host = Host::of_this_process().expect("a home");
    let found =
        toolchains(&host, &data.path().join("caches"), &[data.path().to_owned()], Network::Disabled).expect("found");
    let mut plan = world.plan(&["cargo", "test", "--offline"]);
    plan.env = found.env;
    plan.view.binds = found.binds;
    plan.view.binds.push(bind(world.tree.path(), "/workspace", BindAccess::ReadWrite));
    plan.view.home = Some(host.home.clone());
    let done = world.run(plan).await;
    assert!(done.out.contains("1 passed"), "{}\n{}", done.out, done.err);
    assert!(world.path("ran").exists());

    // The rest of the home is not there.
    let mut plan = world.plan(&["sh", "-c", "ls -A \"$HOME\" | sort | tr '\\n' ' '; ls -A \"$HOME/.cargo\""]);
    let found = toolchains(&host, &data.path().join("caches"), &[], Network::Disabled).expect("found");
    plan.env = found.env;
    plan.view.binds.extend(found.binds);
    plan.view.home = Some(host.home.clone());
    let seen = world.run(plan).await.ok();
    assert!(!seen.contains(".ssh") && !seen.contains("credentials") && !seen.contains(".bash"), "{seen}");
}

/// Without a network an empty cache stays empty, and no project with a dependency would build.
#[tokio::test]
async fn cargo_builds_with_what_the_person_has_downloaded_and_cannot_change_it() {
    let world = world();
    world.write(
        "Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nitoa = \"1\"\n[workspace]\n",
    );
    world.write("src/main.rs", "fn main() { println!(\"{}\", itoa::Buffer::new().format(42)); }\n");
    let data = tempfile::tempdir().expect("a folder");
    let host = Host::of_this_process().expect("a home");
    let plan = |argv: &[&str]| {
        let found = toolchains(&host, &data.path().join("caches"), &[data.path().to_owned()], Network::Disabled)
            .expect("found");
        let mut plan = world.plan(argv);
        plan.env = found.env;
        plan.view.binds = found.binds;
        plan.view.binds.push(bind(world.tree.path(), "/workspace", BindAccess::ReadWrite));
        plan.view.home = Some(host.home.clone());
        plan
    };
    let done = world.run(plan(&["cargo", "run", "-q", "--offline"])).await;
    assert_eq!(done.out, "42\n", "this test needs the crate `itoa` in the registry of cargo's home: {}", done.err);
    let evil = "for part in index cache; do touch ~/.cargo/registry/$part/evil && echo made; done 2>/dev/null; \
                touch ~/.cargo/registry/own && echo own";
    assert_eq!(world.run(plan(&["sh", "-c", evil])).await.ok(), "own\n");
}
