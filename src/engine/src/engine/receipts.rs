//! Receipts: asked for, handed back, verified; and the public keys by which others verify them.

use std::sync::Arc;
use std::time::Duration;

use picket_core::election::Leadership;
use picket_core::ids::{NodeId, ReceiptId};
use picket_core::store::StoreError;
use picket_receipt::{ListedKey, NOTES};

use super::Engine;
use crate::error::EngineError;
use crate::node::Command;
use crate::receipts::{ReceiptCall, Receipted, Verified};
use crate::view::NodeView;

/// How often it is looked whether the key file was replaced, and whether the key is listed.
const LISTING: Duration = Duration::from_secs(2);

impl Engine {
    /// Issues a receipt: stored first, then signed.
    pub async fn receipt(&self, node: &NodeId, call: ReceiptCall) -> Result<Receipted, EngineError> {
        self.ask(node, |reply| Command::Receipt(call, reply)).await
    }

    /// Takes a receipt back from whom it was issued to.
    pub async fn return_receipt(&self, node: &NodeId, id: ReceiptId, by: String) -> Result<(), EngineError> {
        self.ask(node, |reply| Command::ReturnReceipt { id, by, reply }).await
    }

    /// What a receipt of that node is worth, after a round trip to the store; `fresh`: the devices are asked too.
    pub async fn verify_receipt(
        &self,
        node: &NodeId,
        id: ReceiptId,
        fresh: bool,
    ) -> Result<Verified, EngineError> {
        let slot = self.slot(node)?;
        let _turn = match fresh {
            true => Some(slot.looks.turn.lock().await),
            false => None,
        };
        self.ask(node, |reply| Command::VerifyReceipt { id, fresh, reply }).await
    }

    /// The node of which something is kept of that receipt.
    pub fn node_of_receipt(&self, id: ReceiptId) -> Option<NodeId> {
        let fleet = self.fleet();
        let mut slots = fleet.slots.iter();
        let keeps = |view: &NodeView| view.stored.record.receipts.iter().any(|issued| issued.id == id);
        slots.find(|(_, slot)| keeps(&slot.view.borrow())).map(|(node, _)| node.clone())
    }

    /// The public keys by which receipts are verified, those of the past too, oldest first; and which of them signs here.
    pub async fn receipt_keys(&self) -> Result<(Vec<ListedKey>, Option<String>), EngineError> {
        let parts = &self.shared.parts;
        let damaged = |name: &str, why| StoreError::Damaged(format!("the note {name:?}: {why}"));
        let notes = parts.store.notes(NOTES).await?.into_iter();
        let keys = notes.map(|(name, note)| ListedKey::read(&note.text).map_err(|why| damaged(&name, why)));
        let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
        keys.sort_by(|a, b| (&a.since, &a.key_id).cmp(&(&b.since, &b.key_id)));
        Ok((keys, parts.receipts.present()))
    }

    /// Keeps the key listed for one leadership, and takes another one once its file was replaced.
    pub(super) fn key_task(&self, leadership: Arc<Leadership>) -> impl Future<Output = ()> + Send + 'static {
        let parts = self.shared.parts.clone();
        async move {
            while leadership.check().is_ok() {
                parts.receipts.reread().await;
                parts.receipts.list(&*parts.store, leadership.guard(), parts.clock.wall()).await;
                tokio::time::sleep(LISTING).await;
            }
        }
    }
}
