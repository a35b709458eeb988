//! Programs that do what their verb says, as data: which options may stand before the verb, and which verbs are one.
//!
//! `git -C dir --no-pager push` is `git push`. An option that is not listed may take a value or not, so both readings are
//! tried; the lists keep a value such as the `push` of `git -C push status` from being taken for the verb.

/// What is known of one program.
pub struct Verbs {
    names: &'static str,
    /// Options that take the next word, unless their value is attached.
    valued: &'static str,
    /// Options that take none.
    flags: &'static str,
    /// Verbs that mean the same, in groups.
    aliases: &'static [&'static str],
    /// The beginning of a verb stands for it, unless it is a verb itself: one of these, or one with other names.
    abbreviates: Option<&'static str>,
    /// Any operand is a task to run, and the order is the person's.
    tasks: bool,
    /// Words before the verb, with the number of operands each takes.
    before: &'static [(&'static str, usize)],
    /// `NAME-VERB` is a program of its own that does the same as `NAME VERB`.
    hyphenates: bool,
    /// Whether all that it may run is found by the other tables. It has a verb `rm` that is not the program otherwise,
    /// and nobody can tell.
    known: bool,
}

const fn verbs(names: &'static str, valued: &'static str, flags: &'static str) -> Verbs {
    Verbs {
        names,
        valued,
        flags,
        aliases: &[],
        abbreviates: None,
        tasks: false,
        before: &[],
        hyphenates: false,
        known: true,
    }
}

const fn tasks(names: &'static str, valued: &'static str) -> Verbs {
    Verbs { tasks: true, ..verbs(names, valued, "") }
}

const fn unknown(verbs: Verbs) -> Verbs {
    Verbs { known: false, ..verbs }
}

