//! Every command that a line may run, for rules (tool-contract 13.3).

use super::analysis::Analysis;
use super::folders::Folder;
use super::raw_word::holds_index;
use super::walk::Walk;
use super::{marks, names, screen, unwrap};

/// Takes a line apart. What is not understood is never left out: it makes the line opaque.
#[must_use]
pub fn analyse(line: &str) -> Analysis {
    let mut walk = Walk::default();
    if let Some(c) = screen::deceptive(line) {
        walk.opaque(screen::ScreenRefusal::Deceptive(c).to_string());
    }
    walk.line(&marks::unmarked(line), 0);
    walk.runs_what_it_makes();
    walk.replaces_its_folders();
    walk.takes_words_of_variables();
    let Walk { mut found, inner, evaluates, vars, course, .. } = walk;
    found.unsettled = course.is_unsettled();
    if (evaluates && holds_index(line)) || vars.hide() {
        found.hides = true;
        found.opaque.push("what a variable holds is evaluated".to_owned());
    }
    // Files named by what a wrapper runs count; its commands are looked at by rules that forbid alone.
    for one in inner {
        found
            .redirections
            .extend(one.redirections.into_iter().filter(|r| !found.redirections.contains(r)).collect::<Vec<_>>());
        found.opaque.extend(one.opaque);
        found.hides |= one.hides;
        // What is inside a wrapper is looked at with the line's first command.
        let first = found.commands.first().cloned().unwrap_or_default();
        found.inputs.extend(one.inputs.into_iter().map(|(_, text)| (first.clone(), text)));
    }
    let commands = std::mem::take(&mut found.commands).into_iter().map(marks::taken_off);
    (found.commands, found.open) = commands.unzip();
    found.fed = found.fed.into_iter().map(|argv| marks::taken_off(argv).0).collect();
    found.inputs = found.inputs.into_iter().map(|(argv, text)| (marks::taken_off(argv).0, text)).collect();
    if found.commands.is_empty() && found.redirections.is_empty() && found.opaque.is_empty() {
        found.opaque.push("the line runs nothing".to_owned());
    }
    found.opaque.sort();
    found.opaque.dedup();
    found
}

/// Every command that `argv` comes down to under the wrappers it is written with and by its other names, itself left
/// out. Rules that forbid are held against each (L32).
#[must_use]
pub fn unwrapped(argv: &[String]) -> Vec<Vec<String>> {
    forms(argv).into_iter().map(|form| marks::taken_off(form).0).collect()
}

/// The same of words that may be marked.
#[must_use]
pub fn forms(argv: &[String]) -> Vec<Vec<String>> {
    let mut out: Vec<Vec<String>> = forms_in(argv, &Folder::Start, false).into_iter().map(|(form, _)| form).collect();
    out.extend(names::by_script(argv));
    out.extend(out.iter().filter_map(|form| names::by_script(form)).collect::<Vec<_>>());
    out.retain(|form| form != argv);
    out.sort();
    out.dedup();
    out
}

/// The same of a command that runs in `folder`, each form with the folder it would run in. In lines for a shell no folder
/// is known if that is `unsettled`.
pub(super) fn forms_in(argv: &[String], folder: &Folder, unsettled: bool) -> Vec<(Vec<String>, Folder)> {
    if unwrap::inner(argv).is_empty() && names::other(argv).is_none() {
        return Vec::new();
    }
    let mut walk = Walk::default();
    if unsettled {
        walk.course.lose();
    }
    walk.unwrap(argv, folder, 0);
    walk.forms
}

/// Every command of a line that a program may give to a shell, with what each comes down to.
#[must_use]
pub fn forms_of_line(line: &str) -> Vec<Vec<String>> {
    let mut walk = Walk::default();
    walk.line(&marks::without(line), 1);
    let mut out = walk.found.commands;
    out.extend(walk.forms.into_iter().map(|(form, _)| form));
    out.extend(out.iter().filter_map(|form| names::by_script(form)).collect::<Vec<_>>());
    out
}
