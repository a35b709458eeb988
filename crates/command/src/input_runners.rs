//! Commands that run what they are given as input: `xargs env`, `find -exec {}`.

use super::marks::{self, OpenExtent};
use super::shell::{self, is_shell};
use super::unwrap::{self, Inner, base};

/// Stands for what comes from the input. No line that is analysed holds it.
const GIVEN: &str = "\u{1}";

/// Wrappers around wrappers that are followed.
const DEPTH_MAX: usize = 6;

/// Whether the name of a program, or a line for a shell, comes from the input or from the names of files.
pub(super) fn runs_its_input(name: &str, words: &[String]) -> bool {
    match name {
        "xargs" | "gxargs" => xargs(name, words),
        "find" | "gfind" => unwrap::inner(&with_name(name, words)).into_iter().any(|inner| match inner {
            Inner::Argv(command) => leads(&filled(&command, "{}"), 0),
            _ => false,
        }),
        "parallel" => {
            let mut own = words.iter().take_while(|word| !word.starts_with(":::"));
            let command = own.find(|word| !word.starts_with('-') && !word.bytes().all(|byte| byte.is_ascii_digit()));
            command.is_none_or(|command| command.starts_with('{') || unwrap::wraps(command))
        }
        _ => false,
    }
}

/// What a command is run with, where its caller fills in what it is given: `git` of `xargs git` gets any further words.
pub(super) fn filled_in(argv: &[String], mut form: Vec<String>) -> Vec<String> {
    let Some((program, words)) = argv.split_first() else { return form };
    let name = base(program);
    let appends = matches!(name, "xargs" | "gxargs" | "parallel" | "sem" | "rush");
    if !appends && !matches!(name, "find" | "gfind" | "fd" | "fdfind") {
        return form;
    }
    let own = &words[..words.len().saturating_sub(form.len())];
    let mut names = if matches!(name, "xargs" | "gxargs") { holes(own) } else { Vec::new() };
    names.push("{}");
    for word in &mut form {
        if marks::of(word).is_none() && names.iter().any(|hole| word.contains(hole)) {
            *word = marks::mark(std::mem::take(word), OpenExtent::One);
        }
    }
    if appends {
        form.push(marks::mark(String::new(), OpenExtent::Many));
    }
    form
}

fn with_name(name: &str, words: &[String]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(words.iter().cloned()).collect()
}

fn filled(command: &[String], hole: &str) -> Vec<String> {
    command.iter().map(|word| word.replace(hole, GIVEN)).collect()
}

fn xargs(name: &str, words: &[String]) -> bool {
    unwrap::inner(&with_name(name, words)).into_iter().any(|inner| {
        let Inner::Argv(mut command) = inner else { return true };
        let own = &words[..words.len().saturating_sub(command.len())];
        for hole in holes(own) {
            command = filled(&command, hole);
        }
        command.push(GIVEN.to_owned());
        leads(&command, 0)
    })
}

/// What its options say stands for a line of input.
fn holes(own: &[String]) -> Vec<&str> {
    let mut out = Vec::new();
    for (at, word) in own.iter().enumerate() {
        let attached = ["-I", "-i", "-J", "--replace="].iter().find_map(|option| word.strip_prefix(option));
        match attached {
            Some("") => {
                out.push("{}");
                out.extend(own.get(at + 1).map(String::as_str).filter(|hole| !hole.is_empty()));
            }
            Some(hole) => out.push(hole),
            None if word.starts_with('-') && !word.starts_with("--") && word.contains(['I', 'i', 'J']) => {
                out.push("{}");
                out.extend(word.split(['I', 'i', 'J']).next_back().filter(|hole| !hole.is_empty()));
                out.extend(own.get(at + 1).map(String::as_str).filter(|hole| !hole.is_empty()));
            }
            None if word.starts_with("--repl") => out.push("{}"),
            None => {}
        }
    }
    out
}

/// Whether what is run begins with what was given.
fn leads(command: &[String], depth: usize) -> bool {
    let Some((program, words)) = command.split_first() else { return false };
    if program.contains(GIVEN) || depth > DEPTH_MAX {
        return true;
    }
    if is_shell(base(program)) && shell::lines(words).iter().any(|line| line.contains(GIVEN)) {
        return true;
    }
    unwrap::inner(command).into_iter().any(|inner| match inner {
        Inner::Argv(command) => leads(&command, depth + 1),
        Inner::Line(line) => line.contains(GIVEN),
        Inner::Cut => true,
    })
}
