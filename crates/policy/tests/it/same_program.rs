//! L32: one command under other words. A script is the same program however it is started, a verb is the same under every
//! name that its program documents, and words that a variable holds are words of the command.

use portcullis_base::Timestamp;
use portcullis_command::analyse;
use portcullis_contract::{Action, DefaultPolicy};
use portcullis_policy::{Asker, Decision, Layer, Policy, PolicyBuilder, lexical, line_access, parse_rules};

fn policy(denied: &str) -> Policy {
    let words: Vec<String> = denied.split(' ').map(|word| format!("{word:?}")).collect();
    let rules = format!(
        "[[rules]]\nid = \"no\"\naction = \"*\"\nargv = [{}]\neffect = \"deny\"\n[[rules]]\naction = \"*\"\neffect = \"allow\"\n",
        words.join(", ")
    );
    let rules = parse_rules(&rules, "rules.toml", Layer::User).expect("rules");
    PolicyBuilder::new().rules(rules).build().expect("a policy")
}

fn decide(denied: &str, line: &str) -> Decision {
    let requests = line_access(&analyse(line), &Action::new("bash"), line, &lexical("/workspace"));
    let now = Timestamp::from_micros(1);
    let asker = Asker { agent: None, session: None, project: None, now, default: DefaultPolicy::Auto, grants: &[] };
    policy(denied).decide(&requests, &asker)
}

fn is_denied(denied: &str, line: &str) -> bool {
    matches!(decide(denied, line), Decision::Deny(_))
}

#[test]
fn l32_a_script_is_one_program_however_it_is_started() {
    let starters = [
        "",
        "bash ",
        "sh ",
        "dash ",
        "zsh ",
        "bash -x ",
        "sh -e ",
        "python3 ",
        "python3.12 -u ",
        "/usr/bin/python3 ",
        "node ",
        "perl -w ",
        "ruby ",
        "php ",
        "php -f ",
        "lua ",
        "Rscript ",
        "deno run -A ",
        "bun run ",
        "bun ",
        "source ",
        ". ",
        "env bash ",
        "sudo -n sh ",
        "exec bash ",
        "timeout 9 python3 ",
        "nohup nice sh ",
    ];
    let mut tried = 0;
    for (script, ending) in [("launch", ""), ("deploy", ".sh"), ("manage", ".py"), ("x", ".mjs")] {
        let name = format!("{script}{ending}");
        let rules = [
            name.clone(),
            format!("./{name}"),
            format!("scripts/{name}"),
            format!("bash {name}"),
            format!("python3 ./{name}"),
            format!("node scripts/{name}"),
        ];
        for rule in rules.iter().flat_map(|rule| [rule.clone(), format!("{rule} prod")]) {
            for starter in starters {
                for path in ["", "./", "scripts/", ".//scripts/../", "/workspace/"] {
                    // A name alone is looked for in `PATH`, and only a program with a `/` is a file.
                    if (starter.is_empty() || starter.starts_with("bun ")) && path.is_empty() {
                        continue;
                    }
                    for line in
                        [format!("{starter}{path}{name} prod"), format!("cd a && {starter}{path}{name} prod -v")]
                    {
                        assert!(is_denied(&rule, &line), "{rule}: {line}: {:?}", decide(&rule, &line));
                        tried += 1;
                    }
                }
            }
        }
    }
    assert!(tried > 5_000, "{tried}");
    // The control: another script, and another word behind it.
    for (rule, line) in [
        ("./deploy.sh", "bash build.sh"),
        ("./deploy.sh", "bash build.sh deploy.sh.md"),
        ("./deploy.sh prod", "bash deploy.sh staging"),
        ("python3 manage.py migrate", "python3 ./manage.py test"),
        ("python3 manage.py migrate", "./manage.py runserver"),
        ("bash deploy.sh", "cat deploy.sh"),
        ("bash deploy.sh", "chmod +x deploy.sh"),
        ("bun test", "test -f x"),
        ("bun run build", "bun test"),
        ("python3 -m http.server", "python3 -m json.tool x"),
        ("python3 -u manage.py", "python3 manage.py"),
    ] {
        assert!(!is_denied(rule, line), "{rule}: {line}");
    }
    assert!(is_denied("python3 -u manage.py", "python3 -u ./manage.py"));
}

