//! What the launcher costs beyond a plain spawn, at small and at large resident memory.
//!
//! ```sh
//! cargo run --release -p portcullis-sandbox --example hand_bench
//! ```

use std::process::Command;
use std::time::{Duration, Instant};

use portcullis_sandbox::hand::{self, Bind, BindAccess, Launcher, Plan, Source};

const ROUNDS: usize = 200;

fn main() {
    hand::init();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let launcher = Launcher::this_program();
    println!("level {:?}", launcher.posture().level);
    let mut held: Vec<u8> = Vec::new();
    for megabytes in [64, 1024] {
        held.resize(megabytes << 20, 1);
        std::hint::black_box(&held);
        let plain = median(|| assert!(Command::new("/bin/true").status().expect("spawned").success()));
        let mut started = Vec::new();
        let launched = median(|| started.push(runtime.block_on(once(&launcher))));
        started.sort();
        let started = started[ROUNDS / 2];
        let more = launched.saturating_sub(plain);
        println!(
            "{megabytes:>5} MB resident: plain spawn {plain:>9.1?}, launcher {launched:>9.1?} (to exec {started:.1?}), {more:.1?} more (p50 of {ROUNDS})"
        );
    }
}

async fn once(launcher: &Launcher) -> Duration {
    let start = Instant::now();
    let mut plan = Plan::new(vec!["/bin/true".into()]);
    plan.cwd = "/workspace".into();
    plan.view.binds.push(Bind {
        source: Source::Path(std::env::temp_dir()),
        place: "/workspace".into(),
        access: BindAccess::ReadWrite,
        optional: false,
    });
    let mut running = launcher.launch(plan).await.expect("launched");
    let started = start.elapsed();
    running.wait().await.expect("ended");
    started
}

fn median(mut one: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            one();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}
