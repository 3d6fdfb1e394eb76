//! Three members of etcd and three gateways, started by the very command lines, variables and settings of the files.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use picket_tests::peers::{Etcd, IpmiSim, OPERATOR, PASSWORD, Process, fresh_address};
use picket_tests::{PeerError, Result, Said, picketd, program};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::prepared::Prepared;

const PATIENCE: Duration = Duration::from_secs(180);

/// What a machine runs.
struct Machine {
    address: IpAddr,
    // The gateway ends first.
    picketd: Option<Process>,
    etcd: Option<Process>,
}

/// The three machines, each with an address and a root of its own, and the BMC of the one node.
pub struct Running {
    machines: Vec<Machine>,
    pub bmc: IpmiSim,
    pub prepared: Prepared,
}

/// The words of a unit's `ExecStart=`.
fn command_line(unit: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(unit).expect("it is there").replace("\\\n", " ");
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    line.split_whitespace().map(str::to_owned).collect()
}

/// The variables of a file as systemd.exec(5) reads it: these have neither quotes nor blanks.
fn variables(file: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(file).expect("it is there");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.split_once('=').expect("NAME=value"))
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

impl Running {
    /// Everything is unpacked, nothing is started. The settings are those of the files, but for places on this machine, and for
    /// the one node and its BMC.
    fn unpacked(bmc: IpmiSim) -> Result<Self> {
        let machines: Vec<Machine> =
            (0..3).map(|_| Machine { address: fresh_address().ip(), picketd: None, etcd: None }).collect();
        // On loopback whoever connects comes from 127.0.0.1, whatever its own address is.
        let lines =
            machines.iter().enumerate().map(|(n, one)| format!("g{} {} 127.0.0.1", n + 1, one.address));
        let lines: Vec<String> = lines.collect();
        let prepared = Prepared::with(&lines.iter().map(String::as_str).collect::<Vec<_>>())?;
        let running = Self { machines, bmc, prepared };
        let mut password = OpenOptions::new();
        let password = password.write(true).create_new(true).mode(0o600).open(running.password());
        let written = password.and_then(|mut file| file.write_all(PASSWORD.as_bytes()));
        written.map_err(PeerError::io("write the password"))?;
        for machine in 0..3 {
            let root = running.prepared.root(machine);
            for made in ["run/picket", "var/lib/picket", "var/lib/picket-etcd"] {
                std::fs::create_dir_all(root.join(made)).map_err(PeerError::io("make a directory"))?;
            }
            let settings = root.join("etc/picket/picket.toml");
            let text = std::fs::read_to_string(&settings).map_err(PeerError::io("read picket.toml"))?;
            let bmc = running.bmc.address();
            let host = format!(
                "host = \"{}\"\nport = {}\ncipher_suites = [17, 3]\nidle_limit = \"30s\"",
                bmc.ip(),
                bmc.port()
            );
            let own = running
                .here(machine, &text)
                .replace("host = \"{node}-bmc.example.org\"", &host)
                .replace("username = \"picket\"", &format!("username = {OPERATOR:?}"))
                .replace("r1n[01-40]", "r1n01");
            assert!(!own.contains("bmc.example.org") && !own.contains("[01-40]"), "{own}");
            std::fs::write(&settings, own).map_err(PeerError::io("write picket.toml"))?;
        }
        Ok(running)
    }

    /// Where the BMC's password is: at one path on all machines, as their settings must be alike.
    fn password(&self) -> PathBuf {
        self.prepared.root(0).join("bmc.password")
    }

    /// As a text of the files, with the places where the machine stands here.
    fn here(&self, machine: usize, text: &str) -> String {
        let (root, address) = (self.prepared.root(machine), self.machines[machine].address.to_string());
        let below = |path: &str| format!("{}{path}", root.display());
        // Hosts of the other machines are addresses already, and none of them has these words.
        text.replace("/etc/picket/bmc.password", &self.password().display().to_string())
            .replace("/etc/picket", &below("/etc/picket"))
            .replace("/run/picket", &below("/run/picket"))
            .replace("/var/lib/picket", &below("/var/lib/picket"))
            .replace("0.0.0.0", &address)
            .replace("\"127.0.0.1:", &format!("\"{address}:"))
            .replace("http://127.0.0.1:", &format!("http://{address}:"))
    }

    /// The command of a unit of this machine's, with the variables that its EnvironmentFile= names; the program stands elsewhere.
    fn command(&self, machine: usize, unit: &Path, program: &Path) -> Command {
        let line = command_line(unit);
        let mut command = Command::new(program);
        command.args(line[1..].iter().map(|word| self.here(machine, word)));
        command.envs(variables(&self.prepared.root(machine).join("etc/picket/host.env")));
        command
    }

    fn unit(&self, machine: usize, name: &str) -> PathBuf {
        self.prepared.root(machine).join("etc/systemd/system").join(name)
    }

