//! The CSI driver of the tests outside of the machines: its controller, the external-attacher before it, and what it noted.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::super::{Place, Process, eventually};
use crate::error::{PeerError, Result};

const READY_WITHIN: Duration = Duration::from_secs(30);

/// What the driver did, or refused. A call that changes nothing is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsiCall {
    /// When it was done.
    pub at: SystemTime,
    /// `attach`, `detach`, and `refused` for what is attached elsewhere; on a node `mount` and `unmount`.
    pub what: String,
    /// Which volume.
    pub volume: String,
    /// From or to which Node; in a cloud its server, for `attach`, `detach` and `refused`.
    pub node: String,
}

#[derive(Debug)]
pub(super) struct Csi {
    pub(super) attacher: Process,
    _controller: Process,
}

impl Csi {
    /// `cloud`: the file with a login of the OpenStack that attaches; else the driver does itself.
    pub(super) async fn start(
        cluster: &Path,
        programs: &Path,
        middle: &Place,
        login: &Path,
        cloud: Option<&Path>,
    ) -> Result<Self> {
        let (socket, volumes) = (cluster.join("csi.sock"), cluster.join("volumes"));
        std::fs::create_dir_all(&volumes).map_err(PeerError::io("create a place for volumes"))?;
        let mut command = middle.command(programs.join("bin/csidisk"));
        command.arg("-socket").arg(&socket).arg("-volumes").arg(&volumes);
        command.arg("-journal").arg(cluster.join("csi.journal"));
        if let Some(cloud) = cloud {
            command.arg("-openstack").arg(cloud);
        }
        let mut controller = Process::start(command, &cluster.join("csidisk.log"), "util-linux")?;
        let there = || socket.exists() || controller.ended().is_some();
        eventually("the CSI driver serves", READY_WITHIN, there).await?;
        controller.still_runs()?;
        let mut command = middle.command(programs.join("bin/csi-attacher"));
        command.arg("--csi-address").arg(&socket).arg("--kubeconfig").arg(login).arg("--v=4");
        let attacher = Process::start(command, &cluster.join("attacher.log"), "util-linux")?;
        Ok(Self { attacher, _controller: controller })
    }
}

/// All that the driver noted, in order.
pub(super) fn calls(cluster: &Path) -> Vec<CsiCall> {
    let text = std::fs::read_to_string(cluster.join("csi.journal")).unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<CsiCall> {
    let told: Value = serde_json::from_str(line).ok()?;
    let word = |key: &str| Some(told[key].as_str()?.to_owned());
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(told["at"].as_u64()?);
    Some(CsiCall { at, what: word("what")?, volume: word("volume")?, node: word("node")? })
}
