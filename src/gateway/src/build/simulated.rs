//! Whether a gateway is simulated, and what its settings must not have then (S1).
//!
//! A driver kind declares that its devices are simulated (`DriverKind::is_simulated`), or the settings do
//! (`gateway.simulated`).
//!
//! # Invariants
//!
//! - A gateway has simulated devices alone, or none: a simulated device proves nothing real. Shown by
//!   `simulated_devices_stand_alone_whatever_levels_and_templates_they_are_in`.
//! - A simulated gateway has no release but of kind `none`. Shown by
//!   `a_simulated_gateway_has_no_release_that_lets_anything_go`.

use picket_config::{DeviceSettings, Fault, Settings};
use picket_core::ids::NodeId;
use picket_driver::DriverKind;

/// The only kind of release that sends nothing to anybody.
const LETS_NOTHING_GO: &str = "none";

/// Why a gateway is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simulated {
    /// Its devices are of the driver of that name, whose machines are simulated.
    ByDriver(&'static str),
    /// The settings say so: its BMCs are simulated, and their drivers are those of real ones.
    BySetting,
}

impl Simulated {
    /// What the gateway says of itself at its start.
    pub(crate) fn remark(self) -> String {
        format!(
            "this gateway is simulated ({}): it switches no real machine, its status, evidence and receipts say so, and it lets \
             nothing go",
            self.cause()
        )
    }

    fn cause(self) -> String {
        match self {
            Simulated::ByDriver(driver) => format!("its devices are of the driver {driver}"),
            Simulated::BySetting => "gateway.simulated = true".to_owned(),
        }
    }
}

/// A device, the node whose it is, and the kind of its driver.
#[derive(Clone, Copy)]
struct Device<'a> {
    node: &'a NodeId,
    settings: &'a DeviceSettings,
    kind: &'a dyn DriverKind,
}

impl Device<'_> {
    /// A fault where its driver is named.
    fn fault(&self, message: String) -> Fault {
        self.settings.fault("driver", message)
    }

    /// Its name, its driver and its place: `n1/bmc (driver ipmi, picket.toml:3: nodes.n1.devices.bmc.driver)`.
    fn named(&self) -> String {
        let place = self.fault(String::new()).place;
        format!("{}/{} (driver {}, {place})", self.node, self.settings.id, self.kind.name())
    }
}

/// Whether the gateway of these settings is simulated; all that S1 forbids it is told.
pub(super) fn of(
    settings: &Settings,
    kinds: &[Box<dyn DriverKind>],
    faults: &mut Vec<Fault>,
) -> Option<Simulated> {
    let (simulated, real) = (first(settings, kinds, true), first(settings, kinds, false));
    if let (Some(simulated), Some(real)) = (simulated, real) {
        faults.push(mixed(simulated, real));
        // Which of the two has to go is not known, so nothing is said of releases.
        return None;
    }
    let by_driver = simulated.map(|device| Simulated::ByDriver(device.kind.name()));
    if let (Some(device), Some(false)) = (simulated, settings.gateway.simulated) {
        faults.push(denied(device));
    }
    let why = by_driver.or((settings.gateway.simulated == Some(true)).then_some(Simulated::BySetting))?;
    faults.extend(real_releases(settings, why));
    Some(why)
}

/// The first device of a node whose driver is simulated, or is not. A parent is no device of its own: it is as real as the node
/// that it names. A template that no node uses is no device either.
fn first<'a>(
    settings: &'a Settings,
    kinds: &'a [Box<dyn DriverKind>],
    simulated: bool,
) -> Option<Device<'a>> {
    let devices =
        settings.nodes.values().flat_map(|node| node.devices.values().map(move |device| (node, device)));
    devices
        .filter_map(|(node, device)| {
            let kind = kinds.iter().find(|kind| kind.name() == device.driver)?;
            Some(Device { node: &node.id, settings: device, kind: &**kind })
        })
        .find(|device| device.kind.is_simulated() == simulated)
}

fn mixed(simulated: Device<'_>, real: Device<'_>) -> Fault {
    let driver = simulated.kind.name();
    simulated.fault(format!(
        "device {} proves nothing real, because a device of the driver {driver} switches no real machine, and device {} switches a \
         real one: a gateway has devices of the driver {driver} alone or none of them. Take {}/{} out or give it the driver of its \
         real device; to rehearse, run another gateway that has devices of the driver {driver} alone",
        simulated.named(),
        real.named(),
        simulated.node,
        simulated.settings.id,
    ))
}

fn denied(simulated: Device<'_>) -> Fault {
    let driver = simulated.kind.name();
    simulated.fault(format!(
        "device {} switches no real machine, and gateway.simulated = false says that this gateway switches real ones: give the \
         device the driver of its real device, or take gateway.simulated out (devices of the driver {driver} imply that it is true)",
        simulated.named()
    ))
}

/// A release that sends anything to anybody would let real volumes go by what proves nothing real.
fn real_releases(settings: &Settings, why: Simulated) -> impl Iterator<Item = Fault> {
    // A kind that is missing is told with the release itself.
    let is_real = |kind: &str| !kind.is_empty() && kind != LETS_NOTHING_GO;
    settings.releases.values().filter(move |release| is_real(&release.how.kind)).map(move |release| {
        release.how.fault(
            "kind",
            format!(
                "release {} is of kind {:?} and would let real volumes go, and this gateway is simulated ({}), so that no machine is \
                 really off: a simulated gateway has releases of kind \"{LETS_NOTHING_GO}\" alone. Set kind = \"{LETS_NOTHING_GO}\", or give \
                 the gateway real devices",
                release.id,
                release.how.kind,
                why.cause()
            ),
        )
    })
}
