//! Puts calls together from pieces, as servers really send them.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire;
use crate::{Call, Delta, Heard};

/// One entry of `tool_calls`.
#[derive(Deserialize)]
pub(super) struct Entry<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Debug)]
struct Growing {
    index: Option<u64>,
    call: Call,
}

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Growing>);

impl Calls {
    /// Takes a piece in. `index` should tell which call it belongs to; servers that give all calls of an answer the same
    /// one, or none, are understood by id, name, and whether the call before is complete.
    pub fn take(&mut self, entry: Entry<'_>, heard: Heard<'_>) {
        let id = entry.id.unwrap_or_default();
        let (name, arguments) = match entry.function {
            Some(function) => (function.name.unwrap_or_default(), function.arguments.map(wire::arguments_text)),
            None => (String::new(), None),
        };
        let goes_on = self.place(entry.index, &id, &name);
        let growing = match goes_on {
            Some(at) => &mut self.0[at],
            None => {
                heard(Delta::Call { name: &name });
                let call = Call { id: String::new(), name: String::new(), arguments: String::new() };
                self.0.push(Growing { index: entry.index, call });
                // Invariant: it was pushed in the line above.
                self.0.last_mut().expect("a call")
            }
        };
        let call = &mut growing.call;
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        call.arguments.push_str(&arguments.unwrap_or_default());
    }

    /// Which call a piece belongs to; `None`: a new one.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at_index = |growing: &Growing| growing.index == index;
        let by_id = self.0.iter().rposition(|growing| at_index(growing) && !id.is_empty() && growing.call.id == id);
        match by_id.or_else(|| self.0.iter().rposition(at_index)) {
            Some(at) => self.0[at].goes_on(id, name).then_some(at),
            // Arguments and nothing else, at a place where no call began: they are the last one's.
            None if id.is_empty() && name.is_empty() => self.0.len().checked_sub(1),
            None => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn finish(self) -> impl Iterator<Item = Call> {
        self.0.into_iter().map(|growing| growing.call)
    }
}

impl Growing {
    /// Whether a piece with this id and this name is more of this call, and not the next one at the same index.
    fn goes_on(&self, id: &str, name: &str) -> bool {
        let call = &self.call;
        if !id.is_empty() && !call.id.is_empty() && id != call.id {
            return false;
        }
        if name.is_empty() || call.name.is_empty() {
            return true;
        }
        // A name again: some servers repeat it with every piece, others begin the next call.
        name == call.name && !(call.arguments.trim_end().ends_with('}') && wire::raw(&call.arguments).is_some())
    }
}
