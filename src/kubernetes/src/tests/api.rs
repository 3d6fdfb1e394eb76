//! An API server of a few lines: Nodes, read and patched as RFC 6902 says, each change another version, and others, which are read. What it
//! does not know is not there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tower::BoxError;

use crate::client::{self, AtAWord};
use crate::clock::ServerClock;

/// Where its namespace `kube-system` is.
pub const SYSTEM: &str = "/api/v1/namespaces/kube-system";
/// The UID of that.
pub const CLUSTER: &str = "3f0c6d4e-8a57-4a53-9f0e-0d6a3e9f2a11";

/// What it has.
#[derive(Debug, Default)]
pub struct Api {
    nodes: Mutex<BTreeMap<String, Value>>,
    /// What else there is, by its path.
    others: Mutex<BTreeMap<String, Value>>,
    failing: Mutex<String>,
    /// Pods and Nodes for whose changes a webhook that fails closed is asked, and does not answer.
    hooked: Mutex<Vec<String>>,
    /// The notes of Events that were made there.
    notes: Mutex<Vec<String>>,
    reports: Mutex<u32>,
    connects_in: Mutex<Duration>,
    /// Its clock is so many seconds ahead of ours.
    ahead: Mutex<i64>,
    changes: Mutex<Vec<String>>,
}

impl Api {
    /// One with these Nodes.
    pub fn of(nodes: impl IntoIterator<Item = Value>) -> Arc<Self> {
        Self::of_both(nodes, [])
    }

    /// One with these Nodes, and with these other objects, each by its path.
    pub fn of_both<'p>(
        nodes: impl IntoIterator<Item = Value>,
        others: impl IntoIterator<Item = (&'p str, Value)>,
    ) -> Arc<Self> {
        let name = |node: &Value| node["metadata"]["name"].as_str().expect("a name").to_owned();
        let nodes = nodes.into_iter().map(|node| (name(&node), node)).collect();
        let others = others.into_iter().map(|(path, object)| (path.to_owned(), object)).collect();
        Arc::new(Self { nodes: Mutex::new(nodes), others: Mutex::new(others), ..Self::default() })
    }

