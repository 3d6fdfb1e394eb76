//! As much of Compute Engine as the driver asks for, on a socket, with a clock of its own: it takes no token whose time is over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use picket_cloud::fakes::{self, header};
use reqwest::Url;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};

pub(super) const ZONE: &str = "europe-west1-b";
pub(super) const PROJECT: &str = "p-1";

/// What goes wrong with the next request of a method.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// It is refused, with this status, this reason and these words.
    Refuse(u16, &'static str, &'static str),
    /// It is done, and no answer comes.
    Lose,
    /// It is lost on its way, and nothing is done.
    Drop,
    /// It is done, and what is answered makes no sense.
    Garble,
    /// It is answered with half of a sentence.
    Cut,
    /// It is answered with this, and nothing is done.
    Say(u16, &'static str),
    /// It is refused in its own words.
    Echo,
    /// It is done and answered, and right after that this happens.
    Then(fn(&mut World)),
}

/// An instance.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) status: &'static str,
    /// Disks by device; the first one is the boot disk.
    pub(super) disks: Vec<(String, String)>,
    pub(super) has_ssd: bool,
    /// A command that changes its power only begins.
    pub(super) lasts: bool,
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) target: String,
    pub(super) request: String,
    pub(super) inserted: i64,
    pub(super) done: bool,
    pub(super) error: Option<&'static str>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct RequestRecord {
    /// `instances.stop`, or the path of what is not Compute Engine's.
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) head: String,
    pub(super) body: String,
}

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) now: i64,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) disks: BTreeMap<String, Value>,
    pub(super) operations: Vec<Op>,
    pub(super) log: Vec<RequestRecord>,
    pub(super) faults: VecDeque<(&'static str, Fault)>,
    /// Tokens that were given, and until when each is taken.
    pub(super) tokens: BTreeMap<String, i64>,
    pub(super) life: Option<i64>,
    /// How many a page has.
    pub(super) page: usize,
}

/// It answers until the test is over.
#[derive(Clone, Debug)]
pub(super) struct Compute {
    pub(super) endpoint: String,
    pub(super) world: Arc<Mutex<World>>,
}

impl Compute {
    pub(super) async fn start(ids: impl IntoIterator<Item = String>) -> Self {
        let machine = |id: &String| Machine {
            name: format!("vm-{id}"),
            status: "RUNNING",
            disks: [("boot", "boot"), ("data", "data")]
                .map(|(at, disk)| (at.to_owned(), format!("{disk}-{id}")))
                .into(),
            has_ssd: false,
            lasts: false,
        };
        let machines: BTreeMap<_, _> = ids.into_iter().map(|id| (id.clone(), machine(&id))).collect();
        // Not the time of this machine: nothing shall depend on that.
        let world = World { now: 2_000_000_000, machines, life: Some(3_600), page: 500, ..World::default() };
        let world = Arc::new(Mutex::new(world));
        let served = world.clone();
        let endpoint = fakes::serve(move |head, body| answer(&served, head, body)).await;
        Self { endpoint, world }
    }

    pub(super) fn with<T>(&self, of: impl FnOnce(&mut World) -> T) -> T {
        of(&mut self.world.lock())
    }

    pub(super) fn fail(&self, method: &'static str, fault: Fault) {
        self.with(|world| world.faults.push_back((method, fault)));
    }

    /// What came of that method.
    pub(super) fn heard(&self, method: &str) -> Vec<RequestRecord> {
        self.with(|world| world.log.iter().filter(|heard| heard.method == method).cloned().collect())
    }

    pub(super) fn machine<T>(&self, id: &str, of: impl FnOnce(&mut Machine) -> T) -> T {
        self.with(|world| of(world.machines.get_mut(id).expect("there")))
    }

    pub(super) fn status(&self, id: &str) -> &'static str {
        self.machine(id, |machine| machine.status)
    }
}

fn answer(world: &Mutex<World>, head: String, body: String) -> Option<String> {
    let mut world = world.lock();
    let told = world.answer(head, body);
    let date = at(world.now).format(&Rfc2822).expect("a date").replace("+0000", "GMT");
    let (status, text) = told?;
    let head = format!("HTTP/1.1 {status} X\r\nDate: {date}\r\nMetadata-Flavor: Google");
    Some(format!("{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len()))
}

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).expect("a time")
}

fn refusal(status: u16, reason: &str, message: &str) -> (u16, Value) {
    let errors = json!([{ "domain": "global", "reason": reason, "message": message }]);
    (status, json!({ "error": { "code": status, "message": message, "errors": errors } }))
}

