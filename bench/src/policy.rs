//! A decision among a thousand rules, and a backtest of as many over recorded intents by the real binary.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use portcullis::{Runtime, SessionId};
use portcullis_base::{MessageId, Risk, Timestamp};
use portcullis_contract::{AccessRequest, Action, DefaultPolicy, Resource};
use portcullis_pipeline::{Append, Proposal};
use portcullis_policy::{Asker, Layer, PolicyBuilder, parse_rules};

use crate::table::{Row, micros, p50};
use crate::world::{artifacts, hold, nothing, sqlite};

const RULES: usize = 1_000;
const DECISIONS: usize = 10_000;
const SESSIONS: u128 = 8;
const CALLS: u128 = 5_000;

/// Rules of every kind that people write, none of which allows everything.
fn rules() -> String {
    let resources = [
        "path = \"src/d#/**\"",
        "path = \"**/name#.rs\"",
        "path = \"d#/f.txt\"",
        "path = \"d*#/*x\"",
        "argv = [\"git\", \"c#\"]",
        "host = \"*.h#.example.com\"",
        "mcp_tool = \"t#\"",
    ];
    let effects = ["allow", "ask", "deny", "ask_pinned"];
    let rule = |i: usize| {
        let resource = resources[i % resources.len()].replace('#', &i.to_string());
        format!("[[rules]]\naction = \"a{}\"\n{resource}\neffect = \"{}\"\n", i % 5, effects[i % effects.len()])
    };
    (0..RULES).map(rule).collect()
}

pub async fn run() -> Result<Vec<Row>> {
    Ok(vec![decision()?, command_lines()?, backtest().await?])
}

fn decision() -> Result<Row> {
    let policy = PolicyBuilder::new().rules(parse_rules(&rules(), "rules.toml", Layer::User)?).build()?;
    let words = ["git".to_owned(), "c4".to_owned()];
    let requests = [
        Resource::path("/workspace/src/d7/deep/er/name8.rs", ""),
        Resource::path("/workspace/d2/f.txt", ""),
        Resource::argv(&words, ""),
        Resource::path("/workspace/nothing/speaks/of/this.txt", ""),
    ]
    .map(|resource| [AccessRequest::new(Action::new("a3"), resource, [Risk::Write].into())]);
    let now = Timestamp::from_micros(1);
    let asker = Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Ask, grants: &[] };
    let mut worst = Duration::ZERO;
    for request in &requests {
        let mut samples = Vec::with_capacity(DECISIONS);
        for _ in 0..DECISIONS {
            let begun = Instant::now();
            std::hint::black_box(policy.decide(request, &asker));
            samples.push(begun.elapsed());
        }
        worst = worst.max(p50(samples));
    }
    Ok(Row {
        what: "a decision with 1,000 rules, p50 of the slowest of four requests".to_owned(),
        measured: micros(worst),
        anchor: "–".to_owned(),
        must: "≤ 50 µs".to_owned(),
        reached: worst <= Duration::from_micros(50),
    })
}

/// Parsing a line twice, as the gate does: for its rules, and whether it only reads.
fn command_lines() -> Result<Row> {
    let lines = [
        "git status",
        "cargo test -p portcullis-policy --test laws",
        "grep -rn --include='*.rs' 'fn main' src | sort | uniq -c | head -n 20",
        "cd src && ls -la *.rs 2>/dev/null || echo 'no such file'",
        "timeout 60 bash -lc 'npm test && npm run lint' > log.txt 2>&1",
    ];
    let mut samples = Vec::with_capacity(DECISIONS * lines.len());
    let mut slowest = Duration::ZERO;
    for line in lines {
        let mut own = Vec::with_capacity(DECISIONS);
        for _ in 0..DECISIONS {
            let begun = Instant::now();
            std::hint::black_box(portcullis_command::analyse(line));
            std::hint::black_box(portcullis_command::read_only(line).is_ok());
            own.push(begun.elapsed());
        }
        slowest = slowest.max(p50(own.clone()));
        samples.extend(own);
    }
    let middle = p50(samples);
    Ok(Row {
        what: "parsing and classifying a command line, p50 over five lines (of the slowest one)".to_owned(),
        measured: format!("{} ({})", micros(middle), micros(slowest)),
        anchor: "–".to_owned(),
        must: "≤ 30 µs".to_owned(),
        reached: middle <= Duration::from_micros(30),
    })
}

async fn backtest() -> Result<Row> {
    let home = tempfile::tempdir()?;
    let store = sqlite(home.path())?;
    let runtime = Runtime::builder().store(store, artifacts(home.path())?).tool("nothing", nothing()?)?.build()?;
    for _ in 0..SESSIONS {
        let session = runtime.create_session("bench").await?;
        record(&runtime, session).await?;
    }
    runtime.shutdown().await;
    let file = home.path().join("rules.toml");
    std::fs::write(&file, rules())?;
    let binary = std::env::current_exe()?.with_file_name("portcullis");
    let mut best = f64::MIN;
    for _ in 0..3 {
        let begun = Instant::now();
        let ran = Command::new(&binary)
            .args(["policy", "backtest"])
            .arg(&file)
            .env("PORTCULLIS_HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path())
            .output()
            .with_context(|| format!("{} is missing: cargo build --release", binary.display()))?;
        let took = begun.elapsed();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let total = SESSIONS * CALLS;
        ensure!(ran.status.success() && said.contains(&format!("{total} intents")), "{said}{:?}", ran.stderr);
        best = best.max(total as f64 / took.as_secs_f64());
    }
    Ok(Row {
        what: format!(
            "backtest of 1,000 rules over {} recorded intents, the binary's start included",
            SESSIONS * CALLS
        ),
        measured: format!("{best:.0} intents/s"),
        anchor: "–".to_owned(),
        must: "≥ 50,000 intents/s".to_owned(),
        reached: best >= 50_000.0,
    })
}

/// Many calls in few appends: what is measured is reading them.
async fn record(runtime: &Runtime, session: SessionId) -> Result<()> {
    let session = hold(runtime, session).await?;
    let mut facts = Append::new();
    let turn = session.begin_turn(&mut facts);
    for n in 0..CALLS {
        let proposal = Proposal {
            actor: portcullis::Actor::agent("bench"),
            message_id: MessageId::from_u128(n),
            call_id: "c".to_owned(),
            tool: "nothing".to_owned(),
            input: r#"{"text":"x"}"#.to_owned(),
            stated_reason: None,
        };
        (facts, _) = session.admit(facts, &turn, proposal).settled().await?;
    }
    session.commit(facts).await?;
    session.release().await?;
    Ok(())
}
