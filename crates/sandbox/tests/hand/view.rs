//! Binds, masks, guards, descriptors: what the plan says of one place holds for that place.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_sandbox::hand::{Bind, BindAccess, Exit, Guard, LaunchError, OnUnheld, Source, Stdin, Tmp};

use crate::world::{bind, world};

#[tokio::test]
async fn check38_a_masked_path_shows_nothing_by_any_name() {
    let world = world();
    world.write(".env", "SECRET");
    world.write("keys/id", "SECRET");
    std::os::unix::fs::symlink(".env", world.path("link")).expect("a link");
    let script = "cat .env link keys/id 2>&1; ls -A keys 2>&1; ln .env hard 2>&1; mv .env away 2>&1; mv keys elsewhere 2>&1; \
                  chmod 777 .env 2>&1; umount /workspace/.env 2>&1; cat away hard elsewhere/id /proc/self/root/workspace/.env 2>&1; \
                  cp -r . /tmp/copy 2>&1; cat /tmp/copy/.env /tmp/copy/keys/id 2>&1; true";
    let plan = world.sh(script);
    let control = world.run(world.sh("cat .env link keys/id")).await.ok();
    assert_eq!(control, "SECRETSECRETSECRET");
    let mut plan = plan;
    plan.view.masks = vec!["/workspace/.env".into(), "/workspace/keys".into()];
    let out = world.run(plan).await.ok();
    assert!(!out.contains("SECRET"), "{out}");
    assert_eq!(std::fs::read_to_string(world.path(".env")).expect("still there"), "SECRET");
    assert_eq!(std::fs::read_to_string(world.path("keys/id")).expect("still there"), "SECRET");
}

#[tokio::test]
async fn a_mask_that_is_a_link_or_is_not_there_stops_the_launch() {
    let world = world();
    world.write("real", "x");
    std::os::unix::fs::symlink("real", world.path("link")).expect("a link");
    for name in ["link", "missing"] {
        let mut plan = world.sh("touch ran");
        let mask = PathBuf::from("/workspace").join(name);
        plan.view.masks = vec![mask.clone()];
        let error = world.launch(plan).await.expect_err("not launched");
        assert!(matches!(&error, LaunchError::View { place, .. } if *place == mask), "{error}");
    }
    assert!(!world.path("ran").exists());
    assert!(!world.path("missing").exists(), "nothing is made in a person's tree");
}

#[tokio::test]
async fn h08_guarded_places_stay_as_they_are_and_new_ones_are_told() {
    let world = world();
    world.write(".git/hooks/keep", "x");
    world.write(".git/config", "[core]");
    let before = std::fs::read_dir(world.tree.path()).expect("a list").count();
    let guard = |place: &str| Guard { place: place.into(), hold: OnUnheld::Must };
    let mut plan = world.sh(
        "echo evil > .git/hooks/pre-commit; echo evil >> .git/config; mv .git/hooks .git/gone; rm -rf .git/hooks; \
         mv .git/config .git/c2; echo fine > .git/index; ls .portcullis; true",
    );
    plan.view.guards =
        ["/workspace/.git/hooks", "/workspace/.git/config", "/workspace/.portcullis"].map(guard).to_vec();
    let mut running = world.launch(plan).await.expect("launched");
    running.wait().await.expect("ended");
    assert_eq!(std::fs::read_dir(world.path(".git/hooks")).expect("still there").count(), 1);
    assert_eq!(std::fs::read_to_string(world.path(".git/config")).expect("still there"), "[core]");
    assert!(world.path(".git/index").exists(), "the rest of .git is writable");
    assert_eq!(running.appeared(), Vec::<PathBuf>::new());
    assert_eq!(std::fs::read_dir(world.tree.path()).expect("a list").count(), before, "nothing was made for a guard");

    for attack in ["mkdir .portcullis", "ln -s /tmp .portcullis", "mkdir x && mv x .portcullis"] {
        let mut plan = world.sh(attack);
        plan.view.guards = vec![guard("/workspace/.portcullis"), guard("/workspace/.git/hooks")];
        let mut running = world.launch(plan).await.expect("launched");
        running.wait().await.expect("ended");
        assert_eq!(running.appeared(), [PathBuf::from("/workspace/.portcullis")], "{attack}");
        let _ = std::fs::remove_dir(world.path(".portcullis"));
        let _ = std::fs::remove_file(world.path(".portcullis"));
    }
}

#[tokio::test]
async fn read_only_binds_hold_inside_writable_ones() {
    let world = world();
    world.write("part/file", "kept");
    let mut plan = world.sh("echo x > part/file; echo x > part/new; chmod 777 part/file; cat part/file; touch rest");
    plan.view.binds.push(bind(&world.path("part"), "/workspace/part", BindAccess::ReadOnly));
    let out = world.run(plan).await.ok();
    assert_eq!(out, "kept");
    assert!(!world.path("part/new").exists() && world.path("rest").exists());
}

