//! Many BMCs side by side, at addresses that a host list can name.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use futures::{StreamExt, TryStreamExt, stream};
use picket_tests::peers::{IpmiSim, fresh_address};

use crate::Wrong;

/// Addresses of one network of 24 bits that are used: 127.x.y.1 to .250.
const PER_NETWORK: usize = 250;
/// Starting all at once would only make them wait for one another.
const STARTED_TOGETHER: usize = 16;

/// What the hold module's watchdog timer was set to (`holdmod.c`).
const WATCHDOG: [(&str, i64); 4] =
    [("watchdog_set", 1), ("watchdog_use", 4), ("watchdog_action", 1), ("watchdog_countdown", 600)];

/// Running simulators; they end with the farm.
pub struct Farm {
    sims: Vec<IpmiSim>,
}

fn address(first: [u8; 4], port: u16, index: usize) -> SocketAddr {
    let [a, b, c, _] = first;
    let host = Ipv4Addr::new(a, b, c + (index / PER_NETWORK) as u8, 1 + (index % PER_NETWORK) as u8);
    SocketAddr::from((host, port))
}

impl Farm {
    /// So many, switched on; with the commands of a hold or without.
    pub async fn start(count: usize, holds: bool) -> Result<Self, Wrong> {
        let (first, port) = loop {
            let fresh = fresh_address();
            let IpAddr::V4(host) = fresh.ip() else { continue };
            let fits = usize::from(host.octets()[2]) + count / PER_NETWORK < 256;
            let free = |index| UdpSocket::bind(address(host.octets(), fresh.port(), index)).is_ok();
            if fits && (0..count).all(free) {
                break (host.octets(), fresh.port());
            }
        };
        let start = |index| {
            let builder = IpmiSim::builder().address(address(first, port, index));
            if holds { builder.holds().start() } else { builder.start() }
        };
        let sims: Vec<IpmiSim> =
            stream::iter(0..count).map(start).buffered(STARTED_TOGETHER).try_collect().await?;
        if holds {
            // As an operating system leaves it: used, an action, a minute. One that was never set is no hold.
            for (sim, name, value) in
                sims.iter().flat_map(|sim| WATCHDOG.map(|(name, value)| (sim, name, value)))
            {
                sim.preset(name, value)?;
            }
        }
        Ok(Self { sims })
    }

    /// Where they listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sims.iter().map(IpmiSim::address).collect()
    }

    /// Somebody presses every power button.
    pub fn switch_on(&self) -> Result<(), Wrong> {
        self.sims.iter().try_for_each(|sim| sim.press(true)).map_err(Wrong::from)
    }

    /// An error unless all are off in truth, whatever `who` says.
    pub fn must_be_off(&self, who: &str) -> Result<(), Wrong> {
        let mut on = 0;
        for sim in &self.sims {
            on += usize::from(sim.is_on()?);
        }
        match on {
            0 => Ok(()),
            _ => Err(format!("{who} says that it is done, and {on} of {} are on", self.sims.len()).into()),
        }
    }

    /// A host list of all of them, as FreeIPMI and powerman read it; `suffix` follows each name.
    pub fn host_list(&self, suffix: &str) -> String {
        let mut networks: Vec<(String, usize, usize)> = Vec::new();
        for sim in &self.sims {
            let host = sim.address().ip().to_string();
            let Some((network, last)) = host.rsplit_once('.') else { continue };
            let last = last.parse().unwrap_or(0);
            match networks.last_mut().filter(|(known, _, end)| known == network && end + 1 == last) {
                Some((_, _, end)) => *end = last,
                None => networks.push((network.to_owned(), last, last)),
            }
        }
        let ranges = networks.iter().map(|(network, from, to)| match from == to {
            true => format!("{network}.{from}{suffix}"),
            false => format!("{network}.[{from}-{to}]{suffix}"),
        });
        ranges.collect::<Vec<_>>().join(",")
    }

    /// The port of all of them.
    pub fn port(&self) -> u16 {
        self.sims.first().map_or(0, |sim| sim.address().port())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.sims.len()
    }
}
