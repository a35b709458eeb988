//! What a line gives a command to read.

use brush_parser::ast::{IoFileRedirectKind, IoFileRedirectTarget, IoRedirect};

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

/// The text that a redirection holds itself.
pub(super) fn text(redirect: &IoRedirect) -> Option<String> {
    match redirect {
        IoRedirect::HereString(_, word) => Some(word.value.clone()),
        IoRedirect::HereDocument(_, document) => Some(document.doc.value.clone()),
        IoRedirect::File(..) | IoRedirect::OutputAndError(..) => None,
    }
}

/// Whether a program does nothing with the files it is given but show and compare them.
pub(super) fn shows_files(program: &str) -> bool {
    let shows = "diff cmp comm cat paste join sort uniq wc head tail grep egrep fgrep cut tr nl tac sha256sum md5sum jq \
        colordiff";
    shows.split_ascii_whitespace().any(|known| known == program)
}

/// What a command prints as it is written: the words of `echo` and `printf`.
pub(super) fn printed(argv: &[String]) -> Option<String> {
    let (program, words) = argv.split_first()?;
    matches!(super::unwrap::base(program), "echo" | "printf").then(|| words.join(" "))
}