#[tokio::test]
async fn a_handle_is_bound_as_the_object_it_is() {
    let world = world();
    world.write("a/who", "first");
    let handle: OwnedFd = std::fs::File::open(world.path("a")).expect("opened").into();
    // Another folder takes its name, and it has a new one.
    std::fs::rename(world.path("a"), world.path("b")).expect("renamed");
    world.write("a/who", "second");
    let mut plan = world.plan(&["cat", "/data/who"]);
    plan.view.binds.push(Bind {
        source: Source::Handle(Arc::new(handle)),
        place: "/data".into(),
        access: BindAccess::ReadOnly,
        optional: false,
    });
    assert_eq!(world.run(plan).await.ok(), "first");
}

#[tokio::test]
async fn a_folder_as_tmp_and_a_home_in_memory() {
    let world = world();
    let tmp = tempfile::tempdir().expect("a folder");
    let mut plan = world.sh("echo t > /tmp/t; echo h > /home/me/h; cat /home/me/h; ls -A /home/me");
    plan.view.tmp = Tmp::Folder(Source::Path(tmp.path().to_owned()));
    plan.view.home = Some("/home/me".into());
    assert_eq!(world.run(plan).await.ok(), "h\nh\n");
    assert!(tmp.path().join("t").exists());
}

#[tokio::test]
async fn descriptors_arrive_from_three_on_and_stdin_if_given() {
    let world = world();
    let (mut ours, theirs) = std::io::pipe().expect("a pipe");
    let (input, mut feed) = std::io::pipe().expect("a pipe");
    feed.write_all(b"typed").expect("fed");
    drop(feed);
    let mut plan = world.sh("cat; echo three >&3; echo four >&4; ls /proc/self/fd | tr '\\n' ' '");
    plan.stdin = Stdin::Fd(input.into());
    plan.extra_fds = vec![theirs.as_fd().try_clone_to_owned().expect("a copy"), theirs.into()];
    let out = world.run(plan).await.ok();
    assert_eq!(out, "typed0 1 2 3 4 5 ");
    let mut said = String::new();
    ours.read_to_string(&mut said).expect("read");
    assert_eq!(said, "three\nfour\n");
}

#[tokio::test]
async fn a_failing_exec_and_a_missing_cwd_are_told_apart_from_a_layer() {
    let world = world();
    for (program, kind) in
        [("no-such-program", std::io::ErrorKind::NotFound), ("/etc/passwd", std::io::ErrorKind::PermissionDenied)]
    {
        let error = world.launch(world.plan(&[program])).await.expect_err("not launched");
        assert!(matches!(&error, LaunchError::Exec { why, .. } if why.kind() == kind), "{error}");
    }
    let mut plan = world.sh("true");
    plan.cwd = "/workspace/nowhere".into();
    let error = world.launch(plan).await.expect_err("not launched");
    assert!(matches!(&error, LaunchError::Cwd { .. }), "{error}");
    assert!(!error.to_string().contains(world.tree.path().to_str().expect("utf-8")), "no host path: {error}");
    let mut plan = world.sh("true");
    plan.view.binds.push(bind(&world.path("gone"), "/data", BindAccess::ReadOnly));
    let error = world.launch(plan).await.expect_err("not launched");
    assert!(matches!(&error, LaunchError::View { place, .. } if place.ends_with("data")), "{error}");
    let done = world.run(world.sh("kill -TERM $$")).await;
    assert_eq!(done.ended.exit, Exit::Signal(15));
}

/// The mask of one command goes with the file; the next command's stands at the name again.
#[tokio::test]
async fn check38_what_is_pinned_cannot_be_moved_from_its_name() {
    let world = world();
    world.write("conf/deep/secret", "SECRET");
    world.write("conf/other", "x");
    let plan = |script: &str| {
        let mut plan = world.sh(script);
        plan.view.pinned = vec!["/workspace/conf/deep/secret".into()];
        plan.view.masks = plan.view.pinned.clone();
        plan
    };
    let moves = "mv conf away 2>&1; mv conf/deep conf/away 2>&1; mv /workspace/conf/deep /workspace/d 2>&1; \
                 rm -rf conf/deep 2>&1; cat */deep/secret conf/*/secret 2>&1; mv conf/other conf/moved && mv conf/moved here";
    let out = world.run(plan(moves)).await.ok();
    assert!(!out.contains("SECRET"), "{out}");
    assert_eq!(std::fs::read_to_string(world.path("conf/deep/secret")).expect("where it was"), "SECRET");
    assert!(world.path("here").exists(), "what is not pinned can be moved: {out}");
    let out = world.run(plan("cat conf/deep/secret away/deep/secret 2>&1; true")).await.ok();
    assert!(!out.contains("SECRET"), "{out}");
}
