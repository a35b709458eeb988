//! Claims about commands: that one ran, that it ended well, what git did. A claim names a command by its program and some
//! of its words in their order, and is judged by that command alone.

use portcullis_command::steps;
use portcullis_event::facts::{ClaimVerdict as V, VerificationVerdict as Verdict};

use super::checked::{Came, Checked};
use super::ends::Ended;
use super::facts::{Command, Facts, cut};
use super::judge::{Found, checks, of_check, passed, passes, weight};
use super::peel::{base, peeled};
use super::runners::{check_of, interpreted};

/// Words that make a command another one, unless they are claimed, too.
const TURNS: [&str; 8] = ["--dry-run", "--help", "-h", "--version", "--list", "--no-run", "--collect-only", "--check"];

/// A command in one form: `./test.sh` as `sh test.sh`, `npm run test` as `npm test`, `python3 -m pytest` as `pytest`.
fn normal(words: &[String]) -> Vec<String> {
    let words = peeled(words);
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let name = base(program);
    let bare: Vec<&str> = rest.iter().map(String::as_str).collect();
    let all = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    if let Some(script) = interpreted(name, &bare) {
        let at = bare.iter().position(|word| *word == script).unwrap_or_default();
        return all(&[&[base(script)], &bare[at + 1..]].concat());
    }
    match (name, bare.as_slice()) {
        ("npm" | "pnpm" | "yarn" | "bun", ["run" | "run-script", rest @ ..]) => all(&[&[name], rest].concat()),
        ("npm", ["t" | "tst", rest @ ..]) => all(&[&["npm", "test"], rest].concat()),
        ("npx" | "bunx" | "pnpx", rest) => all(&rest[rest.iter().take_while(|word| word.starts_with('-')).count()..]),
        (_, ["-m", module, rest @ ..]) if name.starts_with("python") => all(&[&[*module], rest].concat()),
        ("git", ["-C" | "-c", _, rest @ ..]) => all(&[&["git"], rest].concat()),
        (_, [toolchain, rest @ ..]) if toolchain.starts_with('+') => all(&[&[name], rest].concat()),
        _ => all(&[&[name], bare.as_slice()].concat()),
    }
}

/// Whether `had` is the command that is claimed, perhaps with more words than that.
fn is_it(wanted: &[String], had: &[String]) -> bool {
    let Some(((name, wanted), (had_name, had))) = wanted.split_first().zip(had.split_first()) else { return false };
    let mut rest = had.iter();
    name == had_name
        && wanted.iter().all(|word| rest.any(|other| other == word))
        && !had.iter().any(|word| TURNS.contains(&word.as_str()) && !wanted.contains(word))
}

fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A named check passes: judged by its own runs, whatever others came to.
pub(super) fn command_passes(words: &str, facts: &Facts) -> Found {
    let argv = words_of(words);
    let Some(check) = check_of(&argv) else { return ran(words, true, true, facts) };
    let wanted = normal(&argv);
    let target = |checked: &Checked| normal(&words_of(&checked.check.target));
    let exact = facts.checks.iter().any(|checked| target(checked) == wanted && checked.verdict != Verdict::NotRun);
    let about = |checked: &Checked| match exact {
        true => target(checked) == wanted,
        false => is_it(&wanted, &target(checked)),
    };
    let runs = || facts.checks.iter().filter(|checked| about(checked));
    if runs().next().is_none() {
        // Never run by that name: what others came to cannot support it.
        return match passes(check.kind, facts) {
            Found(V::Supported, fact, evidence) => Found(
                V::Unsupported,
                format!("{fact}, and this one is not among the commands that are known"),
                evidence,
            ),
            found => found,
        };
    }
    let found = passed(check.kind, facts, about);
    let part = |checked: &Checked| checked.left_out || (checked.check.narrow && !check.narrow);
    if found.0 == V::Supported && runs().filter(|checked| facts.fresh(checked)).all(part) {
        return Found(V::Unsupported, format!("{}, and ran only some of the tests", found.1), found.2);
    }
    found
}

