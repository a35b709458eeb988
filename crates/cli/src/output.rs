//! `sessions output`: all that one call wrote, where other views show its last lines.

use portcullis_base::{ArtifactKind, IntentId, SessionId};
use portcullis_event::{Body, LOCAL_TENANT, Observed};
use portcullis_pipeline::ArtifactShelf;
use portcullis_store::{Log as _, StoreError};
use serde_json::json;

use crate::call_text::CallText;
use crate::exit::{failed, usage};
use crate::render::{Term, safe};
use crate::short_ids::{self, ending};
use crate::world::{World, key};

pub async fn run(world: &World, session: SessionId, call: Option<&str>, term: &Term) -> anyhow::Result<()> {
    if world.store.head(key(session)).await?.is_none() {
        return Err(StoreError::NoSession(session).into());
    }
    let mut calls: Vec<IntentId> = Vec::new();
    let mut observed: Vec<Observed> = Vec::new();
    world
        .each_page(session, 0, |page| {
            for event in page {
                match event.body() {
                    Body::IntentProposed(fact) => calls.push(fact.intent_id),
                    Body::Observed(fact) => observed.push(*fact),
                    _ => {}
                }
            }
            Ok(())
        })
        .await?;
    let found = match call {
        None => observed.iter().rev().find(|seen| wrote(seen)),
        Some(call) => {
            let intent = the_call(call, &calls)?;
            observed.iter().rev().find(|seen| seen.intent_id == intent)
        }
    };
    let Some(found) = found else { return Err(failed("it wrote nothing, or has not ended yet")) };
    let text = whole(world, session, found).await?;
    if term.json {
        let output = text.whole();
        return term.document(&json!({"session_id": session, "intent_id": found.intent_id, "output": output}));
    }
    if text.is_empty() {
        term.note("it wrote nothing");
    }
    Ok(CallText { out: safe(&text.out).into_owned(), err: safe(&text.err).into_owned() }.print(*term)?)
}

fn wrote(observed: &Observed) -> bool {
    observed.content.iter().any(|part| part.text.as_deref().is_some_and(|text| !text.is_empty()))
}

/// The call that a person names: by its number, its intent, or an end of that.
fn the_call(call: &str, calls: &[IntentId]) -> anyhow::Result<IntentId> {
    let numbered = call.parse::<usize>().ok().and_then(|number| calls.get(number.checked_sub(1)?));
    let named: Vec<&IntentId> = calls.iter().filter(|intent| short_ids::fits(&intent.to_string(), call)).collect();
    match (&named[..], numbered) {
        ([one], _) => Ok(**one),
        ([], Some(one)) => Ok(*one),
        ([], None) => {
            Err(usage(format!("no call of this session is `{}`; `portcullis sessions show` lists them", safe(call))))
        }
        (several, _) => {
            let ends: Vec<String> = several.iter().map(|intent| ending(&intent.to_string()).to_owned()).collect();
            Err(usage(format!(
                "{} calls fit `{}`: their intents end with {}",
                several.len(),
                safe(call),
                ends.join(", ")
            )))
        }
    }
}

/// What was kept of its output where that did not fit the observation; else the observation has it.
async fn whole(world: &World, session: SessionId, observed: &Observed) -> anyhow::Result<CallText> {
    let kept = observed.artifacts.iter().filter(|kept| kept.kind == ArtifactKind::CommandOutput);
    let kept: Vec<_> = kept.collect();
    if observed.total_bytes == 0 || kept.is_empty() {
        return Ok(CallText::of(observed));
    }
    let shelf = ArtifactShelf::new(world.store.clone(), world.artifacts()?, LOCAL_TENANT);
    let (mut bytes, mut complete) = (Vec::new(), true);
    for named in kept {
        let (kept, window) = shelf.open(named.id, Some(session)).await?;
        bytes.extend(window.slice(0, window.len())?);
        complete &= named.complete && kept.complete;
    }
    // What was kept of standard output comes first.
    let size =
        |name| observed.capture.iter().find(|stream| stream.stream == name).map_or(0, |stream| stream.kept_bytes);
    let (out, err) = (size("stdout"), size("stderr"));
    let at = usize::try_from(out).ok().filter(|_| out + err == bytes.len() as u64).unwrap_or(bytes.len());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut whole = CallText { out: text(&bytes[..at]), err: text(&bytes[at..]) };
    if !complete {
        let last = if whole.err.is_empty() { &mut whole.out } else { &mut whole.err };
        last.push_str("\n[more was written than was kept]\n");
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_number_its_intent_or_the_end_of_it() {
        let calls = [IntentId::from_u128(0x1111), IntentId::from_u128(0x2222)];
        let of = |call: &str| the_call(call, &calls).ok();
        assert_eq!((of("1"), of("2"), of("0"), of("3")), (Some(calls[0]), Some(calls[1]), None, None));
        for intent in calls {
            let id = intent.to_string();
            assert_eq!((of(&id), of(ending(&id))), (Some(intent), Some(intent)), "{id}");
        }
        assert!(the_call("intent_", &calls).is_err_and(|error| error.to_string().starts_with("2 calls fit")));
    }
}
