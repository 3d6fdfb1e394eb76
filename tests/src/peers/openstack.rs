//! OpenStack, the real one, on Nova's fake hypervisor (`tests/peers/openstack`).

mod guest;
mod journal;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

pub use self::journal::{Effect, Request};
use super::sdk::{Sdk, Who};
use super::{HANGS, Place, Process, fresh_address, knob, peer_file, reaper};
use crate::error::{PeerError, Result};

/// Its compute hosts. Who freezes one takes it for itself: the first two are for everybody.
pub const HOSTS: [&str; 4] = ["host-a", "host-b", "host-c", "host-d"];

const IDENTITY_PORT: u16 = 15_000;
const LETS_GO_WITHIN: Duration = Duration::from_secs(120);

/// A cloud that runs. It takes some seconds to begin and half a gigabyte: one serves all tests of a program, each of which has
/// servers of its own.
#[derive(Debug)]
pub struct OpenStack {
    client: Sdk,
    _process: Process,
    address: IpAddr,
    directory: Folder,
    /// How many lists of rules there were.
    ruled: AtomicU64,
}

/// Its directory. A cloud that a program keeps to its end is dropped by nobody.
#[derive(Debug)]
struct Folder(TempDir);

impl Folder {
    fn new() -> Result<Self> {
        let made = tempfile::Builder::new().prefix("picket-openstack-").tempdir();
        let made = made.map_err(PeerError::io("create a cloud's directory"))?;
        reaper::folder(made.path());
        Ok(Self(made))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        reaper::folder_removed(self.path());
    }
}

/// How the hypervisor treats one server. What is left at its default does not count.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerFault {
    /// Seconds before a guest is off; it ends when the fault is taken back.
    pub power_off_delay: f64,
    /// The hypervisor cannot switch it off.
    pub power_off_fail: bool,
    /// It says that it is off, and lets it live.
    pub power_off_lies: bool,
    /// Seconds before a guest is on.
    pub power_on_delay: f64,
    /// The hypervisor cannot switch it on.
    pub power_on_fail: bool,
    /// Seconds before a volume is detached.
    pub detach_delay: f64,
    /// The hypervisor cannot detach.
    pub detach_fail: bool,
    /// Seconds that a live migration takes.
    pub migrate_delay: f64,
    /// It fails.
    pub migrate_fail: bool,
}

/// What is done to requests; see `tests/peers/openstack/layer.py`. All parts must occur in the request.
#[derive(Clone, Debug, Serialize)]
pub struct RequestRule {
    /// `identity`, `compute` or `volumes`.
    pub service: &'static str,
    /// `POST`
    pub method: &'static str,
    /// A part of its path and query.
    pub path: String,
    /// A part of its body.
    pub body: String,
    /// A part of its User-Agent: `picket/` for our own alone.
    pub agent: String,
    /// So often.
    pub times: u32,
    /// A status as a number, or a word: `dropped`, `unanswered`, `cut`, `slow`, `late`.
    #[serde(rename = "do")]
    pub what: Value,
    /// How long `slow` and `late` take, in seconds.
    pub after: f64,
    /// The header Retry-After of a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<u32>,
}

impl RequestRule {
    /// Once, for requests to nova with this method and this part of the path: best a server's id.
    pub fn new(method: &'static str, path: impl Into<String>, what: impl Into<Value>) -> Self {
        let (path, what) = (path.into(), what.into());
        Self {
            service: "compute",
            method,
            path,
            body: String::new(),
            agent: String::new(),
            times: 1,
            what,
            after: 0.0,
            retry: None,
        }
    }
}

/// Rules that hold until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Rules(PathBuf);

impl Drop for Rules {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An application credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: String,
}

impl OpenStack {
    /// Starts one on an address of its own.
    pub async fn start() -> Result<Self> {
        Self::begin(fresh_address().ip(), None, &[]).await
    }

    /// One whose tokens live that long. Below two minutes it is slow itself: its services renew theirs so long before.
    pub async fn with_token_life(life: Duration) -> Result<Self> {
        let life = life.as_secs().to_string();
        Self::begin(fresh_address().ip(), None, &["--token-life", &life]).await
    }

    /// One that a thousand servers do not bring down.
    pub async fn for_many() -> Result<Self> {
        Self::begin(fresh_address().ip(), None, &["--many"]).await
    }

    /// Of the same nothing but Keystone and Nova's API, without a host: for what concerns tokens alone.
    pub async fn bare(life: Duration) -> Result<Self> {
        let life = life.as_secs().to_string();
        let arguments = ["--token-life", &life, "--services", "identity,compute", "--hosts", ""];
        Self::begin(fresh_address().ip(), None, &arguments).await
    }

