use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_base::limits::{LINE_CHARS, MAX_MODEL_BYTES, MAX_MODEL_LINES};
use proptest::prelude::{Just, ProptestConfig, any, prop_assume, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;

use super::*;

const DEFAULTS: Limits = Limits { lines: MAX_MODEL_LINES, bytes: MAX_MODEL_BYTES };
const STRATEGIES: [Strategy; 5] =
    [Strategy::Head, Strategy::Tail, Strategy::HeadTail, Strategy::AroundErrors, Strategy::MatchContext];

fn header(totals: &Totals) -> String {
    format!("[cut: {} bytes, {} lines]", totals.bytes, totals.lines)
}

fn cut(source: &[u8], limits: Limits, strategy: Strategy, anchors: Option<&[Anchor]>) -> Option<Preview> {
    preview(&source.to_vec(), &limits, strategy, anchors, &header).expect("memory can be read")
}

fn line_count(bytes: &[u8]) -> u64 {
    let newlines = bytes.iter().filter(|b| **b == b'\n').count() as u64;
    newlines + u64::from(bytes.last().is_some_and(|b| *b != b'\n'))
}

fn slice(source: &[u8], start: u64, end: u64) -> &[u8] {
    &source[usize::try_from(start).expect("small")..usize::try_from(end).expect("small")]
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines whose last byte is in this range, counted the slow way.
fn lines_of(source: &[u8], start: u64, end: u64) -> u64 {
    let newlines = slice(source, start, end).iter().filter(|b| **b == b'\n').count() as u64;
    newlines + u64::from(start < end && end == source.len() as u64 && source.last() != Some(&b'\n'))
}

fn covered(preview: &Preview, start: u64, end: u64) -> bool {
    (start..end).all(|at| preview.segments.iter().any(|s| s.start <= at && at < s.end))
}

/// Takes the marker of a gap off the front of `rest`; it must say exactly what the gap holds.
fn strip_marker<'t>(rest: &'t str, source: &[u8], start: u64, end: u64) -> &'t str {
    let (bytes, lines) = (end - start, lines_of(source, start, end));
    if let Some(rest) = rest.strip_prefix(&format!("[… {bytes} bytes of this line omitted …]")) {
        let inner = slice(source, start, end);
        assert!(!inner[..inner.len() - 1].contains(&b'\n'), "an inline gap lies in one line");
        return rest;
    }
    assert!(lines > 0, "a gap within one line is marked within it");
    let unit = if lines == 1 { "line" } else { "lines" };
    let marker = format!("[… {lines} {unit}, {bytes} bytes omitted …]\n");
    let on_own_line = rest.strip_prefix('\n').unwrap_or(rest);
    on_own_line.strip_prefix(&marker).unwrap_or_else(|| panic!("expected {marker:?} at {rest:.80?}"))
}

/// The text is the header, the segments as they are, and an honest marker in every gap.
fn assert_account(source: &[u8], p: &Preview) {
    let len = source.len() as u64;
    let totals = Totals { bytes: len, lines: line_count(source) };
    assert_eq!((p.total_bytes, p.total_lines, p.truncated), (len, totals.lines, true));
    let head = format!("{}\n", header(&totals));
    let mut rest = p.text.strip_prefix(&head).unwrap_or_else(|| panic!("no header at {:.80?}", p.text));
    let (mut at, mut kept, mut kept_lines) = (0, 0, 0);
    for s in &p.segments {
        assert!(s.start < s.end && s.end <= len && (s.start > at || s.start == 0), "ordered, disjoint, apart");
        if s.start > at {
            rest = strip_marker(rest, source, at, s.start);
        }
        let shown = lossy(slice(source, s.start, s.end));
        rest = rest.strip_prefix(shown.as_str()).expect("a segment is shown as it is");
        kept += s.end - s.start;
        kept_lines += lines_of(source, s.start, s.end);
        at = s.end;
    }
    if at < len {
        rest = strip_marker(rest, source, at, len);
    }
    assert_eq!(rest, "");
    assert_eq!((kept + p.omitted_bytes, kept_lines + p.omitted_lines), (len, totals.lines));
}

