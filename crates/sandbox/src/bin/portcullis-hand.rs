//! The launcher as a program of its own, for those whose `main` cannot call `hand::init()` first: its
//! path goes into `Launcher::helper` (agent-runtime 10.6). By hand it shows what this machine can do:
//!
//! ```text
//! portcullis-hand posture
//! portcullis-hand run [--at-least LEVEL] [--at-most LEVEL] [--network] [--toolchains FOLDER] [--mask PLACE]…
//!     -- PROGRAM ARGUMENTS…
//! ```

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use portcullis_base::IsolationLevel;
use portcullis_sandbox::hand::{self, Bind, BindAccess, Exit, Host, Launcher, Network, Plan, Source};

const USAGE: &str = "usage: portcullis-hand posture\n       portcullis-hand run [--at-least LEVEL] [--at-most LEVEL] [--network] [--toolchains FOLDER] [--mask PLACE]… -- PROGRAM [ARGUMENT…]\n\nrun: the current directory is /workspace, writable; nothing else of yours is there.\nLEVEL: full, no_pivot, no_namespaces, seccomp_only, none. --at-most puts up no more than that, to try it out.\n--toolchains: with the toolchains of your home; FOLDER keeps their caches.";

fn main() -> ExitCode {
    hand::init();
    let mut words = std::env::args_os().skip(1);
    match words.next().as_deref().and_then(|word| word.to_str()) {
        Some("posture") => posture(),
        Some("run") => run(words),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn posture() -> ExitCode {
    let launcher = Launcher::this_program();
    let posture = launcher.posture();
    println!("level {}", name(posture.level));
    for missing in &posture.missing {
        println!("missing {}: {}\n  to raise it: {}", missing.layer.as_str(), missing.why, missing.raise);
    }
    ExitCode::SUCCESS
}

const LEVELS: [(&str, IsolationLevel); 5] = [
    ("none", IsolationLevel::None),
    ("seccomp_only", IsolationLevel::SeccompOnly),
    ("no_namespaces", IsolationLevel::NoNamespaces),
    ("no_pivot", IsolationLevel::NoPivot),
    ("full", IsolationLevel::Full),
];

fn name(level: IsolationLevel) -> &'static str {
    LEVELS.iter().find(|(_, one)| *one == level).map_or("none", |(name, _)| name)
}

fn run(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let (mut minimum, mut at_most) = (IsolationLevel::Full, IsolationLevel::Full);
    let (mut network, mut masks, mut caches) = (Network::Disabled, Vec::new(), None);
    loop {
        match words.next().as_deref().and_then(|word| word.to_str()) {
            Some(which @ ("--at-least" | "--at-most")) => {
                let wanted = words.next();
                let level = LEVELS.iter().find(|(name, _)| wanted.as_deref().is_some_and(|word| word == *name));
                let Some((_, level)) = level else { return usage() };
                *(if which == "--at-least" { &mut minimum } else { &mut at_most }) = *level;
            }
            Some("--toolchains") => caches = words.next().map(PathBuf::from),
            Some("--mask") => masks.extend(words.next().map(PathBuf::from)),
            Some("--network") => network = Network::Host,
            Some("--") => break,
            _ => return usage(),
        }
    }
    let mut plan = Plan::new(words.collect());
    plan.minimum = minimum;
    plan.at_most = at_most;
    plan.network = network;
    plan.view.masks = masks;
    plan.cwd = "/workspace".into();
    let kept = ["PATH", "LANG", "TERM"].map(|name| std::env::var_os(name).map(|value| (name.into(), value)));
    plan.env = kept.into_iter().flatten().collect();
    if let Some(caches) = caches {
        let Some(host) = Host::of_this_process() else { return usage() };
        match hand::toolchains(&host, &caches, &[], network) {
            Ok(found) => {
                plan.env.retain(|(name, _)| name != "PATH");
                plan.env.extend(found.env);
                plan.view.binds = found.binds;
                plan.view.home = Some(host.home);
            }
            Err(error) => return failed(&error),
        }
    }
    match std::env::current_dir() {
        Ok(here) => plan.view.binds.push(Bind {
            source: Source::Path(here),
            place: "/workspace".into(),
            access: BindAccess::ReadWrite,
            optional: false,
        }),
        Err(error) => return failed(&error),
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    runtime.block_on(async {
        let mut running = match Launcher::this_program().launch(plan).await {
            Ok(running) => running,
            Err(error) => return failed(&error),
        };
        let pumps = [
            running.take_stdout().map(|from| pump(from, std::io::stdout())),
            running.take_stderr().map(|from| pump(from, std::io::stderr())),
        ];
        let ended = running.wait().await;
        for pump in pumps.into_iter().flatten() {
            let _ = pump.join();
        }
        match ended {
            Ok(ended) => match ended.exit {
                Exit::Code(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
                Exit::Signal(signal) => ExitCode::from(128 + u8::try_from(signal).unwrap_or(0)),
            },
            Err(error) => failed(&error),
        }
    })
}

/// The tree is dead when `wait` returns, so this ends.
fn pump(from: OwnedFd, mut to: impl Write + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::fs::File::from(from), &mut to);
        let _ = to.flush();
    })
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("portcullis-hand: {error}");
    ExitCode::from(125)
}
