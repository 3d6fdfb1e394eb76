//! A gateway whose door has TLS, and callers with certificates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use picket_tests::peers::HANGS;
use picket_tests::{Client, Fleet, Gateway, Result, Said, picket, program};
use tempfile::TempDir;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::doors::authority::{Authority, Files, Holds};

/// Two racks of two simulated machines.
pub const FLEET: &str = r#"
[nodes."n[1-2]"]
labels = { rack = "r1" }
[nodes."n[1-2]".devices.bmc]
driver = "sim"
machine = "{node}"
[nodes."n[3-4]"]
labels = { rack = "r2" }
[nodes."n[3-4]".devices.bmc]
driver = "sim"
machine = "{node}"
"#;

/// Roles for everybody of these tests, and for the socket, by which the harness looks.
pub const ROLES: &str = r#"
[roles.socket]
role = "admin"
callers = ["uid:*"]
[roles.people]
role = "operator"
callers = ["*@example.org"]
[roles.programs]
role = "controller"
callers = ["spiffe://lab/ns/*"]
nodes = { rack = "r1" }
holders = ["db-*"]
[roles.screens]
role = "viewer"
callers = ["screen.example.org"]
"#;

/// The gateway, its CA, and where their files are.
pub struct Scene {
    pub gateway: Gateway,
    pub authority: Authority,
    pub endpoint: String,
    dir: TempDir,
}

impl Scene {
    /// Over that fleet, by those roles.
    pub async fn open() -> Result<Self> {
        Self::with("").await
    }

    /// With further lines in the settings.
    pub async fn with(lines: &str) -> Result<Self> {
        Self::over(FLEET, lines).await
    }

    /// Over another fleet, by those roles, with further lines in the settings.
    pub async fn over(fleet: &str, lines: &str) -> Result<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let authority = Authority::new();
        authority.write(&dir.path().join("ca.pem"));
        authority.server(dir.path(), "server", "127.0.0.1");
        let mut gateway = Gateway::new(&Fleet::new().with(fleet).with(ROLES).with(lines))?;
        let listen = tls(dir.path());
        let more = gateway.directory().join("conf.d");
        std::fs::create_dir(&more).expect("made");
        std::fs::write(more.join("listen.toml"), listen).expect("written");
        gateway.begin(&[]).await?;
        let address = address(&gateway.log());
        Ok(Self { gateway, authority, endpoint: format!("https://{address}"), dir })
    }

    /// A path in its directory.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    /// A caller's good certificate.
    pub fn caller(&self, name: &str) -> Files {
        let file: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        self.authority.client(self.dir.path(), &file, name, Holds::Now)
    }

    /// Runs `picket` as whoever has that certificate.
    pub async fn picket(&self, files: &Files, arguments: &[&str]) -> Result<Said> {
        self.picket_trusting(&self.path("ca.pem"), files, arguments).await
    }

    /// The same, to be started by the test.
    pub fn command(&self, files: &Files, arguments: &[&str]) -> Result<tokio::process::Command> {
        let mut command = tokio::process::Command::new(program("picket")?);
        command.args(self.way(&self.path("ca.pem"), files)).args(arguments);
        Ok(command)
    }

    /// The same, where the gateway's certificate is trusted by another CA.
    pub async fn picket_trusting(&self, ca: &Path, files: &Files, arguments: &[&str]) -> Result<Said> {
        let way = self.way(ca, files);
        let way: Vec<&str> = way.iter().map(String::as_str).collect();
        picket(&[&way, arguments].concat()).await
    }

    /// How `picket` comes to the gateway with these files.
    fn way(&self, ca: &Path, files: &Files) -> [String; 8] {
        let text = |path: &Path| path.display().to_string();
        let (certificate, key) = (text(&files.certificate), text(&files.key));
        let way = [
            "--endpoint",
            &self.endpoint,
            "--ca-file",
            &text(ca),
            "--cert-file",
            &certificate,
            "--key-file",
            &key,
        ];
        way.map(str::to_owned)
    }

    /// A connection of whoever has that certificate, or of nobody.
    pub async fn channel(
        &self,
        files: Option<&Files>,
    ) -> std::result::Result<Channel, tonic::transport::Error> {
        let read = |path: &Path| std::fs::read(path).expect("read");
        let mut tls =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&self.path("ca.pem"))));
        if let Some(files) = files {
            tls = tls.identity(Identity::from_pem(read(&files.certificate), read(&files.key)));
        }
        let endpoint = Endpoint::from_shared(self.endpoint.clone())?.tls_config(tls)?;
        endpoint.connect_timeout(HANGS).connect().await
    }

    /// A client of whoever has that certificate.
    pub async fn client(&self, files: &Files) -> Client {
        Client::new(self.channel(Some(files)).await.expect("connected"))
    }

    /// Waits until the log says all of these words in one line, and tells that line.
    pub async fn logged(&self, words: &[&str]) -> String {
        let deadline = tokio::time::Instant::now() + HANGS;
        loop {
            let log = self.gateway.log();
            if let Some(line) = log.lines().find(|line| words.iter().all(|word| line.contains(word))) {
                return line.to_owned();
            }
            assert!(tokio::time::Instant::now() < deadline, "{words:?} in no line of\n{log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// TLS with the files of that directory.
pub fn tls(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "[listen]\ntcp = \"127.0.0.1:0\"\n[listen.tls]\ncert_file = \"{dir}/server.pem\"\n\
         key_file = \"{dir}/server.key\"\nclient_ca_file = \"{dir}/ca.pem\"\n"
    )
}

/// Where it says that it listens.
fn address(log: &str) -> String {
    let line = log.lines().find(|line| line.contains("listening on TCP")).unwrap_or_else(|| panic!("{log}"));
    let word = line.split_whitespace().find_map(|word| word.strip_prefix("address="));
    word.unwrap_or_else(|| panic!("{line}")).to_owned()
}
