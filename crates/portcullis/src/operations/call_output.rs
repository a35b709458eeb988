//! All that one call wrote, where other views show a part of it.

use portcullis_base::shown::id_ending;
use portcullis_base::{ArtifactKind, IntentId, SessionId};
use portcullis_event::{Body, Event, Observed};
use portcullis_store::StoreError;

use super::{Archive, ContentError, fits};

/// The calls of a session and how they ended.
#[derive(Default)]
pub struct CallOutputs {
    calls: Vec<IntentId>,
    observed: Vec<Observed>,
}

/// A name that is not of one call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallNameError {
    /// It is of none.
    #[error("no call of this session is `{0}`")]
    Unknown(String),
    /// It is of several.
    #[error("{} calls fit `{name}`: their intents end with {}", .ends.len(), .ends.join(", "))]
    Several {
        /// The name.
        name: String,
        /// The ends of their intents.
        ends: Vec<String>,
    },
}

/// What a call wrote, each stream for itself.
pub struct WrittenOutput {
    /// Its standard output, or all of it where the streams cannot be told apart.
    pub out: String,
    /// Its standard error.
    pub err: String,
    /// Everything that was written is kept.
    pub complete: bool,
}

impl CallOutputs {
    /// Reads them from a log.
    ///
    /// # Errors
    /// If there is no such log, or it cannot be read.
    pub async fn read(archive: &Archive, session: SessionId) -> Result<Self, StoreError> {
        archive.head(session).await?.ok_or(StoreError::NoSession(session))?;
        let mut found = Self::default();
        let gather = |page: &[Event]| {
            for event in page {
                match event.body() {
                    Body::IntentProposed(fact) => found.calls.push(fact.intent_id),
                    Body::Observed(fact) => found.observed.push(*fact),
                    _ => {}
                }
            }
        };
        archive.each_page(session, 0, gather).await?;
        Ok(found)
    }

    /// The newest call that wrote something, or the one that is named: by its number, its intent, or an end of that.
    ///
    /// # Errors
    /// If the name is not of one call.
    pub fn of(&self, call: Option<&str>) -> Result<Option<&Observed>, CallNameError> {
        let mut newest_first = self.observed.iter().rev();
        Ok(match call {
            None => newest_first.find(|seen| wrote(seen)),
            Some(call) => {
                let intent = named(call, &self.calls)?;
                newest_first.find(|seen| seen.intent_id == intent)
            }
        })
    }
}

fn wrote(observed: &Observed) -> bool {
    observed.content.iter().any(|part| part.text.as_deref().is_some_and(|text| !text.is_empty()))
}

fn named(call: &str, calls: &[IntentId]) -> Result<IntentId, CallNameError> {
    let numbered = call.parse::<usize>().ok().and_then(|number| calls.get(number.checked_sub(1)?));
    let named: Vec<&IntentId> = calls.iter().filter(|intent| fits(&intent.to_string(), call)).collect();
    match (&named[..], numbered) {
        ([one], _) => Ok(**one),
        ([], Some(one)) => Ok(*one),
        ([], None) => Err(CallNameError::Unknown(call.to_owned())),
        (several, _) => {
            let ends = several.iter().map(|intent| id_ending(&intent.to_string()).to_owned()).collect();
            Err(CallNameError::Several { name: call.to_owned(), ends })
        }
    }
}

impl Archive {
    /// What was kept of the output of a call where that did not fit its observation; `None`: the observation has it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn kept_output(
        &self,
        session: SessionId,
        observed: &Observed,
    ) -> Result<Option<WrittenOutput>, ContentError> {
        let kept = observed.artifacts.iter().filter(|kept| kept.kind == ArtifactKind::CommandOutput);
        let kept: Vec<_> = kept.collect();
        if observed.total_bytes == 0 || kept.is_empty() {
            return Ok(None);
        }
        let (mut bytes, mut complete) = (Vec::new(), true);
        for named in kept {
            let kept = self.artifact(named.id, session).await?;
            bytes.extend(kept.bytes);
            complete &= named.complete && kept.artifact.complete;
        }
        // What was kept of standard output comes first.
        let size =
            |name| observed.capture.iter().find(|stream| stream.stream == name).map_or(0, |stream| stream.kept_bytes);
        let (out, err) = (size("stdout"), size("stderr"));
        let at = usize::try_from(out).ok().filter(|_| out + err == bytes.len() as u64).unwrap_or(bytes.len());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Some(WrittenOutput { out: text(&bytes[..at]), err: text(&bytes[at..]), complete }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_number_its_intent_or_the_end_of_it() {
        let calls = [IntentId::from_u128(0x1111), IntentId::from_u128(0x2222)];
        let of = |call: &str| named(call, &calls).ok();
        assert_eq!((of("1"), of("2"), of("0"), of("3")), (Some(calls[0]), Some(calls[1]), None, None));
        for intent in calls {
            let id = intent.to_string();
            assert_eq!((of(&id), of(id_ending(&id))), (Some(intent), Some(intent)), "{id}");
        }
        assert!(named("intent_", &calls).is_err_and(|error| error.to_string().starts_with("2 calls fit")));
    }
}
