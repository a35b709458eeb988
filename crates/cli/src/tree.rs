//! `sessions tree`: which session began which, and which was forked from which.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use portcullis_base::{SessionId, Timestamp};
use portcullis_event::facts::SessionForked;
use portcullis_event::{Body, EventBody as _, LOCAL_TENANT};
use portcullis_store::{Log as _, SessionSummary, StoreError};
use serde_json::{Value, json};

use crate::render::{self, BOLD, Term, safe_line, styled};
use crate::status::head_reads_as;
use crate::world::World;

/// Sessions in a tree.
const SHOWN: usize = 10_000;

/// Sessions by the one that began them.
struct Forest {
    sessions: BTreeMap<SessionId, SessionSummary>,
    children: BTreeMap<SessionId, Vec<SessionId>>,
    roots: Vec<SessionId>,
    /// Forks by what they were forked from.
    forks: BTreeMap<SessionId, SessionId>,
}

/// Where forks come from, which only their logs say. A fork begins with the events of the first session, times included:
/// only logs that began in the same instant are read.
async fn forks(world: &World, all: &[SessionSummary]) -> anyhow::Result<BTreeMap<SessionId, SessionId>> {
    let mut began: BTreeMap<Timestamp, Vec<SessionId>> = BTreeMap::new();
    for summary in all {
        began.entry(summary.row.created_at).or_default().push(summary.session_id);
    }
    let mut found = BTreeMap::new();
    for session in began.into_values().filter(|same| same.len() > 1).flatten() {
        world
            .each_page(session, 0, |page| {
                for event in page.iter().filter(|event| event.kind == SessionForked::KIND) {
                    // The last one is its own: a fork of a fork has the other's as well.
                    if let Body::SessionForked(fact) = event.body() {
                        found.insert(session, fact.from_session_id);
                    }
                }
                Ok(())
            })
            .await?;
    }
    Ok(found)
}

/// The sessions that were forked from this one, as far as the newest are looked at.
pub async fn forks_of(world: &World, session: SessionId) -> anyhow::Result<Vec<SessionId>> {
    let all = world.store.sessions(LOCAL_TENANT, SHOWN).await?;
    Ok(forks(world, &all).await?.into_iter().filter(|(_, from)| *from == session).map(|(fork, _)| fork).collect())
}

pub async fn run(world: &World, of: Option<SessionId>, term: &Term) -> anyhow::Result<()> {
    let all = world.store.sessions(LOCAL_TENANT, SHOWN).await?;
    let cut = all.len() == SHOWN;
    let forks = forks(world, &all).await?;
    let forest = Forest::of(all, forks);
    let roots = match of {
        Some(session) if !forest.sessions.contains_key(&session) => return Err(StoreError::NoSession(session).into()),
        Some(session) => vec![session],
        None => forest.roots.clone(),
    };
    if term.json {
        let trees: Vec<Value> = roots.iter().map(|root| forest.document(*root)).collect();
        return term.document(&json!({"sessions": trees}));
    }
    let mut text = String::new();
    for root in roots {
        forest.draw(&mut text, root);
    }
    term.print(&text)?;
    if cut {
        term.note(&format!("only the newest {SHOWN} are in the tree"));
    }
    Ok(())
}

impl Forest {
    /// Oldest first at every level. A session whose parent is not here, or leads back to itself, is a root.
    fn of(all: Vec<SessionSummary>, forks: BTreeMap<SessionId, SessionId>) -> Self {
        let sessions: BTreeMap<_, _> = all.into_iter().map(|summary| (summary.session_id, summary)).collect();
        let began_by = |id: SessionId| sessions.get(&id).and_then(|s| s.row.parent_session_id);
        let parent = |id: SessionId| began_by(id).or_else(|| forks.get(&id).copied());
        let mut order: Vec<&SessionSummary> = sessions.values().collect();
        order.sort_by_key(|summary| (summary.row.created_at, summary.session_id));
        let (mut children, mut roots) = (BTreeMap::<SessionId, Vec<SessionId>>::new(), Vec::new());
        let mut sound = BTreeSet::new();
        for id in order.into_iter().map(|summary| summary.session_id) {
            match parent(id).filter(|parent| sessions.contains_key(parent)) {
                Some(up) if !leads_back(id, &parent, &mut sound) => children.entry(up).or_default().push(id),
                _ => roots.push(id),
            }
        }
        Self { sessions, children, roots, forks }
    }

