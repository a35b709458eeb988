//! What a command runs under wrappers that surely run it and end as it ends: `timeout 60`, `env A=1`, `sudo -u x`.
//!
//! A closed table. What may run it often, later or not at all (`xargs`, `find -exec`, `eval`, `watch`) is none of them.

/// A wrapper, the letters and long names of its options that take the next word, and words of its own before the command.
type Wrapper = (&'static str, &'static str, &'static [&'static str], usize);

const WRAPPERS: [Wrapper; 15] = [
    ("env", "uC", &["unset", "chdir"], 0),
    ("sudo", "ughpCrtTUDR", &["user", "group", "host", "chdir"], 0),
    ("doas", "uC", &[], 0),
    ("timeout", "sk", &["signal", "kill-after"], 1),
    ("gtimeout", "sk", &["signal", "kill-after"], 1),
    ("nice", "n", &["adjustment"], 0),
    ("ionice", "cnpPu", &["class", "classdata"], 0),
    ("stdbuf", "ioe", &["input", "output", "error"], 0),
    ("nohup", "", &[], 0),
    ("setsid", "", &[], 0),
    ("command", "", &[], 0),
    ("exec", "a", &[], 0),
    ("time", "fo", &["format", "output"], 0),
    ("xvfb-run", "enps", &["server-num", "server-args"], 0),
    ("caffeinate", "tw", &[], 0),
];

/// Layers that are taken off.
const LAYERS_MAX: usize = 8;

/// The words of the command itself.
pub(super) fn peeled(argv: &[String]) -> &[String] {
    let mut words = argv;
    for _ in 0..LAYERS_MAX {
        match once(words) {
            Some(inner) => words = inner,
            None => break,
        }
    }
    words
}

/// What `env A=1 command` and the like set for the command.
pub(super) fn assigned(argv: &[String]) -> impl Iterator<Item = &String> {
    let own = argv.len() - peeled(argv).len();
    let wrapped = own > 0 && argv[..own].iter().any(|word| matches!(base(word), "env" | "sudo" | "doas"));
    argv[..own].iter().filter(move |word| wrapped && !word.starts_with('-') && word.contains('='))
}

fn once(argv: &[String]) -> Option<&[String]> {
    let name = base(argv.first()?);
    let (_, valued, long, operands) = WRAPPERS.iter().find(|wrapper| wrapper.0 == name)?;
    let mut at = 1;
    while let Some(word) = argv.get(at) {
        if word == "--" {
            at += 1;
            break;
        }
        if let Some(option) = word.strip_prefix("--") {
            at += if long.contains(&option) { 2 } else { 1 };
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // `command -v x` only looks for it, `env -S` splits a line.
            if (name == "command" && letters.contains(['v', 'V'])) || (name == "env" && letters.starts_with('S')) {
                return None;
            }
            let takes = letters.find(|letter: char| valued.contains(letter));
            at += if takes.is_some_and(|takes| takes + 1 == letters.len()) { 2 } else { 1 };
        } else if matches!(name, "env" | "sudo" | "doas") && word.contains('=') {
            at += 1;
        } else {
            break;
        }
    }
    argv.get(at + operands..).filter(|inner| !inner.is_empty())
}

/// The last name of a program's path.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_surely_runs_and_ends_as_it_does_is_taken_off() {
        let inner = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            peeled(&argv).join(" ")
        };
        for line in [
            "timeout 60 cargo test",
            "timeout -k 5 --signal KILL 60 cargo test",
            "env -u X A=1 B=2 cargo test",
            "sudo -u x nice -n 5 cargo test",
            "/usr/bin/env time -p -- cargo test",
            "stdbuf -oL cargo test",
            "nohup setsid cargo test",
        ] {
            assert_eq!(inner(line), "cargo test", "{line}");
        }
        for line in
            ["xargs cargo test", "find . -exec cargo test ;", "eval cargo test", "command -v cargo", "watch cargo test"]
        {
            assert_eq!(inner(line), line);
        }
    }
}
