//! OpenIPMI's `ipmi_sim`: a BMC that we did not write.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::machine::{Machine, PowerEvent};
use super::{
    ADMIN, Knob, OPERATOR, PASSWORD, Place, Process, Truth, built, eventually, fresh_address, knob,
    peer_file, wait_for_bmc,
};
use crate::error::{PeerError, Result};

/// A 20-byte password, the longest that IPMI knows, of the account `long`.
pub const LONG_PASSWORD: &str = "a-20-byte-password!!";

const READY_WITHIN: Duration = Duration::from_secs(20);

/// What stands behind the BMC's power button.
#[derive(Debug)]
enum Power {
    /// A file, changed inside the simulator (`fastpower.c`).
    Fast,
    /// A file, changed by a program for each command (`powerctl.sh`).
    Script,
    /// A machine, by a program for each command (`vmctl.sh`).
    Machine(String),
    /// A machine, as the simulator's own child: the acknowledgement comes before the fall, and a simulator that was started
    /// again says off for a machine that lives.
    StartCommand(String),
}

impl Power {
    fn knobs(&self) -> &'static [&'static str] {
        match self {
            Power::Fast => &["ignore_off", "lie_off", "fail", "off_delay"],
            Power::Script => &["fail", "slow"],
            Power::Machine(_) => &["ignore_off", "lie_off", "fail", "off_delay", "slow", "stuck_get"],
            Power::StartCommand(_) => &[],
        }
    }
}

/// How an [`IpmiSim`] shall be.
#[derive(Debug)]
pub struct IpmiSimBuilder {
    address: Option<SocketAddr>,
    place: Option<Place>,
    folder: PathBuf,
    guid: Option<u128>,
    power: Power,
    holds: bool,
    sessions: u32,
}

impl IpmiSimBuilder {
    /// At this address rather than one that nobody else has.
    #[must_use]
    pub fn address(self, address: SocketAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// On a host of a [`super::Network`], at this UDP port there. It is ready when the port is open: who would ask it from here
    /// does not reach it.
    #[must_use]
    pub fn within(self, place: &Place, port: u16) -> Self {
        let address = Some(SocketAddr::from((place.address(), port)));
        Self { address, place: Some(place.clone()), ..self }
    }

    /// With this system GUID, most significant byte first on the wire, rather than a random one.
    #[must_use]
    pub fn guid(self, guid: u128) -> Self {
        Self { guid: Some(guid), ..self }
    }

    /// Power by a program for each command rather than inside the simulator: it can be [`Knob::Slow`].
    #[must_use]
    pub fn script(self) -> Self {
        Self { power: Power::Script, ..self }
    }

    /// Power of a machine, by a program for each command.
    #[must_use]
    pub fn machine(self, machine: &Machine) -> Self {
        self.machine_of(machine.directory())
    }

    /// The same of whatever has such a directory: see `vmctl.sh`.
    pub(super) fn machine_of(self, directory: &Path) -> Self {
        Self { power: Power::Machine(directory.display().to_string()), ..self }
    }

    /// With its own directory in that one, which goes with all that is in it.
    pub(super) fn below(self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self }
    }

    /// Power of a machine, which is the simulator's own child. An off is acknowledged at once and the machine dies up to
    /// a second later; a simulator that was killed and started again says off for the machine that lives.
    #[must_use]
    pub fn machine_as_child(self, machine: &Machine) -> Self {
        Self { power: Power::StartCommand(machine.directory().display().to_string()), ..self }
    }

    /// With the commands of a hold, which ipmi_sim lacks by itself (`holdmod.c`).
    #[must_use]
    pub fn holds(self) -> Self {
        Self { holds: true, ..self }
    }

    /// At most so many sessions for each account.
    #[must_use]
    pub fn sessions(self, sessions: u32) -> Self {
        Self { sessions, ..self }
    }

