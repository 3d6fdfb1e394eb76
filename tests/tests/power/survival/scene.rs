//! One node behind a BMC, a receiver of releases that looks at the truth, and a daemon that may die.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use picket_core::ids::Incarnation;
use picket_core::ledger::OpenEffect;
use picket_core::store::Store;
use picket_core::time::WallTime;
use picket_store::EmbeddedStore;
use picket_tests::peers::IpmiSim;
use picket_tests::{Bmc, Daemon, Fleet, Gateway, PeerError, Result, Said, Webhook};
use tokio::time::{Instant, sleep};

/// The restore policy that the BMC has before anybody holds it: always on.
pub const POLICY: i64 = 2;

/// What ipmi_sim does with a silent session, and what the settings say of it.
pub const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// How long a daemon that stopped itself stands still: until its session is over, the five percent included that a BMC
/// may take longer.
pub const STOP: Duration = Duration::from_secs(34);

/// A death of the daemon, and what it left behind.
#[derive(Debug)]
pub struct Death {
    /// When it was noticed, at most a few milliseconds after it.
    pub at: SystemTime,
    /// The phase that was stored; `normal` where nothing was.
    pub phase: String,
    /// Effects whose end was not known.
    pub open: Vec<OpenEffect>,
}

/// The scene.
#[derive(Debug)]
pub struct Scene {
    /// First, so that it ends first.
    pub gateway: Gateway,
    /// Its state file is the truth of whether the node is on.
    pub bmc: IpmiSim,
    /// It looks at that truth with each request.
    pub webhook: Webhook,
    /// All deaths so far.
    pub deaths: Vec<Death>,
    /// At which point each daemon that is started kills itself, the next one first; those after them live.
    pub fates: VecDeque<String>,
    /// When the daemon that then runs is killed from outside.
    pub kill_at: Option<Instant>,
    /// How often the daemon stopped itself; each time it is let go on after [`STOP`].
    pub stops: usize,
    /// Whether somebody else switches the node on while the daemon stands still.
    pub foreign_on: bool,
}

impl Scene {
    /// The shortest rules that are allowed, and a device with these further settings. Nothing is started yet.
    pub async fn set(device: &str) -> Result<Self> {
        let bmc = IpmiSim::builder().holds().start().await?;
        bmc.preset("policy", POLICY)?;
        let webhook = Webhook::with_witness(bmc.truth()).await?;
        let limit = format!("idle_limit = \"{}s\"\n{device}", IDLE_LIMIT.as_secs());
        let fleet = Fleet::new()
            .with("[rules]\ndwell = \"500ms\"\nlongest_cycle = \"5s\"\nwatch = \"1s\"")
            .node("n1", &Bmc::at(bmc.address()).with(&limit), &["detach"])
            .webhook("detach", &webhook.url(), "settle = \"0s\"");
        let gateway = Gateway::of(Daemon::Hooked, &fleet)?;
        Ok(Self {
            gateway,
            bmc,
            webhook,
            deaths: Vec::new(),
            fates: VecDeque::new(),
            kill_at: None,
            stops: 0,
            foreign_on: false,
        })
    }

    /// Starts the daemon with these variables, and others after it as long as they die; waits until one has looked at
    /// the device.
    pub async fn begin(&mut self, variables: &[(&str, &str)]) -> Result<()> {
        loop {
            let fate = self.fates.pop_front().unwrap_or_default();
            let mut variables = variables.to_vec();
            if !fate.is_empty() {
                variables.push(("PICKET_KILL_AT", &fate));
            }
            self.gateway.launch(&variables)?;
            let Err(error) = self.answers().await else { return Ok(()) };
            // A connection breaks a moment before its process is seen to have ended.
            let _ = self.gateway.process()?.wait(Duration::from_secs(1)).await;
            if !self.died().await? {
                return Err(error);
            }
        }
    }

    async fn answers(&mut self) -> Result<()> {
        self.gateway.ready().await?;
        self.gateway.checked().await
    }

    /// Notes it if the daemon killed itself. Another end is an error.
    async fn died(&mut self) -> Result<bool> {
        let Some(status) = self.gateway.process()?.ended() else { return Ok(false) };
        let at = SystemTime::now();
        if status.signal() != Some(9) {
            let output = self.gateway.log();
            return Err(PeerError::Ended { program: "picketd".into(), status: status.to_string(), output });
        }
        let (phase, open) = self.stored().await?;
        self.deaths.push(Death { at, phase, open });
        Ok(true)
    }

    /// What stands in the store of a daemon that is dead: read from a copy, so that the next one finds what was left.
    async fn stored(&self) -> Result<(String, Vec<OpenEffect>)> {
        let copy = tempfile::tempdir().map_err(PeerError::io("create a directory for a copy"))?;
        let path = copy.path().join("picket.redb");
        std::fs::copy(self.gateway.directory().join("picket.redb"), &path)
            .map_err(PeerError::io("copy the store"))?;
        let unread = |why: String| PeerError::Malformed { path: path.clone(), what: why };
        let fresh = Incarnation::mint(WallTime::from_millis(1), [0; 10]);
        let store = EmbeddedStore::open(&path, fresh).map_err(|error| unread(error.to_string()))?;
        let stored = store.load_all().await.map_err(|error| unread(error.to_string()))?;
        Ok(match stored.into_iter().next() {
            Some(one) => (one.record.phase.label().to_owned(), one.record.ledger.open().to_vec()),
            None => ("normal".to_owned(), Vec::new()),
        })
    }

    /// Runs `picket` to its end; whenever the daemon dies meanwhile, another one is started over the same store.
    pub async fn survive(&mut self, arguments: &[&str]) -> Result<Said> {
        let mut command = tokio::process::Command::from(self.gateway.command(arguments)?);
        command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = format!("run picket {}", arguments.join(" "));
        let mut caller = tokio::spawn(async move { command.output().await });
        loop {
            let kill = self.kill_at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            tokio::select! {
                biased;
                said = &mut caller => {
                    let said = said.map_err(std::io::Error::other).flatten().map_err(PeerError::io(what))?;
                    return Ok(Said::of(said));
                }
                () = sleep(kill.min(Duration::from_millis(10))) => {
                    if self.kill_at.is_some_and(|at| Instant::now() >= at) {
                        self.kill_at = None;
                        self.gateway.process()?.kill();
                    }
                    if self.died().await? {
                        self.begin(&[]).await?;
                    }
                    if self.gateway.process()?.is_frozen() {
                        self.stand_still().await?;
                    }
                }
            }
        }
    }

    /// The daemon stopped itself: its session at the BMC ends meanwhile.
    async fn stand_still(&mut self) -> Result<()> {
        self.stops += 1;
        if self.foreign_on {
            self.bmc.press(true)?;
        }
        sleep(STOP).await;
        self.gateway.process()?.thaw();
        Ok(())
    }

    /// Fences the node, by the command line.
    pub async fn fence(&mut self) -> Result<Said> {
        self.ask(&["fence", "n1", "--yes", "--reason", "a test", "--key", "there", "--patience", "120s"])
            .await
    }

    /// Brings the node back, by the command line.
    pub async fn unfence(&mut self) -> Result<Said> {
        self.ask(&["unfence", "n1", "--yes", "--reason", "over", "--key", "back", "--patience", "120s"]).await
    }

    /// As a script asks: once more with the same key where no gateway answered.
    async fn ask(&mut self, arguments: &[&str]) -> Result<Said> {
        loop {
            let said = self.survive(arguments).await?;
            if said.code != 5 {
                return Ok(said);
            }
        }
    }
}
