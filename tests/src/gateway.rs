//! The real daemon, as a process, and the real command line before it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{ListGatewaysRequest, ListGatewaysResponse, ListNodesRequest, Readiness};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tonic::transport::{Channel, Endpoint};

use crate::error::{PeerError, Result};
use crate::fleet::{Fleet, PASSWORD_VARIABLE};
use crate::once::picketd;
use crate::peers::{HANGS, Place, Process, SmallDisk};
use crate::programs::{hooked, program};
use crate::told::Told;

/// A client of the service.
pub type Client = FencingServiceClient<Channel>;

/// What was under way to a BMC when a daemon died is waited out before its node is looked at: an on lives for two idle
/// limits of its session, 126 s.
const LOOKED_AT_WITHIN: Duration = Duration::from_secs(180);

/// Which daemon.
#[derive(Clone, Debug)]
pub enum Daemon {
    /// The one that is shipped.
    Shipped,
    /// The same with hooks, which do what the environment says ([`crate::SelfHarm`]).
    Hooked,
}

/// What the command line answered.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it printed.
    pub out: String,
    /// What it complained of.
    pub err: String,
}

impl Said {
    /// By a program that has ended.
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A gateway with its directory: settings, store, socket, log. It can be killed and started again over the same store.
#[derive(Debug)]
pub struct Gateway {
    program: PathBuf,
    // Ends before the directory goes.
    process: Option<Process>,
    disk: Option<SmallDisk>,
    place: Option<Place>,
    directory: TempDir,
    starts: u32,
}

impl Gateway {
    /// The shipped daemon over this fleet, not yet started.
    pub fn new(fleet: &Fleet) -> Result<Self> {
        Self::of(Daemon::Shipped, fleet)
    }

    /// A daemon over this fleet, not yet started.
    pub fn of(daemon: Daemon, fleet: &Fleet) -> Result<Self> {
        let program = match daemon {
            Daemon::Shipped => program("picketd")?,
            Daemon::Hooked => hooked()?,
        };
        let directory = directory()?;
        let gateway = Self { program, process: None, disk: None, place: None, directory, starts: 0 };
        gateway.settings(fleet)?;
        Ok(gateway)
    }

    /// The same, to be started on a host of a [`crate::peers::Network`]. Its socket is reached from here all the same.
    pub fn within(place: &Place, daemon: Daemon, fleet: &Fleet) -> Result<Self> {
        Ok(Self { place: Some(place.clone()), ..Self::of(daemon, fleet)? })
    }

    /// The shipped daemon over this fleet, not yet started, with its store on a disk of its own of so many KiB.
    pub fn on_a_small_disk(fleet: &Fleet, kib: u32) -> Result<(Self, SmallDisk)> {
        let directory = directory()?;
        let disk = SmallDisk::new(directory.path().join("disk"), kib)?;
        let gateway = Self {
            program: program("picketd")?,
            process: None,
            disk: Some(disk.clone()),
            place: None,
            directory,
            starts: 0,
        };
        gateway.settings(fleet)?;
        Ok((gateway, disk))
    }

    /// The shipped daemon over this fleet, ready.
    pub async fn start(fleet: &Fleet) -> Result<Self> {
        let mut gateway = Self::new(fleet)?;
        gateway.begin(&[]).await?;
        Ok(gateway)
    }

    /// Writes other settings, for the next start.
    pub fn settings(&self, fleet: &Fleet) -> Result<()> {
        let dir = self.directory.path();
        // What a test is about is seldom the budget, and small fleets that are fenced again and again would soon be over it.
        let budget = match fleet.text().contains("[budget]") {
            true => "",
            false => "[budget]\nat_once = 1000\ncool_down = \"0s\"\nbrake_least = 1000\nmin_not_fenced = 0\n",
        };
        let store = match fleet.text().contains("[store]") {
            // What is beside an embedded store is beside the settings.
            true => format!(
                "[audit]\npath = {:?}\n[receipts]\nkey_file = {:?}",
                dir.join("picket.audit"),
                dir.join("picket.receipt.pem")
            ),
            false => format!("[store]\npath = {:?}", self.store_file()),
        };
        let text =
            format!("[listen]\nunix = {:?}\n{store}\n{}\n{budget}", dir.join("picket.sock"), fleet.text());
        let path = self.settings_file();
        std::fs::write(&path, text).map_err(PeerError::io(format!("write {}", path.display())))
    }

