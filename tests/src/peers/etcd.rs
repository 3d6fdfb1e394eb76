//! etcd, the real one.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{HANGS, Place, Process, fresh_address, peer_file};
use crate::error::{PeerError, Result};

/// The version that `cargo xtask test` builds from its Go module.
const VERSION: &str = "v3.6.16";
/// Where clients talk to each member. Below the ports that the kernel hands to clients; each has an address of its own.
pub const CLIENT_PORT: u16 = 12_379;
const PEER_PORT: u16 = 12_380;
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

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
    place: Option<Place>,
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
        self.begin_again()?;
        self.wait().await
    }

    /// Stops it, and notes what it has stored; it is not started again.
    pub fn note(&mut self) -> Result<()> {
        self.process.kill();
        copy(&self.directory, &self.directory.with_extension("noted"))
    }

    /// Starts it again with what was noted: as from a snapshot that was restored in place.
    pub async fn set_back(&mut self) -> Result<()> {
        self.process.kill();
        std::fs::remove_dir_all(&self.directory).map_err(PeerError::io("remove etcd's directory"))?;
        copy(&self.directory.with_extension("noted"), &self.directory)?;
        self.begin_again()?;
        self.wait().await
    }

    /// The same, without waiting until it serves: without a quorum it does not.
    pub fn begin_again(&mut self) -> Result<()> {
        self.process.kill();
        let place = self.place.as_ref();
        self.process = spawn(self.which, place, &self.name, &self.directory, &self.arguments)?;
        Ok(())
    }

    /// Whether it leads its cluster, as it says itself; `None` where it does not answer. Of members on hosts of a
    /// [`super::Network`].
    pub async fn leads(&self) -> Option<bool> {
        let mut command = tokio::process::Command::from(self.place.as_ref()?.command("python3"));
        command.arg(peer_file("etcd_leads.py")).arg(format!("http://{}", self.client()));
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = tokio::time::timeout(ANSWERS_WITHIN, output).await.ok()?.ok()?;
        output.status.success().then(|| output.stdout.trim_ascii() == b"leads")
    }

    async fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + HANGS;
        while Instant::now() < deadline {
            self.process.still_runs()?;
            // Its port is open before: one that is killed then has not noted its own cluster yet, and never serves again.
            if self.process.log().contains("ready to serve client requests") {
                return Ok(());
            }
            sleep(Duration::from_millis(10)).await;
        }
        let what = format!("etcd answers at {}", self.client());
        Err(PeerError::TimedOut { what, within: HANGS, seen: self.process.log() })
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
        Self::begin(Etcd::Present, addresses_here(members), &[], true).await
    }

    /// So many members with these further arguments; where a certificate is among them, with TLS for clients.
    pub async fn start_with(which: Etcd, members: usize, arguments: &[&str]) -> Result<Self> {
        Self::begin(which, addresses_here(members), arguments, false).await
    }

    /// A member of 3.6 on each of these hosts, without TLS.
    pub async fn within(places: &[&Place]) -> Result<Self> {
        Self::within_with(places, &[]).await
    }

    /// The same with these further arguments; where a certificate is among them, with TLS for clients.
    pub async fn within_with(places: &[&Place], arguments: &[&str]) -> Result<Self> {
        let addresses = places.iter().map(|place| (place.address().into(), Some((*place).clone()))).collect();
        Self::begin(Etcd::Present, addresses, arguments, false).await
    }

    async fn begin(
        which: Etcd,
        addresses: Vec<(IpAddr, Option<Place>)>,
        arguments: &[&str],
        durable: bool,
    ) -> Result<Self> {
        let directory = directory()?;
        let secure = arguments.iter().any(|argument| argument.starts_with("--cert-file"));
        let scheme = if secure { "https" } else { "http" };
        let peers: Vec<String> = addresses
            .iter()
            .enumerate()
            .map(|(n, (address, _))| format!("e{n}=http://{address}:{PEER_PORT}"))
            .collect();
        let peers = peers.join(",");
        let mut cluster = Self { members: Vec::new(), directory, secure };
        for (n, (address, place)) in addresses.into_iter().enumerate() {
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
            let process = spawn(which, place.as_ref(), &name, &own, &all)?;
            cluster.members.push(EtcdMember {
                name,
                address,
                place,
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

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Which member leads, as it says itself.
    pub async fn leader(&self) -> Option<usize> {
        let asked = self.members.iter().map(EtcdMember::leads);
        let told = futures::future::join_all(asked).await;
        told.into_iter().position(|leads| leads == Some(true))
    }

    /// One member.
    pub fn member(&mut self, n: usize) -> &mut EtcdMember {
        &mut self.members[n]
    }
}

/// For members that need no host of their own.
fn addresses_here(members: usize) -> Vec<(IpAddr, Option<Place>)> {
    (0..members).map(|_| (fresh_address().ip(), None)).collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    match copied.map_err(PeerError::io("copy etcd's directory"))? {
        status if status.success() => Ok(()),
        status => Err(PeerError::io("copy etcd's directory")(std::io::Error::other(status.to_string()))),
    }
}

fn directory() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("picket-etcd-").tempdir();
    made.map_err(PeerError::io("create etcd's directory"))
}

fn spawn(
    which: Etcd,
    place: Option<&Place>,
    name: &str,
    directory: &Path,
    arguments: &[String],
) -> Result<Process> {
    let program = which.program()?;
    let mut command = place.map_or_else(|| Command::new(&program), |place| place.command(&program));
    command.arg(format!("--name={name}")).arg(format!("--data-dir={}", directory.display())).args(arguments);
    Process::start(command, &directory.with_extension("log"), "etcd-server")
}
