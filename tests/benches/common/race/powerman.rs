//! Contestants that others wrote: ipmipower, and powerman with a resident ipmipower.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use picket_tests::PeerError;
use picket_tests::peers::{ADMIN, PASSWORD, Process, fresh_address};
use rustix::process::Signal;
use tempfile::TempDir;

use super::contest::{Contestant, Deed};
use super::cost;
use super::farm::{Farm, host_list};
use crate::Wrong;

/// Login of ipmipower, as Picket's: RMCP+, suite 3. opensesspriv: ipmi_sim wants the privilege in the first packet.
fn login(hosts: &str) -> Vec<String> {
    let words = ["-D", "LAN_2_0", "-W", "opensesspriv", "-I", "3", "-u", ADMIN, "-p", PASSWORD, "-h", hosts];
    words.into_iter().map(str::to_owned).collect()
}

/// How many BMCs one ipmipower has at most: it opens two sockets for each, and counts them all again whenever one answers.
const MOST_EACH: usize = 5_000;

/// Their names as contestants.
pub const IPMIPOWER: &str = "ipmipower";
/// With a resident ipmipower.
pub const POWERMAN: &str = "powerman, resident";

/// `ipmipower --off --wait-until-off` or `--stat`, one process for all BMCs, or as many as their open files ask for.
pub struct Ipmipower {
    bmcs: usize,
    hosts: Vec<String>,
}

impl Ipmipower {
    /// For this farm.
    pub fn new(farm: &dyn Farm) -> Self {
        let suffix = format!(":{}", farm.port());
        let hosts = farm.addresses().chunks(MOST_EACH).map(|part| host_list(part, &suffix)).collect();
        Self { bmcs: farm.len(), hosts }
    }

    /// Does it, and counts how many BMCs it did it to; with all that it said.
    pub fn count(&self, deed: Deed) -> Result<(usize, String), Wrong> {
        let (options, done): (&[&str], _) = match deed {
            Deed::Status => (&["--stat"], ": on"),
            Deed::Off => (&["--off", "--wait-until-off"], ": ok"),
        };
        let start = |hosts: &String| {
            let mut command = Command::new("ipmipower");
            command.args(login(hosts)).args(options);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        };
        let missing = |_| PeerError::Missing { what: "ipmipower".to_owned(), package: "freeipmi-tools" };
        let started = self.hosts.iter().map(start).collect::<Result<Vec<_>, _>>().map_err(missing)?;
        let (mut count, mut all) = (0, String::new());
        // One that waits for its output to be read waits no longer than the others run: its part of it is small, or it is the first.
        for process in started {
            let said = process.wait_with_output()?.stdout;
            let said = String::from_utf8_lossy(&said);
            count += said.lines().filter(|line| line.ends_with(done)).count();
            all += &said;
        }
        Ok((count, all))
    }
}

#[async_trait]
impl Contestant for Ipmipower {
    fn name(&self) -> &'static str {
        IPMIPOWER
    }

    async fn run(&mut self, deed: Deed) -> Result<(), Wrong> {
        let (done, said) = tokio::task::block_in_place(|| self.count(deed))?;
        if done == self.bmcs {
            return Ok(());
        }
        let other = said.lines().find(|line| !line.ends_with(": ok") && !line.ends_with(": on"));
        Err(format!("ipmipower: {done} of {}; of another: {}", self.bmcs, other.unwrap_or("nothing")).into())
    }

    fn cpu(&self) -> Duration {
        cost::ended_children_cpu()
    }
}

/// powermand with its ipmipower, both resident, asked over its socket: without even the start of a client.
pub struct Powerman {
    daemon: Process,
    socket: TcpStream,
    /// What it said and nobody has read.
    unread: String,
    bmcs: usize,
    // After the daemon, which reads it.
    _directory: TempDir,
}

/// What ends each of powermand's answers.
const PROMPT: &str = "powerman> ";
/// It asks its BMCs now and then whether they are there, and does nothing for one that it has not found yet.
const FINDS_THEM_WITHIN: Duration = Duration::from_secs(30);

/// BMCs of one resident ipmipower: how it reaches them, and their names without ports.
pub struct Reached {
    /// How many.
    pub bmcs: usize,
    /// As ipmipower reads it.
    pub hosts: String,
    /// As it answers.
    pub plugs: String,
}

impl Powerman {
    /// For this farm. Ready when an off of all was obeyed: powerman says "completed" also of a BMC that its ipmipower
    /// has not found yet.
    pub async fn start(farm: &dyn Farm) -> Result<Self, Wrong> {
        let suffix = format!(":{}", farm.port());
        let reached = |part: &[SocketAddr]| Reached {
            bmcs: part.len(),
            hosts: host_list(part, &suffix),
            plugs: host_list(part, ""),
        };
        Self::at(&farm.addresses().chunks(MOST_EACH).map(reached).collect::<Vec<_>>(), farm).await
    }

