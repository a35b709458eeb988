//! L31 and L32 on commands that a line carries in a text: the value of an option or a variable, a script that it writes,
//! or what it gives a program to read. Each attack is made many times over, and each has a control.

use portcullis_base::Timestamp;
use portcullis_command::analyse;
use portcullis_contract::{Action, DefaultPolicy};
use portcullis_policy::{Asker, Decision, Layer, Policy, PolicyBuilder, lexical, line_access, parse_rules};
use proptest::prelude::*;

fn policy(denied: &[&[&str]]) -> Policy {
    let words =
        |argv: &&[&str]| format!("[{}]", argv.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", "));
    let all: Vec<String> = denied.iter().map(words).collect();
    let allow = "[[rules]]\naction = \"*\"\neffect = \"allow\"\n";
    let rules =
        format!("[[rules]]\nid = \"no\"\naction = \"*\"\nargv = [{}]\neffect = \"deny\"\n{allow}", all.join(", "));
    let rules = parse_rules(&rules, "rules.toml", Layer::User).expect("rules");
    PolicyBuilder::new().rules(rules).build().expect("a policy")
}

fn decide(policy: &Policy, line: &str) -> Decision {
    let requests = line_access(&analyse(line), &Action::new("bash"), line, &lexical("/workspace"));
    let now = Timestamp::from_micros(1);
    let asker = Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Auto, grants: &[] };
    policy.decide(&requests, &asker)
}

/// Denied, or left to a person with the rule named.
fn is_held(policy: &Policy, line: &str) -> bool {
    let decision = decide(policy, line);
    let held = match &decision {
        Decision::Deny(_) => true,
        Decision::Ask(ask) => ask.only_a_person,
        Decision::Allow(_) => false,
    };
    held && decision.reason().contains("rule `no`")
}

fn all_held<'l>(denied: &[&[&str]], lines: impl IntoIterator<Item = &'l str>) {
    let policy = policy(denied);
    let through: Vec<&str> = lines.into_iter().filter(|line| !is_held(&policy, line)).collect();
    assert_eq!(through, Vec::<&str>::new(), "a flag would let these run");
}

fn none_held<'l>(denied: &[&[&str]], lines: impl IntoIterator<Item = &'l str>) {
    let policy = policy(denied);
    let held: Vec<&str> = lines.into_iter().filter(|line| is_held(&policy, line)).collect();
    assert_eq!(held, Vec::<&str>::new(), "these are a person's business without need");
}

const PUSH: &[&[&str]] = &[&["git", "push"]];

#[test]
fn l32_options_of_git_that_run_a_program_are_known_by_any_beginning() {
    let policy = policy(PUSH);
    for (verb, option, tail) in [
        ("rebase", "exec", "HEAD~1"),
        ("grep", "open-files-in-pager", "x"),
        ("clone", "upload-pack", ". c2"),
        ("ls-remote", "upload-pack", "."),
        ("ls-remote", "exec", "."),
        ("fetch", "upload-pack", "."),
        ("archive", "exec", "--remote=. HEAD"),
        ("send-pack", "receive-pack", "."),
        ("difftool", "extcmd", "HEAD"),
        ("send-email", "to-cmd", "HEAD~1"),
        ("send-email", "cc-cmd", "HEAD~1"),
        ("send-email", "sendmail-cmd", "HEAD~1"),
    ] {
        for length in 2..=option.len() {
            let option = &option[..length];
            for line in [
                format!("git {verb} --{option}='x=git; $x push;:' {tail}"),
                format!("git {verb} --{option} 'x=git; $x push;:' {tail}"),
                format!("git -C . {verb} --{option}='git push origin main' {tail}"),
            ] {
                assert!(is_held(&policy, &line), "{line}");
                assert!(!analyse(&line).opaque.is_empty(), "an allow of `git {verb}` would let it run: {line}");
            }
        }
    }
    none_held(
        PUSH,
        [
            "git grep --untracked 'git push'",
            "git clone --recurse-submodules --depth 1 . c2",
            "git rebase --onto main a b",
            "git fetch --unshallow",
            "git ls-remote --refs .",
            "git ls-files --exclude-standard --others",
            "git diff --exit-code --ext-diff",
        ],
    );
}

