//! One boundary for every tool (tool-contract §17): what fits is untouched, what does not is kept whole and shown in
//! part, and what cannot be kept is never a success.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    Note, Process, World, acting, acts, call_in, call_on, fresh_message, happened, observed, proposal, touches, turn_of,
};
use portcullis_base::limits::{ARTIFACT_INLINE_MAX, MAX_MODEL_BYTES, MAX_MODEL_LINES, MAX_TURN_BYTES, MIN_TURN_SHARE};
use portcullis_base::{
    ArtifactKind, ArtifactRef, Code, Digest, FileFact, LineRange, Phase, SideEffectState, TenantId, Timestamp, Window,
    canonical_json, limits,
};
use portcullis_contract::{Content, Semantics, SpoolRef, Strategy, Timeout, Tool, ToolContext, ToolFailure};
use portcullis_event::{ContentFormat, Observed};
use portcullis_store::{ArtifactWriter, Artifacts, LocalArtifacts, MemoryArtifacts, StoredBlob};

const INPUT: &str = r#"{"text":"x"}"#;

/// `n` bytes of lines, every line its own.
fn lines_of(n: usize) -> String {
    let mut text = String::with_capacity(n + 64);
    let mut line = 0;
    while text.len() < n {
        line += 1;
        text.push_str(&format!("line {line} says something of its own, é\n"));
    }
    text.truncate(text.floor_char_boundary(n));
    text
}

fn shown(seen: &Observed) -> String {
    seen.content.iter().filter_map(|part| part.text.as_deref()).collect()
}

fn count_lines(text: &str) -> usize {
    text.lines().count()
}

fn looks() -> Semantics {
    Semantics { default_policy: portcullis_contract::DefaultPolicy::Allow, ..Semantics::read_only() }
}

/// A tool that says `text`, by its default projection.
fn says(semantics: Semantics, text: String) -> Tool {
    let text = Arc::new(text);
    let run = move |_: Note, _: ToolContext| {
        let text = Arc::clone(&text);
        async move { Ok((*text).clone()) }
    };
    acting(semantics, run).build().expect("a sound tool")
}

/// A tool that writes `bytes` to a stream and names it.
fn streams(semantics: Semantics, bytes: Vec<u8>) -> Tool {
    let bytes = Arc::new(bytes);
    Tool::builder::<Note, SpoolRef>("Streams.")
        .semantics(semantics)
        .plan_access(|input, _| vec![touches(&input.text)])
        .execute(move |_, context| {
            let bytes = Arc::clone(&bytes);
            async move {
                let mut spool = context.spool("stdout");
                for chunk in bytes.chunks(4_096) {
                    spool.write(chunk).map_err(|e| ToolFailure::new("spool", e.to_string()))?;
                }
                Ok(spool.finish())
            }
        })
        .to_model(|_, output| vec![Content::Spool(serde_json::from_value(output.clone()).expect("a spool"))])
        .build()
        .expect("a sound tool")
}

async fn call(world: &World, tool: Tool) -> (Process, Observed) {
    let process = world.process([("t", tool)]);
    let seen = process.call_raw("t", INPUT).await;
    let seen = observed(&seen).clone();
    (process, seen)
}

/// The bytes behind an artifact, as the session itself would read them.
async fn bytes_of(process: &Process, artifact: &ArtifactRef) -> Vec<u8> {
    let (row, window) = process.gate.shelf().open(artifact.id, Some(process.session)).await.expect("it is there");
    assert_eq!(&row, artifact, "the event and the row tell the same");
    let bytes = window.slice(0, window.len()).expect("read");
    assert_eq!(bytes.len() as u64, artifact.bytes);
    assert_eq!(Digest::of(&bytes), artifact.sha256, "L50: the hash matches");
    bytes
}

fn assert_bounded(seen: &Observed, label: &str) {
    let text = shown(seen);
    assert!(text.len() <= MAX_MODEL_BYTES, "{label}: {} bytes", text.len());
    assert!(count_lines(&text) <= MAX_MODEL_LINES, "{label}: {} lines", count_lines(&text));
}

