//! A BMC that speaks Redfish (DSP0266 1.20), without any I/O: a request in, an answer out.
//!
//! # Invariants
//!
//! - Power, hold and identity are the world's. A session that the world does not know any more is none.
//!   Shown by `sessions_are_few_idle_out_and_are_lost_with_a_restart`.
//! - Tables are bounded: sessions by the world's device, tasks by `task::TASKS`.

mod power;
mod resources;
pub(crate) mod server;
mod session;
mod task;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_core::time::{BootTime, WallTime};
use picket_driver_sim::{Fault, Random, SessionId, Trouble, World};
use serde_json::{Value, json};

use crate::account::{Account, Role};
use session::Session;
use task::Task;

/// What a BMC is like.
#[derive(Clone, Debug)]
pub struct RedfishOptions {
    /// The world's machine that it controls.
    pub machine: String,
    /// The world's device that it is.
    pub device: String,
    /// Who may log in.
    pub accounts: Arc<[Account]>,
    /// A reset answers 202 and a task, and not 204.
    pub tasks: bool,
    /// The wall clock's word at the world's beginning.
    pub began: WallTime,
}

/// A request, as far as it matters.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Without a query.
    pub path: String,
    /// Header fields with their names in lower case; the last one of a name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// Whether it says who asks, rightly or wrongly.
    fn has_credentials(&self) -> bool {
        ["x-auth-token", "authorization"].iter().any(|name| self.headers.contains_key(*name))
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<(&'static str, String)>,
    /// The body; nothing where it is null.
    pub body: Value,
    /// How much later than usual it comes.
    pub late: Duration,
}

/// No answer at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence;

/// One BMC's state beside what the world knows of it.
#[derive(Debug)]
pub struct RedfishBmc {
    options: RedfishOptions,
    random: Random,
    sessions: BTreeMap<String, Session>,
    tasks: BTreeMap<u64, Task>,
    last_task: u64,
    /// What a reset takes.
    pub(crate) offered: Vec<&'static str>,
    /// Requests by tokens that it does not know (any more).
    pub(crate) turned_away: u64,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// In a session.
    Session(SessionId),
    /// With credentials of its own (basic authentication).
    Alone,
}

type Handled = Result<Answer, Silence>;

impl Answer {
    fn ok(body: Value) -> Self {
        Self { status: 200, body, ..Self::default() }
    }

    fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// An error's body (DSP0266 §8.6), with a message of the Base registry.
    fn error(status: u16, message: &str, words: impl Into<String>) -> Self {
        let (id, words) = (format!("Base.1.8.{message}"), words.into());
        let extended = json!([{"MessageId": id, "Message": words, "Severity": "Critical"}]);
        let body = json!({"error": {"code": id, "message": words, "@Message.ExtendedInfo": extended}});
        Self { status, body, ..Self::default() }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// What a trouble is in HTTP.
    fn trouble(trouble: Trouble) -> Handled {
        Ok(match trouble {
            Trouble::Silence => return Err(Silence),
            Trouble::NoSession | Trouble::Password => Self::unauthorized(),
            Trouble::SessionsFull => {
                Self::error(503, "SessionLimitExceeded", "All sessions are taken.").with("Retry-After", "30")
            }
            Trouble::Busy => {
                Self::error(503, "ServiceTemporarilyUnavailable", "Busy; try again in 1 seconds.")
                    .with("Retry-After", "1")
            }
            Trouble::AlreadySo => Self::error(409, "NoOperation", "It is in that state already."),
            Trouble::Refused => Self::error(500, "InternalError", "The request failed."),
            Trouble::Forbidden => Self::error(403, "InsufficientPrivilege", "The account may not do this."),
            Trouble::Unsupported => Self::error(400, "PropertyUnknown", "There is no such property."),
        })
    }

    fn unauthorized() -> Self {
        Self::error(401, "NoValidSession", "There is no valid session, and no valid credentials.")
            .with("WWW-Authenticate", "Basic realm=\"simulated\"")
    }
}

/// Who may ask that at the least, by the standard roles and the privilege registry (DSP0266 §13.2.5, §13.4; ComputerSystem wants
/// ConfigureComponents, Manager ConfigureManager): ReadOnly looks, Operator switches power, Administrator restarts the BMC.
fn least(method: &str, path: &[&str]) -> Role {
    match (method, path) {
        ("POST", ["Managers", ..]) => Role::Administrator,
        ("POST" | "PATCH", ["Systems", ..]) => Role::Operator,
        _ => Role::User,
    }
}

impl RedfishBmc {
    /// A BMC; `seed` decides its tokens, which are no secrets: nothing here is safe.
    pub fn new(options: RedfishOptions, seed: u64) -> Self {
        let random = Random::new(seed ^ 0x7265_6466_6973_6821);
        Self {
            options,
            random,
            sessions: BTreeMap::new(),
            tasks: BTreeMap::new(),
            last_task: 0,
            offered: power::RESET_TYPES.to_vec(),
            turned_away: 0,
        }
    }

    /// The device of the world that it is.
    pub fn device(&self) -> &str {
        &self.options.device
    }

    /// What it answers to a request that arrived at `now`.
    ///
    /// # Errors
    /// It answers nothing.
    pub fn handle(&mut self, now: BootTime, world: &mut World, request: &Request) -> Handled {
        if world.is_silent(&self.options.device, now) {
            return Err(Silence);
        }
        self.reap(world, now);
        let suffers = |fault| world.suffers(&self.options.device, &fault);
        if suffers(Fault::Starting) {
            return Ok(Answer::error(503, "ServiceInUnknownState", "The service is starting.")
                .with("Retry-After", "5"));
        }
        if suffers(Fault::Redirects) && !request.path.ends_with('/') {
            return Ok(Answer::empty(308).with("Location", format!("{}/", request.path)));
        }
        let is_empty = suffers(Fault::NamesNoSystem);
        let (hides, refuses) = (suffers(Fault::HidesLinks), suffers(Fault::RootRefused));
        let path: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        let method = request.method.as_str();
        match (method, path.as_slice()) {
            ("GET" | "HEAD", ["redfish"]) => return Ok(Answer::ok(json!({"v1": "/redfish/v1/"}))),
            ("GET" | "HEAD", ["redfish", "v1"]) => {
                let is_stranger = !request.has_credentials();
                let knows = if is_stranger { refuses } else { hides || refuses };
                if knows && let Err(refused) = self.who(now, world, request) {
                    return refused;
                }
                return Ok(resources::tagged(request, self.root(world, hides && is_stranger)));
            }
            ("POST", ["redfish", "v1", "SessionService", "Sessions"]) => {
                return self.log_in(now, world, &request.body);
            }
            _ => {}
        }
        let caller = match self.who(now, world, request) {
            Ok(caller) => caller,
            Err(refused) => return refused,
        };
        let ["redfish", "v1", rest @ ..] = path.as_slice() else { return Ok(resources::not_found()) };
        if self.role(request) < least(method, rest) {
            let words = "The account or credentials do not have the privileges for this.";
            return Ok(Answer::error(403, "InsufficientPrivilege", words));
        }
        match (method, rest) {
            ("GET" | "HEAD", ["Systems", "1"]) => Ok(match self.system(now, world, caller) {
                Ok(system) => self.version(world).tagged(request, system),
                Err(trouble) => return Answer::trouble(trouble),
            }),
            ("PATCH", ["Systems", "1"]) => self.patch_system(now, world, caller, request),
            ("POST", ["Systems", "1", "Actions", "ComputerSystem.Reset"]) => {
                self.reset(now, world, caller, &request.body)
            }
            ("POST", ["Managers", "1", "Actions", "Manager.Reset"]) => Ok(self.restart(now, world)),
            ("DELETE", ["SessionService", "Sessions", id]) => self.log_out(now, world, id),
            ("GET" | "HEAD", ["TaskService", "TaskMonitors", id]) => Ok(self.monitor(now, id)),
            ("GET" | "HEAD", ["Systems"]) if is_empty => Ok(Answer::ok(
                json!({"@odata.id": "/redfish/v1/Systems", "Members": [], "Members@odata.count": 0}),
            )),
            ("GET" | "HEAD", path) => Ok(match self.resource(now, world, path) {
                Some(resource) => resources::tagged(request, resource),
                None => resources::not_found(),
            }),
            (_, path) if self.resource(now, world, path).is_some() || *path == ["Systems", "1"] => {
                Ok(Answer::error(405, "OperationNotAllowed", "This resource does not allow that.")
                    .with("Allow", "GET, HEAD"))
            }
            _ => Ok(resources::not_found()),
        }
    }

    /// Asks the world for this caller.
    fn ask(
        &self,
        now: BootTime,
        world: &mut World,
        caller: Caller,
        asked: &picket_driver_sim::Request,
    ) -> Result<picket_driver_sim::Response, Trouble> {
        match caller {
            Caller::Session(id) => world.hand(now, &self.options.device, Some(id), asked),
            Caller::Alone => world.hand_alone(now, &self.options.device, asked),
        }
    }

    /// A moment of the world, for people.
    fn wall(&self, at: BootTime) -> WallTime {
        self.options.began.after(at.since_boot())
    }
}

#[cfg(test)]
mod tests;
