//! The words of a stage that name something in the tree: each is resolved through the mounts before a program is given
//! it, and must still be a place that was decided on.
//!
//! What remains between our look and the program's own open: a name may be swapped for a link. Inside the view nothing
//! but the mounts can be reached and what is denied is masked, so such a link leads to another file of the workspace
//! that could have been named as well. Below level `full` Landlock keeps what is outside; below that, nothing does,
//! which is why the minimum level is a setting.

use std::collections::HashSet;

use portcullis_command::{self as command, Arg, Builtin, Joiner, Redirection, Stage, Word};
use portcullis_contract::{Precondition, Resource};
use portcullis_sandbox::{self as sandbox, FileError, Kind, MountTable, PathFault, VirtualPath};

use super::globs::{self, GlobFailure};
use crate::files::precondition;

/// Programs that look at names and metadata and never open what they are given. All others may wait for ever for a
/// pipe to be written to.
const ONLY_LOOK: [&str; 12] =
    ["[", "cd", "df", "du", "file", "find", "ls", "readlink", "realpath", "stat", "test", "tree"];

/// `raw` seen from `cwd`, for [`MountTable::resolve`]: links before a `..` are its business.
pub(super) fn place_text(cwd: &VirtualPath, raw: &str) -> String {
    if raw.starts_with('/') { raw.to_owned() } else { format!("{}/{raw}", cwd.as_str().trim_end_matches('/')) }
}

