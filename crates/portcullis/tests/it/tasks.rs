//! Background tasks as an embedder has them.

use std::sync::Arc;
use std::time::Duration;

use portcullis::{
    Background, CallOutcome, CancellationToken, Code, DefaultPolicy, Exit, Observed, Runtime, Semantics, SessionId,
    Tool,
};
use tokio::sync::Notify;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

pub fn job(leave: &Arc<Notify>) -> Tool {
    let leave = Arc::clone(leave);
    Tool::builder::<Nothing, String>("A job.")
        .semantics(Semantics { backgroundable: true, default_policy: DefaultPolicy::Allow, ..Semantics::read_only() })
        .execute(move |_, context| {
            let leave = Arc::clone(&leave);
            async move {
                context.spool("out").write(b"so far").expect("kept");
                context.background(Background::default())?;
                tokio::select! {
                    () = leave.notified() => Ok("the result".to_owned()),
                    _ = context.cancelled() => Ok("stopped".to_owned()),
                }
            }
        })
        .build()
        .expect("a sound tool")
}

async fn world(leave: &Arc<Notify>) -> (Runtime, SessionId) {
    let runtime = Runtime::builder().tool("job", job(leave)).expect("a name").build().expect("builds");
    let session = runtime.create_session("x").await.expect("made");
    (runtime, session)
}

fn observed(outcome: CallOutcome) -> Observed {
    let CallOutcome::Observed(seen) = outcome else { panic!("{outcome:?}") };
    seen.session_view().clone()
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_task_it_became_and_a_cancel_ends_it() {
    let leave = Arc::new(Notify::new());
    let (runtime, session) = world(&leave).await;
    let running = runtime.begin(session, "job", "{}");
    let (seen, ()) = tokio::join!(running.outcome(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        leave.notify_one();
    });
    let seen = observed(seen.expect("told"));
    let end = runtime.task_end(session, seen.task_id().expect("a task")).await.expect("read").expect("it ended");
    assert_eq!((end.exit, end.text.as_str()), (Exit::Ok, "the result"));

    let running = runtime.begin(session, "job", "{}");
    let cancel = running.canceller();
    let (seen, ()) = tokio::join!(running.outcome(), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    let seen = observed(seen.expect("told"));
    assert_eq!(seen.code.known(), Some(Code::BackgroundStarted), "it was settled before");
    let end = runtime.task_end(session, seen.task_id().expect("a task")).await.expect("read").expect("it ended");
    assert_eq!((end.exit, end.text.as_str()), (Exit::Cancelled, "so far"));
}

#[tokio::test]
async fn in_a_session_that_is_served_a_task_goes_on_between_calls() {
    let leave = Arc::new(Notify::new());
    let (runtime, session) = world(&leave).await;
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let (runtime, stop) = (runtime.clone(), stop.clone());
        async move { runtime.serve(session, &stop).await }
    });
    let call = async |tool: &str, input: String| observed(runtime.call(session, tool, &input).await.expect("told"));
    let task = call("job", "{}".to_owned()).await.task_id().expect("a task");
    let input = format!(r#"{{"task_id":"{task}"}}"#);
    let seen = call("task_output", input.clone()).await;
    assert_eq!((seen.ok, seen.content[0].text.as_deref()), (true, Some("so far")), "{}", seen.summary);
    leave.notify_one();
    let seen = call("task_wait", input).await;
    assert_eq!(seen.content[0].text.as_deref(), Some("the result"));

    // What still runs when nobody serves any more is ended and recorded.
    let task = call("job", "{}".to_owned()).await.task_id().expect("a task");
    stop.cancel();
    serving.await.expect("no panic").expect("served");
    let end = runtime.task_end(session, task).await.expect("read").expect("it ended");
    assert_eq!(end.exit, Exit::Cancelled);
}
