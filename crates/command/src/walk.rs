//! The walk over the syntax tree of a line: every command of it, with the folder and the input that it has.
//!
//! Simple commands are read in `simple_command.rs`, what a command runs in its turn in `inner_command.rs`, and what follows
//! from the whole line in `whole_line.rs`.

use brush_parser::ast::{
    AndOr, AndOrList, CaseItemPostAction, Command, CompoundCommand, CompoundList, Pipeline, SeparatorOperator,
};

use super::analysis::Analysis;
use super::folders::{self, Folder, FolderAfter};
use super::parse::parse;
use super::vars::Vars;
use super::{fed, screen, setters};

/// Layers of wrappers, shells and substitutions that are followed.
pub(super) const DEPTH_MAX: usize = 8;

/// Commands and forms of a line that are kept; what has more is opaque.
pub(super) const FORMS_MAX: usize = 256;

/// Words of a piece of a line that cannot be parsed, and from how many of them on a command may begin.
const GUESSED_WORDS: usize = 64;
const GUESSED_TAILS: usize = 16;

/// Bytes that are parsed for one line, with what its wrappers hand on.
const PARSED_MAX: usize = 2 * screen::LINE_MAX;

/// A line while it is taken apart.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) found: Analysis,
    /// What is inside wrappers.
    pub(super) inner: Vec<Analysis>,
    pub(super) forms: Vec<(Vec<String>, Folder)>,
    /// Where the shell stands.
    pub(super) course: FolderAfter,
    /// Counts everything kept, also inside wrappers.
    pub(super) kept: usize,
    /// Bytes parsed, also inside wrappers.
    pub(super) parsed: usize,
    /// Whether what is walked has input of the line's.
    pub(super) fed: bool,
    /// Whether something evaluates the text of a variable.
    pub(super) evaluates: bool,
    pub(super) vars: Vars,
    /// Whether a word of the command that is walked is a process substitution to read from.
    pub(super) substitutes: bool,
    /// Texts that the line prints or holds, in order.
    pub(super) printed: Vec<String>,
    /// Those of them that what is walked may read.
    pub(super) given: Vec<String>,
    /// Commands that read one of them.
    pub(super) readers: Vec<Vec<String>>,
    /// Variables that are set without an assignment, each as one.
    pub(super) assigned: Vec<Vec<String>>,
}

impl Walk {
    pub(super) fn opaque(&mut self, why: impl Into<String>) {
        let why = why.into();
        if self.found.opaque.len() < FORMS_MAX && !self.found.opaque.contains(&why) {
            self.found.opaque.push(why);
        }
    }

    /// The same of what may run any program.
    pub(super) fn hidden(&mut self, why: impl Into<String>) {
        self.found.hides = true;
        self.opaque(why);
    }

    /// The same of what evaluates the text of a variable. That runs something only if the text holds a substitution in
    /// brackets, and then the line shows it.
    fn evaluated(&mut self, why: &str) {
        self.evaluates = true;
        self.opaque(why);
    }

    /// Whether there is room for one more.
    pub(super) fn room(&mut self) -> bool {
        self.kept += 1;
        if self.kept > FORMS_MAX {
            self.hidden("the line runs too many commands to be analysed");
        }
        self.kept <= FORMS_MAX
    }

    pub(super) fn line(&mut self, text: &str, depth: usize) {
        self.parsed = self.parsed.saturating_add(text.len());
        if depth > DEPTH_MAX || self.parsed > PARSED_MAX || !self.room() {
            self.hidden("commands are nested too deeply to be analysed");
            return;
        }
        self.course.cdpath |= text.contains("CDPATH");
        if folders::runs_within(text) {
            self.course.lose();
        }
        match parse(text) {
            Ok(program) => program.complete_commands.iter().for_each(|list| self.list(list, depth)),
            Err(why) => {
                self.hidden(why);
                self.course.anywhere();
                self.guess(text);
            }
        }
    }

    /// Of a line that is no shell: what stands between separators, from each of its first words on. Only for
    /// rules that forbid; the line is opaque already.
    fn guess(&mut self, text: &str) {
        for piece in text.split(['\n', '\r', ';', '|', '&', '(', ')', '`', '{', '}']).take(FORMS_MAX) {
            let bare = |word: &str| word.replace(['\'', '"', '\\'], "");
            let words: Vec<String> = piece.split_whitespace().take(GUESSED_WORDS).map(bare).collect();
            for at in 0..words.len().min(GUESSED_TAILS) {
                if self.room() {
                    self.found.commands.push(words[at..].to_vec());
                    self.found.folders.push(Folder::Unknown);
                }
            }
        }
    }

    pub(super) fn list(&mut self, list: &CompoundList, depth: usize) {
        for item in &list.0 {
            self.course.go_on();
            if matches!(item.1, SeparatorOperator::Async) {
                self.subshell(|walk| walk.and_or(&item.0, depth));
            } else {
                self.and_or(&item.0, depth);
            }
        }
    }