/// The place that an operand names. `None` if a program can only be told that nothing is there.
pub(super) fn look(
    mounts: &MountTable,
    cwd: &VirtualPath,
    raw: &str,
) -> Result<Option<sandbox::ResolvedPlace>, FileError> {
    if raw.is_empty() {
        return Ok(None);
    }
    match mounts.resolve(&place_text(cwd, raw)) {
        Ok(place) => Ok(Some(place)),
        Err(FileError::NotFound { .. } | FileError::LinkLoop { .. } | FileError::WrongKind { .. }) => Ok(None),
        Err(FileError::InvalidPath { fault: PathFault::TooLong }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Refuses what would make a program wait for ever, and what holds secrets under another name: the line was refused if
/// it had named that itself. `opens`: it is opened, whatever the program.
fn openable(stage: &Stage, place: &sandbox::ResolvedPlace, opens: bool) -> Result<(), Precondition> {
    if !opens && ONLY_LOOK.contains(&stage.program()) {
        return Ok(());
    }
    let path = place.path().clone();
    match place.kind() {
        Some(found @ Kind::Other) => Err(precondition(FileError::WrongKind { path, wanted: Kind::File, found })),
        Some(Kind::File) if command::may_hold_secrets(path.as_str()) => {
            let text =
                format!("`{}` may hold secrets; read it with read, or run it with shell_run", path.display_relative());
            Err(Precondition::failed(portcullis_base::Reason::CommandNotAllowed, text))
        }
        _ => Ok(()),
    }
}

/// The canonical names that the rules decided on for a call.
#[derive(Debug, Clone, Default)]
pub struct DecidedPlaces(HashSet<String>);

impl DecidedPlaces {
    /// By canonical names.
    pub(super) fn new<'r>(resources: impl IntoIterator<Item = &'r Resource>) -> Self {
        Self(resources.into_iter().map(|resource| resource.canonical.clone()).collect())
    }

    pub(super) fn holds(&self, place: &sandbox::ResolvedPlace) -> Result<(), FileError> {
        if self.0.contains(place.path().as_str()) {
            return Ok(());
        }
        Err(FileError::PathChanged { path: place.path().clone() })
    }
}

/// Every place that a line may look at, under every name that leads there, for rules to decide on. Nothing is opened.
///
/// # Errors
/// If a word leads outside, names what cannot be read, or is a pattern without an answer.
pub(super) fn named(
    mounts: &MountTable,
    plan: &command::ReadPlan,
    cwd: &VirtualPath,
) -> Result<LinePlaces, Precondition> {
    let mut found = PlaceCollector { mounts, named: LinePlaces::default(), seen: HashSet::new() };
    // Where a pipeline may run: a `cd` that may never run leaves both places.
    let mut cwds = vec![cwd.clone()];
    for (joiner, pipeline) in plan.pipelines() {
        for stage in pipeline.stages() {
            for cwd in &cwds {
                found.stage(stage, cwd, cwds.len() == 1)?;
            }
            if stage.builtin() == Some(Builtin::Cd) {
                let to = stage.args().first().and_then(|arg| arg.word().as_literal()).unwrap_or(".");
                cwds = moved(mounts, cwds, to, *joiner == Joiner::Always);
            }
        }
    }
    Ok(found.named)
}

/// The places that a line names.
#[derive(Debug, Default)]
pub(super) struct LinePlaces {
    pub(super) resources: Vec<Resource>,
    /// Those of them whose content a program may show.
    pub(super) opened: HashSet<String>,
    /// Files among them that have more than one name, by device and number, with what was written.
    pub(super) linked: Vec<((u64, u64), String)>,
}

/// Where the pipelines after a `cd` may run. What it finds now it will find: if not, the places it leads to then were
/// not decided on.
fn moved(mounts: &MountTable, cwds: Vec<VirtualPath>, to: &str, runs: bool) -> Vec<VirtualPath> {
    let mut after = Vec::new();
    for from in cwds {
        let found = look(mounts, &from, to).ok().flatten().filter(|place| place.kind() == Some(Kind::Directory));
        let stays = found.is_none() || !runs;
        let there = found.map(|place| place.path().clone());
        for cwd in there.into_iter().chain(stays.then_some(from)) {
            if !after.contains(&cwd) {
                after.push(cwd);
            }
        }
    }
    after
}

/// Collects the places that a line names.
struct PlaceCollector<'m> {
    mounts: &'m MountTable,
    named: LinePlaces,
    seen: HashSet<String>,
}

impl PlaceCollector<'_> {
    fn stage(&mut self, stage: &Stage, cwd: &VirtualPath, sure: bool) -> Result<(), Precondition> {
        for arg in stage.args() {
            match arg.word() {
                Word::Literal(raw) if arg.is_path() => self.literal(stage, cwd, raw, (sure, false))?,
                Word::Literal(_) => {}
                Word::Glob(pattern) => match globs::expand(self.mounts, cwd, pattern.as_str()) {
                    Ok(matches) if arg.is_path() => {
                        for name in &matches.names {
                            self.literal(stage, cwd, name, (true, false))?;
                        }
                    }
                    // Its names alone are shown.
                    Ok(_) => self.literal(stage, cwd, ".", (true, false))?,
                    Err(why) if sure => return Err(unmatched(&why)),
                    // The pattern may never be asked for there.
                    Err(_) => {}
                },
            }
        }
        for redirection in stage.redirections() {
            if let Redirection::Stdin(file) = redirection {
                self.literal(stage, cwd, file, (sure, true))?;
            }
        }
        if stage.looks_around() {
            self.literal(stage, cwd, ".", (true, false))?;
        }
        Ok(())
    }

    fn literal(
        &mut self,
        stage: &Stage,
        cwd: &VirtualPath,
        raw: &str,
        (sure, opens): (bool, bool),
    ) -> Result<(), Precondition> {
        let place = match look(self.mounts, cwd, raw) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            // From a folder that the line may never reach, `..` may lead elsewhere.
            Err(_) if !sure => return Ok(()),
            Err(error) => return Err(precondition(error)),
        };
        match openable(stage, &place, opens) {
            Err(refused) if sure => return Err(refused),
            _ => {}
        }
        for name in std::iter::once(place.path()).chain(place.also_named()) {
            if opens || !ONLY_LOOK.contains(&stage.program()) {
                self.named.opened.insert(name.as_str().to_owned());
            }
            if self.seen.insert(name.as_str().to_owned()) {
                self.named.resources.push(Resource::path(name.as_str(), raw));
            }
        }
        self.named.linked.extend(place.if_it_has_other_names().map(|object| (object, raw.to_owned())));
        Ok(())
    }
}

