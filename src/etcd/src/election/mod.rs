//! The election: who leads, and who takes part.

mod eligibility;
mod fleet;
mod lease;
mod presence;
mod settings;
mod values;
mod win;

use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use picket_core::election::{Digests, Election, ElectionError, Known, Member, Won};
use picket_core::store::StoreError;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::connection::Fault;
use crate::shared::{Etcd, Shared};
pub use eligibility::short;
pub use settings::AcceptedSettings;
pub use values::Candidate;
pub(crate) use values::{LeaderValue, MemberValue};
use win::Attempt;

/// How long is waited for news before an attempt is made anew that failed, or could not be made.
const AGAIN: Duration = Duration::from_millis(250);

/// Takes part for one gateway. Only one of an [`Etcd`] makes sense.
#[derive(Debug)]
pub struct EtcdElection {
    etcd: Etcd,
    candidate: Candidate,
    /// The digest of the settings, which a reload changes; empty until it was said.
    digest: watch::Sender<String>,
    /// Why the engine does not let it stand.
    set_aside: Mutex<Option<String>>,
    /// Why it may not stand by itself.
    aside: Mutex<Option<String>>,
    /// What is told of it to the others, and the task that does.
    said: watch::Sender<MemberValue>,
    present: Mutex<Option<AbortHandle>>,
}

impl EtcdElection {
    pub(crate) fn new(etcd: Etcd, candidate: Candidate) -> Self {
        let said = MemberValue {
            endpoints: candidate.me.endpoints.clone(),
            version: candidate.me.version.clone(),
            digest: String::new(),
            aside: None,
        };
        Self {
            etcd,
            digest: watch::Sender::new(String::new()),
            candidate,
            set_aside: Mutex::default(),
            aside: Mutex::default(),
            said: watch::Sender::new(said),
            present: Mutex::default(),
        }
    }

    /// Stores the digest of a leader's settings, so that whoever has not got them yet does not stand.
    async fn store_digest(&self, digest: &str) -> Result<(), StoreError> {
        let shared = &self.etcd.shared;
        let held = shared.held.lock().clone();
        match held {
            Some(held) => fleet::store(shared, &held, digest).await,
            None => Ok(()),
        }
    }

    /// Says of itself what is so now.
    fn tell(&self) {
        let aside = self.set_aside.lock().clone().or_else(|| self.aside.lock().clone());
        let digest = self.digest.borrow().clone();
        self.said.send_if_modified(|said| {
            let value = MemberValue { aside, digest, ..said.clone() };
            let news = *said != value;
            *said = value;
            news
        });
    }

    fn may_not_stand(&self, why: Option<String>) {
        let news = {
            let mut aside = self.aside.lock();
            let news = *aside != why;
            aside.clone_from(&why);
            news
        };
        if news {
            match why {
                Some(why) => tracing::warn!(why, "does not stand for leadership"),
                None => tracing::info!("stands for leadership"),
            }
            self.tell();
        }
    }

    fn begin(&self) {
        self.etcd.observe();
        let mut present = self.present.lock();
        if present.is_none() {
            let (shared, said) = (self.etcd.shared.clone(), self.said.subscribe());
            let (gateway, lease) = (self.candidate.me.gateway.clone(), self.candidate.lease);
            *present = Some(self.etcd.spawn(presence::be_there(shared, gateway, lease, said)));
        }
    }

    /// Ends what is held, here at once and in etcd as fast as it answers.
    async fn end(&self) -> Result<(), Fault> {
        let shared = &self.etcd.shared;
        let held = shared.held.lock().take();
        if let Some(held) = &held {
            held.lease.end();
        }
        let mut ids = std::mem::take(&mut *shared.leases_to_revoke.lock());
        ids.extend(held.map(|held| held.lease_id));
        ids.sort_unstable();
        ids.dedup();
        let revoked = join_all(ids.iter().map(|id| lease::revoke(shared, *id))).await;
        revoked.into_iter().collect()
    }
}

