//! etcd, the real one.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::{Process, fresh_address};
use crate::error::{PeerError, Result};

/// The version that `cargo xtask test` builds from its Go module.
const VERSION: &str = "v3.6.16";
/// Ports below those that the kernel hands to clients; each member has an address of its own.
const CLIENT_PORT: u16 = 12_379;
const PEER_PORT: u16 = 12_380;
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Which etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Etcd {
    /// 3.6, as built by `cargo xtask test`, or the one that `PICKET_TEST_ETCD` names.
    Present,
    /// Debian's 3.4.23, in which a deposed leader renews leases.
    Old,
}

impl Etcd {
    /// The executable. An error says how to get it.
    pub fn program(self) -> Result<PathBuf> {
        let (given, built) = match self {
            Etcd::Present => ("PICKET_TEST_ETCD", format!("go/etcd-{VERSION}/bin/etcd")),
            Etcd::Old => ("PICKET_TEST_OLD_ETCD", "debian/etcd-server/usr/bin/etcd".to_owned()),
        };
        let cache = || {
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        };
        let named = std::env::var_os(given).map(PathBuf::from);
        let program = named.or_else(|| Some(cache()?.join("picket").join(built))).unwrap_or_default();
        if program.exists() {
            return Ok(program);
        }
        let what = format!(
            "etcd ({} is not there: cargo xtask test brings it, and {given} may name another)",
            program.display()
        );
        Err(PeerError::Missing { what, package: "etcd-server" })
    }
}

/// One member.
#[derive(Debug)]
pub struct EtcdMember {
    name: String,
    address: IpAddr,
    which: Etcd,
    arguments: Vec<String>,
    directory: PathBuf,
    process: Process,
}

impl EtcdMember {
    /// Where clients talk to it.
    pub fn client(&self) -> SocketAddr {
        SocketAddr::new(self.address, CLIENT_PORT)
    }

    /// Its process, to be frozen or killed.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts it again with what it had stored, after it was killed.
    pub async fn restart(&mut self) -> Result<()> {
        self.process.kill();
        self.process = spawn(self.which, &self.name, &self.directory, &self.arguments)?;
        self.wait().await
    }

    async fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            self.process.still_runs()?;
            // The client's port opens once it is ready to serve.
            if TcpStream::connect(self.client()).await.is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
        let what = format!("etcd answers at {}", self.client());
        Err(PeerError::TimedOut { what, within: READY_WITHIN, seen: self.process.log() })
    }
}

/// Members of one cluster.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<EtcdMember>,
    directory: TempDir,
    secure: bool,
}

impl EtcdCluster {
    /// So many members of 3.6, without TLS.
    pub async fn start(members: usize) -> Result<Self> {
        Self::start_with(Etcd::Present, members, &[]).await
    }

    /// So many members of 3.6, which force what they write to the disk as they do in the field: to be measured.
    pub async fn durable(members: usize) -> Result<Self> {
        Self::begin(Etcd::Present, members, &[], true).await
    }

    /// So many members with these further arguments; where a certificate is among them, with TLS for clients.
    pub async fn start_with(which: Etcd, members: usize, arguments: &[&str]) -> Result<Self> {
        Self::begin(which, members, arguments, false).await
    }

    async fn begin(which: Etcd, members: usize, arguments: &[&str], durable: bool) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("picket-etcd-")
            .tempdir()
            .map_err(PeerError::io("create etcd's directory"))?;
        let addresses: Vec<IpAddr> = (0..members).map(|_| fresh_address().ip()).collect();
        let secure = arguments.iter().any(|argument| argument.starts_with("--cert-file"));
        let scheme = if secure { "https" } else { "http" };
        let peers: Vec<String> = addresses
            .iter()
            .enumerate()
            .map(|(n, address)| format!("e{n}=http://{address}:{PEER_PORT}"))
            .collect();
        let peers = peers.join(",");
        let mut cluster = Self { members: Vec::new(), directory, secure };
        for (n, address) in addresses.into_iter().enumerate() {
            let name = format!("e{n}");
            let own = cluster.directory.path().join(&name);
            let (client, peer) =
                (format!("{scheme}://{address}:{CLIENT_PORT}"), format!("http://{address}:{PEER_PORT}"));
            let mut all = vec![
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster={peers}"),
                "--initial-cluster-state=new".to_owned(),
                format!("--initial-cluster-token={}", cluster.directory.path().display()),
            ];
            all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
            if which == Etcd::Present && !durable {
                // Nobody's power is cut here: what is written outlives the process.
                all.push("--unsafe-no-fsync".to_owned());
            }
            let process = spawn(which, &name, &own, &all)?;
            cluster.members.push(EtcdMember {
                name,
                address,
                which,
                arguments: all,
                directory: own,
                process,
            });
        }
        for member in &mut cluster.members {
            member.wait().await?;
        }
        Ok(cluster)
    }

    /// The URLs of all members.
    pub fn endpoints(&self) -> Vec<String> {
        let scheme = if self.secure { "https" } else { "http" };
        self.members.iter().map(|member| format!("{scheme}://{}", member.client())).collect()
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// One member.
    pub fn member(&mut self, n: usize) -> &mut EtcdMember {
        &mut self.members[n]
    }
}

fn spawn(which: Etcd, name: &str, directory: &Path, arguments: &[String]) -> Result<Process> {
    let mut command = Command::new(which.program()?);
    command.arg(format!("--name={name}")).arg(format!("--data-dir={}", directory.display())).args(arguments);
    Process::start(command, &directory.with_extension("log"), "etcd-server")
}
