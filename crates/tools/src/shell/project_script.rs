//! The script of a project that a command would run, quoted for the person who is asked (tool-contract 13.4): `npm test`
//! runs `scripts.test` of the nearest `package.json`. The text comes from the project, so it is untrusted.

use portcullis_command as command;

use super::places::joined;
use super::programs::is_literal;
use super::{cargo_alias, git_alias, makefile, package_script, recipe_file};

/// Lines of one quotation; the rest of the file is bound all the same.
pub(super) const LINES: usize = 12;

/// A quoted script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuotedScript {
    /// Such as `scripts.test of /workspace/package.json`.
    pub(super) name: String,
    /// What is shown; nothing if it is only bound.
    pub(super) text: String,
    /// What the approval is bound to: the text, or all of its file where other lines of it count as well.
    pub(super) whole: String,
}

impl QuotedScript {
    /// One of the scripts of a file, nobody can tell which. The approval is bound to the whole file.
    pub(super) fn one_of(path: &str, why: &str, whole: String) -> Self {
        let text =
            format!("which of its scripts run is not known before it runs, because {why}; the whole file is bound");
        Self { name: format!("scripts of {path}"), text, whole }
    }
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
    pub(super) fn nearest(&self, folder: &str, names: &[&str]) -> Option<(String, String)> {
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
        name @ ("npm" | "pnpm" | "yarn" | "bun") => package_script::scripts(name, words, project),
        "make" | "gmake" => makefile::recipes(words, project),
        "just" => recipe_file::recipe(words, &["justfile", ".justfile", "Justfile"], "just", project),
        "task" => recipe_file::recipe(words, &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml"], "task", project),
        "cargo" => cargo_alias::alias(words, project),
        "git" => git_alias::alias(words, project),
        _ => Ok(Vec::new()),
    }
}

/// Variables by which a package manager or make reads other words and files than those of the command.
const STEERING: [&str; 4] = ["npm_config_", "makeflags", "makefiles", "bun_options"];

/// Whether a line, or the environment that it runs in, sets such a variable.
pub(super) fn is_steered<'n>(line: &str, mut env: impl Iterator<Item = &'n String>) -> bool {
    let names = |text: &str| STEERING.iter().any(|name| text.to_ascii_lowercase().contains(name));
    names(line) || env.any(|name| names(name))
}

/// Whether a command may run a script that it finds in its folder.
pub(crate) fn runs_scripts(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let tells = words.len() == 1 && matches!(words[0].as_str(), "--version" | "--help" | "-v" | "-V" | "-h");
    match command::base(program) {
        "npm" | "pnpm" | "yarn" | "bun" | "make" | "gmake" | "just" | "task" => !tells,
        "cargo" => cargo_alias::may_be_alias(words),
        _ => false,
    }
}

/// Words that are no options, and the last folder or file that an option of `named` names.
pub(super) fn plain<'w>(words: &'w [String], named: &[&str], valued: &[&str]) -> (Vec<&'w str>, Option<&'w str>) {
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

/// The lines that are shown, and how many more there are.
pub(super) fn cut(shown: Vec<&str>, more: usize) -> String {
    let mut text = shown.join("\n");
    if more > 0 {
        text.push_str(&format!("\n… ({more} lines more)"));
    }
    text
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
            |found| found.into_iter().map(|one| (one.name, one.text)).filter(|(_, text)| !text.is_empty()).collect(),
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
    fn a_word_that_may_be_the_value_of_an_option_is_not_taken_for_a_script() {
        let files = [("/workspace/package.json", r#"{"scripts": {"test": "SHOWN", "evil": "EVIL"}}"#)];
        for line in [
            "npm --tag test run evil",
            "npm --otp test run evil",
            "npm --cache test run evil",
            "npm --registry test run evil",
            "npm --userconfig test run evil",
            "npm --location test run evil",
            "npm --script-shell test run evil",
            "npm run -- evil",
            "npm -- run evil",
            "npm run --silent evil",
            "npm --if-present run evil test",
            "npm run-script evil",
            "npm ru evil",
            "yarn -s evil",
            "pnpm --silent run evil --color test",
        ] {
            assert_eq!(
                quote(&files, "/workspace", line),
                one("scripts.evil of /workspace/package.json", "EVIL"),
                "{line}"
            );
        }
        for line in [
            "npm --unheard test run evil",
            "npm run --unheard test evil",
            "npm --json false run evil",
            "npm --dir test run evil",
            "yarn --tag test run evil",
            "pnpm --reporter test run evil",
            "bun -d test run evil",
        ] {
            let found = quote(&files, "/workspace", line);
            assert!(found.len() == 1 && found[0].1.contains("not known before it runs"), "{line}: {found:?}");
        }
        assert!(is_steered("MAKEFLAGS=-Csub make", std::iter::empty()) && !is_steered("make", std::iter::empty()));
        assert!(is_steered("npm test", ["NPM_CONFIG_PREFIX".to_owned()].iter()));
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
        let all = [one("recipe `all` of /workspace/Makefile", "all: build\n\techo all"), build].concat();
        assert_eq!(quote(&files, "/workspace", "make"), all);
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
        assert_eq!(
            just,
            one(
                "just recipe `test` of /workspace/justfile",
                "test X='1': a\n    cargo test\n    rm x\nRecipes that it names run as well."
            )
        );
        let task = quote(&files, "/workspace", "task test");
        assert_eq!(
            task,
            one(
                "task recipe `test` of /workspace/Taskfile.yml",
                "  test:\n    cmds:\n      - go test\nRecipes that it names run as well."
            )
        );
        assert!(quote(&files, "/workspace", "just")[0].0.contains("recipe `a`"));
        for line in ["just zz", "just --chooser test a", "task zz"] {
            assert!(quote(&files, "/workspace", line)[0].1.contains("not known before it runs"), "{line}");
        }
        let cargo = quote(&files, "/workspace/crates/a", "cargo xtask fuzz");
        assert_eq!(cargo, one("alias `xtask` of /workspace/.cargo/config.toml", "\"run -p xtask --\""));
        assert_eq!(quote(&files, "/workspace", "cargo build"), []);
    }

    #[test]
    fn an_alias_of_git_is_quoted_from_the_nearest_repository() {
        let files = [
            (
                "/workspace/.git/config",
                "[core]\n\tbare = false\n[alias]\n\tp = push --force\n\tS = \"!sh -c 'x; y'\" # z\n",
            ),
            ("/workspace/sub/.git/config", "[alias]\np = status\n"),
        ];
        for (cwd, line, name, text) in [
            ("/workspace", "git p", "alias `p` of /workspace/.git/config", "push --force"),
            ("/workspace/a/b", "git -c x.y=z p origin", "alias `p` of /workspace/.git/config", "push --force"),
            ("/workspace", "git s", "alias `s` of /workspace/.git/config", "!sh -c 'x; y'"),
            ("/workspace", "git -C sub p", "alias `p` of /workspace/sub/.git/config", "status"),
        ] {
            assert_eq!(quote(&files, cwd, line), one(name, text), "{line}");
        }
        for line in ["git push", "git status p", "git unheard-of", "git --version", "git"] {
            assert_eq!(quote(&files, "/workspace", line), [], "{line}");
        }
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
