//! Files that are not in the view: by every name, by links before and during the call, by handles.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use portcullis_sandbox::hand::{Bind, BindAccess, Guard, Host, LaunchError, Network, OnUnheld, Source, toolchains};

use crate::arena::{Arena, FILES, Full, NOT_THERE, NoNamespaces, NoPivot, also_read_only, arena, held, stopped};
use crate::world::{bind, host, text};

#[tokio::test]
async fn the_persons_other_files_cannot_be_read_by_any_name() {
    let secret = |arena: &Arena, _| vec![arena.outside("secret")];
    for name in ["read", "make_link_and_read", "up_and_up"] {
        stopped(name, NOT_THERE, secret).await;
    }
    stopped("read", NOT_THERE, |arena, _| vec![format!("/proc/self/root{}", arena.outside("secret"))]).await;
    let planted = |arena: &Arena, _| {
        std::os::unix::fs::symlink(arena.outside.path(), arena.world.path("before")).expect("planted");
        vec!["before/secret".to_owned()]
    };
    stopped("read", NOT_THERE, planted).await;
    // Of a process outside: another root, another folder, an open file. In a pid namespace of its own
    // with the host's /proc the number exists and may not be looked at.
    stopped("read", NOT_THERE, |arena, _| {
        vec![format!("/proc/{}/root{}", std::process::id(), arena.outside("secret"))]
    })
    .await;
    stopped("read", NOT_THERE, |arena, _| {
        vec![format!("/proc/{}/cwd/{}", std::process::id(), up(&arena.outside("secret")))]
    })
    .await;
}

/// From anywhere, for `..` at the root stays there.
fn up(path: &str) -> String {
    format!("{}{}", "../".repeat(40), path.trim_start_matches('/'))
}

#[tokio::test]
async fn an_open_file_of_a_process_outside_cannot_be_taken() {
    let arena = arena();
    let file = std::fs::File::open(arena.outside("secret")).expect("opened");
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    arena.reached(&["read", &path]);
    for (level, promised) in NOT_THERE {
        held(&arena.attack(*level, &["read", &path]).await, promised, &format!("{level:?}"));
    }
}

#[tokio::test]
async fn the_persons_other_files_cannot_be_changed() {
    for name in ["write", "remove", "move_in"] {
        stopped(name, NOT_THERE, |arena, _| vec![arena.outside("secret")]).await;
    }
    let refer: &[&str] = &["EXDEV", "EACCES"];
    let folder = |arena: &Arena, _| vec![arena.outside.path().display().to_string()];
    stopped("move_out", &[(Full, &["ENOENT"]), (NoPivot, refer), (NoNamespaces, refer)], folder).await;
}

/// Modes and times are not Landlock's: only the full level promises them, and the others say so.
#[tokio::test]
async fn modes_and_times_of_other_files_are_kept_at_the_full_level_and_told_below_it() {
    for name in ["chmod", "touch"] {
        stopped(name, &[(Full, &["ENOENT"])], |arena, _| vec![arena.outside("secret")]).await;
    }
    let arena = arena();
    let running = arena.world.launch(arena.at(NoPivot, &["inherited"])).await.expect("launched");
    let told = running.posture().missing_lines().join("\n");
    assert!(told.contains("modes, times and attributes"), "{told}");
}

/// As the owner of the file, to whom `fs.protected_hardlinks` does not speak, whatever its value.
#[tokio::test]
async fn hard_links_to_other_files_cannot_be_made() {
    let refer: &[&str] = &["EXDEV", "EACCES"];
    let levels = [(Full, &["ENOENT"][..]), (NoPivot, refer), (NoNamespaces, refer)];
    stopped("hard_link", &levels, |arena, _| vec![arena.outside("secret")]).await;
    stopped("hard_link_by_handle", &levels, |arena, _| vec![arena.outside("secret")]).await;
}

#[tokio::test]
async fn files_by_their_number_cannot_be_opened() {
    stopped("by_file_handle", &crate::arena::at(crate::arena::CALLS, &["EPERM"]), |arena, level| {
        // Inside the number is made from what can be named there; that it may be used at all is the attack.
        if level.is_none() { vec![arena.outside("secret")] } else { vec![".".to_owned()] }
    })
    .await;
}

