//! What goes wrong, as data: a scenario can be written down, stored and replayed.

use crate::children::Moving;
use std::time::Duration;

use picket_core::device::Identity;
use picket_core::time::written;
use serde::{Deserialize, Serialize};

use crate::wire::Verb;

/// How a device misbehaves until it is mended. Several may hold at once; those with `times` wear off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An off is acknowledged at once; the fall comes between `least` and `most` later.
    OffTakes {
        /// Least.
        #[serde(with = "crate::span")]
        least: Duration,
        /// Most.
        #[serde(with = "crate::span")]
        most: Duration,
    },
    /// The same for an on.
    OnTakes {
        /// Least.
        #[serde(with = "crate::span")]
        least: Duration,
        /// Most.
        #[serde(with = "crate::span")]
        most: Duration,
    },
    /// An off is acknowledged and ignored; the device goes on to say On.
    OffIgnored,
    /// An off is acknowledged and ignored, and the device says Off from then on, until an on.
    OffLied,
    /// An off is refused without a reason.
    OffRefused,
    /// An off is refused, as the account may read and not switch.
    OffForbidden,
    /// An on is refused without a reason.
    OnRefused,
    /// An on is acknowledged and dropped.
    OnDropped {
        /// So many times.
        times: u32,
    },
    /// It says Off, whatever is true.
    SaysOff,
    /// It says On, whatever is true.
    SaysOn,
    /// It answers, but neither On nor Off: stuck in a transitional state.
    SaysNothing,
    /// It answers what nobody knows: a word that is none (Redfish), a chassis status of two bytes (IPMI).
    SaysNonsense,
    /// While a fall or rise is under way it answers neither On nor Off.
    SaysTransition,
    /// Off when off (on when on) is answered with an error instead of a flag.
    AlreadyIsError,
    /// Off when off (on when on) is refused without a reason.
    AlreadyIsRefused,
    /// Off when off (on when on) is acknowledged as if something had happened.
    AlreadyIsUnsaid,
    /// No answer to anything, and nothing is done: the device is dead.
    Silent,
    /// No answer to questions for its identity and for what a hold would change: it does not know them.
    DropsQuestions,
    /// Every answer comes so much later; what was asked happens at once.
    Slow(#[serde(with = "crate::span")] Duration),
    /// The command is executed so much later, if its session is still open then.
    Late {
        /// Which command.
        verb: Verb,
        /// How much later.
        #[serde(with = "crate::span")]
        after: Duration,
        /// Whether it is acknowledged at once; else no answer comes.
        answered: bool,
        /// So many times.
        times: u32,
    },
    /// The command is executed at once, and its duplicate so much later, if the session is still open then.
    Twice {
        /// Which command.
        verb: Verb,
        /// How much later.
        #[serde(with = "crate::span")]
        after: Duration,
        /// So many times.
        times: u32,
    },
    /// The next off is taken, and it restarts before it does anything: an [`Act::RestartBmc`], after which it says Off of a machine
    /// that runs on, until that comes on anew. Nothing of that where the machine is off already.
    RestartsUnderOff {
        /// How long it is silent.
        #[serde(with = "crate::span")]
        down: Duration,
    },
    /// Every packet, in both directions, arrives twice.
    Doubled,
    /// What was asked happens; no answer comes.
    AnswerLost {
        /// So many times.
        times: u32,
    },
    /// Nothing happens, no answer comes.
    RequestLost {
        /// So many times.
        times: u32,
    },
    /// Requests, and answers, are each lost in so many of 100 cases.
    Loss {
        /// 0 to 100.
        percent: u8,
    },
    /// In so many of 100 cases a packet, or an answer, comes so much later, and after those that were sent after it. For real
    /// packets ([`World::passage`](crate::World::passage)) alone: the driver within one process asks one thing after the other.
    Reordered {
        /// 0 to 100.
        percent: u8,
        /// How much later.
        #[serde(with = "crate::span")]
        by: Duration,
    },
    /// It says that it controls something else.
    SaysIdentity(Identity),
    /// It says nothing of what it controls, as one that starts.
    SaysNoIdentity {
        /// So many times.
        times: u32,
    },
    /// It knows nothing of holds.
    HoldUnsupported,
    /// It has no restore policy and locks no button: its hold is the watchdog's alone.
    HoldsByWatchdog,
    /// It acknowledges a hold and does nothing.
    HoldIgnored,
    /// No further session is to be had.
    SessionsFull,
    /// It says that it ended another session, and did not: no device may (S8).
    EndsNoOther,
    /// It refuses the credentials.
    WrongPassword,
    /// It tells nothing of volumes.
    VolumesUntold,
    /// It starts: whatever it is asked, it says that it is busy.
    Starting,
    /// Redfish: its list of systems is empty.
    NamesNoSystem,
    /// Redfish: its answers end in the middle of their bodies, and their connections with them.
    CutsAnswers,
    /// Redfish: its refusals (401, 503) end in the middle of their bodies, and their connections with them; other answers are whole.
    CutsRefusals,
    /// Redfish: its bodies come packed by gzip, whether that was asked for or not.
    PacksAnswers,
    /// Redfish: a path without a slash at its end is redirected to the one with it (308).
    Redirects,
    /// Redfish: its root shows no links to who brings no credentials.
    HidesLinks,
    /// Redfish: its root is refused (401) to who brings no credentials.
    RootRefused,
    /// Redfish: each login is refused (401); basic authentication is taken.
    LoginsRefused,
    /// Redfish: a login makes a session, and its answer does not say all of it.
    LoginSays(Login),
    /// Redfish: its restore policy stands where an iLO 5 has it (`Oem.Hpe.PowerAutoOn`), and not where the standard says.
    HoldsAsIlo,
    /// Redfish: its restore policy is the BIOS attribute `AcPwrRcvry`, as an iDRAC has it, which is read and cannot be set.
    HoldsAsIdrac,
    /// Redfish: a change of the system is taken by another version (ETag) than it says.
    TakesVersion(Version),
    /// Redfish: its certificate is its own, as `openssl req -x509` makes it: `CA:TRUE`, no name.
    OwnCertificate,
    /// Redfish: the same as X.509 v1, which has no extensions.
    OwnCertificateV1,
    /// Redfish: it speaks no TLS newer than 1.1, and ends a handshake by the alert `protocol_version`.
    OldTls,
    /// Redfish: it exchanges keys by RSA alone, and ends a handshake by the alert `handshake_failure`.
    OldCiphers,
    /// IPMI: the sums within its messages are wrong, and the code over the whole packet is right.
    WrongSums,
    /// IPMI: its codes and keys are made with the privilege of Open Session, and not with the role of RAKP 1; FreeIPMI's workaround
    /// `opensesspriv`.
    KeysByOpenSession,
    /// IPMI: each login is refused by the status 0x12, illegal or unrecognized parameter.
    RakpRefused,
    /// The end of a session is carried out at once, and answered so much later.
    LateEnd(#[serde(with = "crate::span")] Duration),
    /// An off is carried out at once, and answered so much later.
    LateOff(#[serde(with = "crate::span")] Duration),
    /// It is busy.
    Busy {
        /// So many times.
        times: u32,
    },
}

/// What the answer to a login says of the session that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// Its token, its place without the slash in front, its id.
    Slashless,
    /// Its token, a place beside the collection of sessions, its id.
    Beside,
    /// Its token and its id, and no place.
    Id,
    /// Its token alone.
    Token,
    /// Its place, and no token.
    Place,
}

/// By which version a change is taken, where it is not the one that was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// A weak one is said, and the same is taken made strong.
    Strong,
    /// One quoted twice is said, and the same is taken quoted once.
    QuotedOnce,
    /// One is said, and none is taken.
    None,
    /// None is said, and `*` is wanted.
    Any,
}

