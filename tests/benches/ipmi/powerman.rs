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

use crate::Wrong;
use crate::contest::Contestant;
use crate::cost;
use crate::farm::Farm;

/// Login of ipmipower, as Picket's: RMCP+, suite 3. opensesspriv: ipmi_sim wants the privilege in the first packet.
fn login(hosts: &str) -> Vec<String> {
    let words = ["-D", "LAN_2_0", "-W", "opensesspriv", "-I", "3", "-u", ADMIN, "-p", PASSWORD, "-h", hosts];
    words.into_iter().map(str::to_owned).collect()
}

/// `ipmipower --off --wait-until-off`, one process for all BMCs.
pub struct Ipmipower {
    bmcs: usize,
    hosts: String,
}

impl Ipmipower {
    /// For this farm.
    pub fn new(farm: &Farm) -> Self {
        Self { bmcs: farm.len(), hosts: farm.host_list(&format!(":{}", farm.port())) }
    }
}

#[async_trait]
impl Contestant for Ipmipower {
    fn name(&self) -> &'static str {
        "ipmipower"
    }

    async fn run(&mut self) -> Result<(), Wrong> {
        let mut command = Command::new("ipmipower");
        command.args(login(&self.hosts)).args(["--off", "--wait-until-off"]).stdin(Stdio::null());
        let output = tokio::task::block_in_place(|| command.output())
            .map_err(|_| PeerError::Missing { what: "ipmipower".to_owned(), package: "freeipmi-tools" })?;
        let said = String::from_utf8_lossy(&output.stdout);
        let ok = said.lines().filter(|line| line.ends_with(": ok")).count();
        if ok == self.bmcs {
            Ok(())
        } else {
            Err(format!("ipmipower: {ok} of {} are ok\n{said}", self.bmcs).into())
        }
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

impl Powerman {
    /// For this farm. Ready when an off of all was obeyed: powerman says "completed" also of a BMC that its ipmipower
    /// has not found yet.
    pub async fn start(farm: &Farm) -> Result<Self, Wrong> {
        Self::at(farm.len(), &farm.host_list(&format!(":{}", farm.port())), &farm.host_list(""), farm).await
    }

    /// For the BMCs of `farm`, reached as `hosts`, whose names without ports are `plugs`.
    pub async fn at(bmcs: usize, hosts: &str, plugs: &str, farm: &Farm) -> Result<Self, Wrong> {
        let directory = tempfile::tempdir()?;
        let address = SocketAddr::new(fresh_address().ip(), 10_101);
        let login = login(hosts).join(" ");
        let nodes = if bmcs == 1 { "n1".to_owned() } else { format!("n[1-{bmcs}]") };
        let settings = format!(
            "include \"/etc/powerman/ipmipower.dev\"\nlisten \"{address}\"\n\
             device \"ipmi\" \"ipmipower\" \"{} {login} --wait-until-on --wait-until-off |&\"\n\
             node \"{nodes}\" \"ipmi\" \"{plugs}\"\n",
            program("ipmipower", "freeipmi-tools")?,
        );
        let path = directory.path().join("powerman.conf");
        std::fs::write(&path, settings)?;
        let mut command = Command::new(program("powermand", "powerman")?);
        command.arg("-f").arg("-c").arg(&path);
        let mut daemon = Process::start(command, &directory.path().join("powermand.log"), "powerman")?;
        let deadline = Instant::now() + Duration::from_secs(30);
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
            powerman.run().await?;
            powerman.rest().await?;
            match farm.must_be_off("powerman") {
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

#[async_trait]
impl Contestant for Powerman {
    fn name(&self) -> &'static str {
        "powerman, resident"
    }

    async fn run(&mut self) -> Result<(), Wrong> {
        let nodes = if self.bmcs == 1 { "n1".to_owned() } else { format!("n[1-{}]", self.bmcs) };
        tokio::task::block_in_place(|| {
            self.socket.write_all(format!("off {nodes}\r\n").as_bytes())?;
            // The prompt after it is left for the rest: it may come in a packet of its own.
            let said = self.read_until("\r\n")?;
            if said.contains("102 ") { Ok(()) } else { Err(format!("powerman: {said}").into()) }
        })
    }

    async fn rest(&mut self) -> Result<(), Wrong> {
        tokio::task::block_in_place(|| self.read_until(PROMPT)).map(drop)
    }

    fn cpu(&self) -> Duration {
        cost::family_cpu(self.daemon.id())
    }
}
