//! Programs that do what their verb says: which options may stand before the verb, and which verbs are one. The data is in
//! `verb_table.rs`.
//!
//! `git -C dir --no-pager push` is `git push`. An option that is not listed may take a value or not, so both readings are
//! tried; the lists keep a value such as the `push` of `git -C push status` from being taken for the verb. A letter means one
//! thing to one program and another to the next, so options are listed for one program alone: `make -k deploy` builds
//! `deploy`, and `ninja -k 3 deploy` does so, too.

use std::borrow::Cow;

use super::verb_table::VERBS;

/// What is known of one program.
pub struct Verbs {
    /// One program, or several of which no option is known.
    pub(super) names: &'static str,
    /// Options that take the next word, unless their value is attached.
    pub(super) valued: &'static str,
    /// Options that take none.
    pub(super) flags: &'static str,
    /// Verbs that mean the same, in groups.
    pub(super) aliases: &'static [&'static str],
    /// The beginning of a verb stands for it, unless it is a verb itself: one of these, or one with other names.
    pub(super) abbreviates: Option<&'static str>,
    /// The second word is a verb too, with the same other names: `gh pr new`.
    pub(super) nouns: bool,
    /// A verb may be written in capitals.
    pub(super) any_case: bool,
    /// A project or a plug-in may stand before a task: `gradle :app:publish`, `mvn deploy:deploy`.
    pub(super) task_paths: bool,
    /// `runScript` is `run-script`.
    pub(super) camel_case: bool,
    /// Any operand is a task to run, and the order is the person's.
    pub(super) tasks: bool,
    /// Words before the verb, with the number of operands each takes.
    pub(super) before: &'static [(&'static str, usize)],
    /// `NAME-VERB` is a program of its own that does the same as `NAME VERB`.
    pub(super) hyphenates: bool,
    /// Whether all that it may run is found by the other tables. It has a verb `rm` that is not the program otherwise,
    /// and nobody can tell.
    pub(super) known: bool,
}

/// Whether a list of words, as the table has them, holds this one.
fn holds(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

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
        if self.any_case && meant.eq_ignore_ascii_case(written) {
            return true;
        }
        if self.task_paths && (meant.contains(':') || written.contains(':')) {
            return self.same_task(meant, written);
        }
        let (meant, written) = (&*self.in_small_letters(meant), &*self.in_small_letters(written));
        let group = |word: &str| self.aliases.iter().find(|group| holds(group, word));
        if meant == written {
            return true;
        }
        if let Some(group) = group(written) {
            return holds(group, meant);
        }
        // Any beginning of a verb or of another name of it, where no other verb is written so.
        let mut names = group(meant).into_iter().flat_map(|group| group.split_ascii_whitespace()).chain([meant]);
        let mut begins = || !written.is_empty() && names.any(|name| name.starts_with(written));
        self.abbreviates.is_some_and(|known| !holds(known, written) && begins())
    }

    /// Whether a task is the one that is meant, or is it in one project. A task without a project runs in all of them.
    fn same_task(&self, meant: &str, written: &str) -> bool {
        let plain = |task: &str| task.split('@').next().unwrap_or(task).trim_start_matches(':').to_owned();
        let (meant, written) = (plain(meant), plain(written));
        let name = |task: &str| task.rsplit(':').next().unwrap_or(task).to_owned();
        let whole = meant.contains(':') && written.contains(':');
        meant == written || (!whole && self.same(&name(&meant), &name(&written)))
    }

    /// A verb as it is listed.
    fn in_small_letters<'v>(&self, verb: &'v str) -> Cow<'v, str> {
        if !self.camel_case || !verb.contains(|c: char| c.is_ascii_uppercase()) {
            return verb.into();
        }
        let small =
            |c: char| if c.is_ascii_uppercase() { format!("-{}", c.to_ascii_lowercase()) } else { c.to_string() };
        verb.chars().map(small).collect()
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

    /// Whether the word of a rule at this place is a verb, which may have other names.
    pub fn is_verb_at(&self, place: usize) -> bool {
        place == 1 || self.0.is_some_and(|verbs| verbs.tasks || (verbs.nouns && place == 2))
    }
}

/// Programs that do something without a verb, and their verbs where a path may stand in place of one.
const WITHOUT_A_VERB: &[(&str, &str, &str)] = &[
    ("yarn", "install", ""),
    ("bundle", "install", ""),
    (
        "vercel",
        "deploy",
        "alias api bisect blob build buy cache certs crons curl deploy deployments dev dns domains edge-config env flags \
         git help init inspect install integration link list ls log login logout logs mcp microfrontends open project \
         projects promote pull redeploy remove rm rollback rolling-release routes sandbox secret secrets switch target \
         targets team teams telemetry upgrade usage webhooks whoami",
    ),
];