    /// Starts it, and waits until it answers.
    pub async fn start(self) -> Result<IpmiSim> {
        let directory = tempfile::Builder::new()
            .prefix("picket-bmc-")
            .tempdir_in(&self.folder)
            .map_err(PeerError::io("create a BMC's directory"))?;
        let dir = directory.path();
        let address = self.address.unwrap_or_else(fresh_address);
        let guid = self.guid.unwrap_or_else(|| uuid::Uuid::now_v7().as_u128());
        std::fs::create_dir(dir.join("state")).map_err(PeerError::io("create a BMC's state"))?;
        knob::write_whole(&dir.join("power"), "1\n")?;
        knob::write_whole(&dir.join("lan.conf"), &self.lan_conf(dir, address, guid)?)?;
        knob::write_whole(&dir.join("bmc.emu"), BMC_EMU)?;
        let process = spawn(dir, self.place.as_ref())?;
        let (power, holds, place) = (self.power, self.holds, self.place);
        let mut sim = IpmiSim { address, place, guid, power, holds, process, directory };
        sim.wait().await?;
        Ok(sim)
    }

    /// ipmi_lan(5).
    fn lan_conf(&self, dir: &Path, address: SocketAddr, guid: u128) -> Result<String> {
        let (ip, port, dir, sessions) = (address.ip(), address.port(), dir.display(), self.sessions);
        let mut power = match &self.power {
            Power::Fast => format!("loadlib \"{}\" \"{dir}\"\n", built::module("fastpower")?.display()),
            Power::Script => format!("chassis_control \"{} {dir}\"\n", peer_file("powerctl.sh").display()),
            Power::Machine(machine) => {
                format!("chassis_control \"{} {machine} {dir}\"\n", peer_file("vmctl.sh").display())
            }
            // Only with a serial interface of a virtual machine does the simulator power its child.
            Power::StartCommand(machine) => format!(
                "serial 15 {ip} {} codec VM\nstartcmd \"{} {machine}\"\nstartnow false\npoweroff_wait 1\nkill_wait 2\n",
                port + 1,
                peer_file("qemu.sh").display(),
            ),
        };
        if self.holds {
            power += &format!("loadlib \"{}\" \"{dir}\"\n", built::module("holdmod")?.display());
        }
        Ok(format!(
            "name \"bmc\"\nset_working_mc 0x20\nstartlan 1\naddr {ip} {port}\npriv_limit admin\n\
             allowed_auths_admin none md2 md5 straight\nguid {guid:032x}\nendlan\n{power}\
             user 2 true \"{ADMIN}\" \"{PASSWORD}\" admin {sessions} none md2 md5 straight\n\
             user 3 true \"{OPERATOR}\" \"{PASSWORD}\" operator {sessions} none md2 md5 straight\n\
             user 4 true \"long\" \"{LONG_PASSWORD}\" admin {sessions} none md2 md5 straight\n"
        ))
    }
}

/// ipmi_sim_cmd(5): one management controller, which is a chassis device.
const BMC_EMU: &str =
    "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n";

