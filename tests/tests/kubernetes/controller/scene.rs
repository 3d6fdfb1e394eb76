//! A few clusters for all tests here, each of one test at a time: a controller looks at all of its Nodes.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use picket_proto::v1::ListFencesRequest;
use picket_tests::peers::{IpmiSim, Kubernetes, Process, test_python, until};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, PeerError, Result, pasted, picket, program};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::controller::kubelets::Kubelets;

const ALLOWED: &str = include_str!("../../../../deploy/kubernetes/controller.yaml");
/// Where metrics and health are told.
const PORT: u16 = 7075;
const WITHIN: Duration = Duration::from_secs(120);

/// So many simulated machines of workers, and some of the control plane.
fn fleet(workers: u32) -> String {
    format!(
        "[nodes.\"n[1-{workers}]\".devices.bmc]\ndriver = \"sim\"\nmachine = \"{{node}}\"\n\
         [nodes.\"m[1-3]\".devices.bmc]\ndriver = \"sim\"\nmachine = \"{{node}}\"\n{OURS}"
    )
}

/// Whoever asks by the socket.
pub const OURS: &str = "[roles.socket]\nrole = \"admin\"\ncallers = [\"uid:*\"]\n";
/// A BMC's port on the control plane's host.
pub const BOARD: u16 = 10_623;

/// A cluster with five workers and a member of the control plane, a gateway, and what a controller needs.
pub struct Scene {
    pub cluster: &'static Kubernetes,
    pub kubelets: Kubelets,
    pub gateway: Gateway,
    login: PathBuf,
    dir: TempDir,
    // The last to go: whoever has the cluster next finds nobody in it.
    _turn: Turn,
}

/// A controller that runs.
pub struct Controller {
    process: Process,
}

impl Controller {
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// How often it decided to ask.
    pub fn asked(&self) -> usize {
        self.log().matches("\"FenceAsked\"").count()
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }
}

/// So many tests run side by side.
const SIDE_BY_SIDE: usize = 3;
static TURNS: Semaphore = Semaphore::const_new(SIDE_BY_SIDE);
/// Clusters of which nobody has the turn.
static FREE: Mutex<Vec<&'static Kubernetes>> = Mutex::new(Vec::new());

/// A cluster that nobody else has meanwhile. It ends with this process.
struct Turn {
    cluster: &'static Kubernetes,
    _permit: SemaphorePermit<'static>,
}

impl Turn {
    async fn take() -> Result<Self> {
        let permit = TURNS.acquire().await.expect("it is never closed");
        let free = FREE.lock().pop();
        let cluster = match free {
            Some(cluster) => cluster,
            // Kubelets that kubectl plays may be late.
            None => {
                let patient = ["--node-monitor-grace-period=14s"];
                Box::leak(Box::new(Kubernetes::start_with(0, &patient).await?))
            }
        };
        Ok(Self { cluster, _permit: permit })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        FREE.lock().push(self.cluster);
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
        .map_err(|source| PeerError::Io { what: format!("write {}", path.display()), source })
}

impl Scene {
    pub async fn open() -> Result<Self> {
        Self::of(5).await
    }

    /// The same with so many workers, three in one zone and the others in another.
    pub async fn of(workers: u32) -> Result<Self> {
        Self::over(Turn::take().await?, workers, &Fleet::new().with(&fleet(workers))).await
    }

    /// The same, where of all its machines the gateway knows that of `n1` alone, behind a BMC. What it reads as off has to hold for 8 s, and an on is
    /// seen within 10 s, or has failed.
    pub async fn behind_a_board() -> Result<(Self, IpmiSim)> {
        let turn = Turn::take().await?;
        let bmc = IpmiSim::builder().within(turn.cluster.place(), BOARD).start().await?;
        let rules = format!("[rules]\ndwell = \"8s\"\non_deadline = \"10s\"\n{OURS}");
        let fleet = Fleet::new().with(&rules).node("n1", &Bmc::simulated(bmc.address()), &[]);
        Ok((Self::over(turn, 5, &fleet).await?, bmc))
    }

