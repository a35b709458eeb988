//! One simple command held against the table: which of its words are paths, or why it is refused.

use super::options::{self, Parsed, Role, Value};
use super::path_text;
use super::plan::{Arg, NotReadOnly, Redirection, Stage};
use super::table::{Operands, Program, SpecialProgram, program};
use super::word::Word;
use super::{find, jq};

/// The most numbers that `seq` may print.
const SEQ_MAX: f64 = 100_000.0;

/// Places that are no files: reading them has no end, or shows processes and devices.
const NO_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Judges one simple command.
///
/// # Errors
/// If the program is not in the table or a word is not known to only read.
pub(super) fn judge(name: &Word, words: Vec<Word>, redirections: Vec<Redirection>) -> Result<Stage, NotReadOnly> {
    let Some(program) = name.as_literal().and_then(program) else {
        let what = format!("`{}` is not a program of the read-only hand", name.shown());
        return Err(NotReadOnly::refused(what));
    };
    let (paths, looks_around) = paths(program, &words)?;
    let looks_around = looks_around && !redirections.iter().any(|r| matches!(r, Redirection::Stdin(_)));
    for (word, path) in words.iter().zip(&paths) {
        if *path {
            readable(program, word)?;
        }
    }
    for redirection in &redirections {
        if let Redirection::Stdin(file) = redirection {
            // Whatever reads it may show it.
            content_readable(program.name, &Word::Literal(file.clone()))?;
        }
    }
    let args = words.into_iter().zip(paths).map(|(word, path)| Arg { word, path }).collect();
    Ok(Stage { program: program.name, builtin: program.builtin, args, redirections, looks_around })
}

/// Whether a command by its words is one of the table, and only reads.
pub(super) fn only_reads(argv: &[String]) -> bool {
    let mut words = argv.iter().map(|word| Word::Literal(word.clone()));
    words.next().is_some_and(|name| judge(&name, words.collect(), Vec::new()).is_ok())
}

fn refuse(program: &Program, what: &str) -> NotReadOnly {
    NotReadOnly::refused(format!("`{}`: {what}", program.name))
}

fn unknown(program: &Program, option: &str) -> NotReadOnly {
    NotReadOnly::refused(format!("`{}`: {option} is not an option of the read-only hand", program.name))
}

fn readable(program: &Program, word: &Word) -> Result<(), NotReadOnly> {
    let text = word.shown();
    let absolute = text.starts_with('/').then(|| path_text::join("/", text));
    if absolute.is_some_and(|path| NO_FILES.iter().any(|no| path_text::within(&path, no))) {
        return Err(refuse(program, &format!("`{text}` is no file of the workspace")));
    }
    if program.name == "strings" && text.starts_with('@') {
        let what = format!("`{text}` would be a list of words to read; write `./{text}` if it is a file");
        return Err(refuse(program, &what));
    }
    // `+1f` is an old way to write `-n +1 -f`, which never ends.
    let follows = |text: &str| text.strip_prefix('+').is_some_and(|rest| !rest.bytes().all(|b| b.is_ascii_digit()));
    if program.name == "tail" && follows(text) {
        return Err(refuse(program, &format!("`{text}` may follow for ever; write `./{text}` if it is a file")));
    }
    if program.shows_content { content_readable(program.name, word) } else { Ok(()) }
}

fn content_readable(program: &str, word: &Word) -> Result<(), NotReadOnly> {
    let secret = match word {
        Word::Literal(path) => path_text::is_secret(path),
        Word::Glob(pattern) => path_text::may_match_secret(pattern.as_str()),
    };
    let text = word.shown();
    let device = text.starts_with('/') && NO_FILES.iter().any(|no| path_text::within(&path_text::join("/", text), no));
    if secret {
        return Err(NotReadOnly::refused(format!("`{program}`: `{text}` may hold secrets")));
    }
    if device {
        return Err(NotReadOnly::refused(format!("`{program}`: `{text}` is no file of the workspace")));
    }
    Ok(())
}