#[test]
fn l32_a_verb_is_one_under_every_name_that_its_program_documents() {
    for (rule, lines) in [
        ("docker run", &["docker container run x", "docker --context a container run x"][..]),
        ("podman run", &["podman container run x", "podman --remote container run x"]),
        ("docker container run", &["docker run x", "docker -D run x"]),
        ("docker rm -f", &["docker container rm --force x", "docker container remove -f x", "docker rm x --force"]),
        ("docker rmi", &["docker image rm x", "docker image remove x"]),
        ("docker ps", &["docker container ls", "docker container list -a", "docker container ps"]),
        (
            "docker build",
            &["docker image build .", "docker builder build .", "docker buildx build .", "docker buildx b ."],
        ),
        ("docker push", &["docker image push x"]),
        ("docker stack rm", &["docker stack down x", "docker stack remove x"]),
        ("gh pr create", &["gh pr new", "gh -R a/b pr new --fill"]),
        ("gh secret delete", &["gh secret remove X"]),
        ("gh issue list", &["gh issue ls"]),
        ("gh codespace delete", &["gh cs delete"]),
        ("glab mr merge", &["glab mr accept 1"]),
        ("pulumi up", &["pulumi update -y", "pulumi -C x update"]),
        ("pulumi destroy", &["pulumi down", "pulumi dn -y"]),
        ("fly deploy", &["flyctl deploy"]),
        ("flyctl deploy", &["fly deploy", "/usr/local/bin/flyctl -v deploy"]),
        ("vercel deploy", &["vercel --prod", "vercel", "vercel . --prod", "vc --prod", "vercel deploy"]),
        ("yarn install", &["yarn", "yarn --frozen-lockfile", "yarn --cwd a"]),
        ("npm exec", &["npx x", "npm x y"]),
        ("npx", &["npm exec x", "npm x y", "npm --silent exec y"]),
        ("uvx", &["uv tool run x"]),
        ("gradle publish", &["gradle :publish", "./gradlew :app:publish", "gradle clean :a:b:publish", "gradle pub"]),
        ("gradle :app:publish", &["gradle app:publish", "gradle publish"]),
        ("mvn deploy", &["mvn deploy:deploy", "mvn -B clean org.apache.maven.plugins:maven-deploy-plugin:3.1:deploy"]),
        (
            "gcloud compute instances delete",
            &["gcloud beta compute instances delete x", "gcloud -q alpha compute instances delete"],
        ),
        (
            "git branch -D",
            &["git branch -d -f x", "git branch --delete --force x", "git branch -df x", "git branch x -D"],
        ),
        ("git branch -d", &["git branch -D x", "git branch --delete x"]),
        ("terraform destroy", &["terraform apply -destroy", "terraform -chdir=a apply -auto-approve -destroy"]),
        ("redis-cli flushall", &["redis-cli FLUSHALL", "redis-cli -h x -n 2 FlushAll", "redis-cli --raw FLUSHALL"]),
        ("zypper install", &["zypper in x", "zypper -n in x"]),
        ("dnf remove", &["dnf erase x", "dnf -y rm x"]),
        ("apt purge", &["apt remove --purge x", "apt -y remove x --purge"]),
        (
            "make deploy",
            &["make ./deploy", "make -k .//deploy", "make .DEFAULT_GOAL=deploy", "make .DEFAULT_GOAL:=deploy V=1"],
        ),
        ("go run scripts/release.go", &["go run ./scripts/release.go"]),
    ] {
        for line in lines {
            assert!(is_denied(rule, line), "{rule}: {line}: {:?}", decide(rule, line));
        }
    }
    // The control: what only resembles it.
    for (rule, line) in [
        ("docker rm", "docker image rm x"),
        ("docker rmi", "docker container rm x"),
        ("docker run", "docker container ls"),
        ("docker push", "docker image pull x"),
        ("gh pr create", "gh pr list"),
        ("gh pr create", "gh issue new"),
        ("pulumi destroy", "pulumi up"),
        ("vercel deploy", "vercel env pull"),
        ("vercel deploy", "vercel --version"),
        ("yarn install", "yarn test"),
        ("yarn install", "yarn --version"),
        ("npm exec", "npm test"),
        ("gradle publish", "gradle publishToMavenLocal"),
        ("gradle publish", "gradle test"),
        ("gradle :app:publish", "gradle :lib:publish"),
        ("gradle testIntegration", "gradle test"),
        ("mvn deploy", "mvn deploy:deploy-file"),
        ("gcloud compute instances delete", "gcloud beta compute instances list"),
        ("git branch -D", "git branch -d x"),
        ("git branch -D", "git branch -f x y"),
        ("terraform destroy", "terraform apply"),
        ("redis-cli flushall", "redis-cli GET flushall"),
        ("make deploy", "make ./build"),
        ("make deploy", "make .DEFAULT_GOAL=build"),
    ] {
        assert!(!is_denied(rule, line), "{rule}: {line}");
    }
}