    async fn over(turn: Turn, workers: u32, fleet: &Fleet) -> Result<Self> {
        let cluster = turn.cluster;
        let worker = |zone: &str| json!({ "role": "worker", "topology.kubernetes.io/zone": zone });
        let member = json!({ "node-role.kubernetes.io/control-plane": "" });
        let mut nodes: Vec<(String, Value)> = (1..=workers)
            .map(|number| (format!("n{number}"), worker(if number <= 3 { "a" } else { "b" })))
            .collect();
        nodes.push(("m1".to_owned(), member));
        cluster.kubectl(&["delete", "nodes", "--all"]).await?;
        cluster.kubectl(&["delete", "events", "--all"]).await?;
        let kubelets = Kubelets::start(cluster, &nodes).await?;
        let dir = tempfile::tempdir()
            .map_err(|source| PeerError::Io { what: "make a directory".to_owned(), source })?;
        let gateway = gateway(cluster, dir.path(), fleet).await?;
        write(&dir.path().join("controller.yaml"), ALLOWED)?;
        cluster.kubectl(&["apply", "-f", &text(&dir.path().join("controller.yaml"))]).await?;
        let login = login(cluster, dir.path()).await?;
        let scene = Self { cluster, kubelets, gateway, login, dir, _turn: turn };
        scene.define().await?;
        // What another test here has left.
        let gone = ["delete", "clusterrolebinding", "picket-controller-remediation", "--ignore-not-found"];
        cluster.kubectl(&gone).await?;
        cluster.kubectl(&["-n", "medik8s-leases", "delete", "leases", "--all"]).await?;
        cluster.kubectl(&["delete", "fencingpolicies", "--all"]).await?;
        cluster.kubectl(&["-n", "picket", "delete", "leases", "--all"]).await?;
        Ok(scene)
    }

    /// What `picket-controller crds` prints is applied.
    pub async fn define(&self) -> Result<()> {
        let file = self.dir.path().join("crds.yaml");
        let printed = self.run(&["crds"]).await?;
        write(&file, &printed.1)?;
        self.cluster.kubectl(&["apply", "-f", &text(&file)]).await?;
        let kinds = ["fencingpolicies", "picketremediations", "picketremediationtemplates"]
            .map(|kind| format!("{kind}.picket.dev"));
        for kind in &kinds {
            self.cluster.kubectl(&["wait", "--for=condition=Established", &format!("crd/{kind}")]).await?;
            // What was deleted a moment ago is established before it can be read.
            let is_read = async || Ok(self.cluster.kubectl(&["get", kind, "--all-namespaces"]).await.is_ok());
            until(&format!("{kind} can be read"), WITHIN, is_read).await?;
        }
        Ok(())
    }

    /// A policy for all workers, with these further fields.
    pub async fn policy(&self, more: &Value) -> Result<()> {
        let mut spec = json!({ "nodeSelector": { "matchLabels": { "role": "worker" } } });
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        self.named_policy("workers", &spec).await
    }

    pub async fn named_policy(&self, name: &str, spec: &Value) -> Result<()> {
        let whole = json!({
            "apiVersion": "picket.dev/v1alpha1",
            "kind": "FencingPolicy",
            "metadata": { "name": name },
            "spec": spec,
        });
        self.cluster.apply(&whole).await
    }

    /// Writes settings, with the endpoints of a gateway that is not there, and of the one that is.
    pub fn settings(&self, identity: &str, endpoints: &[&str], login: &Path) -> Result<PathBuf> {
        let pki = self.dir.path().join("pki");
        let file = self.dir.path().join(format!("{identity}.toml"));
        let text = format!(
            "[gateway]\nendpoints = {endpoints:?}\nca_file = {:?}\ncert_file = {:?}\nkey_file = {:?}\n\
             [kubernetes]\nkubeconfig = {login:?}\n[controller]\nidentity = {identity:?}\nlisten = \"{}:{PORT}\"\n",
            pki.join("ca.pem"),
            pki.join("lab-controller.pem"),
            pki.join("lab-controller.key"),
            if identity == "one" { self.cluster.place().address() } else { Ipv4Addr::LOCALHOST },
        );
        write(&file, &text)?;
        Ok(file)
    }