/// The verb that a program takes where none is written: `vercel --prod`, `yarn`.
pub(super) fn default_verb(program: &str, words: &[String]) -> Option<&'static str> {
    let family = family(program);
    let (_, verb, verbs) = WITHOUT_A_VERB.iter().find(|(name, ..)| *name == family)?;
    let known = Verbs::of(family)?;
    let asks = |word: &String| matches!(word.as_str(), "--version" | "-v" | "--help" | "-h");
    let is_value = |at: usize| at > 0 && known.takes(&words[at - 1]) == OptionArity::One;
    let mut operands = words.iter().enumerate().filter(|(at, word)| !word.starts_with('-') && !is_value(*at));
    let none = operands.next().is_none_or(|(_, first)| !verbs.is_empty() && !holds(verbs, first));
    (none && !words.iter().any(asks)).then_some(verb)
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
        "flyctl" => "fly",
        "vc" => "vercel",
        "fdfind" => "fd",
        "batcat" => "bat",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_listed_for_one_program_alone() {
        for verbs in VERBS {
            let shared = verbs.names.split_ascii_whitespace().count() > 1;
            assert!(!shared || (verbs.valued.is_empty() && verbs.flags.is_empty()), "{}", verbs.names);
            let both = verbs.flags.split_ascii_whitespace().find(|option| holds(verbs.valued, option));
            assert_eq!(both, None, "{}: it takes a value, or it does not", verbs.names);
        }
        let mut names: Vec<&str> = VERBS.iter().flat_map(|verbs| verbs.names.split_ascii_whitespace()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a program stands twice");
    }

    /// `lib/utils/cmd-list.js` of npm 11.
    const NPM_COMMANDS: &str = "access adduser approve-scripts audit bugs cache ci completion config dedupe deny-scripts \
        deprecate diff dist-tag docs doctor edit exec explain explore find-dupes fund get help help-search init install \
        install-ci-test install-scripts install-test link ll login logout ls org outdated owner pack ping pkg prefix \
        profile prune publish query rebuild repo restart root run sbom search set shrinkwrap stage star stars start stop \
        team test token trust undeprecate uninstall unpublish unstar update version view whoami";
    const NPM_ALIASES: &str = "author=owner home=docs issues=bugs info=view show=view find=search add=install \
        unlink=uninstall remove=uninstall rm=uninstall r=uninstall un=uninstall rb=rebuild list=ls ln=link create=init \
        i=install it=install-test cit=install-ci-test u=update up=update c=config s=search se=search tst=test t=test \
        ddp=dedupe v=view run-script=run clean-install=ci clean-install-test=install-ci-test x=exec why=explain la=ll \
        verison=version ic=ci innit=init in=install ins=install inst=install insta=install instal=install isnt=install \
        isnta=install isntal=install isntall=install install-clean=ci isntall-clean=ci hlep=help dist-tags=dist-tag \
        upgrade=update udpate=update rum=run sit=install-ci-test urn=run ogr=org add-user=adduser";

    /// What npm makes of a verb: as it is, by an alias, or by a beginning that only one of all names has.
    fn npm_reads(written: &str) -> Option<&'static str> {
        let alias = |name: &str| {
            NPM_ALIASES.split_ascii_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let exact = |name: &str| NPM_COMMANDS.split_ascii_whitespace().find(|known| *known == name);
        let names = || {
            let aliases = NPM_ALIASES.split_ascii_whitespace().filter_map(|pair| pair.split('=').next());
            NPM_COMMANDS.split_ascii_whitespace().chain(aliases)
        };
        exact(written).or_else(|| alias(written)).or_else(|| {
            let mut begun = names().filter(|name| name.starts_with(written));
            let only = begun.next().filter(|_| begun.next().is_none())?;
            exact(only).or_else(|| alias(only))
        })
    }

    #[test]
    fn every_spelling_of_a_verb_that_npm_takes_is_that_verb() {
        let npm = VerbGap::of("npm");
        let names = NPM_COMMANDS.split_ascii_whitespace().chain(NPM_ALIASES.split_ascii_whitespace());
        let mut read = 0;
        for name in names.filter_map(|name| name.split('=').next()) {
            for end in 1..=name.len() {
                let Some(means) = npm_reads(&name[..end]) else { continue };
                assert!(npm.same_verb(means, &name[..end]), "npm {} is npm {means}", &name[..end]);
                read += 1;
            }
        }
        assert!(read > 400, "{read}");
        for (means, written) in [
            ("run", "runScript"),
            ("ci", "cleanInstall"),
            ("dist-tag", "distTag"),
            ("install-test", "installTest"),
            ("update", "upg"),
            ("uninstall", "remo"),
            ("version", "verison"),
        ] {
            assert!(npm.same_verb(means, written), "{written}");
        }
        // The control: a name of its own is no beginning of another one, and what npm does not take is not taken here.
        for (meant, written) in
            [("stars", "start"), ("init", "i"), ("publish", "pack"), ("unpublish", "un"), ("publish", "Publish")]
        {
            assert!(!npm.same_verb(meant, written), "{written}");
        }
        assert!(VerbGap::of("git").same_verb("init", "init-db") && !VerbGap::of("git").same_verb("push", "pus"));
    }
}