#[test]
fn l32_verbs_of_git_that_run_another_command_are_looked_through() {
    all_held(
        PUSH,
        [
            "git -c user.repo=. for-each-repo --config=user.repo push origin main",
            "git for-each-repo --config user.repo --keep-going -- push",
            "git for-each-repo --config=a.b -C . push",
            "git remote-ext a 'git push origin main' <<< 'connect git-upload-pack'",
            "git remote-fd 3 x",
            "git bisect run git push",
            "git bisect run sh -c 'git push'",
            "git submodule foreach 'git push'",
            "git submodule foreach --recursive git push",
            "git filter-branch --tree-filter 'git push' HEAD",
            "git merge-index git-push -a",
            "git send-email --smtp-server /usr/bin/x a.patch",
            "git svn clone --authors-prog='git push' x",
            "git difftool -x 'git push'",
        ],
    );
    none_held(
        PUSH,
        [
            "git -c user.repo=. for-each-repo --config=user.repo status",
            "git bisect run cargo test",
            "git submodule foreach 'git pull'",
            "git submodule update --init",
        ],
    );
}

#[test]
fn l32_variables_of_make_and_of_builders_are_command_lines() {
    let push = "git push origin main;:";
    let policy = policy(PUSH);
    for name in ["CC", "CXX", "LINK.c", "COMPILE.c", "AR", "RM", "X", "CC:", "CC+", "CC?", "X!"] {
        for value in [push, "git push", "g=git\\; $$g push;:", "sh x.sh;:", "a|b"] {
            // A variable that only a makefile runs may have several words.
            let line = format!("make hello '{name}={value}'");
            assert!(is_held(&policy, &line), "{line}");
        }
    }
    all_held(
        PUSH,
        [
            "CC='git push origin main;:' make hello",
            "CC='g=git; $g push;:' make hello",
            "CC='git push' make hello",
            "export CC='git push origin main;:'; make hello",
            "env CC='x;:' make hello",
            "env 'LINK.c=git push' make hello",
            "env 'LINK.c=x;:' make hello",
            "MAKEFLAGS='CC=git\\ push\\ origin\\ main;:' make hello",
            "MAKEFLAGS='CC=x' make hello",
            "GNUMAKEFLAGS='--eval=x:;x' make hello",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='git push' cargo run",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=./x cargo run",
            "RUSTC_WRAPPER=./x cargo build",
            "RUSTC_WORKSPACE_WRAPPER='sh -c x' cargo build",
            "CARGO_ALIAS_PB=x cargo pb",
            "GOFLAGS=-exec=x go test",
            "GOFLAGS='-toolexec=x' go build",
            "npm_config_script_shell=./x npm test",
            "NPM_CONFIG_SCRIPT_SHELL=./x npm test",
            "PYTHONINSPECT=1 python3 x.py <<< x",
            "LESS='+!x' less f",
            "MANOPT='-Px' man ls",
            "echo x > y; BASH_ENV=./y bash -c ls",
            "echo x > y.js; NODE_OPTIONS=--inspect=./y.js node z.js",
            "echo x > y; export ENV=$PWD/y; sh -i z",
            "MSG='run git push now' ./x",
            "env MSG='git push' ./x",
            "sudo RUN='git push' ./x",
            "nice ./x <<< 'git push'",
        ],
    );
    none_held(
        PUSH,
        [
            "make -C sub -f other.mk CC=clang V=1 -j4",
            "make CC='ccache gcc' CFLAGS='-O2 -g' X='a b'",
            "CC=gcc-12 CXX='g++ -m32' make",
            "CC=gcc make -j4 LDFLAGS='-L a -l b'",
            "MAKEFLAGS='-j4 --output-sync=target' make",
            "RUSTC_WRAPPER=sccache cargo build",
            "RUSTFLAGS='-C target-cpu=native' cargo build",
            "GOFLAGS=-mod=mod go test ./...",
            "PYTEST_ADDOPTS='-p no:cacheprovider' pytest",
            "GIT_AUTHOR_NAME='Ada Lovelace' git commit -m x",
            "GIT_COMMITTER_DATE='2020-01-01 12:00:00' git commit -m x",
            "IFS=';' read -r a b",
            "CARGO_TERM_COLOR=always cargo test",
        ],
    );
}

