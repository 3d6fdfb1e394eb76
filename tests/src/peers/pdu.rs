//! A switched PDU behind net-snmp's `snmpd` (`tests/peers/pdu.sh`).

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{Process, eventually, fresh_address, knob, peer_file};
use crate::error::{PeerError, Result};

const READY_WITHIN: Duration = Duration::from_secs(60);
/// Its user's passphrases, for SNMP v3 with authentication and privacy.
const PASSPHRASES: [&str; 2] = ["outlet-authentic", "outlet-private"];
/// What an agent runs.
const TOOLS: [&str; 3] = ["snmpget", "snmpset", "snmpwalk"];

/// A PDU whose outlets are files.
#[derive(Debug)]
pub struct Pdu {
    address: SocketAddr,
    /// Ends before its directory goes.
    _process: Process,
    directory: TempDir,
}

impl Pdu {
    /// With so many outlets, counted from 1 as its users do, all of them on. Its user is `picket`, with the passphrases that
    /// [`secrets`](Self::secrets) has.
    pub async fn start(outlets: u32) -> Result<Self> {
        let made = tempfile::Builder::new().prefix("picket-pdu-").tempdir();
        let directory = made.map_err(PeerError::io("create a PDU's directory"))?;
        let (dir, address) = (directory.path(), fresh_address());
        for outlet in 0..outlets {
            knob::write_whole(&dir.join(format!("outlet-{outlet}")), "1\n")?;
        }
        let settings = dir.join("snmpd.conf");
        // EATON-EPDU-MIB: by its object id an agent knows which PDU it is.
        let text = format!(
            "agentAddress udp:{address}\ncreateUser picket SHA {:?} AES {:?}\nrwuser picket priv\n\
             sysObjectID .1.3.6.1.4.1.534.6.6.6\npass_persist .1.3.6.1.4.1.534.6.6.6.1.2.2.1.3 /bin/sh {} {}\n",
            PASSPHRASES[0],
            PASSPHRASES[1],
            peer_file("pdu.sh").display(),
            dir.display(),
        );
        knob::write_whole(&settings, &text)?;
        let secrets = dir.join("secrets");
        // Clients of net-snmp's keep notes in one folder of the machine, /var/lib/snmp. Two that end at once get into each other's way, and say
        // so in their last line, which an agent takes for the outlet's state.
        let text = format!(
            "defAuthPassphrase {}\ndefPrivPassphrase {}\npersistentDir {}\nnoPersistentSave yes\n",
            PASSPHRASES[0],
            PASSPHRASES[1],
            secrets.display()
        );
        std::fs::create_dir(&secrets).map_err(PeerError::io("create a directory"))?;
        knob::write_whole(&secrets.join("snmp.conf"), &text)?;
        for name in TOOLS {
            Self::noting(dir, name)?;
        }
        let mut command = Command::new(Self::tool("snmpd", "snmpd")?);
        // It needs no MIBs, and writes nowhere but here.
        command.args(["-f", "-Lo", "-C", "-c"]).arg(&settings).arg("-p").arg(dir.join("pid"));
        command.args(["-I", "-systemstats,smux"]).env("MIBS", "").env("SNMP_PERSISTENT_DIR", dir);
        let mut process = Process::start(command, &dir.join("log"), "snmpd")?;
        eventually("snmpd answers", READY_WITHIN, || process.log().contains("NET-SNMP version")).await?;
        process.still_runs()?;
        Ok(Self { address, _process: process, directory })
    }

    /// A device of a node by `fence_eaton_snmp`, as TOML, with these lines besides.
    pub fn device(&self, node: &str, device: &str, plug: u32, lines: &str) -> String {
        format!(
            "[nodes.{node}.devices.{device}]\ndriver = \"agent\"\nagent = \"fence_eaton_snmp\"\n{lines}\n\
             longest_cycle = \"5s\"\nenv = [\"SNMPCONFPATH\"]\n[nodes.{node}.devices.{device}.parameters]\n\
             ip = \"{}\"\nipport = {}\nplug = {plug}\nsnmp_version = \"3\"\nusername = \"picket\"\nsnmp_auth_prot = \"SHA\"\n\
             snmp_priv_prot = \"AES\"\nsnmp_sec_level = \"authPriv\"\npower_wait = 0\npower_timeout = 3\nsnmpget_path = {:?}\n\
             snmpset_path = {:?}\nsnmpwalk_path = {:?}\n",
            self.address().ip(),
            self.address().port(),
            self.noted("snmpget"),
            self.noted("snmpset"),
            self.noted("snmpwalk"),
        )
    }

    /// A program of net-snmp's that notes its arguments before it does its work.
    fn noting(dir: &Path, name: &str) -> Result<()> {
        let (tool, file) = (Self::tool(name, "snmp")?, dir.join(name));
        let text = format!(
            "#!/bin/sh\necho \"{name} $*\" >>{:?}\nexec {:?} \"$@\"\n",
            dir.join("arguments"),
            tool.display().to_string()
        );
        knob::write_whole(&file, &text)?;
        let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).map_err(PeerError::io("make a program of it"))
    }

    /// Where a program of net-snmp's is that notes its arguments: `snmpget`, `snmpset` or `snmpwalk`.
    pub fn noted(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The arguments that those were given, a line each.
    pub fn arguments(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join("arguments")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The directory in which net-snmp's own settings have the passphrases.
    pub fn secrets(&self) -> PathBuf {
        self.directory.path().join("secrets")
    }

    /// Its user's passphrases: for authentication, and for privacy.
    pub fn passphrases() -> [&'static str; 2] {
        PASSPHRASES
    }

    /// Whether a text has one of its passphrases.
    pub fn is_told_in(text: &str) -> bool {
        PASSPHRASES.iter().any(|passphrase| text.contains(passphrase))
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a program of net-snmp's is, in Debian's `package`.
    fn tool(name: &str, package: &'static str) -> Result<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file());
        found.ok_or_else(|| PeerError::Missing { what: name.to_owned(), package })
    }

    /// Whether an outlet is on, by the file that it is. One that cannot be read counts as on.
    pub fn is_on(&self, outlet: u32) -> bool {
        let file = self.directory.path().join(format!("outlet-{}", outlet - 1));
        std::fs::read_to_string(file).map_or(true, |text| text.trim() != "0")
    }

    /// An outlet that sticks takes what it is told, and stays as it is.
    pub fn stick(&self, outlet: u32, stuck: bool) -> Result<()> {
        let file = self.directory.path().join(format!("stuck-{}", outlet - 1));
        match stuck {
            true => knob::write_whole(&file, ""),
            false => std::fs::remove_file(&file).or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(PeerError::io("mend an outlet")(error)),
            }),
        }
    }

    /// Another manager's hand: switches an outlet past all that is noted.
    pub fn press(&self, outlet: u32, on: bool) -> Result<()> {
        let file = self.directory.path().join(format!("outlet-{}", outlet - 1));
        knob::write_whole(&file, if on { "1\n" } else { "0\n" })
    }

    /// What was set, as "<place from 0> <1 or 0>", in order.
    pub fn commands(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join("commands")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