#[async_trait]
impl Election for EtcdElection {
    /// Stands whenever nobody leads and it may; waits while it may not, and while etcd is away. An error is what somebody has
    /// to mend: an old etcd, a wrong password, a damaged store.
    async fn campaign(&self) -> Result<Won, ElectionError> {
        self.begin();
        // What was won before and not given up would bar the way for as long as its lease.
        if let Err(fault) = self.end().await {
            tracing::debug!(why = %fault, "a former leadership was not given back: it ends by itself");
        }
        let shared: &Shared = &self.etcd.shared;
        let mut observation = shared.observation.subscribe();
        let mut digest = self.digest.subscribe();
        loop {
            let seen = observation.borrow_and_update().clone();
            let own = digest.borrow_and_update().clone();
            let mut wait = None;
            match &seen.away {
                Some(away) if away.refused => return Err(ElectionError::Unavailable(away.why.clone())),
                Some(_) => {}
                None => {
                    let aside = eligibility::refusal(&self.candidate, &own, &seen);
                    let may = aside.is_none();
                    self.may_not_stand(aside);
                    if may && seen.leader.is_none() {
                        wait = Some(AGAIN);
                        match self.attempt(&own).await {
                            Ok(Attempt::Won(won)) => {
                                // Heard: from here on the leadership itself is what has to be given back.
                                self.etcd.shared.leases_to_revoke.lock().clear();
                                tracing::info!(term = won.term.0, "won leadership");
                                return Ok(won);
                            }
                            Ok(Attempt::NotNow(why)) => tracing::debug!(why, "did not win leadership"),
                            Err(error @ (StoreError::Damaged(_) | StoreError::Moved(_))) => {
                                return Err(ElectionError::Unavailable(error.to_string()));
                            }
                            Err(error) => tracing::warn!(%error, "could not stand for leadership"),
                        }
                    }
                }
            }
            let news = async {
                tokio::select! {
                    biased;
                    _ = observation.changed() => {}
                    _ = digest.changed() => {}
                }
            };
            match wait {
                Some(pause) => drop(timeout(pause, news).await),
                None => news.await,
            }
        }
    }

    /// At once here; in etcd within one round trip where it answers. An error says that a successor waits for the lease.
    async fn resign(&self) -> Result<(), ElectionError> {
        self.end().await.map_err(|fault| ElectionError::Unavailable(fault.to_string()))
    }

    /// The key of a gateway that has stopped would stand for twice a lease, and a leader that stops meanwhile would leave its nodes to nobody.
    async fn leave(&self) -> Result<(), ElectionError> {
        // The task would write the key anew.
        if let Some(task) = self.present.lock().take() {
            task.abort();
        }
        self.etcd.shared.leases_to_revoke.lock().extend(self.etcd.shared.presence.lock().take());
        self.resign().await
    }

    fn me(&self) -> Member {
        Member { aside: self.said.borrow().aside.clone(), ..self.candidate.me.clone() }
    }

    fn known(&self) -> Known {
        let observation = self.etcd.shared.observation.borrow();
        if let Some(away) = &observation.away {
            return Known::Away(observation.since, away.why.clone());
        }
        match &observation.leader {
            Some(leader) => {
                let value = &leader.value;
                Known::Leader(value.member(observation.members.get(&value.gateway)), value.term)
            }
            None => Known::Nobody(observation.since),
        }
    }

    fn others(&self) -> Vec<Member> {
        let observation = self.etcd.shared.observation.borrow();
        let others = observation.members.iter().filter(|(gateway, _)| **gateway != self.candidate.me.gateway);
        others.map(|(gateway, member)| member.member(gateway)).collect()
    }

    fn digests(&self) -> Digests {
        let observation = self.etcd.shared.observation.borrow();
        let me = &self.candidate.me.gateway;
        let others = observation.members.iter().filter(|(gateway, _)| *gateway != me);
        Digests {
            own: self.digest.borrow().clone(),
            led_by: observation.digest.clone().unwrap_or_default(),
            others: others.map(|(gateway, member)| (gateway.clone(), member.digest.clone())).collect(),
        }
    }

    /// An error says that a leader's is not stored yet, or may not be: it is as soon as etcd takes it.
    async fn set_fleet(&self, digest: &str) -> Result<(), ElectionError> {
        self.digest.send_replace(digest.to_owned());
        self.tell();
        self.store_digest(digest).await.map_err(|error| ElectionError::Unavailable(error.to_string()))
    }

    fn set_aside(&self, why: Option<String>) {
        *self.set_aside.lock() = why;
        self.tell();
    }
}
