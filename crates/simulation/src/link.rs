//! The line between one process and the rest of the world. A process that is dead reaches nothing any more: no
//! store, no tool's effect. That is all of a crash that anybody else could see.

use tokio::sync::watch;

/// How the line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    Up,
    /// Nothing gets through for now; what was sent arrives late. Effects that need no store go on.
    Cut,
    /// The process was killed. There is no way back.
    Dead,
}

/// One process's line.
#[derive(Debug)]
pub struct Link {
    line: watch::Sender<Line>,
    /// How often it was cut: an answer that was under way then is lost.
    cuts: std::sync::atomic::AtomicU64,
}

impl Default for Link {
    fn default() -> Self {
        Self { line: watch::Sender::new(Line::Up), cuts: std::sync::atomic::AtomicU64::new(0) }
    }
}

impl Link {
    /// Changes the line. The dead stay dead.
    pub fn set(&self, line: Line) {
        let changed = self.line.send_if_modified(|now| {
            let changes = *now != Line::Dead && *now != line;
            if changes {
                *now = line;
            }
            changes
        });
        if changed && line == Line::Cut {
            self.cuts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }

    #[must_use]
    pub fn cuts(&self) -> u64 {
        self.cuts.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Waits until the line is up; for ever if the process is dead.
    pub async fn up(&self) {
        self.when(|line| line == Line::Up).await;
    }

    /// Waits until what was sent gets through: it does so even if its sender died meanwhile.
    pub async fn through(&self) {
        self.when(|line| line != Line::Cut).await;
    }

    /// Waits for ever if the process is dead; a cut does not hold up what needs no store.
    pub async fn alive(&self) {
        self.when(|line| line != Line::Dead).await;
    }

    async fn when(&self, is: impl Fn(Line) -> bool) {
        // The sender is ours, so the wait ends only with the condition.
        let _ = self.line.subscribe().wait_for(|line| is(*line)).await;
    }
}
