//! Hints on their way to one process: lost, doubled or out of order (F12). The tables are the truth; whoever waits
//! for a hint looks again after a while.

use std::sync::Arc;
use std::time::Duration;

use portcullis_store::Notices as _;
use tokio::sync::watch;

use crate::dice::Dice;
use crate::ground::Ground;
use crate::options::Hints;

/// The hints of the store as one process gets them.
#[must_use]
pub fn relayed(ground: &Arc<Ground>, dice: Dice) -> watch::Receiver<u64> {
    let mut from = ground.store.changes();
    let (to, heard) = watch::channel(0);
    match ground.options.hints {
        Hints::Kept => return from,
        Hints::Dropped => {
            // The sender lives on: a channel that closed would be a hint, too.
            tokio::spawn(async move {
                let _to = to;
                std::future::pending::<()>().await;
            });
        }
        Hints::Doubled => {
            tokio::spawn(async move {
                while from.changed().await.is_ok() {
                    for _ in 0..10 {
                        to.send_modify(|n| *n += 1);
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        Hints::Late => {
            let to = Arc::new(to);
            tokio::spawn(async move {
                while from.changed().await.is_ok() {
                    let (seen, to) = (*from.borrow_and_update(), Arc::clone(&to));
                    let pause = Duration::from_millis(dice.between(1, 3_000));
                    tokio::spawn(async move {
                        tokio::time::sleep(pause).await;
                        to.send_replace(seen);
                    });
                }
            });
        }
    }
    heard
}
