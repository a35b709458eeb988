//! A call in the loop: from the end of the model's answer to the start of the next request, against a model that answers
//! at once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use portcullis::harness::{NoWatcher, Settings, WakeStop, Woken};
use portcullis::model::{
    Answer, AnswerPart, Call, DeltaSink, Model, ModelError, ModelName, Request, Stop, ToolSpec, Usage,
};
use portcullis::{
    AgentParts, AskAnswer, CancellationToken, Layer, PolicyBuilder, Profile, Reply, Runtime, parse_rules,
};
use portcullis_base::SystemIds;
use portcullis_store::{AskFilter, Log as _};
use portcullis_store_sqlite::SqliteStore;
use serde_json::json;
use tempfile::TempDir;

use crate::anchor::{Key, Rows};
use crate::memory::Peak;
use crate::table::{Row, millis, p50};
use crate::world::{artifacts, sqlite};

const CALLS: usize = 500;
const FEW: usize = 100;
const ASKED: usize = 400;
const FILE: usize = 4_096;
const SOURCE: [&str; 4] =
    [include_str!("turns.rs"), include_str!("run.rs"), include_str!("anchor.rs"), include_str!("table.rs")];

pub type Make = Box<dyn Fn(usize) -> (String, String) + Send + Sync>;

/// Calls the next tool at once, and knows how long it waited to be asked again.
pub struct AtOnce {
    name: ModelName,
    calls: usize,
    make: Make,
    asked: AtomicUsize,
    said: Mutex<Option<Instant>>,
    gaps: Mutex<Vec<Duration>>,
    store: Arc<SqliteStore>,
    /// Commits when it was first asked, and when it was last.
    commits: Mutex<Option<(u64, u64)>>,
}

impl AtOnce {
    pub fn new(calls: usize, make: Make, store: Arc<SqliteStore>) -> Result<Self> {
        Ok(Self {
            name: "bench/at-once".parse()?,
            calls,
            make,
            asked: AtomicUsize::new(0),
            said: Mutex::default(),
            gaps: Mutex::default(),
            store,
            commits: Mutex::default(),
        })
    }
}

#[async_trait]
impl Model for AtOnce {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn wire(&self) -> &'static str {
        "bench"
    }

    fn window(&self) -> Option<u64> {
        Some(100_000_000)
    }

    fn fits(&self, _tools: &[ToolSpec]) -> Result<(), ModelError> {
        Ok(())
    }

    async fn ask(&self, _request: &Request<'_>, _heard: DeltaSink<'_>) -> Result<Answer, ModelError> {
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = said.take() {
            self.gaps.lock().unwrap_or_else(PoisonError::into_inner).push(now - said);
        }
        let (n, now) = (self.asked.fetch_add(1, Ordering::Relaxed), self.store.commits());
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        *commits = Some((commits.map_or(now, |(first, _)| first), now));
        drop(commits);
        let (parts, stop) = if n < self.calls {
            let (name, arguments) = (self.make)(n);
            (vec![AnswerPart::Call(Call { id: format!("c{n}"), name, arguments })], Stop::ToolUse)
        } else {
            (vec![AnswerPart::Text("That is all.".to_owned())], Stop::EndTurn)
        };
        let usage = Some(Usage { input: 1_000, output: 50, ..Usage::default() });
        let answer = Answer { parts, stop, usage, warnings: Vec::new() };
        *said = Some(Instant::now());
        Ok(answer)
    }
}

/// Who lets the calls of a wake run that change something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lets {
    /// Rules allow `edit` and `touch`; of others each is asked about, and answered after its wake.
    Rules,
    /// Every call is asked about, and the answer is known.
    KnownAnswer,
}

pub struct Ran {
    pub gaps: Vec<Duration>,
    pub commits: u64,
    grown: u64,
    database: PathBuf,
    _folder: TempDir,
    store: Arc<SqliteStore>,
}

