//! Attack: words that a person writes are taken for the answer to an ask.
//!
//! Every variant is typed while an ask is on the screen (or just before), at several speeds. None may answer it, select
//! something that a later Enter would confirm, or be remembered. The control in the same process: one key, and Enter after
//! the selection was shown, does answer.

use std::io::Write as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use crate::arena::{Arena, EVERYBODY, Who};
use crate::common::next_printed;

/// A run on a terminal that asks whether it may make a file.
struct Asked {
    arena: Arena,
    child: Child,
    keys: ChildStdin,
    out: ChildStdout,
    shown: String,
}

const CHOICES: &str = "(a key selects, Enter confirms)";

impl Asked {
    /// The model says something for a while and then wants to make a file.
    fn new(who: Who, words: &str) -> Self {
        let arena = Arena::of(who);
        let script = "[[turn]]\ntext = \"I will make it now, in a moment.\"\n\
                      calls = [{ name = \"write\", input = { file_path = \"made\", content = \"x\" } }]\n\
                      [[turn]]\ntext = \"That was all.\"\n[defaults]\nstream_delay_ms = 20\n";
        arena.write("script.toml", script);
        let (program, script) = (arena.path("portcullis"), arena.path("script.toml"));
        let line =
            format!("{} {}", program.display(), words.replace("MODEL", &format!("scripted:{}", script.display())));
        let mut command = arena.as_this_person("/usr/bin/script");
        command.args(["-qfec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped());
        let mut child = command.spawn().expect("`script` (util-linux) runs");
        let (keys, out) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { arena, child, keys, out, shown: String::new() }
    }

    fn until(&mut self, text: &str) -> String {
        let mut chunk = [0u8; 1024];
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let n = next_printed(&mut self.out, &mut chunk, text);
            assert!(n > 0, "it ended before `{text}`: {}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&chunk[..n]));
        }
    }

    /// So many milliseconds before each key; 0: all at once.
    fn types(&mut self, text: &str, millis: u64) {
        if millis == 0 {
            return self.keys.write_all(text.as_bytes()).expect("typed");
        }
        for key in text.chars() {
            std::thread::sleep(Duration::from_millis(millis));
            self.keys.write_all(key.to_string().as_bytes()).expect("typed");
        }
    }

    /// Until the choices could be seen for half a second.
    fn looks(&mut self) {
        self.until(CHOICES);
        std::thread::sleep(Duration::from_millis(800));
    }

    fn is_unanswered(&self, after: &str) {
        assert!(!self.arena.exists("work/made"), "{:?}: {after:?} allowed the call", self.arena.who);
        let listed = self.arena.run(&["approvals", "list", "--json"]).ends(0).json();
        let asks = listed["asks"].as_array().expect("asks").len();
        assert_eq!(asks, 1, "{:?}: {after:?} answered the ask", self.arena.who);
        assert!(!self.arena.run(&["grants", "list", "--all"]).ends(0).out.contains("made"), "{after:?}");
    }

    /// The control: the intended keys do answer.
    fn answer(mut self) {
        self.types("a", 0);
        self.until("Enter confirms: a allow once");
        self.is_unanswered("a key alone");
        self.types("\r", 0);
        self.until("That was all.");
        self.child.wait().expect("ends");
        assert!(self.arena.exists("work/made"), "the intended keys answer");
    }
}

fn everybody(attack: fn(Who)) {
    std::thread::scope(|scope| EVERYBODY.iter().for_each(|who| drop(scope.spawn(move || attack(*who)))));
}

#[test]
fn no_word_answers_at_any_speed() {
    everybody(|who| {
        let mut asked = Asked::new(who, "run --model MODEL go");
        // A word for each key, and each of them twice or with another; from a burst to somebody who looks for each letter.
        let variants = [
            ("also this\r", 0),
            ("also\r", 180),
            ("aa\r", 300),
            ("ad\r", 600),
            ("da\r", 250),
            ("this way\r", 60),
            ("tt\r", 500),
            ("please\r", 120),
            ("pa\r", 600),
            ("don't\r", 180),
            ("because\r", 0),
            ("no way\r", 120),
            ("y\r", 300),
            ("allow it\r", 60),
        ];
        for (word, millis) in variants {
            asked.looks();
            asked.types(word, millis);
        }
        asked.looks();
        asked.is_unanswered("words");
        asked.answer();
    });
}

#[test]
fn nothing_that_is_pasted_or_steers_a_terminal_answers() {
    everybody(|who| {
        let mut asked = Asked::new(who, "run --model MODEL go");
        asked.looks();
        let sends = [
            "\x1b[200~a\x1b[201~\r",
            "\x1b[200~a\ra\r\x1b[201~\r",
            // A paste that is not marked: more than one line of it, and one that would be a key and Enter.
            "please do\ra\rp\r",
            "xa\r",
            " a\r",
        ];
        for text in sends {
            asked.types(text, 0);
            asked.looks();
        }
        // A key and Enter that come together select at most: Escape takes that back.
        asked.types("a\r", 0);
        asked.until("Enter confirms: a");
        asked.is_unanswered("a key and Enter in one piece");
        for text in ["\x1b", "\x1ba", "\x1b[a", "\x1b[97u", "\x1bOa", "\x1b[1;5a", "\u{1b}[<0;1;1a"] {
            asked.types(text, 0);
            std::thread::sleep(Duration::from_millis(150));
            asked.types("\r", 0);
        }
        asked.is_unanswered("sequences of a terminal");
        asked.answer();
    });
}

#[test]
fn what_follows_a_selected_b_is_the_reason_and_nothing_before_enter_is_an_answer() {
    everybody(|who| {
        let mut asked = Asked::new(who, "run --model MODEL go");
        asked.looks();
        asked.types("b", 0);
        asked.until("type why, Enter confirms: b no, because > ");
        asked.types("use hi instead", 60);
        asked.until("no, because > use hi instead");
        asked.is_unanswered("a reason that is not given yet");
        asked.types("\r", 0);
        asked.until("refused: ");
        asked.until("That was all.");
        asked.child.wait().expect("ends");
        assert!(!asked.arena.exists("work/made"));
        let found = asked.arena.run(&["sessions", "search", "use hi instead"]).ends(0).out;
        assert!(found.contains("use hi instead") && !found.contains("buse"), "{found}");
    });
}

#[test]
fn what_is_typed_before_an_ask_appears_or_just_then_answers_nothing() {
    everybody(|who| {
        let mut asked = Asked::new(who, "run --model MODEL go");
        // While the model speaks: a line, a key alone, and a line that is not ended.
        asked.until("I will");
        asked.types("a\rallow\rp", 0);
        asked.until(CHOICES);
        // Within half a second of its appearance, and with text on the line long after.
        asked.types("a", 0);
        std::thread::sleep(Duration::from_millis(900));
        asked.types("a\r", 400);
        asked.looks();
        asked.types("a", 0);
        std::thread::sleep(Duration::from_millis(100));
        asked.types("\x1b", 0);
        std::thread::sleep(Duration::from_millis(300));
        asked.types("\r\r", 100);
        asked.is_unanswered("keys before it could be seen");
        asked.answer();
    });
}
