//! The processes that are measured: the daemon, and the echo.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use picket_proto::v1::{GetNodeRequest, ListNodesRequest, NodeSelector, Readiness, node_selector};
use picket_tests::Client;
use prost::Message;
use tokio::time::{Instant, sleep};
use tonic::transport::Endpoint;

use crate::Wrong;

/// Ten thousand devices are looked at after the start.
const READY_WITHIN: Duration = Duration::from_secs(300);

/// A child that ends with its value.
pub struct Child {
    process: std::process::Child,
    socket: PathBuf,
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The name of a node.
pub fn name(index: usize) -> String {
    format!("n{index:05}")
}

/// A question for one node.
pub fn status_of(index: usize) -> GetNodeRequest {
    let by = node_selector::By::Name(name(index));
    GetNodeRequest { node: Some(NodeSelector { by: Some(by) }), fresh: false }
}

fn start(arguments: &[&std::ffi::OsStr], log: &Path) -> Result<std::process::Child, Wrong> {
    let log = std::fs::File::create(log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok(command.spawn()?)
}

impl Child {
    /// The daemon over so many simulated nodes and an embedded store, ready: every device was looked at once.
    pub async fn daemon(home: &Path, nodes: usize) -> Result<Self, Wrong> {
        let socket = home.join("picket.sock");
        let mut text = String::new();
        // The default limits are for callers who behave; here one caller does the work of many.
        let limits =
            "rate = 100000\nburst = 100000\ncalls = 4096\ncalls_each = 4096\nconnections_each = 768\n";
        write!(
            text,
            "[budget]\nat_once = 100000\ncool_down = \"0s\"\nbrake_least = 100000\nmin_not_fenced = 0\n\
             [listen]\nunix = {socket:?}\n[store]\npath = {:?}\n[log]\nlevel = \"error\"\n[limits]\n{limits}\
             [nodes.\"n[00000-{:05}]\"]\nlabels = {{ rack = \"r1\" }}\n\
             [nodes.\"n[00000-{:05}]\".devices.bmc]\ndriver = \"sim\"\nmachine = \"{{node}}\"\n",
            home.join("picket.redb"),
            nodes - 1,
            nodes - 1,
        )?;
        let settings = home.join("picket.toml");
        std::fs::write(&settings, text)?;
        let began = Instant::now();
        let process = start(&["--daemon".as_ref(), settings.as_ref()], &home.join("picketd.log"))?;
        let mut daemon = Self { process, socket };
        let mut client = daemon.answers(&home.join("picketd.log")).await?;
        let answers = began.elapsed();
        loop {
            let mut ready = 0;
            let mut page_token = String::new();
            loop {
                let request =
                    ListNodesRequest { page_size: 1_000, page_token, ..ListNodesRequest::default() };
                let page = client.list_nodes(request).await?.into_inner();
                ready += page.nodes.iter().filter(|node| node.readiness() != Readiness::Unspecified).count();
                page_token = page.next_page_token;
                if page_token.is_empty() {
                    break;
                }
            }
            if ready == nodes {
                break;
            }
            if began.elapsed() > READY_WITHIN {
                return Err(format!("{ready} of {nodes} nodes were looked at in {READY_WITHIN:?}").into());
            }
            sleep(Duration::from_millis(500)).await;
        }
        println!(
            "  the daemon answered after {:.1} s, and had looked at all {nodes} nodes after {:.1} s",
            answers.as_secs_f64(),
            began.elapsed().as_secs_f64()
        );
        Ok(daemon)
    }

    /// The echo, of a message that the daemon answered.
    pub async fn echo(home: &Path, daemon: &Child) -> Result<Self, Wrong> {
        let answer = daemon.client().await?.get_node(status_of(0)).await?.into_inner();
        let (socket, message) = (home.join("echo.sock"), home.join("message"));
        println!("  an answer has {} bytes", answer.encoded_len());
        std::fs::write(&message, answer.encode_to_vec())?;
        let log = home.join("echo.log");
        let process = start(&["--echo".as_ref(), socket.as_ref(), message.as_ref()], &log)?;
        let mut echo = Self { process, socket };
        echo.answers(&log).await?;
        Ok(echo)
    }

    /// Waits until it answers.
    async fn answers(&mut self, log: &Path) -> Result<Client, Wrong> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Ok(mut client) = self.client().await
                && client.get_node(status_of(0)).await.is_ok()
            {
                return Ok(client);
            }
            if let Some(status) = self.process.try_wait()? {
                return Err(format!("it ended ({status}): {}", std::fs::read_to_string(log)?).into());
            }
            if Instant::now() > deadline {
                return Err(format!("it does not answer: {}", std::fs::read_to_string(log)?).into());
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// A client on a connection of its own.
    pub async fn client(&self) -> Result<Client, Wrong> {
        let endpoint = Endpoint::from_shared(format!("unix:{}", self.socket.display()))?;
        Ok(Client::new(endpoint.connect().await?))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