fn assert_laws(source: &[u8], limits: Limits, strategy: Strategy, anchors: Option<&[Anchor]>) -> Option<Preview> {
    let whole = lossy(source);
    let fits = whole.len() <= limits.bytes && line_count(source) <= limits.lines as u64;
    let found = cut(source, limits, strategy, anchors);
    assert_eq!(found.is_none(), fits, "L49");
    let found = found?;
    assert!(found.text.len() <= limits.bytes, "L48: {} bytes of {}", found.text.len(), limits.bytes);
    assert!(line_count(found.text.as_bytes()) <= limits.lines as u64, "L48: lines of {}", limits.lines);
    assert!(cut(found.text.as_bytes(), limits, strategy, anchors).is_none(), "L51: idempotent");
    if found.segments.is_empty() {
        assert_eq!((found.omitted_bytes, found.omitted_lines), (found.total_bytes, found.total_lines));
    } else {
        assert_account(source, &found);
    }
    if let Ok(text) = std::str::from_utf8(source) {
        let on_boundary = |at: u64| text.is_char_boundary(usize::try_from(at).expect("small"));
        assert!(found.segments.iter().all(|s| on_boundary(s.start) && on_boundary(s.end)), "L51: boundaries");
    }
    Some(found)
}

fn line() -> impl Generator<Value = Vec<u8>> {
    let plain = "[a-z ]{0,80}".prop_map(String::into_bytes);
    let foreign = "[äé漢字🦀x]{0,60}".prop_map(String::into_bytes);
    let long = ("[a-z漢🦀]{1,7}", 250..3_000usize).prop_map(|(unit, n)| unit.repeat(n).into_bytes());
    let telling = prop_oneof!["thread panicked at x", "error: no", "test a FAILED", ""].prop_map(String::into_bytes);
    let invalid =
        proptest::collection::vec(prop_oneof![Just(0xFF), Just(0xE2), Just(0xF0), Just(0x9F), 0x20..0x7F_u8], 0..200);
    let invalid_long = (0x80..=0xFF_u8, 100..9_000usize).prop_map(|(b, n)| vec![b; n]);
    prop_oneof![8 => plain, 3 => foreign, 1 => long, 1 => telling, 1 => invalid, 1 => invalid_long]
}

fn source() -> impl Generator<Value = Vec<u8>> {
    let lines = proptest::collection::vec((line(), prop_oneof![Just("\n"), Just("\n"), Just("\r\n")]), 0..60);
    let times = prop_oneof![6 => Just(1usize), 1 => 2..40usize];
    (lines, times, any::<bool>()).prop_map(|(lines, times, ends)| {
        let mut bytes: Vec<u8> =
            lines.into_iter().flat_map(|(line, end)| [line, end.as_bytes().to_vec()].concat()).collect();
        bytes = bytes.repeat(times);
        if !ends {
            bytes.pop();
        }
        bytes
    })
}

fn limits() -> impl Generator<Value = Limits> {
    let small = (0..60usize, 0..6_000usize).prop_map(|(lines, bytes)| Limits { lines, bytes });
    let tiny = (0..6usize, 0..200usize).prop_map(|(lines, bytes)| Limits { lines, bytes });
    prop_oneof![4 => small, 1 => tiny, 2 => Just(DEFAULTS)]
}