#[test]
fn l32_words_that_a_variable_holds_are_words_of_the_command() {
    let set = [
        "{v} {c}",
        "env {v} {c}",
        "export {v}; {c}",
        "declare -x {v} && {c}",
        "sudo {v} {c}",
        "sh -c '{v} {c}'",
        "FOO=1 {v} {c}",
        "{v} timeout 5 {c}",
        "{v} ./bin/{c}",
    ];
    for (rule, variable, command) in [
        ("terraform apply", "TF_CLI_ARGS=\"apply -auto-approve\"", "terraform"),
        ("terraform apply -auto-approve", "TF_CLI_ARGS_apply=-auto-approve", "terraform apply"),
        ("terraform apply -destroy", "TF_CLI_ARGS=-destroy", "terraform apply"),
        ("terraform destroy", "TF_CLI_ARGS=-destroy", "terraform apply"),
        ("mvn deploy", "MAVEN_ARGS=deploy", "mvn -B"),
        ("ant deploy", "ANT_ARGS=deploy", "ant"),
        ("pytest --pdb", "PYTEST_ADDOPTS=--pdb", "pytest"),
        ("npm install -g", "NPM_CONFIG_GLOBAL=true", "npm install x"),
        ("npm install -g", "npm_config_global=1", "npm i x"),
        ("zip -T", "ZIPOPT=-T", "zip a.zip b"),
    ] {
        for around in set {
            let line = around.replace("{v}", variable).replace("{c}", command);
            assert!(is_denied(rule, &line), "{rule}: {line}: {:?}", decide(rule, &line));
            // The control: without the variable it is another command.
            assert!(!is_denied(rule, &around.replace("{v}", "FOO=1").replace("{c}", command)), "{rule}: {line}");
        }
    }
    // What is not known before the line runs, and what make expands, is answered by a person alone.
    for (rule, line) in [
        ("terraform apply", "TF_CLI_ARGS=$x terraform"),
        ("make deploy", "MAKEFLAGS=.DEFAULT_GOAL=deploy make"),
        ("make deploy", "GNUMAKEFLAGS=--eval=all:deploy make"),
        ("git push", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p"),
    ] {
        let decision = decide(rule, line);
        assert!(matches!(&decision, Decision::Ask(ask) if ask.only_a_person), "{rule}: {line}: {decision:?}");
    }
    for (rule, line) in [
        ("terraform apply", "TF_CLI_ARGS_plan=-lock=false terraform plan"),
        ("git push", "PYTEST_ADDOPTS=-q pytest"),
        ("npm publish", "NPM_CONFIG_LOGLEVEL=silent npm test"),
    ] {
        assert!(matches!(decide(rule, line), Decision::Allow(_)), "{rule}: {line}: {:?}", decide(rule, line));
    }
}