    /// All three members of etcd, then all three gateways; ready when each of the gateways is seen by the first.
    pub async fn start() -> Result<Self> {
        let mut running = Self::unpacked(IpmiSim::builder().holds().start().await?)?;
        for machine in 0..3 {
            let unit = running.unit(machine, "picket-etcd.service");
            let command = running.command(machine, &unit, &Etcd::Present.program()?);
            let log = running.prepared.root(machine).join("etcd.log");
            running.machines[machine].etcd = Some(Process::start(command, &log, "etcd-server")?);
        }
        for machine in 0..3 {
            let unit = running.unit(machine, "picketd.service");
            let command = running.command(machine, &unit, &program("picketd")?);
            let log = running.prepared.root(machine).join("picketd.log");
            running.machines[machine].picketd = Some(Process::start(command, &log, "none: cargo builds it")?);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            running.still_run()?;
            let told = running.gateways().await?;
            if told["gateways"].as_array().is_some_and(|all| all.len() == 3) && told["term"] != 0 {
                return Ok(running);
            }
            running.in_time(deadline, "three gateways, one of which leads")?;
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Nothing is started; where settings alone are looked at.
    pub async fn prepare() -> Result<Self> {
        Self::unpacked(IpmiSim::start().await?)
    }

    /// What `picketd --check` says on that machine.
    pub async fn check(&self, machine: usize) -> Result<Said> {
        let root = self.prepared.root(machine);
        let variables = variables(&root.join("etc/picket/host.env"));
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        picketd(&root.join("etc/picket/picket.toml"), &["--check"], &variables).await
    }

    /// Where that machine's member answers, as clients want it.
    pub fn etcd(&self, machine: usize) -> String {
        format!("https://{}:2379", self.machines[machine].address)
    }

    /// Runs `picket` as the caller, by the contexts and certificates that the script made; to its end.
    pub async fn picket(&self, arguments: &[&str]) -> Result<Said> {
        let mut command = tokio::process::Command::new(program("picket")?);
        command.arg("--config").arg(self.prepared.caller().join("config.toml")).args(arguments);
        for name in ["ENDPOINT", "CONTEXT", "CA_FILE", "CERT_FILE", "KEY_FILE"] {
            command.env_remove(format!("PICKET_{name}"));
        }
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
        // An unfence waits out what a gateway that was killed may have sent: 30 s of ipmi_sim's.
        let Ok(ended) = tokio::time::timeout(PATIENCE * 2, output).await else {
            let what = format!("picket {} ends", arguments.join(" "));
            return Err(PeerError::TimedOut { what, within: PATIENCE * 2, seen: self.logs() });
        };
        let output = ended.map_err(PeerError::io("run picket"))?;
        Ok(Said::of(output))
    }

    /// `picket gateways`, as JSON; null where nobody answers.
    async fn gateways(&self) -> Result<Value> {
        let said = self.picket(&["gateways", "--output", "json", "--timeout", "30s"]).await?;
        Ok(serde_json::from_str(&said.out).unwrap_or_default())
    }

    /// Which machine's gateway leads, as is told to the caller; waits until one does.
    pub async fn leader(&self) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let told = self.gateways().await?;
            let all = told["gateways"].as_array().cloned().unwrap_or_default();
            let leads = all.iter().find(|one| one["leads"] == true).and_then(|one| one["name"].as_str());
            let is = |name: &str| (0..3).find(|n| name == format!("g{}", n + 1));
            if let Some(machine) = leads.and_then(is).filter(|n| self.machines[*n].picketd.is_some()) {
                return Ok(machine);
            }
            self.in_time(deadline, "a gateway leads that lives")?;
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Kills whoever leads, and says who it was.
    pub async fn kill_the_leader(&mut self) -> Result<usize> {
        let leader = self.leader().await?;
        let mut process = self.machines[leader].picketd.take();
        if let Some(process) = &mut process {
            process.kill();
        }
        Ok(leader)
    }

    fn in_time(&self, deadline: Instant, what: &str) -> Result<()> {
        if Instant::now() < deadline {
            return Ok(());
        }
        Err(PeerError::TimedOut { what: what.to_owned(), within: PATIENCE, seen: self.logs() })
    }

    /// An error if something that was started has ended.
    pub fn still_run(&mut self) -> Result<()> {
        for machine in &mut self.machines {
            for process in machine.etcd.iter_mut().chain(&mut machine.picketd) {
                process.still_runs()?;
            }
        }
        Ok(())
    }

    /// What the gateways said, and the ends of what etcd said.
    pub fn logs(&self) -> String {
        let mut logs = String::new();
        for machine in 0..3 {
            let read = |name: &str| {
                std::fs::read_to_string(self.prepared.root(machine).join(name)).unwrap_or_default()
            };
            let etcd = read("etcd.log");
            let lines: Vec<&str> = etcd.lines().collect();
            let last = lines[lines.len().saturating_sub(10)..].join("\n");
            logs += &format!("--- g{}\n{}\n{last}\n", machine + 1, read("picketd.log"));
        }
        logs
    }
}