    /// One on a host of a network. Only that host reaches it: it speaks plain http, which a gateway takes over loopback alone.
    pub async fn within(place: &Place) -> Result<Self> {
        Self::begin(IpAddr::from([127, 0, 0, 1]), Some(place), &[]).await
    }

    async fn begin(address: IpAddr, place: Option<&Place>, arguments: &[&str]) -> Result<Self> {
        let home = home()?;
        let directory = Folder::new()?;
        let python = |script: &str| {
            let program = home.join("venv/bin/python");
            let mut command = place.map_or_else(|| Command::new(&program), |place| place.command(&program));
            command.args(["-W", "ignore"]).arg(peer_file("openstack").join(script));
            command
        };
        let mut command = python("cloud.py");
        command.arg("run").arg(home.join("template")).arg(directory.path()).arg(address.to_string());
        command.args(["--hosts", &HOSTS.join(",")]).args(arguments);
        let mut process = Process::start(command, &directory.path().join("cloud.log"), "python3-venv")?;
        let deadline = Instant::now() + HANGS;
        while !process.log().contains("ready\n") {
            process.still_runs()?;
            if Instant::now() >= deadline {
                let (what, seen) = ("an OpenStack is ready".to_owned(), process.log());
                return Err(PeerError::TimedOut { what, within: HANGS, seen });
            }
            sleep(Duration::from_millis(20)).await;
        }
        let mut client = python("client.py");
        client.arg(address.to_string());
        let client = Sdk::start(client, &directory.path().join("client.log"))?;
        Ok(Self { client, _process: process, address, directory, ruled: AtomicU64::new(0) })
    }

    /// The Python in which it runs, with OpenStack's own clients.
    pub fn python() -> Result<PathBuf> {
        Ok(home()?.join("venv/bin/python"))
    }

    /// Where Keystone is.
    pub fn auth_url(&self) -> String {
        format!("http://{}:{IDENTITY_PORT}/v3", self.address)
    }

    /// A `clouds.yaml` with this one, called `cloud`.
    pub fn clouds_yaml(&self, who: &Who) -> String {
        let user = |name: &str, project: &str| {
            format!(
                "    auth_type: password\n    auth:\n      auth_url: {}\n      username: {name}\n      password: {name}-secret\n      \
                 project_name: {project}\n      user_domain_id: default\n      project_domain_id: default\n",
                self.auth_url()
            )
        };
        let login = match who {
            Who::Admin => user("admin", "admin"),
            Who::Owner => user("admin", "tenant"),
            Who::Tenant => user("tenant", "tenant"),
            Who::Application(Credential { id, secret }) => format!(
                "    auth_type: v3applicationcredential\n    auth:\n      auth_url: {}\n      application_credential_id: {id}\n      \
                 application_credential_secret: {secret}\n",
                self.auth_url()
            ),
        };
        format!("clouds:\n  cloud:\n    region_name: RegionOne\n{login}")
    }

    /// What a function of `tests/peers/openstack/client.py` answers, in that name.
    pub async fn ask(&self, who: &Who, what: &str, arguments: Value) -> Result<Value> {
        self.client.ask(who, what, arguments).await
    }

    /// The same where it answers with an id.
    async fn made(&self, who: &Who, what: &str, arguments: Value) -> Result<String> {
        let told = self.ask(who, what, arguments).await?;
        Ok(told.as_str().unwrap_or_default().to_owned())
    }

    /// A new server of the tenant's that runs on that host; its id.
    pub async fn server(&self, name: &str, host: &str) -> Result<String> {
        self.made(&Who::Owner, "create_server", json!({ "name": name, "host": host })).await
    }

    /// The same, booted from a volume of its own.
    pub async fn server_from(&self, name: &str, host: &str, volume: &str) -> Result<String> {
        let arguments = json!({ "name": name, "host": host, "boot_volume": volume });
        self.made(&Who::Owner, "create_server", arguments).await
    }

    /// A new volume of the tenant's; its id.
    pub async fn volume(&self, name: &str) -> Result<String> {
        self.made(&Who::Tenant, "create_volume", json!({ "name": name })).await
    }

    /// The same, from which a server can boot.
    pub async fn bootable_volume(&self, name: &str) -> Result<String> {
        self.made(&Who::Tenant, "create_volume", json!({ "name": name, "bootable": true })).await
    }

    /// The same, which several servers may have at once.
    pub async fn shared_volume(&self, name: &str) -> Result<String> {
        self.ask(&Who::Admin, "allow_shared", json!({})).await?;
        self.made(&Who::Tenant, "create_volume", json!({ "name": name, "kind": "shared" })).await
    }

