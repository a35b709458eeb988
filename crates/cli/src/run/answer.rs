//! The text of an answer while it comes. A request may break off in the middle and be asked again: then the text of the
//! broken attempt is no part of any answer.

/// The answer that comes, and what came of one that broke off.
#[derive(Default)]
pub struct IncomingAnswer {
    /// Text of the attempt that runs.
    text: String,
    /// Text of the last attempt that broke off. It is kept until an answer is whole.
    broken: String,
    /// An attempt failed, and the model was not asked again yet.
    failed: bool,
}

impl IncomingAnswer {
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The request failed.
    pub fn breaks_off(&mut self) {
        self.failed = self.set_aside();
    }

    /// The model is asked. How many characters came of the attempt before, if that failed after it had said something.
    pub fn begins(&mut self) -> Option<usize> {
        // After an interruption nothing said that the attempt is over.
        self.set_aside();
        std::mem::take(&mut self.failed).then(|| self.broken.chars().count())
    }

    /// The answer is whole: its text.
    pub fn ends(&mut self) -> String {
        std::mem::take(self).text
    }

    /// Nothing more comes: the text of an answer that never was whole, or none.
    pub fn take_unfinished(&mut self) -> String {
        self.set_aside();
        std::mem::take(self).broken
    }

    /// Whether there was any text to set aside.
    fn set_aside(&mut self) -> bool {
        if self.text.is_empty() {
            return false;
        }
        self.broken = std::mem::take(&mut self.text);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_attempt_that_ends_without_a_word_is_not_lost_and_is_no_part_of_the_next_answer() {
        let mut coming = IncomingAnswer::default();
        coming.push("half");
        assert_eq!(coming.begins(), None, "it did not fail");
        coming.push("whole");
        assert_eq!(coming.ends(), "whole");
        assert_eq!(coming.take_unfinished(), "", "an answer is whole");
        coming.push("half");
        coming.breaks_off();
        assert_eq!(coming.begins(), Some(4));
        // The next try says nothing at all.
        coming.breaks_off();
        assert_eq!(coming.begins(), None, "it broke off once");
        assert_eq!(coming.take_unfinished(), "half");
    }
}