/// Anchors anywhere, some beyond the end, some of no length.
fn anchors(len: usize, seeds: &[(u16, u16)]) -> Vec<Anchor> {
    let at = |seed: u16| len as u64 * u64::from(seed) / 60_000;
    seeds.iter().map(|(a, n)| Anchor { start: at(*a), end: at(*a) + u64::from(*n) }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn l48_l49_l51_hold_for_every_text_limit_and_strategy(
        source in source(), limits in limits(), offered in any::<bool>(),
        seeds in proptest::collection::vec((any::<u16>(), 0..3_000u16), 0..12),
    ) {
        let anchors = anchors(source.len(), &seeds);
        for strategy in STRATEGIES {
            assert_laws(&source, limits, strategy, offered.then_some(anchors.as_slice()));
        }
    }

    #[test]
    fn l52_the_first_anchor_is_inside(
        source in source(), spare in 0..4_000usize, at in 0..60_000u16, long in 0..512u64,
        others in proptest::collection::vec((any::<u16>(), 0..3_000u16), 0..6),
    ) {
        prop_assume!(!source.is_empty());
        let totals = Totals { bytes: source.len() as u64, lines: line_count(&source) };
        let limits = Limits { lines: 600, bytes: header(&totals).len() + 1 + 2_048 + spare };
        let first = anchors(source.len(), &[(at, 0)])[0];
        let end = (first.start + long).clamp(first.start + 1, totals.bytes);
        let mut all = vec![Anchor { start: first.start, end }];
        all.extend(anchors(source.len(), &others));
        for strategy in [Strategy::AroundErrors, Strategy::MatchContext] {
            if let Some(found) = assert_laws(&source, limits, strategy, Some(&all)) {
                assert!(covered(&found, first.start, end), "{:?} not in {:?}", all[0], found.segments);
            }
        }
    }

    #[test]
    fn l51_a_cut_is_at_a_line_end_if_one_is_near(source in source(), bytes in 200..9_000usize) {
        for strategy in [Strategy::Head, Strategy::HeadTail] {
            let Some(found) = cut(&source, Limits { lines: 2_000, bytes }, strategy, None) else { continue };
            for s in &found.segments {
                let kept = slice(&source, s.start, s.end);
                let whole = s.end == source.len() as u64 || kept.last() == Some(&b'\n');
                let near = &kept[kept.len().saturating_sub(512)..];
                assert!(whole || !near.contains(&b'\n'), "cut {} bytes after a line end", s.end);
            }
        }
    }
}

fn numbered(lines: usize) -> Vec<u8> {
    (1..=lines).flat_map(|n| format!("line {n}\n").into_bytes()).collect()
}

#[test]
fn l49_what_fits_exactly_has_no_preview() {
    let source = numbered(100);
    for strategy in STRATEGIES {
        assert_eq!(cut(&source, Limits { lines: 100, bytes: source.len() }, strategy, None), None);
        assert!(cut(&source, Limits { lines: 99, bytes: source.len() }, strategy, None).is_some());
        assert!(cut(&source, Limits { lines: 100, bytes: source.len() - 1 }, strategy, None).is_some());
        assert_eq!(cut(b"", Limits { lines: 0, bytes: 0 }, strategy, None), None);
    }
}

#[test]
fn l49_invalid_bytes_are_measured_as_they_are_shown() {
    let source = [0xFF; 100];
    assert_eq!(cut(&source, Limits { lines: 1, bytes: 300 }, Strategy::Head, None), None);
    let found = assert_laws(&source, Limits { lines: 9, bytes: 299 }, Strategy::Head, None).expect("300 bytes of text");
    assert!(!found.segments.is_empty());
}

#[test]
fn each_strategy_keeps_its_part() {
    let source = numbered(1_000);
    let limits = Limits { lines: 10, bytes: 51_200 };
    let text = |strategy| assert_laws(&source, limits, strategy, None).expect("too long").text;
    let numbers = |text: &str| -> Vec<u32> {
        text.lines().filter_map(|l| l.strip_prefix("line ")).map(|n| n.parse().expect("a number")).collect()
    };
    assert_eq!(numbers(&text(Strategy::Head)), (1..=8).collect::<Vec<_>>());
    assert_eq!(numbers(&text(Strategy::Tail)), (993..=1_000).collect::<Vec<_>>());
    assert_eq!(numbers(&text(Strategy::HeadTail)), [1, 2, 3, 4, 997, 998, 999, 1_000]);
    assert_eq!(
        text(Strategy::HeadTail),
        "[cut: 8893 bytes, 1000 lines]\nline 1\nline 2\nline 3\nline 4\n[… 992 lines, 8828 bytes omitted …]\n\
         line 997\nline 998\nline 999\nline 1000\n"
    );
}

#[test]
fn windows_follow_the_order_of_the_anchors() {
    let source = numbered(1_000);
    let text = lossy(&source);
    let anchor = |n: usize| {
        let start = text.find(&format!("line {n}\n")).expect("there") as u64;
        Anchor { start, end: start + 4 }
    };
    let limits = Limits { lines: 17, bytes: 51_200 };
    let found = assert_laws(&source, limits, Strategy::MatchContext, Some(&[anchor(700), anchor(300)])).expect("long");
    for n in [298, 302, 698, 702] {
        assert!(found.text.contains(&format!("line {n}\n")), "±2 of both: {}", found.text);
    }
    let limits = Limits { lines: 8, bytes: 51_200 };
    let found = assert_laws(&source, limits, Strategy::MatchContext, Some(&[anchor(700), anchor(300)])).expect("long");
    assert!(found.text.contains("line 702\n") && !found.text.contains("line 300\n"), "{}", found.text);
}

#[test]
fn l52_without_anchors_the_fixed_markers_are_found() {
    let mut source = b"noise error: one of many\n".repeat(3_000);
    source.extend_from_slice(b"thread 'main' panicked at src/main.rs:1\n");
    source.extend_from_slice(&b"more noise\n".repeat(9_000));
    source.extend_from_slice(b"exit status 101\n");
    source.extend_from_slice(&b"\n".repeat(3_000));
    let found = assert_laws(&source, DEFAULTS, Strategy::AroundErrors, None).expect("long");
    assert!(found.text.contains("panicked at src/main.rs") && found.text.contains("exit status 101"));
}

#[test]
fn l51_a_long_line_is_cut_inside_and_keeps_its_newline() {
    let source = [b"start\n".to_vec(), b"x".repeat(9_000), b"\nend\n".to_vec()].concat();
    let found = assert_laws(&source, Limits { lines: 100, bytes: 5_000 }, Strategy::Head, None).expect("long");
    let line = format!("start\n{}[… 7000 bytes of this line omitted …]\nend\n", "x".repeat(LINE_CHARS));
    assert_eq!(found.text, format!("[cut: 9011 bytes, 3 lines]\n{line}"));
    assert_eq!((found.omitted_bytes, found.omitted_lines), (7_000, 0));
}

#[test]
fn l51_a_long_last_line_shows_its_end_to_tail() {
    let source = [b"x".repeat(90_000), b" 100% done".to_vec()].concat();
    for strategy in [Strategy::Tail, Strategy::HeadTail, Strategy::AroundErrors] {
        let found = assert_laws(&source, DEFAULTS, strategy, None).expect("long");
        assert!(found.text.ends_with("100% done"), "{strategy:?}");
    }
}

#[test]
fn l48_too_small_a_limit_gets_only_the_marker() {
    let source = numbered(1_000);
    let marker = "[cut: 8893 bytes, 1000 lines]\n";
    for strategy in STRATEGIES {
        let only = |lines, bytes| assert_laws(&source, Limits { lines, bytes }, strategy, None).expect("long").text;
        assert_eq!(only(2_000, 120), format!("{marker}[… 1000 lines, 8893 bytes omitted …]\n"));
        assert_eq!(only(2_000, 40), marker);
        assert_eq!(only(2_000, 12), "[cut: 8893 b");
        assert_eq!(only(1, 5_000), marker);
        assert_eq!((only(0, 5_000), only(5, 0)), (String::new(), String::new()));
    }
}

#[test]
fn the_limit_is_used() {
    let source = "a line of an ordinary length, fifty bytes or so…\n".repeat(40_000).into_bytes();
    let limits = Limits { lines: 100_000, bytes: 51_200 };
    for strategy in STRATEGIES {
        let found = assert_laws(&source, limits, strategy, None).expect("long");
        assert!(found.text.len() > limits.bytes - 600, "{strategy:?} uses {}", found.text.len());
    }
}

/// 64 MiB that are computed, never stored, and a record of the largest request.
struct Synthetic {
    unit: Vec<u8>,
    largest: AtomicU64,
    requested: AtomicU64,
}

const SYNTHETIC: u64 = 64 << 20;

impl Synthetic {
    fn new(unit: &[u8]) -> Self {
        Self { unit: unit.repeat(64), largest: AtomicU64::new(0), requested: AtomicU64::new(0) }
    }
}

impl Window for Synthetic {
    fn len(&self) -> u64 {
        SYNTHETIC
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let asked = buf.len() as u64;
        self.largest.fetch_max(asked, Ordering::Relaxed);
        self.requested.fetch_add(asked, Ordering::Relaxed);
        let n = asked.min(SYNTHETIC.saturating_sub(offset));
        let mut at = usize::try_from(offset % self.unit.len() as u64).expect("small");
        let mut left = &mut buf[..usize::try_from(n).expect("small")];
        while !left.is_empty() {
            let step = left.len().min(self.unit.len() - at);
            left[..step].copy_from_slice(&self.unit[at..at + step]);
            left = &mut left[step..];
            at = 0;
        }
        Ok(usize::try_from(n).expect("small"))
    }
}

#[test]
fn l58_memory_does_not_grow_with_the_text() {
    let lines = Synthetic::new(b"an ordinary line of a build log, as they come by the million\n");
    // One line of 64 MiB with an anchor in its middle, and more anchors in the same line.
    let one_line = Synthetic::new(b"no newline here ");
    let middle: Vec<Anchor> =
        (0..64).map(|i| SYNTHETIC / 2 + i * 4_096).map(|s| Anchor { start: s, end: s + 9 }).collect();
    for (reader, strategy, anchors) in [
        (&lines, Strategy::AroundErrors, None),
        (&lines, Strategy::HeadTail, None),
        (&one_line, Strategy::AroundErrors, Some(middle.as_slice())),
    ] {
        let found = preview(reader, &DEFAULTS, strategy, anchors, &header).expect("readable").expect("long");
        assert!(found.text.len() <= DEFAULTS.bytes);
        if anchors.is_some() {
            assert!(covered(&found, middle[0].start, middle[0].end));
        }
    }
    for reader in [&lines, &one_line] {
        let largest = reader.largest.load(Ordering::Relaxed);
        assert!(largest <= DEFAULTS.bytes as u64, "{largest} bytes at once");
        let requested = reader.requested.load(Ordering::Relaxed);
        assert!(requested < 8 * SYNTHETIC, "{requested} bytes in all");
    }
}

#[test]
fn a_source_that_shrank_is_an_error() {
    struct Shrunk;
    impl Window for Shrunk {
        fn len(&self) -> u64 {
            100
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }
    assert!(preview(&Shrunk, &DEFAULTS, Strategy::Head, None, &header).is_err());
}
