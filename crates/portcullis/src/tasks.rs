//! Calls that outlive their observation, and what running calls say of themselves.

use portcullis_base::{SessionId, TaskId};
use portcullis_event::facts::TaskCompleted;
use portcullis_pipeline::Progress;
use portcullis_store::StoreError;
use tokio::sync::broadcast;

use crate::runtime::Runtime;

impl Runtime {
    /// What running calls of every session say of themselves, from now on: live, never durable, and dropped for a
    /// watcher that falls too far behind.
    ///
    /// ```
    /// use portcullis::{Background, Code, Runtime, Semantics, Tool};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Nothing {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let build = Tool::builder::<Nothing, String>("Builds something large.")
    ///     .semantics(Semantics { backgroundable: true, ..Semantics::read_only() })
    ///     .execute(|_, context| async move {
    ///         context.background(Background { wake: false })?;
    ///         context.progress("half of it is done");
    ///         Ok("built".to_owned())
    ///     })
    ///     .build()?;
    /// let runtime = Runtime::builder().tool("build", build)?.build()?;
    /// let session = runtime.create_session("demo").await?;
    /// let mut watched = runtime.progress();
    /// let portcullis::CallOutcome::Observed(seen) = runtime.call(session, "build", "{}").await? else { unreachable!() };
    /// assert_eq!(seen.session_view().code.known(), Some(Code::BackgroundStarted));
    /// assert_eq!(watched.recv().await?.text, "half of it is done");
    /// let task = seen.session_view().task_id().expect("it is one");
    /// assert_eq!(runtime.task_end(session, task).await?.expect("it ended").text, "built");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn progress(&self) -> broadcast::Receiver<Progress> {
        self.gate.progress()
    }

    /// How a background task ended, from the log, whoever ran it. `None`: there is no such task, or no end of it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn task_end(&self, session: SessionId, task: TaskId) -> Result<Option<TaskCompleted>, StoreError> {
        self.gate.task_end(session, task).await
    }
}
