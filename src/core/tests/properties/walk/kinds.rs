//! What a walk is made of: moves as small numbers, which shrink.

use proptest::prelude::*;

/// What is done next, as small numbers: a kind of event, and two that choose its parameters.
#[derive(Clone, Copy)]
pub struct Move(pub u8, pub u8, pub u8);

impl Move {
    /// A move of that kind.
    pub fn named(name: &str, a: u8, b: u8) -> Self {
        let kind = NAMES.iter().position(|one| *one == name).unwrap();
        Self(kind as u8, a, b)
    }
}

impl std::fmt::Debug for Move {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({}, {})", NAMES[usize::from(self.0) % NAMES.len()], self.1, self.2)
    }
}

/// Kinds of moves; those that lead on come more often.
pub const NAMES: [&str; 76] = [
    "fence",
    "fence",
    "join",
    "next level",
    "hold intent",
    "hold ended",
    "off intent",
    "off intent",
    "lost",
    "confirm",
    "confirm",
    "confirm",
    "confirm with an old proof",
    "attest",
    "attest",
    "release intent",
    "release intent",
    "release intent beside",
    "stands found",
    "subject",
    "release progress",
    "release progress",
    "withdrawn",
    "passed on",
    "unproven",
    "breach",
    "give up",
    "abort",
    "boot",
    "recovered",
    "bar",
    "unfence",
    "unfence",
    "unfence",
    "unhold intent",
    "unheld",
    "on intent",
    "on intent",
    "supplies on",
    "back",
    "back",
    "on failed",
    "close one",
    "close all",
    "close all",
    "retry",
    "retry",
    "abandon",
    "stand down",
    "learned",
    "told",
    "proven",
    "try again",
    "drill",
    "hold",
    "hold",
    "accepted",
    "verified",
    "retire",
    "resettled",
    "resettled",
    "another leader",
    "keyed retry",
    "receipt",
    "receipt",
    "receipt with an old proof",
    "hand back",
    "restore",
    "adopt",
    "read",
    "read",
    "read",
    "drop restored",
    "survey",
    "survey",
    "survey",
];

pub fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = (0..NAMES.len() as u8, 0..8u8, 0..8u8).prop_map(|(kind, a, b)| Move(kind, a, b));
    prop::collection::vec(one, 1..120)
}