#[test]
fn l32_programs_with_a_language_of_their_own_are_known_by_their_options_and_their_input() {
    all_held(
        PUSH,
        [
            "sqlite3 -batch x.db <<< '.shell git push origin main'",
            "sqlite3 -readonly x.db <<< '.sh git push'",
            "sqlite3 -interactive x.db 'select 1' <<< '.shell x'",
            "sqlite3 -init /dev/stdin x.db 'select 1' <<< '.shell x'",
            "sqlite3 --init f x.db 'select 1'",
            "sqlite3 :memory: \"select EDIT('a','x;:')\"",
            "sqlite3 :memory: \"select edit ('a','x;:')\"",
            "sqlite3 :memory: 'select \"edit\"(1)'",
            "sqlite3 -separator , x.db < f",
            "sqlite3 x.db '.shell x'",
            "sqlite3 x.db 'select 1' '.system x'",
            "sqlite3 -cmd '.shell x' x.db 'select 1'",
            "psql -f - <<< '\\! git push'",
            "psql -c 'select 1' -o '|git push'",
            "psql --file=/dev/stdin <<< x",
            "psql -f- <<< x",
            "psql db <<< x",
            "mysql -e 'pager git push'",
            "mysql --pager='git push' db -e 'select 1'",
            "mysql -e 'source x.sql'",
            "mysql -e 'select 1; system x'",
            "mysql --execute='system x'",
            "mysql '-esystem x'",
            "psql -c \"copy (select 1) to program 'x'\"",
            "gdb ./a.out <<< 'shell git push'",
            "echo 'shell git push' | gdb ./a.out",
            "nice gdb ./a.out < cmds",
            "lldb a <<< 'platform shell x'",
            "duckdb x.db '.shell git push'",
            "vim.basic -es '+!git push origin main' +q",
            "vim.tiny -c '!git push'",
            "editor -es '+!git push' +q",
            "emacs-nox --batch --eval '(x)'",
            "less '+!git push' f",
            "man -P 'git push' ls",
            "tig '+!x'",
            "run-parts --regex='^git$' -a push -a origin -a main /usr/local/bin",
            "frob <<< 'git push'",
            "frob <<'E'\nrun\n git push origin\nE",
            "echo 'x; git push' | frob",
            "{ echo a; printf 'git push\\n'; } | frob -",
            "cat <<E | frob\ngit push\nE",
            "sh -c \"frob <<< 'git push'\"",
            "echo 'git push' > x.frob; frob x.frob",
            "if true; then frob; fi <<< 'git push'",
        ],
    );
    none_held(
        PUSH,
        [
            "sqlite3 x.db 'select * from edits where a = 1'",
            "sqlite3 -header -separator , x.db 'select 1'",
            "psql -c 'select 1'",
            "psql -f schema.sql",
            "psql -P pager=off -c 'select source, edit from credits'",
            "mysql -e 'select * from systems'",
            "gdb ./a.out",
            "frob <<< 'git pull'",
            "cat <<'E' > notes.md\nthen git push\nE",
            "git commit -F - <<'E'\nsay how to git push\nE",
            "grep -n x <<< 'git push'",
            "echo 'git push' | grep push",
            "echo 'git push' | tee notes.txt",
            "gh pr create --body-file - <<'E'\ngit push\nE",
        ],
    );
}

#[test]
fn l32_interpreters_take_no_more_than_their_script() {
    all_held(
        PUSH,
        [
            "perl '-MPOSIX;system\"git push origin main\"' empty.pl",
            "perl '-mPOSIX;`x`' empty.pl",
            "perl '-wMPOSIX;exec(1)' empty.pl",
            "perl -d empty.pl <<< x",
            "perl '-F/x/,system(1)' empty.pl",
            "python3 -i empty.py <<< 'import os'",
            "python3 -qi empty.py <<< x",
            "python3 -Bi -W ignore empty.py <<< x",
            "node --require ./empty.js --interactive <<< x",
            "node -r ./empty.js -i <<< x",
            "node -i empty.js <<< x",
            "lua -i x.lua <<< x",
            "php -a <<< x",
            "deno repl <<< x",
            "node inspect x.js <<< x",
            "guile -l x.scm <<< x",
            "A=/x/y python3 -c 'x'",
            "PATH=/usr/bin:/bin python3 -c 'x'",
            "A=/x/y git push",
        ],
    );
    none_held(
        PUSH,
        [
            "perl -MPOSIX -w x.pl -d",
            "perl -Ilib x.pl",
            "python3 -B -W ignore x.py -i",
            "python3 -m pytest -i",
            "node --require ./setup.js app.js -i",
            "node -r dotenv/config app.js",
            "A=/x/y git pull",
        ],
    );
}