/// One wake of `calls` calls in a workspace that `prepare` filled.
async fn wake(calls: usize, prepare: impl Fn(&Path) -> Result<()>, make: Make) -> Result<Ran> {
    wake_where(Lets::Rules, calls, prepare, make).await
}

/// The same, where somebody else may let the calls run.
pub async fn wake_where(lets: Lets, calls: usize, prepare: impl Fn(&Path) -> Result<()>, make: Make) -> Result<Ran> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    prepare(&workspace)?;
    let store = sqlite(folder.path())?;
    let rules = "[[rules]]\naction = \"edit\"\npath = \"**\"\neffect = \"allow\"\n\
                 [[rules]]\naction = \"bash\"\nargv = [\"touch\"]\neffect = \"allow\"\n";
    let rules = if lets == Lets::Rules { rules } else { "" };
    let policy = PolicyBuilder::new().rules(parse_rules(rules, "bench.toml", Layer::User)?).build()?;
    let known = (lets == Lets::KnownAnswer).then(|| AskAnswer::by("bench", Reply::AllowOnce));
    let runtime = Runtime::builder()
        .answering(move |_, _| known.clone())
        .store(store.clone(), artifacts(folder.path())?)
        .workspace(&workspace)
        .profile(Profile::Code)
        .policy(policy)
        .build()?;
    let model = Arc::new(AtOnce::new(calls, make, Arc::clone(&store))?);
    let agent = runtime.agent(AgentParts {
        model: model.clone(),
        settings: Settings { max_turns_per_wake: u32::try_from(calls)? + 2, directive: false, ..Settings::default() },
        watcher: Arc::new(NoWatcher),
        entropy: Arc::new(SystemIds::new()),
        sandbox: "isolated".to_owned(),
    });
    let session = runtime.create_session("bench").await?;
    runtime.say(session, "bench", "go").await?;
    let database = folder.path().join("portcullis.db");
    let size = on_disk(&database)?;
    // A wake pauses at every ask, and goes on when it is answered.
    while let Woken::Executed(end) = agent.wake(session, &CancellationToken::new()).await?
        && matches!(end.stop, WakeStop::RequiresAction(_))
    {
        let waiting = AskFilter { session: Some(session), pending: true };
        for ask in store.asks(runtime.gate().tenant(), waiting).await? {
            runtime.reply(ask.ask_id, AskAnswer::by("bench", Reply::AllowOnce)).await?;
        }
    }
    let grown = on_disk(&database)?.saturating_sub(size);
    runtime.shutdown().await;
    let commits = model.commits.lock().unwrap_or_else(PoisonError::into_inner).map_or(0, |(first, last)| last - first);
    let gaps = std::mem::take(&mut *model.gaps.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(gaps.len() == calls, "every call was made: {} of {calls}", gaps.len());
    Ok(Ran { gaps, commits, grown, database, _folder: folder, store })
}

/// The database without what its write-ahead log holds twice.
fn on_disk(database: &Path) -> Result<u64> {
    let database = rusqlite::Connection::open(database)?;
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let pages: u64 = database.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let size: u64 = database.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    Ok(pages * size)
}

/// Plain rusqlite for the same rows, in the same run.
fn plain(ran: &Ran, appends: usize, keys: &[Key]) -> Result<Duration> {
    let _ = &ran.store;
    // The last append is the end of the wake.
    let rows = Rows::of_last_appends(&ran.database, appends + 1)?;
    let mut keys = keys.iter().copied();
    let commits: Vec<Rows> = rows
        .into_iter()
        .skip(1)
        .map(|rows| match keys.next() {
            Some(key) => rows.and_key(key),
            None => rows,
        })
        .collect();
    let first = commits.first().context("an append of the loop")?;
    let database = first.fresh(&ran.database.with_file_name("plain.db"))?;
    let mut seq = 1_000_000;
    let mut spans = Vec::new();
    for _ in 0..FEW {
        let mut span = Duration::ZERO;
        for rows in &commits {
            span += rows.commit(&database, &mut seq)?;
        }
        spans.push(span);
    }
    Ok(p50(spans))
}

