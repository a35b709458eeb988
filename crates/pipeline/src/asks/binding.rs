//! What an approval is bound to besides the input, the accesses and the diff (tool-contract 13.7): the folder by its
//! identity, the environment, programs, scripts, network and mounts, as the tool found them.

use std::collections::BTreeMap;

use portcullis_contract::SurroundingFacts;
use portcullis_event::facts::BoundTo;

use crate::asks::ask::PermissionQuestion;
use crate::sessions::session::SessionShared;

/// The surroundings of a question as its event keeps them: words, and a keyed digest of each value.
pub(crate) fn to(session: &SessionShared, question: &PermissionQuestion<'_>) -> Vec<BoundTo> {
    question.around().map(|around| of(session, around)).unwrap_or_default()
}

/// The variables of this process that the question was asked with.
pub(crate) fn asker_env(session: &SessionShared, question: &PermissionQuestion<'_>) -> BTreeMap<String, String> {
    let variables = question.around().into_iter().flat_map(|around| &around.asker_env);
    let masked = |text: &String| session.scope.output_redactor.redact_text(text).into_owned();
    variables.map(|(name, value)| (name.clone(), masked(value))).collect()
}

/// The same of one look.
pub(crate) fn of(session: &SessionShared, around: &SurroundingFacts) -> Vec<BoundTo> {
    let masked = |text: &str| session.scope.output_redactor.redact_text(text).into_owned();
    let bound = around.bound.iter().map(|bound| {
        let label = format!("bound:{}:{}\0{}", session.key.session, bound.name, bound.what);
        let digest = session.gate.sealer.mark(&label, bound.value.expose().as_bytes());
        BoundTo { name: masked(&bound.name), what: masked(&bound.what), digest }
    });
    bound.collect()
}

/// Which thing is not as it was shown, as a sentence without its end; `None` if everything is.
pub(crate) fn changed(shown: &[BoundTo], now: &[BoundTo]) -> Option<String> {
    let find = |all: &'_ [BoundTo], name: &str| all.iter().find(|one| one.name == name).cloned();
    let named = |one: &BoundTo| format!("{} {}", one.name, one.what).trim_end().to_owned();
    if shown.is_empty() && !now.is_empty() {
        return Some(
            "an older version asked this without binding the folder and the environment it would run with".into(),
        );
    }
    for then in shown {
        match find(now, &then.name) {
            None => return Some(format!("{} was there when this was asked and is not any more", named(then))),
            Some(now) if now.what != then.what => {
                return Some(format!(
                    "{} is {} now, and {} was shown when this was asked",
                    then.name,
                    or_nothing(&now.what),
                    or_nothing(&then.what)
                ));
            }
            Some(now) if now.digest != then.digest => {
                // What has no words was bound, and not shown.
                let than = if then.what.is_empty() { "when this was asked" } else { "was shown when this was asked" };
                return Some(format!("{} is another one than {than}", named(then)));
            }
            Some(_) => {}
        }
    }
    let new = now.iter().find(|one| find(shown, &one.name).is_none())?;
    Some(format!("{} was not there when this was asked", named(new)))
}

fn or_nothing(what: &str) -> &str {
    if what.is_empty() { "nothing" } else { what }
}

#[cfg(test)]
mod tests {
    use portcullis_base::Digest;

    use super::*;

    fn one(name: &str, what: &str, value: &str) -> BoundTo {
        BoundTo { name: name.to_owned(), what: what.to_owned(), digest: Digest::of(value.as_bytes()) }
    }

    #[test]
    fn every_difference_is_named_and_the_same_is_none() {
        let shown = [one("the folder", "/workspace/a", "1"), one("the variable X", "", "v")];
        assert_eq!(changed(&shown, &shown), None);
        let says = |now: &[BoundTo], words: &str| {
            let said = changed(&shown, now).expect("a difference");
            assert!(said.starts_with(words), "{said}");
        };
        says(
            &[one("the folder", "/workspace/a", "2"), shown[1].clone()],
            "the folder /workspace/a is another one than was shown",
        );
        says(
            &[shown[0].clone(), one("the variable X", "", "w")],
            "the variable X is another one than when this was asked",
        );
        says(&[one("the folder", "/workspace/b", "1"), shown[1].clone()], "the folder is /workspace/b now, and /work");
        says(&shown[..1], "the variable X was there when this was asked and is not any more");
        let more = [shown[0].clone(), shown[1].clone(), one("the variable Y", "", "")];
        says(&more, "the variable Y was not there when this was asked");
        assert!(changed(&[], &shown).is_some_and(|said| said.starts_with("an older version")));
        assert_eq!(changed(&[], &[]), None);
    }
}
