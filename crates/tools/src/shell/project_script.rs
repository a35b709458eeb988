//! The script of a project that a command would run, quoted for the person who is asked (tool-contract 13.4): `npm test`
//! runs `scripts.test` of the nearest `package.json`. The text comes from the project, so it is untrusted.

use portcullis_command as command;
use serde_json::Value;

use super::makefile;
use super::places::joined;
use super::programs::is_literal;

/// Lines of one quotation; the rest of the file is bound all the same.
pub(super) const LINES: usize = 12;

/// A quoted script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuotedScript {
    /// Such as `scripts.test of /workspace/package.json`.
    pub(super) name: String,
    /// What is shown.
    pub(super) text: String,
    /// What the approval is bound to: the text, or all of its file where other lines of it count as well.
    pub(super) whole: String,
}

/// A project, seen from the folder of a command.
pub(super) struct Project<'r> {
    /// The folder, by its canonical path.
    pub(super) cwd: &'r str,
    /// A file: its canonical path and its text. `None` if there is none that may be read.
    pub(super) read: &'r dyn Fn(&str) -> Option<(String, String)>,
    /// The canonical path of a folder. `None` if there is none.
    pub(super) folder: &'r dyn Fn(&str) -> Option<String>,
}

/// Which script a command runs is not known before it runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotKnown;

impl Project<'_> {
    /// Where these folders lead, each seen from the one before it.
    pub(super) fn inside<'w>(&self, folders: impl IntoIterator<Item = &'w str>) -> Result<String, NotKnown> {
        let mut inside = self.cwd.to_owned();
        for folder in folders {
            let found = is_literal(folder).then(|| (self.folder)(&joined(&inside, folder))).flatten();
            inside = found.ok_or(NotKnown)?;
        }
        Ok(inside)
    }

    /// The file that an option names.
    pub(super) fn file(&self, folder: &str, file: &str) -> Result<(String, String), NotKnown> {
        let found = is_literal(file).then(|| (self.read)(&joined(folder, file))).flatten();
        found.ok_or(NotKnown)
    }

    /// The nearest of these files in the folder or above it.
    fn nearest(&self, folder: &str, names: &[&str]) -> Option<(String, String)> {
        let mut folder = folder.trim_end_matches('/');
        loop {
            if let Some(found) = names.iter().find_map(|name| (self.read)(&format!("{folder}/{name}"))) {
                return Some(found);
            }
            folder = folder.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty())?;
        }
    }
}

/// What a command would run of the project.
pub(super) fn quoted(argv: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    let Some((program, words)) = argv.split_first() else { return Ok(Vec::new()) };
    match command::base(program) {
        name @ ("npm" | "pnpm" | "yarn" | "bun") => package(name, words, project),
        "make" | "gmake" => makefile::recipes(words, project),
        "just" => recipe(words, &["justfile", ".justfile", "Justfile"], "just", project),
        "task" => recipe(words, &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml"], "task", project),
        "cargo" => alias(words, project),
        _ => Ok(Vec::new()),
    }
}

/// Whether a command may run a script that it finds in its folder.
pub(super) fn runs_scripts(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let tells = words.len() == 1 && matches!(words[0].as_str(), "--version" | "--help" | "-v" | "-V" | "-h");
    match command::base(program) {
        "npm" | "pnpm" | "yarn" | "bun" | "make" | "gmake" | "just" | "task" => !tells,
        "cargo" => cargo_verb(words).is_some_and(|(verb, _)| !CARGO_VERBS.contains(&verb)),
        _ => false,
    }
}

/// Words that are no options, and the last folder or file that an option of `named` names.
fn plain<'w>(words: &'w [String], named: &[&str], valued: &[&str]) -> (Vec<&'w str>, Option<&'w str>) {
    let (mut plain, mut value) = (Vec::new(), None);
    let mut words = words.iter().map(String::as_str);
    // Some programs take a long option by its beginning.
    let is = |option: &str| named.iter().any(|name| *name == option || (option.len() > 4 && name.starts_with(option)));
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        if is(word) {
            value = words.next();
        } else if valued.contains(&word) {
            words.next();
        } else if let Some((_, attached)) = word.split_once('=').filter(|(option, _)| is(option)) {
            value = Some(attached);
        } else if let Some(attached) = named.iter().find_map(|option| short(option, word)) {
            value = Some(attached);
        } else if !word.starts_with('-') {
            plain.push(word);
        }
    }
    (plain, value)
}

/// The value of `-Cdir`.
fn short<'w>(option: &str, word: &'w str) -> Option<&'w str> {
    let is_short = option.len() == 2 && !option.starts_with("--");
    is_short.then(|| word.strip_prefix(option)).flatten().filter(|value| !value.is_empty())
}

/// Scripts that installing packages runs of the project itself.
const INSTALLING: [&str; 7] =
    ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"];

/// Options and verbs by which a package manager runs the scripts of other packages than the nearest one.
fn runs_elsewhere(word: &str) -> bool {
    matches!(
        word.split('=').next().unwrap_or(word),
        "-w" | "--workspace"
            | "-ws"
            | "--workspaces"
            | "--filter"
            | "-F"
            | "-r"
            | "--recursive"
            | "workspace"
            | "workspaces"
    )
}

