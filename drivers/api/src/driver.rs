//! The trait.

use std::time::Duration;

use async_trait::async_trait;
use picket_answers::device::{Accepted, DriverError, HoldFound, HoldReport, Identified};
use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity, MaxInFlight};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::parent::Placement;
use picket_core::power::{Power, Reading};
use picket_core::rules::Rules;
use picket_core::time::BootTime;

use crate::call::Call;
use crate::volumes::Volumes;

/// What a device is, told without any I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traits {
    /// What its On and Off speak of.
    pub class: DeviceClass,
    /// The best grade that its Off can have.
    pub grade: Grade,
    /// Whether its readings carry an epoch, where nothing else says so ([`PowerDriver::has_epochs`]).
    pub has_epochs: bool,
    /// S8: how long a command may still take effect after its sender stopped; the far side keeps the bound.
    pub max_in_flight: MaxInFlight,
    /// How long one call may take unless the settings say otherwise.
    pub call: Duration,
    /// What no two devices of the fleet may share (`ipmi 10.0.0.7:623`): two nodes with one BMC is a fault.
    pub endpoint: String,
}

impl Traits {
    /// The device as a topology has it where no settings say otherwise: by these rules, of unknown identity, not trusted after
    /// a restart, and a supply's wiring not verified.
    pub fn spec(&self, id: DeviceId, rules: &Rules) -> DeviceSpec {
        DeviceSpec {
            id,
            class: self.class,
            grade: self.grade,
            has_epochs: self.has_epochs,
            longest_cycle: rules.longest_cycle,
            call: self.call,
            dwell: rules.dwell,
            readings: rules.readings,
            max_in_flight: self.max_in_flight,
            trust_after_restart: None,
            verified: false,
            identity: Identity::default(),
        }
    }
}

/// What devices of several nodes share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// What it is and where, the same for all of them (`pdu1.example.org`).
    pub name: String,
    /// How many calls it bears side by side, at least 1, unless the settings say otherwise.
    pub at_once: usize,
    /// Each answer is of another machine, and one that is slow says nothing of the others: a cloud. Else it goes by its slowest.
    pub each_for_itself: bool,
}

/// One way to see or cut a node's power. Making one does no I/O.
///
/// Calls may be cancelled at any await by dropping the future; the next call must work.
/// A driver keeps one command in flight a device and orders waiting calls itself.
#[async_trait]
pub trait PowerDriver: Send + Sync + std::fmt::Debug {
    /// What it is.
    fn traits(&self) -> &Traits;

    /// Whether its readings carry an epoch, as is known now, told without any I/O: where the device itself decides it, checks find it out.
    /// A fence declares what is known at its intent, and keeps that. A device without may carry one all the same: then its loss is a
    /// loss, and nothing else comes of it.
    fn has_epochs(&self) -> bool {
        self.traits().has_epochs
    }

    /// When the device last refused a session whose life was not over: it restarted, or somebody ended the session (S2). Asked of devices
    /// without epochs; one with epochs tells it by those.
    fn refused_session_at(&self) -> Option<BootTime> {
        None
    }

    /// The word that the device said of itself in the newest handshake, where a secret vouches for it: RAKP's GUID, also one of zeros, by
    /// the session's; a certificate by its key. `None`: its protocol has no such word, or there was no handshake yet. Where nobody knows
    /// whose machine the device controls, the word stays the same within a fence (S13).
    fn far_side(&self) -> Option<String> {
        None
    }

    /// After how long at the soonest the far side ends a session in which nothing is said; `None`: it ends none by itself.
    /// Where nothing more is to be asked, [`quiesce`](Self::quiesce) is called shortly before that.
    fn shortest_idle(&self) -> Option<Duration> {
        None
    }

    /// Whether its epoch is a session, which ends when that does. `false`: it is what the device controls, a cloud's instance by its id.
    fn epoch_is_a_session(&self) -> bool {
        true
    }

    /// S8: whether a session can be ended by whoever has its name, and not only by who opened it. Then what is about to be sent
    /// is stored with the name of its session, and goes in that session or not at all.
    fn names_sessions(&self) -> bool {
        false
    }