    pub fn login(&self) -> &Path {
        &self.login
    }

    pub fn endpoints(&self) -> [String; 2] {
        let address = self.cluster.place().address();
        [format!("https://{address}:7069"), format!("https://{address}:7070")]
    }

    /// A controller of that name, which may do what the shipped roles say and no more.
    pub fn controller(&self, identity: &str) -> Result<Controller> {
        self.controller_by(identity, &self.login)
    }

    /// The same by that kubeconfig.
    pub fn controller_by(&self, identity: &str, login: &Path) -> Result<Controller> {
        let [nobody, gateway] = self.endpoints();
        let settings = self.settings(identity, &[&nobody, &gateway], login)?;
        self.begin(identity, &settings)
    }

    /// The same, which does what NodeHealthCheck asks for. Its settings.
    pub fn remediating(&self, identity: &str) -> Result<PathBuf> {
        let [nobody, gateway] = self.endpoints();
        let settings = self.settings(identity, &[&nobody, &gateway], &self.login)?;
        let text = std::fs::read_to_string(&settings).unwrap_or_default();
        write(&settings, &format!("{text}remediation = true\nremediation_namespaces = [\"ops\"]\n"))?;
        Ok(settings)
    }

    /// Those by which a controller names Nodes to the gateway otherwise than by their names.
    pub fn selecting(&self, identity: &str, by: &str) -> Result<PathBuf> {
        let [nobody, gateway] = self.endpoints();
        let settings = self.settings(identity, &[&nobody, &gateway], &self.login)?;
        let text = std::fs::read_to_string(&settings).unwrap_or_default();
        write(&settings, &text.replace("[kubernetes]", &format!("select = {by:?}\n[kubernetes]")))?;
        Ok(settings)
    }

    /// A file of that name.
    pub fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.dir.path().join(name);
        write(&path, text)?;
        Ok(path.display().to_string())
    }

    pub fn begin(&self, identity: &str, settings: &Path) -> Result<Controller> {
        let mut command = self.cluster.place().command(program("picket-controller")?);
        command.arg("--config").arg(settings);
        let number = uuid::Uuid::now_v7().simple();
        let log = self.dir.path().join(format!("{identity}-{number}.log"));
        Ok(Controller { process: Process::start(command, &log, "none: cargo builds it")? })
    }

