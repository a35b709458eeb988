//! What can be done with a store and its sessions besides making calls, for every way in. Each operation is a file, has its
//! own type for the answer and its own error; none knows a terminal.

mod accept_loss;
mod answer;
mod archive;
mod ask_view;
pub mod ask_words;
mod audit;
mod backtest;
mod call_output;
mod erase;
mod evidence;
mod example_input;
mod explain;
mod export;
mod export_file;
mod fork;
mod gc;
mod health;
mod id_parts;
mod import;
mod search;
mod session_documents;
mod session_view;
mod span_document;
mod touched;
mod wake_record;

use std::sync::Arc;

use portcullis_base::{AppendId, Clock, IdGen, SessionId, TenantId};
use portcullis_event::{Actor, EventBody, Stamp, operator_log_of};
use portcullis_store::{Commit, SessionKey, Store, StoreError};

pub use accept_loss::{AcceptedLoss, accept_loss};
pub use answer::{AnswerError, AskAnswering, CallEnd, ReplyEnd, answer_waiting};
pub use archive::{Archive, ContentError, ContentsOnDemand, EVENTS_AT_ONCE, KeptBytes, UnopenedContents};
pub use ask_view::{AskContentError, AskView, AskViewError, WholeAsk};
pub use audit::{AuditReport, StoreAudit, VerifiedSession};
pub use backtest::{Backtest, BacktestError, BacktestTally, ChangedDecision, SessionBacktest};
pub use call_output::{CallNameError, CallOutputs, WrittenOutput};
pub use erase::{ErasedSession, Erasure, ErasureError};
pub use evidence::{EvidenceError, evidence_of, write_evidence};
pub use example_input::{example_input, is_wrong_input};
pub use explain::ExplainedCall;
pub use export::{Content, Export, ExportError, ExportedArtifact, HeadLine, Manifest};
pub use export_file::{CheckedExport, ExportFileError};
pub use fork::{ForkedSession, SessionForkError, fork_session};
pub use gc::{Garbage, GarbageError, leftover_words};
pub use health::ChainHealth;
pub use id_parts::{IdKind, IdPartError, fits, only_id};
pub use import::{ImportError, ImportedSession, SoundExport, import_session};
pub use search::UnsearchedEvents;
pub use session_documents::{call_row, session_row, status_document, tree_document};
pub use session_view::SessionView;
pub use span_document::{SpanDocument, span_name, span_result};
pub use wake_record::{
    WorkerDeed, WorkerReport, contradicted, lease, limit_word, merge_into, refused, unfinished, wake_record,
};

/// Hears how many more events were worked on.
pub type EventsSeen<'a> = &'a (dyn Fn(u64) + Sync);

/// Somebody who works on a store: what a write needs besides its facts.
#[derive(Clone)]
pub struct Operator {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Whose sessions it is about.
    pub tenant: TenantId,
    /// Where ids come from.
    pub ids: Arc<dyn IdGen>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The login that facts record.
    pub by: String,
    /// What this process is called where it holds a session.
    pub called: String,
}

impl Operator {
    fn key(&self, session: SessionId) -> SessionKey {
        SessionKey { tenant: self.tenant, session }
    }

    /// Writes what was done to the store itself into the operator log.
    async fn record<B: EventBody>(&self, did: &B) -> Result<(), StoreError> {
        let actor = Actor::user(&self.by);
        let stamp = Stamp { ids: &*self.ids, clock: &*self.clock, actor: &actor, turn_id: None, wake_id: None };
        let append = AppendId::make(&*self.ids, self.clock.now());
        let commit = Commit::client(self.key(operator_log_of(self.tenant)), append, vec![stamp.draft(did)]);
        self.store.commit(commit).await.map(drop)
    }
}