    /// Where the settings stand.
    pub fn settings_file(&self) -> PathBuf {
        self.directory.path().join("picket.toml")
    }

    /// Where it stores.
    pub fn store_file(&self) -> PathBuf {
        self.disk.as_ref().map_or(self.directory.path(), SmallDisk::path).join("picket.redb")
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the process with these variables of the environment, without waiting for anything.
    pub fn launch(&mut self, variables: &[(&str, &str)]) -> Result<()> {
        self.starts += 1;
        let log = self.directory.path().join(format!("picketd-{}.log", self.starts));
        let mut command = match (&self.disk, &self.place) {
            (Some(disk), _) => disk.command(&self.program),
            (None, Some(place)) => place.command(&self.program),
            (None, None) => Command::new(&self.program),
        };
        command.arg("--config").arg(self.settings_file()).env(PASSWORD_VARIABLE, Fleet::password());
        command.envs(variables.iter().copied());
        self.process = Some(Process::start(command, &log, "none: cargo builds it")?);
        Ok(())
    }

    /// Starts it where it ought to refuse: what it says, until it ends by itself.
    pub async fn refuses(&self) -> Result<Said> {
        picketd(&self.settings_file(), &[], &[(PASSWORD_VARIABLE, Fleet::password())]).await
    }

    /// Starts it, and waits until it answers.
    pub async fn begin(&mut self, variables: &[(&str, &str)]) -> Result<()> {
        self.launch(variables)?;
        self.ready().await
    }

    /// Waits until it answers.
    pub async fn ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + HANGS;
        loop {
            if let Some(process) = &mut self.process {
                process.still_runs()?;
            }
            let seen = match self.client().await {
                Ok(mut client) => match client.list_nodes(ListNodesRequest::default()).await {
                    Ok(_) => return Ok(()),
                    Err(status) => status.to_string(),
                },
                Err(error) => error.to_string(),
            };
            if Instant::now() >= deadline {
                let what = "the gateway answers".to_owned();
                return Err(PeerError::TimedOut { what, within: HANGS, seen: seen + "\n" + &self.log() });
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until it has looked at every device once, as it does after its start.
    pub async fn checked(&self) -> Result<()> {
        let failed = |status: tonic::Status| PeerError::Io {
            what: "ListNodes".to_owned(),
            source: std::io::Error::other(status),
        };
        let mut client = self.client().await?;
        let deadline = Instant::now() + LOOKED_AT_WITHIN;
        loop {
            let answer = client.list_nodes(ListNodesRequest::default()).await.map_err(failed)?;
            let nodes = answer.into_inner().nodes;
            if nodes.iter().all(|node| node.readiness() != Readiness::Unspecified) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let what = "every device is looked at".to_owned();
                return Err(PeerError::TimedOut { what, within: LOOKED_AT_WITHIN, seen: self.log() });
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A path on its small disk, as others see it (proc_pid_root(5)).
    pub fn seen_from_outside(&mut self, path: &Path) -> Result<PathBuf> {
        let process = self.process()?.id().to_string();
        let below = path.strip_prefix("/").unwrap_or(path);
        Ok(Path::new("/proc").join(process).join("root").join(below))
    }

    /// Its process. An error if it was never started, or was stopped.
    pub fn process(&mut self) -> Result<&mut Process> {
        let not_started = || PeerError::Ended {
            program: self.program.display().to_string(),
            status: "not started".to_owned(),
            output: String::new(),
        };
        match &mut self.process {
            Some(process) => Ok(process),
            None => Err(not_started()),
        }
    }

    /// Kills it (SIGKILL): nothing is told to anybody.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Asks it to end (SIGTERM), and waits until it has.
    pub async fn stop(&mut self) -> Result<std::process::ExitStatus> {
        let status = self.process()?.terminate(Duration::from_secs(60)).await?;
        self.process = None;
        Ok(status)
    }

    /// What it logged, over all its starts.
    pub fn log(&self) -> String {
        let log = |start| self.directory.path().join(format!("picketd-{start}.log"));
        (1..=self.starts).map(|start| std::fs::read_to_string(log(start)).unwrap_or_default()).collect()
    }

    /// Where it answers, as the command line wants it.
    pub fn endpoint(&self) -> String {
        format!("unix:{}", self.directory.path().join("picket.sock").display())
    }

    /// A client of its service.
    pub async fn client(&self) -> Result<Client> {
        let refused = |error: tonic::transport::Error| PeerError::Io {
            what: format!("connect to {}", self.endpoint()),
            source: std::io::Error::other(error),
        };
        let endpoint = Endpoint::from_shared(self.endpoint()).map_err(refused)?;
        Ok(FencingServiceClient::new(endpoint.connect().await.map_err(refused)?))
    }

    /// What it says of all gateways; `None` where it does not answer in two seconds.
    pub async fn gateways(&self) -> Option<ListGatewaysResponse> {
        let ask = async {
            let mut client = self.client().await.ok()?;
            Some(client.list_gateways(ListGatewaysRequest {}).await.ok()?.into_inner())
        };
        tokio::time::timeout(Duration::from_secs(2), ask).await.ok()?
    }

    /// A command line of `picket` to it, without a terminal.
    pub fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(program("picket")?);
        command.arg("--endpoint").arg(self.endpoint()).args(arguments).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs `picket` with these arguments, to its end.
    pub async fn picket(&self, arguments: &[&str]) -> Result<Said> {
        let output = tokio::process::Command::from(self.command(arguments)?)
            .kill_on_drop(true)
            .output()
            .await
            .map_err(PeerError::io(format!("run picket {}", arguments.join(" "))))?;
        Ok(Said::of(output))
    }

    /// Fences or unfences (`verb`) a node, to its end; what was told of it.
    pub async fn tells(&self, verb: &str, node: &str) -> Result<Told> {
        let asked = [verb, node, "--yes", "--reason", "a test", "-o", "json", "--timeout", "170s"];
        Told::of(&self.picket(&asked).await?)
    }

    /// The same by a caller who is still there when the gateway dies.
    pub fn asking(&self, verb: &str, node: &str) -> Result<tokio::process::Child> {
        let mut command =
            tokio::process::Command::from(self.command(&[verb, node, "--yes", "--reason", "a test"])?);
        command.kill_on_drop(true).spawn().map_err(PeerError::io("run picket"))
    }

    /// A person mended what was wrong; done.
    pub async fn retry(&self, node: &str) -> Result<()> {
        let arguments = ["retry", node, "--yes", "--reason", "a test"];
        let said = self.picket(&arguments).await?;
        if said.code == 0 {
            return Ok(());
        }
        let (program, status) = (format!("picket {}", arguments.join(" ")), said.code.to_string());
        Err(PeerError::Ended { program, status, output: format!("{}{}", said.out, said.err) })
    }

    /// Lets it outlive this run, with its directory; its process id.
    pub fn leave_running(mut self) -> Option<u32> {
        let process = self.process.take()?;
        let _kept = self.directory.keep();
        Some(process.leave_running())
    }
}

fn directory() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("picket-gateway-").tempdir();
    made.map_err(PeerError::io("create a gateway's directory"))
}
