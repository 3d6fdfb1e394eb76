//! The BMCs: `picket-fleet`'s, in a process of their own, so that what they cost can be told apart.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::time::Clock;
use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::{Act, Fault, SimClock, Verb};
use picket_fleet::{Account, BmcOptions, Fleet, RedfishPlace, Role, room_for};
use picket_tests::peers::{ADMIN, PASSWORD};

use crate::Wrong;
use crate::child::{self, Child};
use crate::options::Child as What;
use crate::race::cost;
use crate::race::farm::{Farm, places};

/// Contestants that leave in the middle of a login leave its slot taken for a minute: as many as there are at all.
const SESSIONS: usize = 63;
/// As real BMCs have it.
const IDLE: Duration = Duration::from_secs(60);
const REDFISH_IDLE: Duration = Duration::from_secs(30 * 60);

/// What they are spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// IPMI 2.0, over UDP.
    Ipmi,
    /// Redfish, over TCP and TLS at the same port.
    Redfish,
}

/// BMCs in a child.
pub struct Bmcs {
    addresses: Vec<SocketAddr>,
    child: Mutex<Child>,
    process: u32,
}

impl Bmcs {
    /// So many, switched on, for IPMI.
    pub fn start(count: usize) -> Result<Self, Wrong> {
        Self::start_with(count, Speech::Ipmi)
    }

    /// The same for either; those that speak Redfish have no fewer sessions, and IPMI besides.
    pub fn start_with(count: usize, speech: Speech) -> Result<Self, Wrong> {
        let addresses = places(count);
        let mut child = Child::start(&What::Bmcs(speech), &addresses)?;
        match child.heard()?.as_str() {
            "ready" => Ok(Self { addresses, process: child.id(), child: Mutex::new(child) }),
            other => Err(other.into()),
        }
    }

    fn order(&self, word: &str) -> Result<(), Wrong> {
        match self.child.lock().ask(word)?.as_str() {
            "done" => Ok(()),
            other => Err(other.into()),
        }
    }

    /// So many of 100 are dead from now on: those of [`is_dead`].
    pub fn dead(&self, percent: usize) -> Result<(), Wrong> {
        self.order(&format!("dead {percent}"))
    }

    /// So many of 100 packets are lost, each way.
    pub fn loss(&self, percent: usize) -> Result<(), Wrong> {
        self.order(&format!("loss {percent}"))
    }

    /// The authority behind the certificates of their Redfish, as PEM.
    pub fn authority(&self) -> Result<String, Wrong> {
        Ok(self.child.lock().ask("authority")?.replace('|', "\n"))
    }

    /// All work as they should again.
    pub fn mend(&self) -> Result<(), Wrong> {
        self.order("mend")
    }
}

/// Whether the BMC of that place is one of so many of 100.
pub fn is_dead(index: usize, percent: usize) -> bool {
    index % 100 < percent
}

impl Farm for Bmcs {
    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn switch_on(&self) -> Result<(), Wrong> {
        self.order("on")
    }

    fn count_on(&self) -> Result<usize, Wrong> {
        Ok(self.child.lock().ask("count")?.parse()?)
    }

    fn cpu(&self) -> Option<Duration> {
        Some(cost::family_cpu(self.process))
    }
}

/// The child.
pub async fn serve(speech: Speech) -> Result<(), Wrong> {
    let addresses = child::addresses()?;
    let accounts: Arc<[Account]> = Arc::new([Account {
        name: ADMIN.to_owned(),
        password: PASSWORD.to_owned(),
        role: Role::Administrator,
    }]);
    let options = |(index, address): (usize, &SocketAddr)| BmcOptions {
        // In the order of the addresses also where they are sorted by name.
        name: format!("n{index:05}"),
        ipmi: *address,
        accounts: accounts.clone(),
        suites: vec![Suite::Sha1, Suite::Sha256],
        sessions: SESSIONS,
        idle: IDLE,
        redfish: (speech == Speech::Redfish).then_some(RedfishPlace {
            address: *address,
            sessions: SESSIONS,
            idle: REDFISH_IDLE,
            tasks: false,
        }),
        seed: index as u64,
    };
    let options: Vec<BmcOptions> = addresses.iter().enumerate().map(options).collect();
    // Of one that speaks Redfish: two that listen, and connections.
    room_for(options.len() * if speech == Speech::Redfish { 4 } else { 1 })?;
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
    let fleet = Fleet::start(&options, &clock).await?;
    child::say("ready")?;
    while let Some(line) = child::told()? {
        match line.split_once(' ').unwrap_or((&line, "0")) {
            ("authority", _) => {
                child::say(&fleet.authority().trim().replace('\n', "|"))?;
                continue;
            }
            ("count", _) => {
                child::say(&fleet.bmcs().filter(|bmc| bmc.is_on()).count().to_string())?;
                continue;
            }
            ("on", _) => fleet.bmcs().filter(|bmc| !bmc.is_on()).for_each(|bmc| {
                bmc.happen(Act::Foreign { machine: bmc.name().to_owned(), verb: Verb::On });
            }),
            ("dead", percent) => {
                let percent = percent.parse()?;
                let dead = fleet.bmcs().enumerate().filter(|(index, _)| is_dead(*index, percent));
                dead.for_each(|(_, bmc)| bmc.fault(Fault::Silent));
            }
            ("loss", percent) => {
                let percent = percent.parse()?;
                fleet.bmcs().for_each(|bmc| bmc.fault(Fault::Loss { percent }));
            }
            ("mend", _) => fleet.bmcs().for_each(|bmc| bmc.mend()),
            _ => {
                child::say(&format!("the BMCs do not know what {line:?} is"))?;
                continue;
            }
        }
        child::say("done")?;
    }
    Ok(())
}
