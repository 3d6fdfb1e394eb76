//! The real controller, as a process, before a cluster and a gateway.

use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::error::{PeerError, Result};
use crate::gateway::Gateway;
use crate::peers::{Kubernetes, Place, Process};
use crate::programs::program;

const ALLOWED: &str = include_str!("../../deploy/kubernetes/controller.yaml");
const POLICIES: &str = "crd/fencingpolicies.picket.dev";
/// In whose name it keeps nodes off.
pub const HOLDER: &str = "controller";
/// Where it tells metrics and health.
const PORT: u16 = 7075;
const LOOK: &str =
    "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')";

/// A controller on the control plane's host, which may do what the shipped roles say and no more, and asks a gateway over its socket.
#[derive(Debug)]
pub struct Controller {
    // Ends before the directory goes.
    process: Process,
    place: Place,
    _directory: TempDir,
}

impl Controller {
    /// A new one. Its roles and definitions are in the cluster then. One at a time can run in a cluster.
    pub async fn start(cluster: &Kubernetes, gateway: &Gateway) -> Result<Self> {
        let made = tempfile::Builder::new().prefix("picket-controller-").tempdir();
        let directory = made.map_err(PeerError::io("create a controller's directory"))?;
        let login = login(cluster, directory.path()).await?;
        define(cluster, directory.path()).await?;
        let place = cluster.place().clone();
        let settings = directory.path().join("controller.toml");
        let text = format!(
            "[gateway]\nendpoints = [{:?}]\nholder = {HOLDER:?}\n[kubernetes]\nkubeconfig = {login:?}\n\
             [controller]\nidentity = \"one\"\nlisten = \"{}:{PORT}\"\n",
            gateway.endpoint(),
            place.address(),
        );
        write(&settings, &text)?;
        let mut command = place.command(program("picket-controller")?);
        command.arg("--config").arg(settings);
        let log = directory.path().join("controller.log");
        let process = Process::start(command, &log, "none: cargo builds it")?;
        Ok(Self { process, place, _directory: directory })
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it logged.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// How often it decided to ask.
    pub fn asked(&self) -> usize {
        self.log().matches("\"FenceAsked\"").count()
    }

    /// What it answers there.
    pub async fn http(&self, path: &str) -> Result<String> {
        let url = format!("http://{}:{PORT}{path}", self.place.address());
        let mut command = tokio::process::Command::from(self.place.command("python3"));
        let output = command.args(["-c", LOOK, &url]).kill_on_drop(true).output().await;
        let output = output.map_err(PeerError::io(format!("get {url}")))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Kubernetes {
    /// A policy for the controller.
    pub async fn fencing_policy(&self, name: &str, spec: &serde_json::Value) -> Result<()> {
        let (version, named) = ("picket.dev/v1alpha1", json!({ "name": name }));
        self.apply(
            &json!({ "apiVersion": version, "kind": "FencingPolicy", "metadata": named, "spec": spec }),
        )
        .await
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(PeerError::io(format!("write {}", path.display())))
}

/// What `picket-controller crds` prints is applied.
async fn define(cluster: &Kubernetes, directory: &Path) -> Result<()> {
    let mut command = tokio::process::Command::new(program("picket-controller")?);
    let printed = command.arg("crds").kill_on_drop(true).output().await;
    let printed = printed.map_err(PeerError::io("run picket-controller crds"))?;
    let file = directory.join("crds.yaml");
    write(&file, &String::from_utf8_lossy(&printed.stdout))?;
    cluster.kubectl(&["apply", "-f", &file.display().to_string()]).await?;
    cluster.kubectl(&["wait", "--for=condition=Established", POLICIES]).await.map(drop)
}

/// A kubeconfig of the shipped account.
async fn login(cluster: &Kubernetes, directory: &Path) -> Result<PathBuf> {
    let roles = directory.join("controller.yaml");
    write(&roles, ALLOWED)?;
    cluster.kubectl(&["apply", "-f", &roles.display().to_string()]).await?;
    let token = ["-n", "picket", "create", "token", "picket-controller", "--duration=4h"];
    let token = cluster.kubectl(&token).await?;
    let admin = cluster.admin();
    let admin =
        std::fs::read_to_string(&admin).map_err(PeerError::io(format!("read {}", admin.display())))?;
    let line = |line: &str| match line.starts_with("users:") {
        true => format!("users: [{{name: admin, user: {{token: {}}}}}]\n", token.trim()),
        false => format!("{line}\n"),
    };
    let path = directory.join("kubeconfig");
    write(&path, &admin.lines().map(line).collect::<String>())?;
    // One that others may read is refused.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).map_err(PeerError::io("chmod a kubeconfig"))?;
    Ok(path)
}
