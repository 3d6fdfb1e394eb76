//! The conformance suite, and what is an agent's own, with an agent that is a program: what it says and does is known, its ends are real.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use picket_core::power::Power;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::conformance::orders::Orders;
use picket_driver::conformance::{self, Subject, Trouble};
use picket_driver::{Call, Context, DriverKind, Effect, ErrorKind, PowerDriver, Witness};
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
struct Agent {
    world: TempDir,
    clock: Arc<Ticking>,
}

impl Agent {
    fn new() -> Self {
        let world = tempfile::Builder::new().prefix("picket-agent-").tempdir().expect("a directory");
        let agent = Self { world, clock: Arc::new(Ticking(Instant::now())) };
        std::fs::write(agent.file("power"), "on\n").expect("it can be written");
        std::fs::write(agent.file("password"), format!("{PASSWORD}\n")).expect("it can be written");
        let permissions: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(agent.file("password"), permissions).expect("it is ours");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fence_fake.sh");
        std::os::unix::fs::symlink(program, agent.file("fence_fake")).expect("a link");
        agent
    }

    fn file(&self, name: &str) -> PathBuf {
        self.world.path().join(name)
    }

    fn with(&self, more: serde_json::Value) -> Arc<dyn PowerDriver> {
        let world = self.world.path().display().to_string();
        let mut settings = json!({
            "agent": "fence_fake", "trust_agent": "fence_fake", "class": "host", "directory": world,
            "parameters": { "ip": world }, "password_file": self.file("password").display().to_string(),
        });
        let settings = settings.as_object_mut().expect("a table");
        settings.extend(more.as_object().expect("a table").clone());
        let context = Context { clock: self.clock.clone(), random: Arc::new(|_: &mut [u8]| {}) };
        AgentKind::default().make(settings, &context).expect("they are right")
    }

    async fn orders(&self, driver: &Arc<dyn PowerDriver>) -> Orders {
        Orders::new(driver.traits(), self.clock.clone()).await.expect("orders")
    }

    fn call(&self, orders: &Orders, life: Duration) -> Call {
        Call::control(tokio::time::Instant::now() + life, self.clock.clone(), orders.permit())
    }