#[tokio::test]
async fn l48_l49_l50_every_size_by_every_way() {
    let texts: Vec<(&str, String)> = vec![
        ("nothing", String::new()),
        ("a letter", "x".to_owned()),
        ("just within bytes", lines_of(MAX_MODEL_BYTES)),
        ("just beyond bytes", lines_of(MAX_MODEL_BYTES + 1)),
        ("just within lines", "\n".repeat(MAX_MODEL_LINES)),
        ("just beyond lines", "\n".repeat(MAX_MODEL_LINES + 1)),
        ("beyond inline", lines_of(ARTIFACT_INLINE_MAX + 1)),
        ("one long line", "é".repeat(200_000)),
        ("5 MB", lines_of(5_000_000)),
    ];
    for (label, text) in texts {
        let fits = text.len() <= MAX_MODEL_BYTES && count_lines(&text) <= MAX_MODEL_LINES;
        let spoken = says(looks(), text.clone());
        let streamed = streams(looks(), text.clone().into_bytes());
        for (way, tool) in [("said", spoken), ("streamed", streamed)] {
            let label = format!("{label}, {way}");
            let world = World::new().await;
            let (process, seen) = call(&world, tool).await;
            assert!(seen.ok, "{label}: {seen:?}");
            assert_bounded(&seen, &label);
            assert_eq!(seen.truncated, !fits, "{label}");
            if fits {
                assert_eq!(shown(&seen), text, "{label}: L49: unchanged");
                assert!(seen.artifacts.is_empty(), "{label}: L49: nothing is kept twice");
                continue;
            }
            // A long text is a long structured value too, with an artifact of its own.
            let channels: Vec<&ArtifactRef> =
                seen.artifacts.iter().filter(|a| a.kind == ArtifactKind::CommandOutput).collect();
            let [artifact] = channels.as_slice() else { panic!("{label}: {:?}", seen.artifacts) };
            assert!(artifact.complete && seen.retained, "{label}");
            assert_eq!(bytes_of(&process, artifact).await, text.as_bytes(), "{label}: L50");
            assert_eq!(artifact.lines, Some(count_lines(&text) as u64), "{label}");
            assert_eq!(seen.total_bytes, text.len() as u64, "{label}");
            assert!(seen.omitted_bytes > 0 && seen.omitted_bytes < seen.total_bytes, "{label}");
            assert!(shown(&seen).contains(&artifact.id.to_string()), "{label}: it says where the rest is");
            let hint = seen.suggested_next_tool.as_ref().expect("a way to the rest");
            assert_eq!(hint["inputHint"]["id"], serde_json::json!(artifact.id), "{label}");
        }
    }
}

#[tokio::test]
async fn l48_the_turn_has_a_limit_of_its_own_and_each_call_still_gets_a_little() {
    let rows = |n: usize| -> Vec<String> { lines_of(n).lines().map(str::to_owned).collect() };
    let structured = Tool::builder::<Note, Vec<String>>("Gives rows.")
        .semantics(looks())
        .execute(move |_, _| async move { Ok(rows(45_000)) })
        .build()
        .expect("a sound tool");
    for (label, tool) in [("text", says(looks(), lines_of(60_000))), ("structured", structured)] {
        let world = World::new().await;
        let process = world.process([("t", tool)]);
        let session = process.open().await;
        let turn = turn_of(&session).await;
        let mut spent = 0usize;
        for n in 0..12 {
            let seen = call_on(&session, &turn, proposal("c", fresh_message(), "t", INPUT)).await.expect("no halt");
            let seen = observed(&seen);
            let channel = seen.structured.as_ref().filter(|_| seen.structured_is_channel);
            let structured = channel.map_or(0, |v| canonical_json(v).expect("json").len());
            let used = shown(seen).len() + structured;
            let share = MAX_TURN_BYTES.saturating_sub(spent).clamp(MIN_TURN_SHARE, MAX_MODEL_BYTES);
            assert!(seen.ok, "{label} {n}");
            assert!(used <= share, "{label}: call {n} used {used} of {share}");
            assert!(used > MIN_TURN_SHARE / 2, "{label}: call {n} is not starved ({used})");
            spent += used;
        }
        assert!(spent <= MAX_TURN_BYTES + 8 * MIN_TURN_SHARE, "{label}: {spent} in all");
        // The next turn starts afresh.
        let (seen, _) = call_in(&session, "t", INPUT).await.expect("no halt");
        let whole = shown(observed(&seen)).len() > 40_000 || observed(&seen).structured_is_channel;
        assert!(whole, "{label}");
    }
}

