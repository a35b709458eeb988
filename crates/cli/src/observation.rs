//! What a call gave, on both streams of a terminal, with the hint for what went wrong.

use std::io;

use portcullis::hand::Launcher;
use portcullis_event::Observed;
use portcullis_terminal::observed::{content, failure, repeated_warning, success, unsaid_warnings, warning};
use portcullis_terminal::render::{DIM, Term, safe, styled};
use portcullis_terminal::shell_view;

use crate::hints;

/// What a call gave: its content for a person on standard output, the rest on standard error. `told` are the warnings of the
/// call before it, which are not told at length again.
pub fn print(term: &Term, observed: &Observed, told: &[String]) -> io::Result<()> {
    let content = content(observed, hints::whole_artifact);
    if !content.is_empty() {
        content.print(*term)?;
    }
    if observed.ok {
        term.note(&styled(DIM, &success(observed)));
        if matches!(observed.tool.as_str(), "shell_open" | "shell_restart") {
            term.note(shell_view::ENDS_WITH_THE_CALL);
        }
    } else {
        term.error(&failure(observed));
        if let Some(hint) = hints::of_failure(observed) {
            term.note(&format!("  {hint}"));
        }
        // The first is in the summary already.
        let said = usize::from(observed.errors.first().is_some_and(|first| observed.summary.contains(&first.message)));
        for error in observed.errors.iter().take(10).skip(said) {
            let path = if error.path.is_empty() { "the input" } else { &error.path };
            term.note(&format!("  {}: {} ({})", safe(path), safe(&error.message), safe(&error.rule)));
        }
    }
    for text in unsaid_warnings(observed) {
        // Of a failure it may be the cause.
        match observed.ok && told.contains(text) {
            true => term.insist(&repeated_warning(text)),
            false => term.insist(&warning(text)),
        }
    }
    if let Some(hint) = hints::of_warnings(observed, || Launcher::this_program().posture().level) {
        term.note(&format!("  {hint}"));
    }
    Ok(())
}
