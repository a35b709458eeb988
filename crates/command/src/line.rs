//! A command line for the read-only hand: from tokens to a plan. There is no grammar here but words,
//! redirections, `|`, `;`, `&&` and `||`; every other token is refused.

use brush_parser::{ParserOptions, Token, uncached_tokenize_str};

use super::plan::{Builtin, Joiner, NotReadOnly, PIPELINES_MAX, Pipeline, ReadPlan, Redirection, STAGES_MAX};
use super::word::{self, Word};
use super::{cut, screen, stage};

/// Words in a line.
const WORDS_MAX: usize = 1_000;

/// Classifies a line: what it would do in the read-only hand, if all it does is read.
///
/// # Errors
/// What exactly is not understood, or not known to only read.
pub fn read_only(line: &str) -> Result<ReadPlan, NotReadOnly> {
    let line = line.trim_end_matches('\n');
    screen::bounded(line).map_err(|why| NotReadOnly::unparseable(why.to_string()))?;
    if let Some(c) = screen::deceptive(line) {
        return Err(NotReadOnly::unparseable(screen::ScreenRefusal::Deceptive(c).to_string()));
    }
    if line.contains('\n') {
        return Err(NotReadOnly::refused("a line break").or("give one line, its commands joined by `;` or `&&`"));
    }
    let tokens = tokens(line).map_err(NotReadOnly::unparseable)?;
    covered(line, &tokens)?;
    Reader { tokens: &tokens, at: 0 }.list()
}

impl ReadPlan {
    /// The plan of one program with its words, which were given one by one: nothing in them is expanded.
    ///
    /// # Errors
    /// As [`read_only`].
    pub fn from_argv(program: &str, args: &[String]) -> Result<Self, NotReadOnly> {
        let words = || std::iter::once(program).chain(args.iter().map(String::as_str));
        if words().map(str::len).sum::<usize>() > screen::LINE_MAX || args.len() > WORDS_MAX {
            return Err(NotReadOnly::unparseable("the words are too many or too long"));
        }
        if let Some(c) = words().find_map(screen::deceptive) {
            return Err(NotReadOnly::unparseable(screen::ScreenRefusal::Deceptive(c).to_string()));
        }
        if program == "cd" {
            return Err(NotReadOnly::refused("`cd` alone moves nothing").or("give cwd"));
        }
        let args = args.iter().map(|arg| Word::Literal(arg.clone())).collect();
        let stage = stage::judge(&Word::Literal(program.to_owned()), args, Vec::new())?;
        Ok(Self { pipelines: vec![(Joiner::Always, Pipeline { stages: vec![stage] })] })
    }
}

/// Cuts a line that was screened.
pub(super) fn tokens(line: &str) -> Result<Vec<Token>, String> {
    // Not the cached form: it would keep what was typed for the life of the process.
    let tokens = uncached_tokenize_str(line, &ParserOptions::default().tokenizer_options()).map_err(|error| {
        let said: String = error.to_string().chars().take(120).collect();
        format!("the line cannot be parsed ({said})")
    })?;
    if cut::agrees(&tokens) { Ok(tokens) } else { Err("the line cannot be parsed (its quotes)".to_owned()) }
}

/// Refuses what the tokenizer passed over, such as a comment: nothing but blanks may stand between tokens.
fn covered(line: &str, tokens: &[Token]) -> Result<(), NotReadOnly> {
    let mut spans = tokens.iter().map(|token| (token.location().start.index, token.location().end.index));
    let mut span = spans.next();
    for (at, c) in line.chars().enumerate() {
        while span.is_some_and(|(_, end)| end <= at) {
            span = spans.next();
        }
        if !matches!(c, ' ' | '\t') && span.is_none_or(|(start, _)| at < start) {
            return Err(NotReadOnly::refused("a comment").or("leave it out"));
        }
    }
    Ok(())
}

struct Reader<'t> {
    tokens: &'t [Token],
    at: usize,
}