/// Whether a list of words, as the table has them, holds this one.
fn holds(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

const NPM_VALUED: &str = "--prefix -C --registry -w --workspace --cache --userconfig --globalconfig --loglevel --tag \
         --otp --access --scope --omit --include --script-shell --dir --filter -F --cwd --location \
         --before --auth-type";

const NPM_FLAGS: &str = "-g --global -s --silent -q --quiet -d -dd -ddd --verbose -y --yes -f --force --json -ws \
         --workspaces --ignore-scripts --no-audit --no-fund --offline --prefer-offline -r --recursive \
         --dry-run -P -D -E --no-color --workspace-root --include-workspace-root --aggregate-output \
         --parallel --stream --no-bail --if-present";

const KUBE_VALUED: &str = "-n --namespace --context --kube-context --cluster --kubeconfig -s --server --token --user \
         --as --as-group --as-uid --cache-dir --certificate-authority --client-certificate \
         --client-key --request-timeout --tls-server-name -v --v --vmodule --profile --profile-output \
         --password --username -l --selector -f --filename -o --output --registry-config \
         --repository-cache --repository-config --burst-limit";

const DOCKER_VALUED: &str = "-c --context -H --host --config -l --log-level --tlscacert --tlscert --tlskey -f --file -p \
         --project-name --project-directory --env-file --profile --ansi --progress --parallel \
         --connection --url --identity --root --runroot --storage-driver --storage-opt \
         --network-cmd-path --cgroup-manager --conmon --events-backend --hooks-dir --module \
         --namespace -n -a --address --builder";

/// Every program whose verbs are known.
static VERBS: &[Verbs] = &[
    Verbs {
        aliases: &["add stage", "blame annotate"],
        hyphenates: true,
        ..verbs(
            "git",
            "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source \
         --list-cmds",
            "-p --paginate -P --no-pager --bare --no-replace-objects --no-lazy-fetch --literal-pathspecs \
         --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-advice \
         --exec-path --html-path --man-path --info-path -v --version -h --help",
        )
    },
    Verbs {
        aliases: &[
            "install i in ins inst insta instal isnt isnta isntal isntall add",
            "uninstall un unlink remove rm r",
            "update up upgrade udpate",
            "run run-script rum urn",
            "test t tst",
            "ci clean-install ic install-clean isntall-clean",
            "exec x",
            "config c",
            "view v info show",
            "publish pu pub",
            "ls list la ll",
            "login adduser add-user",
            "owner author",
            "dist-tag dist-tags",
            "init create innit",
            "rebuild rb",
            "dedupe ddp",
            "search s se find",
            "link ln",
        ],
        abbreviates: Some(
            "access audit bugs cache completion deprecate diff docs doctor edit explain explore fund get \
         help hook logout org outdated pack ping pkg prefix profile prune publish query repo restart \
         root set star stars start stop team token unpublish unstar version whoami install-test npm",
        ),
        // The last ones are values of options that need none: `--dry-run false`.
        before: &[("workspace", 1), ("recursive", 0), ("multi", 0), ("m", 0), ("true", 0), ("false", 0), ("null", 0)],
        ..verbs("npm pnpm yarn bun", NPM_VALUED, NPM_FLAGS)
    },
    Verbs {
        hyphenates: true,
        aliases: &["rm remove", "ls list"],
        ..verbs(
            "docker podman nerdctl buildah",
            DOCKER_VALUED,
            "-D --debug --tls --tlsverify -v --version -r --remote --dry-run --compatibility",
        )
    },
    Verbs {
        hyphenates: true,
        aliases: &["uninstall un del delete", "install i", "list ls", "config cfg", "get g"],
        ..verbs(
            "kubectl oc helm k9s kustomize k3s microk8s",
            KUBE_VALUED,
            "--insecure-skip-tls-verify --match-server-version --warnings-as-errors --debug -A -h",
        )
    },
    Verbs {
        hyphenates: true,
        aliases: &["build b", "check c", "doc d", "test t", "run r", "remove rm"],
        ..verbs(
            "cargo",
            "--color --config -C -Z --manifest-path --target-dir --lockfile-path",
            "-v -vv --verbose -q --quiet --frozen --locked --offline -V --list",
        )
    },
    verbs(
        "pip uv pipx",
        "--python --log --proxy --retries --timeout --exists-action --trusted-host --cert \
         --client-cert --cache-dir --keyring-provider --use-feature --use-deprecated --directory \
         --project --config-file --color --allow-insecure-host -p",
        "-v -vv -vvv --verbose -q -qq --quiet --isolated --no-input --no-cache-dir \
         --disable-pip-version-check --no-color --debug --require-virtualenv --offline -n --no-cache \
         --no-config --no-progress --native-tls --no-python-downloads",
    ),
    verbs("go", "-C", ""),
    Verbs { hyphenates: true, ..verbs("gh glab hub", "-R --repo --hostname", "--help --version") },
    verbs("terraform tofu terragrunt pulumi", "-C --cwd --color -s --stack", "-help -version"),
    verbs(
        "systemctl loginctl machinectl hostnamectl",
        "-t --type -s --signal -p --property -H --host -M --machine -n --lines -o --output --root \
         --state --job-mode --kill-whom --what --image",
        "--user --system --global --now -q --quiet --no-pager -f --force --no-block --no-ask-password \
         -a --all --no-reload --runtime -l --full",
    ),
    verbs(
        "apt apt-get aptitude apt-cache",
        "-o --option -c --config-file -t --target-release --default-release -a",
        "-y --yes --assume-yes -q -qq --quiet -f -d -s --no-install-recommends --allow-downgrades \
         --reinstall --fix-broken -m -u -V --purge",
    ),
    verbs(
        "dnf yum microdnf zypper pacman apk",
        "-c --config -d -e --releasever --installroot --repo --repoid --enablerepo --disablerepo -x \
         --exclude --setopt -p --root -X --repository",
        "-y --assumeyes -q --quiet -v --verbose -n --non-interactive --no-cache -U",
    ),
    Verbs {
        aliases: &["uninstall rm remove", "list ls"],
        ..verbs("brew port snap flatpak", "", "-v --verbose -q --quiet -d --debug --user --system")
    },
    unknown(verbs(
        "aws",
        "--profile --region --endpoint-url --output --query --color --ca-bundle --cli-read-timeout \
         --cli-connect-timeout --cli-binary-format",
        "--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager --no-cli-auto-prompt",
    )),
    unknown(verbs(
        "gcloud gsutil bq",
        "--project --account --configuration --format --verbosity --billing-project \
         --impersonate-service-account --access-token-file --flags-file -h -o --location",
        "-q --quiet --log-http --no-user-output-enabled -m -D",
    )),
    unknown(verbs(
        "az doctl flyctl fly heroku vercel netlify wrangler firebase",
        "--subscription -o --output --query -t --token --access-token -c --config -a --app -S --scope \
         -P --project --context --cwd --auth",
        "--debug --verbose --only-show-errors -y --yes -d",
    )),
    Verbs {
        aliases: &[
            "commit ci",
            "checkout co",
            "update up",
            "delete del remove rm",
            "switch sw",
            "status stat st",
            "propset pset ps",
            "copy cp",
            "move mv rename ren",
            "diff di",
        ],
        ..verbs(
            "svn",
            "--username --password --config-dir --config-option --trust-server-cert-failures",
            "--non-interactive --no-auth-cache --force-interactive -q -v",
        )
    },
    Verbs {
        aliases: &["commit ci", "update up checkout co", "remove rm", "status st"],
        abbreviates: Some("add branch clone diff log merge pull push init backout"),
        ..verbs(
            "hg mercurial",
            "-R --repository --cwd --config --encoding --color --pager",
            "-y --noninteractive -q --quiet -v --verbose --debug --traceback",
        )
    },
    verbs(
        "conda mamba micromamba poetry pdm rye hatch pipenv pixi",
        "-C --directory -P --project -n --name -p --prefix -r --root-prefix -e --env --manifest-path \
         --color --config --data-dir --cache-dir",
        "-q --quiet -v -vv -vvv --verbose -n --no-interaction --no-ansi --no-plugins --no-cache -y \
         --yes",
    ),
    Verbs {
        aliases: &["install i"],
        abbreviates: Some("push build list exec update add show search require remove"),
        ..verbs(
            "gem bundle bundler composer",
            "--config-file --gemfile -d --working-dir --retry",
            "--verbose --quiet --silent -q -v -vv -vvv -n --no-interaction --ansi --no-ansi --no-plugins \
         --no-scripts --no-cache --backtrace --debug --profile",
        )
    },
    verbs("dotnet nuget", "--roll-forward --fx-version --additionalprobingpath --depsfile", "-d --diagnostics"),
    unknown(verbs(
        "twine rustup vault consul nomad op jj fossil bzr darcs rclone restic flux argocd \
         ansible-galaxy virsh lxc incus zfs zpool lvm nmcli networkctl journalctl nix guix deno turbo \
         nx lerna changeset semantic-release goreleaser skaffold tilt vagrant packer supabase prisma \
         alembic sqlx diesel sbt mix rebar3 opam stack cabal spack fastlane pod",
        "-R --repository --config -c --profile --namespace --address -o -C --cwd",
        "",
    )),
    tasks(
        "make gmake bmake pmake ninja samu",
        "-C --directory -f --file --makefile -I --include-dir -o --old-file -W --what-if --new-file \
         --assume-new --assume-old -k -d -t",
    ),
    tasks(
        "just task rake invoke inv fab nox tox doit mage gulp grunt ant bazel bazelisk pants buck2 \
         msbuild",
        "-f --justfile -d --working-directory --dir --taskfile -t --rakefile -c --collection -r \
         --search-root -e -s --session --buildfile -buildfile --cwd --gulpfile",
    ),
    tasks(
        "mvn gradle",
        "-f --file -pl --projects -P --activate-profiles -s --settings -gs -T -l --log-file -p \
         --project-dir -b --build-file -c --settings-file -g --gradle-user-home -I --init-script -x \
         --exclude-task -rf --resume-from",
    ),
];

/// How many of the next words an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionArity {
    None,
    One,
    /// It is not listed.
    Either,
}

