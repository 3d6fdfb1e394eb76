//! A member's own key, under a lease of its own: it says that this gateway is there, and why it does not stand.

use std::sync::Arc;
use std::time::Duration;

use picket_etcd_api::{Client, PutRequest};
use tokio::sync::watch;
use tokio::time::sleep;

use super::lease;
use super::values::MemberValue;
use crate::connection::Fault;
use crate::page;
use crate::shared::Shared;

/// How long is waited after what failed.
const AGAIN: Duration = Duration::from_secs(1);

/// What this gateway says of itself, kept in etcd until the task is ended.
pub(super) async fn be_there(
    shared: Arc<Shared>,
    gateway: String,
    lease: Duration,
    mut said: watch::Receiver<MemberValue>,
) {
    // Twice as long as a leader's, so that who leads is known before the others are.
    let lease = lease * 2;
    loop {
        if let Err(fault) = once(&shared, &gateway, lease, &mut said).await {
            tracing::debug!(why = %fault, "this gateway's own key is not kept in etcd");
        }
        sleep(AGAIN).await;
    }
}

async fn once(
    shared: &Shared,
    gateway: &str,
    lease: Duration,
    said: &mut watch::Receiver<MemberValue>,
) -> Result<(), Fault> {
    // The store comes first: it is made only where nothing stands under its prefix.
    shared.life().await.map_err(|error| Fault::Elsewhere(error.to_string()))?;
    let id = lease::new_id(shared);
    *shared.presence.lock() = Some(id);
    let ttl = lease::grant(shared, id, lease).await?;
    loop {
        let value = said.borrow_and_update().clone();
        let bytes = serde_json::to_vec(&value).map_err(|error| Fault::Refused(error.to_string()))?;
        put(shared, shared.keys.member(gateway), bytes, id).await?;
        loop {
            tokio::select! {
                biased;
                changed = said.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => std::future::pending().await,
                },
                () = sleep(ttl / 3) => {
                    lease::keep(shared, id, ttl / 5).await?;
                    if !is_ours(shared, gateway, id).await? {
                        tracing::error!(
                            gateway,
                            "another gateway has this name as well, and nobody can tell who leads: give each a name of its own \
                             in [gateway]"
                        );
                        break;
                    }
                }
            }
        }
    }
}

/// Whether our key still stands under our lease.
async fn is_ours(shared: &Shared, gateway: &str, lease: i64) -> Result<bool, Fault> {
    let found = page::one(&shared.connection, shared.keys.member(gateway)).await?;
    Ok(found.is_some_and(|entry| entry.lease == lease))
}

/// Writing it twice comes to the same.
async fn put(shared: &Shared, key: Vec<u8>, bytes: Vec<u8>, lease: i64) -> Result<(), Fault> {
    shared
        .connection
        .read(|client: Client| {
            let put = PutRequest { key: key.clone(), value: bytes.clone(), lease };
            async move { client.put(put).await }
        })
        .await
        .map(drop)
}
