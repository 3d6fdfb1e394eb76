//! What lets a driver or a releaser act. Each order names an effect that stands in the stored ledger;
//! none can be made outside of this crate, copied, or read from a file.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ids::{DeviceId, EffectId, Generation, Incarnation, NodeId};
use crate::ledger::EffectKind;
use crate::receipt::ReceiptOrder;
use crate::record::{NodeRecord, Phase};
use crate::step::LockedEffect;
use crate::time::BootTime;

/// An effect that was stored and may now be sent.
#[derive(Debug)]
pub struct Order {
    pub(crate) node: NodeId,
    pub(crate) effect: EffectId,
    pub(crate) generation: Generation,
    pub(crate) device: DeviceId,
    pub(crate) session: Option<String>,
    pub(crate) life: Option<Duration>,
}

impl Order {
    /// The node.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// The device that it is for.
    pub fn device(&self) -> &DeviceId {
        &self.device
    }

    /// The ledger's entry.
    pub fn effect(&self) -> EffectId {
        self.effect
    }

    /// The generation that it belongs to.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The session that stands in the ledger with it: it is sent in that and in no other (S8). `None`: in whichever.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Its longest life, as it stands in the ledger (S8): what could be taken later than that is not sent. `None`: nothing bounds it.
    pub fn life(&self) -> Option<Duration> {
        self.life
    }
}

/// Switch off. May be sent again while its effect is open.
#[derive(Debug)]
pub struct OffOrder {
    pub(crate) order: Order,
    pub(crate) found: BTreeMap<String, String>,
}

/// Switch on, once: each sending wants an order of its own, made after asking the store once more
/// ([`crate::gate::on_order`]).
#[derive(Debug)]
pub struct OnOrder {
    pub(crate) order: Order,
    pub(crate) checked_at: BootTime,
}

/// An on that stands in the ledger but may not be sent yet: the store must be asked once more.
#[derive(Debug)]
pub struct PendingOn(pub(crate) Order);

/// Keep it off. What was found is stored already.
#[derive(Debug)]
pub struct HoldOrder {
    pub(crate) order: Order,
    pub(crate) late: bool,
    pub(crate) found: BTreeMap<String, String>,
}

/// Put back what the hold found.
#[derive(Debug)]
pub struct UnholdOrder {
    pub(crate) order: Order,
    pub(crate) found: BTreeMap<String, String>,
}

macro_rules! deref_order {
    ($($type:ty => |$this:ident| $path:expr),* $(,)?) => {$(
        impl std::ops::Deref for $type {
            type Target = Order;
            fn deref(&self) -> &Order {
                let $this = self;
                &$path
            }
        }
    )*};
}

deref_order! {
    OffOrder => |this| this.order,
    OnOrder => |this| this.order,
    PendingOn => |this| this.0,
    HoldOrder => |this| this.order,
    UnholdOrder => |this| this.order,
}

impl OnOrder {
    /// When the store was asked for the last time, which said that it may be sent. What was got after that to send it with, a token,
    /// would bear it for longer than whoever waits for its end (S8): it is not sent with that.
    pub fn checked_at(&self) -> BootTime {
        self.checked_at
    }
}

impl OffOrder {
    /// What the hold's inspection found before this fence changed anything; empty where nothing was.
    pub fn found(&self) -> &BTreeMap<String, String> {
        &self.found
    }
}

impl HoldOrder {
    /// Whether every release is over: what would bar our own releases bars nothing any more.
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// What was found and stored before anything is changed.
    pub fn found(&self) -> &BTreeMap<String, String> {
        &self.found
    }
}

impl UnholdOrder {
    /// What is to be put back.
    pub fn found(&self) -> &BTreeMap<String, String> {
        &self.found
    }
}

/// One attempt of a release that stands in the ledger.
#[derive(Debug)]
pub struct ReleaseOrder {
    pub(crate) node: NodeId,
    pub(crate) effect: EffectId,
    pub(crate) generation: Generation,
    pub(crate) release: crate::ids::ReleaseId,
    pub(crate) life: Option<Duration>,
}

impl ReleaseOrder {
    /// The node.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// The ledger's entry.
    pub fn effect(&self) -> EffectId {
        self.effect
    }

    /// The generation that it belongs to.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The release.
    pub fn release(&self) -> &crate::ids::ReleaseId {
        &self.release
    }

    /// Its longest life, as it stands in the ledger (S8): what could be taken later than that is not sent. `None`: nothing bounds it.
    pub fn life(&self) -> Option<Duration> {
        self.life
    }
}

/// What the store's `Saved` opened, in the order in which it is to be sent.
#[derive(Debug)]
pub enum Opened {
    /// Keep it off.
    Hold(HoldOrder),
    /// Switch it off.
    Off(OffOrder),
    /// Put back what the hold found.
    Unhold(UnholdOrder),
    /// Switch it on, after asking the store once more.
    On(PendingOn),
    /// Let volumes go, under a permit.
    Release(ReleaseOrder),
    /// Sign that the node is dark.
    Receipt(ReceiptOrder),
}

impl Opened {
    /// The ledger's entry.
    pub fn effect(&self) -> EffectId {
        match self {
            Opened::Hold(order) => order.effect(),
            Opened::Off(order) => order.effect(),
            Opened::Unhold(order) => order.effect(),
            Opened::On(order) => order.effect(),
            Opened::Release(order) => order.effect(),
            Opened::Receipt(order) => order.effect(),
        }
    }

    pub(crate) fn new(record: &NodeRecord, incarnation: Incarnation, locked: LockedEffect) -> Option<Self> {
        let LockedEffect { effect, generation, kind, found } = locked;
        let node = record.node.clone();
        let open = record.ledger.get(effect);
        let life = open.and_then(|open| open.life);
        let session = open.and_then(|open| open.session.clone());
        let order =
            |device| Order { node: node.clone(), effect, generation, device, session: session.clone(), life };
        Some(match kind {
            EffectKind::Hold(device) => {
                Opened::Hold(HoldOrder { order: order(device), late: record.phase == Phase::Released, found })
            }
            EffectKind::Off(device) => Opened::Off(OffOrder { order: order(device), found }),
            EffectKind::Unhold(device) => Opened::Unhold(UnholdOrder { order: order(device), found }),
            EffectKind::On(device) => Opened::On(PendingOn(order(device))),
            EffectKind::Release(release) => {
                Opened::Release(ReleaseOrder { node, effect, generation, release, life })
            }
            // It is sent by the attempt that it stands with.
            EffectKind::Standing(_) => return None,
            EffectKind::Receipt(_) => {
                let issued = record.receipts.iter().find(|issued| issued.effect == effect)?;
                Opened::Receipt(ReceiptOrder::new(node, incarnation, issued))
            }
        })
    }
}
