//! How a person at a terminal answers an ask: a key selects an answer, Enter confirms it. No key answers by itself.
//!
//! Everything here follows from what was typed and from when it was read. The times come from the caller, so that every
//! rule can be tested without a terminal and without waiting.

use std::time::{Duration, Instant};

use crate::typing::Input;

/// Keys that are read sooner after the choices appeared were typed without having seen them: they are text.
pub const UNSEEN: Duration = Duration::from_millis(500);

/// Stands before the line that says why not.
pub const REASON: &str = "no, because > ";

/// Words that other programs take for an answer.
const ANSWER_WORDS: &[&str] = &["y", "yes", "ok", "okay", "no", "allow", "deny", "1", "2", "3", "4", "5"];
/// So many letters of choices are a change of mind, and no word.
const MISTYPED: usize = 2;
const NOT_ALL_SHOWN: &str = "not all of it was shown; page on with Space first";

/// What can be chosen at an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Once,
    Session,
    Project,
    No,
    /// No, and a line that says why.
    Because,
    /// Leave the ask to others.
    Skip,
    /// Leave the watch.
    Leave,
    /// Show the next page of what is asked. It answers nothing, so it needs no Enter.
    NextPage,
    /// Show every fact of what is asked. As above.
    AllFacts,
}

impl Choice {
    const ALL: [Self; 9] = [
        Self::Once,
        Self::Session,
        Self::Project,
        Self::No,
        Self::Because,
        Self::Skip,
        Self::Leave,
        Self::NextPage,
        Self::AllFacts,
    ];

    /// The key as a person is told of it.
    fn named(self) -> String {
        if self == Self::NextPage { "Space".to_owned() } else { self.key().to_string() }
    }

    const fn key(self) -> char {
        match self {
            Self::Once => 'a',
            Self::Session => 't',
            Self::Project => 'p',
            Self::No => 'd',
            Self::Because => 'b',
            Self::Skip => 's',
            Self::Leave => 'q',
            Self::NextPage => ' ',
            Self::AllFacts => '?',
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Once => "allow once",
            Self::Session => "this session",
            Self::Project => "this project",
            Self::No => "no",
            Self::Because => "no, because…",
            Self::Skip => "skip",
            Self::Leave => "leave",
            Self::NextPage => "shows the next page",
            Self::AllFacts => "more",
        }
    }

    /// Whether the call would run.
    const fn allows(self) -> bool {
        matches!(self, Self::Once | Self::Session | Self::Project)
    }

    fn of(key: char) -> Option<Self> {
        // `n` is the first letter of its word.
        let key = if key == 'n' { Self::No.key() } else { key };
        Self::ALL.into_iter().find(|choice| choice.key() == key)
    }
}

/// What an input came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// These belong to the line that the person is writing, in this order.
    Text(Vec<Input>),
    /// It is selected and has to be shown: [`Chooser::selection_is_shown`].
    Selected(Choice),
    /// Nothing is selected any more, and the line is empty. The choices have to be shown again.
    Cleared,
    /// A line was to be sent that was meant as an answer. It goes nowhere; a person is told these words.
    NoAnswer(String),
    /// The next page has to be shown.
    NextPage,
    /// Every fact has to be shown, from the first page.
    AllFacts,
    /// It is the answer.
    Confirmed(Choice),
    /// The first of the words that say why not: [`Choice::Because`] is chosen, and its line is open.
    Reason(Input),
    /// Enter came together with the key, and was not taken. The selection has to be shown again, which says so.
    EnterTooSoon,
}

impl Step {
    /// Whether it goes further in what is asked, or allows it: what is relied on has to be on the screen as it is.
    pub const fn relies_on_the_screen(&self) -> bool {
        match self {
            Self::NextPage => true,
            Self::Selected(choice) | Self::Confirmed(choice) => choice.allows(),
            Self::Nothing
            | Self::Text(_)
            | Self::Cleared
            | Self::NoAnswer(_)
            | Self::AllFacts
            | Self::Reason(_)
            | Self::EnterTooSoon => false,
        }
    }
}

