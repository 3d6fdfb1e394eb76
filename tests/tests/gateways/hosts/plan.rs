//! What shall happen in a run, drawn by chance.

use std::time::Duration;

use picket_tests::Dice;

use crate::hosts::scene::{IDLE_LIMIT, LEASE};

/// More points than a leader goes through at its start, when nothing is asked of it yet.
const START: u64 = 12;

/// Which gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The one that leads then.
    Leader,
    /// That one.
    Number(usize),
}

/// Of what the leader is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// All members of etcd, also the one beside it.
    Etcd,
    /// The BMCs and the receiver of releases.
    Bmcs,
    /// The other gateways' hosts, with their members of etcd.
    Others,
}

/// Which way nothing comes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Neither.
    Both,
    /// What comes to the leader.
    ToIt,
    /// What the leader sends.
    FromIt,
}

/// A misfortune; each is over after its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfortune {
    /// kill -9 of a gateway; started again.
    Kill(Whom, Duration),
    /// SIGSTOP of a gateway, and SIGCONT.
    Freeze(Whom, Duration),
    /// SIGTERM of the leader; started again.
    Terminate(Duration),
    /// kill -9 of the leader and of etcd's leader at once; both started again.
    KillBothLeaders(Duration),
    /// kill -9 of etcd's leader; started again.
    KillEtcd(Duration),
    /// The leader is cut off.
    Cut(From, Way, Duration),
}

impl Misfortune {
    /// How long it lasts.
    pub fn time(self) -> Duration {
        match self {
            Misfortune::Kill(_, time)
            | Misfortune::Freeze(_, time)
            | Misfortune::Terminate(time)
            | Misfortune::KillBothLeaders(time)
            | Misfortune::KillEtcd(time)
            | Misfortune::Cut(_, _, time) => time,
        }
    }

    /// In a word, to be counted.
    pub fn word(self) -> String {
        match self {
            Misfortune::Kill(Whom::Leader, _) => "leader killed".to_owned(),
            Misfortune::Kill(Whom::Number(_), _) => "any gateway killed".to_owned(),
            Misfortune::Freeze(Whom::Leader, _) => "leader frozen".to_owned(),
            Misfortune::Freeze(Whom::Number(_), _) => "any gateway frozen".to_owned(),
            Misfortune::Terminate(_) => "leader told to stop".to_owned(),
            Misfortune::KillBothLeaders(_) => "leader and etcd's leader killed".to_owned(),
            Misfortune::KillEtcd(_) => "etcd's leader killed".to_owned(),
            Misfortune::Cut(from, way, _) => format!("leader cut off: {from:?}, {way:?}"),
        }
    }
}

/// A run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What the first leader does to itself.
    pub variables: Vec<(&'static str, String)>,
    /// When, counted from the first request, what happens.
    pub misfortunes: Vec<(Duration, Misfortune)>,
    /// How long each machine takes to fall.
    pub falls: Vec<Duration>,
    /// When the second machine is fenced.
    pub second: Duration,
}

impl Plan {
    /// Nothing happens.
    pub fn calm() -> Self {
        Self { falls: vec![Duration::ZERO; 2], ..Self::default() }
    }

    /// One to three misfortunes, one of them at a named point in every third run.
    pub fn by(dice: &mut Dice) -> Self {
        let falls =
            (0..2).map(|_| if dice.throw(2) == 0 { Duration::ZERO } else { dice.time(s(3)) }).collect();
        let mut plan = Self { falls, second: dice.time(s(4)), ..Self::default() };
        let mut count = 1 + dice.throw(3);
        if dice.throw(3) == 0 {
            let what = if dice.throw(2) == 0 { "PICKET_KILL_AT" } else { "PICKET_STOP_AT" };
            plan.variables.push((what, format!("*#{}", START + dice.throw(80))));
            count -= 1;
        }
        // Undisturbed, all is over in some five seconds.
        let mut at = dice.time(s(4));
        for _ in 0..count {
            plan.misfortunes.push((at, misfortune(dice)));
            at += Duration::from_millis(200) + dice.time(s(5));
        }
        plan
    }
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn misfortune(dice: &mut Dice) -> Misfortune {
    let whom = |dice: &mut Dice| match dice.throw(4) {
        0 => Whom::Number(usize::try_from(dice.throw(3)).unwrap_or_default()),
        _ => Whom::Leader,
    };
    match dice.throw(12) {
        0..=2 => Misfortune::Kill(whom(dice), dice.time(s(6))),
        3 | 4 => Misfortune::Freeze(whom(dice), frozen(dice)),
        5 => Misfortune::Terminate(dice.time(s(6))),
        6 => Misfortune::KillBothLeaders(dice.time(s(6))),
        7 => Misfortune::KillEtcd(dice.time(s(8))),
        _ => Misfortune::Cut(
            [From::Etcd, From::Bmcs, From::Others][usize::try_from(dice.throw(3)).unwrap_or_default()],
            [Way::Both, Way::ToIt, Way::FromIt][usize::try_from(dice.throw(3)).unwrap_or_default()],
            if dice.throw(6) == 0 { IDLE_LIMIT + s(8) } else { s(1) + dice.time(s(13)) },
        ),
    }
}

/// Longer than the lease; sometimes also longer than a session at a BMC.
pub fn frozen(dice: &mut Dice) -> Duration {
    if dice.throw(4) == 0 { IDLE_LIMIT + s(6) } else { LEASE + Duration::from_millis(500) + dice.time(s(9)) }
}