#[tokio::test]
async fn l48_a_tool_may_lower_its_own_limit_only() {
    let world = World::new().await;
    let small = Semantics { max_result: Some(1_000), ..looks() };
    let (_, seen) = call(&world, says(small, lines_of(5_000))).await;
    assert!(seen.truncated && shown(&seen).len() <= 1_000);
    let world = World::new().await;
    let large = Semantics { max_result: Some(10_000_000), ..looks() };
    let (_, seen) = call(&world, says(large, lines_of(100_000))).await;
    assert_bounded(&seen, "a tool that wants more");
    assert!(seen.truncated);
}

#[tokio::test]
async fn l48_titles_summaries_and_warnings_are_bounded_too() {
    let run = |_: Note, context: ToolContext| async move {
        for n in 0..500 {
            context.warn(format!("{n} {}", "w".repeat(20_000)));
        }
        Ok("short".to_owned())
    };
    let tool = acting(acts(), run)
        .to_user(|_, _| portcullis_contract::UserText { title: "t".repeat(100_000), summary: "s".repeat(6 << 20) })
        .build()
        .expect("a sound tool");
    let world = World::new().await;
    let (_, seen) = call(&world, tool).await;
    assert!(seen.ok);
    let view = seen.model_view().to_string();
    assert!(view.len() <= MAX_MODEL_BYTES, "the model is shown {} bytes", view.len());
}

