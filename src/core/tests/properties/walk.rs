//! Random walks of a record through the machine: every event, most of them at the wrong time, with names and ids that
//! exist or nearly do.

mod choices;
mod kinds;

use std::collections::BTreeMap;

use picket_core::confirm::{ConfirmedOff, Verdict};
use picket_core::device::Identity;
use picket_core::event::{BoundKey, Event, FenceRequest};
use picket_core::ground::{Look, ReleaseGround};
use picket_core::ids::{EffectId, ReceiptId};
use picket_core::machine::Refused;
use picket_core::order::Opened;
use picket_core::outcome::Reason;
use picket_core::power::Power;
use picket_core::receipt::{ReceiptRequest, SeenOff};
use picket_core::record::{HoldState, NodeRecord, Phase};
use picket_core::restore::Restore;
use picket_core::store::{Store, Stored};
use picket_core::time::{Clock, WallTime};
use proptest::strategy::{Strategy, ValueTree};

use self::choices::*;
use self::kinds::NAMES;
pub use self::kinds::{Move, moves};
use crate::support::*;

/// What one move came to.
pub struct Taken {
    pub what: &'static str,
    pub before: Stored,
    pub after: Stored,
    pub result: Result<Vec<Opened>, Refused>,
    /// The number of this move, and of the one in which the proof was made that was to confirm.
    pub number: usize,
    pub made: Option<usize>,
}

impl Taken {
    /// What was opened for sending.
    pub fn opened(&self) -> &[Opened] {
        self.result.as_deref().unwrap_or_default()
    }
}

pub struct Walk {
    pub player: Player,
    proofs: Vec<(usize, ReleaseGround)>,
    fences: u8,
    moves: usize,
}

/// Walks, and shows each move to `check`.
pub fn walk(moves: &[Move], mut check: impl FnMut(&Taken, &Walk)) -> Walk {
    let mut walk = Walk { player: Player::new(), proofs: Vec::new(), fences: 0, moves: 0 };
    for step in moves {
        let taken = walk.take(*step);
        check(&taken, &walk);
    }
    walk
}

impl Walk {
    /// The effect that stands there, or one that does not.
    fn effect(&self, number: u8) -> EffectId {
        let open = self.player.record().ledger.open();
        open.get(usize::from(number)).map_or(EffectId(u64::from(number)), |open| open.id)
    }

    fn receipt_id(&self) -> ReceiptId {
        ReceiptId::mint(WallTime::from_millis(self.moves as u64), [0; 10])
    }

