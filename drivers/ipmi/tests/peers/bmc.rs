//! OpenIPMI's `ipmi_sim` as a process of the test: cipher suites 0 to 3 and 6, 63 sessions, 30 s idle.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::address::fresh_address;

pub const USER: &str = "admin";
pub const PASSWORD: &str = "secret12";
/// Chassis control over the file `power`; each command is a line of `log`. Knobs: `fall` (seconds that a fall takes),
/// `mute` (neither on nor off is said).
const SCRIPT: &str = r#"#!/bin/sh
verb=$1; shift
cd "$(dirname "$0")" || exit 1
case $verb in
get)
    [ -e mute ] && { echo muted; exit 1; }
    for what; do
        case $what in
        power) read -r state <power; echo "power:$state" ;;
        *) echo "$what:default" ;;
        esac
    done ;;
set)
    echo "$*" >>log
    if [ "$1 $2" = "power 0" ] && [ -s fall ]; then
        (sleep "$(cat fall)"; echo 0 >power) </dev/null >/dev/null 2>&1 &
    else
        echo "$2" >power
    fi ;;
esac
"#;

/// A running `ipmi_sim`; ends with its value.
pub struct Bmc {
    address: SocketAddr,
    process: Child,
    directory: TempDir,
}

/// A UDP port of 127.0.0.1 that no other test takes: who has TCP's of the same number has it, until this process ends. Below those that the
/// kernel hands to clients.
fn own_port() -> u16 {
    let mut ports = (20_000..32_000).cycle().skip(std::process::id() as usize % 12_000);
    let owned = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map(std::mem::forget).is_ok();
    ports.find(owned).expect("twelve thousand are not all taken")
}

fn spawn(directory: &Path) -> Child {
    let log = std::fs::File::create(directory.join("ipmi_sim.log")).expect("a log");
    Command::new("ipmi_sim")
        .args(["-n", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("the log twice"))
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("ipmi_sim cannot be started ({error}): apt-get install openipmi"))
}

/// Asks for its authentication capabilities, as any client may before a session (IPMI 2.0 §22.13).
pub fn wait_until_it_answers(address: SocketAddr, log: &Path) {
    let ask =
        [6, 0, 0xFF, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x20, 0x18, 0xC8, 0x81, 0, 0x38, 0x8E, 0x04, 0xB5];
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(address).expect("loopback");
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
    let deadline = Instant::now() + Duration::from_secs(120);
    while Instant::now() < deadline {
        // Refused at once while nobody listens.
        let _ = socket.send(&ask);
        match socket.recv(&mut [0; 64]) {
            Ok(_) => return,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    panic!("no BMC answers at {address}: {}", std::fs::read_to_string(log).unwrap_or_default());
}

/// Compiles `holdmod.c`.
fn hold_module(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/holdmod.c");
    let module = directory.join("holdmod.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&module).arg(source).status();
    assert!(
        compiled.as_ref().is_ok_and(|status| status.success()),
        "holdmod.c cannot be compiled ({compiled:?}): apt-get install gcc libopenipmi-dev"
    );
    module
}

impl Bmc {
    /// One whose host is on, with the system GUID `guid` as 32 hexadecimal digits.
    pub fn start(guid: &str) -> Self {
        Self::started(guid, fresh_address(), "", false)
    }

    /// The same with a BMC key (K_G).
    pub fn with_key(guid: &str, key: &str) -> Self {
        Self::started(guid, fresh_address(), &format!("bmc_key \"{key}\"\n"), false)
    }

    /// One that the name localhost leads to.
    pub fn at_localhost(guid: &str) -> Self {
        Self::started(guid, (Ipv4Addr::LOCALHOST, own_port()).into(), "", false)
    }

    /// The same as [`Self::start`], taught restore policy, buttons and a whole watchdog (`tests/peers/holdmod.c`): its file `hold`.
    pub fn with_holds(guid: &str) -> Self {
        Self::started(guid, fresh_address(), "", true)
    }

    fn started(guid: &str, address: SocketAddr, lan: &str, holds: bool) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let dir = directory.path();
        let script = dir.join("chassis.sh");
        std::fs::write(&script, SCRIPT).expect("the script");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it may run");
        std::fs::create_dir(dir.join("state")).expect("a directory");
        std::fs::write(dir.join("power"), "1\n").expect("a state");
        let mut conf = String::from("name \"bmc\"\nset_working_mc 0x20\nstartlan 1\n");
        let _ = write!(
            conf,
            "addr {} {}\npriv_limit admin\nallowed_auths_admin none md2 md5 straight\nguid {guid}\n{lan}endlan\n\
             chassis_control \"{}\"\n\
             user 2 true \"{USER}\" \"{PASSWORD}\" admin 10 none md2 md5 straight\n",
            address.ip(),
            address.port(),
            script.display()
        );
        if holds {
            let _ = writeln!(conf, "loadlib \"{}\" \"{}\"", hold_module(dir).display(), dir.display());
        }
        std::fs::write(dir.join("lan.conf"), conf).expect("the settings");
        let emu = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n";
        std::fs::write(dir.join("bmc.emu"), emu).expect("the commands");
        let process = spawn(dir);
        let bmc = Self { address, process, directory };
        wait_until_it_answers(address, &bmc.file("ipmi_sim.log"));
        bmc
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn is_on(&self) -> bool {
        std::fs::read_to_string(self.file("power")).expect("a state").starts_with('1')
    }

    pub fn set_power(&self, on: bool) {
        std::fs::write(self.file("power"), if on { "1\n" } else { "0\n" }).expect("a state");
    }

    /// Commands that change power, as the chassis heard them.
    pub fn commands(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Kills it and starts it again at the same address.
    pub fn restart(&mut self) {
        self.kill();
        self.process = spawn(self.directory.path());
        wait_until_it_answers(self.address, &self.file("ipmi_sim.log"));
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Freezes or thaws it.
    pub fn freeze(&self, frozen: bool) {
        let signal = if frozen { "-STOP" } else { "-CONT" };
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "it cannot be signalled");
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        self.kill();
    }
}
