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
mod builtin;
mod builtin_effects;
mod changes;
mod check_options;
mod check_report;
mod checks;
mod cut;
mod database;
mod ends;
mod fed;
mod file_options;
mod find;
mod folders;
mod git;
mod git_editor;
mod hidden;
mod inline;
mod inner_command;
mod input_runners;
mod jq;
mod leaves;
mod line;
mod linked;
mod lone;
mod made_files;
mod make_words;
pub mod marks;
mod meant;
mod names;
mod option_reader;
pub mod options;
mod outputs;
mod parse;
pub mod path_text;
mod plain_programs;
mod plan;
mod program_variables;
mod ran;
mod raw_word;
mod replaced;
mod runners;
mod same_commands;
mod screen;
mod scripts;
mod sed;
mod setters;
mod shell;
mod simple_command;
mod spliced;
mod stage;
mod started_in;
mod steps;
mod table;
mod texts;
mod unwrap;
mod vars;
mod verb_table;
pub mod verbs;
mod walk;
mod whole_line;
mod word;

pub use analyse::{analyse, forms, forms_of_line, unwrapped};
pub use analysis::{Analysis, RedirectedFile};
pub use changes::{CommandChanges, FileChangeKind, FileChanges, changes};
pub use check_report::OutputReport;
pub use checks::{CheckCommand, check_of};
pub use ends::{LineEnd, StepEnd};
pub use folders::Folder;
pub use git::alias_verb;
pub use hidden::{interpreted, is_of_a_process};
pub use leaves::leaves;
pub use line::read_only;
pub use linked::PlacedCommand;
pub use lone::lone_program;
pub use make_words::MakeWords;
pub use marks::hides_program;
pub use meant::{is_meant, normal};
pub use names::{rule_by_script, whole_name};
pub use path_text::may_hold_secrets;
pub use plain_programs::{ProgramReads, is_known, reads};
pub use plan::{
    Arg, Builtin, Joiner, NamedPlace, NotReadOnly, PIPELINES_MAX, Pipeline, ReadPlan, Redirection, STAGES_MAX, Stage,
};
pub use ran::{RanCommand, is_open, joined, ran};
pub use same_commands::same_commands;
pub use screen::{LINE_MAX, deceptive, is_look_alike};
pub use shell::is_shell;
pub use stage::lines_printed;
pub use steps::{Joined, Step, steps};
pub use table::program_names;
pub use texts::{may_hold_command, pieces};
pub use unwrap::{base, is_assignment, may_be_line, peeled};
pub use word::{GlobPattern, Word};
