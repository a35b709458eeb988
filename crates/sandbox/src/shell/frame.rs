//! What a shell answers: records that end with a NUL, from the token of the command to the same token with a full stop.
//!
//! ```text
//! NUL  TOKEN NUL  STATUS NUL  FOLDER LF NUL  EXPORTS NUL  (NAME=VALUE NUL)*  TOKEN. NUL
//! ```
//!
//! A record cannot hold a NUL, nor can a path or a variable, so no content can end one early. The token is random and
//! new for every command: what was written by anybody who does not know it is passed over.

use portcullis_base::Entropy;

/// The most that one answer may hold; an environment that Linux can hand to a program is smaller.
pub const ANSWER_MAX: usize = 8 << 20;

/// The most that is kept of the list of exports, which is the third record of an answer.
const EXPORTS_MAX: usize = 1 << 20;
const EXPORTS_AT: usize = 2;

/// The name of one command on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A fresh one, 128 random bits.
    #[must_use]
    pub fn fresh(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 16];
        entropy.fill(&mut bytes);
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a shell tells of a command that is over.
#[derive(Clone, PartialEq, Eq)]
pub struct Report {
    pub status: u8,
    /// Links resolved; empty if it is not there any more.
    pub folder: Vec<u8>,
    /// What the shell lists as exported, in its own words: only good for seeing whether it is still the same.
    pub(super) exports: Vec<u8>,
    /// The exported environment; `None` if it could not be told (too large for any program to be started).
    pub environment: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// Values are nobody's business.
impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.environment.as_ref().map(Vec::len);
        f.debug_struct("Report").field("status", &self.status).field("names", &names).finish_non_exhaustive()
    }
}

/// The line makes no sense any more; its shell cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the shell's answer is longer than {ANSWER_MAX} bytes")]
    TooLong,
    #[error("the shell's answer is not one")]
    Malformed,
}

/// Reads answers out of bytes as they come.
#[derive(Debug)]
pub struct Frames {
    token: Token,
    /// Bytes of a record that has not ended.
    record: Vec<u8>,
    /// The records of the answer so far, from its token on; `None` while it has not begun.
    answer: Option<Vec<Vec<u8>>>,
    held: usize,
    /// The list of exports is too long to be kept.
    overlong: bool,
}

impl Frames {
    /// Waits for the answer with this token.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self { token, record: Vec::new(), answer: None, held: 0, overlong: false }
    }

    /// Takes more bytes; gives the answer once it is whole. What comes after it is not looked at.
    ///
    /// # Errors
    /// If no answer can come of this any more.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Option<Report>, Fault> {
        while let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            self.hold(&bytes[..end])?;
            bytes = &bytes[end + 1..];
            let record = std::mem::take(&mut self.record);
            if let Some(report) = self.ended(record)? {
                return Ok(Some(report));
            }
        }
        self.hold(bytes)?;
        Ok(None)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        // A long list is only compared, and then it is not: the environment is told anew.
        let lists = self.answer.as_ref().is_some_and(|answer| answer.len() == EXPORTS_AT);
        if lists && (self.overlong || self.record.len() + bytes.len() > EXPORTS_MAX) {
            self.overlong = true;
            return Ok(());
        }
        self.held += bytes.len() + 1;
        if self.held > ANSWER_MAX {
            return Err(Fault::TooLong);
        }
        self.record.extend_from_slice(bytes);
        Ok(())
    }

    fn ended(&mut self, record: Vec<u8>) -> Result<Option<Report>, Fault> {
        let token = self.token.as_str().as_bytes();
        let Some(answer) = &mut self.answer else {
            if record == token {
                self.answer = Some(Vec::new());
            }
            // Noise does not count against an answer.
            self.held = 0;
            return Ok(None);
        };
        if record.strip_suffix(b".") != Some(token) {
            answer.push(if std::mem::take(&mut self.overlong) { Vec::new() } else { record });
            return Ok(None);
        }
        let records = self.answer.take().unwrap_or_default();
        report(records).map(Some).ok_or(Fault::Malformed)
    }
}

fn report(records: Vec<Vec<u8>>) -> Option<Report> {
    let mut records = records.into_iter();
    let status = std::str::from_utf8(&records.next()?).ok()?.parse().ok()?;
    let mut folder = records.next()?;
    // The line end of `pwd`, which alone says where a shell is whatever a command has put into `PWD`.
    if folder.last() == Some(&b'\n') {
        folder.pop();
    }
    let exports = records.next()?;
    let environment: Vec<_> = records.filter_map(pair).collect();
    // The runtime gives every shell some variables: a shell without any could not tell them.
    let environment = (!environment.is_empty()).then_some(environment);
    Some(Report { status, folder, exports, environment })
}