    /// The name of the session in which a command would go now, told without any I/O, and without its secret (S18): all that
    /// [`end_session`](Self::end_session) needs where it comes from another process, which may have other settings. `None`: there
    /// is no session, or none that others can end. What is told may be over at the far side: then the command is refused, and
    /// power is read first.
    fn session(&self) -> Option<String> {
        None
    }

    /// Whether the next call will begin by logging in, as far as that is known without waiting: what does takes turns with others'.
    /// It decides nothing but when a call begins.
    fn is_cold(&self) -> bool {
        false
    }

    /// Whether each reading and command of it is a program that runs on this machine. Only so many of them run side by side as the
    /// settings say, fences first.
    fn runs_programs(&self) -> bool {
        false
    }

    /// The beginning of its endpoint, where nobody else's device may begin so: it takes whatever is the only one there. `None`: it
    /// is told by name.
    fn alone_at(&self) -> Option<&str> {
        None
    }

    /// Which machine its own settings name, where they name one for good (a server's id): what it must say it is, unless the settings
    /// of the node or the device say that.
    fn names(&self) -> Identity {
        Identity::default()
    }

    /// Whether that is what Kubernetes calls the machine that its own settings name (`spec.providerID`); `None`: they do not tell.
    fn is_provided_as(&self, _provider_id: &str) -> Option<bool> {
        None
    }

    /// What it shares with devices of other nodes: a PDU, a chassis, one management service. Calls there take turns. `None`: it
    /// answers for itself alone.
    fn shares(&self) -> Option<Shared> {
        None
    }

    /// The cloud whose names for machines its placement and its copies tell, in words that are the same for all its devices of that cloud:
    /// another cloud may call another machine so (S22). `None`: it tells of none.
    fn cloud(&self) -> Option<String> {
        None
    }

    /// S8 where one call takes `call` at most, as the settings have it. Here what the far side takes is all; a driver whose
    /// commands may still leave at the end of their call, by a sender that nobody leads any more, adds that call.
    fn max_in_flight(&self, call: Duration) -> MaxInFlight {
        let _ = call;
        self.traits().max_in_flight
    }

    /// S8 as the far side says it now, told without any I/O. What is about to be sent is stored with it: where its epoch is a session
    /// with the longer of this and what the settings say, else with this. What is open is waited out for the longer of what is stored
    /// and this. It is found out on the way, and keeps no off back.
    fn longest_life(&self) -> MaxInFlight {
        self.traits().max_in_flight
    }

