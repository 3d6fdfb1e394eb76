//! The ledger of open effects (S5): what was sent, or is about to be, and whose end is not known.
//!
//! # Invariants
//!
//! - An effect enters with the record that decides it. Shown by `what_is_opened_stands_in_the_ledger`.
//! - An effect leaves only when its end is known: the device surely refused, the session that carried it
//!   was closed, or its longest life passed on the waiter's own clock. Shown by
//!   `only_a_hold_whose_end_is_known_is_closed`,
//!   `a_stale_off_of_a_dead_gateway_is_waited_out_before_the_on`.
//! - What this process sent to a device ends with its session there. Once other settings replaced its
//!   drivers, it is waited out like anybody else's. Shown by
//!   `effects_of_other_drivers_and_of_another_life_of_the_store_are_nobody_s_own`,
//!   `what_was_sent_through_drivers_that_were_replaced_is_waited_out`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::MaxInFlight;
use crate::ids::{DeviceId, EffectId, Generation, ReleaseId, Term};
use crate::time::WallTime;

/// What an effect does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Switch the device off, hard.
    Off(DeviceId),
    /// Switch the device on.
    On(DeviceId),
    /// Tell the device to stay off.
    Hold(DeviceId),
    /// Put back what the hold found.
    Unhold(DeviceId),
    /// One attempt to let volumes go.
    Release(ReleaseId),
    /// What the attempts of a release set up, and what lets volumes go for as long as it stands; or what they asked for, and what may come
    /// late. It is not waited for: whoever leads takes it away, or back.
    Standing(ReleaseId),
    /// A signed statement that the node is dark.
    Receipt(String),
}

impl EffectKind {
    /// While one of these is open no Off counts.
    pub fn bars_proof(&self) -> bool {
        matches!(self, EffectKind::On(_) | EffectKind::Unhold(_))
    }

    /// While one of these is open no on is sent. A hold that lands late would undo its own undoing, so it bars too.
    pub fn bars_on(&self) -> bool {
        matches!(
            self,
            EffectKind::Off(_)
                | EffectKind::Hold(_)
                | EffectKind::Release(_)
                | EffectKind::Standing(_)
                | EffectKind::Receipt(_)
        )
    }

    /// Whether it is a signed statement.
    pub fn is_receipt(&self) -> bool {
        matches!(self, EffectKind::Receipt(_))
    }

    /// How long it may live at a device whose commands live that long. What bars proof lives as long as an on: a copy of it that comes late
    /// undoes what a later fence has proven.
    pub fn life_at(&self, device: MaxInFlight) -> Option<Duration> {
        if self.bars_proof() { device.on } else { device.off }
    }

    /// The device it goes to, if it goes to one.
    pub fn device(&self) -> Option<&DeviceId> {
        match self {
            EffectKind::Off(d) | EffectKind::On(d) | EffectKind::Hold(d) | EffectKind::Unhold(d) => Some(d),
            EffectKind::Release(_) | EffectKind::Standing(_) | EffectKind::Receipt(_) => None,
        }
    }

    /// A stable word for logs and metrics.
    pub fn label(&self) -> &'static str {
        match self {
            EffectKind::Off(_) => "off",
            EffectKind::On(_) => "on",
            EffectKind::Hold(_) => "hold",
            EffectKind::Unhold(_) => "unhold",
            EffectKind::Release(_) => "release",
            EffectKind::Standing(_) => "standing",
            EffectKind::Receipt(_) => "receipt",
        }
    }
}

/// An effect in words.
pub fn describe(kind: &EffectKind) -> String {
    match kind {
        EffectKind::Off(d) | EffectKind::On(d) | EffectKind::Hold(d) | EffectKind::Unhold(d) => {
            format!("{} of {d}", kind.label())
        }
        EffectKind::Release(release) => format!("release {release}"),
        EffectKind::Standing(release) => format!("what release {release} set up"),
        EffectKind::Receipt(id) => format!("receipt {id}"),
    }
}

/// One effect that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEffect {
    /// Unique within the node.
    pub id: EffectId,
    /// What it does.
    pub kind: EffectKind,
    /// The generation that sent it.
    pub generation: Generation,
    /// The leadership that sent it.
    pub term: Term,
    /// When it was stored; for people.
    pub opened_at: WallTime,
    /// Its longest possible life, counted by whoever waits from when it read the record, on its own clock.
    /// `None`: nothing bounds it.
    pub life: Option<Duration>,
    /// The session in which it is sent and in no other, as its driver names it, without its secret (S18): whoever leads later
    /// may end that session, and with it this effect (S8). `None`: only its life ends it for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl OpenEffect {
    /// The release of which it stands, and was not seen to be gone.
    pub fn stands(&self) -> Option<&ReleaseId> {
        match &self.kind {
            EffectKind::Standing(release) if self.life.is_none() => Some(release),
            _ => None,
        }
    }
}

/// All open effects of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    next: u64,
    open: Vec<OpenEffect>,
}

impl Ledger {
    /// What is open, oldest first.
    pub fn open(&self) -> &[OpenEffect] {
        &self.open
    }

    /// The open effect `id`.
    pub fn get(&self, id: EffectId) -> Option<&OpenEffect> {
        self.open.iter().find(|effect| effect.id == id)
    }

    /// What stands of releases, and was not seen to be gone.
    pub fn standing(&self) -> impl Iterator<Item = (EffectId, &ReleaseId)> {
        self.open.iter().filter_map(|effect| Some((effect.id, effect.stands()?)))
    }

    /// Whether anything bars that an Off counts.
    pub fn bars_proof(&self) -> bool {
        self.open.iter().any(|effect| effect.kind.bars_proof())
    }

    /// Whether anything bars that an on is sent.
    pub fn bars_on(&self) -> bool {
        self.open.iter().any(|effect| effect.kind.bars_on())
    }

    pub(crate) fn enter(
        &mut self,
        kind: EffectKind,
        generation: Generation,
        term: Term,
        opened_at: WallTime,
        life: Option<Duration>,
        session: Option<String>,
    ) -> EffectId {
        self.next += 1;
        let id = EffectId(self.next);
        self.open.push(OpenEffect { id, kind, generation, term, opened_at, life, session });
        id
    }

    /// It may live for so long now, or for as long as it was said to before, if that is longer; nothing bounds what nothing bounded.
    pub(crate) fn lengthen(&mut self, id: EffectId, life: Option<Duration>) {
        let longer = |open: &mut OpenEffect| open.life = open.life.zip(life).map(|(was, is)| was.max(is));
        self.open.iter_mut().filter(|effect| effect.id == id).for_each(longer);
    }

    /// It ends by itself from now on, so much later.
    pub(crate) fn bound(&mut self, id: EffectId, life: Duration) {
        self.open.iter_mut().filter(|effect| effect.id == id).for_each(|effect| effect.life = Some(life));
    }

    pub(crate) fn close(&mut self, id: EffectId) -> bool {
        let before = self.open.len();
        self.open.retain(|effect| effect.id != id);
        self.open.len() < before
    }
}