fn link(rest: &str) -> String {
    format!("https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/{ZONE}/{rest}")
}

impl World {
    fn answer(&mut self, head: String, body: String) -> Option<(u16, String)> {
        let mut words = head.split(' ');
        let (verb, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let url = Url::parse(&format!("http://x{target}")).ok()?;
        let query: BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        let zonal = format!("/compute/v1/projects/{PROJECT}/zones/{ZONE}/");
        let parts: Vec<String> =
            url.path().strip_prefix(&zonal).unwrap_or_default().split('/').map(str::to_owned).collect();
        let method = match (verb.as_str(), parts.as_slice()) {
            (_, [none]) if none.is_empty() => url.path().to_owned(),
            ("GET", [kind]) if kind == "operations" => "zoneOperations.list".to_owned(),
            ("GET", [kind, _]) if kind == "operations" => "zoneOperations.get".to_owned(),
            ("GET", [kind]) => format!("{kind}.list"),
            ("GET", [kind, _]) => format!("{kind}.get"),
            (_, [kind, _, verb]) => format!("{kind}.{verb}"),
            _ => "nothing".to_owned(),
        };
        let heard = RequestRecord { method: method.clone(), path: url.path().to_owned(), query, head, body };
        self.log.push(heard.clone());
        let fault = match self.faults.front() {
            Some((of, _)) if *of == method => self.faults.pop_front().map(|(_, fault)| fault),
            _ => None,
        };
        match fault {
            Some(Fault::Refuse(status, reason, message)) => {
                return Some((status, refusal(status, reason, message).1.to_string()));
            }
            Some(Fault::Drop) => return None,
            Some(Fault::Echo) => return Some((400, format!("{{\"error\":{:?}}}", heard.body))),
            Some(Fault::Say(status, text)) => return Some((status, text.to_owned())),
            _ => {}
        }
        let (status, value) = self.perform(&heard, &parts);
        let text = value.to_string();
        if let Some(Fault::Then(happens)) = fault {
            happens(self);
        }
        match fault {
            Some(Fault::Lose) => None,
            Some(Fault::Garble) => Some((200, "<html>hello</html>".to_owned())),
            Some(Fault::Cut) => Some((200, text[..text.len() / 2].to_owned())),
            _ => Some((status, text)),
        }
    }

    fn token(&mut self) -> String {
        let token = format!("hunter2-{}", self.tokens.len());
        self.tokens.insert(token.clone(), self.now + self.life.unwrap_or(3_600));
        token
    }

    fn perform(&mut self, heard: &RequestRecord, parts: &[String]) -> (u16, Value) {
        match heard.method.as_str() {
            "/impersonate" => {
                let token = self.token();
                let end = at(self.tokens[&token]).format(&Rfc3339).expect("a time");
                return (200, json!({ "accessToken": token, "expireTime": end }));
            }
            path if path.starts_with('/') => {
                let mut told = json!({ "access_token": self.token(), "token_type": "Bearer" });
                if let Some(life) = self.life {
                    told["expires_in"] = life.into();
                }
                return (200, told);
            }
            _ => {}
        }
        let bearer = header(&heard.head, "authorization").and_then(|text| text.strip_prefix("Bearer "));
        if bearer.and_then(|token| self.tokens.get(token)).is_none_or(|end| *end <= self.now) {
            return refusal(401, "authError", "Invalid Credentials");
        }
        let name = parts.get(1).cloned().unwrap_or_default();
        match heard.method.as_str() {
            "instances.list" => self.listed(heard),
            "zoneOperations.list" => self.operations(heard),
            "zoneOperations.get" => match self.operations.iter().find(|op| op.name == name) {
                Some(op) => (200, op.told()),
                None => refusal(404, "notFound", "The resource was not found"),
            },
            "disks.get" => match self.disks.get(&name) {
                Some(disk) => (200, disk.clone()),
                None => (
                    200,
                    json!({ "name": name, "status": "READY", "labels": { "of": "a test" }, "users": self.users(&name) }),
                ),
            },
            method => {
                let by_name =
                    self.machines.iter().find(|(_, machine)| machine.name == name).map(|(id, _)| id.clone());
                let id = by_name.unwrap_or(name);
                if !self.machines.contains_key(&id) {
                    let words = format!(
                        "The resource 'projects/{PROJECT}/zones/{ZONE}/instances/{id}' was not found"
                    );
                    return refusal(404, "notFound", &words);
                }
                match method.strip_prefix("instances.") {
                    Some("get") => (200, self.machines[&id].told(&id)),
                    Some(verb) => self.command(verb, &id, heard),
                    None => refusal(501, "notImplemented", "no such method"),
                }
            }
        }
    }

    fn users(&self, disk: &str) -> Vec<String> {
        let has = |machine: &&Machine| machine.disks.iter().any(|(_, name)| name == disk);
        self.machines
            .values()
            .filter(has)
            .map(|machine| link(&format!("instances/{}", machine.name)))
            .collect()
    }

    fn paged(&self, kind: &str, all: Vec<Value>, heard: &RequestRecord) -> (u16, Value) {
        let from = heard.query.get("pageToken").and_then(|text| text.parse().ok()).unwrap_or(0);
        let items: Vec<Value> = all.iter().skip(from).take(self.page).cloned().collect();
        let mut told = json!({ "kind": kind });
        if !items.is_empty() {
            told["items"] = items.into();
        }
        if all.len() > from + self.page {
            told["nextPageToken"] = (from + self.page).to_string().into();
        }
        (200, told)
    }

    fn listed(&self, heard: &RequestRecord) -> (u16, Value) {
        let wanted: Vec<&str> = heard.query["filter"]
            .split(" OR ")
            .map(|one| one.trim_matches(|c: char| !c.is_ascii_digit()))
            .collect();
        let fits =
            |(id, machine): (&String, &Machine)| wanted.contains(&id.as_str()).then(|| machine.told(id));
        self.paged("compute#instanceList", self.machines.iter().filter_map(fits).collect(), heard)
    }

    fn operations(&self, heard: &RequestRecord) -> (u16, Value) {
        let filter = &heard.query["filter"];
        let fits = |op: &&Op| match filter.split('"').collect::<Vec<_>>()[..] {
            ["status != ", "DONE", ..] => !op.done,
            ["clientOperationId = ", request, ..] => op.request == request,
            ["(name = ", ..] => filter.contains(&format!("{:?}", op.name)),
            _ => panic!("an unknown filter: {filter}"),
        };
        self.paged(
            "compute#operationList",
            self.operations.iter().filter(fits).map(Op::told).collect(),
            heard,
        )
    }

    fn command(&mut self, verb: &str, id: &str, heard: &RequestRecord) -> (u16, Value) {
        let request = heard.query["requestId"].clone();
        if let Some(op) = self.operations.iter().find(|op| op.request == request) {
            return (200, op.told());
        }
        if self.operations.iter().any(|op| op.target == id && !op.done && op.kind != "detachDisk") {
            return refusal(400, "resourceNotReady", "The resource is not ready");
        }
        let machine = self.machines.get_mut(id).expect("there");
        let lasts = machine.lasts;
        match verb {
            "stop" => machine.status = if lasts { "STOPPING" } else { "TERMINATED" },
            "start" => machine.status = if lasts { "STAGING" } else { "RUNNING" },
            "detachDisk" => machine.disks.retain(|(device, _)| *device != heard.query["deviceName"]),
            _ => {}
        }
        let (name, inserted) = (format!("operation-{}", self.operations.len()), self.now);
        let (kind, target) = (verb.to_owned(), id.to_owned());
        let op = Op { name, kind, target, request, inserted, done: !lasts, error: None };
        let told = op.told();
        self.operations.push(op);
        (200, told)
    }
}

impl Machine {
    fn told(&self, id: &str) -> Value {
        let disk = |(at, (device, name)): (usize, &(String, String))| json!({ "deviceName": device, "source": link(&format!("disks/{name}")), "type": "PERSISTENT", "boot": at == 0 });
        let mut disks: Vec<Value> = self.disks.iter().enumerate().map(disk).collect();
        if self.has_ssd {
            disks.push(json!({ "deviceName": "local-ssd-0", "type": "SCRATCH" }));
        }
        json!({ "id": id, "name": self.name, "status": self.status, "disks": disks })
    }
}

impl Op {
    fn told(&self) -> Value {
        let inserted = at(self.inserted).format(&Rfc3339).expect("a time");
        let status = if self.done { "DONE" } else { "RUNNING" };
        let mut told = json!({
            "name": self.name, "operationType": self.kind, "targetId": self.target, "clientOperationId": self.request,
            "status": status, "insertTime": inserted,
        });
        if let Some(code) = self.error {
            told["error"] = json!({ "errors": [{ "code": code, "message": "it came to nothing" }] });
        }
        told
    }
}
