//! The books by hand, and against an oracle that counts everything anew from what happened.

#![allow(clippy::unwrap_used)] // A fixture that cannot be made ends its test.

mod aside;
mod brake;
mod law;
mod limits;
mod pauses;
mod reloading;

use super::*;
use crate::event::Event;
use crate::groups::Groups;
use crate::ids::NodeId;
use crate::record::{NodeRecord, Phase};
use crate::support::{Player, boot, host};
use crate::time::BootTime;

fn node(number: usize) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

fn ticket(number: u64) -> Ticket {
    number
}

fn books(budget: Budget, nodes: usize, groups: &[(&str, &[usize])]) -> Books {
    let mut members = Groups::default();
    for (name, numbers) in groups {
        numbers.iter().for_each(|number| members.put(name, node(*number)));
    }
    Books::new(budget, (1..=nodes).map(node).collect(), &members)
}

fn at(number: usize, phase: Phase) -> NodeRecord {
    NodeRecord { phase, ..NodeRecord::new(node(number)) }
}

fn calm() -> Budget {
    Budget { brake_least: 1_000, ..Budget::default() }
}

fn kind(books: &Books, number: usize, now: BootTime) -> Option<LimitKind> {
    books.decide(&node(number), None, now).err().map(|bar| bar.kind)
}

/// A caller's fence of `n1` that ended before anything was sent.
fn ended(event: Event<'_>) -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.apply(event);
    player
}