pub(super) fn unmatched(why: &GlobFailure) -> Precondition {
    let reason = match why {
        GlobFailure::Nothing { .. } => portcullis_base::Reason::NotFound,
        GlobFailure::TooMany { .. } | GlobFailure::TooWide { .. } => portcullis_base::Reason::OutputBudget,
    };
    Precondition::failed(reason, why.to_string())
}

/// Where the words of a stage are seen from, and how a program there sees places.
pub(super) struct Outlook<'a> {
    pub(super) mounts: &'a MountTable,
    pub(super) cwd: &'a VirtualPath,
    pub(super) decided: &'a DecidedPlaces,
    /// Programs see `/workspace`; otherwise the host's own names, which they must not be given.
    pub(super) virtual_paths: bool,
}

/// The words that a program is given.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) words: Vec<String>,
    /// Names that patterns matched and that lead outside.
    pub(super) left_out: usize,
}

impl Outlook<'_> {
    /// The place that an operand names, if it is one that was decided on.
    pub(super) fn place(&self, raw: &str) -> Result<Option<sandbox::ResolvedPlace>, FileError> {
        let place = look(self.mounts, self.cwd, raw)?;
        if let Some(place) = &place {
            self.decided.holds(place)?;
        }
        Ok(place)
    }

    /// The place of `< FILE`, which is opened whatever the program is.
    pub(super) fn input(&self, stage: &Stage, raw: &str) -> Result<Option<sandbox::ResolvedPlace>, Precondition> {
        let place = self.place(raw).map_err(precondition)?;
        if let Some(place) = &place {
            openable(stage, place, true)?;
        }
        Ok(place)
    }

    /// The words after the program's name.
    ///
    /// # Errors
    /// If one of them is not what was decided on.
    pub(super) fn words(&self, stage: &Stage) -> Result<Words, Precondition> {
        let mut given = Words::default();
        if stage.looks_around() {
            self.place(".").map_err(precondition)?;
        }
        for arg in stage.args() {
            self.arg(stage, arg, &mut given)?;
        }
        Ok(given)
    }

    fn arg(&self, stage: &Stage, arg: &Arg, given: &mut Words) -> Result<(), Precondition> {
        match arg.word() {
            Word::Literal(raw) if arg.is_path() => given.words.push(self.operand(stage, raw)?),
            Word::Literal(text) => given.words.push(text.clone()),
            Word::Glob(pattern) => {
                let matches = globs::expand(self.mounts, self.cwd, pattern.as_str()).map_err(|why| unmatched(&why))?;
                given.left_out += matches.left_out;
                for name in matches.names {
                    let word = if arg.is_path() { self.operand(stage, &name)? } else { name };
                    given.words.push(word);
                }
            }
        }
        Ok(())
    }

    fn operand(&self, stage: &Stage, raw: &str) -> Result<String, Precondition> {
        let Some(place) = self.place(raw).map_err(precondition)? else { return self.absent(raw) };
        openable(stage, &place, false)?;
        if self.virtual_paths || !self.differs_on_the_host(raw) {
            return Ok(raw.to_owned());
        }
        self.relative(&place).ok_or_else(|| elsewhere(raw))
    }

    /// Below level `full` a program would look at the host for what is not there.
    fn absent(&self, raw: &str) -> Result<String, Precondition> {
        if self.virtual_paths || !self.differs_on_the_host(raw) { Ok(raw.to_owned()) } else { Err(elsewhere(raw)) }
    }

    /// Whether a name means something else where the mounts do not stand at their places: it begins at the root, or
    /// climbs above the mount.
    fn differs_on_the_host(&self, raw: &str) -> bool {
        let mut depth = self.depth();
        raw.starts_with('/')
            || raw.split('/').any(|name| match name {
                "" | "." => false,
                ".." => match depth.checked_sub(1) {
                    Some(above) => {
                        depth = above;
                        false
                    }
                    None => true,
                },
                _ => {
                    depth += 1;
                    false
                }
            })
    }

    /// How many names lie between the root of the mount and the working directory.
    fn depth(&self) -> usize {
        self.mounts.resolve(self.cwd.as_str()).map_or(0, |cwd| cwd.names().len())
    }

    /// The same place from the working directory, if both lie in one mount.
    fn relative(&self, place: &sandbox::ResolvedPlace) -> Option<String> {
        let cwd = self.mounts.resolve(self.cwd.as_str()).ok()?;
        if cwd.mount().root() != place.mount().root() {
            return None;
        }
        let same = cwd.names().iter().zip(place.names()).take_while(|(a, b)| a.as_str() == b.as_str()).count();
        let up = std::iter::repeat_n("..", cwd.names().len() - same);
        let down = place.names()[same..].iter().map(sandbox::Name::as_str);
        let text = std::iter::once(".").chain(up).chain(down).collect::<Vec<_>>().join("/");
        Some(text)
    }
}

