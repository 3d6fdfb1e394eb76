//! A gateway's audit, as a chain in memory: it outlives every process of its gateway, as files do.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use picket_audit::{Audit, Head, Keeper, Told};
use picket_core::ids::NodeId;
use picket_core::record::AuditHead;

use crate::scene::Scene;
use crate::trace::{GatewayId, What};

/// The audits of all gateways.
#[derive(Debug)]
pub(crate) struct Books(Vec<Arc<Book>>);

/// One gateway's.
#[derive(Debug)]
pub(crate) struct Book {
    gateway: GatewayId,
    scene: Weak<Scene>,
    /// The hash of each entry, which has those before it in it.
    chain: Mutex<Vec<u64>>,
}

impl Books {
    /// Without an entry.
    pub(crate) fn new(gateways: usize, scene: &Weak<Scene>) -> Self {
        let book = |gateway| Arc::new(Book { gateway, scene: scene.clone(), chain: Mutex::default() });
        Self((0..gateways).map(book).collect())
    }

    /// What an engine of that gateway tells.
    pub(crate) fn of(&self, gateway: GatewayId) -> Audit {
        Audit::elsewhere(self.0[gateway].clone())
    }

    /// Whether that gateway's audit has an entry of that number and hash.
    pub(crate) fn has(&self, gateway: GatewayId, head: &AuditHead) -> bool {
        self.0[gateway].at(head.seq).is_some_and(|known| known == head.hash)
    }
}

fn text(hash: u64) -> String {
    format!("{hash:016x}")
}

impl Book {
    fn at(&self, seq: u64) -> Option<String> {
        let index = usize::try_from(seq).ok()?.checked_sub(1)?;
        self.chain.lock().get(index).copied().map(text)
    }
}

impl Keeper for Book {
    fn tell(&self, told: Told) {
        {
            let mut chain = self.chain.lock();
            let before = chain.last().copied().unwrap_or(0xcbf2_9ce4_8422_2325);
            let words = [told.what.as_bytes(), told.node.as_deref().unwrap_or_default().as_bytes()];
            let bytes = words.into_iter().flatten().copied().chain(told.at.to_le_bytes());
            let hash =
                bytes.fold(before, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            chain.push(hash);
        }
        let (Some(scene), "phase") = (self.scene.upgrade(), told.what.as_str()) else { return };
        if let (Some(node), Some(to)) = (told.node, told.details["to"].as_str()) {
            let node = NodeId::new(&node).expect("a node's name");
            scene.note(What::Told { gateway: self.gateway, node, to: to.to_owned() });
        }
    }

    fn head(&self) -> Option<Head> {
        let chain = self.chain.lock();
        let hash = chain.last().copied().map(text)?;
        Some(Head { seq: chain.len() as u64, hash })
    }
}
