//! The parser, within limits: it is given no line on which it would take long.

use brush_parser::ast::Program;
use brush_parser::{ParserOptions, Token, parse_tokens};
use tracing::dispatcher::{Dispatch, with_default};

use super::{line, screen};

/// Brackets and words that open a block. The parser tries again at each, so that its time doubles with
/// every one that does not end.
const BLOCKS_MAX: usize = 12;
const CASES_MAX: usize = 4;

/// Brackets in one word: the parser descends at each, in case it is the index of an array.
const BRACKETS_MAX: usize = 32;

/// The grammar of a line, or why there is none.
pub(super) fn parse(text: &str) -> Result<Program, String> {
    screen::bounded(text).map_err(|why| why.to_string())?;
    let tokens = line::tokens(text)?;
    let (mut blocks, mut cases) = (0, 0);
    for token in &tokens {
        match token {
            Token::Operator(text, _) => blocks += usize::from(text.contains('(')),
            Token::Word(text, _) => {
                if text.bytes().filter(|byte| *byte == b'[').count() > BRACKETS_MAX {
                    return Err("a word holds too many brackets to be analysed".to_owned());
                }
                cases += usize::from(text == "case");
                let opens = ["if", "while", "until", "for", "select", "{", "[[", "function", "coproc", "case", "!"];
                blocks += usize::from(opens.contains(&text.as_str()) || text.contains('('));
            }
        }
    }
    if blocks > BLOCKS_MAX || cases > CASES_MAX {
        return Err("the line nests too deeply to be analysed".to_owned());
    }
    // The parser tells a debugging subscriber every word of the line, and a word may be a secret.
    let parsed = with_default(&Dispatch::none(), || parse_tokens(&tokens, &ParserOptions::default()));
    parsed.map_err(|_| "the line cannot be parsed".to_owned())
}
