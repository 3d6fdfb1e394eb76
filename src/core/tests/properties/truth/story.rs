//! What happens to a node besides what we do, and how that ends.

use super::Time;

/// A life of the BMC that begins in the middle.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// When it stops answering.
    pub at: Time,
    /// For so long it says nothing at all.
    pub silent: Time,
    /// And for so long after that it says Off whatever is true, and ignores what it is told.
    pub lies: Time,
}

/// Everything that happens to a node, besides what we do.
#[derive(Clone, Debug)]
pub struct Story {
    /// The node is on when the fence is opened.
    pub on: bool,
    /// Somebody's power cycle has begun: the node is off, and comes on then.
    pub cycle: Option<Time>,
    /// How long the power takes to fall after an off.
    pub fall: Time,
    /// So many offs are taken and ignored.
    pub ignored: u8,
    /// Restarts of the BMC, or of the other host device.
    pub restarts: Vec<Restart>,
    pub other_restarts: bool,
    /// Copies of an on of ours from before that arrive late; it stands in the ledger until 20 s.
    pub late_ons: Vec<Time>,
    /// The BMC says Off from then on, without a restart. Only where another host device tells the truth.
    pub liar: Option<Time>,
    /// The levels: the BMC, another host device beside it or after it, supplies.
    pub levels: Levels,
    /// The BMC has no epochs.
    pub plain: bool,
    /// Another leadership began the fence.
    pub resumed: bool,
    /// How long the power stays after the last supply was cut.
    pub hold_up: Time,
    /// How calls go, one after the other, again and again.
    pub luck: Vec<Luck>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    Alone,
    Beside,
    After,
    Supplies,
}

/// How one call goes.
#[derive(Clone, Copy, Debug)]
pub struct Luck {
    /// To the device, and back.
    pub there: Time,
    pub back: Time,
    pub fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As it should.
    Fine,
    /// It arrives, and the answer does not.
    AnswerLost,
    /// It does not arrive.
    Lost,
    /// The device says that it does not know.
    Unknown,
    /// Our driver had closed the session, and opens another.
    Reconnects,
}

/// How a story ended.
#[derive(Debug)]
pub struct Ending {
    pub confirmed_at: Option<Time>,
    /// What is on, or will come on, although it was confirmed.
    pub fault: Option<String>,
    pub said: String,
}