#[tokio::test]
async fn l03_an_error_about_a_long_value_is_a_sentence() {
    let world = World::new().await;
    let process = world.process([("t", says(acts(), String::new()))]);
    let long = format!(r#"{{"text":["{}"],"more":"{}"}}"#, "x".repeat(400_000), "y".repeat(400_000));
    let seen = process.call_raw("t", &long).await;
    let seen = observed(&seen);
    assert_eq!(seen.code.known(), Some(Code::SchemaInvalid));
    assert!(seen.model_view().to_string().len() < 10_000, "nobody is told his own words again");
    assert!(seen.errors.iter().any(|e| e.path == "/text" && e.rule == "type"), "{:?}", seen.errors);
}

#[tokio::test]
async fn l50_several_parts_are_one_channel() {
    let (first, second) = (lines_of(30_000), "no newline at the end".to_owned());
    let stream = lines_of(40_000);
    let expected = format!("{first}{second}\n{stream}");
    let (a, b, c) = (first, second, Arc::new(stream));
    let tool = Tool::builder::<Note, SpoolRef>("Says much.")
        .semantics(looks())
        .execute(move |_, context| {
            let stream = Arc::clone(&c);
            async move {
                let mut spool = context.spool("stderr");
                spool.write(stream.as_bytes()).expect("room");
                Ok(spool.finish())
            }
        })
        .to_model(move |_, output| {
            let spool = serde_json::from_value(output.clone()).expect("a spool");
            vec![Content::text(a.clone()), Content::text(b.clone()), Content::Spool(spool)]
        })
        .build()
        .expect("a sound tool");
    let world = World::new().await;
    let (process, seen) = call(&world, tool).await;
    assert_bounded(&seen, "parts");
    assert!(seen.truncated);
    assert_eq!(String::from_utf8_lossy(&bytes_of(&process, &seen.artifacts[0]).await), expected);
    assert_eq!(seen.content[0].source, "output+output+stderr");
}

#[tokio::test]
async fn l50_streams_that_are_not_text_are_kept_byte_for_byte() {
    let bytes: Vec<u8> = (0..200_000u32).map(|n| (n * 7 % 256) as u8).collect();
    let world = World::new().await;
    let (process, seen) = call(&world, streams(looks(), bytes.clone())).await;
    assert!(seen.ok && seen.truncated);
    assert_bounded(&seen, "bytes");
    assert_eq!(bytes_of(&process, &seen.artifacts[0]).await, bytes);
    // A short one is shown, with what is not text replaced.
    let (_, seen) = call(&world, streams(looks(), vec![b'a', 0xff, b'b'])).await;
    assert_eq!(shown(&seen), "a\u{fffd}b");
    // Replacement makes it longer: the limit is of what is shown.
    let (_, seen) = call(&world, streams(looks(), vec![0xff; MAX_MODEL_BYTES / 2])).await;
    assert_bounded(&seen, "replaced");
    assert!(seen.truncated);
}

#[tokio::test]
async fn l50_small_evidence_rides_in_the_append_and_large_evidence_is_an_object() {
    let world = World::new().await;
    for (n, inline) in [(ARTIFACT_INLINE_MAX, true), (ARTIFACT_INLINE_MAX + 1, false)] {
        for tool in [says(looks(), lines_of(n)), streams(looks(), lines_of(n).into_bytes())] {
            let (_, seen) = call(&world, tool).await;
            let sha256 = seen.artifacts[0].sha256;
            let row = world.store.blob(world.key().tenant, sha256).await.expect("read");
            assert_eq!(row.is_some(), inline, "{n}");
            assert_eq!(world.artifacts.open(world.key().tenant, sha256).is_ok(), !inline, "{n}");
        }
    }
}

#[tokio::test]
async fn l50_a_large_structured_value_leaves_the_event_and_the_model_sees_a_preview_of_it() {
    let rows: Vec<String> = lines_of(limits::STRUCTURED_INLINE_MAX + 10_000).lines().map(str::to_owned).collect();
    let value = serde_json::json!(rows);
    let given = rows.clone();
    let silent = Tool::builder::<Note, Vec<String>>("Gives rows.")
        .semantics(looks())
        .execute(move |_, _| {
            let given = given.clone();
            async move { Ok(given) }
        })
        .build()
        .expect("a sound tool");
    let world = World::new().await;
    let (process, seen) = call(&world, silent).await;
    assert!(seen.ok);
    let id = seen.structured.as_ref().and_then(|v| v["$artifact"].as_str()).expect("named instead").to_owned();
    let named = seen.artifacts.iter().find(|a| a.id.to_string() == id).expect("listed");
    assert_eq!(named.kind, ArtifactKind::Structured);
    let kept: serde_json::Value = serde_json::from_slice(&bytes_of(&process, named).await).expect("json");
    assert_eq!(kept, value);
    assert!(seen.truncated && !seen.structured_is_channel, "R9: it was the channel, so a part of it is shown");
    assert_bounded(&seen, "structured");
    assert!(shown(&seen).contains("line 1 says"), "{}", &shown(&seen)[..200]);
    let canonical = canonical_json(&value).expect("json");
    assert_eq!(seen.total_bytes, canonical.len() as u64);
    let payloads: usize = world.events().await.iter().filter_map(|e| e.payload.as_deref()).map(str::len).sum();
    assert!(payloads < 150_000, "the log stays scannable: {payloads}");
}

#[tokio::test]
async fn l54_structured_output_side_effects_and_behaviour_are_equal_for_all_limits() {
    let make = |max_result: Option<usize>| {
        let run = |input: Note, context: ToolContext| async move {
            context.did(happened("a"));
            let _ = context.keep(ArtifactKind::File, "text/plain", vec![b'e'; 65_000]);
            Ok(format!("{} {}", input.text, lines_of(3_000)))
        };
        acting(Semantics { max_result, ..acts() }, run).build().expect("a sound tool")
    };
    let (tiny, large) = (World::new().await, World::new().await);
    let (_, small) = call(&tiny, make(Some(100))).await;
    let (_, whole) = call(&large, make(None)).await;
    assert!(small.truncated && !whole.truncated);
    assert_eq!(small.structured, whole.structured);
    assert_eq!(small.side_effects, whole.side_effects);
    assert_eq!((small.ok, small.code.clone()), (whole.ok, whole.code.clone()));
    // Also where there is room to start and none for the output.
    let mut tight = World::new().await;
    tight.quota = 65_536;
    let (_, kept) = call(&tight, make(Some(100))).await;
    assert_eq!(kept.code.known(), Some(Code::RetentionFailed));
    assert_eq!(kept.structured, whole.structured);
    assert_eq!(kept.side_effects, whole.side_effects);
}

#[tokio::test]
async fn l54_no_host_path_reaches_a_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new().await;
    let entropy = Arc::clone(&world.ids) as _;
    world.artifacts = Arc::new(LocalArtifacts::open(&folder.path().join("artifacts"), entropy).expect("artifacts"));
    let (_, seen) = call(&world, says(looks(), lines_of(300_000))).await;
    assert!(seen.ok && seen.truncated);
    let host = folder.path().to_str().expect("text");
    assert!(!seen.model_view().to_string().contains(host));
    // Not even if it cannot be written, when the system's own words name it.
    std::fs::remove_dir_all(folder.path()).expect("removed");
    let (_, seen) = call(&world, says(looks(), lines_of(300_000))).await;
    assert_eq!(seen.code.known(), Some(Code::RetentionFailed));
    assert!(!seen.model_view().to_string().contains(host), "{}", seen.summary);
}