#[test]
fn l32_wrappers_take_their_command_as_the_value_of_an_option() {
    all_held(
        PUSH,
        [
            "env -S 'git\\_push\\_origin\\_main'",
            "env '-Sgit\\_push'",
            "env '-Sgit -c a=b push'",
            "env --split-string='git\\_push'",
            "env --split-string 'git\\tpush'",
            "npm exec --call='git push origin main'",
            "npm exec -c 'git push'",
            "npx --call='git push'",
            "npx -c 'git push'",
            "npm explore foo -- git push origin main",
            "npm explore foo --shell='git push'",
            "nyc git push",
            "c8 git push",
            "nyc --reporter=text -- git push",
            "tox exec -- git push",
            "tox exec -e py3 -- git push",
            "meson devenv git push",
            "meson test --wrapper='git push'",
            "ctest --build-and-test a b --test-command git push",
            "bazel run --run_under='git push' //x",
            "bazel run --run_under=./x //x",
            "cargo watch -s 'git push'",
            "docker run --entrypoint='git push' x",
            "cmake -DCMAKE_C_COMPILER_LAUNCHER='git push' .",
            "tox -x 'testenv.commands=git push'",
            "nano --speller='git push' x",
            "pandoc --filter='git push' x",
            "gpg --photo-viewer 'git push' --list-keys",
            "npm pkg set scripts.p='git push'",
            "frob -x'git push'",
            "frob -xgit push",
            "frob X='git push'",
            "frob '{\"run\":[\"git\",\"push\"]}'",
            "frob git-push",
            "frob 'a; git-push x'",
            "python3 x.py --run='git push'",
            "gh repo clone a/b -- --upload-pack='x'",
            "gh repo clone a/b -- -u 'git push'",
            "mvn exec:exec -Dexec.executable=git -Dexec.args=push",
            "apt-get -o X::Y='git push' update",
            "bash x.sh 'git push'",
        ],
    );
    let others: &[&[&str]] =
        &[&["npm", "publish"], &["cargo", "publish"], &["pip", "install"], &["kubectl", "delete"], &["rm"]];
    all_held(
        others,
        [
            "cargo watch -x publish",
            "cargo watch -xpublish",
            "cargo watch --exec=publish",
            "cargo watch --exec 'publish --dry-run'",
            "npx npm@10 publish",
            "npx npm@latest publish",
            "npx any@npm:npm publish",
            "npm exec -- npm@10 publish",
            "npm --dry-run false publish",
            "npm --yes true --dry-run null publish",
            "k3s kubectl delete pod x",
            "k3s kubectl -n a delete pod x",
            "microk8s kubectl delete pod x",
            "microk8s.kubectl delete pod x",
            "minikube kubectl -- delete pod x",
            "tox exec -- pip install x",
            "meson devenv pip install x",
            "ctest --build-and-test a b --test-command pip install x",
            "bazel run --run_under='pip install x' //x",
            "nyc rm x",
            "make CC=rm x",
            "frob <<< 'rm x'",
        ],
    );
    none_held(
        others,
        [
            "make rm",
            "git rm x",
            "npm rm x",
            "git commit -m 'rm x; pip install y'",
            "cargo watch -x test",
            "npx eslint@8 src",
            "npm --dry-run false pack",
            "k3s kubectl get pods",
            "cargo build --features=rm",
            "pytest -k 'rm or x'",
            "rg 'pip install' docs",
            "docker run --rm alpine ls",
        ],
    );
    none_held(
        PUSH,
        [
            "git commit -m 'git push later'",
            "git commit -am 'x; git push'",
            "git tag -a v1 -m 'git push'",
            "git log --grep='git push'",
            "grep -rn 'git push' docs",
            "rg 'git push' -g '*.md'",
            "echo 'git push'",
            "printf 'git push\\n' > notes.txt",
            "gh pr create --title x --body 'then git push'",
            "sed -i 's/git push/git pull/' README.md",
            "find . -name 'git push'",
            "curl -d 'git push' http://localhost",
            "npm test -- -t 'pushes'",
            "awk '/git push/ {print}' f",
            "jq '.a == \"git push\"' f",
            "git stash push -m x",
            "sudo git commit -m 'git push later'",
            "timeout 60 grep -rn 'git push' .",
            "bash -lc \"grep -rn 'git push' .\"",
            "bash -lc \"git commit -m 'git push'\" && ls",
            "docker exec c bash -lc \"grep 'git push' f\"",
            "find . -name x | xargs grep 'git push'",
            "ssh host \"grep 'git push' f\"",
            "sudo tee notes.txt <<< 'git push'",
            "A=b git log --grep 'git push'",
        ],
    );
}