    /// One with these objects, each by its path, and no Node.
    pub fn with<'p>(others: impl IntoIterator<Item = (&'p str, Value)>) -> Arc<Self> {
        Self::of_both([], others)
    }

    /// What asks it.
    pub fn client(self: &Arc<Self>, clock: &Arc<ServerClock>) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<AtAWord>| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        Client::new(client::at_a_word(service, clock), "default")
    }

    /// From now on it refuses wherever a path ends like that. (After a fault of its own a client would be made anew.)
    pub fn fails(&self, end: &str) {
        end.clone_into(&mut self.failing.lock());
    }

    /// The notes of the Events that were made there so far.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().clone()
    }

    /// From now on a webhook that fails closed keeps it from changing these pods and Nodes.
    pub fn hooks(&self, names: &[String]) {
        names.clone_into(&mut self.hooked.lock());
    }

    /// So many of the next readings of one Node are out of date at once: its kubelet reports right after them.
    pub fn reports(&self, so_often: u32) {
        *self.reports.lock() = so_often;
    }

    /// From now on a connection to it takes so long.
    pub fn connects_in(&self, takes: Duration) {
        *self.connects_in.lock() = takes;
    }

    /// From now on its clock is so many seconds ahead.
    pub fn is_ahead(&self, seconds: i64) {
        *self.ahead.lock() = seconds;
    }

    /// From now on it has that Node.
    pub fn has(&self, node: Value) {
        let name = node["metadata"]["name"].as_str().expect("a name").to_owned();
        self.nodes.lock().insert(name, node);
    }

    /// From now on it has that object at that path.
    pub fn also(&self, path: &str, object: Value) {
        self.others.lock().insert(path.to_owned(), object);
    }

    /// From now on it does not have that.
    pub fn lacks(&self, path: &str) {
        self.others.lock().remove(path);
    }

    /// What it has below that path, each by its path.
    pub fn below(&self, path: &str) -> BTreeMap<String, Value> {
        let mut all = self.others.lock().clone();
        all.retain(|at, _| at.starts_with(path));
        all
    }

    /// What was to be changed there so far: each method and path.
    pub fn changes(&self) -> Vec<String> {
        self.changes.lock().clone()
    }

    /// A Node, as it is now.
    pub fn node(&self, name: &str) -> Value {
        self.nodes.lock()[name].clone()
    }

    /// The keys of a Node's taints.
    pub fn taints(&self, name: &str) -> Vec<String> {
        let node = self.node(name);
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints.map(|taint| taint["key"].as_str().unwrap_or_default().to_owned()).collect()
    }

    async fn answer(&self, request: Request<AtAWord>) -> Result<Response<Body>, BoxError> {
        let connects_in = *self.connects_in.lock();
        tokio::time::sleep(connects_in).await;
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        if head.method != Method::GET {
            self.changes.lock().push(format!("{} {}", head.method, head.uri.path()));
        }
        let (code, answer) = self.said(&head.method, head.uri.path(), &body);
        let answer = match code {
            200 | 201 => answer,
            404 => {
                let name = head.uri.path().rsplit('/').next().unwrap_or_default();
                json!({
                    "kind": "Status", "status": "Failure", "message": answer, "reason": "NotFound", "code": code,
                    "details": { "name": name },
                })
            }
            _ => {
                json!({ "kind": "Status", "status": "Failure", "message": answer, "reason": "", "code": code })
            }
        };
        let code = StatusCode::from_u16(code).expect("a code");
        let at = OffsetDateTime::now_utc() + time::Duration::seconds(*self.ahead.lock());
        let date = at.format(&Rfc2822)?.replace("+0000", "GMT");
        let answered = Response::builder().status(code).header(http::header::DATE, date);
        Ok(answered.body(Body::from(answer.to_string().into_bytes()))?)
    }

    fn said(&self, method: &Method, path: &str, body: &[u8]) -> (u16, Value) {
        let failing = self.failing.lock().clone();
        if !failing.is_empty() && path.ends_with(&format!("/{failing}")) {
            return (403, json!("it is forbidden"));
        }
        let hooked = self.hooked.lock().clone();
        let is_hooked =
            |name: &String| ["pods", "nodes"].iter().any(|kind| path.contains(&format!("/{kind}/{name}")));
        if path.ends_with("/events") {
            let event: Value = serde_json::from_slice(body).expect("an Event");
            self.notes.lock().push(event["note"].as_str().unwrap_or_default().to_owned());
            return (200, event);
        }
        if *method != Method::GET && hooked.iter().any(is_hooked) {
            let why = "Internal error occurred: failed calling webhook \"guard.example.org\": failed to call webhook: \
                       Post \"https://guard.default.svc:443/check?timeout=10s\": no endpoints available for service \"guard\"";
            return (500, json!(why));
        }
        let mut nodes = self.nodes.lock();
        let mut others = self.others.lock();
        match path.strip_prefix("/api/v1/nodes/") {
            Some(name) => match nodes.get_mut(name) {
                None => (404, json!("no such Node")),
                Some(node) if method == Method::PATCH => patched(node, body),
                Some(node) => {
                    let read = node.clone();
                    let mut reports = self.reports.lock();
                    if let Some(fewer) = reports.checked_sub(1) {
                        *reports = fewer;
                        anew(node);
                    }
                    (200, read)
                }
            },
            None if path == "/api/v1/nodes" => (200, json!({ "items": nodes.values().collect::<Vec<_>>() })),
            None if path == SYSTEM && !others.contains_key(SYSTEM) => {
                (200, json!({ "metadata": { "name": "kube-system", "uid": CLUSTER } }))
            }
            None if path.contains("/networkfences") => of_network_fences(method, path, body, &mut others),
            None => match others.get(path) {
                Some(object) => (200, object.clone()),
                None if ["pods", "volumeattachments", "csinodes", "csidrivers"]
                    .contains(&path.rsplit('/').next().unwrap_or_default()) =>
                {
                    (200, json!({ "items": [] }))
                }
                None => (404, json!("not here")),
            },
        }
    }
}

/// They are made, listed and deleted, each by its name.
fn of_network_fences(
    method: &Method,
    path: &str,
    body: &[u8],
    others: &mut BTreeMap<String, Value>,
) -> (u16, Value) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match *method {
        Method::POST => {
            let at = format!("{path}/{}", body["metadata"]["name"].as_str().expect("a name"));
            if others.contains_key(&at) {
                return (409, json!("it is there"));
            }
            let mut made = body;
            made["metadata"]["uid"] = json!(format!("u-{}", others.len()));
            others.insert(at, made.clone());
            (201, made)
        }
        Method::DELETE => match others.get(path) {
            Some(found) if found["metadata"]["uid"] != body["preconditions"]["uid"] => {
                (409, json!("another"))
            }
            Some(_) => (200, others.remove(path).unwrap_or_default()),
            None => (404, json!("not here")),
        },
        _ => {
            let all = others.iter().filter(|(at, _)| at.starts_with(&format!("{path}/")));
            (200, json!({ "items": all.map(|(_, one)| one).collect::<Vec<_>>() }))
        }
    }
}

fn patched(node: &mut Value, body: &[u8]) -> (u16, Value) {
    let patch: json_patch::Patch = serde_json::from_slice(body).expect("a JSON patch");
    if let Err(error) = json_patch::patch(node, &patch) {
        return (422, json!(error.to_string()));
    }
    anew(node);
    (200, node.clone())
}

/// It was changed.
fn anew(node: &mut Value) {
    let version: u64 =
        node["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number");
    node["metadata"]["resourceVersion"] = json!((version + 1).to_string());
}
