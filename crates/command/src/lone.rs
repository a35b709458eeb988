//! Lines that are one plain command, of which nothing happens if there is no such program.

use super::analyse::analyse;
use super::{builtin, leaves, unwrap};

/// The program of a line that is nothing but one simple command of literal words. If the shell does not find it, the line did
/// nothing: no redirection made a file, no substitution ran, and it is no builtin.
#[must_use]
pub fn lone_program(line: &str) -> Option<String> {
    let analysis = analyse(line);
    let [argv] = analysis.commands.as_slice() else { return None };
    let program = argv.first()?;
    let plain = analysis.opaque.is_empty()
        && analysis.redirections.is_empty()
        && analysis.fed.is_empty()
        && analysis.inputs.is_empty()
        && analysis.open.iter().all(Vec::is_empty)
        && !line.contains(['$', '`', '<', '>', '&', '|', ';', '(', '\n'])
        && leaves(line).is_none();
    let named = !program.contains('/') && !unwrap::is_assignment(program) && !builtin::is_builtin(program);
    (plain && named).then(|| program.clone())
}

#[cfg(test)]
mod tests {
    use super::lone_program;

    #[test]
    fn a_line_is_one_plain_command_only_if_nothing_else_could_happen() {
        for (line, program) in [("pytest", "pytest"), ("pytest -q tests", "pytest"), ("  nope 'a b' ", "nope")] {
            assert_eq!(lone_program(line).as_deref(), Some(program), "{line}");
        }
        for line in [
            "",
            "nope > out",
            "nope 2>&1",
            "nope; touch x",
            "nope || touch x",
            "nope | tee x",
            "nope $(touch x)",
            "nope `touch x`",
            "nope <(touch x)",
            "nope $((a[$(touch x)]))",
            "nope ${x:=1}",
            "nope &",
            "(nope)",
            "X=1",
            "X=1 nope > out",
            ". script",
            "source script",
            "eval nope",
            "exec nope",
            "command nope",
            "./nope",
            "nope() { :; }",
            "if nope; then :; fi",
            "nope\ntouch x",
        ] {
            assert_eq!(lone_program(line), None, "{line}");
        }
    }
}