fn elsewhere(raw: &str) -> Precondition {
    let text = format!(
        "`{raw}` cannot be named to a program at this isolation level, where mounts do not stand at their places; \
         name it relative to the working directory, or read it with read"
    );
    Precondition::failed(portcullis_base::Reason::PathEscape, text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use portcullis_sandbox::TreeOwner;

    use super::*;

    /// What happens between the decision and the run.
    #[test]
    fn h08_a_place_that_was_not_decided_on_is_given_to_no_program() {
        let tree = tempfile::tempdir().expect("a folder");
        for name in ["a", "b"] {
            std::fs::write(tree.path().join(name), name).expect("written");
        }
        symlink("a", tree.path().join("link")).expect("a link");
        let mounts = MountTable::workspace(tree.path(), TreeOwner::SessionOwn).expect("a mount");
        let cwd = VirtualPath::workspace();
        let plan = |line: &str| command::read_only(line).expect("it only reads");
        let words = |line: &str, decided: &DecidedPlaces| {
            let outlook = Outlook { mounts: &mounts, cwd: &cwd, decided, virtual_paths: true };
            outlook.words(&plan(line).pipelines()[0].1.stages()[0]).map(|given| given.words)
        };
        let decided = |line: &str| DecidedPlaces::new(&named(&mounts, &plan(line), &cwd).expect("places").resources);
        let (link, all) = (decided("cat link"), decided("cat *"));
        assert_eq!(words("cat link", &link).expect("the same place"), ["link"]);
        assert_eq!(words("cat *", &all).expect("the same places"), ["./a", "./b", "./link"]);
        std::fs::remove_file(tree.path().join("link")).expect("removed");
        symlink("b", tree.path().join("link")).expect("another link");
        std::fs::write(tree.path().join("new"), "new").expect("written");
        assert!(words("cat link", &link).is_err(), "the link leads elsewhere by now");
        assert!(words("cat *", &all).is_err(), "there is a file more");
        assert!(words("ls", &DecidedPlaces::default()).is_err(), "it looks at its folder");
    }

    #[test]
    fn h06_below_full_a_place_is_named_from_where_the_program_stands() {
        let tree = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(tree.path().join("src/deep")).expect("made");
        std::fs::write(tree.path().join("a"), "a").expect("written");
        let mounts = MountTable::workspace(tree.path(), TreeOwner::SessionOwn).expect("a mount");
        let cwd = VirtualPath::new("/workspace/src").expect("a path");
        let words = |line: &str| {
            let plan = command::read_only(line).expect("it only reads");
            let decided = DecidedPlaces::new(&named(&mounts, &plan, &cwd).expect("places").resources);
            let outlook = Outlook { mounts: &mounts, cwd: &cwd, decided: &decided, virtual_paths: false };
            outlook.words(&plan.pipelines()[0].1.stages()[0]).map(|given| given.words)
        };
        assert_eq!(words("cat /workspace/a ../a").expect("words"), ["./../a", "../a"]);
        assert_eq!(words("ls /workspace/src/deep deep/..").expect("words"), ["./deep", "deep/.."]);
        assert_eq!(words("ls ../../workspace/src").expect("words"), ["."], "it climbs above the mount");
        assert_eq!(words("cat /workspace/nope").expect("words"), ["./../nope"]);
        assert!(words("cat /workspace/nope/../a").is_err(), "the host may have such a file");
    }
}
