//! Receipts: signed statements that a node is dark, as leases (S19).
//!
//! A receipt is an open effect: it enters the ledger before anything is signed, and no on is sent while it
//! is open. Beside the ledger the record keeps what answers later whether the receipt holds.
//! `picket-receipt` signs, and signs nothing but a `ReceiptOrder`.
//!
//! # Invariants
//!
//! - A receipt that fell (with its fence, its proof, or by its holder's word) never stands again. Shown by
//!   `receipts_bar_the_on`, `a_breach_makes_it_void_and_so_do_the_end_of_the_fence_and_of_the_proof`.
//! - Void or not, a receipt bars the on until its life and margin have passed, or until its own holder
//!   hands it back. Shown by `no_on_before_the_last_one_has_expired`,
//!   `only_its_holder_hands_it_back_or_renews_it`.

use std::time::Duration;

use crate::confirm::ConfirmedOff;
use crate::device::Grade;
use crate::ground::{Look, LookFault, ReleaseGround};
use crate::ids::{DeviceId, EffectId, FenceId, Generation, Incarnation, NodeId, ReceiptId};
use crate::record::Issued;
use crate::time::{BootTime, WallTime};

/// How many receipts of a node may be open at once: each is a part of its record.
pub const MOST: usize = 32;

/// Of these one caller's, so that none takes all of them.
pub const MOST_EACH: usize = 8;

/// What a receipt says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its id.
    pub id: ReceiptId,
    /// The node.
    pub node: NodeId,
    /// The machine: its system UUID, 32 lowercase hexadecimal digits; empty where it is not known.
    pub system_uuid: String,
    /// The store's life.
    pub incarnation: Incarnation,
    /// The fence.
    pub fence: FenceId,
    /// The generation.
    pub generation: Generation,
    /// How good the evidence is.
    pub grade: Grade,
    /// The node's devices switch no real machine: that it is off is true of nothing but a simulation (S1).
    pub simulated: bool,
    /// When the node was last read Off before (when that reading was asked for).
    pub off_at: WallTime,
    /// When it was issued.
    pub issued_at: WallTime,
    /// Before this no on is sent.
    pub expires_at: WallTime,
    /// For whom; empty: anybody.
    pub audience: String,
}

/// A receipt that stands in the stored ledger and may be signed. Opened by the store's `Saved` alone.
#[derive(Debug)]
pub struct ReceiptOrder {
    statement: Statement,
    effect: EffectId,
}

impl ReceiptOrder {
    pub(crate) fn new(node: NodeId, incarnation: Incarnation, issued: &Issued) -> Self {
        let statement = Statement {
            id: issued.id,
            node,
            system_uuid: issued.system_uuid.clone(),
            incarnation,
            fence: issued.fence,
            generation: issued.generation,
            grade: issued.grade,
            simulated: issued.simulated,
            off_at: issued.off_at,
            issued_at: issued.issued_at,
            expires_at: issued.expires_at,
            audience: issued.audience.clone(),
        };
        Self { statement, effect: issued.effect }
    }

    /// What is to be signed.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// The ledger's entry.
    pub fn effect(&self) -> EffectId {
        self.effect
    }
}

/// Why a ground does not carry a receipt now.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotSeen {
    /// A person's word is no reading.
    #[error("a person vouches for it, and no device was read: nothing can be signed on that")]
    Attested,
    /// The devices do not say so just now.
    #[error(transparent)]
    Look(#[from] LookFault),
}

/// Proof that the devices that proved the node off read Off just now, in the same epochs. Made by [`SeenOff::of`] alone.
#[derive(Debug)]
pub struct SeenOff<'ground> {
    proof: &'ground ConfirmedOff,
    off_at: WallTime,
}

impl<'ground> SeenOff<'ground> {
    /// Whether `looks` show it at `now`, which on the wall clock is `wall`.
    pub fn of(
        ground: &'ground ReleaseGround,
        looks: &[Look],
        now: BootTime,
        wall: WallTime,
    ) -> Result<Self, NotSeen> {
        let ReleaseGround::Confirmed(proof) = ground else { return Err(NotSeen::Attested) };
        ground.examine(looks, now)?;
        // All of them were Off only since the one that was asked first.
        let newest =
            |device: &DeviceId| looks.iter().filter(|look| look.device == *device).map(Look::asked).max();
        let asked = proof.devices().filter_map(|(device, _)| newest(device)).min().unwrap_or(now);
        let ago = u64::try_from(now.since(asked).as_millis()).unwrap_or(u64::MAX);
        Ok(Self { proof, off_at: WallTime::from_millis(wall.millis().saturating_sub(ago)) })
    }

    pub(crate) fn proof(&self) -> &ConfirmedOff {
        self.proof
    }

    pub(crate) fn off_at(&self) -> WallTime {
        self.off_at
    }
}

/// Who wants a receipt, and on what it would stand.
#[derive(Debug)]
pub struct ReceiptRequest<'a> {
    /// The id that it will have.
    pub id: ReceiptId,
    /// The node reads Off just now.
    pub seen: SeenOff<'a>,
    /// Who asks.
    pub by: String,
    /// For whom, in their words.
    pub audience: String,
    /// The machine: its system UUID, where it is known.
    pub system_uuid: String,
    /// Their own receipt that it takes the place of.
    pub renews: Option<ReceiptId>,
    /// How long it lives.
    pub life: Duration,
    /// How much longer no on is sent: readers have clocks of their own.
    pub margin: Duration,
}
