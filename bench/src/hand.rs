//! Starting a command: the launcher beside a plain spawn, and `shell_run` through the whole gate beside
//! bubblewrap. What is compared takes turns, so that a busy machine is busy for both.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use portcullis::hand::{Bind, BindAccess, Exit, Launcher, Plan, Source};
use portcullis::{IsolationLevel, Runtime};
use serde_json::json;

use crate::anchor::{Key, Rows};
use crate::asked::{allowed, carry_out};
use crate::table::{Row, millis, p50};
use crate::world::{artifacts, hold, sqlite};

const ROUNDS: usize = 200;

/// What the launcher may cost beyond a plain spawn, however large this process is.
const LAUNCH: Duration = Duration::from_micros(4_500);
/// Two runs of the same thing on a shared machine differ by so much.
const SAME: Duration = Duration::from_micros(500);

pub async fn run() -> Result<Vec<Row>> {
    let launcher = Launcher::this_program();
    let posture = launcher.posture();
    ensure!(posture.level == IsolationLevel::Full, "not the full level: {}", posture.missing_lines().join("; "));
    let mut rows = launches(&launcher).await?;
    rows.push(shell_run().await?);
    Ok(rows)
}

async fn launches(launcher: &Launcher) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let mut held: Vec<u8> = Vec::new();
    let (mut rows, mut small) = (Vec::new(), None);
    for megabytes in [64, 1024] {
        held.resize(megabytes << 20, 1);
        std::hint::black_box(&held);
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            ensure!(Command::new("/bin/true").status()?.success(), "`true` works");
            plain.push(begun.elapsed());
            let begun = Instant::now();
            launch(launcher, folder.path()).await?;
            ours.push(begun.elapsed());
        }
        let (plain, ours) = (p50(plain), p50(ours));
        let more = ours.saturating_sub(plain);
        let first = *small.get_or_insert(more);
        rows.push(Row {
            what: format!("the launcher alone, beyond a plain spawn, {megabytes} MB resident, p50"),
            measured: millis(more),
            anchor: format!("{} plain spawn", millis(plain)),
            must: "≤ 4.5 ms more, the same at both sizes".to_owned(),
            reached: more <= LAUNCH && more <= first + SAME,
        });
    }
    Ok(rows)
}

async fn launch(launcher: &Launcher, folder: &Path) -> Result<()> {
    let mut plan = Plan::new(vec!["/bin/true".into()]);
    plan.cwd = "/workspace".into();
    plan.view.binds.push(Bind {
        source: Source::Path(folder.to_owned()),
        place: "/workspace".into(),
        access: BindAccess::ReadWrite,
        optional: false,
    });
    let mut running = launcher.launch(plan).await?;
    ensure!(running.wait().await?.exit == Exit::Code(0), "`true` works");
    Ok(())
}

async fn shell_run() -> Result<Row> {
    bubblewrap()?;
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    let store = sqlite(folder.path())?;
    let runtime = Runtime::builder().store(store.clone(), artifacts(folder.path())?).workspace(&workspace).build()?;
    let session = runtime.create_session("bench").await?;
    let session = hold(&runtime, session).await?;
    let input = json!({"command": "true"});
    let ask = allowed(&runtime, &session, 1, "shell_run", &input).await?;
    carry_out(&session, ask).await?;
    let database = folder.path().join("portcullis.db");
    let appends = Rows::of_last_appends(&database, 2)?.into_iter().zip([Key::Frees, Key::Takes]);
    let commits: Vec<Rows> = appends.map(|(rows, key)| rows.and_key(key)).rev().collect();
    let plain = commits[0].fresh(&folder.path().join("plain.db"))?;
    let mut seq = 1_000_000;
    let (mut ours, mut wrapped, mut written) = (Vec::new(), Vec::new(), Vec::new());
    let mut a_call = 0;
    for n in 0..ROUNDS {
        let ask = allowed(&runtime, &session, 1_000 + n as u128, "shell_run", &input).await?;
        let before = store.commits();
        let begun = Instant::now();
        carry_out(&session, ask).await?;
        ours.push(begun.elapsed());
        a_call = store.commits() - before;
        let begun = Instant::now();
        let words = ["--unshare-all", "--ro-bind", "/", "/", "sh", "-c", "true"];
        let status = Command::new("bwrap").args(words).stdin(Stdio::null()).status()?;
        ensure!(status.success(), "`bwrap` works: {status}");
        wrapped.push(begun.elapsed());
        let mut span = Duration::ZERO;
        for rows in &commits {
            span += rows.commit(&plain, &mut seq)?;
        }
        written.push(span);
    }
    let (ours, wrapped, written) = (p50(ours), p50(wrapped), p50(written));
    Ok(Row {
        what: format!("`shell_run true`, full level, whole gate, p50; {a_call} commits a call"),
        measured: millis(ours),
        anchor: format!("{} bubblewrap, {} two plain commits", millis(wrapped), millis(written)),
        must: "≤ 2 × bubblewrap + its two commits".to_owned(),
        reached: ours <= wrapped * 2 + written,
    })
}

/// Debian's, for this comparison alone.
fn bubblewrap() -> Result<()> {
    let there = || Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success());
    if there() {
        return Ok(());
    }
    eprintln!("no bubblewrap; installing the Debian package for this comparison …");
    for words in [&["update", "--quiet"][..], &["install", "--yes", "--quiet", "--no-install-recommends", "bubblewrap"]]
    {
        let mut apt = Command::new("apt-get");
        apt.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
        let status = apt.status().context("bubblewrap is missing, and so is apt-get: install `bwrap`")?;
        if !status.success() {
            bail!("bubblewrap is missing and cannot be installed (apt-get {}: {status})", words[0]);
        }
    }
    ensure!(there(), "bubblewrap was installed and does not work");
    Ok(())
}
