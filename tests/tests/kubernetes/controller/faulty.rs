//! An API server that refuses, dawdles, or forgets what was watched, for a controller alone: everybody else asks the real one.

use std::path::PathBuf;

use picket_tests::peers::{Process, test_python, until};
use picket_tests::{PeerError, Result};
use rcgen::{CertificateParams, KeyPair, SanType};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::controller::scene::Scene;

/// Where it listens, beside the real one.
const PORT: u16 = 6444;

pub struct FaultyApi {
    dir: TempDir,
    _process: Process,
}

impl FaultyApi {
    /// It passes everything on, until it is told otherwise.
    pub async fn start(scene: &Scene) -> Result<Self> {
        let dir = tempfile::tempdir().map_err(PeerError::io("make a directory"))?;
        let address = scene.cluster.place().address();
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::IpAddress(address.into())];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = |name: &str| dir.path().join(name);
        for (name, text) in [
            ("tls.crt", certificate.pem()),
            ("tls.key", key.serialize_pem()),
            ("orders.json", json!({ "do": "pass" }).to_string()),
        ] {
            std::fs::write(file(name), text).map_err(PeerError::io("write what a proxy goes by"))?;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/kubernetes/api_faults.py");
        let mut command = scene.cluster.place().command(test_python()?);
        command.arg(script).arg(format!("{address}:{PORT}")).arg(file("tls.crt")).arg(file("tls.key"));
        command.arg(format!("{address}:6443"));
        command.arg(scene.cluster.directory().join("pki/ca.crt")).arg(file("orders.json"));
        let process = Process::start(command, &file("log"), "none: it comes with the tests")?;
        let listens = async || Ok(process.log().contains("listening"));
        until("the proxy listens", std::time::Duration::from_secs(30), listens).await?;
        Ok(Self { dir, _process: process })
    }

    /// The kubeconfig of the shipped account, by way of it.
    pub fn login(&self, scene: &Scene) -> Result<PathBuf> {
        let real = std::fs::read_to_string(scene.login()).map_err(PeerError::io("read a kubeconfig"))?;
        let address = scene.cluster.place().address();
        let line = |line: &str| match line.starts_with("clusters: ") {
            true => format!(
                "clusters: [{{name: cluster, cluster: {{server: 'https://{address}:{PORT}', certificate-authority: {}}}}}]\n",
                self.dir.path().join("tls.crt").display()
            ),
            false => format!("{line}\n"),
        };
        let path = self.dir.path().join("kubeconfig");
        let text: String = real.lines().map(line).collect();
        std::fs::write(&path, text).map_err(PeerError::io("write a kubeconfig"))?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).map_err(PeerError::io("chmod a kubeconfig"))?;
        Ok(path)
    }

    /// What it does from now on; what is open is cut.
    pub fn does(&self, what: &Value) -> Result<()> {
        let (new, place) = (self.dir.path().join("orders.new"), self.dir.path().join("orders.json"));
        std::fs::write(&new, what.to_string()).map_err(PeerError::io("write orders"))?;
        std::fs::rename(new, place).map_err(PeerError::io("give orders"))
    }
}
