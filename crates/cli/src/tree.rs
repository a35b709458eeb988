//! `sessions tree`: which session began which, and which was forked from which.

use std::fmt::Write as _;

use portcullis::SessionSummary;
use portcullis::operations::tree_document;
use portcullis_agent::status::head_reads_as;
use portcullis_agent::tree::{Branch, Forest, SESSIONS};
use portcullis_base::SessionId;
use portcullis_terminal::render::{self, BOLD, Term, safe_line, styled};
use serde_json::{Value, json};

use crate::world::World;

pub async fn run(world: &World, of: Option<SessionId>, term: &Term) -> anyhow::Result<()> {
    let forest = world.archive.forest().await?;
    let roots = forest.roots(of)?;
    if term.json {
        let trees: Vec<Value> = roots.iter().map(|root| tree_document(&forest, *root)).collect();
        return Ok(term.document(&json!({"sessions": trees}))?);
    }
    let text: String = roots.iter().map(|root| drawn(&forest, *root)).collect();
    term.print(&text)?;
    if forest.is_cut() {
        term.note(&format!("only the newest {SESSIONS} are in the tree"));
    }
    Ok(())
}

fn drawn(forest: &Forest, root: SessionId) -> String {
    let (mut text, mut last) = (String::new(), Vec::new());
    for Branch { summary, forked_from, depth, is_last } in forest.beneath(root) {
        let SessionSummary { session_id, row, head } = summary;
        last.truncate(depth);
        last.push(is_last);
        // The root has no line of its own.
        let stems = last.iter().skip(1).take(depth.saturating_sub(1)).map(|last| if *last { "   " } else { "│  " });
        let branch = (depth > 0).then_some(if is_last { "└─ " } else { "├─ " });
        let lead: String = stems.chain(branch).collect();
        let name = safe_line(row.title.as_deref().unwrap_or("-"), 60);
        let facts = format!("{}, {}", render::word(&head_reads_as(head)), render::count(head.last_seq, "event"));
        let waits = if head.blocked_n > 0 { format!(", {} waiting", head.blocked_n) } else { String::new() };
        let fork = if forked_from.is_some() { "a fork, " } else { "" };
        let _ = writeln!(text, "{lead}{}  {name}  ({fork}{facts}{waits})", styled(BOLD, &session_id.to_string()));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use portcullis::Head;
    use portcullis_base::{Digest, Timestamp};
    use portcullis_event::SessionRow;

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
        let text: String = forest.roots(None).expect("all").iter().map(|root| super::drawn(&forest, *root)).collect();
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
        assert_eq!(Forest::of(deep, BTreeMap::new()).roots(None).expect("all").len(), 1);
    }
}