    /// Attaches a volume, and waits until it is. Who had it until a moment ago has it a little longer for Nova than for Cinder.
    pub async fn attach(&self, server: &str, volume: &str) -> Result<()> {
        let end = Instant::now() + LETS_GO_WITHIN;
        let asked = json!({ "server": server, "volume": volume });
        while let Err(error) = self.ask(&Who::Tenant, "attach", asked.clone()).await {
            if Instant::now() >= end || !error.to_string().contains("is already attached to instances") {
                return Err(error);
            }
            sleep(Duration::from_millis(200)).await;
        }
        self.until_volume(volume, "in-use").await
    }

    /// What Nova says of a server to whom.
    pub async fn look(&self, who: &Who, server: &str) -> Result<Value> {
        self.ask(who, "server", json!({ "server": server })).await
    }

    /// Waits until Nova says that of a server's status.
    pub async fn until_server(&self, server: &str, status: &str) -> Result<()> {
        let seen = || -> Asking<'_> {
            Box::pin(async { Ok(self.look(&Who::Tenant, server).await?["status"].clone()) })
        };
        until(&format!("server {server} is {status}"), status, seen).await
    }

    /// Waits until Cinder says that of a volume; of one that is available also that nobody has it: it says so a moment later.
    pub async fn until_volume(&self, volume: &str, status: &str) -> Result<()> {
        let seen = || -> Asking<'_> {
            Box::pin(async {
                let volume = self.ask(&Who::Tenant, "volume", json!({ "volume": volume })).await?;
                let free = volume["attachments"].as_array().is_none_or(Vec::is_empty);
                let is_held = volume["status"] == "available" && !free;
                Ok(volume[if is_held { "attachments" } else { "status" }].clone())
            })
        };
        until(&format!("volume {volume} is {status}"), status, seen).await
    }

    /// A new application credential of that one, with access rules (`{"service": "compute", "method": "GET", "path":
    /// "/v2.1/servers/*"}`, where `*` stands for one segment and `**` for any) for what they say alone.
    pub async fn credential(&self, who: &Who, name: &str, rules: &[Value]) -> Result<Credential> {
        let made = self.ask(who, "application_credential", json!({ "name": name, "rules": rules })).await?;
        let word = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
        Ok(Credential { id: word("id"), secret: word("secret") })
    }

    /// From now on the hypervisor treats that server so; the default ends it.
    pub fn hinder(&self, server: &str, fault: &ServerFault) -> Result<()> {
        self.knob(&format!("server-{server}"), fault).map(drop)
    }

    /// The compute service of a host stands: it takes no message and reports nothing. `known`: that for so long that Nova knows.
    pub fn freeze_host(&self, host: &str, known: bool) -> Result<()> {
        self.knob(&format!("host-{host}"), &json!({ "frozen": true, "down": known })).map(drop)
    }

    /// It goes on, with all that it was told meanwhile.
    pub fn thaw_host(&self, host: &str) -> Result<()> {
        self.knob(&format!("host-{host}"), &json!({})).map(drop)
    }

    /// Does that to requests for as long as the answer is kept.
    pub fn rules(&self, rules: &[RequestRule]) -> Result<Rules> {
        let number = self.ruled.fetch_add(1, Ordering::SeqCst);
        self.knob(&format!("requests-{number}"), &rules).map(Rules)
    }

    fn knob(&self, name: &str, what: &impl Serialize) -> Result<PathBuf> {
        let place = self.directory.path().join("knobs").join(format!("{name}.json"));
        knob::write_whole(&place, &json!(what).to_string())?;
        Ok(place)
    }
}

/// A question under way, which may go from thread to thread.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<Value>> + Send + 'a>>;

/// Asks until it hears that word; not so often that Nova would have no time for anything else.
async fn until<'a>(what: &str, word: &str, seen: impl Fn() -> Asking<'a>) -> Result<()> {
    let deadline = Instant::now() + HANGS;
    loop {
        let now = seen().await?;
        if now == word {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(PeerError::TimedOut { what: what.to_owned(), within: HANGS, seen: now.to_string() });
        }
        sleep(Duration::from_millis(250)).await;
    }
}

/// The folder with the virtual environment and the template: `PICKET_TEST_OPENSTACK`, else the one that `cargo xtask test` makes.
fn home() -> Result<PathBuf> {
    let cache = || {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
    };
    let given = std::env::var_os("PICKET_TEST_OPENSTACK").map(PathBuf::from);
    let home = given.or_else(|| Some(cache()?.join("picket/openstack"))).unwrap_or_default();
    if home.join("venv/bin/python").exists() && home.join("template").exists() {
        return Ok(home);
    }
    let what = format!(
        "an OpenStack ({} has no venv or no template: cargo xtask test makes both, and PICKET_TEST_OPENSTACK may name another)",
        home.display()
    );
    Err(PeerError::Missing { what, package: "python3-venv" })
}
