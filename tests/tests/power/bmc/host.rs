//! A real machine behind a BMC, with an observer of its disk.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{IpmiSim, IpmiSimBuilder, Ipmipower, Ipmitool, Machine, Observer, PowerWord};

/// A machine boots within this, also when eight others do.
pub const BOOT: Duration = Duration::from_secs(60);

/// A machine with its BMC and the observer of its disk.
pub struct Host {
    /// The machine.
    pub machine: Machine,
    /// Its BMC.
    pub bmc: IpmiSim,
    /// Who watches its disk.
    pub observer: Observer,
}

impl Host {
    /// Switched on through its BMC, with its heart beating.
    pub async fn on(build: impl FnOnce(IpmiSimBuilder, &Machine) -> IpmiSimBuilder) -> Result<Self> {
        let host = Self::off(build).await?;
        Ipmitool::new(host.bmc.address()).run("chassis power on").await?;
        host.observer.wait_for(3, BOOT).await?;
        Ok(host)
    }

    /// Switched off since it was made.
    pub async fn off(build: impl FnOnce(IpmiSimBuilder, &Machine) -> IpmiSimBuilder) -> Result<Self> {
        let machine = Machine::new()?;
        let bmc = build(IpmiSim::builder(), &machine).start().await?;
        let observer = machine.observe().await?;
        Ok(Self { machine, bmc, observer })
    }

    /// What ipmitool and ipmipower say, and both say the same.
    pub async fn onlookers(&self) -> Result<PowerWord> {
        let address = self.bmc.address();
        let said = (Ipmitool::new(address).power().await?, Ipmipower::new(address).power().await?);
        assert_eq!(said.0, said.1, "ipmitool and ipmipower");
        Ok(said.0)
    }

    /// The machine lives, and its heart goes on beating.
    pub async fn is_alive(&self) -> Result<()> {
        self.observer.wait_for(3, BOOT).await
    }

    /// A second BMC of the same machine, which says so.
    pub async fn second_bmc(&self) -> Result<IpmiSim> {
        let guid = u128::from_str_radix(&self.bmc.guid(), 16).expect("a GUID");
        IpmiSim::builder().machine(&self.machine).guid(guid).start().await
    }

    /// What was done to the machine, in order.
    pub fn power_events(&self) -> Vec<String> {
        self.machine.power_events().into_iter().map(|event| event.what).collect()
    }
}

/// Powered by a program for each command.
pub fn by_script(builder: IpmiSimBuilder, machine: &Machine) -> IpmiSimBuilder {
    builder.machine(machine)
}

/// As the BMC's own child: the off is acknowledged before the fall, and a BMC that restarted says off for whatever lives.
pub fn as_child(builder: IpmiSimBuilder, machine: &Machine) -> IpmiSimBuilder {
    builder.machine_as_child(machine)
}

/// By a program for each command, with the commands of a hold.
pub fn with_holds(builder: IpmiSimBuilder, machine: &Machine) -> IpmiSimBuilder {
    builder.machine(machine).holds()
}