    fn and_or(&mut self, AndOrList { first, additional }: &AndOrList, depth: usize) {
        self.pipeline(first, depth);
        for next in additional {
            let (pipeline, well) = match next {
                AndOr::And(pipeline) => (pipeline, true),
                AndOr::Or(pipeline) => (pipeline, false),
            };
            let skipped = self.course.only(well);
            self.pipeline(pipeline, depth);
            self.course.or_ends(!well, skipped);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, depth: usize) {
        if let [alone] = pipeline.seq.as_slice() {
            self.command(alone, depth);
        } else {
            let (begun, around) = (self.printed.len(), self.given.len());
            for (at, command) in pipeline.seq.iter().enumerate() {
                if at > 0 {
                    self.given.truncate(around);
                    self.given.extend_from_slice(&self.printed[begun..]);
                }
                self.subshell(|walk| walk.with_input(at > 0, |walk| walk.command(command, depth)));
            }
            self.given.truncate(around);
            if folders::pipeline_moves(pipeline) {
                self.course.anywhere();
            }
        }
        if pipeline.bang {
            self.course.negate();
        }
    }

    /// Walks what runs in a shell of its own: the one around it stays in its folder.
    pub(super) fn subshell(&mut self, walk: impl FnOnce(&mut Self)) {
        let around = self.course.clone();
        walk(self);
        let inner = std::mem::replace(&mut self.course, around);
        self.course.outlast(&inner);
    }

    /// Walks what runs any number of times.
    fn looped(&mut self, moves: bool, walk: impl FnOnce(&mut Self)) {
        self.course.go_on();
        if moves {
            self.course.anywhere();
        }
        walk(self);
        self.course.go_on();
        if moves {
            self.course.anywhere();
        }
    }

    /// Walks what has input of its own, or that of what is around it.
    fn with_input(&mut self, fed: bool, walk: impl FnOnce(&mut Self)) {
        let around = self.fed;
        self.fed |= fed;
        walk(self);
        self.fed = around;
    }

    fn command(&mut self, command: &Command, depth: usize) {
        match command {
            Command::Simple(simple) => self.simple(simple, depth),
            Command::Compound(compound, redirects) => {
                let fed = redirects.iter().flat_map(|list| &list.0).any(fed::feeds);
                let around = self.given.len();
                let texts: Vec<String> = redirects.iter().flat_map(|list| &list.0).filter_map(fed::text).collect();
                self.given.extend_from_slice(&texts);
                self.printed.extend(texts);
                self.with_input(fed, |walk| walk.compound(compound, depth));
                self.given.truncate(around);
                self.redirects(redirects.as_ref(), depth);
                if folders::may_keep_from_running(redirects.as_ref()) && folders::compound_moves(compound) {
                    self.course.anywhere();
                }
            }
            Command::Function(function) => {
                // A name may then stand for anything.
                self.opaque("a function is defined");
                self.subshell(|walk| {
                    // It runs where it is called.
                    walk.course.anywhere();
                    walk.compound(&function.body.0, depth);
                    walk.redirects(function.body.1.as_ref(), depth);
                });
                if folders::compound_moves(&function.body.0) || folders::is_mover(&function.fname.value) {
                    self.course.lose();
                }
            }
            Command::ExtendedTest(test, redirects) => {
                self.evaluated("`[[ … ]]` may evaluate what it compares");
                self.vars.compare(&test.to_string());
                self.substituted(&test.to_string(), depth);
                self.redirects(redirects.as_ref(), depth);
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, depth: usize) {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => {
                // The parser also takes `( (a) )` for it, which is a command in two subshells.
                self.evaluated("arithmetic may run a substitution");
                self.vars.evaluate(&arithmetic.expr.value);
                self.subshell(|walk| walk.line(&arithmetic.expr.value, depth + 1));
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                self.evaluated("arithmetic may run a substitution");
                for part in [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten() {
                    self.vars.evaluate(&part.value);
                    self.substituted(&part.value, depth);
                }
                let moves = folders::compound_moves(compound);
                self.looped(moves, |walk| walk.list(&clause.body.list, depth));
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, depth),
            CompoundCommand::Subshell(subshell) => self.subshell(|walk| walk.list(&subshell.list, depth)),
            CompoundCommand::ForClause(clause) => {
                for value in clause.values.iter().flatten() {
                    self.word(value, depth);
                }
                let values = clause.values.as_ref().map(|all| all.iter().map(|value| value.value.as_str()));
                self.sets(&setters::by_loop(&clause.variable_name, values.clone()));
                self.vars.each(&clause.variable_name, values);
                let moves = folders::compound_moves(compound);
                self.looped(moves, |walk| walk.list(&clause.body.list, depth));
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value, depth);
                let falls = clause.cases.iter().any(|case| !matches!(case.post_action, CaseItemPostAction::ExitCase));
                let moves = folders::compound_moves(compound);
                self.course.go_on();
                if falls && moves {
                    self.course.anywhere();
                }
                let around = self.course.only(true);
                let mut ends = around.clone();
                for case in &clause.cases {
                    self.course.turn_to(around.clone());
                    case.patterns.iter().for_each(|pattern| self.substituted(&pattern.value, depth));
                    case.cmd.iter().for_each(|list| self.list(list, depth));
                    self.course.or_from(ends);
                    ends = self.course.only(true);
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, depth);
                let mut not_met = self.course.only(true);
                self.list(&clause.then, depth);
                for other in clause.elses.iter().flatten() {
                    let ended = self.course.turn_to(not_met);
                    other.condition.iter().for_each(|list| self.list(list, depth));
                    not_met = self.course.only(true);
                    self.list(&other.body, depth);
                    self.course.or_from(ended);
                    if other.condition.is_none() {
                        return;
                    }
                }
                self.course.or_from(not_met);
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.looped(folders::compound_moves(compound), |walk| {
                    walk.list(&clause.0, depth);
                    walk.list(&clause.1.list, depth);
                });
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.subshell(|walk| walk.with_input(true, |walk| walk.command(&coprocess.body, depth)));
            }
        }
    }
}
