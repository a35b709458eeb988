//! A line as the steps it consists of, for whoever asks afterwards what of it ran and how it ended.
//!
//! Not for deciding: a word that is not literal is given as it is written. A line with any other grammar than words,
//! redirections, `|`, `;`, `&&` and `||` has no steps.

use brush_parser::Token;

use super::line::{self, is_arrow, is_number};
use super::{screen, word};

/// Steps that are kept of one line; a longer one has none.
const STEPS_MAX: usize = 64;

/// Words at the place of a command that open a block.
const BLOCKS: [&str; 14] =
    ["if", "then", "else", "elif", "fi", "while", "until", "for", "do", "done", "case", "function", "{", "[["];

/// How a step hangs on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    First,
    /// `;` or a new line.
    Always,
    /// `&&`
    IfOk,
    /// `||`
    IfNot,
    /// `|`
    Piped,
}

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub joined: Joined,
    /// Its words, without assignments before them; none if there is nothing else.
    pub argv: Vec<String>,
    /// `!` stands before its pipeline.
    pub negated: bool,
    /// Files that it writes by redirection.
    pub writes: Vec<String>,
    /// `NAME=value` before its words, as they are written.
    pub assigned: Vec<String>,
}

impl Step {
    fn new(joined: Joined) -> Self {
        Self { joined, argv: Vec::new(), negated: false, writes: Vec::new(), assigned: Vec::new() }
    }
}

/// Cuts a line into its steps.
#[must_use]
pub fn steps(line: &str) -> Option<Vec<Step>> {
    screen::bounded(line).ok()?;
    let tokens = line::tokens(line).ok()?;
    let mut steps = Vec::new();
    let mut step = Step::new(Joined::First);
    let mut blank = true;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            Token::Word(raw, span) => {
                let arrow = matches!(tokens.get(at), Some(Token::Operator(arrow, next))
                    if is_arrow(arrow) && is_number(raw) && next.start.index == span.end.index);
                let text = word::read(raw).map_or_else(|_| raw.clone(), |word| word.shown().to_owned());
                blank = false;
                if arrow {
                    continue;
                }
                if step.argv.is_empty() && is_assignment(raw) {
                    step.assigned.push(text);
                } else if step.argv.is_empty() && raw == "!" {
                    step.negated = !step.negated;
                } else if step.argv.is_empty() && BLOCKS.contains(&raw.as_str()) {
                    return None;
                } else {
                    step.argv.push(text);
                }
            }
            Token::Operator(arrow, _) if is_arrow(arrow) => {
                let Some(Token::Word(target, _)) = tokens.get(at) else { return None };
                blank = false;
                // The tokens of a here-document are its word, its text and its word again.
                at += if matches!(arrow.as_str(), "<<" | "<<-") { 3 } else { 1 };
                let target = word::read(target).map_or_else(|_| target.clone(), |word| word.shown().to_owned());
                if arrow.contains('>') && !is_number(&target) && target != "-" && target != "/dev/null" {
                    step.writes.push(target);
                }
            }
            Token::Operator(operator, _) => {
                let joined = match operator.as_str() {
                    ";" | "\n" => Joined::Always,
                    "&&" => Joined::IfOk,
                    "||" => Joined::IfNot,
                    "|" | "|&" => Joined::Piped,
                    _ => return None,
                };
                if blank {
                    // An empty line, or a list that goes on in the next one.
                    if operator == "\n" {
                        continue;
                    }
                    return None;
                }
                steps.push(std::mem::replace(&mut step, Step::new(joined)));
                blank = true;
                if steps.len() > STEPS_MAX {
                    return None;
                }
            }
        }
    }
    match step.joined {
        _ if !blank => steps.push(step),
        Joined::First | Joined::Always => {}
        Joined::IfOk | Joined::IfNot | Joined::Piped => return None,
    }
    Some(steps)
}

/// `NAME=value`, or `NAME+=value`.
fn is_assignment(raw: &str) -> bool {
    raw.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(line: &str) -> Option<Vec<(Joined, String)>> {
        Some(steps(line)?.into_iter().map(|step| (step.joined, step.argv.join(" "))).collect())
    }

    #[test]
    fn a_line_is_cut_at_its_operators() {
        let expected = [
            (Joined::First, "cd a b"),
            (Joined::IfOk, "cargo test"),
            (Joined::Piped, "tail -5"),
            (Joined::IfNot, "true"),
            (Joined::Always, "echo x;y"),
            (Joined::Always, "ls"),
        ];
        let line = "cd 'a b' &&\nA=1 B= cargo test 2>&1 | tail -5 || true; echo 'x;y'\nls >/dev/null # done";
        let expected: Vec<_> = expected.into_iter().map(|(joined, words)| (joined, words.to_owned())).collect();
        assert_eq!(shape(line), Some(expected));
    }

    #[test]
    fn assignments_stand_beside_the_words() {
        let steps = steps("A=1 B='x y' make test; C=2").expect("flat");
        assert_eq!(steps[0].assigned, ["A=1", "B=x y"]);
        assert_eq!((steps[1].argv.len(), steps[1].assigned.as_slice()), (0, ["C=2".to_owned()].as_slice()));
    }

    #[test]
    fn files_written_are_named_and_here_documents_are_no_commands() {
        let steps = steps("cat > a.txt <<'EOF'\nrm -rf x\nEOF\nmake >> log 2>err").expect("flat");
        assert_eq!(steps.iter().map(|step| step.argv.join(" ")).collect::<Vec<_>>(), ["cat", "make"]);
        assert_eq!(steps[0].writes, ["a.txt"]);
        assert_eq!(steps[1].writes, ["log", "err"]);
    }

    #[test]
    fn any_other_grammar_has_no_steps() {
        for line in [
            "(a)",
            "a &",
            "if a; then b; fi",
            "for x in y; do z; done",
            "{ a; }",
            "a &&",
            "| a",
            "a ;; b",
            "f() { a; }",
        ] {
            assert_eq!(steps(line), None, "{line}");
        }
        assert_eq!(steps(&"a;".repeat(100)), None);
    }
}
