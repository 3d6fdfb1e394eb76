//! The network of a cluster: a bridge in a namespace of its own, where the control plane and the BMCs are, and one more for each
//! machine. Clusters have the same addresses and know nothing of each other.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use super::super::network::{self, KEEP};
use super::super::{Place, Process};
use crate::error::Result;

#[derive(Debug)]
pub(super) struct Lan {
    middle: Place,
    // The bridge ends after the machines that are plugged into it.
    keepers: Vec<Process>,
}

/// Of the control plane, and of everybody who is on its host.
const MIDDLE: Ipv4Addr = Ipv4Addr::new(10, 250, 0, 1);

impl Lan {
    pub(super) async fn start(directory: &Path) -> Result<Self> {
        let script = format!(
            "ip link set lo up && ip link add br0 type bridge && ip addr add {MIDDLE}/24 dev br0 && ip link set br0 up && {KEEP}"
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", &script]);
        let keeper = network::keeper(command, directory, "lan").await?;
        Ok(Self { middle: Place::of(&keeper, MIDDLE), keepers: vec![keeper] })
    }

    /// The host of the control plane.
    pub(super) fn middle(&self) -> &Place {
        &self.middle
    }

    /// A machine's place on the bridge, and its BMC's, which is at the bridge itself: it is there whatever becomes of the machine.
    pub(super) async fn plug(&mut self, directory: &Path, n: u8) -> Result<(Place, Place)> {
        let (machine, bmc) = (Ipv4Addr::new(10, 250, 0, 10 + n), Ipv4Addr::new(10, 250, 0, 110 + n));
        let mut command = Command::new("unshare");
        // Its pods reach others by it.
        let script = format!("ip link set lo up && echo 1 >/proc/sys/net/ipv4/ip_forward && {KEEP}");
        command.args(["--net", "sh", "-c", &script]);
        let keeper = network::keeper(command, directory, "port").await?;
        self.middle.shell(&format!(
            "ip link add m{n} type veth peer name eth0 netns {} && ip link set m{n} master br0 up && ip addr add {bmc}/24 dev br0",
            keeper.id()
        ))?;
        let place = Place::of(&keeper, machine);
        place.shell(&format!(
            "ip addr add {machine}/24 dev eth0 && ip link set eth0 up && ip route add default via {MIDDLE}"
        ))?;
        self.middle.shell(&format!("ip route add {} via {machine}", pods(n)))?;
        self.keepers.insert(0, keeper);
        Ok((place, self.middle.by(bmc)))
    }
}

/// The addresses of a machine's pods.
pub(super) fn pods(n: u8) -> String {
    format!("10.251.{n}.0/24")
}