/// The choices of one ask, and which of them is selected.
///
/// Invariant: only Enter makes an answer, and only of a selection that was on the screen when Enter was read. A selection
/// needs one lone key on an empty line, read [`UNSEEN`] after the choices appeared; a second key makes text of both, except
/// behind [`Choice::Because`], whose line opens with its selection: what is typed there is the reason, and Enter gives it.
/// A line that can only be meant as an answer (the letter of a choice, `y`, `yes`, `1`) is never sent, and answers nothing.
#[derive(Debug)]
pub struct Chooser {
    offered: Vec<Choice>,
    /// Since when the choices are on the screen.
    shown: Option<Instant>,
    selected: Option<SelectedChoice>,
}

#[derive(Debug, Clone, Copy)]
struct SelectedChoice {
    choice: Choice,
    /// As it was typed.
    key: char,
    /// Since when the selection is on the screen.
    shown: Option<Instant>,
    /// Enter was read before that.
    enter_too_soon: bool,
}

impl Chooser {
    /// Only what is offered can be selected.
    pub fn new(offered: Vec<Choice>) -> Self {
        Self { offered, shown: None, selected: None }
    }

    /// The choices in one line.
    pub fn line(&self) -> String {
        let choices: Vec<String> =
            self.offered.iter().map(|choice| format!("{} {}", choice.named(), choice.words())).collect();
        format!("{}   (a key selects, Enter confirms)", choices.join(" · "))
    }

    /// What is selected, in one line that ends with it: of a line that is too long its end is seen.
    pub fn selection(&self) -> Option<String> {
        let SelectedChoice { choice, enter_too_soon, .. } = self.selected?;
        let named = format!("{} {}", choice.key(), choice.words());
        Some(match (choice, enter_too_soon) {
            (Choice::Because, _) => format!("Escape takes it back · type why, Enter confirms: b {REASON}"),
            (_, true) => format!("Enter came with the key and was not taken · Enter confirms: {named}"),
            (_, false) => format!("Escape takes it back · Enter confirms: {named}"),
        })
    }

    /// The choices appeared on the screen, perhaps anew. Nothing is selected.
    pub fn appeared(&mut self, now: Instant) {
        (self.shown, self.selected) = (Some(now), None);
    }

    /// The choices have to be shown.
    pub fn is_hidden(&self) -> bool {
        self.shown.is_none()
    }

    /// The choices are not in view any more.
    pub fn hide(&mut self) {
        (self.shown, self.selected) = (None, None);
    }

    /// The selection appeared on the screen.
    pub fn selection_is_shown(&mut self, now: Instant) {
        if let Some(selected) = &mut self.selected {
            selected.shown = Some(now);
        }
    }

    /// What an input that was read at `at` comes to, with this text on the line.
    pub fn hear(&mut self, input: Input, at: Instant, line: &str) -> Step {
        let line_is_empty = line.is_empty();
        if let Some(selected) = self.selected.take() {
            return self.hear_selected(selected, input, at);
        }
        let seen = self.shown.is_some_and(|shown| at >= shown + UNSEEN);
        match input {
            // A page is no answer, so it need not be seen before the key is typed.
            Input::Char(' ') if line_is_empty && self.offered.contains(&Choice::NextPage) => Step::NextPage,
            Input::Char('?') if line_is_empty && self.offered.contains(&Choice::AllFacts) => Step::AllFacts,
            Input::Char(key) if line_is_empty && seen => match Choice::of(key.to_ascii_lowercase()) {
                Some(choice) if self.offered.contains(&choice) => {
                    self.selected = Some(SelectedChoice { choice, key, shown: None, enter_too_soon: false });
                    Step::Selected(choice)
                }
                _ => Step::Text(vec![input]),
            },
            // There is nothing to send and nothing to confirm.
            Input::Enter if line_is_empty => Step::Nothing,
            Input::Enter => match self.why_no_answer(line.trim()) {
                Some(why) => Step::NoAnswer(format!("{why}; nothing was sent")),
                None => Step::Text(vec![input]),
            },
            Input::Escape if line_is_empty => Step::Nothing,
            Input::Escape => Step::Cleared,
            input => Step::Text(vec![input]),
        }
    }