    /// For the BMCs of `farm`, reached so.
    pub async fn at(parts: &[Reached], farm: &dyn Farm) -> Result<Self, Wrong> {
        let directory = tempfile::tempdir()?;
        let address = SocketAddr::new(fresh_address().ip(), 10_101);
        let mut settings = format!("include \"/etc/powerman/ipmipower.dev\"\nlisten \"{address}\"\n");
        let mut bmcs = 0;
        for Reached { bmcs: more, hosts, plugs } in parts {
            let (name, login) = (format!("ipmi{bmcs}"), login(hosts).join(" "));
            let nodes = names(bmcs + 1, bmcs + more);
            settings += &format!(
                "device \"{name}\" \"ipmipower\" \"{} {login} --wait-until-on --wait-until-off |&\"\n\
                 node \"{nodes}\" \"{name}\" \"{plugs}\"\n",
                program("ipmipower", "freeipmi-tools")?,
            );
            bmcs += more;
        }
        let path = directory.path().join("powerman.conf");
        std::fs::write(&path, settings)?;
        let mut command = Command::new(program("powermand", "powerman")?);
        command.arg("-f").arg("-c").arg(&path);
        let mut daemon = Process::start(command, &directory.path().join("powermand.log"), "powerman")?;
        let deadline = Instant::now() + FINDS_THEM_WITHIN;
        let socket = loop {
            daemon.still_runs()?;
            match TcpStream::connect(address) {
                Ok(socket) => break socket,
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut powerman = Self { daemon, socket, unread: String::new(), bmcs, _directory: directory };
        powerman.read_until(PROMPT)?;
        loop {
            farm.switch_on()?;
            let ran = powerman.run(Deed::Off).await;
            powerman.rest().await?;
            match ran.and_then(|()| farm.must_be_off("powerman")) {
                Ok(()) => return Ok(powerman),
                Err(wrong) if Instant::now() > deadline => return Err(wrong),
                Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
            }
        }
    }

    /// What it says up to and with `end`.
    fn read_until(&mut self, end: &str) -> Result<String, Wrong> {
        let mut some = [0; 4096];
        loop {
            if let Some(at) = self.unread.find(end) {
                return Ok(self.unread.drain(..at + end.len()).collect());
            }
            let length = self.socket.read(&mut some)?;
            if length == 0 {
                return Err(format!("powermand hung up\n{}\n{}", self.unread, self.daemon.log()).into());
            }
            self.unread += &String::from_utf8_lossy(&some[..length]);
        }
    }

    /// Memory of the two, in bytes.
    pub fn resident(&self) -> u64 {
        cost::family(self.daemon.id()).into_iter().map(cost::resident).sum()
    }
}

/// Asks it to end, so that it ends its ipmipower too.
impl Drop for Powerman {
    fn drop(&mut self) {
        self.daemon.signal(Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(2);
        while self.daemon.ended().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where a program is. powermand starts ipmipower without looking at the search path.
fn program(name: &str, package: &'static str) -> Result<String, PeerError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|dir| dir.join(name));
    match found.find(|file| file.is_file()) {
        Some(file) => Ok(file.display().to_string()),
        None => Err(PeerError::Missing { what: name.to_owned(), package }),
    }
}

/// Nodes of powerman.
fn names(first: usize, last: usize) -> String {
    if first == last { format!("n{first}") } else { format!("n[{first}-{last}]") }
}

#[async_trait]
impl Contestant for Powerman {
    fn name(&self) -> &'static str {
        POWERMAN
    }

    async fn run(&mut self, deed: Deed) -> Result<(), Wrong> {
        let nodes = names(1, self.bmcs);
        tokio::task::block_in_place(|| match deed {
            Deed::Off => {
                self.socket.write_all(format!("off {nodes}\r\n").as_bytes())?;
                // The prompt after it is left for the rest: it may come in a packet of its own.
                let said = self.read_until("\r\n")?;
                if said.contains("102 ") { Ok(()) } else { Err(format!("powerman: {said}").into()) }
            }
            Deed::Status => {
                self.socket.write_all(format!("status {nodes}\r\n").as_bytes())?;
                let said = self.read_until("103 Query complete\r\n")?;
                let all_on =
                    said.lines().any(|line| line.strip_prefix("302 on:").map(str::trim) == Some(&nodes));
                if all_on { Ok(()) } else { Err(format!("powerman: {said}").into()) }
            }
        })
    }

    async fn rest(&mut self) -> Result<(), Wrong> {
        tokio::task::block_in_place(|| self.read_until(PROMPT)).map(drop)
    }

    fn cpu(&self) -> Duration {
        cost::family_cpu(self.daemon.id())
    }
}
