//! Ids, time, people and events of a test, all from one seed.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{
    AppendId, AskId, Clock as _, Code, Digest, EventId, IntentId, InvocationId, ManualClock, MenuId, MessageId,
    ObservationId, OutcomeId, Phase, QueuedWakeId, Recovery, SeededIds, SessionId, SideEffects, TenantId, Timestamp,
    TurnId, WakeId, WorkerId,
};
use portcullis_event::facts::{
    Activation, ActivationKind, AskReplied, AtRoot, Carried, Disposition, Exit, InputValidated, IntentProposed,
    InvocationCompleted, InvocationStarted, LookedUp, LoopOutcome, ModelRequestEnd, ModelRequestStart, ModelUsage,
    OutcomeAuthor, OutcomeDefined, OutcomeEvaluated, OutcomeStatus, OutcomeTrend, PermissionAsked, PermissionDecided,
    Plan, Priority, Reply, Scheduled, SessionCreated, SpanCompleted, SpanResult, SpanStarted, Stage, ToolQueued,
    ToolUse, TouchedResource, Verdict, WakeCancelled, WakeConsumed, WakeQueued,
};
use portcullis_event::{
    Actor, CheckpointKey, ContentFormat, ContentPart, Draft, EventBody, LOCAL_TENANT, Observed, Stamp,
};
use portcullis_store::{Claim, Commit, Lease, LeaseOwner, MemoryStore, SessionKey, Store, StoreError};
use serde_json::json;

use crate::FixedLiveness;

/// An ask that waits, with the events that opened it.
pub struct ParkedAsk {
    pub ask: AskId,
    pub intent: IntentId,
    pub events: Vec<Draft>,
}

/// Everything around a store. Equal seeds make equal worlds.
pub struct World {
    pub clock: Arc<ManualClock>,
    pub ids: Arc<SeededIds>,
    pub liveness: Arc<FixedLiveness>,
    pub key: CheckpointKey,
    pub tenant: TenantId,
    actor: Actor,
}

