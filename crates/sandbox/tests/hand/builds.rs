//! Real builds in the full level, with the network off.

use portcullis_sandbox::hand::{BindAccess, Host, toolchains};

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
    let found = toolchains(&host, &data.path().join("caches"), &[data.path().to_owned()]).expect("found");
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
    let found = toolchains(&host, &data.path().join("caches"), &[]).expect("found");
    plan.env = found.env;
    plan.view.binds.extend(found.binds);
    plan.view.home = Some(host.home.clone());
    let seen = world.run(plan).await.ok();
    assert!(!seen.contains(".ssh") && !seen.contains("credentials") && !seen.contains(".bash"), "{seen}");
}