fn spawn(dir: &Path, place: Option<&Place>) -> Result<Process> {
    let mut command = place.map_or_else(|| Command::new("ipmi_sim"), |place| place.command("ipmi_sim"));
    command.args(["-n", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state"]).current_dir(dir);
    Process::start(command, &dir.join("ipmi_sim.log"), "openipmi")
}

/// A running `ipmi_sim`: suites 0 to 3 and 6, 63 sessions that idle for 30 s, GUID as given.
#[derive(Debug)]
pub struct IpmiSim {
    address: SocketAddr,
    place: Option<Place>,
    guid: u128,
    power: Power,
    holds: bool,
    // Before the directory: the process ends first.
    process: Process,
    directory: TempDir,
}

impl IpmiSim {
    /// One over a state file, without holds, unless told otherwise. It starts switched on.
    pub fn builder() -> IpmiSimBuilder {
        IpmiSimBuilder {
            address: None,
            place: None,
            folder: std::env::temp_dir(),
            guid: None,
            power: Power::Fast,
            holds: false,
            sessions: 10,
        }
    }

    /// The same at once.
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// So many of them over state files, started together.
    pub async fn farm(count: usize) -> Result<Vec<Self>> {
        futures::future::try_join_all((0..count).map(|_| Self::start())).await
    }

    /// Where it listens (UDP).
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its system GUID as 32 hexadecimal digits, in the order of the bytes on the wire.
    pub fn guid(&self) -> String {
        format!("{:032x}", self.guid)
    }

    /// Its directory: knobs, `power`, `hold`, `hold.log`.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The simulator's process, to freeze, thaw or kill. Killed alone, a machine that it powers lives on.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts it again after it was killed, at the same address, and waits until it answers.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process.kill();
        let fresh = spawn(self.directory.path(), self.place.as_ref())?;
        // The dead simulator's process group may hold its machine: only the simulator itself ended.
        std::mem::replace(&mut self.process, fresh).leave_running();
        self.wait().await
    }

    async fn wait(&mut self) -> Result<()> {
        let Some(place) = &self.place else {
            return wait_for_bmc(self.address, &mut self.process).await;
        };
        let (place, port) = (place.clone(), self.address.port());
        let open = || place.has_udp(port) || self.process.ended().is_some();
        eventually("a BMC's port is open", READY_WITHIN, open).await?;
        self.process.still_runs()
    }

    /// Sets a fault.
    pub fn set(&self, knob: Knob) -> Result<()> {
        let held: &[_] = if self.holds { &["no_policy", "no_buttons", "no_watchdog"] } else { &[] };
        let known = [self.power.knobs(), held].concat();
        knob::set(self.directory(), "this ipmi_sim", &known, knob)
    }

    /// Takes a fault away.
    pub fn clear(&self, knob: Knob) -> Result<()> {
        knob::clear(self.directory(), knob)
    }

    /// Whether the state file says on. Of a machine ask [`Machine::lives`].
    pub fn is_on(&self) -> Result<bool> {
        let path = self.directory().join("power");
        let text =
            std::fs::read_to_string(&path).map_err(PeerError::io(format!("read {}", path.display())))?;
        Ok(text.starts_with('1'))
    }

    /// The same for whoever outlives this borrow. A state file that cannot be read counts as on.
    pub fn truth(&self) -> Truth {
        let path = self.directory().join("power");
        Arc::new(move || std::fs::read_to_string(&path).map_or(true, |text| text.starts_with('1')))
    }

    /// The offs and ons that it was told over a state file, those too that were ignored or that changed nothing.
    pub fn commands(&self) -> Vec<PowerEvent> {
        PowerEvent::read(&self.directory().join("commands.log"))
    }

    /// Somebody else's hand on the power button of a state file.
    pub fn press(&self, on: bool) -> Result<()> {
        // Written in place: fastpower holds the file open.
        let path = self.directory().join("power");
        std::fs::write(&path, if on { "1\n" } else { "0\n" })
            .map_err(PeerError::io(format!("write {}", path.display())))
    }

    /// What the hold module holds.
    pub fn hold(&self) -> Result<Hold> {
        Hold::read(&self.directory().join("hold"))
    }

    /// Changes what the hold module holds, as if it had been so before; a "name number" of `holdmod.c`.
    pub fn preset(&self, name: &str, number: i64) -> Result<()> {
        let path = self.directory().join("hold");
        let mut hold = Hold::read(&path)?;
        hold.0.insert(name.to_owned(), number);
        let text: String = hold.0.iter().map(|(name, number)| format!("{name} {number}\n")).collect();
        knob::write_whole(&path, &text)
    }

    /// What the hold module was told, a line each.
    pub fn hold_log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory().join("hold.log")).unwrap_or_default();
        text.lines().filter_map(|line| line.split_once(' ')).map(|(_, what)| what.to_owned()).collect()
    }

    /// Lets it outlive this run, with its directory.
    pub fn leave_running(self) -> u32 {
        let _kept = self.directory.keep();
        self.process.leave_running()
    }
}

/// The state of the hold module, by the names of `holdmod.c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold(BTreeMap<String, i64>);

impl Hold {
    fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(PeerError::io(format!("read {}", path.display())))?;
        let malformed = |line: &str| PeerError::Malformed { path: path.to_owned(), what: line.to_owned() };
        text.lines()
            .map(|line| {
                let (name, number) = line.split_once(' ').ok_or_else(|| malformed(line))?;
                Ok((name.to_owned(), number.parse().map_err(|_| malformed(line))?))
            })
            .collect::<Result<_>>()
            .map(Self)
    }

    /// A number of it; -1 where there is none of that name.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(-1)
    }
}