impl World {
    /// A world at 2026-04-10, of the local tenant.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            clock: Arc::new(ManualClock::new(Timestamp::from_micros(1_775_818_800_000_000))),
            ids: Arc::new(SeededIds::new(seed)),
            liveness: Arc::default(),
            key: CheckpointKey::from_bytes([7; 32]),
            tenant: LOCAL_TENANT,
            actor: Actor::agent("test"),
        }
    }

    /// An empty in-memory store of this world.
    #[must_use]
    pub fn memory(&self) -> MemoryStore {
        let key = Some(self.key.clone());
        MemoryStore::new(self.clock.clone(), self.ids.clone(), self.liveness.clone(), key)
    }

    fn stamp(&self) -> Stamp<'_> {
        Stamp { ids: &*self.ids, clock: &*self.clock, actor: &self.actor, turn_id: None, wake_id: None }
    }

    /// An event of this body.
    pub fn draft<B: EventBody>(&self, body: &B) -> Draft {
        self.stamp().draft(body)
    }

    /// A fresh append id.
    #[must_use]
    pub fn append(&self) -> AppendId {
        AppendId::make(&*self.ids, self.clock.now())
    }

    /// A key of a session that does not exist yet.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey { tenant: self.tenant, session: SessionId::make(&*self.ids, self.clock.now()) }
    }

    /// The event that begins `key`'s session.
    #[must_use]
    pub fn created(&self, key: SessionKey) -> Draft {
        self.created_with(key, |_| {})
    }

    /// The same with other content.
    pub fn created_with(&self, key: SessionKey, change: impl FnOnce(&mut SessionCreated)) -> Draft {
        let mut created = SessionCreated {
            workspace: Some("/work/tree".to_owned()),
            custom_tools: Vec::new(),
            agent_id: None,
            agent_version: 1,
            environment_id: None,
            parent_session_id: None,
            root_session_id: key.session,
            depth: 0,
            name: Some("test".to_owned()),
            tags: vec!["one".to_owned()],
            config_hash: Digest::of(b"config"),
            has_setup: false,
        };
        change(&mut created);
        self.draft(&created)
    }

    /// The commit that begins `key`'s session.
    #[must_use]
    pub fn creation(&self, key: SessionKey) -> Commit {
        self.client(key, self.created(key))
    }

    /// A new session.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn session(&self, store: &dyn Store) -> Result<SessionKey, StoreError> {
        let key = self.key();
        store.commit(self.creation(key)).await?;
        Ok(key)
    }

    /// Input of a client.
    #[must_use]
    pub fn queued(&self, text: &str) -> Draft {
        self.draft(&ToolQueued { name: "read".to_owned(), input: json!({ "text": text }), by: "user:test".to_owned() })
    }

    /// A client's commit with one event.
    #[must_use]
    pub fn client(&self, key: SessionKey, event: Draft) -> Commit {
        Commit::client(key, self.append(), vec![event])
    }

    /// A client's commit with one input.
    #[must_use]
    pub fn input(&self, key: SessionKey, text: &str) -> Commit {
        self.client(key, self.queued(text))
    }

    /// `wake.queued` of a new wake that is due in `delay`.
    #[must_use]
    pub fn wake(&self, delay: Duration, priority: Priority, dedupe: Option<&str>) -> (QueuedWakeId, Draft) {
        let queued_wake_id = QueuedWakeId::make(&*self.ids, self.now());
        let draft = self.draft(&WakeQueued {
            queued_wake_id,
            due_at: self.now().plus(delay),
            reason: "later".to_owned(),
            note: Some(format!("asked for with {delay:?}")),
            dedupe_key: dedupe.map(str::to_owned),
            priority,
        });
        (queued_wake_id, draft)
    }

    /// `wake.consumed` of one wake.
    #[must_use]
    pub fn consumed(&self, wake: QueuedWakeId) -> Draft {
        self.draft(&WakeConsumed { queued_wake_ids: vec![wake] })
    }

    /// `wake.cancelled` of one wake.
    #[must_use]
    pub fn cancelled(&self, wake: QueuedWakeId) -> Draft {
        self.draft(&WakeCancelled { queued_wake_ids: vec![wake], by: "user:test".to_owned() })
    }

    /// A process that may hold leases; equal numbers are the same process.
    #[must_use]
    pub fn owner(&self, number: u32) -> LeaseOwner {
        LeaseOwner {
            worker: WorkerId::from_u128(u128::from(number)),
            host: "test".to_owned(),
            pid: number,
            started: 1,
            what: format!("worker {number}"),
            kind: portcullis_store::HolderKind::Standing,
        }
    }

    /// Takes the lease of a free session for 30 s.
    ///
    /// # Errors
    /// Those of the store, and `Unavailable` if someone holds it.
    pub async fn claim(&self, store: &dyn Store, key: SessionKey, number: u32) -> Result<Lease, StoreError> {
        let ttl = Duration::from_secs(30);
        match store.claim_session(key, self.owner(number), ttl).await? {
            Claim::Granted(lease) => Ok(lease),
            Claim::Held { owner, .. } => Err(StoreError::Unavailable(format!("held by {owner}"))),
            Claim::Refused(error) => Err(error),
        }
    }

    /// A commit of the lease's holder.
    #[must_use]
    pub fn work(&self, key: SessionKey, lease: &Lease, events: Vec<Draft>) -> Commit {
        Commit::worker(key, lease.owner.worker, lease.fence, self.append(), events)
    }

    /// What the clock of this world says.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// `tool.intent` of a new intent.
    #[must_use]
    pub fn intent(&self) -> (IntentId, Draft) {
        let intent_id = IntentId::make(&*self.ids, self.now());
        let draft = self.draft(&IntentProposed {
            intent_id,
            call_id: "call_1".to_owned(),
            message_id: MessageId::make(&*self.ids, self.now()),
            tool: "read".to_owned(),
            raw_input: json!({ "file_path": "src/main.rs" }),
            input_hash: Digest::of(b"input"),
            stated_reason: None,
            menu_id: MenuId::make(&*self.ids, self.now()),
            definition_version: Some(format!("dv1:{}", Digest::of(b"read"))),
            parent_invocation_id: None,
        });
        (intent_id, draft)
    }

    /// `tool.invocation.started` of an intent.
    #[must_use]
    pub fn started(&self, intent_id: IntentId) -> (InvocationId, Draft) {
        let invocation_id = InvocationId::make(&*self.ids, self.now());
        let draft = self.draft(&InvocationStarted {
            invocation_id,
            intent_id,
            executor_id: "builtin:read@1".to_owned(),
            definition_version: format!("dv1:{}", Digest::of(b"read")),
            sandbox: None,
            env_names: Vec::new(),
            cwd: None,
            attempt: 1,
            read_only: true,
        });
        (invocation_id, draft)
    }

    /// `tool.scheduled` of an intent.
    #[must_use]
    pub fn scheduled(&self, intent_id: IntentId) -> Draft {
        self.draft(&Scheduled {
            intent_id,
            plan: Plan {
                invocation_id: InvocationId::make(&*self.ids, self.now()),
                concurrency: "safe".to_owned(),
                timeout_ms: 120_000,
            },
            queue_pos: 0,
            keys: Vec::new(),
        })
    }

    /// `tool.invocation.completed`.
    #[must_use]
    pub fn completed(&self, intent_id: IntentId, invocation_id: InvocationId) -> Draft {
        self.draft(&InvocationCompleted {
            invocation_id,
            intent_id,
            exit: Exit::Ok,
            exit_code: None,
            signal: None,
            duration_us: 120,
            capture: Vec::new(),
            side_effects: SideEffects::none(),
            raw_ref: None,
            defect: None,
        })
    }

    /// `tool.observation` that settles an intent with this content.
    #[must_use]
    pub fn observed(&self, intent_id: IntentId, content: &str) -> Draft {
        let part = ContentPart {
            trust: portcullis_base::Trust::ToolOutputUntrusted,
            format: ContentFormat::Text,
            source: "src/main.rs".to_owned(),
            text: Some(content.to_owned()),
            artifact: None,
        };
        self.draft(&Observed {
            observation_id: ObservationId::make(&*self.ids, self.now()),
            intent_id,
            call_id: "call_1".to_owned(),
            tool: "read".to_owned(),
            turn_id: TurnId::make(&*self.ids, self.now()),
            menu_id: MenuId::make(&*self.ids, self.now()),
            invocation_id: None,
            definition_version: Some(format!("dv1:{}", Digest::of(b"read"))),
            executor_id: Some("builtin:read@1".to_owned()),
            attempt: 1,
            ok: true,
            phase: Phase::WriteBack.into(),
            code: Code::Ok.into(),
            reason: None,
            tool_code: None,
            title: "Read src/main.rs".to_owned(),
            summary: "Read 80 lines of src/main.rs".to_owned(),
            content: vec![part],
            structured: None,
            structured_is_channel: false,
            exit_code: None,
            signal: None,
            duration_us: 180,
            side_effects: SideEffects::none(),
            retryable: false,
            recovery: Recovery::None.into(),
            errors: Vec::new(),
            truncated: false,
            omitted_bytes: 0,
            omitted_lines: 0,
            total_bytes: content.len() as u64,
            retained: true,
            capture: Vec::new(),
            artifacts: Vec::new(),
            files: Vec::new(),
            unchanged_since: None,
            suggested_next_tool: None,
            next_hint: None,
            permission: None,
            sandbox: None,
            synthetic: false,
            incident_id: None,
            warnings: Vec::new(),
        })
    }

    /// The nine events of a call that is one append.
    #[must_use]
    pub fn inert_call(&self, content: &str) -> Vec<Draft> {
        let (intent_id, intent) = self.intent();
        let (invocation_id, started) = self.started(intent_id);
        let checked = |stage| {
            self.draft(&InputValidated {
                intent_id,
                stage,
                ok: true,
                errors: Vec::new(),
                resolved: vec!["fs:/workspace/src/main.rs".to_owned()],
            })
        };
        vec![
            intent,
            self.draft(&LookedUp {
                intent_id,
                found: true,
                registration_id: None,
                executor_id: Some("builtin:read@1".to_owned()),
                code: None,
            }),
            checked(Stage::Schema),
            checked(Stage::Resolve),
            self.draft(&PermissionDecided {
                intent_id,
                decision: Verdict::Allow,
                reason: "reads are allowed".to_owned(),
                policy_ids: vec!["builtin:auto/read".to_owned()],
                grant_ids: Vec::new(),
                resources: vec![TouchedResource {
                    action: "read".to_owned(),
                    kind: "path".to_owned(),
                    name: "/workspace/src/main.rs".to_owned(),
                    inside: true,
                    fed: false,
                    command: portcullis_base::CommandFacts::default(),
                    class: None,
                    looks_at: None,
                    risk: [portcullis_base::Risk::Read].into(),
                }],
                partial: false,
                default_policy: "auto".to_owned(),
                precheck: false,
            }),
            self.draft(&ToolUse {
                intent_id,
                evaluated_permission: "allow".to_owned(),
                evaluation: "policy".to_owned(),
                by_environment: false,
            }),
            started,
            self.completed(intent_id, invocation_id),
            self.observed(intent_id, content),
        ]
    }

    /// An intent that asks and parks; the ask expires in an hour.
    #[must_use]
    pub fn parked(&self) -> ParkedAsk {
        let (intent, proposed) = self.intent();
        let (ask, asked) = self.asked(intent);
        let events = vec![
            proposed,
            self.draft(&ToolUse {
                intent_id: intent,
                evaluated_permission: "ask".to_owned(),
                evaluation: "policy".to_owned(),
                by_environment: false,
            }),
            asked,
        ];
        ParkedAsk { ask, intent, events }
    }

    /// `tool.permission.asked` of an intent.
    #[must_use]
    pub fn asked(&self, intent_id: IntentId) -> (AskId, Draft) {
        let ask_id = AskId::make(&*self.ids, self.now());
        let draft = self.draft(&PermissionAsked {
            grantable: None,
            held_by: None,
            // As a descendant would ask: nothing of an ask may be lost on the way into its row.
            root: Some(AtRoot {
                session_id: SessionId::from_u128(9),
                tool_use_id: EventId::make(&*self.ids, self.now()),
            }),
            ask_id,
            intent_id,
            kind: "tool_confirmation".to_owned(),
            facts: json!({ "tool": "edit", "path": "src/main.rs" }),
            suggested_rules: Vec::new(),
            pinned: false,
            only_a_person: false,
            input_hash: Digest::of(b"input"),
            expires_at: self.now().plus(Duration::from_secs(3_600)),
            definition_version: format!("dv1:{}", Digest::of(b"edit")),
            policy_revision: Digest::of(b"policy"),
            principal: "user:test".to_owned(),
            shown: portcullis_base::Digest::of(b"shown"),
            bound: Vec::new(),
            asker_env: std::collections::BTreeMap::new(),
        });
        (ask_id, draft)
    }

    /// A wake from its beginning to its end.
    #[must_use]
    pub fn wake_span(&self, result: SpanResult, summary: &str) -> Vec<Draft> {
        let span_id = WakeId::make(&*self.ids, self.now());
        let (span_kind, name) = ("wake".to_owned(), "wake".to_owned());
        let activation = Activation {
            kind: ActivationKind::PendingEvents,
            priority: Priority::Normal,
            due_at: None,
            reason: "user.message".to_owned(),
            note: None,
            queued_wake_ids: Vec::new(),
        };
        let begun = SpanStarted {
            span_id,
            span_kind: span_kind.clone(),
            name: name.clone(),
            summary: String::new(),
            activation,
        };
        let ended = SpanCompleted {
            span_id,
            span_kind,
            name,
            result,
            summary: summary.to_owned(),
            error_code: None,
            disposition: Disposition::Acked,
            outcome: LoopOutcome::Sleep,
            enforced_by_runtime: false,
        };
        vec![self.draft(&begun), self.draft(&ended)]
    }

    /// `user.define_outcome` by a person.
    #[must_use]
    pub fn outcome(&self, title: &str) -> Draft {
        self.draft(&OutcomeDefined {
            outcome_id: OutcomeId::make(&*self.ids, self.now()),
            title: title.to_owned(),
            detail: None,
            success_criteria: vec!["the tests pass".to_owned()],
            max_iterations: None,
            defined_by: OutcomeAuthor::User,
        })
    }

    /// `span.outcome_evaluation_end` with this verdict.
    #[must_use]
    pub fn verdict(&self, result: OutcomeStatus, trend: OutcomeTrend) -> Draft {
        self.draft(&OutcomeEvaluated {
            outcome_id: OutcomeId::make(&*self.ids, self.now()),
            iteration: 0,
            result,
            trend,
            explanation: "by its criteria".to_owned(),
            outcome_fingerprint: Digest::of(b"outcome"),
        })
    }

    /// A request of the model and its answer, which used this many tokens.
    #[must_use]
    pub fn model_request(&self, tokens: u64) -> Vec<Draft> {
        let (turn_id, message_id) = (TurnId::make(&*self.ids, self.now()), MessageId::make(&*self.ids, self.now()));
        let begun = self.draft(&ModelRequestStart {
            turn_id,
            message_id,
            menu_id: MenuId::make(&*self.ids, self.now()),
            model: "test/model".to_owned(),
            context: Carried::Inline(json!("context")),
            context_hash: Digest::of(b"context"),
            system: None,
        });
        let ended = self.draft(&ModelRequestEnd {
            model_request_start_id: begun.id,
            turn_id,
            message_id,
            is_error: false,
            stop: "end_turn".to_owned(),
            model_usage: Some(ModelUsage { input_tokens: tokens, output_tokens: 1, ..ModelUsage::default() }),
            parts: None,
            calls: 0,
            masked_calls: Vec::new(),
        });
        vec![begun, ended]
    }

    /// `tool.permission.replied` to an ask.
    #[must_use]
    pub fn replied(&self, ask_id: AskId, reply: Reply) -> Draft {
        self.draft(&AskReplied {
            ask_id,
            reply,
            approver: "user:test".to_owned(),
            channel: "cli".to_owned(),
            terminal: None,
            parent_process: None,
            feedback: None,
            grant_id: None,
        })
    }
}
