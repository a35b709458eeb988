//! The change a call would make, as the person who is asked sees it.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// Makes the text of a diff when it is needed.
type MakeDiff = Box<dyn FnOnce() -> String + Send>;

/// A unified diff. Nobody reads it unless a person is asked, so it may be left to be made then.
#[derive(Clone)]
pub struct Diff(Arc<LazyLock<String, MakeDiff>>);

impl Diff {
    /// One that is made when it is first looked at, at most once. `make` owns what it compares: what is shown later
    /// is what was found now.
    #[must_use]
    pub fn later(make: impl FnOnce() -> String + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }

    /// Its text.
    ///
    /// # Panics
    /// If the code that makes it does.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl From<String> for Diff {
    fn from(text: String) -> Self {
        Self::later(|| text)
    }
}

impl fmt::Debug for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Diff(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_diff_is_made_when_somebody_looks_and_once() {
        let made = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&made);
        let diff = Diff::later(move || format!("made {}", count.fetch_add(1, Ordering::SeqCst) + 1));
        assert_eq!(made.load(Ordering::SeqCst), 0);
        assert_eq!((diff.text(), diff.clone().text()), ("made 1", "made 1"));
        assert_eq!(Diff::from("ready".to_owned()).text(), "ready");
    }
}
