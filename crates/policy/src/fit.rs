//! How a rule that forbids fits a command: by its words, whatever options stand before the verb, and by words that become
//! known only when the line runs (tool-contract 13.3, L32).

use crate::ArgvPattern;
use crate::given::Given;
use crate::refspec;
use portcullis_command::marks::{self, OpenExtent};
use portcullis_command::verbs::{OptionArity, VerbGap, family};
use portcullis_command::{base, hides_program, interpreted, path_text};

/// Whether a command is one of those that a rule means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    /// It depends on words that are not known yet.
    May,
    Yes,
}

/// What programs are looked up by: the same for every path and version of one program.
pub(crate) fn program_key(program: &str) -> &str {
    family(base(marks::bare(program)))
}

/// Words of a command that are compared. No rule is longer by far, and options before a verb are few.
const WORDS_MAX: usize = 256;

impl ArgvPattern {
    /// How this pattern, in a rule that forbids, fits the command `form`, whose open words are marked.
    pub(crate) fn fits_restricting(&self, form: &[String]) -> Fit {
        let form = &form[..form.len().min(WORDS_MAX)];
        let Some(program) = form.first() else { return Fit::No };
        if hides_program(form) {
            return Fit::May;
        }
        if program_key(program) != program_key(self.first()) {
            return Fit::No;
        }
        let between = VerbGap::of(program);
        let words = self.words();
        let verb = words.iter().skip(1).find(|word| !is_option(word)).map_or("", String::as_str);
        let script = interpreted(base(program), &form[1..]).map(|(at, _)| at + 1);
        let pushes = verb == "push" && program_key(program) == "git";
        // How well the words of the pattern so far fit what stands before each place.
        let mut reached = vec![Fit::No; form.len() + 3];
        reached[1] = Fit::Yes;
        let mut best = Fit::No;
        for (index, meant) in words.iter().enumerate().skip(1) {
            let mut next = vec![Fit::No; form.len() + 3];
            for at in 1..=form.len() {
                let fit = reached[at];
                if fit == Fit::No {
                    continue;
                }
                let mut reach = |place: usize, how: Fit| next[place] = next[place].max(how.min(fit));
                let Some(written) = form.get(at) else { continue };
                match marks::of(written) {
                    // Whatever stands there may be the rest of what the rule means.
                    Some(OpenExtent::Many) => {
                        best = Fit::May;
                        continue;
                    }
                    Some(OpenExtent::One) => {
                        reach(at + 1, Fit::May);
                        reached[at + 1] = reached[at + 1].max(Fit::May);
                        reached[at + 2] = reached[at + 2].max(Fit::May);
                        continue;
                    }
                    None => {}
                }
                let is_script = script == Some(at) && base(written) == base(meant);
                let is_ref = pushes && index > 2 && refspec::leads_to(meant, written);
                if is_script
                    || is_ref
                    || is_same_word(meant, written)
                    || (between.is_verb_at(index) && between.same_verb(meant, written))
                {
                    reach(at + 1, fit);
                }
                if is_option(meant) {
                    if !self.is_exact() {
                        let stands_for = if pushes { refspec::does(meant, &form[at..]) } else { Fit::No };
                        let given = Given { program: program_key(program), verb, words: &form[at..] };
                        reach(at, given.has(meant).max(stands_for));
                    }
                    continue;
                }
                // How many words from here on are not the verb: none of these if it is one.
                let passed: &[usize] = match between.option(written) {
                    Some(OptionArity::None) => &[1],
                    Some(OptionArity::One) => &[2],
                    Some(OptionArity::Either) => &[1, 2],
                    None if between.any_order() => &[1],
                    None => match between.before(written) {
                        Some(0) => &[1],
                        Some(_) => &[2],
                        None => &[],
                    },
                };
                for words in passed {
                    // A value that may be several words may hold the verb.
                    if *words == 2 && form.get(at + 1).is_some_and(|value| marks::of(value) == Some(OpenExtent::Many)) {
                        best = Fit::May;
                    }
                    reached[at + words] = reached[at + words].max(fit);
                }
            }
            reached = next;
        }
        self.ended(&reached, form).max(best)
    }

    /// The best of what was reached with every word of the pattern.
    fn ended(&self, reached: &[Fit], form: &[String]) -> Fit {
        let at_end = |(at, fit): (usize, &Fit)| {
            if !self.is_exact() || at == form.len() {
                return *fit;
            }
            let open =
                form.get(at..).is_some_and(|rest| rest.iter().all(|word| marks::of(word) == Some(OpenExtent::Many)));
            if open { (*fit).min(Fit::May) } else { Fit::No }
        };
        reached.iter().enumerate().map(at_end).max().unwrap_or(Fit::No)
    }
}

