//! A machine with a kubelet: a tree of processes in namespaces of its own, behind a BMC (`tests/peers/kubernetes/boot.sh`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::super::network::Cut;
use super::super::{
    IpmiSim, Ipmitool, Place, PowerEvent, Truth, eventually, knob, machine, peer_file, reaper,
};
use super::lan::{Lan, pods};
use super::pki::API;
use super::tree::{self, Living};
use crate::error::{PeerError, Result};

const BMC_PORT: u16 = 623;
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// One of a cluster's machines. Dropped, it is off for good, whoever still wants it on.
#[derive(Debug)]
pub struct KubernetesMachine {
    name: String,
    uuid: uuid::Uuid,
    path: PathBuf,
    place: Place,
    middle: Place,
    bmc: IpmiSim,
    is_a_guest: bool,
}

impl KubernetesMachine {
    /// The `n`th, from 1 on, switched off, and its BMC.
    pub(super) async fn new(cluster: &Path, programs: &Path, lan: &mut Lan, n: u8) -> Result<Self> {
        let name = format!("n{n}");
        let path = cluster.join(&name);
        std::fs::create_dir(&path).map_err(PeerError::io("create a machine's directory"))?;
        let (place, outside) = lan.plug(&path, n).await?;
        let uuid = uuid::Uuid::now_v7();
        let settings = format!(
            "name={name}\nuuid={}\nport={}\naddress={}\nsubnet={}\nprograms='{}'\ncluster='{}'\n",
            uuid.simple(),
            place.keeper(),
            place.address(),
            pods(n),
            programs.display(),
            cluster.display()
        );
        knob::write_whole(&path.join("settings"), &settings)?;
        std::os::unix::fs::symlink(peer_file("kubernetes/boot.sh"), path.join("boot"))
            .map_err(PeerError::io("lead to a machine's boot"))?;
        reaper::machine(&path);
        let bmc = IpmiSim::builder().within(&outside, BMC_PORT).guid(other_order(uuid)).below(cluster);
        let bmc = bmc.machine_of(&path).start().await?;
        Ok(Self { name, uuid, path, place, middle: lan.middle().clone(), bmc, is_a_guest: false })
    }

    /// Its Node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The UUID of its system, which its kubelet says, as 32 digits.
    pub fn uuid(&self) -> String {
        self.uuid.simple().to_string()
    }

    /// From its next boot on it is the guest of that server, which is what its system's UUID says and what attaches volumes knows it
    /// by. Its BMC goes on to say the other one.
    pub(super) fn becomes(&mut self, server: &str) -> Result<()> {
        let settings = self.path.join("settings");
        let malformed = |what: String| PeerError::Malformed { path: settings.clone(), what };
        self.uuid = server.parse().map_err(|error| malformed(format!("{server}: {error}")))?;
        self.is_a_guest = true;
        let text = std::fs::read_to_string(&settings).map_err(PeerError::io("read a machine's settings"))?;
        // What is set last counts.
        knob::write_whole(&settings, &format!("{text}uuid={}\nid={server}\n", self.uuid()))
    }

    /// The server of a cloud whose guest it is, by its id.
    pub fn server(&self) -> Option<String> {
        self.is_a_guest.then(|| self.uuid.to_string())
    }

    /// What a cloud's Nodes have as their providerID.
    pub fn provider_id(&self) -> Option<String> {
        Some(format!("openstack:///{}", self.server()?))
    }

    /// The command that switches it past its BMC, with 1 or 0 behind it.
    pub(super) fn switch(&self) -> Vec<String> {
        let (vmctl, path) = (peer_file("vmctl.sh").display().to_string(), self.path.display().to_string());
        vec![vmctl, path.clone(), path, "force".to_owned()]
    }

    /// Its BMC: address in the cluster's network, GUID, faults.
    pub fn bmc(&self) -> &IpmiSim {
        &self.bmc
    }

    /// ipmitool before that, on the host of the control plane.
    pub fn ipmitool(&self) -> Ipmitool {
        Ipmitool::new(self.bmc.address()).within(&self.middle)
    }

    /// On or off past the BMC and its faults: a hand on the machine itself. What was off has no process left.
    pub async fn force(&self, on: bool) -> Result<()> {
        machine::control(&self.path, &["force", if on { "1" } else { "0" }]).await
    }

    /// Whether it runs in truth: whether anything of it lives.
    pub fn runs(&self) -> bool {
        machine::process(&self.path).is_some()
    }

    /// The same for whoever outlives this borrow: a receiver of releases.
    pub fn truth(&self) -> Truth {
        let path = self.path.clone();
        Arc::new(move || machine::process(&path).is_some())
    }

