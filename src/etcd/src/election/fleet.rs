//! The digest of the settings by which a leader leads: it stands in the store, so that who has others does not stand.

use std::sync::Arc;
use std::time::Duration;

use picket_core::store::StoreError;
use picket_etcd_api::{RequestOp, TxnRequest};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::connection::Fault;
use crate::life;
use crate::shared::{HeldLeadership, Shared};

/// How often it is looked whether what is stored is what this leader has.
const LOOK: Duration = Duration::from_secs(1);

/// Stores the digest of a leader's settings.
pub(super) async fn store(shared: &Shared, held: &HeldLeadership, digest: &str) -> Result<(), StoreError> {
    let put = RequestOp::put(shared.keys.digest(), digest);
    let txn = TxnRequest::default().when(shared.guards(held)?).and_then([put]).or_else(shared.guard_reads());
    let answer = shared.connection.commit(txn).await.map_err(Fault::of_a_write)?;
    if answer.succeeded {
        return Ok(());
    }
    shared.guard_says(held, &mut life::gets(&answer))
}

/// Sees to it for as long as that leadership is held. A reload while etcd was away, or while this leadership was being won,
/// would otherwise be known to nobody: with the new settings nobody could follow this leader.
pub(super) async fn keep(shared: Arc<Shared>, held: HeldLeadership, mut digest: watch::Receiver<String>) {
    while shared.holds(held.revision) {
        let own = digest.borrow_and_update().clone();
        let differs = {
            let observation = shared.observation.borrow();
            // What was seen before this leadership says nothing of it.
            observation.away.is_none()
                && observation.revision >= held.revision
                && observation.digest.as_ref() != Some(&own)
        };
        if differs && !own.is_empty() {
            match store(&shared, &held, &own).await {
                Ok(()) => tracing::debug!("the digest of this leader's settings is stored"),
                Err(error) => {
                    tracing::warn!(%error, "the digest of this leader's settings is not stored yet")
                }
            }
        }
        tokio::select! {
            biased;
            changed = digest.changed() => if changed.is_err() { return },
            () = sleep(LOOK) => {}
        }
    }
}
