//! A Keystone and a Nova on a socket of this machine, for tests of the driver: each question is answered by the test.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_cloud::fakes;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, DriverError, PowerDriver};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cloud::{self, Cloud};
use crate::driver::OpenstackDriver;
use crate::settings::Settings;

pub(crate) const SERVER: &str = "5a1bd2c8-1111-4222-8333-444455556666";
/// The token that Keystone gives.
pub(crate) const TOKEN: &str = "gAAAA-hunter2";
/// The user whose token it is.
pub(crate) const USER: &str = "u1";
const FORBIDDEN: &str = "forbidden";
const CONFLICT: &str = "conflictingRequest";
const TAKEN: &str = "taken";

/// The answer to a path with its query, or, of what is no question, to method, path and body; `None`: 404. One of [`forbidden`] is a 403, one
/// of [`conflict`] a 409.
type Answers = Box<dyn FnMut(&str) -> Option<Value> + Send>;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn boot(&self) -> BootTime {
        BootTime::default()
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(Still)
}

pub(crate) fn reading() -> Call {
    // The bound of a machine that stands still: nothing here waits for it.
    Call::reading(Instant::now() + Duration::from_secs(30), clock())
}

/// The server as Nova shows it when it was stopped on compute-7, and that host is up.
pub(crate) fn stopped() -> Value {
    json!({
        "id": SERVER, "status": "SHUTOFF", "OS-EXT-STS:task_state": null, "OS-EXT-STS:power_state": 4, "host_status": "UP",
        "OS-EXT-SRV-ATTR:host": "compute-7", "OS-EXT-SRV-ATTR:hypervisor_hostname": "compute-7",
    })
}

/// What Nova answers to a question for the server's actions, of which these are all, newest first; `None`: it is another question.
pub(crate) fn actions(path: &str, all: &[Value]) -> Option<Option<Value>> {
    let rest = path.strip_prefix(&format!("/servers/{SERVER}/os-instance-actions"))?;
    Some(match rest.strip_prefix('/') {
        Some(request) => {
            let one = all.iter().find(|action| action["request_id"] == request);
            one.map(|one| json!({ "instanceAction": one }))
        }
        None => Some(json!({ "instanceActions": all })),
    })
}

/// An action that was asked for then, a time of one day, with its steps: the name, the result, the host, and when it began and ended.
/// Without a result it has not ended.
pub(crate) fn action(name: &str, request: &str, at: &str, steps: &[EventRow]) -> Value {
    let time = |at: &str| format!("2026-11-22T{at}.000000");
    let step = |(event, result, host, began, ended): &EventRow| {
        json!({
            "event": event, "result": result, "hostId": host, "start_time": time(began),
            "finish_time": result.map(|_| time(ended)),
        })
    };
    let steps: Vec<Value> = steps.iter().map(step).collect();
    json!({ "action": name, "request_id": request, "user_id": USER, "start_time": time(at), "events": steps })
}