// --- L53, L57 --------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq)]
enum Breaks {
    Begin,
    Write,
    Finish,
}

/// A disk that is full at one of three moments.
struct FullDisk(Breaks);

fn full<T>() -> io::Result<T> {
    Err(io::Error::other("no space left on device"))
}

impl Artifacts for FullDisk {
    fn begin(&self, tenant: TenantId) -> io::Result<Box<dyn ArtifactWriter>> {
        match self.0 {
            Breaks::Begin => full(),
            breaks => Ok(Box::new(FullWriter(breaks, MemoryArtifacts::default().begin(tenant)?))),
        }
    }

    fn open(&self, _: TenantId, _: Digest) -> io::Result<Arc<dyn Window>> {
        full()
    }
}

struct FullWriter(Breaks, Box<dyn ArtifactWriter>);

impl ArtifactWriter for FullWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0 == Breaks::Write { full() } else { self.1.write(bytes) }
    }

    fn window(&self) -> io::Result<Arc<dyn Window>> {
        self.1.window()
    }

    fn finish(self: Box<Self>) -> io::Result<StoredBlob> {
        full()
    }
}

fn assert_not_kept(seen: &Observed, label: &str) {
    assert_eq!((seen.phase.known(), seen.code.known()), (Some(Phase::Bound), Some(Code::RetentionFailed)), "{label}");
    assert!(!seen.ok && !seen.retained && seen.truncated, "{label}");
    assert_eq!(seen.retryable, seen.side_effects.state == SideEffectState::None, "{label}");
    assert_bounded(seen, label);
    assert!(!shown(seen).contains("art_"), "{label}: nothing is named that is not there");
    assert_eq!(seen.suggested_next_tool, None, "{label}");
}

#[tokio::test]
async fn l53_no_lossy_success_whenever_the_disk_fails() {
    for breaks in [Breaks::Begin, Breaks::Write, Breaks::Finish] {
        let mut world = World::new().await;
        world.artifacts = Arc::new(FullDisk(breaks));
        let acted = |_: Note, context: ToolContext| async move {
            context.did(happened("done"));
            Ok(lines_of(300_000))
        };
        for (label, tool, effects) in [
            ("said", says(looks(), lines_of(300_000)), SideEffectState::None),
            ("streamed", streams(looks(), lines_of(300_000).into_bytes()), SideEffectState::None),
            ("acted", acting(acts(), acted).build().expect("a sound tool"), SideEffectState::Occurred),
        ] {
            let (_, seen) = call(&world, tool).await;
            assert_not_kept(&seen, label);
            assert_eq!(seen.side_effects.state, effects, "{label}");
            assert!(seen.summary.contains("no space left"), "{label}: {}", seen.summary);
            if label != "streamed" {
                assert!(shown(&seen).contains("line 1 says"), "{label}: R2: a bounded preview all the same");
            }
        }
        // What fits needs no artifact and is a success on the fullest disk.
        let (_, seen) = call(&world, says(looks(), lines_of(10_000))).await;
        assert!(seen.ok);
    }
}

#[tokio::test]
async fn l53_evidence_a_tool_hands_over_is_kept_or_the_call_is_no_success() {
    let run = |_: Note, context: ToolContext| async move {
        let _ = context.keep(ArtifactKind::Diff, "text/x-diff", vec![b'd'; 100_000]);
        context.did(happened("done"));
        Ok("fine".to_owned())
    };
    let tool = acting(acts(), run).build().expect("a sound tool");
    let mut world = World::new().await;
    let (process, seen) = call(&world, tool.clone()).await;
    assert!(seen.ok);
    assert_eq!(bytes_of(&process, &seen.artifacts[0]).await, vec![b'd'; 100_000]);
    drop(process);
    world.artifacts = Arc::new(FullDisk(Breaks::Finish));
    let (_, seen) = call(&world, tool).await;
    assert_not_kept(&seen, "a diff");
    assert_eq!(seen.side_effects.state, SideEffectState::Occurred);
}

