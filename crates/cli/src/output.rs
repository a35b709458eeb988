//! `sessions output`: all that one call wrote, where other views show its last lines.

use portcullis::operations::{CallOutputs, WrittenOutput};
use portcullis_base::SessionId;
use portcullis_terminal::CallText;
use portcullis_terminal::render::{Term, safe};
use serde_json::json;

use crate::exit::failed;
use crate::world::World;

pub async fn run(world: &World, session: SessionId, call: Option<&str>, term: &Term) -> anyhow::Result<()> {
    let outputs = CallOutputs::read(&world.archive, session).await?;
    let Some(found) = outputs.of(call)? else { return Err(failed("it wrote nothing, or has not ended yet")) };
    let text = world.archive.kept_output(session, found).await?.map_or_else(|| CallText::of(found), kept);
    if term.json {
        let output = text.whole();
        return Ok(term.document(&json!({"session_id": session, "intent_id": found.intent_id, "output": output}))?);
    }
    if text.is_empty() {
        term.note("it wrote nothing");
    }
    Ok(CallText { out: safe(&text.out).into_owned(), err: safe(&text.err).into_owned() }.print(*term)?)
}

fn kept(WrittenOutput { out, err, complete }: WrittenOutput) -> CallText {
    let mut whole = CallText { out, err };
    if !complete {
        let last = if whole.err.is_empty() { &mut whole.out } else { &mut whole.err };
        last.push_str("\n[more was written than was kept]\n");
    }
    whole
}
