//! Portcullis inside another program: no server, no database, nothing global.

use portcullis::{CallOutcome, DefaultPolicy, Reply, Runtime, Semantics, SideEffect, Tool, ToolFailure};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// What to order.
    item: String,
    count: u32,
}

fn order_tool() -> Tool {
    Tool::builder::<Order, String>("Orders something from the shop.")
        .semantics(Semantics { default_policy: DefaultPolicy::Ask, ..Semantics::mutating() })
        .execute(|order, context| async move {
            if order.count == 0 {
                return Err(ToolFailure::new("empty_order", "an order needs at least one piece"));
            }
            let target = format!("{} × {}", order.count, order.item);
            let (kind, reversible) = ("order_placed".to_owned(), false);
            context.did(SideEffect { kind, target: target.clone(), before: None, after: None, reversible });
            Ok(format!("ordered {target}"))
        })
        .build()
        .expect("the tool does not contradict itself")
}

fn slow_tool() -> Tool {
    Tool::builder::<Order, String>("Counts for ever.")
        .semantics(Semantics::read_only())
        .execute(|_, context| async move {
            context.cancelled().await;
            Ok("never told".to_owned())
        })
        .build()
        .expect("the tool does not contradict itself")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder()
        .tool("order", order_tool())?
        .tool("slow", slow_tool())?
        // The approver sees facts and answers; here, tea is always fine.
        .approver(|ask| async move { if ask.facts["input"]["item"] == "tea" { Reply::AllowOnce } else { Reply::Deny } })
        .build()?;
    let session = runtime.create_session("shop").await?;
    for (tool, input) in [("order", r#"{"item":"tea","count":2}"#), ("order", r#"{"item":"a yacht","count":1}"#)] {
        let CallOutcome::Observed(seen) = runtime.call(session, tool, input).await? else { continue };
        println!("{}", seen.model_view());
    }
    let running = runtime.begin(session, "slow", r#"{"item":"sheep","count":1}"#);
    running.cancel();
    let CallOutcome::Observed(seen) = running.outcome().await? else { return Err("it does not ask".into()) };
    assert!(!seen.ok(), "a cancelled call is never a success");
    println!("{}", seen.model_view());
    Ok(())
}
