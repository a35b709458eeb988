//! Files that a command runs as code: the script of an interpreter, and the files that a builder or a test runner is
//! known to read.

use super::shell::is_shell;
use super::unwrap::base;
use super::{file_options, hidden, marks, verbs};

/// A group of programs with the names, or the ends of names, of the files that they run without being told.
type DefaultScripts = (&'static str, &'static str);

static RUNS: &[DefaultScripts] = &[
    ("make gmake bmake pmake", "Makefile makefile GNUmakefile .mk"),
    ("ninja samu", "build.ninja"),
    ("cmake ctest cpack", "CMakeLists.txt .cmake CMakePresets.json"),
    ("meson", "meson.build meson_options.txt"),
    ("just", "justfile .justfile Justfile"),
    ("task", "Taskfile.yml Taskfile.yaml"),
    ("rake rspec bundle ruby irb rails gem", "Rakefile Gemfile .rb .rake .gemspec"),
    (
        "npm pnpm yarn bun npx pnpx bunx node deno tsx ts-node jest vitest mocha nyc c8 vite webpack rollup esbuild tsc eslint \
        gulp grunt playwright cypress",
        "package.json .npmrc .yarnrc .js .mjs .cjs .ts .mts .cts .jsx .tsx",
    ),
    (
        "python pypy pytest py.test tox nox pip pipx uv poetry hatch pdm coverage ipython invoke inv fab doit django-admin \
        celery sphinx-build mypy pylint pydoc pdb ipdb",
        ".py .pth pyproject.toml setup.cfg tox.ini pytest.ini",
    ),
    ("cargo rustc", ".rs Cargo.toml config.toml"),
    ("go mage", ".go go.mod"),
    ("gradle", ".gradle .kts .java .kt"),
    ("mvn", "pom.xml .java .kt"),
    ("java javac kotlin scala sbt", ".java .kt .scala .sbt .jar .class"),
    ("ant", "build.xml"),
    ("perl prove", ".pl .pm .t .proverc"),
    ("php composer phpunit", ".php composer.json"),
    ("lua luajit", ".lua"),
    ("Rscript R", ".R .r"),
    ("dotnet msbuild", ".cs .fs .csproj .fsproj .props .targets"),
    ("ansible ansible-playbook", ".yml .yaml .cfg"),
    ("gdb", ".gdbinit"),
    ("psql mysql mariadb sqlite sqlite3", ".sql .psqlrc .sqliterc"),
    ("pre-commit", ".pre-commit-config.yaml"),
    ("direnv", ".envrc"),
    ("bazel bazelisk", "BUILD BUILD.bazel WORKSPACE .bzl .bazelrc"),
];

/// The files that one command runs.
pub(super) struct Scripts<'w> {
    /// Those that it names.
    named: Vec<&'w str>,
    known: &'static str,
    /// It is git, which runs what its own files say.
    git: bool,
    /// It is a compiler, which may be told a folder of programs.
    compiles: bool,
}

/// What a command by its program and words runs of the files that it finds; none if no file of the workspace.
pub(super) fn of<'w>(program: &str, words: &'w [String]) -> Option<Scripts<'w>> {
    let name = base(program);
    if matches!(name, "." | "source") {
        return words.first().map(|file| Scripts { named: vec![file], known: "", git: false, compiles: false });
    }
    let family = verbs::family(name);
    // It only changes `package.json`.
    if family == "npm" && words.first().is_some_and(|verb| verb == "pkg") {
        return None;
    }
    // `pydoc3`
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is = |known: &str| known == family || known == plain;
    let known = RUNS.iter().find(|(names, _)| names.split_ascii_whitespace().any(is));
    let known = known.map_or("", |(_, files)| files);
    let mut named = file_options::named(name, words, !known.is_empty());
    if hidden::is_interpreter(name) || is_shell(name) {
        named.extend(hidden::script_of(name, words).map(|(_, file)| file));
    }
    // Each of their operands is a script or a module.
    if matches!(plain, "prove" | "pydoc" | "pdb" | "ipdb") {
        named.extend(words.iter().map(String::as_str).filter(|word| !word.starts_with('-')));
    }
    let git = family == "git";
    let compiles = file_options::is_compiler(name);
    (git || !named.is_empty() || !known.is_empty()).then_some(Scripts { named, known, git, compiles })
}

impl Scripts<'_> {
    pub(super) fn names_one(&self) -> bool {
        !self.named.is_empty()
    }

    /// The folders that it looks for programs in.
    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        self.named().filter(|_| self.compiles)
    }

    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|named| marks::bare(named))
    }

    /// Whether any file may be one of them.
    pub(super) fn may_be_any(&self) -> bool {
        !self.known.is_empty() || self.names_one()
    }

    /// Whether a file by its path, as it is written in the line, may be one of them.
    pub(super) fn may_be(&self, path: &str) -> bool {
        let file = base(path);
        if self.named.iter().any(|named| marks::of(named).is_some()) {
            return true;
        }
        let named = self.named().any(|named| {
            // The end of the path of a script, or of a module.
            let module = file.split('.').next().unwrap_or(file);
            base(named) == file || named == module || matches_open(file, base(named))
        });
        let known = |end: &str| if end.starts_with('.') { file.ends_with(end) } else { file == end };
        named || self.known.split_ascii_whitespace().any(known) || (self.git && is_of_git(path))
    }
}

