//! L32: spellings under which a forbidden command, or one that a rule does not mean, would run. Each is denied or opaque.
//! And lines of every day that must be neither.

use portcullis_base::Timestamp;
use portcullis_contract::{AccessRequest, Action, DefaultPolicy};
use portcullis_policy::command::{analyse, lexical};
use portcullis_policy::{Asker, Decision, Layer, Policy, PolicyBuilder, parse_rules};

/// As a person writes it who trusts a session with everything but one command.
const RULES: &str = "[[rules]]\naction = \"*\"\nargv = [\"rm\"]\neffect = \"deny\"\n\
                     [[rules]]\naction = \"bash\"\neffect = \"allow\"\n";

fn policy(rules: &str) -> Policy {
    let rules = parse_rules(rules, "rules.toml", Layer::User).expect("rules");
    PolicyBuilder::new().rules(rules).build().expect("a policy")
}

fn decide(policy: &Policy, line: &str) -> Decision {
    let requests: Vec<AccessRequest> = analyse(line).requests(&Action::new("bash"), line, &lexical("/workspace"));
    let now = Timestamp::from_micros(1);
    let asker = Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Auto, grants: &[] };
    policy.decide(&requests, &asker)
}

fn none_is_allowed<'l>(lines: impl IntoIterator<Item = &'l str>) {
    let policy = policy(RULES);
    assert!(matches!(decide(&policy, "ls -la"), Decision::Allow(_)));
    let through: Vec<&str> =
        lines.into_iter().filter(|line| matches!(decide(&policy, line), Decision::Allow(_))).collect();
    assert_eq!(through, Vec::<&str>::new(), "these would run");
}

#[test]
fn l32_wrappers_are_known_in_every_spelling() {
    let many = "--nofile=100 ".repeat(80);
    let long: Vec<String> = ["prlimit", "strace", "docker run", "uv run", "-x", "xargs --max rm"]
        .iter()
        .map(|name| format!("{name} {many}rm v"))
        .collect();
    let few = format!("prlimit {}rm v", "--nofile=100 ".repeat(26));
    none_is_allowed(long.iter().map(String::as_str).chain([few.as_str()]));
    none_is_allowed([
        "env - rm v",
        "env -u X - rm v",
        "env - A=b rm v",
        "env -i - rm v",
        "nohup env - rm v",
        "env a-b=1 rm v",
        "env 'BASH_FUNC_ls%%=() { rm v; }' bash -c ls",
        "sudo a.b=1 rm v",
        "flock f.lock -c 'rm v'",
        "flock -n f.lock --command 'rm v'",
        "flock f.lock -c 'true;rm v'",
        "bash -oc pipefail 'rm v'",
        "bash -ooc pipefail errexit 'rm v'",
        "bash -Oc extglob 'rm v'",
        "bash -euoc pipefail 'rm v'",
        "bash -c -o pipefail 'rm v'",
        "zsh -opipefail -c 'rm v'",
        "bash -c -- '-x; rm v'",
        "bash -c - 'rm v'",
        "bash +o posix -c 'rm v'",
        "time -- rm v",
        "time -p -- rm v",
        "! time -p -- rm v",
        "echo a | xargs --replace rm v",
        "echo v | xargs --max-lines rm",
        "echo v | xargs --max-l rm",
        "echo v | xargs --eof rm",
        "echo v | xargs -i rm {}",
        "echo v | xargs -l rm",
        "echo v | xargs -e rm",
        "echo v | xargs -J % rm %",
        "script -qc 'rm\tv'",
        "script -qc 'rm\nv' f",
        "script -qc '{rm,v}' f",
        "script -c 'true;rm' f",
        "su -c 'true;rm'",
        "su - root -c 'true&&rm'",
        "runuser -c 'true|rm'",
        "posh -c 'rm v'",
        "yash -c 'rm v'",
        "ksh93 -c 'rm v'",
        "mksh-static -c 'rm v'",
        "hush -c 'rm v'",
        "osh -c 'rm v'",
        "fish -c 'rm v'",
        "fish --command='rm v'",
        "fish -C 'rm v' a.fish",
        "fish -c 'and rm v'",
        "csh -c 'if (1) rm v'",
        "tcsh -c 'repeat 1 rm v'",
        "zsh -c 'noglob rm v'",
        "zsh -c '=rm v'",
        "nu -c 'rm v'",
        "jobs -x rm v",
        "chrt -d -T 5 -P 5 -D 5 0 rm v",
        "watch --equexit 3 rm v",
        "sudo -s 'rm v'",
        "sudo -i -u root 'rm v'",
        "tmux new-session -d 'rm v'",
        "tmux new -d rm v",
        "screen -dm rm v",
        "xterm -e rm v",
        "cmake -E rm v",
        "ip netns exec n rm v",
        "parallel ::: 'rm v'",
        "echo 'rm v' | parallel",
        "parallel {} v ::: rm",
        "bash /dev/stdin <<< 'rm v'",
        "echo 'rm v' | bash /dev/fd/0",
        "bash -s x <<< 'rm v'",
        "bash -o errexit <<< 'rm v'",
    ]);
}

