//! Everyday spellings of denied commands: options by their beginnings, other letters, other names of a verb.

use serde_json::json;

use crate::arena::{Arena, Who};
use crate::argv_denies::{ALLOW, explained};

type Words = &'static [&'static str];

/// Denied commands with what people and programs write for them, and beside them what they do not mean.
const EVERYDAY: &[(Words, Words, Words)] = &[
    (
        &["make", "deploy"],
        &["make -k deploy", "make -d deploy", "make -t deploy", "make -kj4 all deploy", "gmake -k deploy"],
        &["make -C deploy all", "make -f deploy"],
    ),
    (
        &["npm", "publish"],
        &[
            "npm -F publish",
            "npm --dir publish",
            "npm --filter publish",
            "npm --cwd publish",
            "npm publ",
            "npm --registry r publish",
        ],
        &["npm -w publish test", "npm run publish", "npm pack"],
    ),
    (&["npm", "run"], &["npm runScript x", "npm run-script x", "npm rum x", "npm run-s x"], &["npm root"]),
    (&["npm", "ci"], &["npm cleanInstall", "npm install-cl", "npm ic"], &["npm config"]),
    (&["npm", "uninstall"], &["npm remo x", "npm unin x", "npm r x"], &["npm unpublish x"]),
    (&["npm", "version"], &["npm verison 1.2.3", "npm vers 1.2.3"], &["npm view x"]),
    (&["pnpm", "publish"], &["pnpm -w publish", "pnpm -r publish", "pnpm -F a publish"], &["pnpm -F publish test"]),
    (&["gradle", "publish"], &["gradle -s publish", "./gradlew -s publish"], &["gradle build -x publish"]),
    (&["mvn", "deploy"], &["mvn -c deploy", "./mvnw -B -c deploy"], &["mvn -f deploy test"]),
    (&["ant", "deploy"], &["ant -d deploy"], &["ant test"]),
    (&["task", "deploy"], &["task -s deploy"], &["task -d deploy test"]),
    (&["rake", "deploy"], &["rake -t deploy"], &["rake -f deploy test"]),
    (&["inv", "deploy"], &["inv -e deploy"], &["inv test"]),
    (&["zypper", "install"], &["zypper -x install", "zypper -n install x"], &["zypper search install"]),
    (&["git", "init"], &["git init-db", "git-init-db"], &["git status"]),
    (
        &["git", "reset", "--hard"],
        &["git reset --har", "git reset --hard HEAD~1", "git reset HEAD~1 --hard", "git -C . reset --har"],
        &["git reset --soft", "git reset -- --hard", "git reset HEAD x"],
    ),
    (
        &["git", "commit", "--no-verify"],
        &["git commit --no-verif -m x", "git commit -n -m x", "git commit -anm x"],
        &["git commit -m x", "git commit --no-edit"],
    ),
    (
        &["sed", "-i"],
        &["sed --in-plac s/a/b/ f", "sed --in-place=.bak s/a/b/ f", "sed -i.bak s/a/b/ f", "sed -Ei s/a/b/ f"],
        &["sed s/i/b/ f", "sed -n 1p f", "sed --quiet 1p f"],
    ),
    (
        &["rm", "-rf"],
        &["rm -Rf x", "rm -fR x", "rm -R -f x", "rm --recursive --force x", "rm --recurs -f x", "rm x -rf"],
        &["rm -r x", "rm -f x", "rm x", "rm -r -- -f"],
    ),
    (&["chmod", "-R"], &["chmod --recursive 777 x", "chmod --recu 777 x"], &["chmod 755 x"]),
];

#[test]
fn l32_everyday_spellings_of_a_denied_command_are_denied() {
    let arena = Arena::of(Who::Root);
    for (denied, spellings, others) in EVERYDAY {
        let rule = format!("[[rules]]\nid = \"no\"\naction = \"*\"\nargv = {}\neffect = \"deny\"\n", json!(denied));
        arena.configure(&format!("{rule}{ALLOW}"));
        for line in *spellings {
            let found = explained(&arena, line);
            assert_eq!(found["decision"], "deny", "{denied:?}: {line}: {found}");
        }
        for line in *others {
            let found = explained(&arena, line);
            assert_eq!(found["decision"], "allow", "{denied:?}: {line}: {found}");
        }
    }
    // A short beginning has several meanings.
    let rule = "[[rules]]\nid = \"no\"\naction = \"*\"\nargv = [\"git\", \"reset\", \"--hard\"]\neffect = \"deny\"\n";
    arena.configure(&format!("{rule}{ALLOW}"));
    let found = explained(&arena, "git reset --h");
    assert_eq!((&found["decision"], &found["only_a_person"]), (&json!("ask"), &json!(true)), "{found}");
    // The control: it is that rule.
    arena.configure(ALLOW);
    for line in EVERYDAY.iter().flat_map(|(_, spellings, _)| *spellings) {
        assert_eq!(explained(&arena, line)["decision"], "allow", "{line}");
    }
}