    /// Another program takes the agent's place, as a package's upgrade puts it there.
    fn is_replaced(&self, edit: impl Fn(&str) -> String) {
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
    fn children(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.file("children")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// Whether a process runs: one that died and was not waited for does not.
fn runs(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

async fn eventually(what: &str, mut so: impl FnMut() -> bool) {
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

#[tokio::test]
async fn it_conforms() {
    let agent = Agent::new();
    let report = conformance::run(&agent).await.unwrap_or_else(|failure| panic!("{failure}"));
    let left_out = [
        "a restart begins an epoch after loss",
        "after a restart no off is sent before a reading",
        "a quiesce that is not answered is none",
        "after a quiesce no late copy is executed",
        "no session is opened for an on",
        "a question is as old as its first copy",
        "packets that arrive twice change nothing",
        "wrong credentials are said, and have no effect",
    ];
    assert_eq!(report.left_out, left_out, "{report:?}");
    eventually("nothing of a run is left", || !agent.children().into_iter().any(runs)).await;
    assert!(!agent.children().is_empty(), "programs that agents started were killed with them");
}

#[tokio::test]
async fn what_is_killed_has_an_unknown_effect_and_nothing_of_it_is_left() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    std::fs::write(agent.file("silent"), "").expect("it can be written");
    let order = orders.off().await.expect("an off");
    let life = Duration::from_secs(4);
    let error = driver.power_off(&order, &agent.call(&orders, life)).await.expect_err("it is silent");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
    eventually("what it started is killed", || {
        let children = agent.children();
        !children.is_empty() && !children.into_iter().any(runs)
    })
    .await;
    agent.mend().await;
    // Another off that ends well does not say what became of the first.
    let again = orders.off().await.expect("an off");
    driver.power_off(&again, &agent.call(&orders, Duration::from_secs(60))).await.expect("it is done");
    let open =
        driver.quiesce(&agent.call(&orders, Duration::from_secs(1))).await.expect_err("nothing bounds it");
    assert!(open.detail.contains("no max_life"), "{open}");
}

#[tokio::test]
async fn what_is_killed_is_over_after_the_life_that_its_operator_vouches_for() {
    let agent = Agent::new();
    let driver = agent.with(json!({ "max_life": "2s" }));
    let orders = agent.orders(&driver).await;
    std::fs::write(agent.file("silent"), "").expect("it can be written");
    let order = orders.off().await.expect("an off");
    let call = agent.call(&orders, Duration::from_secs(2));
    let ends = call.deadline();
    // Its caller leaves in the middle, and the agent dies with that.
    let left = tokio::time::timeout(Duration::from_millis(500), driver.power_off(&order, &call)).await;
    assert!(left.is_err(), "it is silent");
    agent.mend().await;
    let soon = driver.quiesce(&agent.call(&orders, Duration::from_millis(100))).await.expect_err("not yet");
    assert_eq!(soon.kind, ErrorKind::TimedOut, "{soon}");
    driver.quiesce(&agent.call(&orders, Duration::from_secs(60))).await.expect("it is over");
    assert!(
        tokio::time::Instant::now() >= ends + Duration::from_secs(2),
        "its life counts from its latest end"
    );
    driver.quiesce(&agent.call(&orders, Duration::from_millis(100))).await.expect("it stays over");
}

#[tokio::test]
async fn an_agent_of_a_gateway_that_stands_still_may_run_on_until_its_call_ends() {
    let agent = Agent::new();
    let call = Duration::from_secs(90);
    let bounded = agent.with(json!({ "max_life": "2s" }));
    let life = bounded.max_in_flight(call);
    // Whoever leads now counts from what stood in the store before the agent was begun.
    assert!(life.on.is_some_and(|life| life > call + Duration::from_secs(3)), "{life:?}");
    assert_eq!(life.on, life.off);
    assert_eq!(agent.driver().max_in_flight(call).on, None, "nobody vouches");
}

#[tokio::test]
async fn an_agent_of_a_gateway_that_was_deposed_is_killed_at_once() {
    let agent = Agent::new();
    let driver = agent.with(json!({ "max_life": "2s" }));
    let orders = agent.orders(&driver).await;
    std::fs::write(agent.file("silent"), "").expect("it can be written");
    let order = orders.off().await.expect("an off");
    let call = agent.call(&orders, Duration::from_secs(600));
    let ends = call.deadline();
    let deposed = async {
        eventually("it runs", || agent.children().into_iter().any(runs)).await;
        orders.permit().end();
    };
    let (off, ()) = tokio::join!(driver.power_off(&order, &call), deposed);
    let error = off.expect_err("nobody leads any more");
    assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::Unknown), "{error}");
    eventually("all of it is dead", || !agent.children().into_iter().any(runs)).await;
    assert!(tokio::time::Instant::now() < ends, "long before its call would have ended");
    // What it had sent may be on its way for as long as if it had run to the end: nobody saw how far it came.
    let open = driver.quiesce(&agent.call(&orders, Duration::from_secs(1))).await.expect_err("its life");
    assert_eq!((open.kind, open.effect), (ErrorKind::TimedOut, Effect::Unknown), "{open}");
}

/// Stops the process until long after its call, between the permit and the agent's start.
#[derive(Debug)]
struct Stopped(Instant);

impl Witness for Stopped {
    fn permitted(&self) {
        while Instant::now() < self.0 {
            std::thread::yield_now();
        }
    }
}

#[tokio::test]
async fn a_gateway_that_was_stopped_between_permit_and_start_sends_nothing_late() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    let order = orders.off().await.expect("an off");
    // Long enough that whoever keeps the agent is dead by then, too.
    let call = agent.call(&orders, Duration::from_millis(200));
    let call = call.before(Arc::new(Stopped(Instant::now() + Duration::from_secs(2))));
    let error = driver.power_off(&order, &call).await.expect_err("its time is over");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
    assert_eq!(agent.commands().await, Some(0), "nothing was sent");
    assert!(agent.is_on().await);
    let open =
        driver.quiesce(&agent.call(&orders, Duration::from_secs(1))).await.expect_err("nobody vouches");
    assert!(open.detail.contains("no max_life"), "{open}");
}

#[tokio::test]
async fn already_off_is_told_and_the_password_is_what_it_is() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    agent.set_power(false).await;
    let order = orders.off().await.expect("an off");
    let call = agent.call(&orders, Duration::from_secs(60));
    assert!(driver.power_off(&order, &call).await.expect("it is done").already);
    let reading = driver.read_power(&call).await.expect("an answer");
    assert_eq!((reading.power, reading.epoch), (Power::Off, None));
    std::fs::write(agent.file("password"), "s3cret-Other\n").expect("it can be written");
    let other = agent.driver();
    let error =
        other.read_power(&agent.call(&orders, Duration::from_secs(60))).await.expect_err("it is wrong");
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
    assert!(error.detail.contains("[secret]") && !error.detail.contains("s3cret"), "{error}");
}

#[tokio::test]
async fn an_agent_that_was_replaced_is_asked_what_it_takes_before_it_is_believed() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    let call = || agent.call(&orders, Duration::from_secs(60));
    agent.is_replaced(str::to_owned);
    assert_eq!(driver.read_power(&call()).await.expect("it is the same").power, Power::On);
    // A parameter that is gone: told by each look, and no reason to let an off be.
    agent.is_replaced(|text| text.replace("parameter name=\"password\"", "parameter name=\"passphrase\""));
    for _ in 0..2 {
        let error = driver.read_power(&call()).await.expect_err("it does not fit");
        assert_eq!((error.kind, error.effect), (ErrorKind::Settings, Effect::DidNotHappen), "{error}");
        let told = ["was replaced", "password_file", "does not know the parameter password"];
        assert!(told.iter().all(|words| error.detail.contains(words)), "{error}");
    }
    let on = orders.on().await.expect("an on");
    let error = driver.power_on(on, &call()).await.expect_err("it might repeat it by itself");
    assert_eq!((error.kind, error.effect), (ErrorKind::Settings, Effect::DidNotHappen), "{error}");
    assert_eq!(agent.commands().await, Some(0));
    driver.power_off(&orders.off().await.expect("an off"), &call()).await.expect("an off is not held up");
    assert!(!agent.is_on().await);
    // One that says it repeats nothing is told so no more.
    agent.is_replaced(|text| {
        text.replace("parameter name=\"retry_on\"", "parameter name=\"something_else\"")
            .replace("[ \"$retry\" = 0 ]", "[ -z \"$retry\" ]")
    });
    assert_eq!(driver.read_power(&call()).await.expect("it fits").power, Power::Off);
    std::fs::remove_file(agent.file("fence_fake")).expect("it is there");
    let error = driver.read_power(&call()).await.expect_err("it is gone");
    assert!(error.kind == ErrorKind::Settings && error.detail.contains("cannot be found"), "{error}");
}