#[test]
fn l32_builtins_that_evaluate_an_index_are_opaque() {
    let lines = [
        "let 'a[$(rm v)]=1'",
        "let x=y",
        "command let 'a[$(rm v)]=1'",
        "builtin let 'a[$(rm v)]=1'",
        "test -v 'a[$(rm v)]'",
        "test ! -v 'a[`rm v`]'",
        "[ -v 'a[$(rm v)]' ]",
        "[ -R 'a[$(rm v)]' ]",
        "[ -v 'a[y]' ]",
        "printf -v 'a[$(rm v)]' x",
        "printf -v'a[$(rm v)]' x",
        "printf -v 'a[`rm v`]' %s x",
        "read 'a[$(rm v)]'",
        "read -r 'a[$(rm v)]' <<< x",
        "declare 'a[$(rm v)]=1'",
        "declare -i 'x=a[$(rm v)]'",
        "declare -ai x=y",
        "typeset 'a[$(rm v)]=1'",
        "typeset -i x=y",
        "local 'a[$(rm v)]=1'",
        "export 'a[$(rm v)]=1'",
        "readonly 'a[$(rm v)]=1'",
        "declare -n 'r=a[$(rm v)]'",
        "unset 'a[$(rm v)]'",
        "unset -v 'a[`rm v`]'",
        "mapfile 'a[$(rm v)]'",
        "wait -n -p 'a[$(rm v)]'",
        "getopts ab 'a[$(rm v)]' -a",
        "y='a[$(rm v)]'",
        "y='a[$(rm v)]'; z[y]=1",
        "z[y]=1",
        "((a[$(rm v)]))",
        "[[ -v 'a[$(rm v)]' ]]",
        "bash -c \"test -v 'a[\\$(rm v)]'\"",
        "nice bash -c 'let x=y'",
    ];
    none_is_allowed(lines);
    // Nor does a rule for the builtin itself mean them.
    let names = [
        "printf", "test", "[", "read", "let", "declare", "typeset", "local", "export", "readonly", "unset", "wait",
        "getopts",
    ];
    let prefixes: String = names
        .iter()
        .map(|name| format!("[[rules]]\naction = \"*\"\nargv = [\"{name}\"]\neffect = \"allow\"\n"))
        .collect();
    let policy = policy(&prefixes);
    assert!(matches!(decide(&policy, "printf '%s\\n' a"), Decision::Allow(_)));
    for line in lines {
        assert!(matches!(decide(&policy, line), Decision::Ask(_)), "{line}: {:?}", analyse(line));
    }
}

