//! A call that a person waits for and may interrupt.

use portcullis_terminal::render::Term;
use portcullis_terminal::signals::interrupts;
use portcullis_terminal::waiting::{PATIENCE, Spinner};
use tokio_util::sync::CancellationToken;

use crate::exit::{ExitKind, fault};

/// Waits for `work`, saying so in `words` if it takes long. The first Ctrl-C fires `cancel` and waits on,
/// the second leaves.
pub async fn interruptible<T>(
    term: &Term,
    words: &str,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> anyhow::Result<(T, bool)> {
    let mut interrupted = false;
    let mut interrupts = interrupts()?;
    let mut work = std::pin::pin!(work);
    let mut patience = std::pin::pin!(tokio::time::sleep(PATIENCE));
    let mut spinner = None;
    loop {
        tokio::select! {
            done = &mut work => return Ok((done, interrupted)),
            () = &mut patience, if spinner.is_none() => spinner = Some(Spinner::show(term, words)),
            Some(()) = interrupts.recv() => {
                if interrupted {
                    return Err(fault(ExitKind::Interrupted, "left before the call was settled; its session can be resumed"));
                }
                interrupted = true;
                cancel.cancel();
                let say = || term.note("interrupted: waiting for the call to settle; Ctrl-C again leaves at once");
                spinner.as_ref().map_or_else(say, |spinner| spinner.aside(say));
            }
        }
    }
}