/// Whether two words are one, or name one place: `./deploy` is `deploy`.
fn is_same_word(meant: &str, written: &str) -> bool {
    let is_path = |word: &str| word.contains('/') && !is_option(word) && !word.contains("://");
    let absolute = meant.starts_with('/') == written.starts_with('/');
    meant == written
        || ((is_path(meant) || is_path(written))
            && absolute
            && path_text::join("", meant) == path_text::join("", written))
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word != "--"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(pattern: &[&str], line: &str) -> Fit {
        let pattern = ArgvPattern::parse(pattern.iter().map(|word| (*word).to_owned()).collect()).expect("a pattern");
        let form: Vec<String> = line.split(' ').map(str::to_owned).collect();
        pattern.fits_restricting(&form)
    }

    #[test]
    fn l32_options_before_the_verb_are_passed_over_and_their_values_are_no_verbs() {
        for line in [
            "git push",
            "git -C . push",
            "git --no-pager push origin",
            "git -c k=v -c l=m push",
            "git --git-dir=.git push",
            "git --git-dir .git --work-tree . push",
            "git --unheard-of push",
            "git --unheard-of value push",
            "git -- push",
        ] {
            assert_eq!(fit(&["git", "push"], line), Fit::Yes, "{line}");
        }
        for line in ["git -C push status", "git commit -m push", "git status push", "git --no-pager log push", "git"] {
            assert_eq!(fit(&["git", "push"], line), Fit::No, "{line}");
        }
    }

    #[test]
    fn l32_a_verb_is_known_by_its_other_names_and_beginnings() {
        for line in ["npm i x", "npm --prefix a install x", "npm isntall x", "npm -g add x"] {
            assert_eq!(fit(&["npm", "install"], line), Fit::Yes, "{line}");
        }
        for line in ["npm publ", "npm publis", "npm -w a publish", "yarn publish"] {
            let program = line.split(' ').next().expect("a word");
            assert_eq!(fit(&[program, "publish"], line), Fit::Yes, "{line}");
        }
        assert_eq!(fit(&["yarn", "publish"], "yarn workspace a publish"), Fit::Yes);
        assert_eq!(fit(&["make", "deploy"], "make -C a all deploy V=1"), Fit::Yes);
        assert_eq!(fit(&["cargo", "publish"], "cargo +nightly -Z x publish"), Fit::Yes);
        assert_eq!(fit(&["docker", "compose", "up"], "docker --context a compose -f b up"), Fit::Yes);
        for (pattern, line) in [
            (["npm", "publish"], "npm run publish"),
            (["npm", "publish"], "npm pack"),
            (["npm", "init"], "npm i"),
            (["npm", "stars"], "npm start"),
            (["git", "push"], "git pus"),
        ] {
            assert_eq!(fit(&pattern, line), Fit::No, "{line}");
        }
    }

    #[test]
    fn l32_options_that_a_rule_names_are_found_wherever_they_stand() {
        for line in ["git push --force", "git push origin main --force", "git -C . push -v --force origin"] {
            assert_eq!(fit(&["git", "push", "--force"], line), Fit::Yes, "{line}");
        }
        for line in [
            "rm -rf x",
            "rm -fr x",
            "rm -r -f x",
            "rm x -r -vf",
            "rm -Rf x",
            "rm -fR x",
            "rm x -R -f",
            "rm --recursive --force x",
            "rm --recur -f x",
            "rm -R --forc x",
        ] {
            assert_eq!(fit(&["rm", "-rf"], line), Fit::Yes, "{line}");
        }
        for line in ["rm -r x", "rm -r -- -f", "rm x", "rm --recursive x", "rm -R -- --force"] {
            assert_eq!(fit(&["rm", "-rf"], line), Fit::No, "{line}");
        }
        assert_eq!(fit(&["rm", "-rf"], "rm --re --f x"), Fit::May);
        assert_eq!(fit(&["git", "push", "$"], "git -C . push"), Fit::Yes);
        assert_eq!(fit(&["git", "push", "$"], "git -C . push origin"), Fit::No);
    }

    #[test]
    fn l32_a_long_option_is_known_by_its_beginning_and_by_its_letter() {
        for (pattern, line) in [
            (&["git", "reset", "--hard"][..], "git reset --har"),
            (&["git", "reset", "--hard"], "git reset HEAD~1 --hard"),
            (&["git", "commit", "--no-verify"], "git commit --no-verif -m x"),
            (&["git", "commit", "--no-verify"], "git commit -an"),
            (&["git", "push", "--force"], "git push -fu origin"),
            (&["git", "push", "-f"], "git push --force"),
            (&["sed", "-i"], "sed --in-plac s/a/b/ f"),
            (&["sed", "-i"], "sed -n --in-place=.bak s/a/b/ f"),
            (&["sed", "--in-place"], "sed -i.bak s/a/b/ f"),
            (&["terraform", "apply", "-auto-approve"], "terraform apply --auto-approve"),
            (&["chmod", "-R"], "chmod --recursive 777 ."),
            (&["cp", "-r"], "cp -R a b"),
        ] {
            assert_eq!(fit(pattern, line), Fit::Yes, "{line}");
        }
        for (pattern, line) in [
            (&["git", "reset", "--hard"][..], "git reset --ha"),
            (&["git", "commit", "--no-verify"], "git commit --no"),
            (&["git", "push", "--force-with-lease"], "git push --force"),
            (&["git", "push", "--force"], "git push --force-with-lease"),
            (&["git", "push", "-f"], "git push --force-with-lease=main:abc origin"),
            (&["sed", "-i"], "sed --in s/a/b/ f"),
        ] {
            assert_eq!(fit(pattern, line), Fit::May, "{line}");
        }
        for (pattern, line) in [
            (&["git", "reset", "--hard"][..], "git reset --harder"),
            (&["git", "reset", "--hard"], "git reset -- --hard"),
            (&["git", "reset", "--hard"], "git reset --soft"),
            (&["git", "push", "--force"], "git push --follow-tags"),
            (&["git", "log", "--force"], "git log -f"),
            (&["sed", "-i"], "sed --quiet s/i/b/ f"),
            (&["grep", "-r"], "grep -R x"),
            (&["make", "-f"], "make --file x"),
        ] {
            assert_eq!(fit(pattern, line), Fit::No, "{line}");
        }
    }

    #[test]
    fn l32_a_refspec_that_does_what_an_option_does_is_that_option() {
        for (pattern, line) in [
            (&["git", "push", "--force"][..], "git push origin +main"),
            (&["git", "push", "--force"], "git push origin +HEAD:main"),
            (&["git", "push", "--force"], "git -C . push -u origin +refs/heads/a:refs/heads/b"),
            (&["git", "push", "--force"], "git push -- origin a +b"),
            (&["git", "push", "--force"], "git push --mirror origin"),
            (&["git", "push", "-f"], "git push origin +main"),
            (&["git", "push", "origin", "--force"], "git push origin +main"),
            (&["git", "push", "--delete"], "git push origin :main"),
            (&["git", "push", "-d"], "git push origin +:refs/heads/main"),
            (&["git", "push", "--delete"], "git push --prune origin refs/heads/*"),
            (&["git", "push", "origin", "main"], "git push origin HEAD:main"),
            (&["git", "push", "origin", "main"], "git push --force origin +main"),
            (&["git", "push", "origin", "main"], "git push -u origin a:refs/heads/main"),
        ] {
            assert_eq!(fit(pattern, line), Fit::Yes, "{line}");
        }
        for (pattern, line) in [
            (&["git", "push", "--force"][..], "git push origin main"),
            (&["git", "push", "--force"], "git push origin a+b"),
            (&["git", "push", "--force"], "git push --follow-tags origin HEAD:main"),
            (&["git", "push", "--delete"], "git push origin a:main"),
            (&["git", "push", "--delete"], "git push origin :"),
            (&["git", "push", "origin", "main"], "git push origin main:other"),
            (&["git", "push", "origin", "main"], "git push origin maintenance"),
            (&["git", "fetch", "--force"], "git fetch origin"),
        ] {
            assert_eq!(fit(pattern, line), Fit::No, "{line}");
        }
    }

    #[test]
    fn l32_words_that_are_not_known_yet_may_be_what_a_rule_means() {
        for line in
            ["git \u{3}", "git \u{2}", "git -C \u{3} status", "git \u{2} origin", "\u{2} push", "git -C a \u{2}"]
        {
            assert_eq!(fit(&["git", "push"], line), Fit::May, "{line:?}");
        }
        for line in ["git status \u{3}", "git -C \u{2} status", "ls \u{3}", "git log \u{2}"] {
            assert_eq!(fit(&["git", "push"], line), Fit::No, "{line:?}");
        }
        assert_eq!(fit(&["rm"], "rm \u{3}"), Fit::Yes);
        assert_eq!(fit(&["make", "deploy"], "make deploy more \u{3}"), Fit::Yes);
    }

    #[test]
    fn l32_an_option_of_another_program_does_not_swallow_the_verb() {
        for line in [
            "make -k deploy",
            "make -d deploy",
            "make -t deploy",
            "npm -F publish",
            "npm --dir publish",
            "npm --filter publish",
            "npm --cwd publish",
            "pnpm -w publish",
            "pnpm -r publish",
            "gradle -s publish",
            "mvn -c deploy",
            "ant -d deploy",
            "task -s deploy",
            "rake -t deploy",
            "inv -e deploy",
            "zypper -x install",
            "apk -U add",
            "conda -n base install",
            "docker -D push",
            "ninja -v deploy",
            "terraform -s destroy",
            "buildah -n push",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(fit(&[words[0], words[words.len() - 1]], line), Fit::Yes, "{line}");
        }
        // The control: the value of an option of that program is no verb.
        for line in [
            "make -C deploy",
            "npm -w publish test",
            "pnpm -F publish test",
            "gradle build -x publish",
            "mvn -f deploy x",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let verb = words.iter().find(|word| matches!(**word, "deploy" | "publish")).expect("a verb");
            assert_eq!(fit(&[words[0], verb], line), Fit::No, "{line}");
        }
    }

    #[test]
    fn many_options_that_nobody_knows_cost_no_more_than_their_number() {
        let line = format!("git {}status", "-x ".repeat(250));
        let begun = std::time::Instant::now();
        assert_eq!(fit(&["git", "push"], &line), Fit::No);
        assert!(begun.elapsed().as_millis() < 100);
    }
}