/// Which words are paths, and whether the working directory is looked at without being named.
fn paths(program: &Program, words: &[Word]) -> Result<(Vec<bool>, bool), NotReadOnly> {
    if let Operands::Own(own) = program.operands {
        return own_rules(program, own, words);
    }
    let texts: Vec<Option<&str>> = words.iter().map(Word::as_literal).collect();
    let parsed = options::parse(&program.options, &texts).map_err(|option| unknown(program, &option))?;
    let operands: Vec<usize> = (0..words.len()).filter(|at| parsed.roles[*at] == Role::Operand).collect();
    let globs = operands.iter().filter(|at| texts[**at].is_none()).count();
    let none = vec![false; words.len()];
    match program.operands {
        Operands::None | Operands::Words(_) | Operands::Text => {
            let most = match program.operands {
                Operands::None => 0,
                Operands::Words(most) => most,
                _ => usize::MAX,
            };
            if globs > 0 && program.operands != Operands::Text {
                return Err(pattern_here(program, words));
            }
            if operands.len() > most {
                return Err(too_many(program, most));
            }
            Ok((none, false))
        }
        Operands::Paths(most) => {
            // A pattern may match any number of names.
            if operands.len() > most || (globs > 0 && most == 1) {
                return Err(too_many(program, most));
            }
            Ok((marked(none, &operands), program.looks_around && operands.is_empty()))
        }
        Operands::PatternThenPaths => pattern_then_paths(program, words, &parsed, operands),
        Operands::Own(_) => Ok((none, false)),
    }
}

fn pattern_then_paths(
    program: &Program,
    words: &[Word],
    parsed: &Parsed<'_>,
    mut operands: Vec<usize>,
) -> Result<(Vec<bool>, bool), NotReadOnly> {
    let lists = parsed.has(&["files"]);
    if !lists && !parsed.has(&["e", "regexp"]) {
        if operands.is_empty() {
            return Err(refuse(program, "there is no pattern to search for"));
        }
        let pattern = operands.remove(0);
        if words[pattern].as_literal().is_none() {
            return Err(pattern_here(program, words));
        }
    }
    let recursive = program.looks_around || parsed.has(&["r", "R", "recursive", "dereference-recursive"]);
    Ok((marked(vec![false; words.len()], &operands), recursive && operands.is_empty()))
}

fn marked(mut paths: Vec<bool>, at: &[usize]) -> Vec<bool> {
    at.iter().for_each(|at| paths[*at] = true);
    paths
}

fn too_many(program: &Program, most: usize) -> NotReadOnly {
    match most {
        0 => refuse(program, "it takes no words here"),
        1 => refuse(program, "it takes one path at most; a second one would be written to or mean something else"),
        most => refuse(program, &format!("it takes at most {most} words")),
    }
}

fn pattern_here(program: &Program, words: &[Word]) -> NotReadOnly {
    let word = words.iter().find(|word| word.as_literal().is_none()).map_or("", Word::shown);
    refuse(program, &format!("`{word}` is a pattern over file names, where no path is meant")).or("put it into quotes")
}

fn literals<'w>(program: &Program, words: &'w [Word]) -> Result<Vec<&'w str>, NotReadOnly> {
    words.iter().map(Word::as_literal).collect::<Option<_>>().ok_or_else(|| pattern_here(program, words))
}

