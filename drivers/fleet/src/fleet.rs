//! All BMCs of a process.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use picket_core::time::Clock;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::bmc::{Bmc, BmcOptions};

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
    _tasks: JoinSet<()>,
}

impl Fleet {
    /// Starts them all, or none. Each takes one socket: see `ulimit -n`.
    ///
    /// # Errors
    /// The first of them that cannot be started.
    pub async fn start(all: &[BmcOptions], clock: &Arc<dyn Clock>) -> Result<Self, StartError> {
        let mut bmcs = BTreeMap::new();
        for options in all {
            let (name, address) = (options.name.clone(), options.ipmi);
            if !matches!(address.ip(), IpAddr::V4(ip) if ip.is_loopback()) {
                return Err(StartError::NotLoopback { name, address });
            }
            let socket = UdpSocket::bind(address).await;
            let socket =
                socket.map_err(|source| StartError::Listen { name: name.clone(), address, source })?;
            let bmc = Arc::new(Bmc::new(options, clock.clone(), socket));
            if bmcs.insert(name.clone(), bmc).is_some() {
                return Err(StartError::Twice { name });
            }
        }
        let mut tasks = JoinSet::new();
        for bmc in bmcs.values() {
            tasks.spawn(bmc.clone().serve());
        }
        Ok(Self { bmcs, _tasks: tasks })
    }

    /// The BMC of that machine.
    pub fn bmc(&self, name: &str) -> Option<&Arc<Bmc>> {
        self.bmcs.get(name)
    }

    /// All of them, by name.
    pub fn bmcs(&self) -> impl ExactSizeIterator<Item = &Arc<Bmc>> {
        self.bmcs.values()
    }
}
