//! What the story happens on: two machines behind simulated BMCs, and a gateway that says that they are.

use std::path::PathBuf;
use std::time::Duration;

use picket_tests::peers::{IpmiSim, Machine, Observer};
use picket_tests::{Bmc, Fleet, Gateway, PeerError, Result};

/// A machine with its BMC and the observer of its disk.
#[derive(Debug)]
pub struct Host {
    /// Its name as a node.
    pub name: &'static str,
    /// The machine.
    pub machine: Machine,
    /// Its BMC.
    pub bmc: IpmiSim,
    /// Who watches its disk.
    pub observer: Observer,
}

impl Host {
    /// Switched on, with its heart beating.
    async fn start(name: &'static str) -> Result<Self> {
        let machine = Machine::new()?;
        let bmc = IpmiSim::builder().machine(&machine).holds().start().await?;
        // As it is found in the field: it would come back by itself when power returns.
        bmc.preset("policy", 2)?;
        let observer = machine.observe().await?;
        machine.force(true).await?;
        observer.wait_for(3, Duration::from_secs(60)).await?;
        Ok(Self { name, machine, bmc, observer })
    }
}

/// Everything, running.
#[derive(Debug)]
pub struct Stage {
    /// The gateway. First, so that it ends first.
    pub gateway: Gateway,
    /// The machines.
    pub hosts: [Host; 2],
}

/// The two machines, up.
pub async fn hosts() -> Result<[Host; 2]> {
    let (first, second) = tokio::join!(Host::start("n1"), Host::start("n2"));
    Ok([first?, second?])
}

impl Stage {
    /// A gateway over these machines.
    pub async fn build(hosts: [Host; 2]) -> Result<Self> {
        // No storage hangs on these machines, and who copies the settings must not let go by them what a real one has (S1).
        let simulated = "[gateway]\nsimulated = true\n[releases.detach]\nkind = \"none\"\n";
        let fleet = hosts.iter().fold(Fleet::new().with(simulated), |fleet, host| {
            fleet.node(host.name, &Bmc::simulated(host.bmc.address()), &["detach"])
        });
        let gateway = Gateway::start(&fleet).await?;
        gateway.checked().await?;
        Ok(Self { gateway, hosts })
    }

    /// Lets everything run on after us; the script that ends it.
    pub fn leave_running(self) -> Result<PathBuf> {
        let script = self.gateway.directory().join("stop");
        let mut directories = vec![self.gateway.directory().to_owned()];
        let mut processes: Vec<u32> = self.gateway.leave_running().into_iter().collect();
        let mut machines = Vec::new();
        for host in self.hosts {
            drop(host.observer);
            directories.push(host.bmc.directory().to_owned());
            processes.push(host.bmc.leave_running());
            machines.push(host.machine.leave_running());
        }
        let processes = processes.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let mut text =
            format!("#!/bin/sh\n# Ends what cargo xtask demo --keep left running.\nkill {processes}\n");
        for machine in &machines {
            // By then a machine may have been fenced and brought back: its directory knows its process.
            let dir = machine.display();
            text += &format!("touch {dir}/closed\n[ ! -s {dir}/vm.pid ] || kill -9 $(cat {dir}/vm.pid)\n");
        }
        for directory in directories.iter().chain(&machines) {
            // What ends removes files of its own meanwhile.
            text += &format!("rm -rf {}\n", directory.display());
        }
        std::fs::write(&script, text).map_err(PeerError::io(format!("write {}", script.display())))?;
        Ok(script)
    }
}
