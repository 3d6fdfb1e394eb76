//! Which nodes could be fenced now, and what is in the way of the others.

use picket_proto::v1::{
    Device, DeviceClass, DeviceProblem, EffectKind, Limit, Node, OpenEffect, Phase, Power, Readiness,
};

use super::words;
use crate::duration;
use crate::style::{Page, Tone};

/// How many of those that could not be fenced are told.
const TOLD: usize = 20;

/// What is told of a device that took an off and did nothing.
const IGNORED: &str = "took an off and still reads on";

/// Whether the device took the node's last off, and reads on: its own machine, or an outlet that was to go dark. A parent may carry others.
pub fn ignored(node: &Node, device: &Device) -> bool {
    let is_open = |effect: &OpenEffect| effect.kind() == EffectKind::Off && effect.target == device.id;
    let reads_on = device.reading.as_ref().is_some_and(|reading| reading.power() == Power::On);
    let cuts = matches!(device.device_class(), DeviceClass::Host | DeviceClass::Supply);
    node.phase() == Phase::NeedsOperator && cuts && reads_on && node.open_effects.iter().any(is_open)
}

/// A device as it is worth to its node: one that ignored the last off is not ready, whatever its check said.
pub fn worth(node: &Node, device: &Device) -> Device {
    let mut device = device.clone();
    if ignored(node, &device) {
        device.set_readiness(Readiness::NotReady);
        device.problems.push(DeviceProblem { kind: 0, text: IGNORED.to_owned() });
    }
    device
}

/// A node's devices as they are worth.
pub fn devices_of(node: &Node) -> Vec<Device> {
    node.devices.iter().map(|device| worth(node, device)).collect()
}

/// How ready a node is by devices as they are worth: as its best level, which is as good as its worst device.
pub fn readiness_of(devices: &[Device]) -> Readiness {
    let rank = |device: &Device| match device.readiness() {
        Readiness::NotReady => 0,
        Readiness::Unspecified => 1,
        Readiness::Degraded => 2,
        Readiness::Ready => 3,
    };
    let worst =
        |level: u32| devices.iter().filter(move |device| device.level == level).min_by_key(|one| rank(one));
    let best = devices.iter().filter_map(|device| worst(device.level)).max_by_key(|one| rank(one));
    best.map_or(Readiness::Unspecified, |device| device.readiness())
}

/// Whether it could be used for a fence now.
fn usable(device: &Device) -> bool {
    matches!(Readiness::try_from(device.readiness), Ok(Readiness::Ready | Readiness::Degraded))
}

/// How many of the devices could be used for a fence now.
pub fn usable_of(devices: &[Device]) -> usize {
    devices.iter().filter(|device| usable(device)).count()
}

/// Whether all devices of some level could be used.
pub fn could(devices: &[Device]) -> bool {
    devices.iter().any(|one| devices.iter().filter(|other| other.level == one.level).all(usable))
}

/// A driver's errors begin with their kind already.
pub fn problem_words(problem: &DeviceProblem) -> String {
    let text = duration::spoken(&problem.text).into_owned();
    let Some(kind) = words::problem(problem.kind) else { return text };
    let kind = kind.replace('_', " ");
    if text.starts_with(&format!("{kind}: ")) { text } else { format!("{kind}: {text}") }
}

/// A fault, and the devices that have it, as `node/device`.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadinessFault {
    text: String,
    devices: Vec<String>,
}

/// The faults of devices, each with its node, in the order in which they are told first. Those that differ by the name of their node or
/// by the address of their device are one: `NODE` and `ADDRESS` stand there then.
pub fn faults<'a>(devices: impl IntoIterator<Item = (&'a str, &'a Device)>) -> Vec<ReadinessFault> {
    let mut found: Vec<(String, String, ReadinessFault)> = Vec::new();
    for (node, device) in devices {
        let name = format!("{node}/{}", device.id);
        for text in device.problems.iter().map(problem_words) {
            let common = words::named(&text, node, "NODE");
            let common = match device.address.as_str() {
                "" => common,
                address => words::named(&common, address, "ADDRESS"),
            };
            match found.iter_mut().find(|(known, ..)| *known == common) {
                Some((_, _, fault)) if fault.devices.contains(&name) => {}
                Some((common, own, fault)) => {
                    if text != *own {
                        fault.text.clone_from(common);
                    }
                    fault.devices.push(name.clone());
                }
                None => {
                    let fault = ReadinessFault { text: text.clone(), devices: vec![name.clone()] };
                    found.push((common, text, fault));
                }
            }
        }
    }
    found.into_iter().map(|(.., fault)| fault).collect()
}

