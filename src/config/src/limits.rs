//! `[limits]`: how much is taken in, of all callers and of each.

use crate::table::Table;

/// `[limits]`. Beyond them callers are told so, and when to ask again; nothing queues but `logins` and `agents`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `calls`: answered at once: so many that look, and as many that act. Default 256.
    pub calls: u32,
    /// `calls_each`: of one caller. Default 64.
    pub calls_each: u32,
    /// `streams`: open at once: so many that look, and as many that act. Default 4096.
    pub streams: u32,
    /// `streams_each`: of one caller. Default 2048.
    pub streams_each: u32,
    /// `connections`: open at once, at most three quarters of them over one of the Unix socket and TCP. Default 768.
    pub connections: u32,
    /// `connections_each`: of one caller. Default 256.
    pub connections_each: u32,
    /// `callers`: different ones at once. Default 1024.
    pub callers: u32,
    /// `rate`: requests of one caller in a second, in the long run. Default 500.
    pub rate: u32,
    /// `burst`: requests of one caller at once, after a rest. Default 2000.
    pub burst: u32,
    /// `logins`: devices that are logged in to side by side, each for a quarter of a second at most; what is more waits for its turn,
    /// and fences come first. Default 512.
    pub logins: u32,
    /// `agents`: fence agents that run side by side, each a program of its own; what is more waits for its turn, and fences come first.
    /// Default 64.
    pub agents: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: 256,
            calls_each: 64,
            streams: 4_096,
            streams_each: 2_048,
            connections: 768,
            connections_each: 256,
            callers: 1_024,
            rate: 500,
            burst: 2_000,
            logins: 512,
            agents: 64,
        }
    }
}

/// More would only be told by running out of memory or of files.
const MOST: u32 = 100_000;

pub(crate) fn read(mut table: Table<'_>) -> Limits {
    let mut limits = Limits::default();
    let numbers = [
        ("calls", &mut limits.calls),
        ("calls_each", &mut limits.calls_each),
        ("streams", &mut limits.streams),
        ("streams_each", &mut limits.streams_each),
        ("connections", &mut limits.connections),
        ("connections_each", &mut limits.connections_each),
        ("callers", &mut limits.callers),
        ("rate", &mut limits.rate),
        ("burst", &mut limits.burst),
        ("logins", &mut limits.logins),
        ("agents", &mut limits.agents),
    ];
    for (key, place) in numbers {
        match table.number(key) {
            Some(number @ 1..=MOST) => *place = number,
            Some(number) => table.fault(key, format!("{number} is out of range: 1 to {MOST}")),
            None => {}
        }
    }
    table.done();
    limits
}
