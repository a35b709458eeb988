//! The script of a project that a command would run, quoted for whoever is asked (tool-contract 13.4): `npm test` runs
//! `scripts.test` of the nearest `package.json`. The text comes from the project, so it is untrusted.

use serde_json::Value;

/// Lines of one quotation; the rest of the file is bound all the same.
const LINES: usize = 12;

/// A quoted script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quoted {
    /// Such as `scripts.test of /workspace/package.json`.
    pub(super) name: String,
    /// What is shown.
    pub(super) text: String,
    /// What the approval is bound to: the text, or all of its file where other lines of it count as well.
    pub(super) whole: String,
}

/// A file of a project: its canonical path and its text. `None` if there is none that may be read.
pub(super) type Read<'r> = &'r dyn Fn(&str) -> Option<(String, String)>;

/// What the commands of a line would run of the project. `cwd` is a virtual path.
pub(super) fn quoted(commands: &[Vec<String>], cwd: &str, read: Read<'_>) -> Vec<Quoted> {
    let mut out: Vec<Quoted> = Vec::new();
    for argv in commands {
        let Some((program, words)) = argv.split_first() else { continue };
        let found = match program.rsplit('/').next().unwrap_or_default() {
            name @ ("npm" | "pnpm" | "yarn" | "bun") => package(name, words, cwd, read),
            "make" | "gmake" => make(words, cwd, read),
            "just" => recipe(words, cwd, &["justfile", ".justfile", "Justfile"], "just", read),
            "task" => recipe(words, cwd, &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml"], "task", read),
            "cargo" => alias(words, cwd, read),
            _ => Vec::new(),
        };
        for one in found {
            if !out.iter().any(|known| known.name == one.name) {
                out.push(one);
            }
        }
    }
    out
}

/// Words that are no options, and the folder that an option of `folders` names.
fn plain<'w>(words: &'w [String], folders: &[&str], valued: &[&str]) -> (Vec<&'w str>, Option<&'w str>) {
    let (mut plain, mut folder) = (Vec::new(), None);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if folders.contains(&word) {
            folder = words.next();
        } else if valued.contains(&word) {
            words.next();
        } else if let Some((_, value)) = word.split_once('=').filter(|(option, _)| folders.contains(option)) {
            folder = Some(value);
        } else if let Some(value) = folders.iter().find_map(|option| short(option, word)) {
            folder = Some(value);
        } else if !word.starts_with('-') {
            plain.push(word);
        }
    }
    (plain, folder)
}

/// The value of `-Cdir`.
fn short<'w>(option: &str, word: &'w str) -> Option<&'w str> {
    let is_short = option.len() == 2 && !option.starts_with("--");
    is_short.then(|| word.strip_prefix(option)).flatten().filter(|value| !value.is_empty())
}

fn joined(cwd: &str, folder: Option<&str>) -> String {
    match folder {
        Some(folder) if folder.starts_with('/') => folder.to_owned(),
        Some(folder) => format!("{cwd}/{folder}"),
        None => cwd.to_owned(),
    }
}

/// The nearest of these files in the folder or above it.
fn nearest(folder: &str, names: &[&str], read: Read<'_>) -> Option<(String, String)> {
    let mut folder = folder.trim_end_matches('/');
    loop {
        if let Some(found) = names.iter().find_map(|name| read(&format!("{folder}/{name}"))) {
            return Some(found);
        }
        folder = folder.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty())?;
    }
}

/// Scripts that installing packages runs of the project itself.
const INSTALLING: [&str; 7] =
    ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"];

fn package(program: &str, words: &[String], cwd: &str, read: Read<'_>) -> Vec<Quoted> {
    let folders = ["--prefix", "-C", "--cwd", "--dir"];
    let (words, folder) = plain(words, &folders, &["-w", "--workspace", "--filter", "-F", "--loglevel"]);
    let verb = words.first().copied().unwrap_or(if program == "yarn" { "install" } else { "" });
    let named: Vec<String> = match verb {
        "run" | "run-script" | "rum" | "urn" | "workspace" => {
            words.iter().skip(1).map(|name| (*name).to_owned()).collect()
        }
        "test" | "t" | "tst" if program != "bun" => vec!["test".to_owned()],
        "restart" => ["stop", "restart", "start"].map(str::to_owned).into(),
        "i" | "in" | "install" | "ci" | "add" | "rebuild" | "it" | "cit" | "pack" | "publish" | "link" => {
            INSTALLING.map(str::to_owned).into()
        }
        other => vec![other.to_owned()],
    };
    let Some((path, text)) = nearest(&joined(cwd, folder), &["package.json"], read) else { return Vec::new() };
    let Ok(package) = serde_json::from_str::<Value>(&text) else { return Vec::new() };
    let around = named.into_iter().flat_map(|name| [format!("pre{name}"), name.clone(), format!("post{name}")]);
    let scripts = around.filter_map(|name| {
        let text = package.get("scripts")?.get(&name)?.as_str()?.to_owned();
        Some(Quoted { name: format!("scripts.{name} of {path}"), whole: text.clone(), text })
    });
    let mut out: Vec<Quoted> = Vec::new();
    for one in scripts {
        if !out.contains(&one) {
            out.push(one);
        }
    }
    out
}