impl Verbs {
    /// Of a program by its family.
    pub fn of(family: &str) -> Option<&'static Self> {
        VERBS.iter().find(|verbs| holds(verbs.names, family))
    }

    /// Of an option that stands before a verb.
    fn takes(&self, word: &str) -> OptionArity {
        if holds(self.flags, word) {
            return OptionArity::None;
        }
        if holds(self.valued, word) { OptionArity::One } else { OptionArity::Either }
    }

    /// Whether the verb `written` does what `meant` does.
    fn same(&self, meant: &str, written: &str) -> bool {
        let group = |word: &str| self.aliases.iter().find(|group| holds(group, word));
        if let Some(group) = group(written) {
            return holds(group, meant);
        }
        // Any beginning of a verb, where no other verb is written so.
        let short = |known: &str| !written.is_empty() && meant.starts_with(written) && !holds(known, written);
        self.abbreviates.is_some_and(short)
    }
}

/// What may stand between the words of a command that a rule names.
pub struct VerbGap(Option<&'static Verbs>);

impl VerbGap {
    pub fn of(program: &str) -> Self {
        Self(Verbs::of(family(super::unwrap::base(program))))
    }

    /// Whether a word is an option that may stand before a verb, and what it takes.
    pub fn option(&self, word: &str) -> Option<OptionArity> {
        if word == "--" {
            return Some(OptionArity::None);
        }
        // `cargo +nightly publish`
        if word.starts_with('+') && word.len() > 1 {
            return Some(OptionArity::None);
        }
        let takes = || match self.0 {
            // An attached value is all that it takes.
            _ if word.contains('=') => OptionArity::None,
            Some(verbs) => verbs.takes(word),
            None => OptionArity::Either,
        };
        (word.len() > 1 && word.starts_with('-')).then(takes)
    }

    /// How many operands go with a word that stands before the verb.
    pub fn before(&self, word: &str) -> Option<usize> {
        self.0?.before.iter().find(|(name, _)| *name == word).map(|(_, operands)| *operands)
    }

    /// Whether every operand is something to run.
    pub fn any_order(&self) -> bool {
        self.0.is_some_and(|verbs| verbs.tasks)
    }

    /// Whether the verb `written` does what `meant` does.
    pub fn same_verb(&self, meant: &str, written: &str) -> bool {
        meant == written || self.0.is_some_and(|verbs| verbs.same(meant, written))
    }
}

pub fn is_known(family: &str) -> bool {
    Verbs::of(family).is_some_and(|verbs| verbs.known)
}

/// `git-push` as `git` and `push`.
pub fn hyphenated(name: &str) -> Option<(&str, &str)> {
    let (program, verb) = name.split_once('-')?;
    let plain = !verb.is_empty() && !verb.contains('.');
    (plain && Verbs::of(program)?.hyphenates).then_some((program, verb))
}

/// Programs that bear a version in their name.
const VERSIONED: &str = "python pypy pip node nodejs ruby gem perl php lua luajit gcc g++ clang clang++ java go psql \
    podman docker vim tclsh guile bash zsh ksh make git";

/// The name that programs share which are one program: without a version, a suffix, or the `w` of a wrapper script.
pub fn family(name: &str) -> &str {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    // `npx npm@10`, `npx any@npm:npm`
    let name = name.split_once("@npm:").map_or(name, |(_, real)| real);
    let name = name.split('@').next().filter(|plain| !plain.is_empty()).unwrap_or(name);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let name = if plain.len() < name.len() && holds(VERSIONED, plain) { plain } else { name };
    match name {
        "nodejs" => "node",
        "gradlew" => "gradle",
        "mvnw" => "mvn",
        "docker.io" => "docker",
        "npm-cli.js" => "npm",
        "npx-cli.js" => "npx",
        "yarn.js" | "yarn.cjs" | "yarnpkg" => "yarn",
        "pnpm.cjs" => "pnpm",
        "microk8s.kubectl" => "kubectl",
        "fdfind" => "fd",
        "batcat" => "bat",
        _ => name,
    }
}