fn package(program: &str, words: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    if words.iter().take_while(|word| *word != "--").any(|word| runs_elsewhere(word)) {
        return Err(NotKnown);
    }
    let folders = ["--prefix", "-C", "--cwd", "--dir"];
    let (words, folder) = plain(words, &folders, &["--loglevel"]);
    let verb = words.first().copied().unwrap_or(if program == "yarn" { "install" } else { "" });
    let named: Vec<String> = match verb {
        "run" | "run-script" | "rum" | "urn" => words.iter().skip(1).map(|name| (*name).to_owned()).collect(),
        "test" | "t" | "tst" if program != "bun" => vec!["test".to_owned()],
        "restart" => ["stop", "restart", "start"].map(str::to_owned).into(),
        "i" | "in" | "install" | "ci" | "add" | "rebuild" | "it" | "cit" | "pack" | "publish" | "link" => {
            INSTALLING.map(str::to_owned).into()
        }
        other => vec![other.to_owned()],
    };
    let inside = project.inside(folder)?;
    let Some((path, text)) = project.nearest(&inside, &["package.json"]) else { return Ok(Vec::new()) };
    let Ok(package) = serde_json::from_str::<Value>(&text) else { return Ok(Vec::new()) };
    let around = named.into_iter().flat_map(|name| [format!("pre{name}"), name.clone(), format!("post{name}")]);
    let scripts = around.filter_map(|name| {
        let text = package.get("scripts")?.get(&name)?.as_str()?.to_owned();
        Some(QuotedScript { name: format!("scripts.{name} of {path}"), whole: text.clone(), text })
    });
    let mut out: Vec<QuotedScript> = Vec::new();
    for one in scripts {
        if !out.contains(&one) {
            out.push(one);
        }
    }
    Ok(out)
}

/// The lines that are shown, and how many more there are.
pub(super) fn cut(shown: Vec<&str>, more: usize) -> String {
    let mut text = shown.join("\n");
    if more > 0 {
        text.push_str(&format!("\n… ({more} lines more)"));
    }
    text
}

/// A recipe of a file in which its name stands at the beginning of a line, before a colon.
fn recipe(
    words: &[String],
    files: &[&str],
    program: &str,
    project: &Project<'_>,
) -> Result<Vec<QuotedScript>, NotKnown> {
    let (folders, names) = (["-d", "--dir", "--working-directory"], ["-f", "--justfile", "-t", "--taskfile"]);
    let (_, folder) = plain(words, &folders, &names);
    let (words, file) = plain(words, &names, &[folders.as_slice(), &["--set", "--shell"]].concat());
    if words.iter().any(|word| matches!(*word, "-g" | "--global" | "--global-justfile")) {
        return Err(NotKnown);
    }
    let wanted = words.first().copied().unwrap_or("default");
    // `just folder/recipe`
    let (below, wanted) = wanted.rsplit_once('/').map_or((None, wanted), |(below, wanted)| (Some(below), wanted));
    let found = match file {
        Some(file) => Some(project.file(project.cwd, file)?),
        None => project.nearest(&project.inside(folder.or(below))?, files),
    };
    let Some((path, text)) = found else { return Ok(Vec::new()) };
    let is_head = |line: &&str| {
        let head = line.trim().trim_start_matches('@').split_once(':').map(|(head, _)| head);
        head.and_then(|head| head.split_whitespace().next()) == Some(wanted)
    };
    let depth = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(is_head) else { return Ok(Vec::new()) };
    let own = depth(lines[at]);
    let mut body = lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || depth(line) > own).copied();
    let mut shown = vec![lines[at]];
    shown.extend(body.by_ref().take(LINES));
    let text = cut(shown, body.count());
    Ok(vec![QuotedScript { name: format!("{program} recipe `{wanted}` of {path}"), text, whole: lines.join("\n") }])
}

/// Verbs that no alias of cargo can stand for.
const CARGO_VERBS: [&str; 45] = [
    "add",
    "b",
    "bench",
    "build",
    "c",
    "check",
    "clean",
    "config",
    "d",
    "doc",
    "fetch",
    "fix",
    "generate-lockfile",
    "git-checkout",
    "help",
    "info",
    "init",
    "install",
    "locate-project",
    "login",
    "logout",
    "metadata",
    "new",
    "owner",
    "package",
    "pkgid",
    "publish",
    "r",
    "read-manifest",
    "remove",
    "report",
    "rm",
    "run",
    "rustc",
    "rustdoc",
    "search",
    "t",
    "test",
    "tree",
    "uninstall",
    "update",
    "vendor",
    "verify-project",
    "version",
    "yank",
];

/// The verb of cargo, and the folder that its options name.
fn cargo_verb(words: &[String]) -> Option<(&str, Option<&str>)> {
    let (words, folder) = plain(words, &["-C"], &["--manifest-path", "--config", "-Z", "--color"]);
    let verb = words.into_iter().find(|word| !word.starts_with('+'))?;
    Some((verb, folder))
}

