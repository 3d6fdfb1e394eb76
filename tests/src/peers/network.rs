//! Hosts with networks of their own, one switch between them, and cuts.
//!
//! A host is a network namespace that a process of ours keeps open: nothing has a name that another test could take, nothing of
//! the machine's own network is touched, and when the keepers end, as they do with the test run, nothing is left.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{Process, eventually};
use crate::error::{PeerError, Result};

const READY_WITHIN: Duration = Duration::from_secs(20);
/// Says that its namespace is there, and keeps it until its standard input ends.
pub(super) const KEEP: &str = "echo ready && exec cat";

/// A switch with so many hosts. They are called by their number; the first has the address 10.93.0.1.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    // Ends after its hosts.
    _switch: Process,
    _directory: TempDir,
}

#[derive(Debug)]
struct Host {
    place: Place,
    _keeper: Process,
}

/// Where programs may run: a host of a [`Network`], or of a cluster's. It is there as long as its network.
#[derive(Clone, Debug)]
pub struct Place {
    keeper: u32,
    address: Ipv4Addr,
}

impl Network {
    /// So many hosts, at most 200, each of which reaches every other.
    pub async fn start(hosts: u8) -> Result<Self> {
        super::tools::must_have("nsenter", "util-linux")?;
        super::tools::must_have("ip", "iproute2")?;
        super::tools::must_have("iptables", "iptables")?;
        let directory = tempfile::Builder::new()
            .prefix("picket-network-")
            .tempdir()
            .map_err(PeerError::io("create a network's directory"))?;
        let mut command = Command::new("unshare");
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        let bridge = "ip link set lo up && ip link add switch type bridge && ip link set switch up";
        command.args(["--net", "sh", "-c", &format!("{bridge} && {KEEP}")]);
        let switch = keeper(command, directory.path(), "switch").await?;
        let middle = Place { keeper: switch.id(), address: Ipv4Addr::UNSPECIFIED };
        let mut network = Self { hosts: Vec::new(), _switch: switch, _directory: directory };
        for n in 0..hosts.min(200) {
            network.add(&middle, n).await?;
        }
        Ok(network)
    }

    async fn add(&mut self, middle: &Place, n: u8) -> Result<()> {
        let address = Ipv4Addr::new(10, 93, 0, n + 1);
        let mut command = middle.beside("unshare");
        command.args(["--net", "sh", "-c", &format!("ip link set lo up && {KEEP}")]);
        let keeper = keeper(command, self._directory.path(), &format!("host{n}")).await?;
        let place = Place { keeper: keeper.id(), address };
        middle.shell(&format!(
            "ip link add p{n} type veth peer name eth0 netns {} && ip link set p{n} master switch up",
            keeper.id()
        ))?;
        place.shell(&format!("ip addr add {address}/24 dev eth0 && ip link set eth0 up"))?;
        self.hosts.push(Host { place, _keeper: keeper });
        Ok(())
    }

    /// One of its hosts.
    pub fn host(&self, n: usize) -> &Place {
        &self.hosts[n].place
    }
}

/// Starts a keeper, and waits until its namespace is there.
pub(super) async fn keeper(command: Command, directory: &Path, name: &str) -> Result<Process> {
    let mut process =
        Process::start(command, &directory.join(format!("{name}.log")), "util-linux and iproute2")?;
    let there = || process.log().contains("ready") || process.ended().is_some();
    eventually("a network namespace is there", READY_WITHIN, there).await?;
    process.still_runs()?;
    Ok(process)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Place {
    /// The namespace that this process keeps, at that address.
    pub(super) fn of(keeper: &Process, address: Ipv4Addr) -> Self {
        Self { keeper: keeper.id(), address }
    }

    /// The same by another of its addresses.
    pub fn by(&self, address: Ipv4Addr) -> Self {
        Self { address, ..*self }
    }

    /// The process that keeps its namespace.
    pub(super) fn keeper(&self) -> u32 {
        self.keeper
    }

    /// Its address on the switch.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A command that runs `program` there. Its process id is that of the program.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.enter(true);
        command.arg(program);
        command
    }

    /// A command that runs `program` as the same user, and in the network of whoever runs it.
    fn beside(&self, program: &str) -> Command {
        if is_root() { Command::new(program) } else { self.enter_and_run(program) }
    }

    fn enter_and_run(&self, program: &str) -> Command {
        let mut command = self.enter(false);
        command.arg(program);
        command
    }

    fn enter(&self, net: bool) -> Command {
        let namespace = |kind: &str| format!("--{kind}=/proc/{}/ns/{kind}", self.keeper);
        let mut command = Command::new("nsenter");
        if !is_root() {
            command.args(["--preserve-credentials", &namespace("user")]);
        }
        if net {
            command.arg(namespace("net"));
        }
        command
    }

    /// Loses all that `other` sends here, one way, until the cut is mended.
    pub fn deaf_to(&self, other: &Place) -> Result<Cut> {
        Cut::of(self, format!("INPUT -s {} -j DROP", other.address))
    }

    /// Loses what this place sends to that TCP port anywhere, itself included.
    pub fn no_requests_to(&self, port: u16) -> Result<Cut> {
        Cut::of(self, format!("OUTPUT -p tcp --dport {port} -j DROP"))
    }

    /// Loses what comes to this place from that TCP port anywhere, itself included.
    pub fn no_answers_from(&self, port: u16) -> Result<Cut> {
        Cut::of(self, format!("INPUT -p tcp --sport {port} -j DROP"))
    }

    /// Whether a process there listens on that UDP port.
    pub(super) fn has_udp(&self, port: u16) -> bool {
        // proc_pid_net(5): "sl: address:port ..." in hexadecimal digits.
        let sockets = std::fs::read_to_string(format!("/proc/{}/net/udp", self.keeper)).unwrap_or_default();
        let end = format!(":{port:04X}");
        sockets.lines().filter_map(|line| line.split_whitespace().nth(1)).any(|local| local.ends_with(&end))
    }

    /// Whether something lies before whoever listens on that TCP port there, and was not read yet.
    pub fn has_unread(&self, port: u16) -> bool {
        // proc_pid_net(5): "sl: local remote state tx_queue:rx_queue ...", in hexadecimal digits; 01 is established.
        let sockets = std::fs::read_to_string(format!("/proc/{}/net/tcp", self.keeper)).unwrap_or_default();
        let end = format!(":{port:04X}");
        sockets.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words[..], [_, local, _, "01", queues, ..]
                if local.ends_with(&end) && !queues.ends_with(":00000000"))
        })
    }

    pub(super) fn shell(&self, script: &str) -> Result<()> {
        let mut command = self.command("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        let output = command.output().map_err(PeerError::io(format!("run {script}")))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(PeerError::Ended { program: script.to_owned(), status: output.status.to_string(), output: said })
    }
}

/// Something that does not come through any more, until it is mended or dropped.
#[derive(Debug)]
#[must_use]
pub struct Cut {
    place: Place,
    rule: String,
}

impl Cut {
    fn of(place: &Place, rule: String) -> Result<Self> {
        // -w: iptables of two tests wait for each other.
        place.shell(&format!("iptables -w -A {rule}"))?;
        Ok(Self { place: place.clone(), rule })
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        // A place that is gone has no rules left.
        let _ = self.place.shell(&format!("iptables -w -D {}", self.rule));
    }
}
