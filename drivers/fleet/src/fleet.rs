//! All BMCs of a process.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use picket_core::time::Clock;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;

use crate::bmc::{Bmc, BmcOptions};
use crate::pki::{Authority, PkiError};
use crate::redfish;

/// Why a fleet does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Simulated BMCs guard nothing: they are for this machine alone.
    #[error("{name}: {address} is not a loopback address; give one of 127.0.0.0/8")]
    NotLoopback {
        /// Whose.
        name: String,
        /// Which.
        address: SocketAddr,
    },
    /// Two machines of one name.
    #[error("{name}: there are two machines of this name")]
    Twice {
        /// Which.
        name: String,
    },
    /// No certificates.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The address cannot be had.
    #[error("{name}: cannot listen at {address}")]
    Listen {
        /// Whose.
        name: String,
        /// Which.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// BMCs that answer as long as it is there.
#[derive(Debug)]
pub struct Fleet {
    bmcs: BTreeMap<String, Arc<Bmc>>,
    authority: Arc<Authority>,
    _tasks: JoinSet<()>,
}

impl Fleet {
    /// Starts them all, or none. Each takes a socket for IPMI, and one for Redfish if it speaks it: see `ulimit -n`.
    /// Of an address with port 0 the system chooses the port, and [`Bmc::address`] has it.
    ///
    /// # Errors
    /// The first of them that cannot be started.
    pub async fn start(all: &[BmcOptions], clock: &Arc<dyn Clock>) -> Result<Self, StartError> {
        let authority = Arc::new(Authority::new()?);
        let (mut bmcs, mut listeners) = (BTreeMap::new(), Vec::new());
        for options in all {
            let (name, address) = (options.name.clone(), options.ipmi);
            let listen = |address| {
                let name = name.clone();
                move |source| StartError::Listen { name, address, source }
            };
            let places = [Some(address), options.redfish.as_ref().map(|redfish| redfish.address)];
            for address in places.into_iter().flatten() {
                if !matches!(address.ip(), IpAddr::V4(ip) if ip.is_loopback()) {
                    return Err(StartError::NotLoopback { name, address });
                }
            }
            let socket = UdpSocket::bind(address).await.map_err(listen(address))?;
            // Of port 0 the system has chosen one: the BMC knows where it truly is.
            let mut bound = options.clone();
            bound.ipmi = socket.local_addr().map_err(listen(address))?;
            let mut listener = None;
            if let Some(redfish) = &mut bound.redfish {
                let address = redfish.address;
                let opened = TcpListener::bind(address).await.map_err(listen(address))?;
                redfish.address = opened.local_addr().map_err(listen(address))?;
                listener = Some(opened);
            }
            let bmc = Arc::new(Bmc::new(&bound, clock.clone(), &authority, socket));
            listeners.extend(listener.map(|listener| (bmc.clone(), listener)));
            if bmcs.insert(name.clone(), bmc).is_some() {
                return Err(StartError::Twice { name });
            }
        }
        let mut tasks = JoinSet::new();
        for bmc in bmcs.values() {
            tasks.spawn(bmc.clone().serve());
        }
        for (bmc, listener) in listeners {
            tasks.spawn(redfish::server::serve(bmc, listener));
        }
        Ok(Self { bmcs, authority, _tasks: tasks })
    }

    /// The BMC of that machine.
    pub fn bmc(&self, name: &str) -> Option<&Arc<Bmc>> {
        self.bmcs.get(name)
    }

    /// The authority behind the certificates of their Redfish, as PEM: what a client trusts.
    pub fn authority(&self) -> &str {
        self.authority.pem()
    }

    /// All of them, by name.
    pub fn bmcs(&self) -> impl ExactSizeIterator<Item = &Arc<Bmc>> {
        self.bmcs.values()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use picket_driver_ipmi::crypto::Suite;
    use picket_driver_sim::SimClock;
    use tokio::net::TcpStream;

    use super::*;
    use crate::RedfishPlace;

    #[tokio::test]
    async fn of_port_0_each_bmc_answers_at_a_port_of_its_own_and_says_which() {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let anywhere: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let options = |name: &str| BmcOptions {
            name: name.to_owned(),
            ipmi: anywhere,
            accounts: Arc::new([]),
            suites: vec![Suite::Sha256],
            sessions: 4,
            idle: Duration::from_secs(60),
            redfish: Some(RedfishPlace {
                address: anywhere,
                sessions: 4,
                idle: Duration::from_secs(300),
                tasks: false,
            }),
            seed: 1,
        };
        let fleet = Fleet::start(&[options("a"), options("b")], &clock).await.expect("ports are free");
        let ports: Vec<u16> = fleet.bmcs().map(|bmc| bmc.address().port()).collect();
        assert!(ports[0] != 0 && ports[1] != 0 && ports[0] != ports[1], "{ports:?}");
        for bmc in fleet.bmcs() {
            let address = bmc.redfish_address().expect("it speaks Redfish");
            TcpStream::connect(address).await.expect("it listens there");
        }
    }
}