    /// Why a line is no answer although it can only be meant as one; none if it is a text.
    fn why_no_answer(&self, line: &str) -> Option<String> {
        let word = line.to_ascii_lowercase();
        // Whether it is offered now, later or not at all.
        let meant = |key| Choice::of(key).filter(|choice| choice.allows() || self.offered.contains(choice));
        let letters: Option<Vec<Choice>> = word.chars().map(meant).collect();
        let why = match letters.as_deref() {
            Some([choice]) if self.offered.contains(choice) => {
                "it came too soon or was no single key: press it again, then Enter"
            }
            Some([]) => return None,
            _ if !(ANSWER_WORDS.contains(&&*word) || letters.as_ref().is_some_and(|keys| keys.len() <= MISTYPED)) => {
                return None;
            }
            _ if self.offered.contains(&Choice::NextPage) => NOT_ALL_SHOWN,
            _ if !self.offered.contains(&Choice::Once) => "this ask does not offer it",
            _ => "press a alone to allow it once, or d to refuse it, then Enter",
        };
        Some(format!("{line} is no answer: {why}"))
    }

    /// What has to be said at once of a letter that allows, typed before the last page.
    pub fn too_early(&self, line: &str) -> Option<String> {
        self.why_no_answer(line).filter(|why| line.chars().count() == 1 && why.ends_with(NOT_ALL_SHOWN))
    }

