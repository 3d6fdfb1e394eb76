//! What store and election share: the connection, the store's life, and the leadership that was won here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use picket_config::EtcdSettings;
use picket_core::election::Lease;
use picket_core::ids::{Incarnation, Revision, Term};
use picket_core::store::{Guard, StoreError};
use picket_core::time::Clock;
use picket_etcd_api::{Client, Compare, Error, KeyValue, RequestOp, TxnRequest, TxnResponse};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use crate::connection::{Answer, Connection, Fault};
use crate::election::{Candidate, EtcdElection};
use crate::keys::Keys;
use crate::life::{self, Life};
use crate::observer::{self, Observation};
use crate::store::EtcdStore;

/// Fills a buffer with random bytes.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// A leadership that was won here.
#[derive(Clone, Debug)]
pub(crate) struct HeldLeadership {
    pub(crate) term: Term,
    pub(crate) incarnation: Incarnation,
    /// The store's life as it is stored.
    pub(crate) raw_life: Vec<u8>,
    /// When the leader's key came to be: it is ours as long as it is this one.
    pub(crate) revision: i64,
    /// etcd's lease, under which the leader's key stands.
    pub(crate) lease_id: i64,
    /// Our own count of it.
    pub(crate) lease: Arc<Lease>,
}

/// Why the store's own values were not seen.
#[derive(Debug)]
pub(crate) enum LookError {
    /// etcd did not answer, or refused.
    Fault(Fault),
    /// It answered, and the store may not be used.
    Unusable(StoreError),
}

impl From<StoreError> for LookError {
    fn from(error: StoreError) -> Self {
        LookError::Unusable(error)
    }
}

/// etcd, for one gateway. Cheap to clone; what it does in the background ends with the last one. All of its calls want the
/// same tokio runtime.
#[derive(Clone, Debug)]
pub struct Etcd {
    pub(crate) shared: Arc<Shared>,
    /// What goes on in the background; begun by the first that needs it, because only then is there a runtime for sure.
    pub(crate) tasks: Arc<Mutex<Option<JoinSet<()>>>>,
}

pub(crate) struct Shared {
    pub(crate) connection: Connection,
    pub(crate) keys: Keys,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Random,
    life: Mutex<Option<Life>>,
    pub(crate) held: Mutex<Option<HeldLeadership>>,
    /// Leases that are to be given back: of attempts that came to no end that was heard, and of leaderships that were lost.
    pub(crate) leases_to_revoke: Mutex<Vec<i64>>,
    /// The lease of this gateway's own key among the members.
    pub(crate) presence: Mutex<Option<i64>>,
    pub(crate) observation: watch::Sender<Observation>,
    /// Whether somebody looks.
    observed: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("connection", &self.connection)
            .field("prefix", &self.keys.prefix())
            .field("held", &self.held)
            .field("sight", &*self.observation.borrow())
            .finish_non_exhaustive()
    }
}

impl Etcd {
    /// Asks nobody yet: each request makes the connection that it needs, so that a gateway starts while etcd is away. `clock`
    /// counts the leases, `random` mints the store's life and the leases' ids.
    pub fn new(settings: EtcdSettings, clock: Arc<dyn Clock>, random: Random) -> Self {
        let keys = Keys::new(&settings.prefix);
        let observation = watch::Sender::new(Observation::not_yet(clock.wall()));
        let shared = Shared {
            connection: Connection::new(settings),
            keys,
            clock,
            random,
            life: Mutex::default(),
            held: Mutex::default(),
            leases_to_revoke: Mutex::default(),
            presence: Mutex::default(),
            observation,
            observed: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), tasks: Arc::default() }
    }

    /// The store. Its life is not known, and is the nil UUID, until etcd was asked for the first time.
    pub fn store(&self) -> EtcdStore {
        EtcdStore::new(self.clone())
    }

    /// The election in which `candidate` takes part.
    pub fn election(&self, candidate: Candidate) -> EtcdElection {
        EtcdElection::new(self.clone(), candidate)
    }

    /// Connects, looks at every member that can be reached, and makes the store where there is none. Nobody needs to ask for
    /// it; whoever does learns now what is wrong.
    pub async fn look(&self) -> Result<Incarnation, StoreError> {
        Ok(self.shared.life().await?.incarnation)
    }

    /// Looks whether there is a store that may be used, and makes none; `None`: there is nothing yet, and a start makes one.
    ///
    /// # Errors
    /// [`StoreError::Moved`] and [`StoreError::Damaged`]: nobody leads over it until a person mends it. Others: etcd cannot be
    /// asked now; a gateway starts all the same, and waits for it.
    pub async fn check(&self) -> Result<Option<Incarnation>, StoreError> {
        Ok(self.shared.found().await?.map(|life| life.incarnation))
    }

    /// Runs something in the background until the last of us goes.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock();
        let tasks = tasks.get_or_insert_default();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    /// Begins to look who leads and what changes, if nobody does yet.
    pub(crate) fn observe(&self) {
        if !self.shared.observed.swap(true, Ordering::SeqCst) {
            let shared = self.shared.clone();
            self.spawn(async move { observer::observe(shared).await });
        }
    }
}

