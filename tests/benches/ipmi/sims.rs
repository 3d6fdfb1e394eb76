//! A farm of `ipmi_sim`, one process a BMC.

use std::net::SocketAddr;

use futures::{StreamExt, TryStreamExt, stream};
use picket_tests::peers::IpmiSim;

use crate::Wrong;
use crate::race::farm::{Farm, places};

/// Starting all at once would only make them wait for one another.
const STARTED_TOGETHER: usize = 16;

/// What the hold module's watchdog timer was set to (`holdmod.c`).
const WATCHDOG: [(&str, i64); 4] =
    [("watchdog_set", 1), ("watchdog_use", 4), ("watchdog_action", 1), ("watchdog_countdown", 600)];

/// Running simulators; they end with the farm.
pub struct Sims {
    addresses: Vec<SocketAddr>,
    sims: Vec<IpmiSim>,
}

impl Sims {
    /// So many, switched on; with the commands of a hold or without.
    pub async fn start(count: usize, holds: bool) -> Result<Self, Wrong> {
        let addresses = places(count);
        let start = |address: &SocketAddr| {
            let builder = IpmiSim::builder().address(*address);
            if holds { builder.holds().start() } else { builder.start() }
        };
        let starting: Vec<_> = addresses.iter().map(start).collect();
        let sims: Vec<IpmiSim> = stream::iter(starting).buffered(STARTED_TOGETHER).try_collect().await?;
        if holds {
            // As an operating system leaves it: used, an action, a minute. One that was never set is no hold.
            for (sim, name, value) in
                sims.iter().flat_map(|sim| WATCHDOG.map(|(name, value)| (sim, name, value)))
            {
                sim.preset(name, value)?;
            }
        }
        Ok(Self { addresses, sims })
    }
}

impl Farm for Sims {
    fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn switch_on(&self) -> Result<(), Wrong> {
        self.sims.iter().try_for_each(|sim| sim.press(true)).map_err(Wrong::from)
    }

    fn count_on(&self) -> Result<usize, Wrong> {
        let mut on = 0;
        for sim in &self.sims {
            on += usize::from(sim.is_on()?);
        }
        Ok(on)
    }
}