impl Fault {
    /// What is wrong with its numbers, and what would be right.
    pub fn wrong(&self) -> Option<String> {
        match self {
            Fault::Loss { percent } | Fault::Reordered { percent, .. } if *percent > 100 => {
                Some(format!("{percent} percent are more than all; give 0 to 100"))
            }
            Fault::OffTakes { least, most } | Fault::OnTakes { least, most } if least > most => {
                let (least, most) = (written(*least), written(*most));
                Some(format!("at least {least} and at most {most} is no span; let least be the lesser"))
            }
            _ => None,
        }
    }
}

/// Something that happens in the world at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// The device begins to misbehave.
    Fault {
        /// The device.
        device: String,
        /// How.
        fault: Fault,
    },
    /// The device works as it should again.
    Mend {
        /// The device.
        device: String,
    },
    /// A host device restarts: silent for `down`, all sessions lost, its hold kept. The machine goes on.
    RestartBmc {
        /// The device.
        device: String,
        /// How long it is silent.
        #[serde(with = "crate::span")]
        down: Duration,
        /// Afterwards it believes that its machine is off, and does nothing for an off, until it switches on.
        estranged: bool,
    },
    /// The address of a device leads to another one, of the same account: a lease that was given anew, a duplicate address, a stale
    /// name. Sessions stay where they were opened. `to` itself: it leads there again.
    Lead {
        /// The device.
        device: String,
        /// Whereto.
        to: String,
        /// How many more requests come to the device to which the address led before.
        after: u32,
    },
    /// A host device forgets all its sessions.
    LoseSessions {
        /// The device.
        device: String,
    },
    /// A machine forgets its hold: back to what one has that nobody holds.
    ForgetHold {
        /// The machine.
        machine: String,
    },
    /// Somebody else's power cycle: off now, on again after `off_for`, whatever is commanded in between.
    ForeignCycle {
        /// The machine.
        machine: String,
        /// How long it stays off.
        #[serde(with = "crate::span")]
        off_for: Duration,
    },
    /// Somebody else switches the machine, by no device of ours.
    Foreign {
        /// The machine.
        machine: String,
        /// Off or on.
        verb: Verb,
    },
    /// Somebody else switches an outlet, by no device of ours.
    ForeignOutlet {
        /// The outlet.
        outlet: String,
        /// Off or on.
        verb: Verb,
    },
    /// The watchdog bites: a power cycle, if it runs.
    Watchdog {
        /// The machine.
        machine: String,
        /// How long it stays off.
        #[serde(with = "crate::span")]
        off_for: Duration,
    },
    /// The power button is pressed: on if it is off, off if it is on; nothing where it is locked.
    PressButton {
        /// The machine.
        machine: String,
    },
    /// The mains of a machine fail.
    LoseMains {
        /// The machine.
        machine: String,
    },
    /// The mains of a machine come back; its restore policy decides.
    RestoreMains {
        /// The machine.
        machine: String,
    },
    /// A machine that runs on another one moves, or is about to.
    Move {
        /// The machine.
        machine: String,
        /// Whereto.
        moving: Moving,
    },
    /// An outlet is plugged into another machine: the settings know nothing of it.
    Rewire {
        /// The outlet.
        outlet: String,
        /// The machine that it feeds now.
        machine: String,
    },
}
