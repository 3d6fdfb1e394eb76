//! The control plane: etcd, the API server, the controllers and the scheduler, on a host of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{Etcd, Place, Process};
use super::pki::{Authority, by_certificate};
use crate::error::Result;

#[derive(Debug)]
pub(super) struct ControlPlane {
    pub(super) api_server: Process,
    /// `None`: none has been started yet.
    pub(super) controllers: Option<Process>,
    // The others end before it.
    others: Vec<Process>,
    starting: Starting,
}

/// What its programs are started by.
#[derive(Debug)]
struct Starting {
    cluster: PathBuf,
    programs: PathBuf,
    place: Place,
}

impl Starting {
    fn start(&self, program: &str, arguments: &[String]) -> Result<Process> {
        let mut command = self.place.command(self.programs.join("bin").join(program));
        command.current_dir(&self.cluster).args(arguments);
        Process::start(command, &self.cluster.join(format!("{program}.log")), "util-linux")
    }

    /// etcd is of another build.
    fn etcd(&self) -> Result<Process> {
        let mut command = self.place.command(Etcd::Present.program()?);
        // Nobody's power is cut here: what is written outlives the process.
        command.args(["--name=a", "--unsafe-no-fsync"]);
        command.arg(format!("--data-dir={}", self.cluster.join("etcd").display()));
        for (what, port) in [("client", 2379), ("peer", 2380)] {
            command.arg(format!("--listen-{what}-urls=http://127.0.0.1:{port}"));
            let told = if what == "client" { "advertise-client" } else { "initial-advertise-peer" };
            command.arg(format!("--{told}-urls=http://127.0.0.1:{port}"));
        }
        command.arg("--initial-cluster=a=http://127.0.0.1:2380");
        Process::start(command, &self.cluster.join("etcd.log"), "util-linux")
    }
}

fn owned(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

impl ControlPlane {
    /// etcd and the API server, which is asked next until it is ready, with a login for the controllers and the scheduler.
    pub(super) fn start(
        cluster: &Path,
        programs: &Path,
        place: &Place,
        authority: &Authority,
    ) -> Result<Self> {
        authority.server()?;
        for name in ["kube-controller-manager", "kube-scheduler"] {
            authority.client(name, None, &format!("system:{name}"))?;
            by_certificate(cluster, name)?;
        }
        let (cluster, programs) = (cluster.to_owned(), programs.to_owned());
        let starting = Starting { cluster, programs, place: place.clone() };
        let etcd = starting.etcd()?;
        let arguments = owned(&[
            "--etcd-servers=http://127.0.0.1:2379",
            "--bind-address=0.0.0.0",
            "--secure-port=6443",
            "--advertise-address=10.250.0.1",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--tls-cert-file=pki/apiserver.crt",
            "--tls-private-key-file=pki/apiserver.key",
            "--client-ca-file=pki/ca.crt",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default",
            "--service-account-key-file=pki/sa.pub",
            "--service-account-signing-key-file=pki/sa.key",
            "--allow-privileged=true",
        ]);
        let api_server = starting.start("kube-apiserver", &arguments)?;
        Ok(Self { api_server, controllers: None, others: vec![etcd], starting })
    }

    /// The controllers, with these further arguments, and the scheduler.
    pub(super) fn control(&mut self, further: &[&str]) -> Result<()> {
        let login = |name: &str| {
            ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
                .map(|option| format!("--{option}={name}.kubeconfig"))
        };
        let mut arguments = owned(&[
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            "--use-service-account-credentials",
            "--service-account-private-key-file=pki/sa.key",
            "--root-ca-file=pki/ca.crt",
            // A dead machine is noticed in seconds (the default is 50).
            "--node-monitor-grace-period=8s",
            "--node-monitor-period=1s",
            // Tests beside each other let several machines fail at once; the controllers would evict nobody then.
            "--node-eviction-rate=10",
            "--unhealthy-zone-threshold=1",
        ]);
        arguments.extend(login("kube-controller-manager"));
        // Last: of an option that is given twice the last counts.
        arguments.extend(owned(further));
        self.controllers = Some(self.starting.start("kube-controller-manager", &arguments)?);
        let mut arguments = owned(&["--bind-address=127.0.0.1", "--leader-elect=false"]);
        arguments.extend(login("kube-scheduler"));
        self.others.insert(0, self.starting.start("kube-scheduler", &arguments)?);
        Ok(())
    }

    /// An error if one of its programs has ended.
    pub(super) fn still_runs(&mut self) -> Result<()> {
        self.api_server.still_runs()?;
        self.controllers.iter_mut().chain(&mut self.others).try_for_each(Process::still_runs)
    }
}

/// How long its parts may take.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(120);
