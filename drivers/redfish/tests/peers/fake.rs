//! A Redfish service of our own, for what no other one does on demand: faults, sessions that are full, tasks, a manager that
//! restarts. Its wire is written by hand, so that it can also be wrong.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Mutex as Turn, Notify};

mod answers;
mod boards;
mod odd;
mod server;
mod sessions;

pub use boards::{Board, Waits};
pub use odd::{Etag, Odd, Says, Slash};

pub use server::Fake;
use sessions::Session;

/// Its account.
pub const USER: &str = "admin";
/// Its password.
pub const PASSWORD: &str = "hunter2-redfish";
/// Its system.
pub const SYSTEM: &str = "/redfish/v1/Systems/437";
const RESET: &str = "/redfish/v1/Systems/437/Actions/ComputerSystem.Reset";
const MANAGER: &str = "/redfish/v1/Managers/bmc";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// What is answered.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP's status.
    pub status: u16,
    /// Further lines of the head.
    pub head: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long after the request.
    pub after: Duration,
    /// A pause before each byte of the body.
    pub drip: Duration,
    /// Nothing is answered, and the connection is closed.
    pub hangs_up: bool,
    /// The connection is closed before the last chunk of the body.
    pub cut: bool,
}

impl Reply {
    /// That status, with an object.
    pub fn json(status: u16, body: Value) -> Self {
        Self::raw(status, body.to_string())
    }

    /// That status and body.
    pub fn raw(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let (head, after, drip) = (Vec::new(), Duration::ZERO, Duration::ZERO);
        Self { status, head, body: body.into(), after, drip, hangs_up: false, cut: false }
    }

    /// The same, but for its last chunk.
    pub fn cut(self) -> Self {
        Self { cut: true, ..self }
    }

    /// With a line of the head.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.head.push((name, value.into()));
        self
    }
}

/// What becomes so when a request was answered.
pub struct Then(Box<dyn FnOnce(&mut World) + Send>);

impl Then {
    /// That.
    pub fn is(what: impl FnOnce(&mut World) + Send + 'static) -> Self {
        Self(Box::new(what))
    }
}

impl std::fmt::Debug for Then {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Then(..)")
    }
}