#[test]
fn l32_a_path_that_holds_other_than_installed_programs_makes_names_unknown() {
    let policy = policy(PUSH);
    for folder in [
        ".",
        "",
        "sub",
        "./sub",
        "$PWD/sub",
        "${PWD}",
        "$(pwd)/sub",
        "`pwd`",
        "/workspace/sub",
        "/tmp",
        "$x",
        "/usr/../tmp",
        "~/../x",
        "$HOME/work",
    ] {
        for (at, path) in
            [format!("{folder}:$PATH"), format!("/usr/bin:{folder}"), folder.to_owned()].iter().enumerate()
        {
            for line in [
                format!("PATH={path} g push"),
                format!("PATH=\"{path}\" g push"),
                format!("export PATH={path}; g push"),
                format!("export PATH={path}"),
                format!("env PATH={path} g push"),
                format!("declare -x PATH={path}; g push"),
                format!("PATH={path}; g push"),
            ] {
                assert!(is_held(&policy, &line), "{at} {line}: {:?}", analyse(&line));
            }
        }
    }
    all_held(
        PUSH,
        [
            "PATH+=:./sub; g push",
            "read PATH <<< sub; g push",
            "printf -v PATH sub; g push",
            "unset PATH; g push",
            "declare -n p=PATH; p=sub; g push",
            "for PATH in sub; do g push; done",
        ],
    );
    none_held(
        PUSH,
        [
            "export PATH=/a:/b",
            "export PATH=$HOME/.cargo/bin:$PATH; cargo test",
            "PATH=~/.local/bin:$PATH pytest",
            "export PATH=\"$JAVA_HOME/bin:${PATH}\" && mvn test",
            "PATH=/usr/local/go/bin:$PATH go test ./...",
            "env -i PATH=/bin ls",
            "echo $PATH",
            "PYTHONPATH=. pytest",
        ],
    );
}

/// Ways to carry a line into a program that runs it, with room for the line.
const CARRIERS: &[&str] = &[
    "frob --run='@'",
    "frob -c '@'",
    "frob -c'@'",
    "frob RUN='@'",
    "RUN='@' frob",
    "frob <<< '@'",
    "frob <<'E'\n@\nE",
    "echo '@' | frob",
    "echo '@' | nice frob -",
    "echo '@' > f.x; frob f.x",
    "npm exec --call='@'",
    "make x CC='@'",
    "bazel run --run_under='@' //x",
    "cmake -DX='@' .",
    "git rebase --ex '@' HEAD~1",
    "git clone --up='@' . c",
    "tox -x 'a.commands=@'",
    "python3 x.py --hook='@'",
    "echo '@' > x.sh; sh x.sh",
    "echo '@' > x.py; python3 x.py",
];

fn carried() -> impl Strategy<Value = (String, String)> {
    let around =
        ["@", "true; @", "@;:", "sudo @", "x && @", "(@)", "sh -c \"@\"", "system(\"@\")", "[\"a\", \"@\"]", "!@"];
    let ways =
        ["git push", "git  push origin main", "git -C . push", "/usr/bin/git push", "git-push", "git --no-pager push"];
    (
        proptest::sample::select(CARRIERS),
        proptest::sample::select(around.to_vec()),
        proptest::sample::select(ways.to_vec()),
    )
        .prop_map(|(carrier, around, way)| {
            let line = |command: &str| carrier.replace('@', &around.replace('@', command));
            (line(way), line("git status"))
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l32_a_denied_command_in_any_text_that_may_be_run_is_for_a_person((line, _) in carried()) {
        prop_assert!(is_held(&policy(PUSH), &line), "{}: {:?}", line, analyse(&line));
    }
}

#[test]
fn a_text_without_a_denied_command_is_nobodys_business() {
    let policy = policy(PUSH);
    for carrier in CARRIERS.iter().filter(|carrier| carrier.starts_with("frob") || carrier.contains("| frob")) {
        let line = carrier.replace('@', "git status; ls push");
        assert!(!is_held(&policy, &line), "{line}");
    }
}