    fn hear_selected(&mut self, selected: SelectedChoice, input: Input, at: Instant) -> Step {
        let seen = selected.shown.is_some_and(|shown| at > shown);
        match input {
            Input::Enter if seen => Step::Confirmed(selected.choice),
            // It came together with the key, as in a paste: nobody can have seen what it would confirm.
            Input::Enter => {
                self.selected = Some(SelectedChoice { enter_too_soon: true, ..selected });
                Step::EnterTooSoon
            }
            Input::Char(_) | Input::Paste(_) if seen && selected.choice == Choice::Because => Step::Reason(input),
            // A word begins with any letter.
            Input::Char(_) | Input::Paste(_) => Step::Text(vec![Input::Char(selected.key), input]),
            Input::Back | Input::WordBack | Input::Clear | Input::End | Input::Escape | Input::Other => Step::Cleared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: [Choice; 5] = [Choice::Once, Choice::Session, Choice::Project, Choice::No, Choice::Because];

    /// A person who types: the line grows with text, and Enter sends it.
    struct Typist {
        chooser: Chooser,
        now: Instant,
        line: String,
        sent: Vec<String>,
        told: Vec<String>,
        answered: Option<Choice>,
        /// The line says why not.
        reason: bool,
    }

    impl Typist {
        /// The choices appeared just now.
        fn new(offered: &[Choice]) -> Self {
            let now = Instant::now();
            let mut chooser = Chooser::new(offered.to_vec());
            chooser.appeared(now);
            Self {
                chooser,
                now,
                line: String::new(),
                sent: Vec::new(),
                told: Vec::new(),
                answered: None,
                reason: false,
            }
        }

        fn passes(&mut self, millis: u64) -> &mut Self {
            self.now += Duration::from_millis(millis);
            self
        }

        fn does(&mut self, input: Input) -> &mut Self {
            if self.reason {
                match input {
                    Input::Char(c) => self.line.push(c),
                    Input::Enter => self.answered = Some(Choice::Because),
                    _ => {}
                }
                return self;
            }
            match self.chooser.hear(input, self.now, &self.line) {
                Step::Nothing | Step::NextPage | Step::AllFacts | Step::EnterTooSoon => {}
                Step::Reason(input) => {
                    self.reason = true;
                    self.does(input);
                }
                Step::Cleared => self.line.clear(),
                Step::NoAnswer(why) => {
                    self.line.clear();
                    self.told.push(why);
                }
                // It is drawn a moment after the key was read.
                Step::Selected(_) => self.chooser.selection_is_shown(self.now + Duration::from_micros(200)),
                Step::Confirmed(choice) => self.answered = Some(choice),
                Step::Text(inputs) => inputs.into_iter().for_each(|input| match input {
                    Input::Char(c) => self.line.push(c),
                    Input::Paste(text) => self.line.push_str(&text),
                    Input::Back => drop(self.line.pop()),
                    Input::Enter => self.sent.push(std::mem::take(&mut self.line)),
                    _ => {}
                }),
            }
            self
        }

        /// So many milliseconds before each key.
        fn types(&mut self, text: &str, millis: u64) -> &mut Self {
            for key in text.chars() {
                self.passes(millis).does(if key == '\r' { Input::Enter } else { Input::Char(key) });
            }
            self
        }
    }

    #[test]
    fn a_key_selects_and_enter_confirms() {
        for (keys, choice) in [
            ("a", Choice::Once),
            ("t", Choice::Session),
            ("p", Choice::Project),
            ("d", Choice::No),
            ("n", Choice::No),
            ("b", Choice::Because),
        ] {
            let mut typist = Typist::new(&RUN);
            typist.passes(500).types(keys, 0);
            assert_eq!(typist.answered, None, "{keys}: a key never answers by itself");
            assert_eq!(typist.passes(80).does(Input::Enter).answered, Some(choice), "{keys}");
        }
    }

    #[test]
    fn nothing_is_selected_at_first_and_only_what_is_offered_can_be() {
        let mut typist = Typist::new(&[Choice::No, Choice::Because]);
        typist.passes(900).does(Input::Enter).does(Input::Enter);
        assert_eq!((typist.answered, typist.sent.len()), (None, 0));
        typist.types("a\r", 300);
        assert_eq!((typist.answered, typist.sent.len()), (None, 0));
        assert!(typist.told[0].contains("does not offer it"), "{:?}", typist.told);
    }

    #[test]
    fn a_lone_letter_of_a_choice_is_never_sent_and_it_is_said_why() {
        const PAGE: &[Choice] = &[Choice::NextPage, Choice::No, Choice::Because];
        for letter in ["a", "t", "p", "A", " a", "a ", "P"] {
            for millis in [0, 100, 700] {
                let mut typist = Typist::new(PAGE);
                // A space on an empty line would page on.
                typist.line.push_str(letter);
                typist.types("\r", millis);
                assert_eq!((typist.answered, typist.sent.len(), typist.line.as_str()), (None, 0, ""), "{letter}");
                assert!(typist.told[0].contains("page on with Space first; nothing was sent"), "{:?}", typist.told);
            }
        }
        for letter in ["a", "t", "p", "d", "n", "b"] {
            for input in [Input::Char(letter.chars().next().expect("one")), Input::Paste(letter.to_owned())] {
                let mut typist = Typist::new(&RUN);
                typist.passes(200).does(input).passes(900).does(Input::Enter);
                assert_eq!((typist.answered, typist.sent.len(), typist.line.as_str()), (None, 0, ""), "{letter}");
                assert!(typist.told[0].contains("press it again"), "{:?}", typist.told);
                // Which answers, without another wait.
                assert!(typist.types(&format!("{letter}\r"), 90).answered.is_some(), "{letter}");
            }
        }
        // Any other letter is a text like any other.
        let mut typist = Typist::new(&RUN);
        assert_eq!(typist.types("x\r", 700).sent, ["x"]);
    }

    #[test]
    fn what_can_only_be_meant_as_an_answer_is_not_sent_and_answers_nothing() {
        for word in ["y", "yes", "Yes", "no", "ok", "1", "allow", "ad", "da", "aa", "pp", "at"] {
            for millis in [0, 60, 300, 501, 1_500] {
                let mut typist = Typist::new(&RUN);
                typist.types(&format!("{word}\r"), millis);
                assert_eq!(
                    (typist.answered, typist.sent.len(), typist.line.as_str()),
                    (None, 0, ""),
                    "{word} {millis}"
                );
                assert!(
                    typist.told[0].starts_with(&format!("{word} is no answer: press a alone")),
                    "{:?}",
                    typist.told
                );
                assert!(typist.told[0].ends_with("nothing was sent"), "{:?}", typist.told);
                assert_eq!(typist.types("d\r", 600).answered, Some(Choice::No), "{word} {millis}");
            }
        }
    }

    #[test]
    fn a_large_letter_selects_like_a_small_one_and_begins_a_word_as_it_is() {
        let mut typist = Typist::new(&RUN);
        assert_eq!(typist.types("A\r", 600).answered, Some(Choice::Once));
        let mut typist = Typist::new(&RUN);
        assert_eq!(typist.types("Also\r", 600).sent, ["Also"]);
    }

    #[test]
    fn escape_empties_the_line_and_then_a_key_selects() {
        let mut typist = Typist::new(&RUN);
        typist.types("pd", 600).passes(90).does(Input::Escape);
        assert_eq!(typist.line, "");
        assert_eq!(typist.types("d\r", 90).answered, Some(Choice::No));
        assert_eq!(typist.sent.len(), 0);
    }

    #[test]
    fn no_word_answers_at_any_speed() {
        let words = ["also", "a b", "apart", "and", "add", "dad", "tap", "this", "try", "please", "don't", "nope"];
        for word in words {
            for millis in [0, 1, 60, 180, 250, 300, 499, 500, 501, 600, 1_500] {
                let mut typist = Typist::new(&RUN);
                typist.types(&format!("{word}\r"), millis);
                assert_eq!(
                    (typist.answered, typist.sent.as_slice()),
                    (None, &[word.to_owned()][..]),
                    "{word} {millis}"
                );
            }
        }
    }

    #[test]
    fn what_follows_a_shown_b_is_the_reason_and_only_enter_gives_it() {
        for millis in [60, 250, 700] {
            let mut typist = Typist::new(&RUN);
            typist.passes(600).types("b", 0);
            assert!(typist.chooser.selection().is_some_and(|bar| bar.ends_with(REASON)), "its line is open");
            typist.types("use hi instead", millis);
            assert_eq!((typist.answered, typist.line.as_str()), (None, "use hi instead"), "{millis}");
            assert_eq!(typist.types("\r", millis).answered, Some(Choice::Because));
            assert_eq!(typist.sent.len(), 0);
        }
        // Typed before the choices or its line could be seen, or pasted, it is text.
        for (before, millis) in [(0, 90), (600, 0)] {
            let mut typist = Typist::new(&RUN);
            typist.passes(before).types("because\r", millis);
            assert_eq!((typist.answered, typist.sent.as_slice()), (None, &["because".to_owned()][..]), "{before}");
        }
        let mut typist = Typist::new(&RUN);
        typist.passes(600).does(Input::Paste("b".to_owned())).types("ut no\r", 90);
        assert_eq!((typist.answered, typist.sent.as_slice()), (None, &["but no".to_owned()][..]));
        // Escape takes the choice back, and its line with it.
        let mut typist = Typist::new(&RUN);
        typist.passes(600).types("b", 0).passes(90).does(Input::Escape).types("d\r", 90);
        assert_eq!((typist.answered, typist.sent.len()), (Some(Choice::No), 0));
    }

    #[test]
    fn what_is_read_within_half_a_second_is_text() {
        for millis in [0, 1, 250, 499] {
            let mut typist = Typist::new(&RUN);
            typist.types("a", millis).types("lso\r", 700);
            assert_eq!((typist.answered, typist.sent.as_slice()), (None, &["also".to_owned()][..]), "{millis}");
        }
        // Shown anew, as after a line was sent, it begins anew.
        let mut typist = Typist::new(&RUN);
        typist.passes(900).types("so\r", 100);
        typist.chooser.appeared(typist.now);
        typist.types("a", 100).types("\r", 700);
        assert_eq!((typist.answered, typist.sent.len(), typist.told.len()), (None, 1, 1));
    }

    #[test]
    fn with_text_on_the_line_every_key_is_text_until_it_is_empty_again() {
        let mut typist = Typist::new(&RUN);
        typist.types("x", 100).types("a", 2_000).types("\r", 2_000);
        assert_eq!((typist.answered, typist.sent.as_slice()), (None, &["xa".to_owned()][..]));
        typist.types("x", 10).does(Input::Back).types("d", 600).types("\r", 90);
        assert_eq!(typist.answered, Some(Choice::No));
    }

    #[test]
    fn what_comes_together_is_no_answer() {
        // The key and Enter in one read: the selection could not be seen. It stays, and a second Enter confirms it.
        let mut typist = Typist::new(&RUN);
        typist.passes(600).types("a\r\r\r", 0);
        assert_eq!((typist.answered, typist.sent.len()), (None, 0));
        assert!(typist.chooser.selection().is_some_and(|bar| bar.contains("was not taken")), "it is said");
        assert_eq!(typist.passes(50).does(Input::Enter).answered, Some(Choice::Once));
        let mut typist = Typist::new(&RUN);
        typist.passes(600).does(Input::Paste("a b".to_owned())).passes(600).does(Input::Enter);
        assert_eq!((typist.answered, typist.sent.as_slice()), (None, &["a b".to_owned()][..]));
    }

    #[test]
    fn escape_and_every_key_that_writes_nothing_take_a_selection_back() {
        for input in [Input::Escape, Input::Back, Input::Other, Input::Clear, Input::WordBack, Input::End] {
            let mut typist = Typist::new(&RUN);
            typist.types("a", 600).passes(90).does(input.clone()).passes(90).does(Input::Enter);
            assert_eq!((typist.answered, typist.sent.len()), (None, 0), "{input:?}");
            // And another can be selected.
            assert_eq!(typist.types("d\r", 90).answered, Some(Choice::No), "{input:?}");
        }
    }

    #[test]
    fn a_question_mark_shows_every_fact_and_answers_nothing() {
        let mut typist = Typist::new(&[Choice::Once, Choice::No, Choice::AllFacts]);
        assert_eq!(typist.chooser.hear(Input::Char('?'), typist.now, ""), Step::AllFacts);
        assert_eq!(typist.chooser.hear(Input::Char('?'), typist.now, "why"), Step::Text(vec![Input::Char('?')]));
        assert_eq!(typist.types("?\r", 700).answered, None);
        // Where every fact is shown it is a text like any other.
        assert_eq!(Typist::new(&RUN).types("?\r", 700).sent, ["?"]);
    }

    #[test]
    fn space_shows_the_next_page_and_answers_nothing() {
        let mut typist = Typist::new(&[Choice::NextPage, Choice::No]);
        let step = typist.chooser.hear(Input::Char(' '), typist.now, "");
        assert_eq!(step, Step::NextPage);
        assert_eq!(typist.chooser.hear(Input::Char(' '), typist.now, "x"), Step::Text(vec![Input::Char(' ')]));
        typist.passes(900).types("a\r", 100);
        assert_eq!(typist.answered, None, "nothing is allowed before the last page");
    }
}
