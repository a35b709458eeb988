//! What a run is like. Everything follows from the seed, and a failure prints all of it.

use std::time::Duration;

use crate::dice::Dice;

/// What becomes of hints that something was committed (F12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    Kept,
    /// None ever arrives.
    Dropped,
    /// Each arrives ten times.
    Doubled,
    /// Each arrives some time later, after others that came after it.
    Late,
}

/// The derived options of a seed.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    pub workers: usize,
    pub sessions: usize,
    /// Tenants that share the store; the sessions are theirs in turn.
    pub tenants: usize,
    /// Of a hundred times that a person queues a call: how often the session makes a child or tells another something
    /// beside it.
    pub posts: u64,
    /// Calls that workers make and people queue, in all; the run heals when they are used up.
    pub calls: u64,
    /// The longest the troubled part lasts, on the virtual clock.
    pub span: Duration,
    pub ask_expiry: Duration,
    /// Of a hundred store calls: not done at all, and done without an answer.
    pub refused: u64,
    pub unanswered: u64,
    /// The longest a store call is under way, each direction.
    pub delay_ms: u64,
    /// Of a hundred troubles: how many are of each kind; what is left is a pause.
    pub kills: u64,
    pub cuts: u64,
    pub interrupts: u64,
    pub store_jumps: u64,
    pub worker_jumps: u64,
    /// Whether the death of a killed process is proven at once, or only its lease's end tells.
    pub proven_deaths: bool,
    pub hints: Hints,
    /// Workers only do what others queue or answer: they make no calls of their own and choose no session.
    pub only_the_queue: bool,
}

impl Options {
    /// The options of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let dice = Dice::of(seed, "options");
        // A third of the runs has no store faults, a third no clock jumps, and so on: a fault that hides
        // behind another one is found without it.
        let some = |of: &[u64]| if dice.chance(33) { 0 } else { dice.pick(of) };
        Self {
            seed,
            workers: dice.between(2, 5) as usize,
            sessions: dice.pick(&[1, 2, 3, 5, 8, 20]),
            calls: dice.between(10, 60),
            span: Duration::from_secs(dice.between(60, 400)),
            ask_expiry: Duration::from_secs(dice.pick(&[5, 30, 120, 3_600])),
            refused: some(&[1, 3, 8]),
            unanswered: some(&[1, 3, 8]),
            delay_ms: some(&[3, 40, 400, 3_000]),
            kills: some(&[10, 25]),
            cuts: some(&[10, 25]),
            interrupts: some(&[10, 25]),
            store_jumps: some(&[5, 15]),
            worker_jumps: some(&[5, 15]),
            proven_deaths: dice.chance(50),
            hints: dice.pick(&[Hints::Kept, Hints::Kept, Hints::Dropped, Hints::Doubled, Hints::Late]),
            only_the_queue: dice.chance(15),
            tenants: dice.pick(&[1, 1, 2, 3]),
            posts: some(&[15, 40]),
        }
    }

    /// The same without any fault: what only hints change is seen by itself (F12).
    #[must_use]
    pub fn calm(mut self) -> Self {
        self.refused = 0;
        self.unanswered = 0;
        self.delay_ms = 0;
        self.kills = 0;
        self.cuts = 0;
        self.interrupts = 0;
        self.store_jumps = 0;
        self.worker_jumps = 0;
        self
    }
}