    /// What the controller `one` answers there.
    pub async fn http(&self, path: &str) -> Result<String> {
        let url = format!("http://{}:{PORT}{path}", self.cluster.place().address());
        let script =
            "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')";
        let mut command = tokio::process::Command::from(self.cluster.place().command(test_python()?));
        let failed = |source| PeerError::Io { what: format!("get {url}"), source };
        let output = command.args(["-c", script, &url]).kill_on_drop(true).output().await.map_err(failed)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it to its end: exit code, what it printed, what it complained of.
    pub async fn run(&self, arguments: &[&str]) -> Result<(i32, String, String)> {
        let mut command =
            tokio::process::Command::from(self.cluster.place().command(program("picket-controller")?));
        let failed = |source| PeerError::Io { what: "run picket-controller".to_owned(), source };
        let output = command.args(arguments).kill_on_drop(true).output().await.map_err(failed)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr)))
    }

    /// The Nodes that were fenced, one for each fence, oldest first.
    pub async fn fences(&self) -> Result<Vec<String>> {
        let failed = |status: tonic::Status| PeerError::Io {
            what: "ListFences".to_owned(),
            source: std::io::Error::other(status),
        };
        let mut client = self.gateway.client().await?;
        let answer = client.list_fences(ListFencesRequest::default()).await.map_err(failed)?;
        Ok(answer.into_inner().fences.into_iter().rev().map(|fence| fence.node).collect())
    }

    /// Events of that reason, as (Node, words).
    pub async fn events(&self, reason: &str) -> Result<Vec<(String, String)>> {
        let all = self.cluster.json(&["get", "events.events.k8s.io", "-n", "default"]).await?;
        let of = all["items"].as_array().into_iter().flatten().filter(|one| one["reason"] == reason);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(of.map(|one| (text(&one["regarding"]["name"]), text(&one["note"]))).collect())
    }

    /// Waits until there is such an Event of that Node; its words.
    pub async fn event(&self, node: &str, reason: &str, controller: &Controller) -> Result<String> {
        let mut words = String::new();
        let what = format!("an Event {reason} of {node}");
        let seen = until(&what, WITHIN, async || {
            let found = self.events(reason).await?.into_iter().find(|(of, _)| of == node);
            words = found.as_ref().map(|(_, words)| words.clone()).unwrap_or_default();
            Ok(found.is_some())
        });
        seen.await.map_err(|error| told(error, controller))?;
        Ok(words)
    }

    /// Waits until a controller's log has these words.
    pub async fn logged(&self, controller: &Controller, words: &str) -> Result<()> {
        let what = format!("a controller logs {words:?}");
        let seen = until(&what, WITHIN, async || Ok(controller.log().contains(words)));
        seen.await.map_err(|error| told(error, controller))
    }

    /// What is noted on a Node; null: nothing.
    pub async fn note(&self, node: &str) -> Result<Value> {
        let node = self.cluster.json(&["get", "node", node]).await?;
        let note = node["metadata"]["annotations"]["picket.dev/status"].as_str().map(str::to_owned);
        Ok(note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default())
    }

    /// Waits until a policy's condition has that reason; its words.
    pub async fn told(&self, policy: &str, kind: &str, reason: &str) -> Result<String> {
        let mut words = String::new();
        until(&format!("{policy} says {kind} by {reason}"), WITHIN, async || {
            let policy = self.cluster.json(&["get", "fencingpolicy", policy]).await?;
            let all = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = all.iter().find(|one| one["type"] == kind && one["reason"] == reason);
            words =
                found.map(|one| one["message"].as_str().unwrap_or_default().to_owned()).unwrap_or_default();
            Ok(found.is_some())
        })
        .await?;
        Ok(words)
    }
}

/// With what the controller said.
fn told(error: PeerError, controller: &Controller) -> PeerError {
    match error {
        PeerError::TimedOut { what, within, .. } => {
            PeerError::TimedOut { what, within, seen: controller.log() }
        }
        other => other,
    }
}

/// A gateway on the control plane's host, by TLS, with certificates that it makes itself.
async fn gateway(cluster: &Kubernetes, dir: &Path, fleet: &Fleet) -> Result<Gateway> {
    let (pki, address) = (text(&dir.join("pki")), cluster.place().address().to_string());
    let made =
        picket(&["pki", "init", &pki, "--server", &address, "--client", "spiffe://lab/controller"]).await?;
    assert_eq!(made.code, 0, "{made:?}");
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, fleet)?;
    let more = gateway.directory().join("conf.d");
    std::fs::create_dir(&more).map_err(|source| PeerError::Io { what: "make conf.d".to_owned(), source })?;
    // The role that is meant for this: it fences, and does nothing else.
    let settings = pasted(&made).replace("role = \"operator\"", "role = \"controller\"");
    write(&more.join("tls.toml"), &settings)?;
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    Ok(gateway)
}

/// A kubeconfig of the shipped account.
async fn login(cluster: &Kubernetes, dir: &Path) -> Result<PathBuf> {
    let other = cluster.account("nobody", &json!([])).await?;
    let of_other = std::fs::read_to_string(&other).unwrap_or_default();
    let token =
        cluster.kubectl(&["-n", "picket", "create", "token", "picket-controller", "--duration=4h"]).await?;
    let line = |line: &str| match line.contains("token: ") {
        true => format!("users: [{{name: nobody, user: {{token: {}}}}}]\n", token.trim()),
        false => format!("{line}\n"),
    };
    let path = dir.join("kubeconfig");
    write(&path, &of_other.lines().map(line).collect::<String>())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode)
        .map_err(|source| PeerError::Io { what: "chmod".to_owned(), source })?;
    Ok(path)
}
