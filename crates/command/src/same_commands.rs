//! Commands of several words that are one command by the documentation of their program: `docker run` is
//! `docker container run`. Other names of a single verb are in `verb_table.rs`.

use super::unwrap::base;
use super::verbs::{VerbGap, family};

/// Programs, and the words behind them that mean the same. Without programs the words begin with the program itself.
const SAME: &[(&str, &[&str])] = &[
    (DOCKER, &["attach|container attach", "commit|container commit", "cp|container cp", "create|container create"]),
    (DOCKER, &["diff|container diff", "exec|container exec", "export|container export", "kill|container kill"]),
    (DOCKER, &["logs|container logs", "pause|container pause", "port|container port", "rename|container rename"]),
    (DOCKER, &["restart|container restart", "rm|container rm", "run|container run", "start|container start"]),
    (DOCKER, &["stats|container stats", "stop|container stop", "top|container top", "unpause|container unpause"]),
    (DOCKER, &["update|container update", "wait|container wait", "ps|container ls|container ps"]),
    // `buildx build` and its letter are what `docker build` runs; podman calls it `image build` alone.
    (DOCKER, &["build|image build|builder build|buildx build|buildx b"]),
    (DOCKER, &["history|image history", "import|image import", "load|image load", "save|image save"]),
    (DOCKER, &["images|image ls", "pull|image pull", "push|image push", "rmi|image rm", "tag|image tag"]),
    (DOCKER, &["events|system events", "info|system info", "stack rm|stack down", "stack deploy|stack up"]),
    // git-branch(1): "-D: shortcut for --delete --force", and so on.
    ("git", &["branch -D|branch -d -f", "branch -M|branch -m -f", "branch -C|branch -c -f"]),
    // `terraform destroy -help`: "a convenience alias".
    ("terraform tofu", &["destroy|apply -destroy"]),
    ("apt apt-get", &["purge|remove --purge"]),
    ("", &["npx|npm exec", "pnpx|pnpm dlx", "bunx|bun x", "uvx|uv tool run"]),
];

const DOCKER: &str = "docker podman nerdctl";

/// The other ways to begin a command with these words, each with the words that follow.
#[must_use]
pub fn same_commands(words: &[String]) -> Vec<Vec<String>> {
    let Some(program) = words.first() else { return Vec::new() };
    let name = family(base(program));
    let verbs = VerbGap::of(program);
    let split = |phrase: &'static str| phrase.split_ascii_whitespace().collect::<Vec<_>>();
    // How many words are a phrase whose first word stands at `from`.
    let begins = |phrase: &[&str], from: usize| {
        let is = |(at, meant): (usize, &&str)| match from + at {
            0 => *meant == name,
            at => words
                .get(at)
                .is_some_and(|word| if meant.starts_with('-') { word == meant } else { verbs.same_verb(meant, word) }),
        };
        phrase.iter().enumerate().all(is).then_some(from + phrase.len())
    };
    let mut out = Vec::new();
    for (programs, groups) in SAME {
        let from = usize::from(!programs.is_empty());
        if from == 1 && !programs.split_ascii_whitespace().any(|program| program == name) {
            continue;
        }
        for group in *groups {
            let phrases: Vec<Vec<&str>> = group.split('|').map(split).collect();
            let Some((at, end)) = phrases.iter().enumerate().find_map(|(at, one)| Some((at, begins(one, from)?)))
            else {
                continue;
            };
            for (_, other) in phrases.iter().enumerate().filter(|(other, _)| *other != at) {
                let begun = words[..from].iter().cloned().chain(other.iter().map(|word| (*word).to_owned()));
                out.push(begun.chain(words[end..].iter().cloned()).collect());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Aliases:" of `docker … --help`, Docker 29.
    const DOCKER_ALIASES: &str = "container attach=attach container commit=commit container cp=cp container create=create \
        container diff=diff container exec=exec container export=export container kill=kill container logs=logs \
        container ls=ps container list=ps container ps=ps container pause=pause container port=port \
        container rename=rename container restart=restart container rm=rm container remove=rm container run=run \
        container start=start container stats=stats container stop=stop container top=top container unpause=unpause \
        container update=update container wait=wait image build=build builder build=build image history=history \
        image import=import image load=load image ls=images image list=images image pull=pull image push=push \
        image rm=rmi image remove=rmi image save=save image tag=tag system events=events system info=info";

    #[test]
    fn every_alias_that_docker_names_is_the_same_command() {
        let mut rows = 0;
        for program in ["docker", "podman", "/usr/bin/docker"] {
            let mut words = DOCKER_ALIASES.split_ascii_whitespace();
            while let (Some(noun), Some(pair)) = (words.next(), words.next()) {
                let (verb, short) = pair.split_once('=').expect("an alias");
                let argv = [program, noun, verb, "x"].map(str::to_owned);
                let expected = [program, short, "x"].map(str::to_owned).to_vec();
                assert!(same_commands(&argv).contains(&expected), "{noun} {verb}: {:?}", same_commands(&argv));
                rows += 1;
            }
        }
        assert!(rows > 100, "{rows}");
        for other in
            [&["docker", "volume", "rm"][..], &["docker", "container"], &["git", "branch", "-d"], &["npm", "ci"]]
        {
            let argv: Vec<String> = other.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(same_commands(&argv), Vec::<Vec<String>>::new(), "{other:?}");
        }
    }
}
