//! A gateway that is measured: the daemon in a process of its own, with a directory of its own.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use picket_proto::v1::{ListGatewaysRequest, ListGatewaysResponse, ListNodesRequest, Readiness};
use picket_tests::Client;
use picket_tests::peers::{PASSWORD, Process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use tonic::transport::Endpoint;

use crate::Wrong;

/// A thousand devices are looked at after the start.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// The variable in which the BMCs' password stands.
pub const PASSWORD_VARIABLE: &str = "PICKET_BENCH_PASSWORD";

/// One gateway. Dropped, it ends.
pub struct Daemon {
    /// As the others know it.
    pub name: String,
    // Ends before the directory goes.
    process: Option<Process>,
    home: TempDir,
    starts: u32,
}

impl Daemon {
    /// Over these settings, not yet started. Where it listens, and what stands beside its store, is added.
    pub fn new(name: &str, settings: &str) -> Result<Self, Wrong> {
        let home = tempfile::Builder::new().prefix("picket-bench-").tempdir()?;
        let own = format!(
            "[gateway]\nname = {name:?}\n[listen]\nunix = {:?}\n[audit]\npath = {:?}\n[receipts]\nkey_file = {:?}\n\
             [log]\nlevel = \"warn\"\n{settings}",
            home.path().join("picket.sock"),
            home.path().join("picket.audit"),
            home.path().join("picket.receipt.pem"),
        );
        std::fs::write(home.path().join("picket.toml"), own)?;
        Ok(Self { name: name.to_owned(), process: None, home, starts: 0 })
    }

    /// Starts it, and waits until it answers.
    pub async fn start(&mut self) -> Result<(), Wrong> {
        self.starts += 1;
        let log = self.log_file();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--daemon").arg(self.home.path().join("picket.toml")).env(PASSWORD_VARIABLE, PASSWORD);
        self.process = Some(Process::start(command, &log, "none: cargo builds it")?);
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Some(process) = &mut self.process {
                process.still_runs()?;
            }
            if let Ok(mut client) = self.client().await
                && client.list_nodes(ListNodesRequest::default()).await.is_ok()
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{} does not answer: {}", self.name, self.log()).into());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until each of its devices was looked at once.
    pub async fn checked(&self) -> Result<(), Wrong> {
        let mut client = self.client().await?;
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let (mut waiting, mut page_token) = (0, String::new());
            loop {
                let request =
                    ListNodesRequest { page_size: 1_000, page_token, ..ListNodesRequest::default() };
                let page = client.list_nodes(request).await?.into_inner();
                waiting +=
                    page.nodes.iter().filter(|node| node.readiness() == Readiness::Unspecified).count();
                page_token = page.next_page_token;
                if page_token.is_empty() {
                    break;
                }
            }
            if waiting == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                let within = READY_WITHIN.as_secs();
                return Err(format!("{waiting} nodes were not looked at within {within} s").into());
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// What it says of all gateways; `None`: it does not answer.
    pub async fn sees(&self) -> Option<ListGatewaysResponse> {
        let ask = async {
            Some(self.client().await.ok()?.list_gateways(ListGatewaysRequest {}).await.ok()?.into_inner())
        };
        tokio::time::timeout(Duration::from_secs(2), ask).await.ok()?
    }

    /// A client on a connection of its own.
    pub async fn client(&self) -> Result<Client, Wrong> {
        let endpoint =
            Endpoint::from_shared(format!("unix:{}", self.home.path().join("picket.sock").display()))?;
        Ok(Client::new(endpoint.connect().await?))
    }

    /// Its process, while it has one.
    pub fn process(&mut self) -> Result<&mut Process, Wrong> {
        self.process.as_mut().ok_or_else(|| "it was not started".into())
    }

    /// What it logged since its last start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.home.path().join(format!("picketd-{}.log", self.starts))
    }
}
