//! Searching the files that a walk finds, several at once, for the first lines in the order of paths.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher};
use portcullis_pipeline::PathRules;
use portcullis_sandbox::{Entry, Kind, PassedOver, Visitor};
use portcullis_secret::RedactingStream;

use super::left_out::{LeftOut, LeftOutReason};
use super::lines::{LineCollector, MatchingLine};
use super::order::{PathKey, compare};
use super::pattern;
use super::scope::Scope;

/// Bytes of a file that are searched in one piece; a longer file is searched as it is read.
const WHOLE: usize = 1 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The matching lines of one file.
pub(crate) struct FileLines {
    /// Its virtual path.
    pub(crate) path: String,
    pub(crate) lines: Vec<MatchingLine>,
    pub(crate) count: u64,
}

/// The first lines in the order of paths, whichever thread finds them when. Once there are enough, what
/// comes after the last of them need not be searched.
pub(crate) struct FirstMatches {
    most: usize,
    files: Mutex<(usize, BTreeMap<PathKey, FileLines>)>,
    full: AtomicBool,
    last: RwLock<Option<PathKey>>,
}

impl FirstMatches {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, files: Mutex::default(), full: AtomicBool::new(false), last: RwLock::default() }
    }

    fn add(&self, path: String, found: FileLines) {
        let mut held = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, files) = &mut *held;
        *lines += found.lines.len();
        files.insert(PathKey(path), found);
        while let Some(last) = files.last_entry() {
            let without = *lines - last.get().lines.len();
            if without < self.most {
                break;
            }
            *lines = without;
            last.remove();
        }
        if *lines >= self.most {
            let end = files.last_key_value().map(|(path, _)| path.clone());
            *self.last.write().unwrap_or_else(PoisonError::into_inner) = end;
            self.full.store(true, Ordering::Release);
        }
    }

    /// Whether nothing at or beneath this path can be among the first.
    fn past(&self, path: impl FnOnce() -> String) -> bool {
        if !self.full.load(Ordering::Acquire) {
            return false;
        }
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_some_and(|last| compare(&path(), &last.0).is_gt())
    }

    pub(crate) fn take(&self) -> BTreeMap<PathKey, FileLines> {
        std::mem::take(&mut self.files.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// One thread of a search.
pub(crate) struct FileSearch<'s> {
    scope: &'s Scope,
    matcher: RegexMatcher,
    searcher: Searcher,
    /// Used for every file; grows once.
    buffer: Vec<u8>,
    first: &'s FirstMatches,
    stop: &'s AtomicBool,
    pub(crate) left_out: LeftOut,
    pub(crate) searched: u64,
}

impl<'s> FileSearch<'s> {
    pub(crate) fn new(scope: &'s Scope, matcher: RegexMatcher, first: &'s FirstMatches, stop: &'s AtomicBool) -> Self {
        let searcher = pattern::searcher(0);
        Self {
            scope,
            matcher,
            searcher,
            buffer: vec![0; WHOLE],
            first,
            stop,
            left_out: LeftOut::default(),
            searched: 0,
        }
    }

    /// `None` if it is no file any more.
    fn lines(&mut self, entry: &Entry<'_>) -> io::Result<Option<LineCollector<'_>>> {
        let Some((mut file, size)) = entry.open()? else { return Ok(None) };
        let (len, whole) = fill(&mut file, size, &mut self.buffer)?;
        let mut lines = LineCollector::new(&self.matcher, &self.scope.parts.rules, self.first.most);
        let text = &self.buffer[..len];
        if text.contains(&0) {
            lines.binary = true;
            return Ok(Some(lines));
        }
        let text = text.strip_prefix(BOM).unwrap_or(text);
        if whole {
            self.searcher.set_binary_detection(BinaryDetection::none());
            self.searcher.search_slice(&self.matcher, text, &mut lines)?;
            if lines.count > 0
                && let Some(masked) = masked(&self.scope.parts.rules, text)
            {
                // A search for what is masked finds nothing: else it would tell what a secret is, letter by letter.
                lines = LineCollector::new(&self.matcher, &self.scope.parts.rules, self.first.most);
                self.searcher.search_slice(&self.matcher, &masked, &mut lines)?;
            }
        } else {
            self.searcher.set_binary_detection(BinaryDetection::quit(0));
            let rest = Stoppable { file, stop: self.stop };
            let masked = MaskedText::new(text.chain(rest), self.scope.parts.rules.masking());
            self.searcher.search_reader(&self.matcher, masked, &mut lines)?;
        }
        Ok(Some(lines))
    }
}

impl Visitor for FileSearch<'_> {
    fn found(&mut self, entry: &Entry<'_>) {
        if entry.kind() != Kind::File || self.first.past(|| entry.relative()) {
            return;
        }
        if self.scope.closes(|| entry.relative()) || self.scope.closes_elsewhere(entry) {
            return self.left_out.add(entry.relative(), LeftOutReason::Closed);
        }
        if self.scope.keeps_secret(entry) {
            return self.left_out.add(entry.relative(), LeftOutReason::Secret);
        }
        let (lines, count, why) = match self.lines(entry) {
            Ok(None) => return,
            Ok(Some(lines)) => (lines.kept, lines.count, lines.binary.then_some(LeftOutReason::Binary)),
            Err(_) => (Vec::new(), 0, Some(LeftOutReason::Unreadable)),
        };
        match why {
            Some(why) => self.left_out.add(entry.relative(), why),
            None => self.searched += 1,
        }
        if why.is_none() && count > 0 {
            self.first.add(entry.relative(), FileLines { path: entry.path(), lines, count });
        }
    }

    fn enters(&mut self, dir: &Entry<'_>) -> bool {
        !self.first.past(|| dir.relative())
    }

    fn passed_over(&mut self, path: String, why: PassedOver) {
        self.left_out.add(path, why.into());
    }
}

/// The text with its secrets masked, if it holds any. A declared secret of several lines becomes one mask, so that the
/// lines behind it would be counted wrongly: what is shown of that file is masked with everything else that is shown.
fn masked(rules: &PathRules, text: &[u8]) -> Option<Vec<u8>> {
    let masked = rules.masked(text);
    let ends = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    (*masked != *text && ends(&masked) == ends(text)).then(|| masked.into_owned())
}

/// Reads as much as the buffer holds; also says whether that is all.
fn fill(file: &mut impl Read, size: u64, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
    let mut len = 0;
    while len < buffer.len() {
        let room = buffer.len() - len;
        match file.read(&mut buffer[len..]) {
            Ok(0) => return Ok((len, true)),
            Ok(read) => {
                len += read;
                // A read that gave less than it could, up to the known size, has met the end.
                if read < room && len as u64 == size {
                    return Ok((len, true));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((len, false))
}

/// The rest of a long file, which ends when the search is stopped.
struct Stoppable<'s, F> {
    file: F,
    stop: &'s AtomicBool,
}

impl<F: Read> Read for Stoppable<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(0);
        }
        self.file.read(buffer)
    }
}

/// A text with its secrets masked while it is read.
struct MaskedText<R> {
    from: R,
    /// `None`: everything has been read.
    stream: Option<RedactingStream>,
    /// What is masked and not yet given out, and from where on.
    ready: Vec<u8>,
    given: usize,
}

impl<R: Read> MaskedText<R> {
    fn new(from: R, stream: RedactingStream) -> Self {
        Self { from, stream: Some(stream), ready: Vec::new(), given: 0 }
    }
}

impl<R: Read> Read for MaskedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() {
            let Some(stream) = &mut self.stream else { return Ok(0) };
            let mut part = [0; 64 << 10];
            let count = self.from.read(&mut part)?;
            self.given = 0;
            self.ready = match count {
                0 => self.stream.take().map(RedactingStream::finish).unwrap_or_default(),
                _ => stream.push(&part[..count]),
            };
        }
        let left = &self.ready[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}