    fn beneath(&self, id: SessionId) -> &[SessionId] {
        self.children.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// Without recursion: a log from elsewhere may be as deep as it likes.
    fn draw(&self, text: &mut String, root: SessionId) {
        let mut open = vec![(root, String::new(), String::new())];
        while let Some((id, lead, below)) = open.pop() {
            let Some(SessionSummary { row, head, .. }) = self.sessions.get(&id) else { continue };
            let name = safe_line(row.title.as_deref().unwrap_or("-"), 60);
            let facts = format!("{}, {}", render::word(&head_reads_as(head)), render::count(head.last_seq, "event"));
            let waits = if head.blocked_n > 0 { format!(", {} waiting", head.blocked_n) } else { String::new() };
            let fork = if self.forks.contains_key(&id) { "a fork, " } else { "" };
            let _ = writeln!(text, "{lead}{}  {name}  ({fork}{facts}{waits})", styled(BOLD, &id.to_string()));
            for (at, child) in self.beneath(id).iter().enumerate().rev() {
                let last = at + 1 == self.beneath(id).len();
                let (branch, stem) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                open.push((*child, format!("{below}{branch}"), format!("{below}{stem}")));
            }
        }
    }

    /// One flat list, parents before children, for the same reason.
    fn document(&self, root: SessionId) -> Value {
        let (mut rows, mut open) = (Vec::new(), vec![(root, 0u32)]);
        while let Some((id, depth)) = open.pop() {
            let Some(SessionSummary { row, head, .. }) = self.sessions.get(&id) else { continue };
            rows.push(json!({
                "session_id": id,
                "parent_session_id": row.parent_session_id,
                "forked_from": self.forks.get(&id),
                "depth": depth,
                "title": row.title,
                "status": head_reads_as(head),
                "events": head.last_seq,
                "waiting": head.blocked_n,
            }));
            open.extend(self.beneath(id).iter().rev().map(|child| (*child, depth + 1)));
        }
        json!({"root": root, "tree": rows})
    }
}

/// Whether the parents of a session come round to one seen before, which only a made-up log can do. `sound` are those
/// whose parents end, so that a deep tree is walked once.
fn leads_back(id: SessionId, parent: &dyn Fn(SessionId) -> Option<SessionId>, sound: &mut BTreeSet<SessionId>) -> bool {
    let mut path = BTreeSet::new();
    let mut at = Some(id);
    while let Some(here) = at.filter(|here| !sound.contains(here)) {
        if !path.insert(here) {
            return true;
        }
        at = parent(here);
    }
    sound.append(&mut path);
    false
}

#[cfg(test)]
mod tests {
    use portcullis_base::Digest;
    use portcullis_event::SessionRow;
    use portcullis_store::Head;

    use super::*;

    fn summary(id: u128, parent: Option<u128>) -> SessionSummary {
        let at = Timestamp::from_micros(i64::try_from(id).expect("small"));
        SessionSummary {
            session_id: SessionId::from_u128(id),
            row: SessionRow {
                root_session_id: SessionId::from_u128(1),
                parent_session_id: parent.map(SessionId::from_u128),
                title: Some(format!("s{id}\u{1b}")),
                tags: Vec::new(),
                created_at: at,
                config_hash: Digest::of(b""),
                workspace: None,
            },
            head: Head { last_seq: 1, ..Head::new(SessionId::from_u128(id), at) },
        }
    }

    fn drawn(all: Vec<SessionSummary>) -> Vec<String> {
        let forest = Forest::of(all, BTreeMap::new());
        let mut text = String::new();
        forest.roots.iter().for_each(|root| forest.draw(&mut text, *root));
        let short = |line: &str| {
            let lead: String = line.chars().take_while(|c| " │├└─".contains(*c)).collect();
            let name = line.split("  ").find(|word| word.contains('<')).unwrap_or_default();
            format!("{lead}{name}")
        };
        text.lines().map(short).collect()
    }

    #[test]
    fn children_stand_beneath_their_parents_oldest_first_and_orphans_are_roots() {
        let all =
            vec![summary(5, Some(9)), summary(4, Some(2)), summary(3, Some(1)), summary(2, Some(1)), summary(1, None)];
        assert_eq!(drawn(all), ["s1<U+001B>", "├─ s2<U+001B>", "│  └─ s4<U+001B>", "└─ s3<U+001B>", "s5<U+001B>"]);
    }

    #[test]
    fn sessions_that_claim_each_other_are_all_shown_once() {
        let shown = drawn(vec![summary(1, Some(2)), summary(2, Some(1)), summary(3, Some(3))]);
        assert_eq!(shown.len(), 3);
        let mut deep: Vec<SessionSummary> = (2..5_000).map(|n| summary(n, Some(n - 1))).collect();
        deep.push(summary(1, None));
        assert_eq!(Forest::of(deep, BTreeMap::new()).roots.len(), 1);
    }
}