/// Each fault with its mend once, and the devices that have it: the first ones, or with `all` every one.
pub fn told(faults: &[ReadinessFault], all: bool, page: Page) -> String {
    let one = |fault: &ReadinessFault| {
        let devices = if all { fault.devices.join(", ") } else { words::some(&fault.devices) };
        page.beside("  ", 2, Tone::Plain, &fault.text) + &page.beside("    ", 4, Tone::Faint, &devices)
    };
    let told: String = faults.iter().map(one).collect();
    if told.is_empty() { told } else { format!("\nWhat is wrong:\n{told}") }
}

/// What is in the way, device by device.
pub fn obstacles(devices: &[Device]) -> String {
    let of = |device: &Device| {
        let problems: Vec<String> = device.problems.iter().map(problem_words).collect();
        let told = match problems.is_empty() {
            true => words::spoken(words::readiness(device.readiness)).replace('_', " "),
            false => problems.join("; "),
        };
        format!("{} {told}", device.id)
    };
    let told: Vec<String> = devices.iter().filter(|device| !usable(device)).map(of).collect();
    if told.is_empty() { "no device".to_owned() } else { told.join("; ") }
}

/// A node, as far as it could be fenced now.
#[derive(Debug)]
pub struct FenceReadiness<'a> {
    /// Its name.
    pub node: &'a str,
    /// Its devices, as they are worth.
    pub devices: Vec<Device>,
    /// What a fence that is asked for now would be blocked by.
    pub barred: Option<Limit>,
}

impl<'a> FenceReadiness<'a> {
    /// The node as it is listed.
    fn of(node: &'a Node) -> Self {
        Self { node: &node.name, devices: devices_of(node), barred: node.barred.clone() }
    }

    /// Its devices could do it, and nothing blocks it.
    pub fn could(&self) -> bool {
        self.barred.is_none() && could(&self.devices)
    }

    /// What is in the way.
    fn obstacles(&self) -> String {
        let devices = (!could(&self.devices)).then(|| obstacles(&self.devices));
        devices.into_iter().chain(self.barred.as_ref().map(bar_words)).collect::<Vec<_>>().join("; ")
    }
}

/// When a limit lets it go, and which it is: `after 9 min 13 s (cool-down)`.
fn bar_words(limit: &Limit) -> String {
    let what = match limit.name.as_str() {
        "cool_down" => "cool-down".to_owned(),
        "brake" => "the brake".to_owned(),
        name => format!("{} of {}", name.replace('_', " "), limit.whose),
    };
    match &limit.retry_after {
        Some(after) => format!("after {} ({what})", duration::whole(duration::of_wire(after))),
        None => format!("blocked ({what})"),
    }
}

/// `Could be fenced now: 998 of 1000`. And those that could not.
fn counted<'a, 'b>(nodes: &'a [FenceReadiness<'b>], page: Page) -> (String, Vec<&'a FenceReadiness<'b>>) {
    let (fine, not): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.could());
    let tone = match not.iter().all(|node| could(&node.devices)) {
        _ if not.is_empty() => Tone::Good,
        // Time alone, or a person, lets it go.
        true => Tone::Busy,
        false => Tone::Bad,
    };
    (page.tone(tone, &format!("Could be fenced now: {} of {}", fine.len(), nodes.len())) + "\n", not)
}

