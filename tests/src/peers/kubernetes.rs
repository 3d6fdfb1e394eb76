//! Kubernetes, the real one, with real kubelets on machines that are switched by BMCs (`tests/peers/kubernetes`).

mod accounts;
mod cinder;
mod control_plane;
mod csi;
mod defined;
mod kwok;
mod lan;
mod machine;
mod pki;
mod places;
mod programs;
mod proxy;
mod stamp;
mod tree;
mod volume;
mod workload;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use self::control_plane::{ControlPlane, READY_WITHIN};
use self::csi::Csi;
pub use self::csi::CsiCall;
pub use self::kwok::{Kwok, Silent};
use self::lan::Lan;
pub use self::machine::{Frozen, KubernetesMachine};
use self::pki::{Authority, by_certificate};
use self::places::Places;
use self::proxy::{Proxy, Question};
pub use self::volume::{Write, Writers};
pub use self::workload::Database;
use super::{HANGS, Place, Process, helm, knob, reaper, until};
use crate::error::{PeerError, Result};
use crate::gateway::Said;

/// A cluster. It takes half a minute to begin, half a gigabyte and a quarter for each machine: one serves all tests of a program, each
/// of which has machines of its own. Everything in it ends with the test run.
#[derive(Debug)]
pub struct Kubernetes {
    // What is dropped ends from the outside inwards: machines, then what they ask, then the network.
    machines: Vec<KubernetesMachine>,
    csi: Csi,
    /// There once the API server is ready.
    proxy: Option<Proxy>,
    control_plane: ControlPlane,
    programs: PathBuf,
    lan: Lan,
    directory: Folder,
    _places: Places,
}

/// Its directory. A cluster that a program keeps to its end is dropped by nobody.
#[derive(Debug)]
struct Folder(TempDir);

impl Folder {
    fn new() -> Result<Self> {
        let made = tempfile::Builder::new().prefix("picket-kubernetes-").tempdir();
        let made = made.map_err(PeerError::io("create a cluster's directory"))?;
        reaper::folder(made.path());
        Ok(Self(made))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        reaper::folder_removed(self.0.path());
    }
}

/// Where kubectl is, which wants a cluster only for what it asks one.
pub fn kubectl() -> Result<PathBuf> {
    Ok(programs::home()?.join("bin/kubectl"))
}

/// Where helm is.
pub(super) fn helm_program() -> Result<PathBuf> {
    Ok(programs::home()?.join("bin/helm"))
}

/// A part of the control plane that stands still until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Stopped<'a>(&'a Process);