    /// Everything that lives there, as the real machine numbers it.
    pub fn processes(&self) -> Vec<Living> {
        machine::process(&self.path).map_or_else(Vec::new, Living::all_of)
    }

    /// What was done to its power, in order.
    pub fn power_events(&self) -> Vec<PowerEvent> {
        PowerEvent::read(&self.path.join("power.log"))
    }

    /// The id of its present boot, or of its last.
    pub fn boot_id(&self) -> String {
        std::fs::read_to_string(self.path.join("boot-id")).unwrap_or_default().trim().to_owned()
    }

    /// Kills its kubelet, and that alone: what runs there runs on. It is started again by [`Self::start_kubelet`], or at a boot.
    pub async fn kill_kubelet(&self) -> Result<()> {
        knob::write_whole(&self.no_kubelet(), "")?;
        let of = || machine::process(&self.path).map_or_else(Vec::new, |root| tree::called(root, "kubelet"));
        for id in of() {
            tree::signal(id, Signal::KILL);
        }
        eventually("a kubelet is dead", ENDS_WITHIN, || of().is_empty()).await
    }

    /// Starts it again.
    pub fn start_kubelet(&self) -> Result<()> {
        std::fs::remove_file(self.no_kubelet()).map_err(PeerError::io("let a kubelet start"))
    }

    fn no_kubelet(&self) -> PathBuf {
        self.path.join("no-kubelet")
    }

    /// Gives its containerd an image, from an archive.
    pub async fn import(&self, archive: &Path) -> Result<()> {
        let what = format!("ctr images import {}", archive.display());
        let root = machine::process(&self.path).unwrap_or_default();
        let mut command = tokio::process::Command::new("nsenter");
        command.arg("--mount").arg(format!("--target={root}"));
        command.args(["ctr", "--namespace", "k8s.io", "images", "import"]).arg(archive);
        let output = command.kill_on_drop(true).output().await.map_err(PeerError::io(&what))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(PeerError::Ended { program: what, status: output.status.to_string(), output: said })
    }

    /// Stops everything there where it stands, until the answer is dropped: a machine that hangs, and may go on.
    pub fn freeze(&self) -> Frozen {
        let root = machine::process(&self.path);
        if let Some(root) = root {
            tree::freeze(root);
        }
        Frozen { root, path: self.path.clone() }
    }

    /// Cuts it off from the API server, both ways, until the answer is dropped. Its BMC is not.
    pub fn cut_off(&self) -> Result<[Cut; 2]> {
        let port = API.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default();
        Ok([self.place.no_requests_to(port)?, self.place.no_answers_from(port)?])
    }

    /// What the containers of its pods in a namespace said, of each the last that ran.
    pub fn said_by_pods(&self, namespace: &str) -> String {
        let below = |folder: PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let is_there = |pod: &PathBuf| {
            let name = pod.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("{namespace}_"))
        };
        let pods = below(self.path.join("log/pods")).into_iter().filter(is_there);
        let last = pods.flat_map(below).filter_map(|container| below(container).into_iter().max());
        let told = last.map(|log| {
            let text = std::fs::read(&log).unwrap_or_default();
            format!("--- {}\n{}\n", log.display(), String::from_utf8_lossy(&text))
        });
        told.collect()
    }

    /// What it and its programs said last, for the message of a test that fails.
    pub fn last_words(&self) -> String {
        let last = |log: &str| {
            let text = std::fs::read(self.path.join(log)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let from = text.lines().count().saturating_sub(15);
            let lines: Vec<&str> = text.lines().skip(from).collect();
            format!("--- {} {log}\n{}\n", self.name, lines.join("\n"))
        };
        ["console.log", "containerd.log", "csidisk.log", "kubelet.log"].map(last).concat()
    }
}

/// What a BMC says of a system whose UUID that is: its first three fields come in the other byte order.
fn other_order(uuid: uuid::Uuid) -> u128 {
    u128::from_be_bytes(uuid.to_bytes_le())
}

impl Drop for KubernetesMachine {
    fn drop(&mut self) {
        // Before the kill: a delayed on of its BMC finds it closed.
        let _ = std::fs::write(self.path.join("closed"), "");
        let _ =
            Command::new(peer_file("vmctl.sh")).args([&self.path, &self.path]).args(["force", "0"]).status();
        reaper::machine_closed(&self.path);
    }
}

/// A machine that stands still until this is dropped. Switched off meanwhile, it stays off.
#[derive(Debug)]
#[must_use]
pub struct Frozen {
    root: Option<u32>,
    path: PathBuf,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // Another boot is another tree.
        if let Some(root) = self.root.filter(|root| machine::process(&self.path) == Some(*root)) {
            tree::thaw(root);
        }
    }
}
