//! `edit`: literal replacement in a file that was read.

use std::sync::Arc;

use portcullis_base::{Digest, Effect, FileFact, Hunk, LineRange, Reason, Risk, limits};
use portcullis_contract::{
    BuildError, Caller, Content, Precondition, Prepared, Resolved, Tool, ToolContext, ToolFailure, UserText,
};
use portcullis_event::fold::Baseline;
use portcullis_sandbox::{
    self as sandbox, EditError, Expect, Replacement, TextFile, WritePlan, WrittenFile, replace_literal,
};
use portcullis_secret::markers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::write::{changed, not_read, report, require_values, require_whole, unread};
use super::{CoverageRule, FileTools, access, counted, failure, precondition, require_file, shown};
use crate::count::Flag;
use crate::deferred_close::LetGo;
use crate::diff::unified_diff;
use crate::{diff_of, executor, on_disk, synced};

const DESCRIPTION: &str = "Replaces text in a file of the workspace. old_string is taken literally, must stand in the \
file exactly once (or give replace_all), and must lie in lines that were read before. Line ends, mode and byte order \
mark of the file stay.";

/// Changed regions that one event lists.
const HUNKS_MAX: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
struct EditInput {
    /// The file: a path relative to the workspace, such as `src/main.rs`.
    #[schemars(regex(pattern = r"\S"))]
    file_path: String,
    /// The text to replace, exactly as it stands in the file, indentation included.
    #[schemars(length(min = 1))]
    old_string: String,
    /// The text to put in its place; may be empty.
    new_string: String,
    /// Replace every place where old_string stands, not only a single one.
    #[serde(default)]
    replace_all: Flag,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct EditOutput {
    /// Relative to the workspace.
    path: String,
    /// How many places were replaced.
    replacements: u64,
    /// The first line that differs, counted from 1.
    first_changed_line: u64,
    sha256: String,
    /// Bytes of the new content.
    size: u64,
    /// Characters of the new content.
    chars: u64,
    added_lines: u64,
    removed_lines: u64,
    /// Where the diff is kept.
    diff_artifact: String,
    /// The diff itself; not kept twice in the session's record.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

pub(super) fn tool(parts: Arc<FileTools>) -> Result<Tool, BuildError> {
    let (named, checked) = (Arc::clone(&parts), Arc::clone(&parts));
    let replaced = LetGo::default();
    Tool::builder::<EditInput, EditOutput>(DESCRIPTION)
        .semantics(parts.mutating())
        .executor(executor("edit"))
        .resolve(move |input: &EditInput, caller| {
            named.under_every_name(named.name(&input.file_path)?, caller, &["edit"]).map(|found| named.to_write(found))
        })
        .keyed()
        .plan_access(|_, resolved| access("edit", Risk::Write, Effect::ResourceWrite, resolved))
        .precheck(move |input, resolved, caller| {
            let parts = Arc::clone(&checked);
            async move { check(&parts, input, &resolved, &caller).await }
        })
        .execute_resolved(move |input, resolved, context| {
            let (parts, replaced) = (Arc::clone(&parts), replaced.clone());
            // A write waits for the disk, and for other writers in its directory.
            synced(move || edit(&parts, &input, &resolved, &context, &replaced))
        })
        .to_model(|_, output| vec![Content::text(said(output))])
        .to_user(|_, output| to_user(output))
        .to_structured(|_, output| without_diff(output))
        .build()
}

async fn check(
    parts: &Arc<FileTools>,
    input: Arc<EditInput>,
    resolved: &Resolved,
    caller: &Caller,
) -> Result<Prepared, Precondition> {
    let place = parts.place(resolved).map_err(precondition)?;
    require_file(&place).map_err(precondition)?;
    let size = sandbox::stat(&place).map_err(precondition)?.size;
    let baseline = parts.baseline(caller, &place);
    let coverage = parts.coverage;
    on_disk(size, move || {
        let edit = work_out(&place, baseline, &input, coverage)?;
        let facts = vec![("replacements".to_owned(), edit.replacement.count.to_string())];
        let (old, new) = (edit.old, edit.replacement.after);
        let diff = diff_of(size.max(new.text().len() as u64), move || {
            unified_diff(shown(&place), Some(old.text()), new.text()).shown()
        });
        Ok(Prepared { diff: Some(diff), facts, ..Prepared::default() })
    })
    .await
}

/// A replacement that may be made: of the content that was read, in lines that were read.
struct Edit {
    before: Digest,
    old: TextFile,
    replacement: Replacement,
}

fn work_out(
    place: &sandbox::ResolvedPlace,
    baseline: Option<Baseline>,
    input: &EditInput,
    coverage: CoverageRule,
) -> Result<Edit, Precondition> {
    require_file(place).map_err(precondition)?;
    place.check_writable().map_err(precondition)?;
    let found = sandbox::read_file(place, limits::FILE_MAX).map_err(precondition)?;
    let before = found.sha256;
    let old = TextFile::parse(found.bytes).map_err(|not| precondition(not.at(place.path())))?;
    let baseline = baseline.ok_or_else(|| not_read(place))?;
    if baseline.sha256 != before {
        return Err(changed(place));
    }
    let replacement = replace_literal(&old, &input.old_string, &input.new_string, input.replace_all.0)
        .map_err(|error| cannot_edit(place, &error, &input.old_string))?;
    require_values(place, old.text(), replacement.after.text())?;
    require_read(place, &old, &baseline, &replacement, coverage)?;
    Ok(Edit { before, old, replacement })
}

/// L62. A hunk is more than its match where a line end goes: the line it pulls in must be known too,
/// for afterwards the joined line counts as read.
fn require_read(
    place: &sandbox::ResolvedPlace,
    old: &TextFile,
    baseline: &Baseline,
    replacement: &Replacement,
    coverage: CoverageRule,
) -> Result<(), Precondition> {
    match coverage {
        CoverageRule::Any => Ok(()),
        CoverageRule::Full => require_whole(place, old, baseline, coverage),
        CoverageRule::Region => {
            let replaced =
                replacement.hunks.iter().map(|h| LineRange { first: h.first, last: h.first + h.removed - 1 });
            match replaced.chain(replacement.match_lines.iter().copied()).find(|r| !baseline.coverage.contains(*r)) {
                Some(gap) => Err(unread(place, old, baseline, gap, gap)),
                None => Ok(()),
            }
        }
    }
}

fn cannot_edit(place: &sandbox::ResolvedPlace, error: &EditError, old_string: &str) -> Precondition {
    let mut text = format!("`{}`: {error}", shown(place));
    if let Some((marker, _)) = markers(old_string).into_iter().next() {
        text.push_str(&format!(
            ". `{marker}` stands where a secret value was kept from you; the value itself is in the file: choose an old_string \
             without it"
        ));
    }
    match (error, error.reason()) {
        (EditError::Ambiguous { .. }, _) => Precondition::ambiguous(text),
        (EditError::EmptyOld, _) => Precondition::schema("/old_string", text),
        (_, Some(reason)) => Precondition::failed(reason, text),
        // `resource_limit` belongs to executors; nothing has started.
        (_, None) => Precondition::failed(Reason::OutputBudget, text),
    }
}

fn edit(
    parts: &FileTools,
    input: &EditInput,
    resolved: &Resolved,
    context: &ToolContext,
    replaced: &LetGo,
) -> Result<EditOutput, ToolFailure> {
    let place = parts.place(resolved).map_err(failure)?;
    let baseline = parts.baseline(context.caller(), &place);
    let full = baseline.as_ref().is_some_and(Baseline::is_full);
    // Worked out anew from what stands there now; the swap then holds only for exactly that content.
    let Edit { before, old, replacement } =
        work_out(&place, baseline, input, parts.coverage).map_err(ToolFailure::precondition)?;
    let after = replacement.after.to_bytes();
    let plan = WritePlan { content: &after, expect: Expect::Sha256(before), create_parents: false };
    let after_text = String::from_utf8_lossy(&after);
    let change = || unified_diff(shown(&place), Some(&String::from_utf8_lossy(&old.to_bytes())), &after_text);
    let (mut written, change) =
        parts.writing(&place, || sandbox::write_file_while(&place, &plan, change).map_err(failure))?;
    replaced.take(std::mem::take(&mut written.replaced));
    let first_changed_line = replacement.hunks.first().map_or(1, |hunk| hunk.first);
    context.file(fact(&place, before, &written, replacement.after.line_count(), replacement.hunks, full));
    let kept = report(context, &place, &written, &after_text, change)?;
    Ok(EditOutput {
        path: shown(&place).to_owned(),
        replacements: replacement.count,
        first_changed_line,
        sha256: written.sha256.to_string(),
        size: written.size,
        chars: replacement.after.text().chars().count() as u64,
        added_lines: kept.change.added,
        removed_lines: kept.change.removed,
        diff_artifact: kept.diff_artifact,
        diff: Some(kept.change.text),
    })
}

/// How the baseline moves. An edit in very many places does not list them all, for an event must stay
/// small: then the whole file stays known, or has to be read again.
fn fact(
    place: &sandbox::ResolvedPlace,
    before: Digest,
    written: &WrittenFile,
    total_lines: u64,
    hunks: Vec<Hunk>,
    full: bool,
) -> FileFact {
    let path = place.path().as_str().to_owned();
    let WrittenFile { sha256, size, mtime, .. } = *written;
    if hunks.len() <= HUNKS_MAX {
        FileFact::Edited { path, before, sha256, size, mtime, total_lines, hunks }
    } else if full {
        FileFact::Written { path, sha256, size, mtime, total_lines }
    } else {
        FileFact::Delivered { path, sha256, size, mtime, total_lines, lines: Vec::new() }
    }
}

fn said(output: &Value) -> String {
    let Ok(output) = EditOutput::deserialize(output) else { return String::new() };
    let diff = output.diff.as_deref().unwrap_or_default();
    format!("edited {}: {}\n{diff}", output.path, replaced(&output))
}

fn replaced(output: &EditOutput) -> String {
    let from = if output.replacements == 1 { "at" } else { "from" };
    format!("{} {from} line {}", counted(output.replacements, "replacement"), output.first_changed_line)
}

fn to_user(output: &Value) -> UserText {
    let Ok(output) = EditOutput::deserialize(output) else { return UserText::default() };
    let summary = format!("{}, +{} −{} lines", replaced(&output), output.added_lines, output.removed_lines);
    UserText { title: format!("Edit {}", output.path), summary }
}

fn without_diff(output: &Value) -> Value {
    let mut kept = output.clone();
    if let Some(fields) = kept.as_object_mut() {
        fields.remove("diff");
    }
    kept
}