/// What is so, and what is wrong.
#[derive(Debug)]
pub struct World {
    /// The machine.
    pub on: bool,
    falls: Option<Instant>,
    /// How long a fall takes.
    pub fall: Duration,
    sessions: BTreeMap<u32, Session>,
    next: u32,
    /// A new session gets the lowest number that is free, and none that no session had yet.
    pub reuses: bool,
    /// How many there may be.
    pub most_sessions: usize,
    /// `SessionTimeout` as it is said.
    pub session_timeout: u64,
    /// How long a session lives in truth.
    pub session_life: Duration,
    /// Whether there are sessions.
    pub has_sessions: bool,
    /// Its UUID.
    pub uuid: &'static str,
    /// Its serial number.
    pub serial: &'static str,
    /// `LastResetTime`.
    pub last_reset: Value,
    /// Its present time, in seconds of 2026-11-23; below an hour.
    pub now: u64,
    /// What the manager says besides.
    pub manager: Value,
    /// Where the system says that it is reset.
    pub reset_at: &'static str,
    /// Whether it is said at all.
    pub tells_reset: bool,
    /// `PowerRestorePolicy`; `None`: it has none.
    pub policy: Option<String>,
    /// What its board says elsewhere.
    pub board: Board,
    /// What a reset takes.
    pub allowed: Vec<&'static str>,
    /// Said in an ActionInfo rather than with the action.
    pub action_info: bool,
    /// Systems besides the one.
    pub others: Vec<&'static str>,
    /// What is said of power instead of the truth.
    pub says: Option<Value>,
    /// An off while it is off is refused.
    pub already_is_error: bool,
    /// Whether its tasks are listed.
    pub has_task_service: bool,
    /// The root shows a caller without a name where sessions are made, and no more.
    pub hides_from_strangers: bool,
    /// A reset is a task, of so long.
    pub task: Option<Duration>,
    tasks: Vec<Instant>,
    /// Nothing is answered.
    pub silent: bool,
    /// Each connection is closed after an answer.
    pub closes: bool,
    /// What no specification says.
    pub odd: Odd,
    /// A caller that it does not know gets half of the 401.
    pub cuts_refusals: bool,
    /// Each answer has a body, and the connection is closed before its last chunk.
    pub cuts: bool,
    /// Answers to the next requests whose line holds this text.
    pub script: VecDeque<(&'static str, Reply)>,
    /// The same, of requests that are carried out before.
    pub after: VecDeque<(&'static str, Reply)>,
    /// What becomes so once the next request whose line holds this text was answered, and before the answer is heard.
    pub then: VecDeque<(&'static str, Then)>,
    /// Requests whose line holds this text are answered so much later.
    pub slow: Option<(&'static str, Duration)>,
    /// It does one thing after another, on whichever connection that came, also for a client who left meanwhile.
    pub one_at_a_time: Option<Arc<Turn<()>>>,
    /// Requests that came, in order, with the answer's status.
    pub log: Vec<String>,
    /// The same, once their answers were on the way, and when that was.
    pub answered: Vec<(String, Instant)>,
    /// How many requests came that change something.
    pub commands: u64,
    /// How many connections were made.
    pub connections: u64,
    /// What was said of whoever asked, of each command: `token`, `basic`.
    pub shown: Vec<&'static str>,
    epoch: u64,
    /// They end now.
    ends: Arc<Notify>,
}

impl World {
    fn new() -> Self {
        Self {
            on: true,
            falls: None,
            fall: Duration::ZERO,
            sessions: BTreeMap::new(),
            next: 0,
            reuses: false,
            most_sessions: 8,
            session_timeout: 1_800,
            session_life: Duration::from_secs(1_800),
            has_sessions: true,
            uuid: "8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41",
            serial: " SN-0041 ",
            last_reset: json!("2026-11-22T01:00:00Z"),
            now: 0,
            manager: json!({}),
            reset_at: RESET,
            tells_reset: true,
            policy: Some("LastState".to_owned()),
            board: Board::default(),
            allowed: vec!["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PushPowerButton"],
            action_info: false,
            others: Vec::new(),
            says: None,
            already_is_error: false,
            has_task_service: false,
            hides_from_strangers: false,
            task: None,
            tasks: Vec::new(),
            silent: false,
            closes: false,
            odd: Odd::default(),
            cuts_refusals: false,
            cuts: false,
            script: VecDeque::new(),
            after: VecDeque::new(),
            then: VecDeque::new(),
            slow: None,
            one_at_a_time: None,
            log: Vec::new(),
            answered: Vec::new(),
            commands: 0,
            connections: 0,
            shown: Vec::new(),
            epoch: 0,
            ends: Arc::default(),
        }
    }

    fn settle(&mut self) {
        if self.falls.is_some_and(|at| Instant::now() >= at) {
            self.on = false;
            self.falls = None;
        }
        let life = self.session_life;
        self.sessions.retain(|_, session| session.used.elapsed() < life);
    }

    /// Somebody else's hand.
    pub fn set_power(&mut self, on: bool) {
        self.falls = None;
        self.on = on;
    }

    /// From now on the system says this identity of itself.
    pub fn says_of_itself(&mut self, uuid: &'static str, serial: &'static str) {
        (self.uuid, self.serial) = (uuid, serial);
    }

    /// The truth.
    pub fn is_on(&mut self) -> bool {
        self.settle();
        self.on
    }

    /// It restarts, with nothing kept.
    pub fn restart(&mut self, at: &str) {
        self.sessions.clear();
        self.last_reset = json!(at);
        self.drop_connections();
    }

    /// Lets every connection end, and nothing else.
    pub fn drop_connections(&mut self) {
        self.epoch += 1;
        self.ends.notify_waiters();
    }

    /// It does one thing after another from now on.
    pub fn does_one_thing_at_a_time(&mut self) {
        self.one_at_a_time = Some(Arc::default());
    }

    /// When the last answer to such a request was on its way.
    pub fn answered_at(&self, what: &str) -> Option<Instant> {
        self.answered.iter().rev().find(|(line, _)| line.contains(what)).map(|(_, at)| *at)
    }

    /// How many requests had this in their line.
    pub fn asked(&self, what: &str) -> usize {
        self.log.iter().filter(|line| line.contains(what)).count()
    }

    fn system(&mut self) -> Value {
        self.settle();
        let power = self.says.clone().unwrap_or(json!(if self.on { "On" } else { "Off" }));
        let mut reset = json!({ "target": self.reset_at });
        if self.action_info {
            reset["@Redfish.ActionInfo"] = json!(format!("{SYSTEM}/ResetActionInfo"));
        } else {
            reset["ResetType@Redfish.AllowableValues"] = json!(self.allowed);
        }
        let mut system = json!({
            "@odata.id": SYSTEM, "Id": "437", "UUID": self.uuid,
            "SerialNumber": self.serial, "PowerState": power,
            "Links": { "ManagedBy": [{ "@odata.id": MANAGER }] },
            "Actions": { "#ComputerSystem.Reset": reset },
        });
        if let Some(etag) = self.odd.etag.body {
            system["@odata.etag"] = json!(etag);
        }
        if let Some(policy) = &self.policy {
            system["PowerRestorePolicy"] = json!(policy);
        }
        self.board.tell(&mut system);
        system
    }

    fn reset(&mut self, body: &Value) -> Reply {
        let verb = body["ResetType"].as_str().unwrap_or_default();
        if !self.allowed.contains(&verb) {
            return Reply::json(400, json!({ "error": { "message": "not a value of ResetType" } }));
        }
        let conflict = Reply::json(409, json!({ "error": { "message": "already in that state" } }));
        match verb {
            "ForceOff" if !self.on && self.already_is_error => return conflict,
            "ForceOff" if self.fall.is_zero() => self.set_power(false),
            "ForceOff" => self.falls = self.on.then(|| Instant::now() + self.fall),
            "On" | "ForceOn" if self.on && self.already_is_error => return conflict,
            "On" | "ForceOn" => self.set_power(true),
            _ => {}
        }
        self.done()
    }

    /// At once, or as a task.
    fn done(&mut self) -> Reply {
        let Some(task) = self.task else { return Reply::raw(204, "") };
        self.tasks.push(Instant::now() + task);
        let monitor = format!("/redfish/v1/TaskService/TaskMonitors/{}", self.tasks.len() - 1);
        Reply::json(202, json!({ "TaskState": "New" })).with("Location", monitor)
    }

    /// The same, as its path is written everywhere else.
    fn plain(&self, request: &Asked) -> Asked {
        let path = match (&self.odd.slash, request.path.trim_end_matches('/')) {
            (None, _) => request.path.clone(),
            (_, "/redfish/v1") => "/redfish/v1/".to_owned(),
            (_, path) => path.to_owned(),
        };
        Asked { path, ..request.clone() }
    }

    fn answer(&mut self, request: &Asked) -> Reply {
        self.settle();
        if let Some(reply) = self.odd.redirects(&request.path) {
            return reply;
        }
        let request = &self.plain(request);
        let line = format!("{} {}", request.method, request.path);
        let is_reset = request.path == RESET && request.method == "POST";
        if is_reset || request.method == "PATCH" {
            self.commands += 1;
            self.shown.push(if request.token.is_some() { "token" } else { "basic" });
        }
        let mut reply = match self.script.iter().position(|(what, _)| line.contains(what)) {
            Some(at) => self.script.remove(at).expect("there").1,
            None => {
                let reply = self.carry_out(request);
                match self.after.iter().position(|(what, _)| line.contains(what)) {
                    Some(at) => self.after.remove(at).expect("there").1,
                    None => reply,
                }
            }
        };
        if let Some(at) = self.then.iter().position(|(what, _)| line.contains(what)) {
            let (_, Then(then)) = self.then.remove(at).expect("there");
            then(self);
        }
        if self.odd.packs {
            reply = odd::packed(reply);
        }
        reply.cut |= reply.status == 401 && self.cuts_refusals;
        if self.cuts {
            let bodied = if reply.body.is_empty() { Reply::raw(200, "{}") } else { reply };
            reply = bodied.cut();
        }
        if let Some((_, late)) = self.slow.filter(|(what, _)| line.contains(what)) {
            reply.after = late;
        }
        reply
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    token: Option<String>,
    basic: Option<String>,
    if_match: Option<String>,
    body: Value,
}
