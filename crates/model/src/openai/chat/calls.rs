//! Puts calls together from pieces, as servers really send them.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire;
use crate::{Call, Delta, DeltaSink};

/// One entry of `tool_calls`.
#[derive(Deserialize)]
pub(super) struct Entry<'a> {
    #[serde(default, deserialize_with = "wire::lenient")]
    index: Option<u64>,
    #[serde(default, deserialize_with = "wire::lenient_text")]
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    /// What must come back with the call, such as Gemini's signature behind this protocol.
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

impl<'a> From<Function<'a>> for Entry<'a> {
    /// `function_call`, from before there were several.
    fn from(function: Function<'a>) -> Self {
        Self { index: None, id: None, function: Some(function), extra_content: None }
    }
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(default, deserialize_with = "wire::lenient_text")]
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A call whose arguments are still coming.
#[derive(Debug)]
struct GrowingCall {
    index: Option<u64>,
    call: Call,
    extra: Option<String>,
}

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<GrowingCall>);

impl Calls {
    /// Takes a piece in. `index` should tell which call it belongs to; servers that give all calls of an answer the same
    /// one, or none, are understood by id, name, and whether the call before is complete.
    pub fn take(&mut self, entry: Entry<'_>, tools: &[String], heard: DeltaSink<'_>) {
        let id = entry.id.unwrap_or_default();
        let (name, arguments) = match entry.function {
            Some(function) => (function.name.unwrap_or_default(), function.arguments.map(wire::arguments_text)),
            None => (String::new(), None),
        };
        let goes_on = self.place(entry.index, (&id, &name), tools);
        let growing = match goes_on {
            Some(at) => &mut self.0[at],
            None => {
                heard(Delta::Call { name: &name });
                let call = Call { id: String::new(), name: String::new(), arguments: String::new() };
                self.0.push(GrowingCall { index: entry.index, call, extra: None });
                // Invariant: it was pushed in the line above.
                self.0.last_mut().expect("a call")
            }
        };
        let call = &mut growing.call;
        if call.id.is_empty() {
            call.id = id;
        }
        // Whatever is not a name again is more of it.
        if call.name != name {
            call.name.push_str(&name);
        }
        let arguments = arguments.unwrap_or_default();
        // Some servers begin with an empty object and send the real one after it.
        if call.arguments.trim() == "{}" && arguments.trim_start().starts_with('{') {
            call.arguments.clear();
        }
        call.arguments.push_str(&arguments);
        if let Some(extra) = entry.extra_content.filter(|extra| extra.get() != "null") {
            growing.extra = Some(extra.get().to_owned());
        }
    }

    /// Which call a piece belongs to; `None`: a new one.
    fn place(&self, index: Option<u64>, (id, name): (&str, &str), tools: &[String]) -> Option<usize> {
        let at_index = |growing: &GrowingCall| growing.index == index;
        let by_id = self.0.iter().rposition(|growing| at_index(growing) && !id.is_empty() && growing.call.id == id);
        match by_id.or_else(|| self.0.iter().rposition(at_index)) {
            Some(at) => self.0[at].goes_on(id, name, tools).then_some(at),
            // Arguments and nothing else, at a place where no call began: they are the last one's.
            None if id.is_empty() && name.is_empty() => self.0.len().checked_sub(1),
            None => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The calls, each with what must come back with it.
    pub fn finish(self) -> impl Iterator<Item = (Option<String>, Call)> {
        self.0.into_iter().map(|growing| (growing.extra, growing.call))
    }
}

impl GrowingCall {
    /// Whether a piece with this id and this name is more of this call, and not the next one at the same index.
    fn goes_on(&self, id: &str, name: &str, tools: &[String]) -> bool {
        let call = &self.call;
        if !id.is_empty() && !call.id.is_empty() && id != call.id {
            return false;
        }
        if name.is_empty() || call.name.is_empty() {
            return true;
        }
        // A name in pieces: together they begin one that was offered, and the piece alone is none.
        let longer = format!("{}{name}", call.name);
        let is_piece = !tools.iter().any(|tool| tool == name) && tools.iter().any(|tool| tool.starts_with(&longer));
        if name != call.name && call.arguments.is_empty() && is_piece {
            return true;
        }
        // A name again: some servers repeat it with every piece, others begin the next call.
        name == call.name && !(call.arguments.trim_end().ends_with('}') && wire::raw(&call.arguments).is_some())
    }
}