pub async fn run() -> Result<Vec<Row>> {
    let mut rows = reads().await?;
    rows.push(edits().await?);
    rows.push(greps().await?);
    rows.push(commands().await?);
    rows.push(asked().await?);
    Ok(rows)
}

async fn reads() -> Result<Vec<Row>> {
    let prepare = |workspace: &Path| {
        // Pages of real source, no two alike: what is stored is packed, and noise or zeros would tell nothing.
        let source: String = SOURCE.iter().flat_map(|text| text.chars()).filter(char::is_ascii).collect();
        for n in 0..CALLS {
            let from = n * 97 % (source.len() - FILE);
            std::fs::write(workspace.join(format!("{n}.txt")), &source[from..from + FILE])?;
        }
        Ok(())
    };
    let make: Make = Box::new(|n| ("read".to_owned(), json!({"file_path": format!("{n}.txt")}).to_string()));
    let peak = Peak::begin()?;
    let ran = wake(CALLS, prepare, make).await?;
    let grown_kib = peak.grown_kib()?;
    let written = plain(&ran, 1, &[])?;
    let all = p50(ran.gaps.clone());
    let beyond = all.saturating_sub(written);
    let quarter = CALLS / 4;
    let (first, last) = (p50(ran.gaps[..quarter].to_vec()), p50(ran.gaps[CALLS - quarter..].to_vec()));
    let growth = last.as_secs_f64() / first.as_secs_f64();
    let per_read = ran.grown as f64 / CALLS as f64 - FILE as f64;
    Ok(vec![
        Row {
            what: "`read` of 4 KiB in the loop: answer to next request, beyond its commit, p50".to_owned(),
            measured: millis(beyond),
            anchor: format!("{} in all, {} one plain commit", millis(all), millis(written)),
            must: "≤ 1 ms".to_owned(),
            reached: beyond <= Duration::from_millis(1),
        },
        Row {
            what: format!("commits from the first request of a wake with {CALLS} reads to its last"),
            measured: format!("{}", ran.commits),
            anchor: "–".to_owned(),
            must: "one a read".to_owned(),
            reached: ran.commits == CALLS as u64,
        },
        Row {
            what: "growth: the last quarter of 500 calls against the first, p50".to_owned(),
            measured: format!("{growth:.2} ×"),
            anchor: format!("{} then {}", millis(first), millis(last)),
            must: "≤ 1.2 ×".to_owned(),
            reached: growth <= 1.2,
        },
        Row {
            what: "growth of peak memory by a 500-call run".to_owned(),
            measured: format!("{:.1} MiB", grown_kib as f64 / 1024.0),
            anchor: "–".to_owned(),
            must: "≤ 50 MB".to_owned(),
            reached: grown_kib < 50_000,
        },
        Row {
            what: "growth of the database by a read, beyond its 4 KiB".to_owned(),
            measured: format!("{:.1} KiB", per_read / 1024.0),
            anchor: "–".to_owned(),
            must: "≤ 4 KiB".to_owned(),
            reached: per_read <= 4096.0,
        },
    ])
}

/// A wake that reads a file and then edits it, line by line.
pub async fn wake_of_edits(lets: Lets) -> Result<Ran> {
    let prepare = |workspace: &Path| {
        let lines: String = (0..FEW).map(|n| format!("line {n:03} of the file, as long as forty bytes\n")).collect();
        Ok(std::fs::write(workspace.join("f.txt"), lines)?)
    };
    let make: Make = Box::new(|n| match n {
        0 => ("read".to_owned(), json!({"file_path": "f.txt"}).to_string()),
        n => {
            let (old, new) = (format!("line {n:03} of"), format!("LINE {n:03} of"));
            ("edit".to_owned(), json!({"file_path": "f.txt", "old_string": old, "new_string": new}).to_string())
        }
    });
    wake_where(lets, FEW, prepare, make).await
}

