//! Every command that a line may run, for rules (tool-contract 13.3).

use super::analysis::{Analysis, RedirectedFile};
use super::folders::{self, Folder, FolderAfter};
use super::made_files::{LineCommands, MadeFiles};
use super::marks::{self, OpenExtent};
use super::parse::parse;
use super::plain_programs::ProgramReads;
use super::raw_word::{holds_index, openness, shown, unquoted};
use super::setters::{self, SetVariable};
use super::unwrap::{self, Inner};
use super::vars::Vars;
use super::word::{self, Word};
use super::{
    builtin, fed, hidden, inline, input_runners, names, plain_programs, program_variables, replaced, screen, stage,
    started_in,
};
use brush_parser::ast::{
    AndOr, AndOrList, AssignmentName, AssignmentValue, CaseItemPostAction, Command, CommandPrefixOrSuffixItem as Item,
    CompoundCommand, CompoundList, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Pipeline,
    ProcessSubstitutionKind, RedirectList, SeparatorOperator, SimpleCommand, Word as Raw,
};

/// Layers of wrappers, shells and substitutions that are followed.
const DEPTH_MAX: usize = 8;

/// Commands and forms of a line that are kept; what has more is opaque.
const FORMS_MAX: usize = 256;

/// Words of a piece of a line that cannot be parsed, and from how many of them on a command may begin.
const GUESSED_WORDS: usize = 64;
const GUESSED_TAILS: usize = 16;

/// Bytes that are parsed for one line, with what its wrappers hand on.
const PARSED_MAX: usize = 2 * screen::LINE_MAX;

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
    let Walk { mut found, inner, evaluates, vars, course, .. } = walk;
    found.unsettled = course.is_unsettled();
    found.hides |= (evaluates && holds_index(line)) || vars.hide();
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
    out
}

#[derive(Default)]
struct Walk {
    found: Analysis,
    /// What is inside wrappers.
    inner: Vec<Analysis>,
    forms: Vec<(Vec<String>, Folder)>,
    /// Where the shell stands.
    course: FolderAfter,
    /// Counts everything kept, also inside wrappers.
    kept: usize,
    /// Bytes parsed, also inside wrappers.
    parsed: usize,
    /// Whether what is walked has input of the line's.
    fed: bool,
    /// Whether something evaluates the text of a variable.
    evaluates: bool,
    vars: Vars,
    /// Whether a word of the command that is walked is a process substitution to read from.
    substitutes: bool,
    /// Texts that the line prints or holds, in order.
    printed: Vec<String>,
    /// Those of them that what is walked may read.
    given: Vec<String>,
    /// Commands that read one of them.
    readers: Vec<Vec<String>>,
    /// Variables that are set without an assignment, each as one.
    assigned: Vec<Vec<String>>,
}

impl Walk {
    fn opaque(&mut self, why: impl Into<String>) {
        let why = why.into();
        if self.found.opaque.len() < FORMS_MAX && !self.found.opaque.contains(&why) {
            self.found.opaque.push(why);
        }
    }

    /// The same of what may run any program.
    fn hidden(&mut self, why: impl Into<String>) {
        self.found.hides = true;
        self.opaque(why);
    }

    /// The same of what evaluates the text of a variable. That runs something only if the text holds a substitution in
    /// brackets, and then the line shows it.
    fn evaluated(&mut self, why: &str) {
        self.evaluates = true;
        self.opaque(why);
    }

    /// Whether the line runs a program that it makes itself.
    fn runs_what_it_makes(&mut self) {
        let inner = || self.inner.iter().flat_map(|one| &one.redirections);
        let redirected = self.found.redirections.iter().chain(inner()).collect();
        let forms = self.forms.iter().map(|(form, _)| form);
        let commands: Vec<Vec<String>> =
            self.found.commands.iter().chain(forms).chain(&self.assigned).cloned().collect();
        let made = MadeFiles::of(LineCommands { commands: &commands, given: &self.readers, redirected });
        let is_run = made.is_run(&commands);
        // What the line writes to a file is read by a command that names the file.
        let readers: Vec<Vec<String>> =
            self.found.commands.iter().filter(|argv| made.is_named(argv)).cloned().collect();
        if is_run {
            self.hidden("a program is run that the line itself may make");
        }
        if program_variables::make_expands(&commands) {
            self.hidden("make runs what a variable holds");
        }
        let texts = std::mem::take(&mut self.printed);
        readers.iter().for_each(|argv| self.reads(argv, &texts));
    }

    /// Whether the line changes into a folder that it may replace itself.
    fn replaces_its_folders(&mut self) {
        let forms = self.forms.iter().map(|(form, _)| form);
        let commands: Vec<Vec<String>> = self.found.commands.iter().chain(forms).cloned().collect();
        let entered = self.found.folders.iter().chain(self.forms.iter().map(|(_, folder)| folder));
        self.found.replaced = replaced::are_replaced(&commands, entered);
        if self.found.replaced {
            self.found.folders.iter_mut().for_each(Folder::forget);
        }
    }