#[tokio::test]
async fn a_folder_that_is_swapped_for_a_link_during_the_call_shows_nothing() {
    let tries = "20000";
    let both_inside = |arena: &Arena, _| {
        std::fs::write(arena.outside("file"), "SECRET").expect("written");
        vec![arena.outside.path().display().to_string(), tries.to_owned()]
    };
    let any: &[&str] = &["ENOENT", "EACCES", "ENOTDIR"];
    let levels = FILES.iter().map(|level| (*level, any)).collect::<Vec<_>>();
    stopped("swap_and_read", &levels, both_inside).await;

    // By somebody outside, on the host.
    let arena = arena();
    std::fs::write(arena.outside("file"), "SECRET").expect("written");
    arena.world.write("d/file", "mine");
    std::os::unix::fs::symlink(arena.outside.path(), arena.world.path("l")).expect("a link");
    let swapping = Swapping::start(&arena);
    arena.reached(&["read_race", "d", "200000"]);
    for level in FILES {
        held(&arena.attack(*level, &["read_race", "d", tries]).await, any, &format!("{level:?}"));
    }
    drop(swapping);
}

/// Swaps `d` and the link `l` of the workspace until it is dropped.
struct Swapping(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Swapping {
    fn start(arena: &Arena) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let [d, l, t] = ["d", "l", "t"].map(|name| arena.world.path(name));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for (from, to) in [(&d, &t), (&l, &d), (&d, &l), (&t, &d)] {
                    std::fs::rename(from, to).expect("swapped");
                }
            }
        });
        Self(stop, Some(thread))
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1.take() {
            thread.join().expect("swapped to the end");
        }
    }
}