impl<'a> Stopped<'a> {
    fn new(process: &'a Process) -> Self {
        process.freeze();
        Self(process)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

impl Kubernetes {
    /// One with so many machines, at most 90, which are called n1, n2 and so on, and are Ready.
    pub async fn start(machines: u8) -> Result<Self> {
        Self::start_with(machines, &[]).await
    }

    /// The same, whose kube-controller-manager has these further arguments.
    pub async fn start_with(machines: u8, controllers: &[&str]) -> Result<Self> {
        let alone = async |_: &Path, _: &Place, _: &mut [KubernetesMachine]| Ok((None, ()));
        Self::make(machines, controllers, alone).await.map(|(cluster, ())| cluster)
    }

    /// The same, once that was made for its machines, which have not booted yet: the file with the login of a cloud that attaches
    /// their volumes, where there is one, and whatever else.
    async fn make<T>(
        machines: u8,
        controllers: &[&str],
        around: impl AsyncFnOnce(&Path, &Place, &mut [KubernetesMachine]) -> Result<(Option<PathBuf>, T)>,
    ) -> Result<(Self, T)> {
        programs::must_have_the_rest()?;
        let places = Places::take(machines).await?;
        let programs = programs::home()?;
        let folder = Folder::new()?;
        let directory = folder.0.path();
        let authority = Authority::new(&directory.join("pki"))?;
        authority.client("admin", Some("system:masters"), "admin")?;
        let admin = by_certificate(directory, "admin")?;
        let mut lan = Lan::start(directory).await?;
        let control_plane = ControlPlane::start(directory, &programs, lan.middle(), &authority)?;
        let mut made = Vec::new();
        for n in 1..=machines.min(90) {
            let machine = KubernetesMachine::new(directory, &programs, &mut lan, n).await?;
            authority.client(
                machine.name(),
                Some("system:nodes"),
                &format!("system:node:{}", machine.name()),
            )?;
            by_certificate(directory, machine.name())?;
            made.push(machine);
        }
        let (cloud, around) = around(directory, lan.middle(), &mut made).await?;
        let csi = Csi::start(directory, &programs, lan.middle(), &admin, cloud.as_deref()).await?;
        let mut cluster = Self {
            machines: made,
            csi,
            control_plane,
            proxy: None,
            programs,
            lan,
            directory: folder,
            _places: places,
        };
        cluster.begin(controllers).await?;
        Ok((cluster, around))
    }

    async fn begin(&mut self, controllers: &[&str]) -> Result<()> {
        let ready = async || {
            self.control_plane.still_runs()?;
            Ok(self.kubectl(&["get", "--raw", "/readyz"]).await.is_ok())
        };
        until("an API server is ready", READY_WITHIN, ready).await?;
        let (kubectl, admin) = (self.programs.join("bin/kubectl"), self.admin());
        self.proxy = Some(Proxy::start(self.directory(), &kubectl, self.place(), &admin).await?);
        self.control_plane.control(controllers)?;
        self.apply(&workload::foundations(&self.machines)).await?;
        for machine in &self.machines {
            machine.force(true).await?;
        }
        for machine in &self.machines {
            self.takes_pods(machine).await?;
        }
        self.control_plane.still_runs()
    }

    /// Where programs run that shall reach the API server and the BMCs: the host of the control plane.
    pub fn place(&self) -> &Place {
        self.lan.middle()
    }

    /// Its directory, with the logs of all its parts.
    pub fn directory(&self) -> &Path {
        self.directory.0.path()
    }

    /// All its machines.
    pub fn machines(&self) -> &[KubernetesMachine] {
        &self.machines
    }

    /// The machine of that Node.
    pub fn machine(&self, node: &str) -> &KubernetesMachine {
        let found = self.machines.iter().find(|machine| machine.name() == node);
        found.unwrap_or_else(|| panic!("no machine is called {node}"))
    }

    /// The kubeconfig of who may do everything. It is for programs at [`Self::place`].
    pub fn admin(&self) -> PathBuf {
        self.directory().join("admin.kubeconfig")
    }

    /// Runs helm on the control plane's host, as who may do everything, to its end.
    pub async fn helm(&self, arguments: &[&str]) -> Result<Said> {
        let mut command = self.place().command(self.programs.join("bin/helm"));
        command.arg("--kubeconfig").arg(self.admin());
        helm::run(command, arguments).await
    }

    /// What `kubectl` prints, asked by who may do everything.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_as(&self.admin(), arguments).await
    }

    /// The same, asked by whom this kubeconfig is for.
    pub async fn kubectl_as(&self, login: &Path, arguments: &[&str]) -> Result<String> {
        let mut command =
            tokio::process::Command::from(self.place().command(self.programs.join("bin/kubectl")));
        command.arg("--kubeconfig").arg(login).arg("--cache-dir").arg(login.with_extension("cache"));
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        let program = format!("kubectl {}", arguments.join(" "));
        let output = tokio::time::timeout(HANGS, command.output()).await.map_err(|_elapsed| {
            PeerError::TimedOut { what: program.clone(), within: HANGS, seen: String::new() }
        })?;
        let output = output.map_err(PeerError::io(&program))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(PeerError::Ended { program, status: output.status.to_string(), output: text(&output.stderr) })
    }

    /// What `kubectl -o json` prints; null where nothing is printed.
    pub async fn json(&self, arguments: &[&str]) -> Result<Value> {
        if let (Some(proxy), Some(question)) = (&self.proxy, Question::read(arguments)) {
            let asked = tokio::time::timeout(HANGS, proxy.get(&question.path)).await;
            let what = || format!("kubectl {}", arguments.join(" "));
            let late = |_| PeerError::TimedOut { what: what(), within: HANGS, seen: String::new() };
            return match asked.map_err(late)?? {
                None if !question.may_be_missing => Err(PeerError::Ended {
                    program: what(),
                    status: "404".to_owned(),
                    output: "NotFound".to_owned(),
                }),
                found => Ok(found.unwrap_or_default()),
            };
        }
        let said = self.kubectl(&[arguments, &["-o", "json"]].concat()).await?;
        if said.trim().is_empty() {
            return Ok(Value::Null);
        }
        let malformed = |error| PeerError::Malformed {
            path: PathBuf::from(format!("kubectl {}", arguments.join(" "))),
            what: format!("{error}: {said}"),
        };
        serde_json::from_str(&said).map_err(malformed)
    }

    /// `kubectl apply` of that.
    pub async fn apply(&self, manifest: &Value) -> Result<()> {
        self.apply_with(manifest, &[]).await
    }

    /// The same with further options.
    pub async fn apply_with(&self, manifest: &Value, options: &[&str]) -> Result<()> {
        let number = uuid::Uuid::now_v7().simple().to_string();
        let file = self.directory().join(format!("applied-{number}.json"));
        knob::write_whole(&file, &manifest.to_string())?;
        let file = file.display().to_string();
        let applied = self.kubectl(&[&["apply", "-f", &file], options].concat()).await;
        let _ = std::fs::remove_file(&file);
        applied.map(drop)
    }

    /// Says that, as that manager of its fields, of the object at that path of the API.
    pub async fn says(&self, path: &str, manager: &str, object: &Value) -> Result<()> {
        let proxy = self.proxy.as_ref().expect("the API server is ready");
        let saying = tokio::time::timeout(HANGS, proxy.apply(path, manager, object)).await;
        let late = |_| PeerError::TimedOut { what: path.to_owned(), within: HANGS, seen: String::new() };
        saying.map_err(late)?
    }

    /// What the API says of a machine's Node.
    pub async fn node(&self, machine: &KubernetesMachine) -> Result<Value> {
        self.json(&["get", "node", machine.name()]).await
    }

    /// Waits until a machine's Node is Ready, or is not.
    pub async fn until_ready(&self, machine: &KubernetesMachine, ready: bool) -> Result<()> {
        let what = format!("Node {} is {}Ready", machine.name(), if ready { "" } else { "not " });
        let seen = async || Ok(workload::is_ready(&self.node(machine).await?) == ready);
        with_words(until(&what, READY_WITHIN, seen).await, machine)
    }

    /// Waits until it takes pods with volumes.
    pub async fn takes_pods(&self, machine: &KubernetesMachine) -> Result<()> {
        let name = machine.name();
        let seen = async || {
            let node = self.node(machine).await?;
            let csi_node = self.json(&["get", "csinode", name, "--ignore-not-found"]).await?;
            Ok(workload::is_usable(&node, &csi_node))
        };
        with_words(until(&format!("Node {name} takes pods"), READY_WITHIN, seen).await, machine)
    }

    /// All that the CSI driver was told, in order.
    pub fn csi_calls(&self) -> Vec<CsiCall> {
        csi::calls(self.directory())
    }

    /// The controller of volumes stands until this is dropped: nothing is attached or detached.
    pub fn stop_csi_controller(&self) -> Stopped<'_> {
        Stopped::new(&self.csi.attacher)
    }

    /// The API server stands until this is dropped: it takes connections and answers nobody.
    pub fn stop_api_server(&self) -> Stopped<'_> {
        Stopped::new(&self.control_plane.api_server)
    }

    /// Kubernetes' own controllers stand until this is dropped: whoever falls silent stays as it is told to be.
    pub fn stop_controllers(&self) -> Stopped<'_> {
        Stopped::new(
            self.control_plane.controllers.as_ref().expect("every cluster has them once it is started"),
        )
    }
}

/// Says in an error what the machine said.
fn with_words(result: Result<()>, machine: &KubernetesMachine) -> Result<()> {
    result.map_err(|error| match error {
        PeerError::TimedOut { what, within, .. } => {
            PeerError::TimedOut { what, within, seen: machine.last_words() }
        }
        other => other,
    })
}