/// A command ran; with `well`, it succeeded. That a check ran which failed says little if the answer does not `tell` it.
pub(super) fn ran(words: &str, well: bool, tells: bool, facts: &Facts) -> Found {
    let line = words.trim_start_matches("$ ");
    let parts = steps(line).unwrap_or_default();
    if parts.len() < 2 {
        return ran_one(&normal(&words_of(line)), well, tells, facts);
    }
    // Each of them did.
    let all = parts.iter().filter(|step| !step.argv.is_empty());
    let found = all.map(|step| ran_one(&normal(&step.argv), well, tells, facts));
    let worst = found.max_by_key(|found| weight(found.0));
    match worst {
        Some(Found(V::Contradicted, _, evidence)) if evidence.is_empty() => unknown(),
        Some(found) => found,
        None => unknown(),
    }
}

fn unknown() -> Found {
    Found(V::Unsupported, "it is not among the commands that are known".to_owned(), Vec::new())
}

fn ran_one(wanted: &[String], well: bool, tells: bool, facts: &Facts) -> Found {
    let is = |command: &&Command| is_it(wanted, &normal(&command.argv));
    let began = |command: &&Command| is(command) && !matches!(command.came, Came::NotRun(_));
    let last = facts.commands.iter().rfind(began);
    // How it went is said of the last time; that it ran, of any time that it surely did.
    let whole = |command: &&Command| is(command) && command.ran() && !picks_more(&command.argv, wanted);
    let any = || facts.commands.iter().rfind(|command| is(command) && command.ran());
    let run = if well { last } else { facts.commands.iter().rfind(whole).or_else(any).or(last) };
    let Some(command) = run else {
        return match facts.commands.iter().rfind(is) {
            Some(command) => of_command(V::Contradicted, command),
            None if facts.opaque.is_some() || wanted.len() > 3 => unknown(),
            None => Found(V::Contradicted, "no such command ran in this session".to_owned(), Vec::new()),
        };
    };
    let stopped = matches!(command.came, Came::Stopped(_));
    let failed = matches!(command.ended, Ended::Failed | Ended::NotOk) || stopped;
    match command.ended {
        _ if !well && !tells && failed && check_of(&command.argv).is_some() => of_command(V::Unsupported, command),
        // "I ran `pytest`" is not said of `pytest test_a.py`.
        _ if !well && picks_more(&command.argv, wanted) => of_command(V::Unsupported, command),
        _ if !well => of_command(if command.ran() { V::Supported } else { V::Unsupported }, command),
        Ended::Ok => of_command(V::Supported, command),
        _ if failed => of_command(V::Contradicted, command),
        _ => of_command(V::Unsupported, command),
    }
}

/// Whether a command picks tests by words that are not claimed.
fn picks_more(argv: &[String], wanted: &[String]) -> bool {
    let unclaimed = |word: &String| !word.starts_with('-') && !wanted.contains(word);
    check_of(argv).is_some_and(|check| check.narrow) && normal(argv).iter().any(unclaimed)
}

fn of_command(verdict: V, command: &Command) -> Found {
    let words = cut(&command.argv.join(" "));
    let fact = match (&command.came, command.ended) {
        (Came::NotRun(code) | Came::Stopped(code) | Came::Unclear(code), _) => format!("`{words}` came to {code}"),
        (Came::Happened, _) => format!("`{words}` ran, and nobody knows how it ended"),
        (Came::Ended(_), Ended::Ok) => format!("`{words}` succeeded"),
        (Came::Ended(exit), Ended::Failed) => format!("`{words}` ended with exit code {exit}"),
        (Came::Ended(exit), _) => format!("`{words}` was part of a line that ended with exit code {exit}"),
    };
    Found(verdict, fact, vec![command.evidence])
}

