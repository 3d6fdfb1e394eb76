//! The digest of the settings by which a leader leads: it stands in the store, so that who has others does not stand.

use std::sync::Arc;
use std::time::Duration;

use picket_core::store::StoreError;
use picket_etcd_api::{RequestOp, TxnRequest};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::connection::Fault;
use crate::house::{Held, House};
use crate::life;

/// How often it is looked whether what is stored is what this leader has.
const LOOK: Duration = Duration::from_secs(1);

/// Stores the digest of a leader's settings.
pub(super) async fn store(house: &House, held: &Held, digest: &str) -> Result<(), StoreError> {
    let put = RequestOp::put(house.keys.digest(), digest);
    let txn = TxnRequest::default().when(house.guards(held)?).and_then([put]).or_else(house.guard_reads());
    let answer = house.connection.commit(txn).await.map_err(Fault::of_a_write)?;
    if answer.succeeded {
        return Ok(());
    }
    house.guard_says(held, &mut life::gets(&answer))
}

/// Sees to it for as long as that leadership is held. A reload while etcd was away, or while this leadership was being won,
/// would otherwise be known to nobody: with the new settings nobody could follow this leader.
pub(super) async fn keep(house: Arc<House>, held: Held, mut digest: watch::Receiver<String>) {
    while house.holds(held.revision) {
        let own = digest.borrow_and_update().clone();
        let differs = {
            let sight = house.sight.borrow();
            // What was seen before this leadership says nothing of it.
            sight.away.is_none() && sight.revision >= held.revision && sight.digest.as_ref() != Some(&own)
        };
        if differs && !own.is_empty() {
            match store(&house, &held, &own).await {
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
