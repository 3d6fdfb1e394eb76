//! One program at a time has machines with kubelets: each holds inotify instances, and the kernel gives a user few (`fs.inotify.max_user_instances`).

use std::fs::{File, TryLockError};
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::error::{PeerError, Result};
use crate::peers::until;

/// Longer than any of them takes.
const WITHIN: Duration = Duration::from_secs(40 * 60);

/// Waits until no other program of the tests has such machines; from then on it is this one's turn, until it ends.
pub async fn wait() -> Result<()> {
    static OURS: OnceCell<File> = OnceCell::const_new();
    let take = async || {
        let path = std::env::temp_dir().join("picket-kubelets.lock");
        let file = File::create(&path).map_err(PeerError::io("create the lock of those with kubelets"))?;
        let what = format!("another program of the tests ends, which has kubelets ({})", path.display());
        until(&what, WITHIN, async || match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => {
                Err(PeerError::io("lock the lock of those with kubelets")(error))
            }
        })
        .await?;
        Ok(file)
    };
    OURS.get_or_try_init(take).await.map(drop)
}
