//! A store that fails on order: the N-th call that writes goes wrong in one of four ways (F2).

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_store::{Store, StoreError};

use crate::{StoreCall, StoreWork, StoreWrapper, Wrapped};

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing is written, the caller is told so and lives on.
    ErrorBefore,
    /// It is written, but the answer is lost: the caller hears [`StoreError::Ambiguous`].
    ErrorAfter,
    /// The process dies before the call.
    CrashBefore,
    /// The process dies after the call took effect.
    CrashAfter,
}

impl FaultKind {
    /// Every way, for enumerations.
    pub const ALL: [Self; 4] = [Self::ErrorBefore, Self::ErrorAfter, Self::CrashBefore, Self::CrashAfter];
}

/// Which call goes wrong, counted from 1 over the calls that a fault can strike: appends, the calls of the queue and the
/// search index catching up. Reads and rows outside a log fail only after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub nth: u64,
    pub kind: FaultKind,
}

/// What others do while a call is on its way.
type Interlude = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Fails as planned. After a crash every call fails: build a new pipeline over the inner store.
pub type FaultyStore<S> = Wrapped<FaultInjector<S>>;

/// The plan of a [`FaultyStore`], and how far it got.
pub struct FaultInjector<S: ?Sized> {
    inner: Arc<S>,
    plan: Option<Fault>,
    calls: AtomicU64,
    crashed: AtomicBool,
    closed: AtomicBool,
    interlude: Mutex<Option<Interlude>>,
}

impl<S: Store + ?Sized> FaultyStore<S> {
    /// Without a `plan` it only counts.
    #[must_use]
    pub fn new(inner: Arc<S>, plan: Option<Fault>) -> Self {
        let (crashed, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        Wrapped(FaultInjector { inner, plan, calls: AtomicU64::new(0), crashed, closed, interlude: Mutex::default() })
    }
}

impl<S: Store + ?Sized> FaultInjector<S> {
    /// How many calls were made that a fault can strike.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// While closed nothing is written, and every such call is told so, as on a full disk.
    pub fn close(&self, closed: bool) {
        self.closed.store(closed, Ordering::SeqCst);
    }

    /// `interlude` happens between the next such call and its effect.
    pub fn before_next<F: Future<Output = ()> + Send + 'static>(&self, interlude: impl FnOnce() -> F + Send + 'static) {
        let interlude: Interlude = Box::new(|| Box::pin(interlude()));
        *self.interlude.lock().unwrap_or_else(PoisonError::into_inner) = Some(interlude);
    }

    /// Whether the planned call happened: an enumeration ends with the first N for which it did not.
    #[must_use]
    pub fn struck(&self) -> bool {
        self.plan.is_some_and(|fault| fault.nth <= self.calls())
    }

    /// Whether the process is dead.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.crashed.load(Ordering::SeqCst)
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.has_crashed() {
            return Err(StoreError::Unavailable("crashed".to_owned()));
        }
        Ok(())
    }

    /// Counts the call and lets it go wrong if it is the planned one.
    async fn strike<T>(&self, work: impl StoreWork<T>) -> Result<T, StoreError> {
        let nth = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if self.closed.load(Ordering::SeqCst) {
            return Err(StoreError::DiskFull { free: 0, needed: 1 });
        }
        let interlude = self.interlude.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(interlude) = interlude {
            interlude().await;
        }
        let Some(fault) = self.plan.filter(|fault| fault.nth == nth) else {
            return work.await;
        };
        match fault.kind {
            FaultKind::ErrorBefore => Err(StoreError::Unavailable("planned fault".to_owned())),
            FaultKind::ErrorAfter => {
                work.await?;
                Err(StoreError::Ambiguous("planned fault".to_owned()))
            }
            FaultKind::CrashBefore => {
                self.crashed.store(true, Ordering::SeqCst);
                self.alive()?;
                work.await
            }
            FaultKind::CrashAfter => {
                let answer = work.await;
                self.crashed.store(true, Ordering::SeqCst);
                self.alive()?;
                answer
            }
        }
    }
}

impl<S: Store + ?Sized> StoreWrapper for FaultInjector<S> {
    type Inner = S;

    fn inside(&self) -> &S {
        &self.inner
    }

    async fn around<T: Send>(&self, call: StoreCall, work: impl StoreWork<T>) -> Result<T, StoreError> {
        self.alive()?;
        match call {
            StoreCall::Read | StoreCall::Put => work.await,
            StoreCall::Append | StoreCall::Claim | StoreCall::Renew | StoreCall::Release | StoreCall::Upkeep => {
                self.strike(work).await
            }
        }
    }
}
