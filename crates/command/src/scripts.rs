//! Files that a command runs as code: the script of an interpreter, and the files that a builder or a test runner is
//! known to read.

use super::shell::is_shell;
use super::unwrap::base;
use super::{hidden, marks, verbs};

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
        celery sphinx-build mypy pylint",
        ".py .pth pyproject.toml setup.cfg tox.ini pytest.ini",
    ),
    ("cargo rustc", ".rs Cargo.toml config.toml"),
    ("go mage", ".go go.mod"),
    ("gradle", ".gradle .kts .java .kt"),
    ("mvn", "pom.xml .java .kt"),
    ("java javac kotlin scala sbt", ".java .kt .scala .sbt .jar .class"),
    ("ant", "build.xml"),
    ("perl prove", ".pl .pm .t"),
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
    /// The one that it names.
    named: Option<&'w str>,
    known: &'static str,
}

/// What a command by its program and words runs of the files that it finds; none if no file of the workspace.
pub(super) fn of<'w>(program: &str, words: &'w [String]) -> Option<Scripts<'w>> {
    let name = base(program);
    if matches!(name, "." | "source") {
        return words.first().map(|file| Scripts { named: Some(file), known: "" });
    }
    if is_shell(name) {
        return hidden::script_of(name, words).map(|(_, file)| Scripts { named: Some(file), known: "" });
    }
    let family = verbs::family(name);
    let known = RUNS.iter().find(|(names, _)| names.split_ascii_whitespace().any(|known| known == family));
    let interprets = hidden::is_interpreter(name);
    if known.is_none() && !interprets {
        return None;
    }
    let script = interprets.then(|| hidden::script_of(name, words)).flatten().map(|(_, file)| file);
    // `make -f x`, `psql -f x`, `ansible-playbook -i x`
    let file = || {
        let at = words.iter().position(|word| matches!(word.as_str(), "-f" | "--file" | "--makefile" | "-x"))?;
        words.get(at + 1).map(String::as_str)
    };
    Some(Scripts { named: script.or_else(file), known: known.map_or("", |(_, files)| files) })
}

impl Scripts<'_> {
    pub(super) const fn names_one(&self) -> bool {
        self.named.is_some()
    }

    /// Whether a file of this last name, as it is written in the line, may be one of them.
    pub(super) fn may_be(&self, file: &str) -> bool {
        let named = self.named.map(marks::bare).is_some_and(|named| {
            // The end of the path of a script, or of a module.
            let module = file.split('.').next().unwrap_or(file);
            base(named) == file || named == module || matches_open(file, base(named))
        });
        let known = |end: &str| if end.starts_with('.') { file.ends_with(end) } else { file == end };
        named || self.known.split_ascii_whitespace().any(known)
    }
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
        ] {
            assert!(!analyse(line).hides, "{line}: {:?}", analyse(line));
        }
    }
}