fn pair(record: Vec<u8>) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = record.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
    Some((record[..at].to_vec(), record[at + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use portcullis_base::SeededIds;
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1_u8.., 0..40)
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>().prop_filter("a name", |byte| *byte != 0 && *byte != b'='), 1..20)
    }

    fn answer(token: &Token, report: &Report) -> Vec<u8> {
        let mut out = format!("\0{}\0{}\0", token.as_str(), report.status).into_bytes();
        out.extend_from_slice(&report.folder);
        out.extend_from_slice(b"\n\0");
        out.extend([report.exports.as_slice(), b"\0"].concat());
        for (name, value) in report.environment.iter().flatten() {
            out.extend([name.as_slice(), b"=", value, b"\0"].concat());
        }
        out.extend(format!("{}.\0", token.as_str()).into_bytes());
        out
    }

    fn feed(frames: &mut Frames, bytes: &[u8], piece: usize) -> Result<Option<Report>, Fault> {
        for piece in bytes.chunks(piece) {
            if let Some(report) = frames.push(piece)? {
                return Ok(Some(report));
            }
        }
        Ok(None)
    }

    /// The same answer, read by splitting the whole line at once.
    fn at_once(token: &Token, line: &[u8]) -> Result<Option<Report>, Fault> {
        let mut records: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        // What follows the last NUL has not ended.
        records.pop();
        let end = [token.as_str().as_bytes(), b"."].concat();
        let Some(begin) = records.iter().position(|record| *record == token.as_str().as_bytes()) else {
            return Ok(None);
        };
        let rest = &records[begin + 1..];
        let Some(length) = rest.iter().position(|record| *record == end) else { return Ok(None) };
        report(rest[..length].iter().map(|record| record.to_vec()).collect()).map(Some).ok_or(Fault::Malformed)
    }

    /// Pieces of which lines like ours are made, and of which none may mislead.
    fn any_line() -> impl Strategy<Value = Vec<u8>> {
        let token = Token::fresh(&SeededIds::new(5));
        let end = format!("{}.", token.as_str());
        let half = token.as_str()[..16].to_owned();
        let piece = prop_oneof![
            6 => Just(vec![0]),
            2 => Just(token.as_str().as_bytes().to_vec()),
            2 => Just(end.into_bytes()),
            1 => Just(half.into_bytes()),
            1 => proptest::sample::select(vec!["0", "7", "255", "256", "-1", "+3", "", ".", "=", "A=1", "=x", "/tmp"])
                .prop_map(|text| text.as_bytes().to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..8),
        ];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    prop_compose! {
        fn any_report()(
            status in any::<u8>(),
            folder in bytes(),
            exports in bytes(),
            pairs in proptest::collection::vec((name(), bytes()), 0..8),
        ) -> Report {
            Report { status, folder, exports, environment: (!pairs.is_empty()).then_some(pairs) }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fuzz_shell_framing_reads_what_the_whole_line_says_however_it_is_cut(
            line in any_line(),
            cuts in proptest::collection::vec(0_usize..20, 0..40),
        ) {
            let token = Token::fresh(&SeededIds::new(5));
            let (mut frames, mut rest, mut read) = (Frames::new(token.clone()), line.as_slice(), Ok(None));
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (piece, more) = rest.split_at(cut.min(rest.len()));
                read = frames.push(piece);
                rest = more;
                if read != Ok(None) {
                    break;
                }
            }
            prop_assert_eq!(read, at_once(&token, &line));
        }

        #[test]
        fn h43_an_answer_is_read_whole_however_it_comes_and_whatever_came_before_it(
            report in any_report(),
            noise in proptest::collection::vec(any::<u8>(), 0..200),
            piece in 1_usize..50,
        ) {
            let entropy = SeededIds::new(1);
            let (token, other) = (Token::fresh(&entropy), Token::fresh(&entropy));
            let mut line = noise;
            let (folder, exports) = (b"/forged".to_vec(), Vec::new());
            line.extend(answer(&other, &Report { status: 0, folder, exports, environment: None }));
            line.extend(answer(&token, &report));
            prop_assert_eq!(feed(&mut Frames::new(token), &line, piece), Ok(Some(report)));
        }

        #[test]
        fn h43_nothing_is_an_answer_without_its_token(
            line in proptest::collection::vec(prop_oneof![Just(0_u8), Just(b'.'), Just(b'a'), any::<u8>()], 0..400),
            forged in any_report(),
            piece in 1_usize..50,
        ) {
            let entropy = SeededIds::new(2);
            let (token, other) = (Token::fresh(&entropy), Token::fresh(&entropy));
            let mut frames = Frames::new(token.clone());
            prop_assert_eq!(feed(&mut frames, &line, piece), Ok(None));
            prop_assert_eq!(feed(&mut frames, &answer(&other, &forged), piece), Ok(None));
            // An end without a beginning, and a beginning in the middle of a record, are none either.
            let odd = format!("x{}\00\0/\0{}.\0", token.as_str(), token.as_str());
            prop_assert_eq!(feed(&mut frames, odd.as_bytes(), piece), Ok(None));
        }

        #[test]
        fn h43_any_bytes_after_a_token_end_in_an_answer_or_a_fault(
            line in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..400),
            piece in 1_usize..50,
        ) {
            let token = Token::fresh(&SeededIds::new(3));
            let line = [token.as_str().as_bytes(), b"\0", &line, b"\0", token.as_str().as_bytes(), b".\0"].concat();
            prop_assert!(matches!(feed(&mut Frames::new(token), &line, piece), Ok(Some(_)) | Err(Fault::Malformed)));
        }
    }

    #[test]
    fn h43_a_line_without_an_end_is_given_up_before_it_fills_the_memory() {
        let token = Token::fresh(&SeededIds::new(4));
        let flood = vec![b'x'; 1 << 20];
        for start in [String::new(), format!("\0{}\0", token.as_str())] {
            let mut frames = Frames::new(token.clone());
            assert_eq!(frames.push(start.as_bytes()), Ok(None));
            let end = (0..20).find_map(|_| frames.push(&flood).err());
            assert_eq!(end, Some(Fault::TooLong));
            assert!(frames.record.capacity() <= 2 * ANSWER_MAX);
        }
    }
}
