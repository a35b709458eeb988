//! The list of a line: pipelines one after the other, with `cd` between them, and what they write.

use std::collections::BTreeMap;
use std::io::{self, PipeWriter};

use portcullis_base::{EnvKey, limits};
use portcullis_command::{Builtin, Joiner, ReadPlan};
use portcullis_contract::{ToolContext, ToolFailure};
use portcullis_pipeline::Environment;
use portcullis_sandbox::VirtualPath;
use portcullis_secret::SecretText;
use tokio::time::Instant;

use super::operands::DecidedPlaces;
use super::pipeline::StageEnd;
use super::result::ReadRan;
use super::{ReadHand, ReadLine, builtins};
use crate::hand::{LaunchedFailure, Plan, Reach, Streams};
use crate::shell::unseen;

/// The same wherever it runs: sorted names and messages do not depend on a machine.
const LANG: &str = "C.UTF-8";

/// A line while it runs.
pub(super) struct RunningLine<'a> {
    pub(super) hand: &'a ReadHand,
    pub(super) context: &'a ToolContext,
    pub(super) decided: DecidedPlaces,
    /// The view of every stage. Rules were matched against the mounts when the line began.
    pub(super) base: Plan,
    pub(super) virtual_paths: bool,
    pub(super) out: PipeWriter,
    pub(super) err: PipeWriter,
    session: Environment,
}

/// How far a list came.
struct ListEnd {
    stages: Vec<StageEnd>,
    last: StageEnd,
    stopped: bool,
}

impl ReadHand {
    /// Runs a line that was let through. What its programs write is captured as `stdout` and `stderr`. A program that
    /// fails is no error here: see [`ReadRan::judged`].
    ///
    /// # Errors
    /// If a word is no longer what was decided on, a program is not installed, or the isolation it needs is not to be
    /// had.
    pub async fn run(&self, context: &ToolContext, line: &ReadLine) -> Result<ReadRan, ToolFailure> {
        self.run_with(context, line, BTreeMap::new()).await
    }

    /// The same with variables of the call. They are what the session's own are here: `env` shows them, and no program
    /// gets them.
    pub(super) async fn run_with(
        &self,
        context: &ToolContext,
        line: &ReadLine,
        env: BTreeMap<EnvKey, SecretText>,
    ) -> Result<ReadRan, ToolFailure> {
        let started = Instant::now();
        super::installed(&line.plan).map_err(ToolFailure::precondition)?;
        let mut base =
            self.hand.plan_showing(context.caller(), Vec::new(), &line.cwd, Reach::ReadOnly, &line.resources).await?;
        for warning in base.warnings.drain(..) {
            context.warn(warning);
        }
        let mut env_names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
        let mut session = Environment::default();
        if shows_environment(&line.plan) {
            session = self.book.environment(context.caller()).await.map_err(unseen)?;
            env_names.extend(env.keys().map(ToString::to_string));
            env_names.sort();
            session.values.extend(env);
        } else if !env.is_empty() {
            context.warn(
                "programs that only read get no variables, for one could make them run something else; use run_shell for a \
                 command that needs them",
            );
        }
        let broken = |error: io::Error| ToolFailure::new("io_error", format!("the output cannot be read: {error}"));
        let (out_read, out) = io::pipe().map_err(broken)?;
        let (err_read, err) = io::pipe().map_err(broken)?;
        let mut streams = Streams::of(context, out_read.into(), err_read.into()).map_err(broken)?;
        let posture = self.hand.posture().await;
        let at_work = RunningLine {
            hand: self,
            context,
            decided: DecidedPlaces::new(&line.resources),
            base,
            virtual_paths: posture.virtual_paths(),
            out,
            err,
            session,
        };
        let mut work = Box::pin(async {
            let ended = at_work.list(&line.plan, &line.cwd).await;
            // The last writing ends of both pipes that are ours.
            drop(at_work);
            ended
        });
        let mut reading = true;
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut work => break ended,
                read = streams.read(), if reading => {
                    reading = false;
                    if let Err(fault) = read {
                        // Letting go of it ends every program.
                        drop(work);
                        return Err(LaunchedFailure::from(fault).into());
                    }
                }
            }
        };
        drop(work);
        let duration = started.elapsed();
        let _ = tokio::time::timeout(limits::DRAIN, streams.read()).await;
        let (stdout, stderr, _) = streams.finish();
        let ListEnd { stages, last, stopped } = ended?;
        if stages.iter().any(|stage| stage.out_of_memory) {
            context.warn("the kernel ended a program of this line because it used up its memory limit");
        }
        Ok(ReadRan {
            stage_exit_codes: stages.iter().map(|stage| stage.code).collect(),
            exit_code: (!stopped).then_some(last.code),
            signal: last.signal,
            timed_out: stopped && context.timed_out(),
            stopped,
            duration,
            stdout,
            stderr,
            env_names,
            posture,
        })
    }
}

/// The names of a stage's environment.
pub(crate) const NAMES: [&str; 5] = ["LANG", "PATH", "PORTCULLIS_SESSION_ID", "PORTCULLIS_WORKSPACE_CWD", "TMPDIR"];

fn shows_environment(plan: &ReadPlan) -> bool {
    let mut stages = plan.pipelines().iter().flat_map(|(_, pipeline)| pipeline.stages());
    stages.any(|stage| stage.builtin() == Some(Builtin::Env))
}

impl RunningLine<'_> {
    async fn list(&self, plan: &ReadPlan, cwd: &VirtualPath) -> Result<ListEnd, ToolFailure> {
        let nothing = StageEnd { code: 0, signal: None, out_of_memory: false };
        let mut end = ListEnd { stages: Vec::new(), last: nothing, stopped: false };
        let mut cwd = cwd.clone();
        for (joiner, pipeline) in plan.pipelines() {
            let runs = match joiner {
                Joiner::Always => true,
                Joiner::AfterSuccess => end.last.code == 0,
                Joiner::AfterFailure => end.last.code != 0,
            };
            if !runs {
                continue;
            }
            let ended = self.pipeline(pipeline, &cwd).await?;
            end.last = ended.stages.last().copied().unwrap_or(nothing);
            end.stages.extend(ended.stages);
            if ended.stopped {
                end.stopped = true;
                break;
            }
            cwd = ended.moved.unwrap_or(cwd);
        }
        Ok(end)
    }

    /// The environment of a stage, to the letter. Nothing of the session's: a variable can make a listed program run
    /// code (`LD_PRELOAD`, `RIPGREP_CONFIG_PATH`) or mean something else (`POSIXLY_CORRECT`), and setting one is not
    /// asked about.
    pub(super) fn own(&self, cwd: &VirtualPath) -> Vec<(String, String)> {
        let tmp = self.base.launch.env.iter().find(|(name, _)| name == "TMPDIR");
        let tmp = tmp.filter(|_| self.virtual_paths).map(|(_, value)| value.to_string_lossy().into_owned());
        vec![
            ("LANG".to_owned(), LANG.to_owned()),
            ("PATH".to_owned(), builtins::TRUSTED.join(":")),
            ("PORTCULLIS_SESSION_ID".to_owned(), self.context.caller().session_id.to_string()),
            ("PORTCULLIS_WORKSPACE_CWD".to_owned(), cwd.as_str().to_owned()),
            ("TMPDIR".to_owned(), tmp.unwrap_or_else(|| "/tmp".to_owned())),
        ]
    }

    /// What `env` shows.
    pub(super) fn variables(&self, cwd: &VirtualPath) -> Vec<u8> {
        builtins::environment(&self.own(cwd), &self.session)
    }
}