#[test]
fn l32_programs_inside_words_options_and_variables_are_denied_or_opaque() {
    none_is_allowed([
        "git -c alias.x='!rm v' x",
        "git -c 'alias.x=!rm v' x",
        "git -calias.x='!rm v' x",
        "git -C a -c core.pager='rm v' log",
        "git -c core.editor='rm v' commit",
        "git -c sequence.editor='rm v' rebase -i HEAD~1",
        "git -c core.sshCommand='rm v' fetch",
        "git -c CORE.SSHCOMMAND='rm v' fetch",
        "git -c core.fsmonitor='rm v' status",
        "git -c core.hooksPath=. commit -m x",
        "git -c diff.external='rm v' diff",
        "git -c diff.x.textconv='rm v' diff",
        "git -c filter.x.clean='rm v' add .",
        "git -c credential.helper='!rm v' fetch",
        "git -c core.askpass='rm v' fetch",
        "git -c gpg.program='rm v' commit -S",
        "git -c pager.log='rm v' log",
        "git -c protocol.ext.allow=always clone ext::x",
        "git -c include.path=/dev/stdin x",
        "git --config-env=alias.x=Y x",
        "git --config-env alias.x=Y x",
        "git --exec-path=. x",
        "git --exec-path=. status",
        "git clone 'ext::sh -c rm' x",
        "git clone -u 'rm v' a b",
        "git clone --upload-pack='rm v' a b",
        "git clone -c core.fsmonitor='rm v' a b",
        "git clone --config core.fsmonitor='rm v' a b",
        "git ls-remote --upload-pack='rm v' .",
        "git push --receive-pack='rm v' .",
        "git push --exec='rm v' .",
        "git grep -O'rm v' x",
        "git grep --open-files-in-pager='rm v' x",
        "git rebase -x 'rm v' HEAD~1",
        "git rebase --exec 'rm v' HEAD~1",
        "git difftool -x 'rm v'",
        "git difftool --extcmd='rm v'",
        "git filter-branch --tree-filter 'rm v'",
        "git config alias.x '!rm v'",
        "git config --global core.pager 'rm v'",
        "git config set alias.x '!rm v'",
        "git bisect run rm v",
        "sed '1e rm v' a.txt",
        "sed \"1e rm v\" a.txt",
        "sed 's/a/rm v/e' a.txt",
        "sed -n 'w out' a.txt",
        "sed -e p -e 'e rm v' a",
        "sed -f - a <<< 'e rm v'",
        "tar cf a --checkpoint=1 --checkpoint-action=exec='rm v' b",
        "tar cf a --checkpoint=1 --checkpoint-action 'exec=rm v' b",
        "tar cf a --checkpoint-a='exec=sh -c rm' b",
        "tar xf a --to-command='rm v'",
        "tar xf a --to-c='rm v'",
        "tar -I 'rm v' -xf a",
        "tar -xI 'rm v' -f a",
        "tar --use-compress-program='rm v' -xf a",
        "tar --use-compress-program 'rm v' -xf a",
        "tar xIf 'rm v' a",
        "tar cMf a -F 'rm v' b",
        "tar -I 'gzip;rm v' -xf a",
        "make --eval='x:;rm v'",
        "make --eval 'x:;rm v'",
        "make -E 'x:;rm v'",
        "make 'X=$(shell rm v)'",
        "make SHELL='rm v'",
        "make -f /dev/stdin <<< 'x:;rm v'",
        "vim -es -c ':!rm v' -c q",
        "vi -c ':!rm v'",
        "ex -c '!rm v'",
        "nvim --headless +'!rm v' +q",
        "view -c ':!rm v'",
        "emacs --batch --eval '(delete-file \"v\")'",
        "ed a <<< '!rm v'",
        "ssh -o ProxyCommand='rm v' h",
        "ssh -oProxyCommand='rm v' h ls",
        "ssh -o 'proxycommand rm v' h ls",
        "ssh -o PermitLocalCommand=yes -o LocalCommand='rm v' h ls",
        "ssh h <<< 'rm v'",
        "ssh -p 22 h <<< 'rm v'",
        "scp -S 'rm' a h:b",
        "scp -o ProxyCommand='rm v' a h:b",
        "sftp -b - h <<< '!rm v'",
        "rsync -e 'rm v' a h:b",
        "rsync -ave 'rm v' a h:b",
        "rsync --rsh='rm v' a h:b",
        "rsync -e 'ssh -o ProxyCommand=x' a h:b",
        "gdb -batch -ex 'shell rm v'",
        "gdb --eval-command='shell rm v'",
        "lldb -o 'platform shell rm v'",
        "awk 'BEGIN{system(\"rm v\")}'",
        "gawk -f a.awk",
        "find . -exec rm v ';'",
        "perl -e 'unlink v'",
        "perl -ne 'unlink' a",
        "sqlite3 a.db '.shell rm v'",
        "sqlite3 a.db <<< '.shell rm v'",
        "psql -c '\\! rm v'",
        "psql <<< '\\! rm v'",
        "mysql -e 'system rm v'",
        "man -P 'rm v' ls",
        "man --pager='rm v' ls",
        "less '+!rm v' a",
        "split --filter='rm v' a",
        "sort --compress-program=rm a",
        "rg --pre rm x",
        "rg --pre=./x y",
        "zip -T -TT 'rm v' a b",
        "go test -exec 'rm v' ./...",
        "go build -toolexec='rm v'",
        "gcc -wrapper rm,v a.c",
        "nc -e rm h 1",
        "ncat --sh-exec 'rm v' h 1",
        "socat - EXEC:'rm v'",
        "tcpdump -z rm -w v",
        "wget --use-askpass=rm x",
        "hg --config alias.x='!rm v' x",
        "m4 <<< 'syscmd(rm v)'",
        "dc -e '!rm v'",
        "at now <<< 'rm v'",
        "crontab - <<< '* * * * * rm v'",
        "python3 -m timeit -s 'import os'",
        "python3 -mtimeit 'import os'",
        "cargo --config 'build.rustc-wrapper=\"x\"' build",
        "apt-get -o APT::Update::Pre-Invoke::='rm v' update",
        "npm --script-shell=./x test",
        "PAGER='rm v' git log",
        "GIT_PAGER='rm v' git -p log",
        "GIT_SSH_COMMAND='rm v' git fetch",
        "GIT_SSH_COMMAND='ssh -o ProxyCommand=x;rm v' git fetch",
        "GIT_SSH_COMMAND='ssh -o ProxyCommand=./x' git fetch",
        "PAGER='less +!rm' git log",
        "GIT_EDITOR='rm v' git commit",
        "EDITOR='rm v' crontab -e",
        "GIT_EXTERNAL_DIFF='rm v' git diff",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm v' git x",
        "env GIT_PAGER='rm v' git -p log",
        "export GIT_PAGER='rm v'; git -p log",
        "LESSOPEN='|rm v' less a",
        "PS4='$(rm v)' bash -xc ls",
        "BASH_ENV='$(rm v)' bash -c ls",
        "MAKEFLAGS='--eval=x:;rm' make",
        "NODE_OPTIONS='--import=data:text/javascript,x' node a.js",
        "PERL5OPT='-Mstrict;system(1)' perl a.pl",
        "PROMPT_COMMAND='rm v' bash -i",
    ]);
}

