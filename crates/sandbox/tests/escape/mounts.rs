//! Mounts, roots and namespaces: what is read-only stays so, what is masked stays so, and nobody makes
//! a namespace in which he would be root.

use crate::arena::{Arena, CALLS, Full, also_read_only, arena, at, held, stopped};

const DENIED: &[&str] = &["EPERM"];

#[tokio::test]
async fn nothing_can_be_mounted() {
    for name in ["mount_bind", "mount_move", "detached_tree"] {
        stopped(name, &at(CALLS, DENIED), |arena, _| vec![arena.outside.path().display().to_string()]).await;
    }
    stopped("release_agent", &at(CALLS, DENIED), |_, _| Vec::new()).await;
}

#[tokio::test]
async fn no_namespace_can_be_made_or_joined() {
    for name in ["new_user_namespace", "clone_user_namespace"] {
        stopped(name, &at(CALLS, DENIED), |_, _| Vec::new()).await;
    }
    // Even its own, where another one's cannot be named.
    stopped("join_namespaces", &at(CALLS, &["EPERM", "EACCES"]), |_, level| {
        vec![if level.is_none() { std::process::id().to_string() } else { "self".to_owned() }]
    })
    .await;
}

#[tokio::test]
async fn a_root_cannot_be_left_by_a_kept_handle() {
    stopped("chroot_and_back", &at(CALLS, DENIED), |arena, _| vec![arena.outside("secret")]).await;
}

#[tokio::test]
async fn a_mask_cannot_be_taken_away() {
    let arena = arena();
    let file = arena.world.write("masked", "SECRET");
    arena.reached(&["umount", "masked", "yes"]);
    let mut plan = arena.at(Full, &["umount", "/workspace/masked", "no"]);
    plan.view.masks = vec!["/workspace/masked".into()];
    held(&arena.run(Full, plan).await, DENIED, "umount");
    assert_eq!(std::fs::read_to_string(file).expect("as it was"), "SECRET");
}

#[tokio::test]
async fn what_is_read_only_stays_read_only() {
    for name in ["remount", "set_attributes"] {
        let control = arena();
        control.reached(&[name, &control.outside.path().display().to_string(), "yes"]);
        let arena = arena();
        let before = arena.host();
        let mut plan = arena.at(Full, &[name, "/data", "no"]);
        also_read_only(&mut plan, arena.outside.path(), "/data");
        held(&arena.run(Full, plan).await, DENIED, name);
        assert_eq!(arena.host(), before, "{name}");
    }
}

#[tokio::test]
async fn new_doors_to_mounts_are_closed_as_well() {
    // Not every kernel has the newest; then it says so outside, and still EPERM inside.
    let calls = ["fsopen", "fsmount", "fspick", "move_mount", "open_tree_attr", "pivot_root"];
    for name in calls {
        let words = |_: &Arena, _| vec![name.to_owned(), "0".into(), "0".into(), "0".into(), "0".into()];
        stopped("possible", &at(CALLS, DENIED), words).await;
    }
}