impl Shared {
    /// The store's life, asked for once.
    pub(crate) async fn life(&self) -> Result<Life, StoreError> {
        if let Some(life) = self.life.lock().clone() {
            return Ok(life);
        }
        self.look().await
    }

    /// The life that was last seen.
    pub(crate) fn incarnation(&self) -> Incarnation {
        self.life.lock().as_ref().map_or_else(|| Incarnation::from(Uuid::nil()), |life| life.incarnation)
    }

    /// Looks what the store says of itself. A store that is not there is made once; one that went is an error ever after.
    pub(crate) async fn look(&self) -> Result<Life, StoreError> {
        self.try_look().await.map_err(|failed| match failed {
            LookError::Fault(fault) => fault.of_a_read(),
            LookError::Unusable(error) => error,
        })
    }

    /// The same, and whether somebody has to mend it.
    pub(crate) async fn try_look(&self) -> Result<Life, LookError> {
        let known = self.life.lock().is_some();
        for _ in 0..2 {
            let fresh = (!known).then(|| Incarnation::mint(self.clock.wall(), self.random()));
            let look = life::look(&self.keys, fresh)?;
            // Making it twice comes to the same: the second finds it made.
            let answer = self.read_txn(look).await.map_err(LookError::Fault)?;
            if let Some(life) = life::found(&self.keys, &answer)? {
                self.connection.lives(&life.raw, life::revision_of(&answer).map_err(LookError::Fault)?);
                *self.life.lock() = Some(life.clone());
                return Ok(life);
            }
            if !answer.succeeded || known {
                break;
            }
            if let Some(fresh) = fresh {
                tracing::info!(prefix = self.keys.prefix(), life = %fresh, "made a new store in etcd");
            }
        }
        Err(LookError::Unusable(StoreError::Damaged(format!(
            "under {} in etcd there is no store, though there was one, or something else stands there: restore it, or name an \
             empty prefix",
            self.keys.prefix()
        ))))
    }

    /// The store's life, where there is a store: none is made.
    pub(crate) async fn look_only(&self) -> Result<Life, StoreError> {
        self.found().await?.ok_or_else(|| {
            StoreError::Unavailable(format!("there is no store under {} in etcd", self.keys.prefix()))
        })
    }

    async fn found(&self) -> Result<Option<Life>, StoreError> {
        let answer = self.read_txn(life::look(&self.keys, None)?).await.map_err(Fault::of_a_read)?;
        life::found(&self.keys, &answer)
    }

    /// The revision of the whole of etcd. With it the life is read anew, which a restore may have changed under us.
    pub(crate) async fn newest(&self) -> Result<Revision, StoreError> {
        let answer = self.read_txn(life::look(&self.keys, None)?).await.map_err(Fault::of_a_read)?;
        let life = life::found(&self.keys, &answer)?;
        let gone = || StoreError::Damaged(format!("the store under {} in etcd is gone", self.keys.prefix()));
        let (life, revision) =
            (life.ok_or_else(gone)?, life::revision_of(&answer).map_err(Fault::of_a_read)?);
        self.connection.lives(&life.raw, revision);
        *self.life.lock() = Some(life);
        Ok(Revision(u64::try_from(revision).unwrap_or(0)))
    }

    /// Asks a transaction that may be asked again.
    pub(crate) async fn read_txn(&self, txn: TxnRequest) -> Result<TxnResponse, Fault> {
        self.connection
            .read(|client: Client| {
                let txn = txn.clone();
                async move { client.txn(txn).await }
            })
            .await
    }