#[test]
fn l32_lines_of_every_day_are_not_opaque() {
    let policy = policy("[[rules]]\naction = \"*\"\neffect = \"allow\"\n");
    let mut asked: Vec<(&str, Vec<String>)> = Vec::new();
    for line in [
        "env FOO=1 cargo test",
        "env -i PATH=/bin ls",
        "env",
        "time make",
        "time -p cargo build",
        "test -f x",
        "test -f 'src/[id].tsx'",
        "[ -n x ]",
        "[ -d 'a[b]' ]",
        "printf '%s\\n' a",
        "printf '[%s]' a",
        "read -r x",
        "export FOO=bar",
        "export PATH=/a:/b",
        "declare -r X=1",
        "local x=1",
        "unset X",
        "unset 'a[0]'",
        "wait",
        "git status",
        "git -c color.ui=false status",
        "git -c core.pager=cat log --oneline",
        "git -c core.quotepath=off diff",
        "git -c user.name=a -c user.email=b commit -m 'x y'",
        "git -C sub log -1",
        "git --no-pager diff --stat",
        "git commit -m 'fix [a] (b)'",
        "git config user.name ada",
        "git config --get core.pager",
        "git config alias.x",
        "git clone https://example.com/a.git",
        "git grep -n x",
        "git rebase main",
        "git push origin main",
        "git diff --exit-code",
        "GIT_PAGER=cat git log",
        "GIT_EDITOR=true git rebase --continue",
        "PAGER='less -R' git log",
        "GIT_SSH_COMMAND='ssh -i key' git fetch",
        "RUST_LOG=debug cargo run",
        "NODE_OPTIONS=--max-old-space-size=4096 npm test",
        "MAKEFLAGS=-j4 make",
        "CFLAGS='-O2 -g' make",
        "sed -n 1,5p f",
        "sed -i 's/a/b/g' f",
        "sed -e 's/e/w/' -e '/x/d' f",
        "tar xf a.tar",
        "tar -czf a.tar.gz src",
        "tar -I zstd -xf a.tar.zst",
        "tar --use-compress-program=pigz -cf a b",
        "tar cf a --checkpoint=100 --checkpoint-action=dot b",
        "make -j4",
        "make -C sub -f other.mk CC=clang V=1",
        "xargs -n1 echo",
        "xargs -0 -I % cp % out",
        "xargs -P 4 -n 1 timeout 5 grep x",
        "find . -name a -exec grep x '{}' +",
        "rsync -av a b",
        "rsync -e ssh -av a h:b",
        "ssh h ls -la",
        "ssh -o StrictHostKeyChecking=no h uptime",
        "scp a h:b",
        "docker ps --format '{{.Names}}'",
        "docker run --rm -v /a:/b alpine ls",
        "kubectl get pods -o jsonpath='{.items[0].metadata.name}'",
        "npx vitest run",
        "npm run build",
        "uv run pytest -x",
        "python3 -m pytest tests",
        "python3 script.py --flag",
        "node app.js",
        "bash script.sh -x",
        "bash -euo pipefail -c 'cargo test'",
        "go test ./...",
        "gcc -o a a.c",
        "rg --pretty x",
        "sort -u a",
        "psql -c 'select 1'",
        "bash --version",
        "vim --version",
        "cargo --config net.offline=true build",
        "timeout 60 cargo test",
        "flock a.lock cargo build",
        "cmake -B build -S .",
    ] {
        let why = analyse(line).opaque;
        if !why.is_empty() || !matches!(decide(&policy, line), Decision::Allow(_)) {
            asked.push((line, why));
        }
    }
    assert_eq!(asked, [], "these would be asked about");
}
