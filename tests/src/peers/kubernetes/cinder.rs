//! A cluster in a cloud: each machine is the guest of a server of Nova's, and volumes are Cinder's, which the CSI driver attaches
//! through Nova as the Cinder plugin does. What is written to one is in a folder all the same, which every machine reaches: nothing
//! pulls a disk out of a guest that runs, so that who writes on after its volume was detached is seen.

use std::path::{Path, PathBuf};

use super::super::openstack::{HOSTS, OpenStack};
use super::super::{Place, knob};
use super::{Kubernetes, KubernetesMachine};
use crate::error::Result;

impl Kubernetes {
    /// One with so many machines, in a cloud that runs beside its control plane. Which server a machine is the guest of,
    /// [`KubernetesMachine::server`] says; its Node has that providerID.
    pub async fn in_a_cloud(machines: u8) -> Result<(Self, OpenStack)> {
        Self::make(machines, &[], around).await
    }
}

/// The cloud, with a server for each machine, and the file with which the CSI driver logs in there.
async fn around(
    directory: &Path,
    place: &Place,
    machines: &mut [KubernetesMachine],
) -> Result<(Option<PathBuf>, OpenStack)> {
    let cloud = OpenStack::within(place).await?;
    let [one, other, ..] = HOSTS;
    for (machine, host) in machines.iter_mut().zip([one, other].into_iter().cycle()) {
        let server = cloud.server(machine.name(), host).await?;
        cloud.guest(&server, &machine.switch())?;
        machine.becomes(&server)?;
    }
    let login = directory.join("openstack.json");
    knob::write_whole(&login, &cloud.tenant().to_string())?;
    Ok((Some(login), cloud))
}