fn own_rules(program: &Program, own: SpecialProgram, words: &[Word]) -> Result<(Vec<bool>, bool), NotReadOnly> {
    let none = || vec![false; words.len()];
    match own {
        SpecialProgram::Find => find::paths(words).map_err(|what| refuse(program, &what)),
        SpecialProgram::Echo => {
            let bundles = |text: &str| {
                text.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| "neE".contains(c)))
            };
            let texts = words.iter().map_while(Word::as_literal);
            match texts.take_while(|text| bundles(text)).find(|text| *text != "-n") {
                Some(option) => Err(unknown(program, &format!("`{option}`"))),
                None => Ok((none(), false)),
            }
        }
        SpecialProgram::Printf => {
            let texts = literals(program, words)?;
            let texts = texts.strip_prefix(&["--"]).unwrap_or(&texts);
            match texts.first() {
                None => Err(refuse(program, "there is no format")),
                Some(format) if format.starts_with('-') => Err(unknown(program, &format!("`{format}`"))),
                Some(format) if !Value::Format.fits(format) || stars(format) => {
                    Err(refuse(program, "a width of the format is too large"))
                }
                Some(_) => Ok((none(), false)),
            }
        }
        SpecialProgram::Seq => {
            sequence(&literals(program, words)?).map(|()| (none(), false)).map_err(|what| refuse(program, &what))
        }
        SpecialProgram::Date => {
            let texts = literals(program, words)?;
            let given: Vec<_> = texts.iter().copied().map(Some).collect();
            let parsed = options::parse(&program.options, &given).map_err(|option| unknown(program, &option))?;
            let operands: Vec<_> =
                texts.iter().zip(&parsed.roles).filter(|(_, role)| **role == Role::Operand).collect();
            match operands[..] {
                [] => Ok((none(), false)),
                [(format, _)] if format.starts_with('+') && Value::Format.fits(format) => Ok((none(), false)),
                _ => Err(refuse(program, "an operand other than one `+FORMAT` may set the clock")),
            }
        }
        SpecialProgram::Sed => {
            let texts: Vec<_> = words.iter().map(Word::as_literal).collect();
            let [Some("-n"), Some(script), files @ ..] = &texts[..] else {
                return Err(refuse(program, "only `sed -n 'A,Bp' FILE…` is known to read"));
            };
            if !prints_lines(script) {
                return Err(refuse(program, &format!("`{script}` is not of the form `A,Bp`, `Ap` or `A,$p`")));
            }
            let parsed = options::parse(&program.options, files).map_err(|option| unknown(program, &option))?;
            let mut paths = vec![false, false];
            paths.extend(parsed.roles.iter().map(|role| *role == Role::Operand));
            Ok((paths, false))
        }
        SpecialProgram::Jq => {
            let texts: Vec<_> = words.iter().map(Word::as_literal).collect();
            let parsed = options::parse(&program.options, &texts).map_err(|option| unknown(program, &option))?;
            let operands: Vec<usize> = (0..words.len()).filter(|at| parsed.roles[*at] == Role::Operand).collect();
            let Some((filter, files)) = operands.split_first() else {
                return Err(refuse(program, "there is no filter"));
            };
            let filter = texts[*filter].ok_or_else(|| pattern_here(program, words))?;
            jq::filter(filter).map_err(|what| refuse(program, &what))?;
            Ok((marked(none(), files), false))
        }
        SpecialProgram::Test => {
            let mut texts = literals(program, words)?;
            if program.name == "[" && texts.pop() != Some("]") {
                return Err(refuse(program, "the last word must be `]`"));
            }
            match texts[..] {
                ["-e" | "-f" | "-d" | "-s" | "-r" | "-w" | "-x", _] => Ok((marked(none(), &[1]), false)),
                _ => Err(refuse(program, "only -e, -f, -d, -s, -r, -w and -x with one path are known")),
            }
        }
        SpecialProgram::Cd => match literals(program, words)?[..] {
            [folder] if !folder.is_empty() && !folder.starts_with('-') => Ok((vec![true], false)),
            _ => Err(refuse(program, "it takes one folder and no options")),
        },
        SpecialProgram::CommandV => match literals(program, words)?[..] {
            ["-v", name] if is_name(name) => Ok((none(), false)),
            _ => Err(refuse(program, "only `command -v NAME` is known; it would run a program")),
        },
        SpecialProgram::Type => match literals(program, words)?[..] {
            [name] if is_name(name) => Ok((none(), false)),
            _ => Err(refuse(program, "it takes one name")),
        },
    }
}

/// Whether a conversion takes its width from a word.
fn stars(format: &str) -> bool {
    let mut pieces = format.split('%');
    pieces.next();
    pieces.any(|piece| piece.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #0'.".contains(c)).starts_with('*'))
}

/// Whether `script` is `A,Bp`, `Ap` or `A,$p` with 1 ≤ A.
fn prints_lines(script: &str) -> bool {
    lines_printed(script).is_some()
}

/// First and last line of `A,Bp`, `Ap` or `A,$p`; the last is none for `$`.
#[must_use]
pub fn lines_printed(script: &str) -> Option<(u64, Option<u64>)> {
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    let lines = script.strip_suffix('p')?;
    let (first, last) = match lines.split_once(',') {
        None => (number(lines)?, number(lines)),
        Some((first, "$")) => (number(first)?, None),
        Some((first, last)) => (number(first)?, Some(number(last)?)),
    };
    (first > 0).then_some((first, last))
}

fn is_name(word: &str) -> bool {
    !word.starts_with('-')
        && !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_.+-".contains(c) || c == '[')
}

fn sequence(words: &[&str]) -> Result<(), String> {
    // Fifteen digits are exact as a float.
    let number = |word: &&str| {
        let digits = word.strip_prefix('-').unwrap_or(word);
        let plain = digits.len() <= 15 && digits.starts_with(|c: char| c.is_ascii_digit());
        let good = plain && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
        good.then(|| word.parse::<f64>().ok()).flatten()
    };
    let numbers: Vec<f64> =
        words.iter().map(number).collect::<Option<_>>().ok_or("it takes plain numbers and no options")?;
    let (first, step, last) = match numbers[..] {
        [last] => (1.0, 1.0, last),
        [first, last] => (first, 1.0, last),
        [first, step, last] => (first, step, last),
        _ => return Err("it takes one to three numbers".to_owned()),
    };
    let count = (last - first) / step + 1.0;
    if count.is_finite() && count <= SEQ_MAX {
        Ok(())
    } else {
        Err(format!("it would print more than {SEQ_MAX} numbers"))
    }
}