    /// The setting that bounds it, where one does: whoever waits for that is told which.
    fn life_setting(&self) -> Option<&'static str> {
        None
    }

    /// Whether that is a guess, as the far side was not heard yet. What is open is waited out for what is stored alone then: of a
    /// driver that says so, each on and each detach went with a token that was seen to end by then.
    fn guesses_life(&self) -> bool {
        false
    }

    /// What whoever runs it ought to know of it as it is set, and is no fault; each a sentence for people, without secrets.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The obstacles that keep a fence from its end by this device, as its settings or its last check have it: each with what ends it, without
    /// secrets. A device with one is not ready.
    fn obstacles(&self) -> Vec<String> {
        Vec::new()
    }

    /// `None`: an Off of it may prove. Else why not without another device that must read Off too: it says off also where it does
    /// not know. A host device needs a host device beside it in its level that says so of nothing; a supply proves never, as
    /// another outlet says nothing of its own.
    fn never_alone(&self) -> Option<&str> {
        None
    }

    /// One fresh, uncached answer. An answer that is neither On nor Off is `Ok` with `Power::Unknown`;
    /// no answer is an error.
    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError>;

    /// Switch off, hard, never graceful. Sent in the epoch of the [`Call`] and in no other: in a new one the caller must see, and
    /// store, a loss first, and ask whose machine the device controls. So must whatever else changes something.
    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError>;

    /// After how long an off that it took is sent again while it reads `power`; `None`: never, it is on its way. A reading that was
    /// asked for after the off was taken.
    fn off_again(&self, power: Power) -> Option<Duration> {
        let _ = power;
        None
    }

    /// Why what its off switched off never comes back, in words, where that is so: it is ended for good (a cloud's instance, by a setting of
    /// its device). Such a node is not drilled, and not fenced to be switched on again.
    fn off_is_final(&self) -> Option<&str> {
        None
    }

    /// Why the machine never comes on again, in words, where the device has said so (a cloud's instance that was terminated); `None`: it
    /// may. Told without any I/O, of what was read last.
    fn gone_for_good(&self) -> Option<String> {
        None
    }

    /// Switch on. Power was read before the order was made, and the on goes in the session that was there then, where the device
    /// has sessions: none is opened for it, neither before its first copy nor after. So what comes between the store's word and the
    /// packet, also a stop of the whole machine that its clocks do not see, the far side bounds (S6, S8). Where there is no such
    /// session the effect did not happen.
    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError>;

    /// What the device says it controls.
    async fn identify(&self, call: &Call) -> Result<Identified, DriverError>;

    /// On which machine the node runs, as whoever places it says; never asked of that machine itself, which may be dead. What is
    /// not known to be over of a migration or an evacuation is open. Only what places machines knows this.
    async fn placement(&self, call: &Call) -> Result<Placement, DriverError> {
        let _ = call;
        Err(DriverError::unsupported("it does not know on which machine the node runs"))
    }

    /// The machines on which another copy of the node may run, as their owner names them, where an Off of this device says nothing of that
    /// copy: an evacuation left it. Asked after an Off was read, and tells at least of what began before that Off was asked for. An error
    /// means that it is not known, and that the Off does not count.
    async fn copies(&self, call: &Call) -> Result<Vec<String>, DriverError> {
        let _ = call;
        Ok(Vec::new())
    }

    /// The only node on which its node may run, where the settings name one.
    fn only_parent(&self) -> Option<&NodeId> {
        None
    }

    /// Whether [`placement`](Self::placement) is known to it at all.
    fn tells_placement(&self) -> bool {
        false
    }

    /// What a hold would change, as it is now. Changes nothing. Empty: no hold is supported.
    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError>;

    /// Whether its hold would bar the releases of its own node, as far as that is known without waiting: then it is engaged once more,
    /// late ([`HoldOrder::is_late`]), when the last of them is over.
    fn holds_late(&self) -> bool {
        false
    }

    /// The volumes of the machine that it controls, where it knows of them.
    fn volumes(&self) -> Option<&dyn Volumes> {
        None
    }

    /// What of a hold stands, by what [`inspect_hold`](Self::inspect_hold) found now, in the words of
    /// [`HoldReport::engaged`].
    fn engaged(&self, now: &HoldFound) -> Vec<String>;

    /// Whether that word of [`engaged`](Self::engaged) shows that the hold outlived a restart (S2). `false`: a device that has just
    /// started says it too, as that its watchdog does not run.
    fn outlives(&self, engaged: &str) -> bool {
        let _ = engaged;
        false
    }

    /// Tell the device to stay off by its own means.
    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError>;

    /// Put back what was found. A watchdog's settings are put back, the watchdog is never started.
    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError>;

    /// Whether something beside the machine may have been changed since its hold found that ([`left_beside`](Self::left_beside)).
    fn changes_beside(&self, found: &HoldFound) -> bool {
        let _ = found;
        false
    }

    /// Names, in words, what was changed beside the machine after the hold recorded `found`: a retirement undoes no hold, and leaves it
    /// changed. The call itself changes nothing.
    async fn left_beside(&self, found: &HoldFound, call: &Call) -> Result<Option<String>, DriverError> {
        let _ = (found, call);
        Ok(None)
    }

    /// Ends the session that carried commands, so that no late copy of one is executed (S8).
    /// `Ok` means: the close was answered, or the far side's idle limit was waited out.
    /// Waits at most until the call's deadline; an error means that the session may still be open.
    async fn quiesce(&self, call: &Call) -> Result<(), DriverError>;

    /// Ends the session of that name, which another process opened and which may carry a late command (S8). `Ok` means: the far
    /// side said clearly that there is no such session, and nothing is at work there that came in it. An error means that it may
    /// be open still: its commands are waited out for their longest life. Asked again, it says the same or better.
    /// Sent under the permit, and never where a session with another endpoint, or of another account, has that name.
    async fn end_session(&self, name: &str, call: &Call) -> Result<(), DriverError> {
        let _ = call;
        Err(DriverError::unsupported(format!("its sessions have no names, and {name:?} is none of them")))
    }
}