/// That, and why the others could not.
pub fn summary(nodes: &[FenceReadiness<'_>], page: Page) -> String {
    let (mut text, not) = counted(nodes, page);
    // Those that the same is in the way of, in the order of the first of them.
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for able in not {
        let obstacles = words::named(&able.obstacles(), able.node, "NODE");
        match groups.iter_mut().find(|(known, _)| *known == obstacles) {
            Some((_, names)) => names.push(able.node),
            None => groups.push((obstacles, vec![able.node])),
        }
    }
    for (obstacles, names) in groups.iter().take(TOLD) {
        let obstacles = match names.as_slice() {
            [one] => words::named(obstacles, "NODE", one),
            _ => obstacles.clone(),
        };
        text += &page.beside("  ", 4, Tone::Plain, &format!("{}: {obstacles}", words::some(names)));
    }
    let more: usize = groups.iter().skip(TOLD).map(|(_, names)| names.len()).sum();
    if more > 0 {
        text += &format!("  and {more} more\n");
    }
    text
}

/// The same where each fault was told already: those that could not, by name, and what bars them.
pub fn short_summary(nodes: &[FenceReadiness<'_>], page: Page) -> String {
    let (text, not) = counted(nodes, page);
    let named = |able: &&FenceReadiness<'_>| match &able.barred {
        Some(limit) => format!("{} {}", able.node, bar_words(limit)),
        None => able.node.to_owned(),
    };
    let mut names: Vec<String> = not.iter().take(TOLD).map(named).collect();
    if not.len() > TOLD {
        names.push(format!("and {} more", not.len() - TOLD));
    }
    if names.is_empty() { text } else { text + &page.beside("  not: ", 7, Tone::Plain, &names.join(", ")) }
}

/// The same of nodes as they are listed: those that were checked and are not gone for good. Empty: there are none.
pub fn of_fleet(nodes: &[Node], page: Page) -> String {
    let gone = |node: &&Node| node.phase == i32::from(Phase::Retired) || node.orphaned;
    let (present, was_checked) = (nodes.iter().filter(|node| !gone(node)).count(), |node: &&Node| {
        !gone(node) && node.devices.iter().any(|device| device.readiness != 0)
    });
    let checked: Vec<FenceReadiness<'_>> = nodes.iter().filter(was_checked).map(FenceReadiness::of).collect();
    if checked.is_empty() {
        return String::new();
    }
    let mut text = summary(&checked, page);
    if checked.len() < present {
        text += &format!("  not checked yet: {}\n", present - checked.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::DeviceProblemKind;

    use super::*;

    fn device(id: &str, level: u32, readiness: Readiness) -> Device {
        Device { id: id.to_owned(), level, readiness: readiness.into(), ..Device::default() }
    }

    #[test]
    fn the_kind_of_a_problem_is_told_once() {
        let words = |text: &str| {
            let kind = DeviceProblemKind::TimedOut.into();
            problem_words(&DeviceProblem { kind, text: text.to_owned() })
        };
        assert_eq!(words("timed out: no answer"), "timed out: no answer");
        assert_eq!(words("no answer"), "timed out: no answer");
    }

    #[test]
    fn a_level_is_as_good_as_its_worst_device_and_one_level_is_enough() {
        let (ready, bad) = (Readiness::Ready, Readiness::NotReady);
        assert!(could(&[device("bmc", 1, bad), device("a", 2, ready), device("b", 2, Readiness::Degraded)]));
        assert!(!could(&[device("bmc", 1, bad), device("a", 2, ready), device("b", 2, bad)]));
        assert!(!could(&[device("bmc", 1, Readiness::Unspecified)]));
        assert!(!could(&[]), "no device proves nothing");
    }

    fn faulty(id: &str, address: &str, text: &str) -> Device {
        let kind = DeviceProblemKind::Authentication.into();
        let problems = vec![DeviceProblem { kind, text: text.to_owned() }];
        Device { address: address.to_owned(), problems, ..device(id, 1, Readiness::NotReady) }
    }

    #[test]
    fn a_fault_of_many_is_one_with_all_that_have_it() {
        let file = "/etc/picket/bmc.password: permission denied: run chown picket";
        let nodes: Vec<(String, Device)> = (1..=6)
            .map(|n| (format!("n{n}"), faulty("bmc", &format!("192.0.2.{n}:623"), file)))
            .chain([("n1".to_owned(), faulty("pdu", "192.0.2.99", file))])
            .collect();
        let of = |nodes: &[(String, Device)], all| {
            told(&faults(nodes.iter().map(|(node, device)| (&**node, device))), all, Page::PLAIN)
        };
        let wanted = format!(
            "\nWhat is wrong:\n  authentication: {file}\n    n1/bmc, n2/bmc, n3/bmc, n4/bmc and 3 more\n"
        );
        assert_eq!(of(&nodes, false), wanted);
        assert!(of(&nodes, true).ends_with("n6/bmc, n1/pdu\n"), "{}", of(&nodes, true));
        assert_eq!(of(&[], false), "");
    }

    #[test]
    fn faults_that_differ_by_their_own_names_alone_are_one() {
        let refused = |n: usize| {
            faulty(
                "bmc",
                &format!("192.0.2.{n}:623"),
                &format!("192.0.2.{n}:623 refuses admin: picket plan n{n}"),
            )
        };
        let (one, two) = (refused(1), refused(2));
        let alone = faults([("n1", &one)]);
        assert_eq!(alone[0].text, "authentication: 192.0.2.1:623 refuses admin: picket plan n1");
        let both = faults([("n1", &one), ("n2", &two)]);
        assert_eq!(both.len(), 1);
        assert_eq!(both[0].text, "authentication: ADDRESS refuses admin: picket plan NODE");
        // Who has another node's name in it has another fault.
        assert_eq!(faults([("n1", &one), ("n2", &one)]).len(), 2);
    }

    #[test]
    fn a_node_that_would_be_blocked_could_not_be_fenced_now_and_what_holds_it_is_told() {
        let bar = |name: &str, seconds: Option<i64>| Limit {
            name: name.to_owned(),
            whose: "group rack=r1".to_owned(),
            retry_after: seconds.map(|seconds| prost_types::Duration { seconds, nanos: 0 }),
            ..Limit::default()
        };
        let node = |name: &str, barred| Node {
            name: name.to_owned(),
            devices: vec![device("bmc", 1, Readiness::Ready)],
            barred,
            ..Node::default()
        };
        let nodes = [
            node("db1", Some(bar("cool_down", Some(553)))),
            node("db2", None),
            node("db3", Some(bar("at_once", None))),
        ];
        assert_eq!(
            of_fleet(&nodes, Page::PLAIN),
            "Could be fenced now: 1 of 3\n  db1: after 9 min 13 s (cool-down)\n  db3: blocked (at once of group rack=r1)\n"
        );
        assert_eq!(
            short_summary(&[FenceReadiness::of(&nodes[0])], Page::PLAIN),
            "Could be fenced now: 0 of 1\n  not: db1 after 9 min 13 s (cool-down)\n"
        );
    }

    #[test]
    fn of_many_the_few_are_told_that_could_not_be_fenced() {
        let node = |n: usize| {
            let mut bmc = device("bmc", 1, if n % 40 == 7 { Readiness::NotReady } else { Readiness::Ready });
            if n % 40 == 7 {
                let kind = DeviceProblemKind::Authentication.into();
                bmc.problems = vec![DeviceProblem { kind, text: "the password is wrong".to_owned() }];
            }
            Node { name: format!("n{n}"), devices: vec![bmc], ..Node::default() }
        };
        let mut nodes: Vec<Node> = (0..1_000).map(node).collect();
        nodes[1].devices[0].readiness = 0;
        nodes[2].phase = Phase::Retired.into();
        let text = of_fleet(&nodes, Page::PLAIN);
        assert!(
            text.starts_with(
                "Could be fenced now: 973 of 998\n  n7, n47, n87, n127 and 21 more: bmc authentication: the password is wrong\n"
            ),
            "{text}"
        );
        assert!(text.ends_with("wrong\n  not checked yet: 1\n"), "{text}");
        assert_eq!(of_fleet(&nodes[1..3], Page::PLAIN), "");
    }
}