#[tokio::test]
async fn l57_the_quota_holds_and_says_what_to_do() {
    let mut world = World::new().await;
    world.quota = 200_000;
    let process = world.process([("t", says(looks(), lines_of(60_000))), ("u", says(looks(), lines_of(90_000)))]);
    let mut kept = 0;
    for tool in ["t", "t", "u", "u", "u"] {
        let seen = process.call_raw(tool, INPUT).await;
        let seen = observed(&seen);
        let usage = world.store.artifact_usage(world.key().tenant).await.expect("usage");
        assert!(usage <= world.quota, "{usage}");
        if seen.ok {
            kept += 1;
        } else {
            assert_not_kept(seen, tool);
            for word in ["200000", "the quota is raised"] {
                assert!(seen.summary.contains(word), "{}", seen.summary);
            }
        }
    }
    assert!((1..5).contains(&kept), "some fit, not all: {kept}");
    // Another process asks the store, not its own memory.
    let later = world.process([("u", says(looks(), lines_of(150_000)))]);
    assert_not_kept(observed(&later.call_raw("u", INPUT).await), "later");
}

// --- L55, L56, L62 ---------------------------------------------------------------------------------

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks_exact(3) {
        let n = u32::from(chunk[0]) << 16 | u32::from(chunk[1]) << 8 | u32::from(chunk[2]);
        out.extend([18, 12, 6, 0].map(|shift| char::from(ALPHABET[(n >> shift & 63) as usize])));
    }
    out
}

