//! Every program whose verbs are known, as data.

use super::verbs::Verbs;

const fn verbs(names: &'static str, valued: &'static str, flags: &'static str) -> Verbs {
    Verbs {
        names,
        valued,
        flags,
        aliases: &[],
        abbreviates: None,
        nouns: false,
        any_case: false,
        task_paths: false,
        camel_case: false,
        tasks: false,
        before: &[],
        hyphenates: false,
        known: true,
    }
}

/// Programs of which no option is known: each of them may take a value or not.
const fn several(names: &'static str) -> Verbs {
    verbs(names, "", "")
}

const fn tasks(names: &'static str, valued: &'static str) -> Verbs {
    Verbs { tasks: true, ..verbs(names, valued, "") }
}

const fn unknown(verbs: Verbs) -> Verbs {
    Verbs { known: false, ..verbs }
}

/// A program with the verbs of npm.
const fn npm(name: &'static str, valued: &'static str, flags: &'static str) -> Verbs {
    Verbs {
        aliases: &[
            "install i in ins inst insta instal isnt isnta isntal isntall add",
            "uninstall un unlink remove rm r",
            "update u up upgrade udpate",
            "run run-script rum urn",
            "test t tst",
            "ci clean-install ic install-clean isntall-clean",
            "install-test it",
            "install-ci-test cit clean-install-test sit",
            "exec x",
            "config c",
            "view v info show",
            "ls list la ll",
            "login adduser add-user",
            "owner author",
            "dist-tag dist-tags",
            "init create innit",
            "rebuild rb",
            "dedupe ddp",
            "search s se find",
            "link ln",
            "docs home",
            "bugs issues",
            "explain why",
            "version verison",
            "help hlep",
            "org ogr",
        ],
        abbreviates: Some(
            "access approve-scripts audit bugs cache completion deny-scripts deprecate diff docs doctor edit explain \
             explore find-dupes fund get help help-search hook install-scripts logout org outdated pack ping pkg prefix \
             profile prune publish query repo restart root sbom set shrinkwrap stage star stars start stop team token \
             trust undeprecate unpublish unstar version whoami npm",
        ),
        camel_case: true,
        // The last ones are values of options that need none: `--dry-run false`.
        before: &[("workspace", 1), ("recursive", 0), ("multi", 0), ("m", 0), ("true", 0), ("false", 0), ("null", 0)],
        ..verbs(name, valued, flags)
    }
}

const fn kube(names: &'static str, valued: &'static str, flags: &'static str) -> Verbs {
    Verbs {
        hyphenates: true,
        aliases: &["uninstall un del delete", "install i", "list ls", "config cfg", "get g"],
        ..verbs(names, valued, flags)
    }
}

const KUBECTL_VALUED: &str = "-n --namespace --context --cluster --kubeconfig -s --server --token --user --as --as-group \
     --as-uid --cache-dir --certificate-authority --client-certificate --client-key --request-timeout --tls-server-name \
     -v --v --vmodule --profile --profile-output --password --username -l --selector -f --filename -o --output";

const KUBECTL_FLAGS: &str = "--insecure-skip-tls-verify --match-server-version --warnings-as-errors -A -h";

const fn docker(names: &'static str, valued: &'static str, flags: &'static str) -> Verbs {
    Verbs { hyphenates: true, nouns: true, aliases: &["rm remove", "ls list"], ..verbs(names, valued, flags) }
}

const MAKE_VALUED: &str = "-C --directory -f --file --makefile -I --include-dir -o --old-file -W --what-if --new-file \
     --assume-new --assume-old";

const MVN_VALUED: &str = "-f --file -pl --projects -P --activate-profiles -s --settings -gs --global-settings -T --threads \
     -l --log-file -rf --resume-from -b --builder";

const GRADLE_VALUED: &str = "-p --project-dir -b --build-file -c --settings-file -g --gradle-user-home -I --init-script -x \
     --exclude-task";

const APT_VALUED: &str = "-o --option -c --config-file -t --target-release --default-release";

const APT_FLAGS: &str = "-y --yes --assume-yes -q -qq --quiet -f -d -s --no-install-recommends --allow-downgrades \
     --reinstall --fix-broken -m -u -V --purge";

const DNF_VALUED: &str = "-c --config -d -e --releasever --installroot --repo --repoid --enablerepo --disablerepo -x \
     --exclude --setopt";

const DNF_FLAGS: &str = "-y --assumeyes -q --quiet -v --verbose";

const fn dnf(name: &'static str) -> Verbs {
    Verbs {
        aliases: &["install in", "remove erase rm", "upgrade update up", "reinstall rei", "downgrade dg"],
        ..verbs(name, DNF_VALUED, DNF_FLAGS)
    }
}