    /// A receipt for some caller, if the devices that prove the node off read so.
    fn receipt<'g>(
        &self,
        ground: &'g ReleaseGround,
        looks: &[Look],
        renews: Option<ReceiptId>,
        number: u8,
    ) -> Option<Event<'g>> {
        let clock = &self.player.clock;
        let seen = SeenOff::of(ground, looks, clock.boot(), clock.wall()).ok()?;
        Some(Event::ReceiptIntent(Box::new(ReceiptRequest {
            id: self.receipt_id(),
            seen,
            by: pick(&HOLDERS, number).to_owned(),
            audience: String::new(),
            system_uuid: String::new(),
            renews,
            life: s(u64::from(number) * 10),
            margin: s(5),
        })))
    }

    fn proves(&self) -> Option<ConfirmedOff> {
        let record = self.player.record();
        if record.phase != Phase::Fencing {
            return None;
        }
        match Bench::judging(record, self.player.leadership.term(), false).comes_to() {
            Verdict::Confirmed(proof) => Some(proof),
            _ => None,
        }
    }

    fn take(&mut self, Move(kind, a, b): Move) -> Taken {
        let what = NAMES[usize::from(kind)];
        self.moves += 1;
        if what == "another leader" {
            self.player.succeeds();
        }
        // Rarely, as a retirement.
        if what == "restore" && a < 2 {
            self.fences += 1;
            let at = self.player.clock.wall();
            let from = self.player.store.incarnation();
            self.player.restores(Restore { at, taken_at: at, from }, self.fences);
        }
        if matches!(what, "fence" | "drill" | "read") {
            self.fences += 1;
        }
        if what == "confirm" {
            let proof = self.proves().map(|proof| (self.moves, ReleaseGround::Confirmed(proof)));
            self.proofs.extend(proof);
        }
        let before = self.player.stored.clone();
        let proof = match what {
            "confirm" => self.proofs.last().filter(|(made, _)| *made == self.moves),
            "confirm with an old proof" | "receipt with an old proof" => {
                self.proofs.iter().rev().nth(usize::from(a % 4))
            }
            "receipt" => self.proofs.last(),
            _ => None,
        };
        let made = proof.filter(|_| what.starts_with("confirm")).map(|(made, _)| *made);
        let powers = [None, Some(Power::Off), Some(Power::Unknown), Some(Power::On)];
        let looks =
            ["bmc", "agent"].map(|name| self.player.look(name, pick(&powers, if b < 6 { a % 3 } else { a })));
        let (name, one, of) = (device(pick(&DEVICES, a)), self.effect(b), pick(&RELEASES, a));
        let words = || "for the test".to_owned();
        let event = match what {
            "fence" => Some(Event::Fence(Box::new(fence_request(self.fences, a, b)))),
            "drill" => Some(Event::Drill(Box::new(fence_request(self.fences, a, b)))),
            "adopt" => {
                let FenceRequest { topology, releases, .. } = fence_request(self.fences, a, b);
                Some(Event::Adopt { topology, releases, receipts: s(65) })
            }
            "read" => Some(Event::Read {
                id: fence_id(self.fences),
                topology: fence_request(self.fences, a, b).topology,
                looks: looks.to_vec(),
            }),
            "drop restored" => Some(Event::DropRestored(person())),
            "hold" => Some(Event::Hold { holder: pick(&HOLDERS, a).to_owned(), person: person() }),
            "accepted" => Some(Event::Accepted {
                device: name,
                identity: Identity { uuid: None, serial: Some(format!("s{b}")) },
                person: person(),
            }),
            "verified" => {
                let one = BTreeMap::from([(name, words())]);
                let identities = if b % 2 == 0 { BTreeMap::new() } else { one.clone() };
                let verified = if b % 4 == 1 { BTreeMap::new() } else { one };
                Some(Event::Drilled { verified, identities, findings: vec![words()] })
            }
            // Rarely: there is not much to see of it afterwards.
            "retire" if a == 0 => {
                Some(Event::Retire { person: person(), settings: (b < 4).then(words), left: Vec::new() })
            }
            "resettled" => Some(Event::Resettled { settings: (b > 1).then(|| format!("settings {b}")) }),
            "join" => Some(crate::support::join(holder(pick(&HOLDERS, a), then(b)), None)),
            "next level" => Some(Event::NextLevel { why: words(), gives_way: true }),
            "hold intent" => {
                let found = BTreeMap::from([(format!("key{}", b % 2), format!("value{b}"))]);
                Some(Event::HoldIntent { found: BTreeMap::from([(name, found)]) })
            }
            "hold ended" => {
                Some(Event::HoldEnded { results: vec![(name, HoldState::default())], known: vec![one] })
            }
            "off intent" => Some(Event::OffIntent { devices: vec![name], identified: Vec::new() }),
            "lost" => Some(Event::Lost { device: name }),
            "confirm" | "confirm with an old proof" => match proof {
                Some((_, ReleaseGround::Confirmed(proof))) => Some(Event::Confirmed(proof)),
                _ => None,
            },
            "receipt" | "receipt with an old proof" => {
                let open = self.player.record().receipts.get(usize::from(b)).map(|issued| issued.id);
                proof.and_then(|(_, ground)| self.receipt(ground, &looks, open.filter(|_| a > 4), a))
            }
            "hand back" => {
                let issued = self.player.record().receipts.get(usize::from(b));
                let id = issued.map_or_else(|| self.receipt_id(), |issued| issued.id);
                Some(Event::ReceiptReturned { id, by: pick(&HOLDERS, a).to_owned() })
            }
            "attest" => Some(Event::Attest { person: person(), looks: &looks }),
            "survey" => Some(Event::ReleaseSurveyed { release: release(of), found: survey(a % 2 == 1, b) }),
            "release intent" | "release intent beside" => {
                let sets_up = what == "release intent";
                Some(Event::ReleaseIntent { release: release(of), life: None, lingers: None, sets_up })
            }
            "stands found" => Some(Event::StandsFound { release: release(of), lingers: s(u64::from(b)) }),
            "subject" => {
                Some(Event::ReleaseSubject { release: release(of), subject: format!("machine {}", a % 3) })
            }
            "release progress" => {
                let known = (b % 2 == 0).then_some(one);
                let stage = pick(&STAGES, b / 2);
                Some(Event::ReleaseProgress { release: release(of), stage, detail: words(), known })
            }
            "passed on" => {
                let to = release(pick(&RELEASES, b));
                Some(Event::PassedOn { release: release(of), to, why: words() })
            }
            "withdrawn" => {
                let ledger = &self.player.record().ledger;
                // Of what is asked for some is not there, and some does not stand.
                let one = (a > 4).then_some(one);
                Some(Event::Withdrawn { effects: ledger.standing().map(|(id, _)| id).chain(one).collect() })
            }
            "unproven" => Some(Event::Unproven { why: words(), seen: true }),
            "breach" => {
                self.fences += 1;
                Some(Event::Breach { id: fence_id(self.fences), device: name })
            }
            "give up" => Some(Event::GiveUp { reason: pick(&REASONS, a), detail: words() }),
            "boot" => Some(Event::Boot(words())),
            "recovered" => Some(Event::Recovered { boot: words(), why: words() }),
            "abort" => Some(Event::Abort { why: words() }),
            "bar" => Some(Event::Bar { reason: Reason::Paused, why: words() }),
            "unfence" => Some(Event::Unfence { holder: pick(&HOLDERS, a).to_owned(), person: person() }),
            "unhold intent" => Some(Event::UnholdIntent),
            "unheld" => Some(Event::Unheld { devices: vec![name], detail: String::new() }),
            "on intent" => {
                let names: [&[&str]; 5] = [&["bmc"], &["a", "b"], &["bmc", "agent"], &["a"], &["bmc", "a"]];
                let devices = pick(&names, a).iter().map(|name| device(name)).collect();
                Some(Event::OnIntent { devices })
            }
            "supplies on" => Some(Event::SuppliesOn { devices: vec![device("a"), device("b")] }),
            "back" => Some(Event::Back { detail: words() }),
            "on failed" => Some(Event::OnFailed { detail: words() }),
            "close one" => Some(Event::Closed { effects: vec![one], why: "for the test" }),
            "close all" => {
                let effects = self.player.record().ledger.open().iter().map(|open| open.id).collect();
                Some(Event::Closed { effects, why: "for the test" })
            }
            "retry" => Some(Event::Retry(person())),
            "try again" => Some(Event::TryAgain { why: "it is on" }),
            "abandon" => Some(Event::Abandon { release: release(of), person: person(), orphan: b == 0 }),
            "stand down" => Some(Event::StandDown(person())),
            "learned" => Some(Event::Learned {
                device: name,
                identity: Identity { uuid: None, serial: Some(format!("s{b}")) },
            }),
            "told" => Some(Event::IdentityTold {
                device: name,
                identity: Identity { uuid: None, serial: Some(format!("s{b}")) },
                by: words(),
            }),
            "proven" => Some(Event::IdentityProven {
                device: name,
                identity: Identity { uuid: None, serial: Some(format!("s{b}")) },
                by: words(),
            }),
            "keyed retry" => Some(Event::Keyed {
                event: Box::new(Event::Retry(person())),
                key: BoundKey { key: format!("k{a}"), digest: "d".to_owned() },
                by: words(),
            }),
            _ => None,
        };
        let result = match event {
            Some(event) => self.player.try_apply(event),
            None => Ok(Vec::new()),
        };
        self.player.clock.advance(ms(700));
        let (after, number) = (self.player.stored.clone(), self.moves);
        Taken { what, before, after, result, number, made }
    }
}