#[tokio::test]
async fn l55_media_is_kept_as_it_is_and_never_as_text() {
    for size in [3_000usize, 300_000] {
        let picture: Vec<u8> = (0..size).map(|n| (n * n % 251) as u8).collect();
        let given = picture.clone();
        let tool = Tool::builder::<Note, String>("Shows a picture.")
            .semantics(looks())
            .execute(move |_, context| {
                let given = given.clone();
                async move { Ok(context.keep(ArtifactKind::Media, "image/png", given)?.to_string()) }
            })
            .to_model(|_, output| {
                let artifact = serde_json::from_value(output.clone()).expect("an id");
                let media = Content::Media { mime: "image/png".to_owned(), artifact, name: "a picture".to_owned() };
                vec![Content::text("here it is"), media]
            })
            .build()
            .expect("a sound tool");
        let world = World::new().await;
        let (process, seen) = call(&world, tool).await;
        assert!(seen.ok && !seen.truncated, "media is not counted as text");
        assert_eq!(shown(&seen), "here it is");
        let part = seen.content.iter().find(|part| part.format == ContentFormat::Image).expect("a picture");
        let artifact = part.artifact.as_ref().expect("its bytes are named");
        assert_eq!(bytes_of(&process, artifact).await, picture);
        for start in [0, 999, 1_500] {
            let piece = base64(&picture[start..start + 30]);
            for event in world.events().await {
                assert!(!event.payload.as_deref().unwrap_or_default().contains(&piece), "no base64 in {}", event.kind);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn l56_a_producer_that_wrote_more_than_is_kept_is_said_to_be_incomplete_everywhere() {
    let chunk = {
        let mut chunk = "a line of a long, long stream\n".repeat((1 << 20) / 30);
        chunk.push_str(&"x".repeat((1 << 20) - chunk.len()));
        Arc::new(chunk)
    };
    let timeout = Timeout { default_ms: 600_000, max_ms: 600_000 };
    let tool = Tool::builder::<Note, SpoolRef>("Streams.")
        .semantics(Semantics { timeout, truncation: Strategy::Head, ..looks() })
        .execute(move |_, context| {
            let chunk = Arc::clone(&chunk);
            async move {
                let mut spool = context.spool("stdout");
                for _ in 0..66 {
                    spool.write(chunk.as_bytes()).expect("drained, not killed");
                }
                Ok(spool.finish())
            }
        })
        .to_model(|_, output| vec![Content::Spool(serde_json::from_value(output.clone()).expect("a spool"))])
        .build()
        .expect("a sound tool");
    let world = World::new().await;
    let process = world.process([("t", tool)]);
    let seen = tokio::time::timeout(Duration::from_secs(3_600), process.call_raw("t", INPUT)).await.expect("it ends");
    let seen = observed(&seen);
    assert!(seen.ok, "{}", seen.summary);
    let [capture] = seen.capture.as_slice() else { panic!("{:?}", seen.capture) };
    assert_eq!((capture.total_bytes, capture.kept_bytes), (66 << 20, limits::SPOOL_MAX));
    assert!(!capture.complete);
    let [artifact] = seen.artifacts.as_slice() else { panic!("{:?}", seen.artifacts) };
    assert!(!artifact.complete, "and so is the artifact");
    assert_eq!(artifact.bytes, limits::SPOOL_MAX);
    assert!(shown(seen).lines().next().is_some_and(|head| head.contains("kept of more that was written")));
    let row = world.store.artifact(world.key().tenant, artifact.id).await.expect("read").expect("there");
    assert!(!row.artifact.complete, "and its row");
    let view = seen.model_view();
    assert_eq!(view["artifacts"][0]["complete"], serde_json::json!(false));
    assert_eq!(view["capture"][0]["complete"], serde_json::json!(false));
}

/// Reads lines `first..` of a file, as a file tool would, and says which it delivered.
fn reads(strategy: Strategy, first: u64, text: &str) -> Tool {
    let (text, total) = (Arc::new(text.to_owned()), text.lines().count() as u64);
    let semantics = Semantics { truncation: strategy, ..looks() };
    let run = move |_: Note, context: ToolContext| {
        let text = Arc::clone(&text);
        async move {
            context.file(FileFact::Delivered {
                path: "/workspace/a".to_owned(),
                sha256: Digest::of(text.as_bytes()),
                size: text.len() as u64,
                mtime: Timestamp::from_micros(1),
                total_lines: first - 1 + total,
                lines: vec![LineRange { first, last: first - 1 + total }],
            });
            Ok((*text).clone())
        }
    };
    acting(semantics, run).build().expect("a sound tool")
}

#[tokio::test]
async fn l62_a_page_that_was_cut_covers_only_the_lines_that_were_sent() {
    let numbered: Vec<String> = (0..4_000).map(|n| format!("<{n}> the content of this very line")).collect();
    let text = format!("{}\n", numbered.join("\n"));
    for (strategy, first) in
        [(Strategy::Head, 1), (Strategy::Tail, 1), (Strategy::HeadTail, 11), (Strategy::AroundErrors, 5)]
    {
        let world = World::new().await;
        let process = world.process([("t", reads(strategy, first, &text))]);
        let session = process.open().await;
        let (seen, _) = call_in(&session, "t", INPUT).await.expect("no halt");
        let seen = observed(&seen);
        assert!(seen.ok && seen.truncated);
        let Some(FileFact::Delivered { lines, .. }) = seen.files.first() else { panic!("{:?}", seen.files) };
        let shown = shown(seen);
        let sent: std::collections::BTreeSet<&str> = shown.lines().collect();
        let covered = |line: u64| lines.iter().any(|r| r.first <= line && line <= r.last);
        for (n, line) in numbered.iter().enumerate() {
            let number = first + n as u64;
            assert_eq!(covered(number), sent.contains(line.as_str()), "{strategy:?}: line {number}");
        }
        assert!(!lines.is_empty());
        let state = session.state();
        let baseline = state.baselines.get("/workspace/a").expect("a baseline");
        assert_eq!(baseline.coverage.ranges(), lines.as_slice(), "and the fold believes no more");
    }
    // Whole, it covers everything.
    let world = World::new().await;
    let (_, seen) = call(&world, reads(Strategy::Head, 3, "a\nb\nc\n")).await;
    let Some(FileFact::Delivered { lines, .. }) = seen.files.first() else { panic!("{:?}", seen.files) };
    assert_eq!(lines, &[LineRange { first: 3, last: 5 }]);
}
