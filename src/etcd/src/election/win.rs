//! Winning: the leader's key, the next term and what binds successors, in one transaction.

use picket_core::election::{Lease, Won};
use picket_core::store::StoreError;
use picket_etcd_api::{Compare, KeyValue, PutRequest, RequestOp, TxnRequest};
use uuid::Builder;

use super::EtcdElection;
use super::{eligibility, fleet, lease};
use crate::connection::{Fault, Version};
use crate::election::LeaderValue;
use crate::life::{self, gets, revision_of};
use crate::observer::Observation;
use crate::shared::HeldLeadership;

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Attempt {
    Won(Won),
    /// Somebody else was faster, or it may not stand: what is seen will say.
    NotNow(String),
}

impl EtcdElection {
    /// One attempt, after which either everything is ours or nothing.
    pub(super) async fn attempt(&self, digest: &str) -> Result<Attempt, StoreError> {
        let (shared, candidate) = (&self.etcd.shared, &self.candidate);
        let life = shared.look().await?;
        let read = self.binding().await.map_err(Fault::of_a_read)?;
        if let Some(why) = eligibility::refusal(candidate, digest, &read.observation) {
            return Ok(Attempt::NotNow(why));
        }
        if read.leader {
            return Ok(Attempt::NotNow("another gateway leads".to_owned()));
        }

        let lease_id = lease::new_id(shared);
        // From here on `resign` gives it back, also where this attempt is dropped before it ends.
        self.etcd.shared.leases_to_revoke.lock().push(lease_id);
        let asked = shared.clock.boot();
        let ttl = match lease::grant(shared, lease_id, candidate.lease).await {
            Ok(ttl) => ttl,
            Err(fault) => {
                self.give_up(lease_id).await;
                return Err(fault.of_a_read());
            }
        };
        let until = asked + ttl.saturating_sub(lease::margin(ttl));

        let term = life.term.next();
        let value = LeaderValue {
            term,
            gateway: candidate.me.gateway.clone(),
            endpoints: candidate.me.endpoints.clone(),
            version: candidate.me.version.clone(),
            campaign: Builder::from_random_bytes(shared.random()).into_uuid().to_string(),
        };
        let value = serde_json::to_vec(&value).map_err(|error| {
            StoreError::Unavailable(format!("the leader's key cannot be written: {error}"))
        })?;
        let names = &shared.keys;
        let compares = vec![
            Compare::version(names.leader(), 0),
            Compare::mod_revision(names.term(), life.term_revision),
            Compare::value(names.incarnation(), life.raw.clone()),
            Compare::version(names.marked(), 0),
            Compare::version(names.filling(), 0),
            Compare::mod_revision(names.digest(), read.digest_at),
            Compare::mod_revision(names.least_version(), read.least_at),
        ];
        let mut puts = vec![
            PutRequest { key: names.leader(), value, lease: lease_id }.into(),
            RequestOp::put(names.term(), life::term_bytes(term)?),
        ];
        if !digest.is_empty() && read.observation.digest.as_deref() != Some(digest) {
            puts.push(RequestOp::put(names.digest(), digest));
        }
        let least = read.observation.least_version.as_deref().and_then(Version::parse);
        if let Some(own) = candidate.least_version.filter(|own| least.is_none_or(|least| least < *own)) {
            puts.push(RequestOp::put(names.least_version(), own.to_string()));
        }
        let txn = TxnRequest::default().when(compares).and_then(puts);
        let answer = match shared.connection.commit(txn).await {
            Ok(answer) if answer.succeeded => answer,
            other => {
                // Also where it is not known whether it was won: with the lease the key goes.
                self.give_up(lease_id).await;
                return match other {
                    Ok(_) => Ok(Attempt::NotNow("another gateway was faster".to_owned())),
                    Err(fault) => Err(fault.of_a_read()),
                };
            }
        };
        let revision = match revision_of(&answer) {
            Ok(revision) if shared.clock.boot() < until => revision,
            _ => {
                self.give_up(lease_id).await;
                return Ok(Attempt::NotNow(
                    "it was won, and its lease was over before that was heard".to_owned(),
                ));
            }
        };
        let lease = Lease::until(until);
        let won = Won { term, incarnation: life.incarnation, lease: lease.clone() };
        let held = HeldLeadership {
            term,
            incarnation: life.incarnation,
            raw_life: life.raw,
            revision,
            lease_id,
            lease,
        };
        *shared.held.lock() = Some(held.clone());
        self.etcd.spawn(fleet::keep(shared.clone(), held.clone(), self.digest.subscribe()));
        self.etcd.spawn(lease::keep_leading(shared.clone(), held, ttl, until));
        Ok(Attempt::Won(won))
    }

    /// What binds whoever stands, read anew: what was seen may be old.
    async fn binding(&self) -> Result<Binding, Fault> {
        let shared = &self.etcd.shared;
        let own = [shared.keys.leader(), shared.keys.digest(), shared.keys.least_version()];
        let reads = own.map(RequestOp::get);
        let answer = shared.read_txn(TxnRequest::default().and_then(reads)).await?;
        let mut read = gets(&answer);
        let mut next = || read.next().unwrap_or_default();
        let (leader, digest, least) = (next(), next(), next());
        let at = |entry: &Option<KeyValue>| entry.as_ref().map_or(0, |entry| entry.mod_revision);
        let text = |entry: &KeyValue| String::from_utf8_lossy(&entry.value).into_owned();
        let mut observation = Observation::not_yet(shared.clock.wall());
        observation.digest = digest.as_ref().map(text);
        observation.least_version = least.as_ref().map(text);
        Ok(Binding { leader: leader.is_some(), digest_at: at(&digest), least_at: at(&least), observation })
    }

    /// Revokes the lease of an attempt.
    async fn give_up(&self, lease_id: i64) {
        if let Err(fault) = lease::revoke(&self.etcd.shared, lease_id).await {
            tracing::debug!(why = %fault, "the lease of an attempt was not given back: it ends by itself");
        }
        self.etcd.shared.leases_to_revoke.lock().retain(|id| *id != lease_id);
    }
}

struct Binding {
    leader: bool,
    digest_at: i64,
    least_at: i64,
    observation: Observation,
}
