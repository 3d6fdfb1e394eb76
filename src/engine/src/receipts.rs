//! Receipts as callers ask for them, and the key that signs them.
//!
//! # Invariants
//!
//! - Nothing is signed with a key that is not listed in the store: a receipt stays verifiable whatever
//!   becomes of the gateway that signed it (S19). Shown by
//!   `what_is_signed_names_the_fence_and_is_verified_by_the_listed_key`.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::ids::{FenceId, ReceiptId, Version};
use picket_core::store::{Guard, Store, StoreError};
use picket_core::time::WallTime;
use picket_receipt::{Keys, ListedKey, Signed, SigningKey};

use crate::error::EngineError;

/// Who wants a receipt.
#[derive(Clone, Debug)]
pub struct ReceiptCall {
    /// Who asks: they alone renew it or hand it back.
    pub by: String,
    /// The fence that they mean; `None`: the present one.
    pub fence: Option<FenceId>,
    /// Their own receipt that it takes the place of.
    pub renews: Option<ReceiptId>,
    /// For whom, in their words.
    pub audience: String,
}

/// A receipt that was issued just now.
#[derive(Clone, Debug)]
pub struct Receipted {
    /// Its id.
    pub id: ReceiptId,
    /// It, signed.
    pub signed: Signed,
    /// How long it holds from now on.
    pub lasts: Duration,
    /// When it ends, on this gateway's wall clock.
    pub expires_at: WallTime,
}

/// What a receipt of ours is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// No on is sent before `lasts` has passed.
    Holds {
        /// For so long, from now on.
        lasts: Duration,
        /// What devices said that were to be asked; `None`: they were not, or all of them read Off.
        unsure: Option<String>,
    },
    /// It has expired.
    Expired,
    /// It was handed back, or renewed by that one.
    Returned(Option<ReceiptId>),
    /// It holds no more, and why.
    Void(String),
    /// Nothing is kept of it.
    Gone,
}

/// The gateway's key, and whether it may sign.
#[derive(Debug)]
pub struct Receipts {
    keys: Arc<Keys>,
    listed: Mutex<Listed>,
}

#[derive(Clone, Debug)]
enum Listed {
    /// Not yet: the store has not taken it.
    Not(String),
    /// It is another gateway's.
    Foreign(String),
    Key(Arc<SigningKey>),
}

impl Receipts {
    /// Signs with these keys, once they are listed.
    pub fn new(keys: Keys) -> Self {
        let listed = Mutex::new(Listed::Not("the key is not listed in the store yet".to_owned()));
        Self { keys: Arc::new(keys), listed }
    }

    /// The key that may sign.
    pub(crate) fn signing(&self) -> Result<Arc<SigningKey>, EngineError> {
        match &*self.listed.lock() {
            Listed::Key(key) => Ok(key.clone()),
            Listed::Foreign(why) => Err(EngineError::NoKey(why.clone())),
            Listed::Not(why) => Err(EngineError::Store(StoreError::Unavailable(why.clone()))),
        }
    }

    /// Which key signs; `None`: none may.
    pub(crate) fn present(&self) -> Option<String> {
        self.signing().ok().map(|key| key.id().to_string())
    }

    /// Reads the key file again if it was replaced. A disk that hangs keeps nobody waiting but this.
    pub(crate) async fn reread(&self) {
        let keys = self.keys.clone();
        if !keys.has_file() {
            return;
        }
        match tokio::task::spawn_blocking(move || keys.reread()).await {
            Ok(Ok(true)) => {
                tracing::info!(key = %self.keys.present().id(), "receipts are signed with another key")
            }
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "the new key is not taken; the old one goes on signing")
            }
            Err(error) => tracing::error!(%error, "the key file was not read again"),
        }
    }

    /// Lists the present key in the store, if it is not listed as ours.
    pub(crate) async fn list(&self, store: &dyn Store, guard: Guard, wall: WallTime) {
        let key = self.keys.present();
        if matches!(&*self.listed.lock(), Listed::Key(listed) if listed.id() == key.id()) {
            return;
        }
        let listed = match self.find_or_put(store, guard, wall, &key).await {
            Ok(None) => Listed::Key(key),
            Ok(Some(gateway)) => {
                let why = format!(
                    "key {} is listed as that of gateway {gateway:?}, and this one is {:?}: two gateways do not share a \
                     key; move the key file away and start again, and a new one is made",
                    key.id(),
                    self.keys.gateway()
                );
                Listed::Foreign(why)
            }
            Err(error) => Listed::Not(format!("the key cannot be listed in the store: {error}")),
        };
        let mut present = self.listed.lock();
        match (&*present, &listed) {
            (Listed::Foreign(old), Listed::Foreign(new)) if old == new => {}
            (_, Listed::Foreign(why)) => tracing::error!(why, "no receipts are signed"),
            _ => {}
        }
        *present = listed;
    }

    /// `None`: it is listed as ours; else whose it is.
    async fn find_or_put(
        &self,
        store: &dyn Store,
        guard: Guard,
        wall: WallTime,
        key: &SigningKey,
    ) -> Result<Option<String>, StoreError> {
        let ours = ListedKey::of(key, self.keys.gateway(), wall);
        let Some(note) = store.note(&ours.note()).await? else {
            store.put_note(guard, &ours.note(), Version(0), Some(ours.text())).await?;
            tracing::info!(key = ours.key_id, "the receipts' key is listed in the store");
            return Ok(None);
        };
        let listed = ListedKey::read(&note.text).map_err(StoreError::Damaged)?;
        Ok(Some(listed.gateway).filter(|gateway| gateway != self.keys.gateway()))
    }
}
