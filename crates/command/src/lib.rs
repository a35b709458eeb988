//! Command lines: what a line runs, in which forms, and whether it only reads (tool-contract 13.3, agent-runtime 8.7).
//!
//! Owns: the parser's verdict on a line ([`analyse`], [`steps`], [`leaves`]), the forms that a rule is compared with
//! ([`forms`], [`unwrapped`]), the read-only hand's plan of a line ([`read_only`], [`ReadPlan`]), and what a line ran and came
//! to ([`ran`], [`changes`], [`check_of`], [`OutputReport`]).
//! Knows nothing of: rules, tools, execution.
//!
//! Invariants: everything here is a pure function of the text. Only literal words are understood; whatever is not fully
//! understood is refused, or opaque.

mod analyse;
mod analysis;
mod assigned;
mod builtin;
mod changes;
mod check_options;
mod check_report;
mod checks;
mod cut;
mod database;
mod ends;
mod fed;
mod find;
mod folders;
mod git;
mod given;
mod hidden;
mod inline;
mod jq;
mod known;
mod leaves;
mod line;
mod linked;
mod made;
pub mod marks;
mod meant;
mod names;
pub mod options;
mod parse;
pub mod place;
mod plan;
mod ran;
mod raw_word;
mod replaced;
mod runners;
mod screen;
mod scripts;
mod sed;
mod shell;
mod stage;
mod started_in;
mod steps;
mod table;
mod texts;
mod unwrap;
mod vars;
pub mod verbs;
mod word;

pub use analyse::{analyse, forms, forms_of_line, unwrapped};
pub use analysis::{Analysis, Redirected};
pub use changes::{CommandChanges, FileChangeKind, FileChanges, changes};
pub use check_report::OutputReport;
pub use checks::{CheckCommand, check_of};
pub use ends::{LineEnd, StepEnd};
pub use folders::Folder;
pub use hidden::interpreted;
pub use known::{Reads, is_known, reads};
pub use leaves::leaves;
pub use line::read_only;
pub use linked::PlacedCommand;
pub use marks::hides_program;
pub use meant::{is_meant, normal};
pub use names::whole_name;
pub use place::may_hold_secrets;
pub use plan::{
    Arg, Builtin, Joiner, Named, NotReadOnly, PIPELINES_MAX, Pipeline, ReadPlan, Redirection, STAGES_MAX, Stage,
};
pub use ran::{RanCommand, is_open, joined, ran};
pub use screen::{LINE_MAX, deceptive, is_look_alike};
pub use shell::is_shell;
pub use stage::lines_printed;
pub use steps::{Joined, Step, steps};
pub use table::program_names;
pub use texts::{may_hold_command, pieces};
pub use unwrap::{base, is_assignment, may_be_line, peeled};
pub use word::{GlobPattern, Word};
