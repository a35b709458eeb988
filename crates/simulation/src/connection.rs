//! A store as one process reaches it: late, cut off, refused or left without an answer, as the seed wants.

use std::sync::Arc;
use std::time::Duration;

use portcullis_base::{EventId, TenantId};
use portcullis_store::{
    Claim, Commit, Committed, Fairness, Lease, LeaseOwner, Log as _, MemoryStore, Queue as _, SessionKey, StoreError,
    Topic,
};
use portcullis_store_testkit::{StoreCall, StoreWork, StoreWrapper, Wrapped};
use tokio::sync::watch;

use crate::dice::Dice;
use crate::ground::Ground;
use crate::link::Link;

/// One process's way to the store.
pub struct Connection {
    ground: Arc<Ground>,
    link: Arc<Link>,
    dice: Dice,
}

/// The answer of the store to one request.
type StoreResult<T> = Result<T, StoreError>;

impl Connection {
    /// The way of the process `name`.
    #[must_use]
    pub fn new(ground: &Arc<Ground>, link: &Arc<Link>, name: &str) -> Wrapped<Self> {
        let dice = Dice::of(ground.options.seed, &format!("connection {name}"));
        Wrapped(Self { ground: Arc::clone(ground), link: Arc::clone(link), dice })
    }

    async fn travel(&self) {
        let most = self.ground.options.delay_ms;
        // Most of what is sent arrives at once; a network is not evenly slow.
        if most > 0 && self.dice.chance(40) {
            tokio::time::sleep(Duration::from_millis(self.dice.between(1, most))).await;
        }
    }
}

impl StoreWrapper for Connection {
    type Inner = MemoryStore;

    fn inside(&self) -> &MemoryStore {
        &self.ground.store
    }

    /// One request and its answer. A request arrives even if its sender died meanwhile; a dead process hears no answer. A
    /// lost answer leaves the caller of a write in doubt.
    async fn around<T: Send>(&self, call: StoreCall, work: impl StoreWork<T>) -> StoreResult<T> {
        self.link.up().await;
        if !self.ground.is_stormy() {
            return work.await;
        }
        let (options, cuts) = (&self.ground.options, self.link.cuts());
        let (refused, unanswered) = (self.dice.chance(options.refused), self.dice.chance(options.unanswered));
        self.travel().await;
        if refused {
            self.link.up().await;
            return Err(StoreError::Unavailable("a fault of the simulation".to_owned()));
        }
        self.link.through().await;
        let answer = work.await;
        self.travel().await;
        self.link.up().await;
        if call != StoreCall::Read && (unanswered || cuts != self.link.cuts()) {
            return Err(StoreError::Ambiguous("a fault of the simulation".to_owned()));
        }
        answer
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.ground.listeners.join()
    }

    fn changes_of(&self, _: Topic) -> watch::Receiver<u64> {
        self.ground.listeners.join()
    }

    async fn commit(&self, commit: Commit) -> StoreResult<Committed> {
        let (key, writer) = (commit.key, commit.writer.clone());
        let ids: Vec<EventId> = commit.events.iter().map(|draft| draft.id).collect();
        let work = async {
            let committed = self.ground.store.commit(commit).await?;
            if let Some(head) = self.ground.store.head(key).await? {
                self.ground.oracle.committed(key, &writer, &head, &committed);
            }
            self.ground.listeners.tell();
            Ok(committed)
        };
        self.ground.oracle.sent(key, &ids);
        let answer = self.around(StoreCall::Append, work).await;
        self.ground.oracle.told(&ids, &answer);
        answer
    }

    async fn claim(&self, tenant: TenantId, owner: LeaseOwner, limit: usize, ttl: Duration) -> StoreResult<Vec<Claim>> {
        let work = async {
            let claims = self.ground.store.claim(tenant, owner, limit, ttl).await?;
            let granted = claims.iter().cloned().filter_map(Claim::granted);
            granted.for_each(|lease| self.ground.oracle.taken_up(lease.session));
            Ok(claims)
        };
        self.around(StoreCall::Claim, work).await
    }

    async fn claim_any(
        &self,
        owner: LeaseOwner,
        limit: usize,
        ttl: Duration,
        fairness: Fairness,
    ) -> StoreResult<Vec<(SessionKey, Lease)>> {
        let work = async {
            let leases = self.ground.store.claim_any(owner, limit, ttl, fairness).await?;
            leases.iter().for_each(|(key, _)| self.ground.oracle.taken_up(key.session));
            Ok(leases)
        };
        self.around(StoreCall::Claim, work).await
    }

    async fn release(&self, key: SessionKey, fence: u64, idle_at: Option<u64>) -> StoreResult<()> {
        let work = async {
            self.ground.store.release(key, fence, idle_at).await?;
            self.ground.check_given_back(key).await
        };
        self.around(StoreCall::Release, work).await
    }
}
