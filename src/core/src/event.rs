//! What can happen to a node.

mod asked;
mod label;

use std::collections::BTreeMap;
use std::time::Duration;

pub use self::asked::{
    BoundKey, FenceRequest, Holder, JoinRequest, MaxLife, Overrides, Person, PlannedRelease, Survey,
};
use crate::confirm::ConfirmedOff;
use crate::device::{Grade, Identity, MaxInFlight};
use crate::ground::Look;
use crate::ids::{DeviceId, EffectId, FenceId, ReceiptId, ReleaseId};
use crate::outcome::Reason;
use crate::receipt::ReceiptRequest;
use crate::record::{HoldState, ReleaseStage, Restored, Said};
use crate::topology::Topology;

/// What can happen to a node. What proves is passed by reference: it stays with whoever holds it.
#[derive(Debug)]
pub enum Event<'a> {
    /// A caller wants it off. From Normal, Unfencing (the fence wins) and PowerOnFailed.
    Fence(Box<FenceRequest>),
    /// The same as a drill: of a node of which nothing is wrong. From Normal alone.
    Drill(Box<FenceRequest>),
    /// Another caller wants the same: its hold, and its key, are added.
    Join(Box<JoinRequest>),
    /// The next level is tried.
    NextLevel {
        /// Why this one did not hold; empty: as it was told before.
        why: String,
        /// No device of any level was reached in the round that ends with this: where nothing was sent, others have its place (S14).
        gives_way: bool,
    },
    /// This gateway reaches none of its devices: another one tries (S17).
    HandOver {
        /// The gateway, by name.
        gateway: String,
        /// What it saw.
        why: String,
        /// No other one is left to try: it goes on itself.
        stays: bool,
    },
    /// The device is about to be told to stay off; this was found.
    HoldIntent {
        /// Device and what was found; what is stored already is never overwritten.
        found: BTreeMap<DeviceId, BTreeMap<String, String>>,
    },
    /// What the holds did. Closes those whose end is known: an answer is none, a copy that was sent again may still land.
    HoldEnded {
        /// By device: what is engaged.
        results: Vec<(DeviceId, HoldState)>,
        /// Effects whose end is known.
        known: Vec<EffectId>,
    },
    /// These devices are about to be switched off.
    OffIntent {
        /// The devices.
        devices: Vec<DeviceId>,
        /// Those of the node's devices that said whose machine they control.
        identified: Vec<DeviceId>,
    },
    /// The offs of a fence are stored, and did not happen: it may end before its first off still (S15).
    NotSent {
        /// The offs. No other one of this fence was ever stored.
        effects: Vec<EffectId>,
        /// Why they did not happen.
        why: String,
    },
    /// What the liveness source names the node's present boot, before the first off. Later ones change nothing.
    Boot(String),
    /// The node is well in the boot in which it was before the first off, after the end of each off: the fence ends by that (S15).
    Recovered {
        /// The boot in which it is well.
        boot: String,
        /// What said so.
        why: String,
    },
    /// The session of a device was lost within this fence (S2).
    Lost {
        /// The device.
        device: DeviceId,
    },
    /// What a device said of whose machine it controls, where nobody knows which that is: within the fence it says no other (S13).
    Said {
        /// The device.
        device: DeviceId,
        /// What it said.
        said: Said,
    },
    /// A host device says On: nobody's look at the machine, and no proof from before, lets an Off of this fence be believed any more (S2).
    SeenOn {
        /// The device.
        device: DeviceId,
    },
    /// A device that answered within the fence does not any more, or does again in the same session.
    Silent {
        /// It.
        device: DeviceId,
        /// Whether it is silent now.
        silent: bool,
    },
    /// The judge is content.
    Confirmed(&'a ConfirmedOff),
    /// A person vouches that it is off (S12).
    Attest {
        /// Who.
        person: Person,
        /// All host devices, asked just now.
        looks: &'a [Look],
    },
    /// What a release that is made of parts has to let go, or why that could not be told.
    ReleaseSurveyed {
        /// Which.
        release: ReleaseId,
        /// What was found.
        found: Result<Survey, String>,
    },
    /// A release is about to be attempted.
    ReleaseIntent {
        /// Which.
        release: ReleaseId,
        /// How long an attempt may take effect as the far side says now, where it says so (S8): the longer holds.
        life: Option<MaxLife>,
        /// What it would set up lets go for as long as it stands, as its releaser says now.
        lingers: Option<Duration>,
        /// Whether it may set that up. False: it takes away what has to go before, and nothing else.
        sets_up: bool,
    },
    /// What a release would set up was found to stand there, by no attempt that is known.
    StandsFound {
        /// Which.
        release: ReleaseId,
        /// How long it may be acted on once it is gone, as its releaser says now.
        lingers: Duration,
    },
    /// Whether what somebody else set up bars a release, and the way back, was answered otherwise than before (K7).
    Barred {
        /// Which.
        release: ReleaseId,
        /// Whether it does now.
        is: bool,
    },
    /// Whom the far side of a release has for the node. Only the first word counts.
    ReleaseSubject {
        /// Which.
        release: ReleaseId,
        /// In the far side's words.
        subject: String,
    },
    /// What an attempt, or a look at it, said.
    ReleaseProgress {
        /// Which.
        release: ReleaseId,
        /// How far it is now.
        stage: ReleaseStage,
        /// In words.
        detail: String,
        /// The attempt, if its end is known with this.
        known: Option<EffectId>,
    },
    /// The deadline of a release is over, and one behind it acts in its place before it is its turn again (S23).
    PassedOn {
        /// Which.
        release: ReleaseId,
        /// What acts now.
        to: ReleaseId,
        /// Why.
        why: String,
    },
    /// What attempts had set up was seen to be gone.
    Withdrawn {
        /// What of it stood when that was asked for.
        effects: Vec<EffectId>,
    },
    /// The Off that confirmed is not to be had any more: evidence from zero, in the same fence (S4).
    Unproven {
        /// Why.
        why: String,
        /// What the node proved of those that run on it is void, too: something was seen of it. False: whoever had the proof is
        /// gone, and it is made anew.
        seen: bool,
    },
    /// It was found on although nobody unfenced it: a new fence (S11).
    Breach {
        /// The new fence's id.
        id: FenceId,
        /// The device that says On.
        device: DeviceId,
    },
    /// A node that was let on, and was not seen to come on in time, was found on: bringing it back goes on.
    CameOn {
        /// The device that says On.
        device: DeviceId,
    },
    /// Only a person can go on.
    GiveUp {
        /// The stable reason.
        reason: Reason,
        /// In words.
        detail: String,
    },
    /// The last look found a reason not to begin (S15). Only before the first off.
    Abort {
        /// Why.
        why: String,
    },
    /// The last look found a pause or a limit (S15). Only before the first off.
    Bar {
        /// The stable reason.
        reason: Reason,
        /// In words.
        why: String,
    },
    /// Another reason to keep it off, or another word for one that stands. It lasts until it is dropped by name.
    Hold {
        /// The hold's name.
        holder: String,
        /// Who asked, and why.
        person: Person,
    },
    /// A hold is dropped; with none left the node is brought back.
    Unfence {
        /// The hold's name.
        holder: String,
        /// Who asked, and why.
        person: Person,
    },
    /// What the hold found is about to be put back.
    UnholdIntent,
    /// These devices' holds were undone.
    Unheld {
        /// The devices.
        devices: Vec<DeviceId>,
        /// What could not be put back, in words.
        detail: String,
    },
    /// These devices are about to be switched on.
    OnIntent {
        /// The devices.
        devices: Vec<DeviceId>,
    },
    /// These supplies were seen on.
    SuppliesOn {
        /// The devices.
        devices: Vec<DeviceId>,
    },
    /// It is back: seen on, or what was begun is undone.
    Back {
        /// In words.
        detail: String,
    },
    /// It was not seen on in time.
    OnFailed {
        /// In words.
        detail: String,
    },
    /// The ends of these effects are known.
    Closed {
        /// The effects.
        effects: Vec<EffectId>,
        /// How it is known (`session closed`, `its longest life has passed`).
        why: &'static str,
    },
    /// The backup out of which the store came knows nothing of the node: whatever was stored of it since is lost (S21).
    Marked(Restored),
    /// The node came out of a backup: what may have been under way when its store was lost is waited out (S21).
    Adopt {
        /// The node's levels.
        topology: Topology,
        /// The node's releases.
        releases: Vec<PlannedRelease>,
        /// How long a receipt may be open at most.
        receipts: Duration,
    },
    /// What the devices of a node say that came out of a backup (S21).
    Read {
        /// The id of a fence that stands for it, should it be off and have none.
        id: FenceId,
        /// The node's levels.
        topology: Topology,
        /// Its devices, asked just now.
        looks: Vec<Look>,
    },
    /// An admin drops the hold under which a restore keeps the node off (S21).
    DropRestored(Person),
    /// An admin ends the hold of a child: it proves nothing of its child any more, and is let go once nothing relies on it (S22).
    EndChildsHold {
        /// Under which name the child holds the node.
        holder: String,
        /// The child's fence.
        fence: Option<FenceId>,
        /// Who.
        person: Person,
    },
    /// The hold of a child goes: nothing of the child relies on it any more (S22).
    LetGo {
        /// Under which name the child held the node.
        holder: String,
        /// Why, in words.
        person: Person,
    },
    /// A person wants it tried again.
    Retry(Person),
    /// The gateway tries it again by itself.
    TryAgain {
        /// Why.
        why: &'static str,
    },
    /// The same by a person who looked at the machine, and says that it is off: what devices say that restarted within this fence is
    /// believed again (S2).
    RetrySeenOff {
        /// Who.
        person: Person,
        /// The host devices, asked just now: refused while one says On.
        looks: &'a [Look],
    },
    /// The node's levels as the settings have them now: whatever a person tries again goes by these. Of a node that is being let back in by what
    /// they say of whose machines the same devices control.
    NewTopology(Topology),
    /// The settings of now are not those that were wanted last: in words, for a person who tries again.
    OtherSettings(String),
    /// For a person a lower grade is enough than the fence asks for, which waits for a better one: it goes on.
    AskedForLess {
        /// The grade.
        grade: Grade,
        /// Who.
        person: Person,
    },
    /// Limits are set aside for a fence that has sent no off: they bar it no more, also in a round that a person asks for later.
    SetAside(Overrides),
    /// A person gives a release up.
    Abandon {
        /// Which.
        release: ReleaseId,
        /// Who.
        person: Person,
        /// Nothing is sent to the node, which is not in the settings as it was fenced: its fence, or unfence, goes on to no
        /// phase in which releases could end by themselves.
        orphan: bool,
    },
    /// A person says that it was alive. From PowerOnFailed the supplies that do not come on are given up.
    StandDown(Person),
    /// A person says that the hardware is gone for good.
    Retire {
        /// Who.
        person: Person,
        /// The devices as the settings have them; `None`: they do not have the node.
        settings: Option<String>,
        /// What the fence leaves changed beside the machine, in words.
        left: Vec<String>,
    },
    /// What the settings say now of a node that was retired. Another machine than then: it is a new one.
    Resettled {
        /// Its devices; `None`: they do not have the node.
        settings: Option<String>,
    },
    /// A person accepts what a device says it controls (S13): a board was exchanged.
    Accepted {
        /// The device.
        device: DeviceId,
        /// What it says.
        identity: Identity,
        /// Who.
        person: Person,
    },
    /// What the drill under way has shown.
    Drilled {
        /// Supplies that were cut, with which the host went dark and came back, each with its address.
        verified: BTreeMap<DeviceId, String>,
        /// Devices whose learned identity is the node's by the word of another witness, which saw the node fall; each with that witness.
        identities: BTreeMap<DeviceId, String>,
        /// In words, verified or not.
        findings: Vec<String>,
    },
    /// A caller's request that is safe to repeat: what it asks happens, and the key is bound, to the node's fence if it
    /// has one, in one write (S20).
    Keyed {
        /// What is asked.
        event: Box<Event<'a>>,
        /// The caller's key.
        key: BoundKey,
        /// Its name.
        by: String,
    },
    /// Something is about to be sent, each in the session that its device has now (S8): stored with it, and sent in no other.
    InSessions {
        /// What is about to be.
        event: Box<Event<'a>>,
        /// By device, as its driver names it; a device that is not there has no session that others could end.
        sessions: BTreeMap<DeviceId, String>,
        /// How long it may live as the far side says now, by device, where that is not what the settings say: it holds instead.
        lives: BTreeMap<DeviceId, MaxInFlight>,
    },
    /// What was found before it, and that: in one write, or none of it.
    After {
        /// What was found.
        found: Vec<Event<'a>>,
        /// What is about to be.
        event: Box<Event<'a>>,
    },
    /// What a caller asks for is so, or is coming, without it: the node is not fenced, or is being brought back. Nothing
    /// changes; keyed, a copy of the request that comes later is known.
    SoAlready,
    /// Somebody wants it signed that the node is dark (S19).
    ReceiptIntent(Box<ReceiptRequest<'a>>),
    /// A receipt is handed back: its holder relies on it no more. Handed back twice, nothing changes.
    ReceiptReturned {
        /// Which.
        id: ReceiptId,
        /// Who hands it back: whom it was issued to, and nobody else.
        by: String,
    },
    /// A device's identity was learned at a check, in Normal.
    Learned {
        /// The device.
        device: DeviceId,
        /// What it says.
        identity: Identity,
    },
    /// Somebody else than the device says at a check which machine is the node's, and the device says another, in Normal (S13).
    IdentityTold {
        /// The device.
        device: DeviceId,
        /// What the node's machine is.
        identity: Identity,
        /// Who says so, in words.
        by: String,
    },
    /// Somebody else than the device says at a check that the identity learned from it is the node's, in Normal (S13).
    IdentityProven {
        /// The device.
        device: DeviceId,
        /// The identity that was proven: what is learned by now may be another one.
        identity: Identity,
        /// Who says so, in words.
        by: String,
    },
}
