//! Other processes: their memory, environment, descriptors and lives.

use std::process::{Child, Command, Stdio};

use crate::arena::{Arena, CALLS, Full, NoNamespaces, NoPivot, arena, at, held, stopped};
use crate::world::{alive, mark, until};

/// A process of the person's, with a secret in its environment.
struct Victim(Child);

impl Victim {
    fn start() -> Self {
        let child = Command::new("sleep").arg("600").env("ESCAPE_SECRET", "SECRET").stdin(Stdio::null()).spawn();
        Self(child.expect("started"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn environment_and_memory_of_others_cannot_be_read() {
    let victim = Victim::start();
    let pid = |_: &Arena, _| vec![victim.pid()];
    let hidden: &[(_, &[&str])] =
        &[(Full, &["ENOENT"]), (NoPivot, &["EACCES", "EPERM"]), (NoNamespaces, &["EACCES", "EPERM"])];
    for name in ["environ", "memory"] {
        stopped(name, hidden, pid).await;
    }
    let any: &[&str] = &["ENOENT", "EACCES", "EPERM", "ESRCH"];
    stopped("any_environ", &[(Full, any), (NoPivot, any), (NoNamespaces, any)], |_, _| Vec::new()).await;
}

#[tokio::test]
async fn nobody_can_be_traced() {
    for name in ["trace", "vm_read", "steal_descriptor"] {
        for level in CALLS {
            let victim = Victim::start();
            stopped(name, &[(*level, &["EPERM"])], |_, _| vec![victim.pid()]).await;
        }
    }
    stopped("trace_child", &at(CALLS, &["EPERM"]), |_, _| Vec::new()).await;
}

#[tokio::test]
async fn others_cannot_be_killed_limited_or_slowed() {
    let (none, denied): (&[&str], &[&str]) = (&["ESRCH"], &["EPERM"]);
    for name in ["end", "limit", "renice"] {
        for (level, promised) in [(Full, none), (NoPivot, none), (NoNamespaces, denied)] {
            let control = Victim::start();
            let mut victim = Victim::start();
            stopped(name, &[(level, promised)], |_, level| {
                vec![if level.is_none() { control.pid() } else { victim.pid() }]
            })
            .await;
            assert!(victim.0.try_wait().expect("looked").is_none(), "{name} at {level:?}: it is dead");
        }
    }
}

#[tokio::test]
async fn another_hands_processes_cannot_be_killed() {
    for (level, promised) in [(Full, &["ESRCH"]), (NoNamespaces, &["EPERM"])] {
        let (one, other) = (arena(), arena());
        let mark = mark();
        let mut plan = one.world.plan(&["sleep", &mark]);
        plan.minimum = level;
        plan.at_most = level;
        let running = one.world.launch(plan).await.expect("launched");
        let pid = pid_of(&mark);
        held(&other.attack(level, &["end", &pid]).await, promised, &format!("{level:?}"));
        assert!(alive(&mark), "{level:?}");
        other.reached(&["end", &pid]);
        drop(running);
    }
}

fn pid_of(mark: &str) -> String {
    let is_it = |pid: &str| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == format!("sleep\0{mark}\0").into_bytes())
    };
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names.find(|name| is_it(name)).expect("it runs")
}

/// Where there is no pid namespace, who kills the launcher would outlive the call.
#[tokio::test]
async fn h17_a_command_that_kills_its_launcher_does_not_outlive_the_call() {
    for level in [Full, NoPivot, NoNamespaces] {
        let arena = arena();
        let mark = mark();
        let mut running = arena.world.launch(arena.at(level, &["kill_the_launcher", &mark])).await.expect("launched");
        let done = crate::world::finish(&mut running).await;
        if level == NoNamespaces {
            held(&done, &["EPERM"], "the launcher");
        }
        until("the daemon is gone", || !alive(&mark)).await;
    }
    // Control: outside, the daemon outlives the one that would end it.
    let arena = arena();
    let mark = mark();
    let shell = Command::new("sh")
        .args(["-c", "\"$@\"; true", "sh", crate::arena::PYTHON, "-I", "-c", include_str!("attacks.py")])
        .args(["kill_the_launcher", &mark])
        .current_dir(arena.world.tree.path())
        .output()
        .expect("started");
    assert!(shell.status.code().is_none(), "the shell was killed: {shell:?}");
    assert!(alive(&mark), "control");
    arena.reached(&["end", &pid_of(&mark)]);
}
