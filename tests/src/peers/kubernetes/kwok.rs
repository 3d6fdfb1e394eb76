//! kwok, for more Nodes than there is room for machines: one process is the kubelet of each Node that a label selects.

use std::path::PathBuf;

use super::super::{Process, peer_file};
use super::{Kubernetes, programs};
use crate::error::{PeerError, Result};

/// For how long a kubelet says that its lease is good: the default. A quarter of that is how often it is renewed.
const LEASE: &str = "--node-lease-duration-seconds=40";

/// Kubelets of Nodes that run no pod. All of them end with this.
#[derive(Debug)]
pub struct Kwok {
    process: Process,
}

/// Kubelets that stand still, as behind a switch that is dead, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Silent<'a>(&'a Kwok);

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        self.0.process.thaw();
    }
}

impl Kwok {
    /// None of them renews a lease or says anything.
    pub fn falls_silent(&self) -> Silent<'_> {
        self.process.freeze();
        Silent(self)
    }

    /// An error if it has ended, with what it said.
    pub fn still_runs(&mut self) -> Result<()> {
        self.process.still_runs()
    }
}

impl Kubernetes {
    /// The kubelets of all Nodes that have this label, now and later. They renew their leases every ten seconds, as real ones do.
    pub fn kwok(&self, key: &str, value: &str) -> Result<Kwok> {
        let program = program()?;
        let mut command = self.place().command(program);
        command.arg("--kubeconfig").arg(self.admin());
        command.arg("--config").arg(peer_file("kubernetes/kubelets.yaml"));
        command.arg(format!("--manage-nodes-with-label-selector={key}={value}")).arg(LEASE);
        // It reads nothing of whoever runs the tests.
        command.env("HOME", self.directory()).current_dir(self.directory());
        let log = self.directory().join(format!("kwok-{value}.log"));
        Ok(Kwok { process: Process::start(command, &log, "util-linux")? })
    }
}

fn program() -> Result<PathBuf> {
    let program = programs::home()?.join("bin/kwok");
    if program.exists() {
        return Ok(program);
    }
    let what = format!("kwok ({} is not there: cargo xtask test builds it)", program.display());
    Err(PeerError::Missing { what, package: "none: it is built" })
}