fn make(words: &[String], cwd: &str, read: Read<'_>) -> Vec<Quoted> {
    let (_, file) = plain(words, &["-f", "--file", "--makefile"], &["-C", "--directory", "-I", "-j"]);
    let (words, folder) = plain(words, &["-C", "--directory"], &["-f", "--file", "--makefile", "-I", "-o", "-W"]);
    let folder = joined(cwd, folder);
    let found = match file {
        Some(file) => read(&joined(&folder, Some(file))),
        None => ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| read(&format!("{folder}/{name}"))),
    };
    let Some((path, text)) = found else { return Vec::new() };
    let targets: Vec<&str> = words.into_iter().filter(|word| !word.contains('=')).collect();
    let first = || {
        let mut heads = text.lines().filter_map(|line| line.split_once(':')).map(|(names, _)| names);
        heads.find(|names| names.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '/'))
    };
    let targets = if targets.is_empty() { first().into_iter().collect() } else { targets };
    let one = |target: &str| {
        let is_head = |line: &&str| {
            let names = line.split_once(':').map(|(names, _)| names);
            !line.starts_with(['\t', '#', '.', ' '])
                && names.is_some_and(|names| names.split_whitespace().any(|n| n == target))
        };
        let recipe = text.lines().skip_while(|line| !is_head(line));
        let mut recipe = recipe.enumerate().take_while(|(at, line)| *at == 0 || line.starts_with('\t')).map(|(_, l)| l);
        let shown: Vec<&str> = recipe.by_ref().take(LINES).collect();
        match shown.len() {
            0 => "no recipe of that name stands in this file; a pattern or an included file may have one".to_owned(),
            _ => cut(shown, recipe.count()),
        }
    };
    let quoted = targets.iter().map(|target| {
        let name = format!("recipe `{}` of {path}", target.trim());
        Quoted { name, text: one(target.trim()), whole: text.clone() }
    });
    quoted.collect()
}

fn cut(shown: Vec<&str>, more: usize) -> String {
    let mut text = shown.join("\n");
    if more > 0 {
        text.push_str(&format!("\n… ({more} lines more)"));
    }
    text
}

/// A recipe of a file in which its name stands at the beginning of a line, before a colon.
fn recipe(words: &[String], cwd: &str, files: &[&str], program: &str, read: Read<'_>) -> Vec<Quoted> {
    let folders = ["-d", "--dir", "--working-directory", "-f", "--justfile", "-t", "--taskfile"];
    let (words, _) = plain(words, &folders, &["--set", "--shell"]);
    let Some((path, text)) = nearest(cwd, files, read) else { return Vec::new() };
    let wanted = words.first().copied().unwrap_or("default");
    let is_head = |line: &&str| {
        let head = line.trim().trim_start_matches('@').split_once(':').map(|(head, _)| head);
        head.and_then(|head| head.split_whitespace().next()) == Some(wanted)
    };
    let depth = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(is_head) else { return Vec::new() };
    let own = depth(lines[at]);
    let mut body = lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || depth(line) > own).copied();
    let mut shown = vec![lines[at]];
    shown.extend(body.by_ref().take(LINES));
    let text = cut(shown, body.count());
    vec![Quoted { name: format!("{program} recipe `{wanted}` of {path}"), text, whole: lines.join("\n") }]
}