/// `verb` of git; with `all`, nothing is left that it was not done to.
pub(super) fn git(verb: &str, all: bool, facts: &Facts) -> Found {
    let of = |command: &&Command| command.git.as_deref() == Some(verb);
    let known = |command: &&Command| command.ended == Ended::Ok;
    if let Some(at) = facts.commands.iter().rposition(|command| of(&command) && known(&command)) {
        let (command, later) = (&facts.commands[at], &facts.commands[at + 1..]);
        let words = cut(&command.argv.join(" "));
        let back = later.iter().find(|one| one.uncommits && !matches!(one.ended, Ended::Failed | Ended::NotOk));
        if let Some(back) = back.filter(|_| verb == "commit") {
            let fact = format!("`{words}` succeeded, and then `{}` ran", cut(&back.argv.join(" ")));
            return Found(V::Unsupported, fact, vec![command.evidence, back.evidence]);
        }
        // What was changed since is in no commit.
        let since = facts.mutated.filter(|(at, _)| *at > command.at);
        let only_since = facts.first_mutated.is_none_or(|first| first > command.at);
        if let Some((_, evidence)) = since.filter(|_| all || only_since) {
            let fact = format!("`{words}` succeeded, and then something was changed");
            return Found(V::Stale, fact, vec![command.evidence, evidence]);
        }
        return Found(V::Supported, format!("`{words}` succeeded"), vec![command.evidence]);
    }
    match facts.commands.iter().rfind(of) {
        Some(command) if command.ended == Ended::Unknown && !matches!(command.came, Came::NotRun(_)) => {
            of_command(V::Unsupported, command)
        }
        Some(command) => of_command(V::Contradicted, command),
        None if facts.opaque.is_some() => {
            Found(V::Unsupported, format!("no `git {verb}` is among the commands that are known"), Vec::new())
        }
        None => Found(V::Contradicted, format!("no `git {verb}` ran in this session"), Vec::new()),
    }
}

/// What passes here says nothing about another machine; what fails here fails there. A command that asks it and ends as
/// it ended, or runs what it would run, is evidence.
pub(super) fn ci(facts: &Facts) -> Found {
    if let Some(command) = facts.commands.iter().rfind(|command| asks_ci(&command.argv)) {
        return match command.ended {
            Ended::Ok => of_command(V::Supported, command),
            Ended::Failed => of_command(V::Contradicted, command),
            // It may never have been asked.
            Ended::NotOk | Ended::Unknown => of_command(V::Unsupported, command),
        };
    }
    match checks(facts) {
        Found(V::Contradicted, fact, evidence) => Found(V::Contradicted, fact, evidence),
        Found(..) => Found(V::Unsupported, "nothing in this session looked at a CI".to_owned(), Vec::new()),
    }
}

/// `gh pr checks`, `gh run watch --exit-status`, `make ci`; not `npm ci`, which installs, nor `gh run list`, which ends
/// well whatever it lists.
fn asks_ci(argv: &[String]) -> bool {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let Some((program, rest)) = words.split_first() else { return false };
    let is_ci = |word: &&str| word.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == "ci");
    match (base(program), rest) {
        ("gh", ["pr", "checks", ..]) => true,
        ("gh", ["run", "watch" | "view", ..]) => rest.contains(&"--exit-status"),
        ("make" | "gmake" | "just" | "task" | "rake", targets) => targets.iter().any(is_ci),
        ("npm" | "pnpm" | "yarn" | "bun", ["run" | "run-script", script, ..]) => is_ci(script),
        (name, rest) => interpreted(name, rest).is_some_and(|script| is_ci(&base(script))),
    }
}

/// The last run of a check that a `ran` without an outcome is about.
pub(super) fn untold(check: &Checked, tells: bool) -> Found {
    let failed = check.verdict == Verdict::Failed || check.not_passed;
    of_check(if !check.ran || (failed && !tells) { V::Unsupported } else { V::Supported }, check)
}
