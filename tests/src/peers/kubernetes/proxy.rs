//! Asking the API without a program for each question: one `kubectl proxy` asks for all, over connections that it keeps. A kubectl takes a
//! tenth of a second of a processor, and tests that wait ask ten times a second.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::super::{Place, Process, eventually};
use crate::error::{PeerError, Result};

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Where the API has what tests ask for, and whether it lies in namespaces.
const RESOURCES: [(&str, &str, bool); 13] = [
    ("namespace", "api/v1", false),
    ("node", "api/v1", false),
    ("pod", "api/v1", true),
    ("persistentvolumeclaim", "api/v1", true),
    ("persistentvolume", "api/v1", false),
    ("lease", "apis/coordination.k8s.io/v1", true),
    ("statefulset", "apis/apps/v1", true),
    ("csinode", "apis/storage.k8s.io/v1", false),
    ("volumeattachment", "apis/storage.k8s.io/v1", false),
    ("events.events.k8s.io", "apis/events.k8s.io/v1", true),
    ("fencingpolicy", "apis/picket.dev/v1alpha1", false),
    ("picketremediation", "apis/picket.dev/v1alpha1", true),
    ("picketremediationtemplate", "apis/picket.dev/v1alpha1", true),
];

/// As who may do everything.
#[derive(Debug)]
pub(super) struct Proxy {
    socket: PathBuf,
    _process: Process,
}

impl Proxy {
    pub(super) async fn start(cluster: &Path, program: &Path, middle: &Place, login: &Path) -> Result<Self> {
        let socket = cluster.join("proxy.sock");
        let mut command = middle.command(program);
        command.arg("--kubeconfig").arg(login).arg("proxy").arg("--unix-socket").arg(&socket);
        let mut process = Process::start(command, &cluster.join("proxy.log"), "util-linux")?;
        let there = || socket.exists() || process.ended().is_some();
        eventually("a proxy to the API serves", READY_WITHIN, there).await?;
        process.still_runs()?;
        Ok(Self { socket, _process: process })
    }

    /// What is there; `None`: nothing is.
    pub(super) async fn get(&self, path: &str) -> Result<Option<Value>> {
        self.ask("GET", path, "").await
    }

    /// `kubectl apply --server-side --force-conflicts`, as that manager.
    pub(super) async fn apply(&self, path: &str, manager: &str, object: &Value) -> Result<()> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.ask("PATCH", &path, &object.to_string()).await.map(drop)
    }

    async fn ask(&self, method: &str, path: &str, body: &str) -> Result<Option<Value>> {
        let what = format!("{method} {path}");
        let failed = || {
            let what = what.clone();
            move |source| PeerError::Io { what, source }
        };
        let mut stream = UnixStream::connect(&self.socket).await.map_err(failed())?;
        // By this version the answer ends with the connection.
        let request = format!(
            "{what} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: application/apply-patch+yaml\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.map_err(failed())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map_err(failed())?;
        let malformed = |what: String| PeerError::Malformed { path: PathBuf::from(path), what };
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { return Err(malformed(answer)) };
        match head.split_whitespace().nth(1) {
            Some("200" | "201") => {
                let json = serde_json::from_str(body);
                json.map(Some).map_err(|error| malformed(format!("{error}: {body}")))
            }
            Some("404") => Ok(None),
            _ => Err(PeerError::Ended {
                program: what,
                status: head.lines().next().unwrap_or_default().to_owned(),
                output: body.to_owned(),
            }),
        }
    }
}

/// What `kubectl get` would ask for, where it is so simple.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) path: String,
    /// Nothing is as good an answer as any.
    pub(super) may_be_missing: bool,
}

impl Question {
    /// Of what stands behind `kubectl`; `None`: it is kubectl's to ask.
    pub(super) fn read(arguments: &[&str]) -> Option<Self> {
        let (mut namespace, mut may_be_missing) = ("default", false);
        let (mut words, mut chosen) = (Vec::new(), Vec::new());
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "-n" | "--namespace" => namespace = arguments.next()?,
                "-l" | "--selector" => chosen.push(("labelSelector", *arguments.next()?)),
                "--ignore-not-found" => may_be_missing = true,
                option if option.starts_with("--field-selector=") => {
                    chosen.push(("fieldSelector", option.split_once('=')?.1));
                }
                option if option.starts_with('-') => return None,
                word => words.push(word),
            }
        }
        let (resource, name) = match words[..] {
            ["get", resource] => (resource, None),
            ["get", resource, name] => (resource, Some(name)),
            _ => return None,
        };
        let (one, group, lies_in_namespaces) = RESOURCES.iter().find(|(one, ..)| is(one, resource))?;
        let mut path = format!("/{group}");
        if *lies_in_namespaces {
            path += &format!("/namespaces/{namespace}");
        }
        path += &format!("/{}", many(one));
        if let Some(name) = name {
            path += &format!("/{name}");
        }
        for (n, (key, value)) in chosen.iter().enumerate() {
            let value = value.replace('%', "%25").replace('=', "%3D").replace(',', "%2C").replace(' ', "%20");
            path += &format!("{}{key}={value}", if n == 0 { '?' } else { '&' });
        }
        Some(Self { path, may_be_missing })
    }
}

/// As the API spells it.
fn many(one: &str) -> String {
    match one.strip_suffix('y') {
        _ if one.contains('.') => one.split('.').next().unwrap_or_default().to_owned(),
        Some(begins) => format!("{begins}ies"),
        None => format!("{one}s"),
    }
}

fn is(one: &str, resource: &str) -> bool {
    one == resource || many(one) == resource
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(arguments: &[&str]) -> Option<String> {
        Question::read(arguments).map(|question| question.path)
    }

    #[test]
    fn what_is_simple_is_asked_for_by_its_path() {
        assert_eq!(path(&["get", "node", "n1"]).as_deref(), Some("/api/v1/nodes/n1"));
        assert_eq!(
            path(&["get", "pods", "--namespace", "fencing", "-l", "app=a,b=c"]).as_deref(),
            Some("/api/v1/namespaces/fencing/pods?labelSelector=app%3Da%2Cb%3Dc")
        );
        assert_eq!(
            path(&["get", "events.events.k8s.io", "-n", "default", "--field-selector=reason=Fenced"])
                .as_deref(),
            Some("/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=reason%3DFenced")
        );
        assert_eq!(
            path(&["get", "fencingpolicy", "workers"]).as_deref(),
            Some("/apis/picket.dev/v1alpha1/fencingpolicies/workers")
        );
        let question = Question::read(&["get", "pod", "db-0", "--ignore-not-found"]).expect("it is simple");
        assert!(question.may_be_missing);
    }

    #[test]
    fn what_is_not_is_kubectl_s() {
        for arguments in [
            &["get", "--raw", "/readyz"][..],
            &["get", "nodes", "-A"],
            &["get", "widgets"],
            &["delete", "node", "n1"],
        ] {
            assert_eq!(path(arguments), None, "{arguments:?}");
        }
    }
}