pub(crate) type EventRow = (&'static str, Option<&'static str>, &'static str, &'static str, &'static str);

/// What Nova says where its policy does not let this user do something (Compute API, Faults).
pub(crate) fn forbidden(policy: &str) -> Value {
    json!({ FORBIDDEN: { "code": 403, "message": format!("Policy doesn't allow {policy} to be performed.") } })
}

/// What Nova says where a server is not in a state in which it does that (`InstanceInvalidState`).
pub(crate) fn wrong_state(state: &str) -> Value {
    conflict(&format!("Cannot 'stop' instance {SERVER} while it is in vm_state {state}"))
}

/// What Nova says where a command cannot be done as the server is, in those words.
pub(crate) fn conflict(message: &str) -> Value {
    json!({ CONFLICT: { "code": 409, "message": message } })
}

/// Nova takes a command, and calls it so.
pub(crate) fn taken(request: &str) -> Value {
    json!({ TAKEN: request })
}

/// What becomes of an off of that server that is refused, as a gateway asks for it: after power was read.
pub(crate) async fn refused_off(driver: &OpenstackDriver, within: Duration) -> DriverError {
    let clock = clock();
    let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
    let call = Call::control(Instant::now() + within, clock, orders.permit());
    // What comes before an off, and leaves a token.
    let _ = driver.read_power(&call).await;
    driver.power_off(&orders.off().await.expect("an order"), &call).await.expect_err("it is refused")
}

/// The driver of a server of that Nova, logged in with that role.
pub(crate) async fn driver(
    role: &str,
    answers: impl FnMut(&str) -> Option<Value> + Send + 'static,
) -> OpenstackDriver {
    let gate = Arc::new(Notify::new());
    gate.notify_one();
    driver_that_waits(role, gate, answers).await
}

/// The same, where the first command that Nova [takes](taken) is answered once the gate opens.
pub(crate) async fn driver_that_waits(
    role: &str,
    gate: Arc<Notify>,
    answers: impl FnMut(&str) -> Option<Value> + Send + 'static,
) -> OpenstackDriver {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = format!("http://{}", listener.local_addr().expect("an address"));
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("clouds.yaml");
    let text = format!(
        "clouds:\n  c:\n    auth:\n      auth_url: {place}/v3\n      user_id: {USER}\n      password: pw\n      project_id: p1\n"
    );
    std::fs::write(&file, text).expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("closed to others");
    let cloud = Cloud::new(cloud::read(&file, "c", None).expect("good settings")).expect("a cloud");
    let catalog: Vec<Value> = ["compute", "block-storage"]
        .map(|kind| {
            let endpoint = json!({ "interface": "public", "region": "one", "url": format!("{place}/v2.1") });
            json!({ "type": kind, "endpoints": [endpoint] })
        })
        .to_vec();
    let token = json!({ "token": {
        "issued_at": "2026-11-22T14:00:00.000000Z", "expires_at": "2026-11-22T15:00:00.000000Z",
        "user": { "id": USER }, "project": { "id": "p1" }, "roles": [{ "name": role }],
        "catalog": catalog,
    } });
    let answers: Arc<Mutex<Answers>> = Arc::new(Mutex::new(Box::new(answers)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, token.clone(), answers.clone(), gate.clone()));
        }
    });
    let settings = Settings {
        server: SERVER.to_owned(),
        cloud: "c".to_owned(),
        clouds_file: file,
        region: None,
        hold: false,
    };
    OpenstackDriver::new(settings, Arc::new(cloud))
}

/// One request, and the end of its connection.
async fn serve(mut stream: TcpStream, token: Value, answers: Arc<Mutex<Answers>>, gate: Arc<Notify>) {
    let Some((head, body)) = fakes::request(&mut stream).await else { return };
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let answer = match path.strip_prefix("/v2.1") {
        None => Some(token),
        Some("/") => Some(json!({ "version": { "version": "2.96", "min_version": "2.1" } })),
        Some(path) => {
            let asked = if method == "GET" { path.to_owned() } else { format!("{method} {path} {body}") };
            answers.lock()(&asked)
        }
    };
    let request = answer.as_ref().and_then(|answer| answer[TAKEN].as_str()).map(str::to_owned);
    if request.is_some() {
        gate.notified().await;
    }
    let named = request.map(|request| format!("X-OpenStack-Request-Id: {request}\r\n")).unwrap_or_default();
    let created = format!("201 Created\r\nX-Subject-Token: {TOKEN}");
    let status: &str = match (&answer, head.starts_with("POST /v3/")) {
        (None, _) => "404 Not Found",
        (Some(answer), _) if answer.get(FORBIDDEN).is_some() => "403 Forbidden",
        (Some(answer), _) if answer.get(CONFLICT).is_some() => "409 Conflict",
        (Some(_), true) => &created,
        (Some(_), false) if head.starts_with("POST ") => "202 Accepted",
        (Some(_), false) => "200 OK",
    };
    let body = answer.unwrap_or_else(|| json!({})).to_string();
    let text = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\n{named}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(text.as_bytes()).await;
}
