//! The daemon over many nodes, from settings of a few lines: its start, what it takes, and how soon it tells of all.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use picket_proto::v1::{
    CheckDevicesRequest, GetNodeRequest, ListNodesRequest, NodeSelector, Readiness, node_selector,
};
use picket_tests::Client;
use picket_tests::peers::{ADMIN, PASSWORD};
use tempfile::TempDir;
use tonic::transport::Endpoint;

use crate::Wrong;
use crate::bmcs::{Bmcs, Speech};
use crate::options::Child as What;
use crate::race::cost;
use crate::race::farm::{Farm, host_list};
use crate::race::goals::Goals;
use crate::race::series::millis;

/// How soon it is to be ready.
const WITHIN: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it is watched at rest, and how often each node is checked meanwhile: no BMC ends a session of which it hears so often.
const REST: Duration = Duration::from_secs(20);
const CHECKED_BY: &str = "45s";
/// What ten thousand nodes may take, in MB.
const MOST: f64 = 100.0;
/// Nodes of a page.
const PAGE: i32 = 1_000;
/// The variable in which the BMCs' password stands, for the daemon alone.
const PASSWORD_VARIABLE: &str = "PICKET_BENCH_BMC_PASSWORD";

/// The daemon's files.
struct Home {
    directory: TempDir,
    settings: PathBuf,
    /// The node that it reads last.
    last: String,
}

impl Home {
    fn new(farm: &Bmcs, speech: Speech) -> Result<Self, Wrong> {
        let directory = tempfile::tempdir()?;
        let place = |name: &str| directory.path().join(name);
        let driver = match speech {
            Speech::Ipmi => "driver = \"ipmi\"\ncipher_suites = [3]".to_owned(),
            Speech::Redfish => {
                std::fs::write(place("ca.pem"), farm.authority()?)?;
                format!("driver = \"redfish\"\nca_file = {:?}", place("ca.pem"))
            }
        };
        let mut text = String::new();
        write!(
            text,
            "[listen]\nunix = {:?}\n[store]\npath = {:?}\n[log]\nlevel = \"error\"\n[rules]\ncheck_every = \"{CHECKED_BY}\"\n\
             [templates.rack]\nlabels = {{ rack = \"r1\" }}\n[templates.rack.devices.bmc]\n{driver}\nhost = \"{{node}}\"\nport = {}\n\
             username = {ADMIN:?}\npassword_env = {PASSWORD_VARIABLE:?}\n[nodes.\"{}\"]\ntemplate = \"rack\"\n",
            place("picket.sock"),
            place("picket.redb"),
            farm.port(),
            host_list(farm.addresses(), ""),
        )?;
        let settings = place("picket.toml");
        std::fs::write(&settings, text)?;
        let last = farm.addresses().last().ok_or("no BMCs")?.ip().to_string();
        Ok(Self { directory, settings, last })
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("picketd.log")
    }

    async fn client(&self) -> Result<Client, Wrong> {
        let socket = self.directory.path().join("picket.sock");
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()))?;
        // A page of a thousand nodes.
        Ok(Client::new(endpoint.connect().await?).max_decoding_message_size(64 << 20))
    }
}