/// A wake that runs commands which change something.
pub async fn wake_of_commands(lets: Lets) -> Result<Ran> {
    let make: Make = Box::new(|n| ("bash".to_owned(), json!({"command": format!("touch made{n}")}).to_string()));
    wake_where(lets, FEW, |_| Ok(()), make).await
}

async fn edits() -> Result<Row> {
    let ran = wake_of_edits(Lets::Rules).await?;
    let written = plain(&ran, 2, &[Key::Frees, Key::Takes])?;
    let all = p50(ran.gaps[1..].to_vec());
    let beyond = all.saturating_sub(written);
    Ok(Row {
        what: "`edit` of a 4 KiB file in the loop, beyond its two commits, p50".to_owned(),
        measured: millis(beyond),
        anchor: format!("{} in all, {} two plain commits; {} commits", millis(all), millis(written), ran.commits),
        must: "≤ 2 ms".to_owned(),
        reached: beyond <= Duration::from_millis(2),
    })
}

async fn greps() -> Result<Row> {
    let prepare = |workspace: &Path| {
        for n in 0..2_000 {
            let folder = workspace.join(format!("d{}", n % 20));
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(format!("{n}.txt")), format!("small file {n}\nwith three\nlines\n"))?;
        }
        Ok(())
    };
    let make: Make = Box::new(|n| ("grep".to_owned(), json!({"pattern": format!("nowhere{n}x")}).to_string()));
    let ran = wake(FEW, prepare, make).await?;
    let written = plain(&ran, 1, &[])?;
    let workspace = ran.database.with_file_name("workspace");
    let mut spans = Vec::new();
    for n in 0..FEW {
        let begun = Instant::now();
        let ended = Command::new("rg").arg(format!("nowhere{n}x")).arg(&workspace).output().context("rg is needed")?;
        spans.push(begun.elapsed());
        ensure!(ended.status.code() == Some(1), "rg finds nothing either");
    }
    let (all, rg) = (p50(ran.gaps.clone()), p50(spans));
    let beyond = all.saturating_sub(written);
    Ok(Row {
        what: "`grep` over 2,000 small files in the loop, beyond its commit, p50".to_owned(),
        measured: millis(beyond),
        anchor: format!("{} `rg` of the same", millis(rg)),
        must: "≤ 1.1 × `rg`".to_owned(),
        reached: beyond.as_secs_f64() <= 1.1 * rg.as_secs_f64(),
    })
}

async fn commands() -> Result<Row> {
    let ran = wake_of_commands(Lets::Rules).await?;
    let written = plain(&ran, 2, &[Key::Frees, Key::Takes])?;
    let all = p50(ran.gaps.clone());
    let beyond = all.saturating_sub(written);
    Ok(Row {
        what: "a sandboxed `bash` command in the loop, beyond its two commits, p50".to_owned(),
        measured: millis(beyond),
        anchor: format!("{} in all, {} two plain commits; {} commits", millis(all), millis(written), ran.commits),
        must: "≤ 6.5 ms".to_owned(),
        reached: beyond <= Duration::from_micros(6_500),
    })
}

/// Each call is a wake of its own: what a wake costs must not grow with the log.
async fn asked() -> Result<Row> {
    let prepare = |workspace: &Path| Ok(std::fs::write(workspace.join("f.txt"), "one\n")?);
    let make: Make =
        Box::new(|n| ("write".to_owned(), json!({"file_path": format!("{n}.txt"), "content": "x\n"}).to_string()));
    let ran = wake(ASKED, prepare, make).await?;
    let quarter = ASKED / 4;
    let (first, last) = (p50(ran.gaps[..quarter].to_vec()), p50(ran.gaps[ASKED - quarter..].to_vec()));
    let growth = last.as_secs_f64() / first.as_secs_f64();
    Ok(Row {
        what: format!(
            "growth where each of {ASKED} calls asks and is answered at once, last quarter against first, p50"
        ),
        measured: format!("{growth:.2} ×"),
        anchor: format!("{} then {}, answers included", millis(first), millis(last)),
        must: "≤ 1.2 ×".to_owned(),
        reached: growth <= 1.2,
    })
}
