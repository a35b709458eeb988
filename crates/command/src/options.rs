//! Options as GNU programs read them, held against a list of those that are known. What is not on the
//! list is refused: an unknown letter in a bundle, an abbreviated long name, a value where none belongs.

use super::path_text;

/// What an option's value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Anything: a pattern, a separator.
    Text,
    /// A count, with the sign and unit that `head -c -1K` has.
    Count,
    /// Digits.
    Number,
    /// Fields of `cut`.
    Ranges,
    /// A key of `sort`.
    Key,
    /// A unit scale of `numfmt`.
    Scale,
    /// A word of letters and digits, such as a type of `rg` or a format of `od`.
    Name,
    /// A format, in which no width is large.
    Format,
    /// Names of files whose content is shown: none that says that it holds secrets.
    Names,
}

/// Digits in a row that a format may hold: a width of a million prints a million blanks.
const WIDTH_DIGITS: usize = 4;

impl Value {
    pub fn fits(self, text: &str) -> bool {
        let all = |text: &str, good: &dyn Fn(char) -> bool| !text.is_empty() && text.chars().all(good);
        match self {
            Self::Text => true,
            Self::Number => all(text, &|c| c.is_ascii_digit()),
            Self::Count => {
                let digits = text.trim_start_matches(['+', '-']);
                let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit());
                text.len() - digits.len() <= 1
                    && digits.len() > unit.len()
                    && unit.len() <= 3
                    && unit.chars().all(|c| c.is_ascii_alphabetic())
            }
            Self::Ranges => all(text, &|c| c.is_ascii_digit() || matches!(c, ',' | '-')),
            Self::Key => all(text, &|c| c.is_ascii_digit() || ",.bdfghiMnrV".contains(c)),
            Self::Scale => matches!(text, "none" | "auto" | "si" | "iec" | "iec-i"),
            Self::Name => all(text, &|c| c.is_ascii_alphanumeric()),
            Self::Names => !path_text::picks_secret(text),
            Self::Format => {
                let mut run = 0;
                text.chars().all(|c| {
                    run = if c.is_ascii_digit() { run + 1 } else { 0 };
                    run <= WIDTH_DIGITS
                })
            }
        }
    }
}

/// The options of one program.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Letters that stand alone.
    pub flags: &'static str,
    /// Letters with a value, attached or in the next word.
    pub valued: &'static [(char, Value)],
    /// Whole long names, without a value.
    pub long: &'static [&'static str],
    /// Whole long names, with a value after `=` or in the next word.
    pub long_valued: &'static [(&'static str, Value)],
    /// `-20`, as `head` has it.
    pub number: bool,
}

pub const NONE: Options = Options { flags: "", valued: &[], long: &[], long_valued: &[], number: false };

/// A word after its place is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An option, or `--`.
    Option,
    /// The value of the option before it.
    Value,
    Operand,
}

/// Which options were given, and what each word is.
#[derive(Debug, Default)]
pub struct Parsed<'w> {
    pub roles: Vec<Role>,
    /// By letter or long name, with its value.
    pub given: Vec<(String, Option<&'w str>)>,
}

impl Parsed<'_> {
    pub fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|(name, _)| names.contains(&name.as_str()))
    }
}

/// Sorts `words` as GNU getopt does: options may stand after operands, until `--`. A word that is not
/// literal (`None`) can only be an operand.
///
/// # Errors
/// The word that is not understood.
pub fn parse<'w>(options: &Options, words: &[Option<&'w str>]) -> Result<Parsed<'w>, String> {
    let mut parsed = Parsed::default();
    let mut at = 0;
    let mut ended = false;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(word) = *word else {
            parsed.roles.push(Role::Operand);
            continue;
        };
        if ended || word == "-" || !word.starts_with('-') {
            parsed.roles.push(Role::Operand);
            continue;
        }
        parsed.roles.push(Role::Option);
        if word == "--" {
            ended = true;
            continue;
        }
        // Set if the value is the next word.
        let awaited = if let Some(long) = word.strip_prefix("--") {
            long_option(options, long, &mut parsed)?
        } else {
            bundle(options, word, &mut parsed)?
        };
        if let Some((name, value)) = awaited {
            let next = words.get(at).copied().flatten().ok_or_else(|| format!("`{word}` has no value"))?;
            checked(word, value, next)?;
            parsed.roles.push(Role::Value);
            parsed.given.push((name, Some(next)));
            at += 1;
        }
    }
    Ok(parsed)
}

fn checked(option: &str, value: Value, text: &str) -> Result<(), String> {
    if value.fits(text) { Ok(()) } else { Err(format!("`{text}` as a value of `{option}`")) }
}

type AwaitedValue = Option<(String, Value)>;

fn long_option<'w>(options: &Options, text: &'w str, parsed: &mut Parsed<'w>) -> Result<AwaitedValue, String> {
    let (name, attached) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if attached.is_none() && options.long.contains(&name) {
        parsed.given.push((name.to_owned(), None));
        return Ok(None);
    }
    let Some((_, value)) = options.long_valued.iter().find(|(known, _)| *known == name) else {
        return Err(format!("`--{text}`"));
    };
    match attached {
        None => Ok(Some((name.to_owned(), *value))),
        Some(text) => {
            checked(&format!("--{name}"), *value, text)?;
            parsed.given.push((name.to_owned(), Some(text)));
            Ok(None)
        }
    }
}

fn bundle<'w>(options: &Options, word: &'w str, parsed: &mut Parsed<'w>) -> Result<AwaitedValue, String> {
    let letters = &word[1..];
    if options.number && letters.bytes().all(|b| b.is_ascii_digit()) {
        parsed.given.push(("number".to_owned(), Some(letters)));
        return Ok(None);
    }
    for (at, letter) in letters.char_indices() {
        if options.flags.contains(letter) {
            parsed.given.push((letter.to_string(), None));
            continue;
        }
        let Some((_, value)) = options.valued.iter().find(|(known, _)| *known == letter) else {
            return Err(format!("`-{letter}` of `{word}`"));
        };
        let rest = &letters[at + letter.len_utf8()..];
        if rest.is_empty() {
            return Ok(Some((letter.to_string(), *value)));
        }
        checked(&format!("-{letter}"), *value, rest)?;
        parsed.given.push((letter.to_string(), Some(rest)));
        return Ok(None);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SORTISH: Options = Options {
        flags: "un",
        valued: &[('k', Value::Key)],
        long: &["unique"],
        long_valued: &[("key", Value::Key)],
        number: false,
    };

    fn roles(words: &[&str]) -> Result<Vec<Role>, String> {
        let words: Vec<_> = words.iter().map(|word| Some(*word)).collect();
        parse(&SORTISH, &words).map(|parsed| parsed.roles)
    }

    #[test]
    fn h03_only_whole_known_options_pass_wherever_they_stand() {
        use Role::{Operand, Option, Value};
        assert_eq!(
            roles(&["-un", "a", "-k2", "-k", "2", "--", "-o"]),
            Ok(vec![Option, Operand, Option, Option, Value, Option, Operand])
        );
        assert_eq!(
            roles(&["--key=2", "--key", "2", "-", "--unique"]),
            Ok(vec![Option, Option, Value, Operand, Option])
        );
        for bad in [
            &["-o", "x"][..],
            &["-uo", "x"],
            &["a", "-o", "x"],
            &["--uniqu"],
            &["--unique=yes"],
            &["--ke=2"],
            &["-k"],
            &["-k", "/etc/passwd"],
            &["-n20"],
            &["-20"],
        ] {
            assert!(roles(bad).is_err(), "{bad:?}");
        }
    }
}