    /// The leadership under which `guard` writes, if it is the one that is held here.
    pub(crate) fn held_for(&self, guard: Guard) -> Result<HeldLeadership, StoreError> {
        let held = self.held.lock().clone();
        let Some(held) = held else {
            return Err(StoreError::Deposed(format!("it led in term {}, and leads no more", guard.term)));
        };
        if guard.incarnation != held.incarnation {
            return Err(StoreError::Deposed(format!(
                "it led in the store's life {}, and this is {}",
                guard.incarnation, held.incarnation
            )));
        }
        if guard.term != held.term {
            return Err(StoreError::Deposed(format!(
                "it led in term {}, and term {} has begun",
                guard.term, held.term
            )));
        }
        Ok(held)
    }

    /// What every write and every check compares (S6).
    pub(crate) fn guards(&self, held: &HeldLeadership) -> Result<Vec<Compare>, StoreError> {
        Ok(vec![
            Compare::create_revision(self.keys.leader(), held.revision),
            Compare::value(self.keys.term(), life::term_bytes(held.term)?),
            Compare::value(self.keys.incarnation(), held.raw_life.clone()),
            Compare::version(self.keys.marked(), 0),
        ])
    }

    /// What is read where a guarded write was refused, in the order of [`Shared::guard_says`].
    pub(crate) fn guard_reads(&self) -> Vec<RequestOp> {
        let own = [self.keys.leader(), self.keys.term(), self.keys.incarnation(), self.keys.marked()];
        own.into_iter().map(RequestOp::get).collect()
    }

    /// Why a guard does not hold; `Ok`: it does. Takes its own from `read`, and leaves what comes after.
    pub(crate) fn guard_says(
        &self,
        held: &HeldLeadership,
        read: &mut impl Iterator<Item = Option<KeyValue>>,
    ) -> Result<(), StoreError> {
        let mut next = || read.next().unwrap_or_default();
        let (leader, term, incarnation, marked) = (next(), next(), next(), next());
        if let Some(refusal) = life::refusal(&self.keys, false, marked.as_ref()) {
            return Err(StoreError::Deposed(refusal.to_string()));
        }
        let missing =
            |what| StoreError::Damaged(format!("the store's own value {what:?} is missing from etcd"));
        let incarnation = incarnation.ok_or_else(|| missing("incarnation"))?;
        if incarnation.value != held.raw_life {
            let found = life::incarnation_of(&incarnation.value)?;
            return Err(StoreError::Deposed(format!(
                "it led in the store's life {}, and this is {found}",
                held.incarnation
            )));
        }
        let found = life::term_of(&term.ok_or_else(|| missing("term"))?.value)?;
        if found != held.term {
            return Err(StoreError::Deposed(format!(
                "it led in term {}, and term {found} has begun",
                held.term
            )));
        }
        match leader {
            Some(leader) if leader.create_revision == held.revision => Ok(()),
            _ => Err(StoreError::Deposed(format!("its lease of term {} in etcd is over", held.term))),
        }
    }

    /// So many random bytes.
    pub(crate) fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.random)(&mut bytes);
        bytes
    }

    /// Whether the leadership of `revision` is held here, and was not given up.
    pub(crate) fn holds(&self, revision: i64) -> bool {
        self.held.lock().as_ref().is_some_and(|held| held.revision == revision)
    }

    /// Ends the leadership of `revision`, if it is still the one that is held here.
    pub(crate) fn lose(&self, revision: i64, why: &str) {
        let mut held = self.held.lock();
        if let Some(lost) = held.take_if(|held| held.revision == revision) {
            lost.lease.end();
            self.leases_to_revoke.lock().push(lost.lease_id);
            tracing::warn!(term = lost.term.0, why, "leads no more");
        }
    }

    /// Asks `ask` of a member, and of the next one where it does not answer within `patience`.
    pub(crate) async fn ask_within<T, F>(
        &self,
        patience: Duration,
        ask: impl Fn(Client) -> F + Send + Sync,
    ) -> Result<T, Fault>
    where
        T: Answer,
        F: Future<Output = Result<T, Error>> + Send,
    {
        self.connection.read_within(patience, ask).await
    }
}
