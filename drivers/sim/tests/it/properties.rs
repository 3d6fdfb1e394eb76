//! Properties of the world over random histories.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::power::Power;
use picket_core::time::BootTime;
use picket_driver_sim::{Edge, Heard, Random, Request, Response, SessionId, Trouble, Verb, World};
use proptest::prelude::*;

const MACHINES: [&str; 2] = ["n1", "n2"];
const DEVICES: [&str; 5] = ["bmc-1", "cmc-1", "bmc-2", "pdu-a", "pdu-b"];

fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.add_machine("n1").add_host("n1", "bmc-1").add_host("n1", "cmc-1");
    world.add_machine("n2").add_host("n2", "bmc-2").add_supply("n2", "pdu-a").add_supply("n2", "pdu-b");
    world
}

/// A user of all devices, and what was seen.
#[derive(Debug, PartialEq)]
struct History {
    edges: BTreeMap<&'static str, Vec<Edge>>,
    heard: Vec<Heard>,
    /// When each session was closed by its owner, and the device said so.
    closed: BTreeMap<SessionId, BootTime>,
    end: BootTime,
}

/// Lives through `steps` moments of misfortune and use; `check` looks on after each.
fn live(seed: u64, steps: usize, lies: bool, mut check: impl FnMut(&mut World, BootTime)) -> History {
    let (mut world, mut random) = (world(seed), Random::new(!seed));
    let mut now = BootTime::from_boot(Duration::from_secs(1));
    let mut sessions: BTreeMap<&str, SessionId> = BTreeMap::new();
    let mut closed = BTreeMap::new();
    for _ in 0..steps {
        now = now + random.between(Duration::ZERO, Duration::from_secs(5));
        if random.percent(25) {
            let act = world.misfortune(&mut random, lies).expect("there are machines");
            world.happen(now, act);
        } else {
            let device = DEVICES[random.below(5) as usize];
            let request = match random.below(8) {
                0 => Request::Close,
                1 | 2 => Request::Command(Verb::Off),
                3 => Request::Command(Verb::On),
                4 if !sessions.contains_key(device) => Request::Open,
                _ => Request::Read,
            };
            let session = sessions.get(device).copied();
            match world.ask(now, device, session, &request).what {
                Ok(Response::Opened(id)) => {
                    sessions.insert(device, id);
                }
                Ok(Response::Closed) => {
                    if let Some(id) = sessions.remove(device) {
                        closed.insert(id, now);
                    }
                }
                Err(Trouble::NoSession) => {
                    sessions.remove(device);
                }
                _ => {}
            }
        }
        check(&mut world, now);
    }
    let end = now + Duration::from_secs(120);
    let edges = MACHINES.into_iter().map(|name| (name, world.edges(name, end).to_vec())).collect();
    History { edges, heard: world.heard(end).to_vec(), closed, end }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn power_goes_from_on_to_off_and_back_and_never_twice(seed: u64) {
        for edges in live(seed, 150, true, |_, _| {}).edges.values() {
            let mut before = Edge { at: BootTime::default(), on: true, by: String::new() };
            for edge in edges {
                prop_assert!(edge.on != before.on && edge.at >= before.at, "{before:?} {edge:?}");
                before = edge.clone();
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_history(seed: u64) {
        let (one, other) = (live(seed, 80, true, |_, _| {}), live(seed, 80, true, |_, _| {}));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn nothing_of_a_closed_session_is_executed(seed: u64) {
        let history = live(seed, 200, true, |_, _| {});
        for heard in history.heard.iter().filter(|heard| heard.executed) {
            let ended = heard.session.and_then(|session| history.closed.get(&session));
            prop_assert!(ended.is_none_or(|ended| heard.at <= *ended), "{heard:?}, closed at {ended:?}");
        }
    }

    #[test]
    fn truth_edges_and_writes_tell_the_same(seed: u64) {
        live(seed, 120, true, |world, now| {
            for machine in MACHINES {
                let on = world.truth(machine, now);
                let last_edge = world.edges(machine, now).last().cloned();
                assert_eq!(on, last_edge.as_ref().is_none_or(|edge| edge.on));
                let last = world.last_write(machine, now).expect("it ran at first");
                assert_eq!(last, if on { now } else { last_edge.expect("it fell").at });
                // Whether one that falls at this very moment wrote in it depends on how long it ran before (seed 8870609102090829085).
                if on || last < now {
                    assert_eq!(world.first_write_since(machine, now, now).is_some(), on);
                }
            }
        });
    }

    #[test]
    fn a_device_that_does_not_lie_says_the_truth_or_nothing(seed: u64) {
        live(seed, 150, false, |world, now| {
            for (device, machine) in [("bmc-1", "n1"), ("cmc-1", "n1"), ("bmc-2", "n2")] {
                let Ok(Response::Opened(id)) = world.ask(now, device, None, &Request::Open).what else { continue };
                let said = world.ask(now, device, Some(id), &Request::Read).what;
                world.ask(now, device, Some(id), &Request::Close);
                let truth = world.truth(machine, now);
                match said {
                    Ok(Response::Power(Power::On)) => assert!(truth, "{device} says On"),
                    Ok(Response::Power(Power::Off)) => assert!(!truth, "{device} says Off"),
                    _ => {}
                }
            }
        });
    }

    #[test]
    fn without_power_nothing_runs_for_longer_than_the_hold_up_time(seed: u64) {
        let mut dark_since: Option<BootTime> = None;
        live(seed, 150, false, |world, now| {
            let off = |world: &mut World, outlet: &str| {
                let mut probe = world.clone();
                probe.mend(outlet);
                match probe.ask(now, outlet, None, &Request::Open).what {
                    Ok(Response::Opened(id)) => {
                        probe.ask(now, outlet, Some(id), &Request::Read).what == Ok(Response::Power(Power::Off))
                    }
                    _ => false,
                }
            };
            let dark = off(world, "pdu-a") && off(world, "pdu-b");
            dark_since = if dark { dark_since.or(Some(now)) } else { None };
            if dark_since.is_some_and(|since| now.since(since) > Duration::from_secs(1)) {
                // Between two looks it may have come back and gone again.
                let lit = world.edges("n2", now).last().is_some_and(|edge| edge.at >= dark_since.expect("is dark"));
                assert!(!world.truth("n2", now) || lit);
            }
        });
    }

    #[test]
    fn after_healing_every_device_obeys(seed: u64) {
        let (mut world, mut random) = (world(seed), Random::new(seed));
        let mut now = BootTime::default();
        for _ in 0..40 {
            now = now + random.between(Duration::ZERO, Duration::from_secs(5));
            let act = world.misfortune(&mut random, true).expect("there are machines");
            world.happen(now, act);
        }
        world.heal(now);
        now = now + Duration::from_secs(120);
        for (device, machine) in [("bmc-1", "n1"), ("cmc-1", "n1"), ("bmc-2", "n2")] {
            for outlet in ["pdu-a", "pdu-b"] {
                let Ok(Response::Opened(id)) = world.ask(now, outlet, None, &Request::Open).what else {
                    panic!("{outlet} is well");
                };
                world.ask(now, outlet, Some(id), &Request::Command(Verb::On));
                world.ask(now, outlet, Some(id), &Request::Close);
            }
            let Ok(Response::Opened(id)) = world.ask(now, device, None, &Request::Open).what else {
                panic!("{device} is well");
            };
            for (verb, on) in [(Verb::Off, false), (Verb::On, true)] {
                let took = world.ask(now, device, Some(id), &Request::Command(verb)).what;
                let is_taken = matches!(took, Ok(Response::Took { .. }));
                prop_assert!(is_taken, "{:?}", took);
                prop_assert_eq!(world.truth(machine, now), on);
            }
            world.ask(now, device, Some(id), &Request::Close);
        }
    }
}
