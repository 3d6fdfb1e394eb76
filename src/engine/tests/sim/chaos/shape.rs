//! The worlds in which histories happen.

use picket_core::device::DeviceSpec;
use picket_core::rules::Rules;
use picket_driver_sim::{Random, RestorePolicy, World};

use std::sync::Arc;

use crate::lab::{NODE, s};
use crate::setup::{Setup, named};

/// A node's devices, and which of them may lie.
#[derive(Clone, Debug)]
pub struct Shape {
    pub levels: Vec<Vec<String>>,
    pub sessionless: Vec<String>,
    /// A host device that may say Off for a live machine. Only one that shares its level with an honest one: a single
    /// device that lies is believed, which `safety.md` says under "What remains".
    pub liar: Option<String>,
    pub trusted: bool,
    pub restore: RestorePolicy,
    /// A release that nothing bounds.
    pub unbounded: bool,
    pub releases: &'static [&'static str],
    pub rules: Rules,
}

impl Shape {
    pub fn draw(random: &mut Random) -> Self {
        let outlets: &[&str] = &["pdu-a", "pdu-b"];
        let (levels, sessionless, liar): (&[&[&str]], &[&str], Option<&str>) = match random.below(8) {
            0 | 1 => (&[&["bmc"]], &[], None),
            2 => (&[&["bmc", "second"]], &[], Some("second")),
            3 => (&[&["bmc"], &["second"]], &[], None),
            4 => (&[&["bmc"], outlets], &[], None),
            5 => (&[&["bmc"], outlets], outlets, None),
            6 => (&[&["bmc"]], &["bmc"], None),
            _ => (&[&["bmc", "second"], outlets], &["second"], Some("bmc")),
        };
        let restore = [RestorePolicy::AlwaysOff, RestorePolicy::LastState, RestorePolicy::AlwaysOn];
        Self {
            levels: named(levels),
            sessionless: sessionless.iter().map(|&name| name.to_owned()).collect(),
            liar: liar.filter(|_| random.percent(70)).map(str::to_owned),
            trusted: random.percent(20),
            restore: restore[random.below(3) as usize],
            unbounded: random.percent(10),
            releases: [&["detach"] as &[_], &["detach"], &["detach", "notify"], &[]]
                [random.below(4) as usize],
            rules: Rules {
                // Longer than any foreign cycle, and any late command to a device without sessions, that is drawn.
                longest_cycle: s(35),
                on_deadline: s(20 + random.below(200)),
                level_share: s(60 + random.below(120)),
                watch: s(1 + random.below(20)),
                ..Rules::default()
            },
        }
    }

    pub fn hosts(&self) -> impl Iterator<Item = &String> {
        self.devices().filter(|name| !name.starts_with("pdu"))
    }

    pub fn outlets(&self) -> impl Iterator<Item = &String> {
        self.devices().filter(|name| name.starts_with("pdu"))
    }

    fn devices(&self) -> impl Iterator<Item = &String> {
        self.levels.iter().flatten()
    }

    pub fn build(&self, world: &mut World) {
        world.add_machine(NODE).set_restore(NODE, self.restore);
        for host in self.hosts() {
            world.add_host(NODE, host);
        }
        for outlet in self.outlets() {
            world.add_supply(NODE, outlet);
        }
        for device in &self.sessionless {
            world.set_sessionless(device);
        }
    }

    pub fn setup(&self) -> Setup {
        let trusted = self.trusted;
        let levels: Vec<Vec<&str>> =
            self.levels.iter().map(|level| level.iter().map(String::as_str).collect()).collect();
        let levels: Vec<&[&str]> = levels.iter().map(Vec::as_slice).collect();
        Setup {
            rules: self.rules.clone(),
            adjust: Arc::new(move |spec: &mut DeviceSpec| {
                spec.trust_after_restart = trusted.then_some(s(60));
            }),
            ..Setup::new(NODE, &levels)
        }
    }
}
