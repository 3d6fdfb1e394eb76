//! What the story happens on: two machines behind BMCs, a receiver of releases, a gateway.

use std::time::Duration;

use picket_tests::peers::{IpmiSim, Machine, Observer};
use picket_tests::{Bmc, ExampleReceiver, Fleet, Gateway, Result};

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
    /// Who lets volumes go.
    pub receiver: ExampleReceiver,
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
        let receiver = ExampleReceiver::start().await?;
        let fleet = hosts.iter().fold(Fleet::new(), |fleet, host| {
            fleet.node(host.name, &Bmc::at(host.bmc.address()), &["detach"])
        });
        let gateway = Gateway::start(&fleet.webhook("detach", receiver.url(), "")).await?;
        gateway.checked().await?;
        Ok(Self { gateway, receiver, hosts })
    }

    /// Lets everything run on after us; the shell line that ends it.
    pub fn leave_running(self) -> Result<String> {
        let mut ends = Vec::new();
        let mut directories = vec![self.gateway.directory().to_owned()];
        ends.extend(self.gateway.leave_running());
        ends.push(self.receiver.leave_running());
        for host in self.hosts {
            drop(host.observer);
            directories.push(host.bmc.directory().to_owned());
            ends.push(host.bmc.leave_running());
            ends.extend(host.machine.process());
            directories.push(host.machine.leave_running());
        }
        let ids: Vec<String> = ends.iter().map(u32::to_string).collect();
        let paths: Vec<String> = directories.iter().map(|path| path.display().to_string()).collect();
        // A machine that was fenced and brought back meanwhile has another process: its directory knows it.
        Ok(format!(
            "kill {}; cat {}/vm.pid 2>/dev/null | xargs -r kill -9; rm -r {}",
            ids.join(" "),
            paths.join("/vm.pid "),
            paths.join(" ")
        ))
    }
}
