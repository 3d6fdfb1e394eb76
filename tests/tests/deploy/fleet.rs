//! Gateways of the chart whose fleet are the machines of the cluster in which they run, their store, and who calls them.

use std::path::Path;
use std::time::Duration;

use picket_tests::peers::{EtcdCluster, Kubernetes, KubernetesMachine, until};
use picket_tests::{Bmc, PeerError, Result, Said, program};
use serde_json::{Value, json};

use crate::certificates::{Authority, Leaf};

/// As long as a pod may take to be ready, on a machine that is busy.
pub const READY_WITHIN: Duration = Duration::from_secs(180);

/// An etcd outside of the machines, which knows its callers by that authority.
pub async fn store(cluster: &Kubernetes, authority: &Authority) -> Result<EtcdCluster> {
    let own = authority.at(&[cluster.place().address().into()]);
    let ca = authority.file();
    let tls = [("trusted-ca-file", &ca), ("cert-file", &own.certificate), ("key-file", &own.key)];
    let tls = tls.map(|(name, file)| format!("--{name}={}", file.display()));
    let mut arguments: Vec<&str> = tls.iter().map(String::as_str).collect();
    arguments.push("--client-cert-auth");
    EtcdCluster::within_with(&[cluster.place()], &arguments).await
}

pub fn secret(name: &str, files: &[(&str, &str)]) -> Value {
    let files: serde_json::Map<_, _> =
        files.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": "fencing" }, "stringData": files,
    })
}

pub fn certificate(name: &str, of: &Leaf, authority: &Authority) -> Value {
    secret(name, &[("tls.crt", &of.texts[0]), ("tls.key", &of.texts[1]), ("ca.crt", &authority.text())])
}

/// The fleet: the machines of the cluster.
pub fn fleet(uid: &str, machines: &[KubernetesMachine], more: &str) -> String {
    let nodes = machines.iter().map(|machine| {
        let (name, bmc) = (machine.name(), machine.bmc().address());
        let device =
            Bmc::at(bmc).with(&format!("identity = {{ uuid = \"{}\" }}", machine.uuid())).device(name, "bmc");
        let device: String = device
            .lines()
            .map(|line| {
                if line.starts_with("password_env") {
                    "password_file = \"/run/secrets/bmc/password\""
                } else {
                    line
                }
            })
            .flat_map(|line| [line, "\n"])
            .collect();
        format!("[nodes.{name}]\nreleases = [\"pods\"]\n{device}")
    });
    format!(
        "[roles.operators]\nrole = \"operator\"\ncallers = [\"alice@example.org\"]\n\
         [budget]\nat_once = 2\ncool_down = \"0s\"\nbrake_least = 1000\nmin_not_fenced = 0\n\
         [releases.pods]\nkind = \"kubernetes\"\ncluster_uid = {uid:?}\nsettle = \"0s\"\n{more}\n{}",
        nodes.collect::<String>()
    )
}

/// Alice, who calls from the control plane's host.
pub struct Alice<'a> {
    pub cluster: &'a Kubernetes,
    pub endpoint: String,
    pub authority: &'a Path,
    pub own: Leaf,
}

impl Alice<'_> {
    pub async fn picket(&self, arguments: &[&str]) -> Result<Said> {
        let mut command = tokio::process::Command::from(self.cluster.place().command(program("picket")?));
        command.args(["--endpoint", &self.endpoint]).arg("--ca-file").arg(self.authority);
        command.arg("--cert-file").arg(&self.own.certificate).arg("--key-file").arg(&self.own.key);
        command.args(arguments).stdin(std::process::Stdio::null()).kill_on_drop(true);
        Ok(Said::of(command.output().await.map_err(PeerError::io("run picket"))?))
    }

    /// Waits until a gateway leads, as it says itself; what it said.
    pub async fn is_answered(&self) -> Result<String> {
        until("a gateway leads", READY_WITHIN, async || {
            let said = self.picket(&["gateways"]).await?;
            Ok(said.code == 0 && said.out.contains("leads"))
        })
        .await?;
        Ok(self.picket(&["gateways"]).await?.out)
    }
}