/// An alias of cargo.
fn alias(words: &[String], cwd: &str, read: Read<'_>) -> Vec<Quoted> {
    let (words, _) = plain(words, &["-C", "--manifest-path"], &["--config", "-Z", "--color"]);
    let Some(verb) = words.first().filter(|word| !word.starts_with('+')).or(words.get(1)) else { return Vec::new() };
    let Some((path, text)) = nearest(cwd, &[".cargo/config.toml", ".cargo/config"], read) else { return Vec::new() };
    let mut inside = false;
    let found = text.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            inside = line == "[alias]";
            return None;
        }
        let (name, value) = line.split_once('=')?;
        let name = name.trim().trim_matches('"');
        let is = (inside && name == *verb) || name.strip_prefix("alias.").is_some_and(|name| name == *verb);
        is.then(|| value.trim().to_owned())
    });
    let quoted = found.map(|text| Quoted { name: format!("alias `{verb}` of {path}"), whole: text.clone(), text });
    quoted.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote(files: &[(&str, &str)], cwd: &str, line: &str) -> Vec<(String, String)> {
        let read = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        };
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        quoted(&[argv], cwd, &read).into_iter().map(|one| (one.name, one.text)).collect()
    }

    fn one(name: &str, text: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), text.to_owned())]
    }

    #[test]
    fn a_script_of_the_nearest_package_is_quoted_with_what_runs_around_it() {
        let files = [
            ("/workspace/package.json", r#"{"scripts": {"test": "jest", "posttest": "curl x", "build": "tsc"}}"#),
            ("/workspace/b/package.json", r#"{"scripts": {"test": "other"}}"#),
        ];
        let test = [
            ("scripts.test of /workspace/package.json".to_owned(), "jest".to_owned()),
            ("scripts.posttest of /workspace/package.json".to_owned(), "curl x".to_owned()),
        ];
        for line in ["npm test", "npm run test", "npm t", "pnpm test", "yarn test", "npm --silent run test -- --watch"]
        {
            assert_eq!(quote(&files, "/workspace/a", line), test, "{line}");
        }
        assert_eq!(
            quote(&files, "/workspace", "npm --prefix b test"),
            one("scripts.test of /workspace/b/package.json", "other")
        );
        assert_eq!(quote(&files, "/workspace", "yarn build"), one("scripts.build of /workspace/package.json", "tsc"));
        assert_eq!(quote(&files, "/workspace", "npm ls"), []);
        let files = [("/workspace/package.json", r#"{"scripts": {"postinstall": "node x"}}"#)];
        for line in ["npm ci", "npm install left-pad", "pnpm i", "yarn"] {
            assert_eq!(
                quote(&files, "/workspace", line),
                one("scripts.postinstall of /workspace/package.json", "node x")
            );
        }
    }

    #[test]
    fn a_recipe_of_a_makefile_is_quoted() {
        let files =
            [("/workspace/Makefile", "X = 1\nall: build\n\techo all\n\nbuild test:\n\tcc x.c\n\t./a.out\nend:\n")];
        let build = one("recipe `build` of /workspace/Makefile", "build test:\n\tcc x.c\n\t./a.out");
        for line in ["make build", "make -j4 build CFLAGS=-O2", "make -s -C /workspace build", "make -f Makefile build"]
        {
            let shown = quote(&files, "/workspace", line);
            assert_eq!(shown.first().map(|(_, text)| text), build.first().map(|(_, text)| text), "{line}");
        }
        assert_eq!(
            quote(&files, "/workspace", "make"),
            one("recipe `all` of /workspace/Makefile", "all: build\n\techo all")
        );
        assert!(quote(&files, "/workspace", "make other")[0].1.starts_with("no recipe"));
    }

    #[test]
    fn recipes_of_just_and_task_and_aliases_of_cargo_are_quoted() {
        let files = [
            ("/workspace/justfile", "a:\n    echo a\ntest X='1': a\n    cargo test\n    rm x\nb:\n"),
            ("/workspace/Taskfile.yml", "tasks:\n  test:\n    cmds:\n      - go test\n  other:\n    cmds: [x]\n"),
            ("/workspace/.cargo/config.toml", "[build]\njobs = 1\n[alias]\nxtask = \"run -p xtask --\"\n"),
        ];
        let just = quote(&files, "/workspace/a", "just test");
        assert_eq!(just, one("just recipe `test` of /workspace/justfile", "test X='1': a\n    cargo test\n    rm x"));
        let task = quote(&files, "/workspace", "task test");
        assert_eq!(task, one("task recipe `test` of /workspace/Taskfile.yml", "  test:\n    cmds:\n      - go test"));
        let cargo = quote(&files, "/workspace/crates/a", "cargo xtask fuzz");
        assert_eq!(cargo, one("alias `xtask` of /workspace/.cargo/config.toml", "\"run -p xtask --\""));
        assert_eq!(quote(&files, "/workspace", "cargo build"), []);
    }
}
