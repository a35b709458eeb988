//! The defaults of tool-contract §27, each with its reason. One place, so that a person can
//! see every bound of the system at once.

use std::time::Duration;

/// Model text of one settlement, in lines: what a model reads with attention.
pub const MAX_MODEL_LINES: usize = 2_000;
/// Model text of one settlement, in bytes: about 13,000 tokens.
pub const MAX_MODEL_BYTES: usize = 51_200;
/// Model text of all settlements of one turn.
pub const MAX_TURN_BYTES: usize = 204_800;
/// What a late settlement of a full turn still gets: enough to say what happened.
pub const MIN_TURN_SHARE: usize = 4_096;
/// Structured values above this leave the event and become artifacts: the log stays scannable.
pub const STRUCTURED_INLINE_MAX: usize = 262_144;
/// Memory a captured stream may use: half for the head, half for the tail.
pub const SPOOL_MEM: usize = 131_072;
/// Bytes of a captured stream that are kept.
pub const SPOOL_MAX: u64 = 67_108_864;
/// A producer past this is stopped: it will not end by itself.
pub const SPOOL_KILL: u64 = 1_073_741_824;
/// Artifacts up to this ride in the append that names them: no extra sync, no orphan.
pub const ARTIFACT_INLINE_MAX: usize = 65_536;
/// All artifacts of one workspace.
pub const ARTIFACT_QUOTA: u64 = 2 << 30;
/// Lines of one file page.
pub const READ_LINES: usize = 2_000;
/// Bytes of one file page.
pub const READ_BYTES: usize = 51_200;
/// Characters of one line before it is cut inside.
pub const LINE_CHARS: usize = 2_000;
/// A file larger than this is not read into memory by the file tools.
pub const FILE_MAX: u64 = 64 << 20;
/// Media larger than this is not taken in.
pub const MEDIA_INGEST: u64 = 20 << 20;
/// Raw tool input.
pub const INPUT_MAX: usize = 1 << 20;
/// Nesting of tool input.
pub const INPUT_DEPTH: usize = 64;
/// Events of one append; a larger batch is split.
pub const APPEND_EVENTS: usize = 1_000;
/// Bytes of one append; a larger batch is split between calls.
pub const APPEND_BYTES: usize = 1 << 20;
/// Bytes a store takes in one append all the same: what one call puts into it cannot be split.
pub const APPEND_MOST: usize = 4 * APPEND_BYTES;
/// Bytes of small artifacts in one append; past it they are files like the large ones.
pub const APPEND_BLOBS: usize = 1 << 20;
/// Pieces of evidence one invocation may hand over: each is an event of the append that ends it.
pub const KEPT_ITEMS: usize = 256;
/// Names in the environment of a session. With the next limit they fit into the 2 MiB that Linux gives the arguments and
/// the environment of a program together.
pub const ENV_NAMES: usize = 200;
/// Bytes of one value there.
pub const ENV_VALUE: usize = 8_192;
/// Bytes of one name there.
pub const ENV_NAME: usize = 256;
/// What one invocation may hand over of its shell besides changes of the environment: each is an event of the append
/// that ends it.
pub const SHELL_FACTS: usize = 20;
/// Bytes of a command, and of all its words together, in its record. The whole line stands in the intent.
pub const COMMAND_WORDS: usize = 4_096;
/// Commands of a session that are shown without looking into its log (agent-runtime 2.10).
pub const RECENT_COMMANDS: usize = 5;
/// Commands of a session that are found by their id without searching its log.
pub const KNOWN_COMMANDS: usize = 200;
/// Characters of a preview of a command's output.
pub const OUTPUT_PREVIEW: usize = 400;
/// Safe calls of one session that run together, and of one process.
pub const MAX_PARALLEL_SAFE: usize = 8;
pub const MAX_PARALLEL_SAFE_PROCESS: usize = 64;
/// How often one call may ask the gate midway: each answer is an append of its own.
pub const GATE_REQUESTS: usize = 1_000;
/// How long a persistent shell is kept that nobody uses (agent-runtime 10.4): its processes hold memory, and its session
/// may be over without anybody saying so.
pub const SHELL_IDLE: Duration = Duration::from_secs(30 * 60);
/// Background tasks of one session: each holds its keys, and up to [`SPOOL_MEM`] for every stream it captures.
pub const MAX_TASKS: usize = 32;
/// How long `task_wait` waits at most: a model that waits longer hears nothing else meanwhile.
pub const TASK_WAIT: Duration = Duration::from_secs(60);
/// Bytes of one live delta of progress.
pub const PROGRESS_LIVE: usize = 8_192;
/// Live deltas that a slow watcher may be behind; then the oldest are dropped.
pub const PROGRESS_QUEUE: usize = 256;
/// Checkpoints in the log: one at most this often, so many in all of one invocation, and bytes of each.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(5);
pub const PROGRESS_CHECKPOINTS: u32 = 64;
pub const PROGRESS_CHECKPOINT: usize = 4_096;
/// Invocations waiting in one session.
pub const QUEUE: usize = 256;
/// Pending wakes of one session: an append about wakes looks at all of them, and more is a loop that plans.
pub const PENDING_WAKES: usize = 1_000;
/// A due session counts one level of priority up for each of these that it has waited, so that none waits for ever.
pub const WAKE_AGE_STEP: Duration = Duration::from_secs(60);
/// The pause before a failed wake is tried again doubles from the first to the last of these.
pub const RETRY_FIRST: Duration = Duration::from_secs(2);
pub const RETRY_LAST: Duration = Duration::from_secs(30);
/// So many per cent a pause may be shorter or longer, so that what failed together does not come back together.
pub const RETRY_JITTER_PERCENT: u64 = 20;
/// Failures in a row after which a person must look: what trying again cannot mend, and what it may.
pub const GIVE_UP_PERMANENT: u32 = 5;
pub const GIVE_UP_RETRYABLE: u32 = 8;
/// Rows that one sweep changes of each kind: the writer is never held up for long.
pub const SWEEP_BATCH: usize = 500;
/// How long a repeated request finds its first response.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3_600);
/// How long a person has to answer.
pub const ASK_EXPIRY: Duration = Duration::from_secs(24 * 3_600);
/// A lease, and how often it is renewed: three chances before it ends.
pub const LEASE_TTL: Duration = Duration::from_secs(30);
pub const LEASE_RENEW: Duration = Duration::from_secs(10);
/// A holder that could not renew stops itself this long before its lease ends.
pub const LEASE_MARGIN: Duration = Duration::from_secs(5);
/// How long a holder asks once more that comes too late, because it was stopped for longer than its lease lasts: nobody may
/// have come meanwhile. Well within the margin for one whose store does not answer.
pub const LEASE_LAST_ASK: Duration = Duration::from_secs(1);
/// After a lease ran out whose holder may live, nothing that conflicts with what it had begun starts for this long: a holder
/// that lost its lease needs some time to stop.
pub const EFFECT_GRACE: Duration = Duration::from_secs(10);
/// A log gets a keyed checkpoint at least this often.
pub const CHECKPOINT_EVERY: u64 = 1_000;
/// How long a second `call` waits for the first.
pub const CALL_LEASE_WAIT: Duration = Duration::from_secs(5);
/// Equal calls with equal ends in a row: at the first number the model is told, at the second it is refused.
pub const LOOP_WARN: u32 = 3;
pub const LOOP_STOP: u32 = 5;
/// Calls in a row that the loop guard refuses before the work is ended. A model that was told twice that it repeats itself,
/// and does so a third time, will not hear it the fourth time either, and each time costs a request.
pub const LOOP_END: u32 = 3;
/// Calls of a cycle that the loop guard knows: two commands in turn repeat themselves as well as one does. Longer cycles end
/// at the limit of requests for one message.
pub const LOOP_CYCLE: usize = 3;
/// Defects in a row before a turn halts.
pub const MAX_CONSECUTIVE_DEFECTS: u32 = 3;
/// Cancelled work gets this long to end by itself.
pub const KILL_GRACE: Duration = Duration::from_secs(3);
/// How long output is read after a command has ended: a daemon that holds a pipe does not hold the call.
pub const DRAIN: Duration = Duration::from_secs(2);
/// After the kill of a command its call gets this long to see it dead, drain its pipes and tell its end. On a busy machine
/// a death takes a while, and a call that is dropped before tells neither exit nor timeout.
pub const KILLED_GRACE: Duration = Duration::from_secs(5);
/// Shutdown in all.
pub const SHUTDOWN: Duration = Duration::from_secs(10);
