//! What a device says of power, and when it was asked.

use serde::{Deserialize, Serialize};

use crate::time::BootTime;

/// What one authenticated answer says. Everything that is not an explicit `On` or `Off` is `Unknown`,
/// and `Unknown` is never off (S1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// The device says: on.
    On,
    /// The device says: off.
    Off,
    /// Silence, a timeout, a transitional state, an unknown word, not found.
    Unknown,
}

/// That a session was lost: the device stopped answering in it, or refused it, and may have restarted. One that we closed
/// ourselves was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loss {
    /// The first epoch after it.
    pub epoch: u64,
    /// When the first question was asked that was left unanswered, or refused, after all that had been answered.
    pub since: BootTime,
}

/// One uninterrupted life of a device: the same session, no restart of the BMC.
/// Two epochs of one device are the same exactly if their `id` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Unique for the device within this process; grows.
    pub id: u64,
    /// The newest loss before this epoch, however many began since: whoever did not hear of it, as its answer did not arrive
    /// or went to somebody else, is told by each that follows.
    pub loss: Option<Loss>,
}

impl Epoch {
    /// The first one of this process, after nothing.
    pub const FIRST: Self = Self { id: 1, loss: None };

    /// The one after a session that we closed ourselves.
    #[must_use]
    pub fn next(self) -> Self {
        Self { id: self.id + 1, ..self }
    }

    /// The one after a session that was lost.
    #[must_use]
    pub fn next_after_loss(self, since: BootTime) -> Self {
        let id = self.id + 1;
        Self { id, loss: Some(Loss { epoch: id, since }) }
    }

    /// Whether the one right before it was lost.
    pub fn begins_after_loss(self) -> bool {
        self.loss.is_some_and(|loss| loss.epoch == self.id)
    }

    /// Whether anything was lost after the epoch `known`.
    pub fn was_lost_after(self, known: u64) -> bool {
        self.loss.is_some_and(|loss| loss.epoch > known)
    }

    /// Whether anything was lost within a fence. What had stopped answering before it began was not lost within it (S2).
    pub fn was_lost_since(self, began: Began) -> bool {
        let since = |at| self.loss.is_some_and(|loss| loss.since >= at);
        match began {
            Began::Here(at) => since(at),
            Began::Elsewhere { led_since } => self.begins_after_loss() || since(led_since),
        }
    }
}

/// When a fence began, as far as this process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// By this process, at that time.
    Here(BootTime),
    /// By another one, nobody here knows when: what was lost right before the session of now, or since this process leads,
    /// may have been lost within it. What was lost earlier, and followed by sessions that ended well, was before.
    Elsewhere {
        /// Since when this process leads.
        led_since: BootTime,
    },
}

impl Default for Began {
    /// Every loss counts.
    fn default() -> Self {
        Self::Here(BootTime::default())
    }
}

/// One answer of one device. A failed call gives none: the judge is told of the silence instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it says.
    pub power: Power,
    /// When the *first* copy of the request was sent; a retransmission never renews it.
    pub asked_at: BootTime,
    /// When the answer arrived.
    pub answered_at: BootTime,
    /// The life of the device in which it was given; `None` for a device without epochs.
    pub epoch: Option<Epoch>,
    /// The device's own words, short, for people (`chassis status 0x60`).
    pub said: String,
    /// What makes its Off worth a grade less than the device's best one, in words for people; `None`: nothing. Of the readings that prove, the last
    /// one's counts. Whether it is Off is not changed by that.
    pub lowered_by: Option<String>,
}
