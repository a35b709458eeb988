//! Claims about files against what calls did to them.

use portcullis_command::FileChangeKind::{self, Created, Deleted, Modified, Renamed, Wrote};
use portcullis_event::facts::ClaimVerdict::{Contradicted, Supported, Unsupported};
use portcullis_event::facts::{VerificationKind as Kind, VerificationVerdict as Verdict};

use crate::claims::FileDeed;
use crate::facts::cut;
use crate::history::{CheckRun, FileChange, History};
use crate::judge::Ruling;
use crate::place::{NamedPath, is_in, shown};
use crate::prose::is_file;
use crate::words::{FOLDERS, NO_FILES, has};

/// Whether a path is a file of the workspace, by its name or by a call: no route, media type or branch.
pub fn is_of_workspace(path: &str, history: &History) -> bool {
    let named = NamedPath::new(path, history.host.as_deref());
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let first = path.trim_start_matches(['.', '/']).split('/').next().unwrap_or_default();
    let placed = if path.starts_with('/') { has("workspace tmp home root Users var etc opt srv", first) } else { true };
    let below = path.contains('/') && !path.starts_with('/');
    let folder = below && (has(FOLDERS, first) || path.starts_with("./") || path.ends_with('/'));
    let looks = (is_file(name) && placed && !has(NO_FILES, &path.to_ascii_lowercase())) || folder;
    looks || history.changes.iter().any(|change| named.is(&change.place))
}

pub fn file(deed: FileDeed, path: &str, history: &History) -> Ruling {
    let named = NamedPath::new(path, history.host.as_deref());
    let writes = [Created, Wrote, Modified];
    // What fits the claim, and what takes it back: a file that is gone, or that is there again.
    let (fits, ends): (&[FileChangeKind], &[FileChangeKind]) = match deed {
        FileDeed::Created => (&[Created, Wrote], &[Deleted]),
        FileDeed::Wrote | FileDeed::Edited | FileDeed::Holds | FileDeed::Mended => (&writes, &[Deleted]),
        FileDeed::Deleted => (&[Deleted], &writes),
        FileDeed::Renamed => (&[Renamed], &[]),
    };
    let is = |one: &FileChange, kinds: &[FileChangeKind]| one.kind.as_ref().is_ok_and(|kind| kinds.contains(kind));
    let told = |change: &FileChange| match &change.kind {
        Ok(kind) => format!("{} {}", format!("{kind:?}").to_lowercase(), cut(shown(&change.place))),
        Err(code) => format!("a call for {} came to {code}", cut(shown(&change.place))),
    };
    let mut touched = history.changes.iter().filter(|change| named.is(&change.place));
    if let Some(change) = touched.clone().rfind(|change| is(change, fits)) {
        let around = |one: &FileChange| is_in(&change.place, &one.place) && is(one, &[Deleted]);
        let mut later = history.changes.iter().filter(|one| one.at > change.at && is(one, ends));
        return match later.find(|one| named.is(&one.place) || around(one)) {
            Some(later) => {
                let verdict = if deed == FileDeed::Holds { Contradicted } else { Unsupported };
                let fact = format!("{}, and then {}", told(change), told(later));
                Ruling(verdict, fact, vec![change.evidence, later.evidence])
            }
            None if change.undone => {
                Ruling(Unsupported, told(change) + "; git may have undone it", vec![change.evidence])
            }
            None => Ruling(Supported, told(change), vec![change.evidence]),
        };
    }
    // A folder that was copied, moved or removed, with whatever lies in it; or `./a.rs`, said carelessly of another.
    let around = |change: &&FileChange| change.kind.is_ok() && named.may_be(&change.place);
    if let Some(change) = touched.next_back().or_else(|| history.changes.iter().rfind(around)) {
        // What ran since may have done what an attempt did not.
        let failed = change.kind.is_err() && history.opaque.is_none_or(|at| at < change.at);
        let verdict = if failed { Contradicted } else { Unsupported };
        return Ruling(verdict, told(change), vec![change.evidence]);
    }
    if history.opaque.is_some() || history.checks.iter().any(|check| may_write(check, deed, path)) {
        return Ruling::bare(Unsupported, "no call says so; commands ran of which it is not known what they touched");
    }
    Ruling::bare(Contradicted, "no call of this session touched it")
}

/// Whether a check may have left this file: what its words name, what a build makes, reports and lock files.
fn may_write(check: &CheckRun, deed: FileDeed, path: &str) -> bool {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let makes = matches!(deed, FileDeed::Created | FileDeed::Wrote | FileDeed::Holds);
    let output = ["dist/", "build/", "out/", "target/", ".next/"].iter().any(|folder| path.starts_with(folder));
    let builds = matches!(check.command.kind, Kind::Build | Kind::Typecheck);
    let locks = name.ends_with(".lock") || name.contains("-lock.") || name == "go.sum";
    let named = !name.is_empty() && check.command.target.contains(name);
    let report = ["coverage", "htmlcov", "report", "results", "junit", "snap"].iter().any(|word| path.contains(word));
    let edits = deed == FileDeed::Edited && (named || (builds && output));
    check.verdict != Verdict::NotRun && (locks || edits || (makes && (named || builds || report)))
}
