//! An agent that is a program, and the machine that it switches.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::conformance::orders::Orders;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver::{Call, Context, DriverKind, PowerDriver};
use picket_driver_agent::AgentKind;
use serde_json::json;
use tempfile::TempDir;

const PASSWORD: &str = " s3cret-pass";

#[derive(Debug)]
struct Ticking(Instant);

impl Clock for Ticking {
    fn boot(&self) -> BootTime {
        BootTime::from_boot(self.0.elapsed())
    }

    fn wall(&self) -> WallTime {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        WallTime::from_millis(u64::try_from(since.as_millis()).unwrap_or_default())
    }
}

/// An agent and the world in which it switches one machine.
pub struct Agent {
    world: TempDir,
    clock: Arc<Ticking>,
    /// All of its devices are of one gateway.
    kind: AgentKind,
}

impl Agent {
    pub fn new() -> Self {
        let world = tempfile::Builder::new().prefix("picket-agent-").tempdir().expect("a directory");
        let clock = Arc::new(Ticking(Instant::now()));
        let agent = Self { world, clock, kind: AgentKind::default() };
        std::fs::write(agent.file("power"), "on\n").expect("it can be written");
        std::fs::write(agent.file("password"), format!("{PASSWORD}\n")).expect("it can be written");
        let permissions: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(agent.file("password"), permissions).expect("it is ours");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fence_fake.sh");
        // Not the checkout's own, whose directories somebody else may write; and by another process, since one that a test beside this one starts
        // may hold a file open that we write.
        let copied = std::process::Command::new("cp").arg(program).arg(agent.file("fence_fake")).status();
        assert!(copied.expect("cp").success());
        agent
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.world.path().join(name)
    }

    pub fn with(&self, more: serde_json::Value) -> Arc<dyn PowerDriver> {
        let world = self.world.path().display().to_string();
        let mut settings = json!({
            "agent": "fence_fake", "trust_agent": "fence_fake", "class": "host", "directory": world,
            "parameters": { "ip": world }, "password_file": self.file("password").display().to_string(),
        });
        let settings = settings.as_object_mut().expect("a table");
        settings.extend(more.as_object().expect("a table").clone());
        let context = Context { clock: self.clock.clone(), random: Arc::new(|_: &mut [u8]| {}) };
        self.kind.make(settings, &context).expect("they are right")
    }

    pub async fn orders(&self, driver: &Arc<dyn PowerDriver>) -> Orders {
        Orders::new(driver.traits(), self.clock.clone()).await.expect("orders")
    }

    pub fn call(&self, orders: &Orders, life: Duration) -> Call {
        Call::control(tokio::time::Instant::now() + life, self.clock.clone(), orders.permit())
    }

    /// Another program takes the agent's place, as a package's upgrade puts it there.
    pub fn is_replaced(&self, edit: impl Fn(&str) -> String) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fence_fake.sh");
        let text = std::fs::read_to_string(program).expect("it can be read");
        // By another process: one that a test beside this one starts may hold a file open that we write, which cannot be run then.
        let mut writes = std::process::Command::new("sh")
            .args(["-c", "cat >\"$0\" && chmod 755 \"$0\"", &self.file("fence_new").display().to_string()])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stdin = writes.stdin.take().expect("it is piped");
        stdin.write_all(edit(&text).as_bytes()).expect("it is told");
        drop(stdin);
        assert!(writes.wait().expect("it ends").success());
        std::fs::rename(self.file("fence_new"), self.file("fence_fake")).expect("it can be renamed");
    }

    /// Programs that the agent started, each as long as it runs.
    pub fn children(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.file("children")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// Whether a process runs: one that died and was not waited for does not.
pub fn runs(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub async fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < end, "within a minute {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[async_trait]
impl Subject for Agent {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        self.with(json!({}))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        // What fell by now is off, whether or not somebody looked.
        let falls =
            std::fs::read_to_string(self.file("falls")).ok().and_then(|at| at.trim().parse::<u64>().ok());
        let fell = falls.is_some_and(|at| self.clock.wall().millis() >= at);
        !fell && std::fs::read_to_string(self.file("power")).expect("it is there").trim() == "on"
    }

    async fn set_power(&self, on: bool) {
        let _ = std::fs::remove_file(self.file("falls"));
        std::fs::write(self.file("power.hand"), if on { "on\n" } else { "off\n" })
            .expect("it can be written");
        std::fs::rename(self.file("power.hand"), self.file("power")).expect("it can be renamed");
    }

    async fn commands(&self) -> Option<u64> {
        let said = std::fs::read_to_string(self.file("commands")).unwrap_or_default();
        Some(said.lines().count() as u64)
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        let (file, text) = match trouble {
            Trouble::Silence => ("silent", String::new()),
            Trouble::Nonsense => ("nonsense", String::new()),
            Trouble::SlowFall(time) => ("slow", time.as_millis().to_string()),
            // So do all agents.
            Trouble::AlreadyIsError => return true,
            Trouble::Missing => ("missing", String::new()),
            Trouble::Transition => ("transition", String::new()),
            Trouble::Gone => ("gone", String::new()),
            Trouble::AnswersLost => ("deaf", String::new()),
            Trouble::Refuses => ("refuses", String::new()),
            // One word for everything that went wrong: nobody can tell wrong credentials from the rest. Agents have no sessions, no
            // word for whose machine it is, and what one asks twice is its own affair.
            Trouble::WrongCredentials
            | Trouble::Restart
            | Trouble::Doubled
            | Trouble::FirstCopyLost
            | Trouble::LateCopies(_)
            | Trouble::SlowAnswers(_)
            | Trouble::CutAnswers
            | Trouble::Redirects
            | Trouble::UselessLogins
            | Trouble::RepeatRefused
            | Trouble::OtherMachine => return false,
        };
        std::fs::write(self.file(file), text).expect("it can be written");
        true
    }

    async fn mend(&self) {
        for file in
            ["silent", "nonsense", "slow", "falls", "missing", "transition", "gone", "deaf", "refuses"]
        {
            let _ = std::fs::remove_file(self.file(file));
        }
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.trim().to_owned()]
    }
}
