//! What can happen: a gateway does the next thing, a message arrives, somebody wants something, something goes wrong, or
//! time passes.

use super::world::Verb;
use crate::ids::EffectId;

/// The next thing that a gateway does. It follows from its state alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Do {
    Resign,
    Close(Vec<EffectId>),
    Quiesce(usize),
    Back,
    HoldIntent(usize),
    SendHold(usize),
    OffIntent,
    SendOff(usize),
    Read(usize),
    Hear(usize),
    GiveUpWaiting(usize),
    Judge,
    Unproven,
    Look,
    /// What is attached is asked for.
    Survey,
    /// How far the volume of that number is.
    Follow(usize),
    ReleaseIntent(usize),
    SendRelease,
    HearRelease,
    /// What stands is taken away.
    Withdraw,
    RestoreIntent,
    SendRestore(usize),
    OnIntent,
    SendOn(usize),
    HearBack(usize),
    ReadOn(usize),
    SeenOn,
    /// After a stand-down: whether a device says On.
    SeenAlive,
}

/// How a question to a device goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Luck {
    Fine,
    /// No answer.
    Silent,
    /// The answer comes when it is nearly given up.
    Late,
}

/// One step of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A gateway does the next thing.
    Does(usize, Do, Luck),
    /// A message arrives, and its answer with it, if anybody waits for that.
    Arrives(Verb, usize),
    /// The same, and a copy of it is still under way.
    ArrivesTwice(Verb, usize),
    /// It arrives, and its answer does not.
    Unanswered(Verb, usize),
    /// It will be late.
    Strays(Verb, usize),
    /// The device takes an off, and restarts before it does anything: from then on it says Off, whatever is true.
    RestartsUnder(usize),
    /// It tells the truth again.
    TellsTruth(usize),
    Campaigns(usize),
    Crashes(usize),
    Pauses(usize),
    GoesOn(usize),
    /// It does not reach the election any more.
    IsCut(usize),
    WantsFence(usize),
    WantsUnfence(usize),
    WantsReceipt(usize),
    HandsBack(usize),
    Retries(usize),
    Attests(usize),
    Abandons(usize),
    StandsDown(usize),
    /// A sign of life.
    Recovers(usize),
    /// The address of the first device leads elsewhere, or home again.
    Leads,
    /// A deadline of the engine passes.
    Overdue(usize),
    /// A watched node is looked at, and reads On.
    Notices(usize),
    /// The node goes off by itself.
    Dies,
    /// Somebody's power cycle begins, or ends.
    CycleBegins,
    CycleEnds,
    /// Somebody presses the button of a node that is off.
    Button,
    /// The node is back, and gets its volumes again.
    Reattached,
    /// Whoever acts on what stands lets the volume go.
    LetsGo,
    Tick,
}
