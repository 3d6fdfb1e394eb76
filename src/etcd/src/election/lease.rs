//! etcd's leases, and our own count of the one under which we lead.
//!
//! # Invariants
//!
//! - Validity counts from when a grant or a keep-alive was *sent*.
//! - A lease that ended is never renewed, also when the answer comes late. Shown by
//!   `a_permit_ends_before_its_lease_and_stays_ended`.

use std::sync::Arc;
use std::time::Duration;

use picket_core::time::BootTime;
use picket_etcd_api::{Client, Error, LeaseGrantRequest};
use tokio::time::{sleep, timeout};

use crate::connection::Fault;
use crate::shared::{HeldLeadership, Shared};

/// How long is waited after a keep-alive that failed.
const AGAIN: Duration = Duration::from_millis(100);

/// How much before etcd's count ours ends: clocks run at different speeds, and between a check and what it allowed some time
/// passes.
pub(super) fn margin(lease: Duration) -> Duration {
    (lease / 10).max(Duration::from_millis(300))
}

/// An id for a lease: it is ours to choose, so that one whose grant was not answered can be revoked.
pub(super) fn new_id(shared: &Shared) -> i64 {
    (u64::from_be_bytes(shared.random()) >> 1).max(1).cast_signed()
}

/// Asks for a lease of so many seconds. How long it is at least: etcd may give more, never less.
pub(super) async fn grant(shared: &Shared, id: i64, lease: Duration) -> Result<Duration, Fault> {
    let seconds = i64::try_from(lease.as_secs()).unwrap_or(i64::MAX);
    let granted = shared
        .connection
        .read(|client: Client| async move {
            match client.grant(LeaseGrantRequest { id, ttl: seconds }).await {
                // The first copy was taken, and its answer was lost.
                Err(Error::Status(status)) if status.message() == "etcdserver: lease already exists" => {
                    Ok(None)
                }
                answer => answer.map(Some),
            }
        })
        .await?;
    let ttl = granted.map_or(lease, |granted| Duration::from_secs(u64::try_from(granted.ttl).unwrap_or(0)));
    if ttl > lease {
        tracing::warn!(
            asked = ?lease,
            given = ?ttl,
            "etcd gives longer leases than was asked for (its --election-timeout is long): a successor waits so long"
        );
    }
    Ok(ttl.min(lease))
}

/// Gives a lease back, and with it all keys under it. One that is gone already is given back.
pub(super) async fn revoke(shared: &Shared, id: i64) -> Result<(), Fault> {
    let revoked = shared.connection.read(|client: Client| async move { client.revoke(id).await }).await;
    match revoked {
        Err(Fault::NoLease) => Ok(()),
        other => other.map(drop),
    }
}

/// One keep-alive, of a stream of its own, so that its answer is the answer to it.
pub(super) async fn keep(shared: &Shared, id: i64, patience: Duration) -> Result<(), Fault> {
    shared.ask_within(patience, |client: Client| async move { client.keep_alive(id).await }).await
}

/// Renews a leadership until it is over, or given up: then also where giving back its lease failed, which would otherwise bar
/// everybody's way for as long as this process lives.
pub(super) async fn keep_leading(
    shared: Arc<Shared>,
    held: HeldLeadership,
    lease: Duration,
    mut until: BootTime,
) {
    let clock = shared.clock.clone();
    let mut observation = shared.observation.subscribe();
    let mut pause = lease / 3;
    loop {
        tokio::select! {
            biased;
            () = lost(&mut observation, &held) => return shared.lose(held.revision, "somebody else leads, or its key is gone"),
            () = sleep(pause) => {}
        }
        if !shared.holds(held.revision) {
            return;
        }
        let sent = clock.boot();
        if sent >= until {
            return shared.lose(held.revision, "its lease was not renewed in time");
        }
        let left = until.since(sent);
        // The first member that is asked leaves time to ask others.
        let kept = timeout(left, keep(&shared, held.lease_id, lease / 5)).await;
        match kept {
            Ok(Ok(())) if clock.boot() < until => {
                until = sent + lease.saturating_sub(margin(lease));
                held.lease.renew(until);
                pause = lease / 3;
            }
            Ok(Err(Fault::NoLease)) => return shared.lose(held.revision, "its lease in etcd is over"),
            Ok(Ok(())) | Err(_) => return shared.lose(held.revision, "its lease was not renewed in time"),
            Ok(Err(fault)) => {
                tracing::warn!(why = %fault, "a keep-alive failed");
                pause = AGAIN;
            }
        }
    }
}

/// Waits until it is seen that another key is the leader's, or none.
async fn lost(
    observation: &mut tokio::sync::watch::Receiver<crate::observer::Observation>,
    held: &HeldLeadership,
) {
    let gone = observation.wait_for(|observation| {
        observation.away.is_none()
            && observation.revision >= held.revision
            && observation.leader.as_ref().is_none_or(|leader| leader.revision != held.revision)
    });
    if gone.await.is_err() {
        std::future::pending::<()>().await;
    }
}
