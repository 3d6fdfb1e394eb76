//! What is true, whoever knows it: the node's power, its volume, its devices, messages on their way, and who relies on a
//! receipt. Also how much may still go wrong.

use std::sync::LazyLock;

use crate::ids::{DeviceId, EffectId, Generation, ReceiptId, ReleaseId};

/// How many devices the node has at most.
pub(super) const DEVICES: usize = 2;

/// How many volumes the node has at most.
pub(super) const VOLUMES: usize = 2;

/// How many gateways there are.
pub(super) const GATEWAYS: usize = 2;

static NAMES: LazyLock<[DeviceId; DEVICES]> =
    LazyLock::new(|| [crate::support::device("a"), crate::support::device("b")]);
static DETACH: LazyLock<ReleaseId> = LazyLock::new(|| crate::support::release("detach"));
static PARTS: LazyLock<[ReleaseId; VOLUMES]> = LazyLock::new(|| [0, 1].map(|v| DETACH.part(&volume(v))));

/// The device of that number.
pub(super) fn device(number: usize) -> DeviceId {
    NAMES[number].clone()
}

/// The number of a device.
pub(super) fn number(device: &DeviceId) -> usize {
    NAMES.iter().position(|name| name == device).unwrap_or(DEVICES)
}

/// The one release of the node.
pub(super) fn detach() -> ReleaseId {
    DETACH.clone()
}

/// What a volume is called.
pub(super) fn volume(number: usize) -> String {
    format!("v{number}")
}

/// The part of the release that lets go the volume of that number.
pub(super) fn part(number: usize) -> ReleaseId {
    PARTS[number].clone()
}

/// The number of the volume that a release lets go; of the whole one, which has parts or none, there is none.
pub(super) fn of_part(release: &ReleaseId) -> Option<usize> {
    PARTS.iter().position(|part| part == release)
}

/// What a message does where it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Verb {
    Off(usize),
    On(usize),
    Hold(usize),
    /// What the hold found is put back.
    Restore(usize),
    /// The volume of that number is let go.
    Release(usize),
}

impl Verb {
    pub(super) fn device(self) -> Option<usize> {
        match self {
            Verb::Off(d) | Verb::On(d) | Verb::Hold(d) | Verb::Restore(d) => Some(d),
            Verb::Release(_) => None,
        }
    }
}

/// On its way: also what stands between a gateway's permit and its sending. It arrives before its far side's bound, if at
/// all; when, and in which order, nobody says.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) verb: Verb,
    pub(super) effect: EffectId,
    pub(super) generation: Generation,
    /// The gateway, while its process lives: closing its session ends what it sent in it.
    pub(super) sender: Option<usize>,
    /// When it was sent, or, to a device, when anything was last said in its session.
    pub(super) since: u64,
    /// It is late: the world may go on without it.
    pub(super) stray: bool,
    /// A release whose look got no answer from a host device of the node: a person's word alone stands behind it.
    pub(super) unseen: bool,
    /// The session in which it was sent, by its number.
    pub(super) session: u64,
    /// That session is another machine's.
    pub(super) astray: bool,
}

/// Why the node is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// It always was, or we switched it on, or somebody's power cycle that had begun before the fence did.
    Known,
    /// Somebody pressed its button at that tick, although nobody unfenced it. No rule can foresee that.
    Button(u64),
}

/// A device's true state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Board {
    /// How often it restarted.
    pub(super) life: u64,
    /// Since its restart it says Off whatever is true, and does nothing.
    pub(super) lies: bool,
    /// It was told to stay off.
    pub(super) kept: bool,
}

/// Who holds a receipt, and relies on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reliance {
    pub(super) receipt: ReceiptId,
    /// Their clock may be behind by the margin: they rely on it until then.
    pub(super) until: u64,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    /// `None`: off.
    pub(super) power: Option<Cause>,
    /// Somebody's power cycle is under way: the node comes on before that tick.
    pub(super) cycle: Option<u64>,
    /// Which volumes are the node's own.
    pub(super) owned: [bool; VOLUMES],
    /// The newest generation for which the volume's keeper let it go: it acts once a key, and for no older one. A cloud, whose volumes
    /// are parts, acts whenever the node has the volume.
    pub(super) acted: Option<Generation>,
    /// What lets the volume go stands.
    pub(super) stands: bool,
    /// It is acted on until then, although it was taken away.
    pub(super) acts_until: u64,
    /// Confirmed, or vouched for, and nobody unfenced it since.
    pub(super) kept_off: bool,
    /// Somebody unfenced the node, and it was not switched on since.
    pub(super) owed: bool,
    pub(super) boards: [Board; DEVICES],
    pub(super) messages: Vec<Message>,
    pub(super) reliance: Option<Reliance>,
    /// The address of the first device leads to another machine's.
    pub(super) astray: bool,
}

/// As often as anybody likes.
pub(super) const ALWAYS: u8 = u8::MAX;

/// How much may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) fences: u8,
    pub(super) unfences: u8,
    pub(super) receipts: u8,
    /// What people decide: retry, attest, abandon.
    pub(super) people: u8,
    /// A process dies.
    pub(super) crashes: u8,
    /// A process stands still, for as long as it likes.
    pub(super) pauses: u8,
    /// A gateway does not reach the election any more.
    pub(super) cuts: u8,
    /// A message is late, or its answer is lost.
    pub(super) late: u8,
    /// A message arrives twice.
    pub(super) doubled: u8,
    /// A device gives no answer to a question.
    pub(super) silences: u8,
    /// A deadline of the engine passes.
    pub(super) overdue: u8,
    /// A sign of life comes before the off.
    pub(super) aborts: u8,
    /// The node goes off by itself.
    pub(super) deaths: u8,
    /// Somebody's power cycle begins before a fence.
    pub(super) cycles: u8,
    /// Somebody presses the node's button.
    pub(super) buttons: u8,
    /// A device restarts within a fence, under an off that it took, and says Off whatever is true.
    pub(super) restarts: u8,
    /// The address of the first device leads to another machine's, or home again.
    pub(super) leads: u8,
}

impl Budget {
    /// What may happen, and how often.
    pub(super) fn words(&self) -> String {
        let some = self.counts().into_iter().filter(|(_, count)| *count > 0);
        let word = |(name, count): (&str, u8)| {
            if count == ALWAYS { name.to_owned() } else { format!("{count} {name}") }
        };
        some.map(word).collect::<Vec<String>>().join(", ")
    }

    /// The counts, one after the other.
    pub(super) fn counts(&self) -> [(&'static str, u8); 17] {
        [
            ("fences", self.fences),
            ("unfences", self.unfences),
            ("receipts", self.receipts),
            ("people", self.people),
            ("crashes", self.crashes),
            ("pauses", self.pauses),
            ("cuts", self.cuts),
            ("late", self.late),
            ("doubled", self.doubled),
            ("silences", self.silences),
            ("overdue", self.overdue),
            ("aborts", self.aborts),
            ("deaths", self.deaths),
            ("cycles", self.cycles),
            ("buttons", self.buttons),
            ("restarts", self.restarts),
            ("leads", self.leads),
        ]
    }
}