#[tokio::test]
async fn a_folder_that_is_swapped_for_a_link_during_the_launch_is_never_bound() {
    let arena = arena();
    std::fs::write(arena.outside("file"), "SECRET").expect("written");
    arena.world.write("d/file", "mine");
    std::os::unix::fs::symlink(arena.outside.path(), arena.world.path("l")).expect("a link");
    let d = arena.world.path("d");
    let swapping = Swapping::start(&arena);
    let (mut shown, mut refused) = (0, 0);
    for round in 0..60 {
        let mut plan = arena.world.sh("cat /data/file; cat /workspace/d/file 2>/dev/null; true");
        also_read_only(&mut plan, &d, "/data");
        // A guard and a mask on the way that is swapped: the launcher must not follow it either.
        if round % 2 == 0 {
            plan.view.guards.push(Guard { place: "/workspace/d/file".into(), hold: OnUnheld::Must });
        }
        match arena.world.launch(plan).await {
            Ok(mut running) => {
                shown += 1;
                let done = crate::world::finish(&mut running).await;
                assert!(!done.out.contains("SECRET"), "{}", done.out);
            }
            Err(LaunchError::View { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    drop(swapping);
    assert!(shown > 0 && refused > 0, "the race was no race: {shown} shown, {refused} refused");
}

#[tokio::test]
async fn a_working_directory_that_is_moved_out_does_not_take_the_command_along() {
    let any: &[&str] = &["ENOENT", "EACCES"];
    for level in [None, Some(Full), Some(NoPivot), Some(NoNamespaces)] {
        let arena = arena();
        std::fs::create_dir(arena.world.path("sub")).expect("made");
        arena.world.write("still", "");
        let (from, to, here) =
            (arena.world.path("sub"), arena.outside.path().join("sub"), arena.world.path("sub/here"));
        let mover = std::thread::spawn(move || {
            let start = std::time::Instant::now();
            while !here.exists() {
                assert!(start.elapsed() < crate::world::PATIENCE, "it never came to its folder");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            std::fs::rename(from, to).expect("moved");
        });
        match level {
            None => arena.reached(&["moved_away", "sub"]),
            Some(level) => held(&arena.attack(level, &["moved_away", "sub"]).await, any, &format!("{level:?}")),
        }
        mover.join().expect("moved");
    }
}

#[tokio::test]
async fn the_store_beside_the_caches_is_out_of_reach() {
    let arena = arena();
    let data = arena.outside.path().join("data");
    std::fs::create_dir_all(data.join("caches")).expect("made");
    std::fs::write(data.join("portcullis.db"), "SECRET").expect("written");
    let home = arena.outside.path().join("home");
    std::fs::create_dir(&home).expect("made");
    let host = Host { home: home.clone(), variables: vec![("PATH".into(), "/usr/bin".into())] };
    let cache = data.join("caches/npm").display().to_string();
    let found = toolchains(&host, &data.join("caches"), std::slice::from_ref(&data), Network::Disabled).expect("found");
    arena.reached(&["walk_up_from", &cache, "portcullis.db"]);
    let before = arena.host();
    for (level, promised) in NOT_THERE {
        let shown = if *level == Full { home.join(".npm").display().to_string() } else { cache.clone() };
        let mut plan = arena.at(*level, &["walk_up_from", &shown, "portcullis.db"]);
        plan.view.binds.extend(found.binds.clone());
        plan.view.home = Some(home.clone());
        held(&arena.run(*level, plan).await, &["ENOENT", "EACCES"], &format!("{level:?}"));
        let path = data.join("portcullis.db").display().to_string();
        held(&arena.attack(*level, &["write", &path]).await, promised, &format!("{level:?}"));
    }
    assert_eq!(arena.host(), before);
}

#[tokio::test]
async fn another_hands_files_are_not_there() {
    let (one, other) = (arena(), arena());
    one.world.write("file", "SECRET");
    let path = one.world.path("file").display().to_string();
    other.reached(&["read", &path]);
    let mut running =
        one.world.launch(one.world.sh("echo SECRET > /tmp/mine; echo up; sleep 60")).await.expect("launched");
    let mut out = std::fs::File::from(running.take_stdout().expect("stdout"));
    let mut up = [0; 3];
    std::io::Read::read_exact(&mut out, &mut up).expect("it runs");
    held(&other.attack(Full, &["read", "/tmp/mine"]).await, &["ENOENT"], "its /tmp");
    for (level, promised) in NOT_THERE {
        held(&other.attack(*level, &["read", &path]).await, promised, &format!("its workspace, {level:?}"));
    }
    running.kill_tree();
    crate::world::ended(&mut running).await;
}

#[tokio::test]
async fn descriptors_of_portcullis_are_not_inherited() {
    let arena = arena();
    let file: OwnedFd = std::fs::File::open(arena.outside("secret")).expect("opened").into();
    // A library that forgets the flag.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).expect("left open");
    let folder: OwnedFd = std::fs::File::open(arena.outside.path()).expect("opened").into();
    rustix::io::fcntl_setfd(&folder, rustix::io::FdFlags::empty()).expect("left open");
    arena.reached(&["inherited"]);
    for level in crate::arena::CALLS {
        held(&arena.attack(*level, &["inherited"]).await, &["EBADF"], &format!("{level:?}"));
    }
}

#[tokio::test]
async fn h08_a_guarded_place_cannot_be_replaced_by_moving_what_is_above_it() {
    let arena = arena();
    arena.world.write(".git/hooks/keep", "x");
    arena.world.write(".git/config", "[core]");
    let script = "mv .git away && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit; \
                  mv -T away .git 2>/dev/null; test -e .git/hooks/pre-commit && echo reached";
    let guard = |place: &str| Guard { place: place.into(), hold: OnUnheld::Must };
    // At its virtual place and at a second one, as the workspace has at its host path.
    let shown = arena.world.tree.path().display().to_string();
    for from in ["/workspace", shown.as_str()] {
        let mut plan = arena.world.sh(script);
        plan.view.binds.push(bind(arena.world.tree.path(), &shown, BindAccess::ReadWrite));
        plan.cwd = from.into();
        for place in ["/workspace", &shown] {
            plan.view.guards.push(guard(&format!("{place}/.git/hooks")));
            plan.view.guards.push(guard(&format!("{place}/.git/config")));
        }
        let mut running = arena.world.launch(plan).await.expect("launched");
        let done = crate::world::finish(&mut running).await;
        assert!(!done.out.contains("reached"), "{}{}", done.out, done.err);
        assert!(!arena.world.path(".git/hooks/pre-commit").exists());
        assert!(arena.world.path(".git/hooks/keep").exists() && !arena.world.path("away").exists());
    }
    // The rest of `.git` is as writable as ever, and moving within it works.
    let mut plan = arena.world.sh("echo a > .git/index.lock && mv .git/index.lock .git/index && mkdir .git/objects");
    plan.view.guards = vec![guard("/workspace/.git/hooks")];
    arena.world.run(plan).await.ok();
    assert!(arena.world.path(".git/index").exists());
    let outside = text(&host(&["sh", "-c", &format!("cd {shown} && {script}")]).stdout);
    assert_eq!(outside, "reached\n", "control");
}

#[tokio::test]
async fn a_handle_to_another_object_by_now_is_refused() {
    let arena = arena();
    arena.world.write("a/file", "mine");
    let handle: OwnedFd = std::fs::File::open(arena.world.path("a")).expect("opened").into();
    std::fs::remove_dir_all(arena.world.path("a")).expect("removed");
    std::os::unix::fs::symlink(arena.outside.path(), arena.world.path("a")).expect("a link in its place");
    let mut plan = arena.world.plan(&["cat", "/data/secret"]);
    plan.view.binds.push(Bind {
        source: Source::Handle(Arc::new(handle)),
        place: "/data".into(),
        access: BindAccess::ReadOnly,
        optional: false,
    });
    let error = arena.world.launch(plan).await.expect_err("not launched");
    assert!(matches!(&error, LaunchError::View { .. }), "{error}");
}
