//! Command lines: what they would run, whether they only read, and which tool would do instead
//! (tool-contract 13.3, agent-runtime 8.6 and 8.7).
//!
//! Everything here is a pure function of the text. Only literal words are understood; whatever is not
//! fully understood is refused, or opaque.

mod analyse;
mod builtin;
mod cover;
mod cut;
mod find;
mod git;
mod given;
mod hidden;
mod inline;
mod jq;
mod known;
mod leaves;
mod line;
mod made;
mod map;
pub(crate) mod marks;
mod names;
mod options;
mod pattern;
mod place;
mod plan;
mod request;
mod runners;
mod screen;
mod sed;
mod shell;
mod stage;
mod steps;
mod table;
mod unwrap;
mod vars;
pub(crate) mod verbs;
mod word;

pub use analyse::{Analysis, Redirected, analyse, unwrapped};
pub(crate) use analyse::{forms, forms_of_line};
pub use cover::covered_by;
pub(crate) use known::is_known;
pub use leaves::leaves;
pub use line::read_only;
pub use map::{Alternative, Whereabouts, mapped, mapped_argv};
pub(crate) use marks::hides_program;
pub use place::may_hold_secrets;
pub use plan::{
    Arg, Builtin, Joiner, Named, NotReadOnly, PIPELINES_MAX, Pipeline, ReadPlan, Redirection, STAGES_MAX, Stage,
};
pub use request::lexical;
pub use screen::LINE_MAX;
pub(crate) use shell::is_shell;
pub use steps::{Joined, Step, steps};
pub use table::program_names;
pub(crate) use unwrap::{base, is_assignment, may_be_line};
pub use word::{GlobPattern, Word};