    /// Whether there is room for one more.
    fn room(&mut self) -> bool {
        self.kept += 1;
        if self.kept > FORMS_MAX {
            self.hidden("the line runs too many commands to be analysed");
        }
        self.kept <= FORMS_MAX
    }

    fn line(&mut self, text: &str, depth: usize) {
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

    fn list(&mut self, list: &CompoundList, depth: usize) {
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
    fn subshell(&mut self, walk: impl FnOnce(&mut Self)) {
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

    /// Notes texts that a command reads, if it may run them.
    fn reads(&mut self, argv: &[String], texts: &[String]) {
        let runs =
            |form: &[String]| matches!(plain_programs::reads(form), ProgramReads::Values | ProgramReads::Anything);
        if texts.is_empty() || !(runs(argv) || forms(argv).iter().any(|form| runs(form))) {
            return;
        }
        for text in texts {
            let input = (argv.to_vec(), marks::without(text));
            if !self.found.inputs.contains(&input) && self.room() {
                self.found.inputs.push(input);
            }
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

    fn simple(&mut self, simple: &SimpleCommand, depth: usize) {
        let mut argv = Vec::new();
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let redirected = |item: &Item| matches!(item, Item::IoRedirect(redirect) if fed::feeds(redirect));
        let fed = self.fed || prefix.clone().chain(suffix.clone()).any(redirected);
        let own = |item: &Item| if let Item::IoRedirect(redirect) = item { fed::text(redirect) } else { None };
        let mut texts: Vec<String> = prefix.clone().chain(suffix.clone()).filter_map(own).collect();
        let around = std::mem::take(&mut self.substitutes);
        prefix.for_each(|item| self.item(item, &mut argv, depth));
        if let Some(name) = &simple.word_or_name {
            argv.push(self.word(name, depth));
        }
        suffix.for_each(|item| self.item(item, &mut argv, depth));
        let substitutes = std::mem::replace(&mut self.substitutes, around);
        self.vars.command(&argv);
        self.sets(&setters::by_command(&argv));
        self.course.cdpath |= argv.iter().any(|word| word.starts_with("CDPATH"));
        let folder = self.course.here();
        self.course.run(simple);
        if substitutes && !argv.first().is_some_and(|program| fed::shows_files(program)) {
            self.hidden("a process substitution may be a script");
        }
        if argv.is_empty() || !self.room() {
            return;
        }
        self.printed.extend(texts.iter().cloned().chain(fed::printed(&argv)));
        texts.extend_from_slice(&self.given);
        self.reads(&argv, &texts);
        if !texts.is_empty() {
            self.readers.push(argv.clone());
        }
        if fed && std::iter::once(argv.clone()).chain(forms(&argv)).any(|form| inline::runs_what_it_is_fed(&form)) {
            self.hidden("a program takes its commands from its input");
        }
        if fed && !stage::only_reads(&argv) && !self.found.fed.contains(&argv) {
            self.found.fed.push(argv.clone());
        }
        let mut known = self.found.commands.iter().zip(&self.found.folders);
        if !known.any(|(command, at)| *command == argv && *at == folder) {
            self.unwrap(&argv, &folder, depth);
            self.found.commands.push(argv);
            self.found.folders.push(folder);
        }
    }

    fn item(&mut self, item: &Item, argv: &mut Vec<String>, depth: usize) {
        match item {
            Item::IoRedirect(redirect) => self.redirect(redirect, depth),
            Item::Word(word) => argv.push(self.word(word, depth)),
            Item::AssignmentWord(assignment, word) => {
                if let AssignmentName::ArrayElementName(_, index) = &assignment.name
                    && !builtin::is_plain_index(index)
                {
                    self.hidden("the index of an array is evaluated");
                }
                if let AssignmentValue::Array(items) = &assignment.value {
                    self.opaque("an array is assigned");
                    for index in items.iter().filter_map(|(index, _)| index.as_ref()) {
                        self.vars.evaluate(&index.value);
                    }
                    self.substituted(&word.value, depth);
                    argv.push(marks::mark(word.value.clone(), OpenExtent::One));
                } else {
                    argv.push(self.word(word, depth));
                }
            }
            Item::ProcessSubstitution(kind, subshell) => {
                self.substitutes |= matches!(kind, ProcessSubstitutionKind::Read);
                self.opaque("a process substitution");
                self.subshell(|walk| walk.list(&subshell.list, depth));
                argv.push(marks::mark(subshell.to_string(), OpenExtent::One));
            }
        }
    }

    /// The word's characters, or its text if it is not literal.
    fn word(&mut self, raw: &Raw, depth: usize) -> String {
        match word::read(&raw.value) {
            Ok(Word::Literal(text)) => text,
            // Look-alikes are text to a shell; what they deceive is a reader, who is asked.
            Ok(Word::Glob(pattern)) => {
                self.opaque(format!("`{}` is a pattern over file names", shown(&raw.value)));
                marks::mark(pattern.as_str().to_owned(), OpenExtent::Many)
            }
            Err(why) => {
                self.opaque(format!("`{}` holds {why}", shown(&raw.value)));
                self.substitutes |= raw.value.contains("<(");
                self.substituted(&raw.value, depth);
                let text = unquoted(&raw.value);
                match openness(why, &raw.value) {
                    Some(open) => marks::mark(text, open),
                    None => text,
                }
            }
        }
    }

    fn substituted(&mut self, raw: &str, depth: usize) {
        self.expanded(raw);
        for inner in word::substitutions(raw, true) {
            self.subshell(|walk| walk.line(&inner, depth + 1));
        }
    }

    /// Notes variables that are set without an assignment.
    fn sets(&mut self, variables: &[SetVariable]) {
        if variables.iter().any(SetVariable::may_run) {
            self.hidden("a variable whose value may be run is set");
        }
        self.assigned.extend(variables.iter().filter_map(SetVariable::as_assignment).map(|word| vec![word]));
    }

    fn expanded(&mut self, raw: &str) {
        self.sets(&setters::by_expansion(raw));
        if self.vars.expand(raw) {
            self.hidden("the text of a variable is expanded once more");
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>, depth: usize) {
        redirects.iter().flat_map(|list| &list.0).for_each(|redirect| self.redirect(redirect, depth));
    }

    fn redirect(&mut self, redirect: &IoRedirect, depth: usize) {
        match redirect {
            IoRedirect::File(_, kind, target) => match target {
                IoFileRedirectTarget::Filename(word) => {
                    let writes = !matches!(kind, IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput);
                    self.file(word, writes, depth);
                    if matches!(kind, IoFileRedirectKind::ReadAndWrite) {
                        self.file(word, false, depth);
                    }
                }
                IoFileRedirectTarget::Fd(_) => {}
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                    self.opaque("a process substitution");
                    self.subshell(|walk| walk.list(&subshell.list, depth));
                }
                IoFileRedirectTarget::Duplicate(word) => {
                    // `>&2`, `>&-`; anything else is a file.
                    let stream = word.value.trim_end_matches('-');
                    if !stream.bytes().all(|b| b.is_ascii_digit()) {
                        self.file(word, true, depth);
                    }
                }
            },
            IoRedirect::OutputAndError(word, _) => self.file(word, true, depth),
            IoRedirect::HereString(_, word) => {
                self.word(word, depth);
            }
            IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion && document.doc.value.contains(['$', '`']) {
                    self.opaque("a here-document holds a variable or substitution");
                    self.expanded(&document.doc.value);
                    for inner in word::substitutions(&document.doc.value, false) {
                        self.subshell(|walk| walk.line(&inner, depth + 1));
                    }
                }
            }
        }
    }

    fn file(&mut self, raw: &Raw, writes: bool, depth: usize) {
        let path = marks::without(&self.word(raw, depth));
        let redirected = RedirectedFile { path, writes };
        if redirected.path != "/dev/null" && !self.found.redirections.contains(&redirected) && self.room() {
            self.found.redirections.push(redirected);
        }
    }

    /// Follows what `argv`, itself run in `folder`, runs in its turn.
    fn unwrap(&mut self, argv: &[String], folder: &Folder, depth: usize) {
        let why = hidden::hidden_program(argv);
        if hidden::hides(argv) {
            self.hidden(why.unwrap_or("what an interpreter runs becomes known only when the line runs"));
        } else if let Some(why) = why {
            self.opaque(why);
        }
        if hidden::script_is_input(argv, folder) {
            self.hidden("what is run comes from the input");
        }
        let mut inner = unwrap::inner(argv);
        inner.extend(names::other(argv).map(Inner::Argv));
        if argv.len() > unwrap::WORDS_MAX && unwrap::wraps(&argv[0]) {
            self.hidden("a command that runs another one has too many words to be analysed");
        }
        if !inner.is_empty() && depth >= DEPTH_MAX {
            self.hidden("commands are nested too deeply to be analysed");
            return;
        }
        let folder = started_in::started_in(argv, folder);
        for inner in inner {
            if self.kept > FORMS_MAX {
                return;
            }
            match inner {
                Inner::Argv(form) => {
                    let form = input_runners::filled_in(argv, form);
                    if !self.forms.iter().any(|(known, at)| *known == form && *at == folder) && self.room() {
                        self.forms.push((form.clone(), folder.clone()));
                        self.unwrap(&form, &folder, depth + 1);
                    }
                }
                Inner::Cut => self.hidden("a command that runs another one has too many words to be analysed"),
                Inner::Line(text) => {
                    let vars = std::mem::take(&mut self.vars);
                    let course = self.course.inside(folder.clone(), &argv[0]);
                    let mut inside = Self { kept: self.kept, parsed: self.parsed, vars, course, ..Self::default() };
                    inside.line(&marks::without(&text), depth + 1);
                    (self.kept, self.parsed) = (inside.kept, inside.parsed);
                    self.evaluates |= inside.evaluates;
                    self.vars = inside.vars;
                    self.printed.extend(inside.printed);
                    self.readers.extend(inside.readers);
                    self.assigned.extend(inside.assigned);
                    self.forms.extend(inside.found.commands.iter().cloned().zip(inside.found.folders.iter().cloned()));
                    self.forms.extend(inside.forms);
                    self.inner.extend(inside.inner);
                    self.inner.push(inside.found);
                }
            }
        }
    }
}