impl Reader<'_> {
    fn list(mut self) -> Result<ReadPlan, NotReadOnly> {
        if self.tokens.len() > WORDS_MAX {
            return Err(NotReadOnly::unparseable(format!("the line has more than {WORDS_MAX} words")));
        }
        let mut pipelines = Vec::new();
        let mut joiner = Joiner::Always;
        loop {
            let pipeline = self.pipeline()?;
            pipelines.push((joiner, pipeline));
            if pipelines.len() > PIPELINES_MAX {
                return Err(NotReadOnly::refused(format!("more than {PIPELINES_MAX} pipelines")));
            }
            joiner = match self.operator() {
                None => break,
                Some(";") => Joiner::Always,
                Some("&&") => Joiner::AfterSuccess,
                Some("||") => Joiner::AfterFailure,
                Some(other) => return Err(NotReadOnly::refused(format!("`{other}`"))),
            };
            self.at += 1;
            // A list may end in `;`.
            if joiner == Joiner::Always && self.at == self.tokens.len() {
                break;
            }
        }
        Ok(ReadPlan { pipelines })
    }

    fn operator(&self) -> Option<&str> {
        match self.tokens.get(self.at) {
            Some(Token::Operator(text, _)) => Some(text),
            // Invariant: a stage ends only before an operator or at the end.
            _ => None,
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, NotReadOnly> {
        let mut stages = vec![self.stage()?];
        while self.operator() == Some("|") {
            self.at += 1;
            stages.push(self.stage()?);
            if stages.len() > STAGES_MAX {
                return Err(NotReadOnly::refused(format!("more than {STAGES_MAX} stages in a pipeline")));
            }
        }
        if stages.len() > 1 && stages.iter().any(|stage| stage.builtin() == Some(Builtin::Cd)) {
            return Err(NotReadOnly::refused("`cd` in a pipeline moves nothing"));
        }
        Ok(Pipeline { stages })
    }

    fn stage(&mut self) -> Result<super::plan::Stage, NotReadOnly> {
        let (mut words, mut redirections) = (Vec::new(), Vec::new());
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Word(text, span) => {
                    let next = self.tokens.get(self.at + 1);
                    let glued = next.is_some_and(|next| next.location().start.index == span.end.index);
                    match next {
                        // A number that touches the arrow is the number of a stream.
                        Some(Token::Operator(arrow, _)) if glued && is_arrow(arrow) && is_number(text) => {
                            self.at += 1;
                            redirections.push(self.redirection(Some(text))?);
                        }
                        _ => {
                            words.push(read(text)?);
                            self.at += 1;
                        }
                    }
                }
                Token::Operator(text, _) if is_arrow(text) => redirections.push(self.redirection(None)?),
                Token::Operator(_, _) => break,
            }
        }
        let mut words = words.into_iter();
        let Some(program) = words.next() else {
            return Err(NotReadOnly::unparseable("a command is missing"));
        };
        if redirections.iter().filter(|one| matches!(one, Redirection::Stdin(_))).count() > 1 {
            return Err(NotReadOnly::refused("more than one `<`"));
        }
        stage::judge(&program, words.collect(), redirections)
    }

    /// At the arrow; afterwards behind its target.
    fn redirection(&mut self, stream: Option<&str>) -> Result<Redirection, NotReadOnly> {
        let (Some(arrow), Some(Token::Word(target, _))) = (self.tokens.get(self.at), self.tokens.get(self.at + 1))
        else {
            return Err(NotReadOnly::unparseable("a redirection without a target"));
        };
        self.at += 2;
        let arrow = arrow.to_str();
        let target = read(target)?;
        let null = target.as_literal() == Some("/dev/null");
        match (stream, arrow, &target) {
            (None | Some("1"), ">", _) if null => Ok(Redirection::StdoutNull),
            (Some("2"), ">", _) if null => Ok(Redirection::StderrNull),
            (None, "&>", _) if null => Ok(Redirection::BothNull),
            (Some("2"), ">&", Word::Literal(to)) if to == "1" => Ok(Redirection::StderrToStdout),
            (None | Some("0"), "<", Word::Literal(file)) if !file.is_empty() => Ok(Redirection::Stdin(file.clone())),
            _ => {
                let what = format!("the redirection `{}{arrow}{}`", stream.unwrap_or(""), target.shown());
                Err(NotReadOnly::refused(what).or("leave it out"))
            }
        }
    }
}

fn read(raw: &str) -> Result<Word, NotReadOnly> {
    word::read(raw).map_err(|why| match why {
        word::WordFault::LookAlike(_) | word::WordFault::Unfinished => {
            NotReadOnly::unparseable(format!("`{raw}` holds {why}"))
        }
        _ => {
            NotReadOnly::refused(format!("`{raw}` holds {why}")).or("put it into single quotes if it is meant as text")
        }
    })
}

pub(super) fn is_arrow(operator: &str) -> bool {
    operator.contains(['<', '>'])
}

pub(super) fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}