const fn packages(names: &'static str, valued: &'static str, flags: &'static str) -> Verbs {
    Verbs {
        aliases: &["install i", "update u upgrade", "require r", "remove rm uninstall"],
        abbreviates: Some("push build list exec update add show search require remove"),
        ..verbs(names, valued, flags)
    }
}

/// Every program whose verbs are known.
pub(super) static VERBS: &[Verbs] = &[
    Verbs {
        // The second names in `commands[]` of `git.c`.
        aliases: &["add stage", "blame annotate pickaxe", "init init-db", "fsck fsck-objects"],
        hyphenates: true,
        ..verbs(
            "git",
            "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source",
            "-p --paginate -P --no-pager --bare --no-replace-objects --no-lazy-fetch --literal-pathspecs \
             --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-advice \
             --exec-path --html-path --man-path --info-path -v --version -h --help",
        )
    },
    npm(
        "npm",
        "--prefix -C --registry -w --workspace --cache --userconfig --globalconfig --loglevel --tag --otp --access \
         --scope --omit --include --script-shell --location --before --auth-type",
        "-g --global -s --silent -q --quiet -d -dd -ddd --verbose -y --yes -f --force --json -ws --workspaces \
         --ignore-scripts --no-audit --no-fund --offline --prefer-offline --dry-run -P -D -E --no-color \
         --include-workspace-root --if-present",
    ),
    npm(
        "pnpm",
        "-C --dir --filter -F --filter-prod --loglevel --reporter",
        "-r --recursive -w --workspace-root --stream --aggregate-output --parallel --no-color --if-present",
    ),
    npm("yarn", "--cwd --registry --cache-folder --modules-folder", "-s --silent --json --offline --verbose --force"),
    npm("bun", "--cwd", "--silent --bun -b --if-present"),
    docker(
        "docker",
        "-c --context -H --host --config -l --log-level --tlscacert --tlscert --tlskey -f --file -p --project-name \
         --project-directory --env-file --profile --ansi --progress --parallel --builder",
        "-D --debug --tls --tlsverify -v --version --dry-run --compatibility",
    ),
    docker(
        "podman",
        "-c --connection --url --identity --root --runroot --storage-driver --storage-opt --network-cmd-path \
         --cgroup-manager --conmon --events-backend --hooks-dir --module --namespace --log-level --tmpdir --runtime",
        "-r --remote -v --version --syslog --noout",
    ),
    docker(
        "nerdctl",
        "-a --address -H --host -n --namespace --cni-path --cni-netconfpath --data-root --cgroup-manager --snapshotter",
        "--debug --debug-full --insecure-registry --experimental",
    ),
    docker("buildah", "", ""),
    kube("kubectl", KUBECTL_VALUED, KUBECTL_FLAGS),
    kube("oc", KUBECTL_VALUED, KUBECTL_FLAGS),
    kube(
        "helm",
        "-n --namespace --kube-context --kubeconfig --kube-apiserver --kube-as-user --kube-as-group --kube-ca-file \
         --kube-token --kube-tls-server-name --registry-config --repository-cache --repository-config --burst-limit --qps \
         -f --values -o --output",
        "--debug --kube-insecure-skip-tls-verify -A -h",
    ),
    kube("k9s kustomize k3s microk8s", "", ""),
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
        "pip",
        "--python --log --proxy --retries --timeout --exists-action --trusted-host --cert --client-cert --cache-dir \
         --keyring-provider --use-feature --use-deprecated",
        "-v -vv -vvv --verbose -q -qq --quiet --isolated --no-input --no-cache-dir --disable-pip-version-check \
         --no-color --debug --require-virtualenv",
    ),
    verbs(
        "uv",
        "--python -p --cache-dir --directory --project --config-file --color --allow-insecure-host",
        "-v -vv --verbose -q -qq --quiet --offline -n --no-cache --no-config --no-progress --native-tls \
         --no-python-downloads",
    ),
    several("pipx"),
    verbs("go", "-C", ""),
    Verbs {
        hyphenates: true,
        nouns: true,
        aliases: &["create new", "list ls", "delete remove", "codespace cs", "extension extensions ext"],
        ..verbs("gh", "-R --repo --hostname", "--help --version")
    },
    Verbs {
        hyphenates: true,
        nouns: true,
        aliases: &["create new", "list ls", "delete del remove", "merge accept", "ci pipe pipeline"],
        ..verbs("glab", "-R --repo", "--help --version")
    },
    Verbs { hyphenates: true, ..several("hub") },
    verbs("terraform", "", "-help -version"),
    several("tofu terragrunt"),
    Verbs {
        aliases: &["up update", "destroy down dn", "preview pre"],
        ..verbs("pulumi", "-C --cwd --color -s --stack", "")
    },
    verbs(
        "systemctl",
        "-t --type -s --signal -p --property -H --host -M --machine -n --lines -o --output --root --state --job-mode \
         --kill-whom --what --image",
        "--user --system --global --now -q --quiet --no-pager -f --force --no-block --no-ask-password -a --all \
         --no-reload --runtime -l --full",
    ),
    several("loginctl machinectl hostnamectl"),
    verbs("apt", APT_VALUED, APT_FLAGS),
    verbs("apt-get", APT_VALUED, APT_FLAGS),
    several("aptitude apt-cache"),
    dnf("dnf"),
    dnf("yum"),
    several("microdnf pacman apk"),
    Verbs {
        aliases: &[
            "install in",
            "remove rm",
            "update up",
            "dist-upgrade dup",
            "refresh ref",
            "addrepo ar",
            "removerepo rr",
        ],
        ..several("zypper")
    },
    Verbs { aliases: &["uninstall rm remove", "list ls"], ..several("brew port snap flatpak") },
    unknown(verbs(
        "aws",
        "--profile --region --endpoint-url --output --query --color --ca-bundle --cli-read-timeout \
         --cli-connect-timeout --cli-binary-format",
        "--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager --no-cli-auto-prompt",
    )),
    Verbs {
        before: &[("beta", 0), ("alpha", 0)],
        ..unknown(verbs(
            "gcloud",
            "--project --account --configuration --format --verbosity --billing-project --impersonate-service-account \
             --access-token-file --flags-file",
            "-q --quiet --log-http --no-user-output-enabled",
        ))
    },
    Verbs {
        any_case: true,
        ..unknown(verbs(
            "redis-cli",
            "-h -p -s -t -a -u --user --pass -n -r -i -D -d",
            "-c -e -x -2 -3 --raw --no-raw --csv --json --tls --no-auth-warning",
        ))
    },
    unknown(several("gsutil bq")),
    unknown(verbs("az", "--subscription -o --output --query", "--debug --verbose --only-show-errors")),
    unknown(several("doctl fly heroku vercel netlify wrangler firebase")),
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
            "hg",
            "-R --repository --cwd --config --encoding --color --pager",
            "-y --noninteractive -q --quiet -v --verbose --debug --traceback",
        )
    },
    verbs(
        "poetry",
        "-C --directory -P --project",
        "-q --quiet -v -vv -vvv --verbose -n --no-interaction --no-ansi --no-plugins --no-cache",
    ),
    verbs(
        "micromamba",
        "-n --name -p --prefix -r --root-prefix --rc-file",
        "-q --quiet -v -vv -vvv --verbose -y --yes",
    ),
    several("conda mamba pdm rye hatch pipenv pixi"),
    packages(
        "composer",
        "-d --working-dir",
        "--quiet --silent -q -v -vv -vvv -n --no-interaction --ansi --no-ansi --no-plugins --no-scripts --no-cache \
         --profile",
    ),
    packages("gem bundle bundler", "", ""),
    verbs("dotnet", "--roll-forward --fx-version --additionalprobingpath --depsfile", "-d --diagnostics"),
    several("nuget"),
    unknown(several(
        "twine rustup vault consul nomad op jj fossil bzr darcs rclone restic flux argocd \
         ansible-galaxy virsh lxc incus zfs zpool lvm nmcli networkctl journalctl nix guix deno turbo \
         nx lerna changeset semantic-release goreleaser skaffold tilt vagrant packer supabase prisma \
         alembic sqlx diesel sbt mix rebar3 opam stack cabal spack fastlane pod",
    )),
    tasks("make", MAKE_VALUED),
    tasks("gmake", MAKE_VALUED),
    tasks("ninja", "-C -f -j -k -l -d -t -w"),
    tasks("just", "-f --justfile -d --working-directory --dotenv-path --shell"),
    tasks("task", "-d --dir -t --taskfile"),
    tasks("rake", "-f --rakefile"),
    tasks("bmake pmake samu invoke inv fab nox tox doit mage gulp grunt ant bazel bazelisk pants buck2 msbuild", ""),
    Verbs { task_paths: true, ..tasks("mvn", MVN_VALUED) },
    Verbs {
        task_paths: true,
        // A beginning of a task stands for it.
        abbreviates: Some(
            "assemble build check classes clean deploy help init install jar projects properties publish run tasks test \
             wrapper",
        ),
        ..tasks("gradle", GRADLE_VALUED)
    },
];