/// Whether git runs what a file of this path says: its settings, and its hooks.
fn is_of_git(path: &str) -> bool {
    let file = base(path);
    matches!(file, "config" | "config.worktree" | ".gitconfig" | ".git") || path.split('/').any(|name| name == "hooks")
}

/// Whether a name with a variable in it may become `name`: `$x.sh`, `out_$i.log`.
fn matches_open(written: &str, name: &str) -> bool {
    let Some(open) = written.find(['$', '`', '*', '?', '{', '[']) else { return false };
    let end = written.rfind('.').filter(|dot| *dot > open).map_or("", |dot| &written[dot..]);
    name.starts_with(&written[..open]) && name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use crate::analyse;

    /// A line that writes a file and runs it, in many ways.
    fn lines(file: &str, run: &str) -> Vec<String> {
        let ways = [
            "echo 'x' > @; %",
            "echo x >> @ && %",
            "printf 'x\\n' > ./@; %",
            "cat > @ <<'E'\nx\nE\n%",
            "cat <<E > @\nx\nE\n%",
            "echo x | tee @; %",
            "tee @ <<< x; %",
            "cp y @; %",
            "mv y @ && %",
            "ln -s y @; %",
            "install -m 755 /dev/stdin @ <<< x; %",
            "dd of=@ <<< x; %",
            "sed -i s/a/b/ @; %",
            "sort -o @ y; %",
            "curl -o @ http://localhost; %",
            "wget -O @ http://localhost; %",
            "(echo x > @); %",
            "{ echo x; } > @; %",
            "bash -c 'echo x > @'; %",
            "sudo tee @ <<< x; nice %",
        ];
        ways.iter().map(|way| way.replace('@', file).replace('%', run)).collect()
    }

    #[test]
    fn l31_a_line_that_runs_the_script_that_it_writes_hides() {
        for (file, run) in [
            ("x.sh", "sh x.sh"),
            ("x.sh", "bash -x ./x.sh a"),
            ("x.sh", ". ./x.sh"),
            ("x.sh", "source x.sh"),
            ("x.sh", "timeout 5 bash x.sh"),
            ("x", "sh x"),
            ("x.py", "python3 x.py"),
            ("x.py", "python3 -m x"),
            ("conftest.py", "pytest -q"),
            ("x.js", "node x.js"),
            ("x.pl", "perl x.pl"),
            ("x.rb", "ruby x.rb"),
            ("Makefile", "make"),
            ("rules.mk", "make -f rules.mk all"),
            ("rules", "make -f rules all"),
            ("package.json", "npm run p"),
            ("package.json", "yarn p"),
            ("build.rs", "cargo build"),
            ("main.go", "go run main.go"),
            ("justfile", "just p"),
            ("x.sql", "psql -f x.sql"),
            ("rules", "make -frules"),
            ("rules", "make --file=rules"),
            ("rules", "make -srf rules a"),
            ("rc", "bash --rcfile rc -ic true"),
            ("rc", "bash --init-file rc -i -c true"),
            ("m", "node -r ./m empty.js"),
            ("m", "node --require=./m empty.js"),
            ("p.awk", "awk -v x=1 -fp.awk"),
            ("p", "awk -f p hi.txt"),
            ("s.sed", "sed -f s.sed hi.txt"),
            ("s", "sed -nfs hi.txt"),
            ("s", "sed --file=s hi.txt"),
            ("c", "ssh -F c host true"),
            ("c", "ssh -Fc host true"),
            ("c", "scp -F c hi.txt host:"),
            ("a.txt", "gcc -c hello.c @a.txt"),
            ("jo", "java @jo X.java"),
            (".proverc", "prove hi.txt"),
            ("z", "prove ./z"),
            ("zz.py", "pydoc3 zz"),
            ("zz", "pdb3 -c c zz"),
            ("r/.git/config", "git -C r p"),
            ("g/config", "git -C r p"),
            ("r/.git/hooks/post-commit", "git -C r commit -m x"),
            ("h/hooks/post-checkout", "git clone . c"),
            (".gitconfig", "git p"),
            ("rules", "x=rules; make -f $x"),
            ("c", "ssh -F \"$x\" host"),
        ] {
            for line in lines(file, run) {
                assert!(analyse(&line).hides, "{line}: {:?}", analyse(&line));
            }
        }
    }

    #[test]
    fn l31_a_line_that_writes_something_else_hides_nothing() {
        for line in [
            "echo x > notes.txt; sh build.sh",
            "python3 x.py > out.log",
            "for i in 1 2; do python3 x.py > out_$i.log; done",
            "make test 2>&1 | tee make.log",
            "echo a > input.txt && python3 x.py input.txt",
            "cat > README.md <<'E'\nsh x.sh\nE",
            "sed -i s/a/b/ README.md && npm test",
            "sort -u a > b; bash c.sh",
            "curl -s http://localhost/health; node server.js",
            "cargo test > log 2>&1; tail -5 log",
            "chmod +x x.py && python3 x.py",
            "chmod 755 x.sh; bash x.sh",
            "echo x > a.c; gcc -c a.c",
            "echo x >> .gitignore && git add -A && git commit -m y",
            "echo x > config.toml; git add config.toml",
            "echo x > data.txt; awk -f report.awk data.txt",
            "echo x > data.txt; sed -f fix.sed data.txt",
            "echo '*.png binary' >> .gitattributes && git add .gitattributes",
        ] {
            assert!(!analyse(line).hides, "{line}: {:?}", analyse(line));
        }
    }
}