/// Whether everything of the record's fence is released, as S7 has it.
pub fn is_released(record: &NodeRecord) -> bool {
    let stands_down = record.bringing == picket_core::record::Bringing::StandDown;
    record
        .fence
        .iter()
        .flat_map(|fence| &fence.releases)
        .all(|one| one.stage.is_over() || stands_down && one.attempts == 0)
}

/// The walk is worth its name: some walk comes through every phase.
#[test]
fn it_comes_through_every_phase() {
    let mut seen = std::collections::BTreeSet::new();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..400 {
        let moves = moves().new_tree(&mut runner).unwrap().current();
        walk(&moves, |taken, _| {
            seen.insert(taken.after.record.phase.label());
            for one in taken.opened() {
                seen.insert(match one {
                    Opened::Hold(_) => "a hold",
                    Opened::Off(_) => "an off",
                    Opened::Unhold(_) => "an unhold",
                    Opened::On(_) => "an on",
                    Opened::Release(_) => "a release",
                    Opened::Receipt(_) => "a receipt",
                });
            }
        });
    }
    let all = [
        "a hold",
        "a receipt",
        "a release",
        "an off",
        "an on",
        "an unhold",
        "fenced",
        "fencing",
        "needs_operator",
        "normal",
        "power_on_failed",
        "released",
        "retired",
        "unfencing",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
}
