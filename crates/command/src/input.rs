//! What gives a command something to read, and which commands only show what they read.

use brush_parser::ast::{IoFileRedirectKind, IoFileRedirectTarget, IoRedirect};

/// Whether a program does nothing with the files it is given but show and compare them.
pub(super) fn shows_files(program: &str) -> bool {
    let shows = [
        "diff",
        "cmp",
        "comm",
        "cat",
        "paste",
        "join",
        "sort",
        "uniq",
        "wc",
        "head",
        "tail",
        "grep",
        "egrep",
        "fgrep",
        "cut",
        "tr",
        "nl",
        "tac",
        "sha256sum",
        "md5sum",
        "jq",
        "colordiff",
    ];
    shows.contains(&program)
}

/// Whether a redirection gives a command something to read.
pub(super) fn feeds(redirect: &IoRedirect) -> bool {
    match redirect {
        IoRedirect::HereString(..) | IoRedirect::HereDocument(..) => true,
        IoRedirect::OutputAndError(..) => false,
        IoRedirect::File(_, kind, target) => {
            let reads = matches!(
                kind,
                IoFileRedirectKind::Read | IoFileRedirectKind::ReadAndWrite | IoFileRedirectKind::DuplicateInput
            );
            let nothing = match target {
                IoFileRedirectTarget::Filename(word) => word.value == "/dev/null",
                IoFileRedirectTarget::Duplicate(word) => word.value == "-",
                IoFileRedirectTarget::Fd(_) | IoFileRedirectTarget::ProcessSubstitution(..) => false,
            };
            reads && !nothing
        }
    }
}