/// Ends with its value.
struct Daemon(std::process::Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    /// Starts it, and how long that took until it told of its last node.
    async fn start(home: &Home) -> Result<(Self, Duration), Wrong> {
        let errors = std::fs::File::create(home.log())?;
        let began = Instant::now();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(What::Daemon(home.settings.clone()).word()).arg(&home.settings);
        command.env(PASSWORD_VARIABLE, PASSWORD);
        // As the unit sets it.
        command.env("MALLOC_ARENA_MAX", "1");
        command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors);
        let mut daemon = Self(command.spawn()?);
        let said = || std::fs::read_to_string(home.log()).unwrap_or_default();
        loop {
            if knows(home, &home.last).await {
                return Ok((daemon, began.elapsed()));
            }
            if let Some(status) = daemon.0.try_wait()? {
                return Err(format!("the daemon ended ({status}): {}", said()).into());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("the daemon does not answer: {}", said()).into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn cpu(&self) -> Duration {
        cost::family_cpu(self.0.id())
    }
}

/// Starts it twice over the same store: the first start makes the records, the second one reads them. What the second one takes.
pub async fn daemon(bmcs: usize, speech: Speech, goals: &mut Goals) -> Result<(), Wrong> {
    let farm = Bmcs::start_with(bmcs, speech)?;
    let home = Home::new(&farm, speech)?;
    let lines = std::fs::read_to_string(&home.settings)?.lines().count();
    println!("\nTHE DAEMON over {bmcs} nodes with {speech:?}, settings of {lines} lines");
    let what = ["first, with an empty store", "again, with its records"];
    let mut running = None;
    for what in what {
        drop(running.take());
        let (daemon, took) = Daemon::start(&home).await?;
        println!(
            "  start, {what:<30} answers of its last node after {:.2} s, with {:.2} s of processor time",
            took.as_secs_f64(),
            daemon.cpu().as_secs_f64()
        );
        if speech == Speech::Ipmi {
            goals.judge(
                format!("start over {bmcs} nodes, {what}: within {WITHIN:?}: {:.2} s", took.as_secs_f64()),
                took <= WITHIN,
            );
        }
        all_ready(&home, bmcs).await?;
        running = Some(daemon);
    }
    let Some(daemon) = running else { return Ok(()) };
    weigh(&daemon, bmcs, speech, goals).await;
    tell(&home, &daemon, bmcs).await
}

/// What it takes at rest, with every session open.
async fn weigh(daemon: &Daemon, bmcs: usize, speech: Speech, goals: &mut Goals) {
    let (cpu, start) = (daemon.cpu(), Instant::now());
    tokio::time::sleep(REST).await;
    let busy = daemon.cpu().saturating_sub(cpu).as_secs_f64() / start.elapsed().as_secs_f64();
    let mb = cost::resident(daemon.0.id()) as f64 / 1e6;
    println!(
        "  at rest, every node checked every {CHECKED_BY}: {mb:.1} MB resident, all of it, {:.1} KB a node; {:.2} % of a core",
        mb * 1e3 / bmcs as f64,
        busy * 100.0
    );
    if bmcs >= 10_000 {
        goals.judge(
            format!("the daemon with {bmcs} warm {speech:?} nodes: at most {MOST} MB: {mb:.1} MB"),
            mb <= MOST,
        );
    }
}

/// How soon it tells of all nodes: what it knows, and what all devices say now.
async fn tell(home: &Home, daemon: &Daemon, bmcs: usize) -> Result<(), Wrong> {
    let mut client = home.client().await?;
    let (began, cpu) = (Instant::now(), daemon.cpu());
    let told = list(&mut client, |_| true).await?;
    let took = began.elapsed();
    println!(
        "  status of {told} nodes in pages of {PAGE}: {} ms, {:.1} us of its processor time each",
        millis(took),
        daemon.cpu().saturating_sub(cpu).as_secs_f64() * 1e6 / bmcs as f64
    );
    let (began, cpu) = (Instant::now(), daemon.cpu());
    let mut answers = client.check_devices(CheckDevicesRequest::default()).await?.into_inner();
    let mut ready = 0;
    while let Some(answer) = answers.message().await? {
        ready += usize::from(answer.device.is_some_and(|device| is_checked(device.readiness())));
    }
    println!(
        "  every device asked now (picket check), {ready} of {bmcs} are ready: {} ms, {:.0} us of its processor time each",
        millis(began.elapsed()),
        daemon.cpu().saturating_sub(cpu).as_secs_f64() * 1e6 / bmcs as f64
    );
    Ok(())
}

/// How many nodes of all pages are so.
async fn list(client: &mut Client, so: fn(Readiness) -> bool) -> Result<usize, Wrong> {
    let (mut found, mut token) = (0, String::new());
    loop {
        let request =
            ListNodesRequest { page_size: PAGE, page_token: token.clone(), ..ListNodesRequest::default() };
        let page = client.list_nodes(request).await?.into_inner();
        found += page.nodes.iter().filter(|node| so(node.readiness())).count();
        token = page.next_page_token;
        if token.is_empty() {
            return Ok(found);
        }
    }
}

/// Whether it was asked, and could be fenced.
fn is_checked(readiness: Readiness) -> bool {
    matches!(readiness, Readiness::Ready | Readiness::Degraded)
}

/// Until every node was checked, and is ready.
async fn all_ready(home: &Home, bmcs: usize) -> Result<(), Wrong> {
    let (mut client, began) = (home.client().await?, Instant::now());
    loop {
        let ready = list(&mut client, is_checked).await?;
        if ready == bmcs {
            println!(
                "  every node was checked, logins included, {:.1} s later",
                began.elapsed().as_secs_f64()
            );
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("{ready} of {bmcs} nodes are ready: {}", said(&home.log())).into());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn said(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default().chars().take(2_000).collect()
}

/// Whether somebody answers there and knows that node.
async fn knows(home: &Home, node: &str) -> bool {
    let Ok(mut client) = home.client().await else { return false };
    let by = node_selector::By::Name(node.to_owned());
    let request = GetNodeRequest { node: Some(NodeSelector { by: Some(by) }), fresh: false };
    client.get_node(request).await.is_ok()
}
