//! Places for machines with kubelets, of which a machine of ours has few: each kubelet holds seven inotify instances and each containerd one, and
//! the kernel gives a user 128 (`fs.inotify.max_user_instances`).

use std::fs::{File, TryLockError};
use std::time::Duration;

use crate::error::{PeerError, Result};
use crate::peers::until;

/// All there are.
const PLACES: u8 = 15;
/// Longer than any of them takes.
const WITHIN: Duration = Duration::from_secs(40 * 60);

/// Places of one cluster, until they are dropped, or their process ends.
#[derive(Debug)]
pub struct Places(#[expect(dead_code, reason = "they are unlocked where they are closed")] Vec<File>);

impl Places {
    /// Waits until so many are free, of all programs of the tests; of two that wait one gets all of its places first.
    pub async fn take(machines: u8) -> Result<Self> {
        let mut taken = Vec::new();
        if machines > 0 {
            let mut turn = None;
            let ours = async || Ok(take("turn", &mut turn)?);
            until("another program of the tests has its machines", WITHIN, ours).await?;
            let mut next = 0..PLACES;
            let all = async || {
                // A place that was taken a round ago may be free by now.
                if next.is_empty() {
                    next = 0..PLACES;
                }
                for place in next.by_ref() {
                    let mut file = None;
                    if take(&place.to_string(), &mut file)? {
                        taken.extend(file);
                    }
                    if taken.len() >= usize::from(machines.min(PLACES)) {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            until("machines with kubelets are left by other tests", WITHIN, all).await?;
        }
        Ok(Self(taken))
    }
}

/// Whether the lock of that name is ours now.
fn take(name: &str, to: &mut Option<File>) -> Result<bool> {
    let path = std::env::temp_dir().join(format!("picket-kubelets-{name}.lock"));
    let file = File::create(&path).map_err(PeerError::io("create a lock of those with kubelets"))?;
    match file.try_lock() {
        Ok(()) => {
            *to = Some(file);
            Ok(true)
        }
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(PeerError::io("lock a lock of those with kubelets")(error)),
    }
}
