//! What happens in a history, in the order of time: for the law, for the hash by which two histories are compared, and
//! for whoever reads why one failed.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use picket_core::device::Grade;
use picket_core::ids::{EffectId, FenceId, Generation, NodeId, ReceiptId, ReleaseId, Term, Version};
use picket_core::receipt::Statement;
use picket_core::record::NodeRecord;
use picket_core::time::{BootTime, WallTime};
use picket_driver_sim::{Heard, Verb, VolumeMove};

use crate::rights::Rights;
use crate::tally::Tally;

/// The number of a gateway, from 0.
pub(crate) type GatewayId = usize;

/// What changes something at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Power(Verb),
    Hold,
    Detach,
}

/// How a caller with a key was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Let in: this fence.
    Fence(FenceId),
    /// It was said that nothing was changed.
    Nothing(String),
    /// The key is bound to other parameters, and to that fence.
    Taken,
    /// Nobody knows.
    Unknown,
}

/// What went wrong by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// A process was killed, or died at a point or with its machine.
    Killed,
    /// A process was told to end.
    Ended,
    /// The store lost its quorum.
    NoQuorum,
    /// The network between a gateway and the store went bad.
    ToStore,
    /// That to the devices.
    ToDevices,
    /// No gateway reaches any device, for longer than a session lives.
    Dark,
    /// A device restarted under an off that it took, and says Off of a machine that runs.
    Restarted,
    /// A device, or something at a machine.
    AtDevice,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Something went wrong by itself.
    Struck(Blow),
    /// A gateway won at the store.
    Won { gateway: GatewayId, term: Term },
    /// Its lease ended there.
    Lapsed { term: Term },
    /// The store took a record.
    Stored {
        gateway: GatewayId,
        term: Term,
        version: Version,
        record: Arc<NodeRecord>,
        /// What stood there before.
        was: Arc<NodeRecord>,
        /// The writer's wall clock.
        wall: WallTime,
    },
    /// The store bound a key.
    Bound { node: NodeId, key: String, fence: FenceId },
    /// The store confirmed leadership and version.
    Checked { gateway: GatewayId, node: NodeId },
    /// A gateway may send a command, and is about to.
    Permitted { gateway: GatewayId, device: String, control: Control },
    /// It left: at once, or after the process was stopped for a while.
    Sent { gateway: GatewayId, device: String, control: Control, after: Duration },
    /// A power command arrived.
    Heard(Heard),
    /// Something happened to a volume.
    Moved(VolumeMove),
    /// An attempt to release was permitted.
    Attempt {
        gateway: GatewayId,
        node: NodeId,
        release: ReleaseId,
        effect: EffectId,
        generation: Generation,
        fence: FenceId,
        grade: Grade,
    },
    /// The far side let the volumes go.
    Released {
        gateway: GatewayId,
        node: NodeId,
        generation: Generation,
        permitted_at: BootTime,
        grade: Grade,
    },
    /// A receipt was handed out, and says so to whoever verifies it by the keys that are listed.
    Receipted { node: NodeId, id: ReceiptId, said: Result<Box<Statement>, String> },
    /// Whoever has it relies on it no more, and asks to hand it back.
    HandsBack { node: NodeId, id: ReceiptId },
    /// A wall clock jumped.
    Jumped { gateway: GatewayId },
    /// A process was stopped, and goes on at `until`; `machine`: with the whole machine under it, and both clocks of that.
    Stopped { gateway: GatewayId, until: BootTime, machine: bool },
    /// A process that was stopped goes on.
    WentOn { gateway: GatewayId },
    /// A process began.
    Began { gateway: GatewayId },
    /// A gateway reads settings with these rights, or has said that they hold.
    Rights { gateway: GatewayId, rights: Arc<Rights>, hold: bool },
    /// A gateway's audit was told that a node came to that phase, or began another generation in it.
    Told { gateway: GatewayId, node: NodeId, to: String },
    /// A caller with a key asks.
    Asks { node: NodeId, key: String },
    /// And is answered.
    Answered { node: NodeId, key: String, told: Told },
}

/// One event with its time.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: BootTime,
    pub(crate) what: What,
}

/// Words, into a hash.
struct Mixer<'t>(&'t mut Trace);

impl Write for Mixer<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.mix_text(text);
        Ok(())
    }
}

/// Everything that happened, as a hash; in words only if they are to be read.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    tally: Tally,
    loud: bool,
    diary: Vec<String>,
}

impl Trace {
    pub(crate) fn new(loud: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, tally: Tally::default(), loud, diary: Vec::new() }
    }

    fn mix(&mut self, bits: u64) {
        // FNV-1a over whole words: quick, and a difference stays one.
        self.hash = (self.hash ^ bits).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
    }

    fn mix_text(&mut self, text: &str) {
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    pub(crate) fn take(&mut self, event: &Event) {
        self.tally.take(event);
        self.mix(u64::try_from(event.at.since_boot().as_nanos()).unwrap_or(u64::MAX));
        match &event.what {
            What::Stored { gateway, term, version, record, wall, .. } => {
                let open = record.ledger.open();
                let numbers = [
                    1,
                    *gateway as u64,
                    term.0,
                    version.0,
                    record.generation.0,
                    wall.millis(),
                    open.len() as u64,
                    open.last().map_or(0, |open| open.id.0),
                ];
                numbers.into_iter().for_each(|number| self.mix(number));
                self.mix_text(record.node.as_str());
                self.mix_text(record.phase.label());
            }
            What::Heard(heard) => {
                self.mix(2 + u64::from(heard.verb == Verb::On) * 2 + u64::from(heard.executed));
                self.mix_text(&heard.device);
            }
            // Straight into the hash: nothing is kept of it. Writing there does not fail.
            other => drop(write!(Mixer(self), "{other:?}")),
        }
        if self.loud {
            self.tell(event);
        }
    }

    fn tell(&mut self, event: &Event) {
        let words = match &event.what {
            What::Stored { gateway, term, version, record, .. } => {
                let open: Vec<String> =
                    record.ledger.open().iter().map(|open| format!("{}{:?}", open.id, open.kind)).collect();
                let fence = record.fence.as_ref();
                let last = fence.and_then(|fence| fence.moments.last()).map_or("", |m| m.what.as_str());
                format!(
                    "{} is {} in generation {}, version {version}, by g{gateway} in term {term}; open {open:?}; proven {}; {last}",
                    record.node,
                    record.phase.label(),
                    record.generation,
                    fence.is_some_and(|fence| fence.evidence.is_some()),
                )
            }
            What::Sent { gateway, device, control, after } => {
                format!("g{gateway} sends {control:?} to {device}, {after:?} after its permit")
            }
            other => format!("{other:?}"),
        };
        self.say(event.at, || words);
    }

    pub(crate) fn say(&mut self, at: BootTime, words: impl FnOnce() -> String) {
        if self.loud {
            self.diary.push(format!("{:>12.4?} {}", at.since_boot(), words()));
        }
    }

    pub(crate) fn diary(&self) -> String {
        self.diary.join("\n")
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }
}
