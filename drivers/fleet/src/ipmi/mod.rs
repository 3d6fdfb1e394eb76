//! A BMC that speaks IPMI 2.0 over LAN, without any I/O: a datagram in, a datagram out.
//!
//! # Invariants
//!
//! - A session's packet is taken once, within the window of its sequence number (IPMI 2.0 §6.12.13). Shown
//!   by `a_packet_is_executed_once_and_a_forged_one_never`.
//! - What the world does not know as a session any more is no session. Shown by
//!   `sessions_are_few_idle_out_and_are_lost_with_a_restart`.
//! - Tables are bounded by the sessions that the world's device has.

mod chassis;
mod command;
mod message;
mod outside;
mod rakp;
mod session;
mod watchdog;

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::time::BootTime;
use picket_driver_ipmi::crypto::Suite;
use picket_driver_ipmi::wire::{self, Payload};
use picket_driver_sim::{Random, World};

use crate::account::Account;
use session::Session;
use watchdog::Watchdog;

/// What a BMC is like.
#[derive(Clone, Debug)]
pub struct IpmiOptions {
    /// The world's machine that it controls.
    pub machine: String,
    /// The world's device that it is.
    pub device: String,
    /// Who may log in.
    pub accounts: std::sync::Arc<[Account]>,
    /// The cipher suites that it speaks.
    pub suites: Vec<Suite>,
}

/// One BMC's state beside what the world knows of it: keys and sequence numbers of its sessions, settings of no effect.
#[derive(Debug)]
pub struct IpmiBmc {
    options: IpmiOptions,
    random: Random,
    guid: [u8; 16],
    /// By the id that the BMC gave them.
    sessions: BTreeMap<u32, Session>,
    watchdog: Watchdog,
    /// Front panel buttons that are disabled, bits 3:0, but for the power button, which the world keeps.
    buttons: u8,
    /// Boot option parameters 0 to 7 as they were set (IPMI 2.0 §28.12).
    boot_options: BTreeMap<u8, Vec<u8>>,
    /// How much later than usual its last answer comes.
    pub(crate) late: Duration,
}

impl IpmiBmc {
    /// A BMC in front of `world`; `seed` decides its ids and random numbers, which are no secrets: nothing here is safe.
    pub fn new(options: IpmiOptions, world: &World, seed: u64) -> Self {
        let guid = guid(world.identity(&options.machine).uuid.as_deref());
        Self {
            options,
            random: Random::new(seed),
            guid,
            sessions: BTreeMap::new(),
            watchdog: Watchdog::default(),
            buttons: 0,
            boot_options: BTreeMap::new(),
            late: Duration::ZERO,
        }
    }

    /// The device of the world that it is.
    pub fn device(&self) -> &str {
        &self.options.device
    }

    /// What it answers to a datagram that arrived at `now`; `None`: nothing.
    pub fn handle(&mut self, now: BootTime, world: &mut World, datagram: &mut [u8]) -> Option<Vec<u8>> {
        self.late = Duration::ZERO;
        if let Some(pong) = outside::pong(datagram) {
            return Some(pong);
        }
        if let Some(message) = outside::read_v15(datagram) {
            let answer = self.outside(world, now, message)?;
            return Some(outside::write_v15(&answer));
        }
        let bare = |kind| wire::read_bare(datagram, kind).map(<[u8]>::to_vec);
        let (kind, payload) = if let Some(request) = bare(Payload::OpenRequest) {
            (Payload::OpenResponse, self.open(world, now, &request)?)
        } else if let Some(rakp1) = bare(Payload::Rakp1) {
            (Payload::Rakp2, self.rakp1(world, now, &rakp1)?)
        } else if let Some(rakp3) = bare(Payload::Rakp3) {
            (Payload::Rakp4, self.rakp3(world, now, &rakp3)?)
        } else if let Some(message) = bare(Payload::Ipmi) {
            (Payload::Ipmi, self.outside(world, now, &message)?)
        } else {
            return self.inside(world, now, datagram);
        };
        let mut out = Vec::with_capacity(128);
        wire::write_bare(&mut out, kind, &payload);
        Some(out)
    }

    /// Forgets the sessions that the world does not know any more: idle for too long, or lost with a restart.
    fn reap(&mut self, world: &mut World, now: BootTime) {
        let device = &self.options.device;
        self.sessions.retain(|_, session| session.world.is_none_or(|id| world.knows(device, id, now)));
        // One whose credentials the world refuses has no place in it; it ends with its handshake, or with the next ones.
        let (most, _) = world.session_limits(device);
        while self.sessions.len() > 2 * most {
            let Some(id) = self.sessions.iter().find(|(_, s)| s.world.is_none()).map(|(id, _)| *id) else {
                break;
            };
            self.sessions.remove(&id);
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.random.bits().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }
}

/// The sixteen bytes of an identity's UUID, as they are written; none: zeros, which stand for "unknown".
fn guid(uuid: Option<&str>) -> [u8; 16] {
    let digits: Vec<u8> =
        uuid.unwrap_or_default().chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    let mut guid = [0; 16];
    for (byte, pair) in guid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    guid
}

#[cfg(test)]
mod tests;