/// An alias of cargo.
fn alias(words: &[String], project: &Project<'_>) -> Result<Vec<QuotedScript>, NotKnown> {
    let Some((verb, folder)) = cargo_verb(words) else { return Ok(Vec::new()) };
    let folder = project.inside(folder)?;
    let files = [".cargo/config.toml", ".cargo/config"];
    let Some((path, text)) = project.nearest(&folder, &files) else { return Ok(Vec::new()) };
    let mut inside = false;
    let found = text.lines().map(str::trim).find_map(|line| {
        if line.starts_with('[') {
            inside = line == "[alias]";
            return None;
        }
        let (name, value) = line.split_once('=')?;
        let name = name.trim().trim_matches('"');
        let is = (inside && name == verb) || name.strip_prefix("alias.").is_some_and(|name| name == verb);
        is.then(|| value.trim().to_owned())
    });
    let quoted =
        found.map(|text| QuotedScript { name: format!("alias `{verb}` of {path}"), whole: text.clone(), text });
    Ok(quoted.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote(files: &[(&str, &str)], cwd: &str, line: &str) -> Vec<(String, String)> {
        let read = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        };
        let folder = |path: &str| Some(path.to_owned()).filter(|path| !path.ends_with("missing"));
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let found = quoted(&argv, &Project { cwd, read: &read, folder: &folder });
        found.map_or_else(
            |NotKnown| one("not known", ""),
            |found| found.into_iter().map(|one| (one.name, one.text)).collect(),
        )
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

    #[test]
    fn the_folder_and_the_file_that_options_name_are_the_ones_that_are_read() {
        let sub = [
            ("/workspace/Makefile", "all:\n\techo root\nsub:\n\techo root\n"),
            ("/workspace/sub/Makefile", "all:\n\techo sub\n"),
            ("/workspace/sub/b/Makefile", "all:\n\techo deep\n"),
            ("/workspace/package.json", r#"{"scripts": {"test": "echo root"}}"#),
            ("/workspace/sub/package.json", r#"{"scripts": {"test": "echo sub"}}"#),
            ("/workspace/justfile", "test:\n    echo root\n"),
            ("/workspace/sub/justfile", "test:\n    echo sub\n"),
            ("/workspace/Taskfile.yml", "tasks:\n  test:\n    cmds: [echo root]\n"),
            ("/workspace/sub/Taskfile.yml", "tasks:\n  test:\n    cmds: [echo sub]\n"),
            ("/workspace/.cargo/config.toml", "[alias]\nx = \"echo root\"\n"),
            ("/workspace/sub/.cargo/config.toml", "[alias]\nx = \"echo sub\"\n"),
        ];
        for (line, said) in [
            ("make -C sub", "sub"),
            ("make -Csub all", "sub"),
            ("make -kC sub", "sub"),
            ("make -j 4 -C sub", "sub"),
            ("make --directory=sub", "sub"),
            ("make --dir sub", "sub"),
            ("make -C sub -C b", "deep"),
            ("make -f sub/Makefile all", "sub"),
            ("make -sf sub/Makefile", "sub"),
            ("make --file=sub/Makefile", "sub"),
            ("make -j 4 all", "root"),
            ("npm --prefix sub test", "sub"),
            ("npm --prefix=sub test", "sub"),
            ("npm --pref sub test", "sub"),
            ("npm -C sub test", "sub"),
            ("pnpm --dir sub test", "sub"),
            ("yarn --cwd sub test", "sub"),
            ("just -f sub/justfile test", "sub"),
            ("just -d sub test", "sub"),
            ("just sub/test", "sub"),
            ("task -d sub test", "sub"),
            ("task --taskfile sub/Taskfile.yml test", "sub"),
            ("cargo -C sub x", "sub"),
            ("cargo +nightly x", "root"),
        ] {
            let found = quote(&sub, "/workspace", line);
            let all = found.iter().all(|(_, text)| text.contains(&format!("echo {said}")));
            assert!(!found.is_empty() && all, "{line}: {found:?}");
        }
        for line in [
            "make -C $x",
            "make -C missing",
            "make -f missing",
            "make -f a -f b",
            "npm --prefix missing test",
            "npm -w x test",
            "npm test --workspaces",
            "pnpm -r test",
            "pnpm --filter=x test",
            "yarn workspace x test",
        ] {
            assert_eq!(quote(&sub, "/workspace", line), one("not known", ""), "{line}");
        }
    }

    #[test]
    fn a_built_in_verb_of_cargo_runs_no_script_of_its_folder() {
        let runs = |line: &str| runs_scripts(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["npm test", "make", "just x", "task x", "cargo xtask", "cargo +nightly ci", "/usr/bin/make all"] {
            assert!(runs(line), "{line}");
        }
        for line in ["cargo test", "cargo +nightly build", "cargo -C x run", "npm --version", "ls", "git status"] {
            assert!(!runs(line), "{line}");
        }
    }
}
