//! Compute Engine, made from Google's discovery document, with a world behind it (`tests/peers/gcp`).

mod clients;
mod told;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

pub use self::told::{
    GceDisk, GceDiskState, GceEvent, GceInstance, GceMake, GceRequest, GceState, GceToken, GceTreatment,
    GceUser,
};
use super::{Process, fresh_address, hand, peer_file, python, reaper};
use crate::error::{PeerError, Result};

/// The project that everything is in.
const PROJECT: &str = "picket-tests";

/// A Compute Engine that runs. One serves many tests: each has instances and users of its own.
#[derive(Debug)]
pub struct ComputeEngine {
    address: SocketAddr,
    process: Process,
    directory: TempDir,
}

impl ComputeEngine {
    /// Starts one on an address of its own.
    pub async fn start() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("picket-gce-").tempdir();
        let directory = directory.map_err(PeerError::io("create a directory"))?;
        reaper::folder(directory.path());
        let address = fresh_address();
        let mut command = Command::new(interpreter()?);
        command.args(["-B", "-W", "ignore"]).arg(peer_file("gcp").join("compute.py"));
        command.arg(address.ip().to_string()).arg(address.port().to_string());
        let log = directory.path().join("compute.log");
        let process = hand::started(command, &log, address).await?;
        Ok(Self { address, process, directory })
    }

    /// Where it is asked.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// The project that everything is in.
    pub fn project(&self) -> &'static str {
        PROJECT
    }

    /// What `compute.py` answers to that verb. It refuses all of them once an answer of its own violated the document.
    async fn ask<T: DeserializeOwned>(&self, verb: &str, with: Value) -> Result<T> {
        hand::ask("compute.py", &self.process, self.address, verb, with).await
    }

    /// So many instances that run.
    pub async fn instances(&self, count: usize, what: &GceMake) -> Result<Vec<GceInstance>> {
        let mut asked = json!(what);
        asked["count"] = count.into();
        self.ask("make", asked).await
    }

    /// One of them.
    pub async fn make(&self, what: &GceMake) -> Result<GceInstance> {
        Ok(self.instances(1, what).await?.remove(0))
    }

    /// One with data disks at these devices.
    pub async fn instance(&self, devices: &[&str]) -> Result<GceInstance> {
        let disks = devices.iter().map(|device| GceDisk::new(device)).collect();
        self.make(&GceMake { disks, ..GceMake::default() }).await
    }

    /// A service account that may do that and no more (`*`: everything), with tokens that live for an hour.
    pub async fn user(&self, permissions: &[&str]) -> Result<GceUser> {
        self.ask("user", json!({ "permissions": permissions })).await
    }

    /// Its tokens live for so many seconds from now on, those that there are included.
    pub async fn life(&self, user: &GceUser, seconds: f64) -> Result<()> {
        self.ask("life", json!({ "email": user.email, "life": seconds })).await
    }

    /// None of its tokens that there are is good any more.
    pub async fn revoke(&self, user: &GceUser) -> Result<()> {
        self.ask("revoke", json!({ "email": user.email })).await
    }

    /// The address of a metadata server, as a machine has it that this account was given to (`GCE_METADATA_HOST`).
    pub async fn metadata(&self, user: &GceUser) -> Result<String> {
        self.ask("metadata", json!({ "email": user.email })).await
    }

    /// How it is treated from now on, instead of what was before.
    pub async fn treat(&self, instance: &str, how: &GceTreatment) -> Result<()> {
        let mut how = json!(how);
        how["instance"] = instance.into();
        self.ask("treat", how).await
    }

    /// What becomes of the next requests for that method which name that instance or disk; `knobs.py` says what can.
    pub async fn rule(&self, method: &str, names: &str, times: u32, what: Value) -> Result<()> {
        self.ask("rule", json!({ "method": method, "names": names, "times": times, "do": what })).await
    }

    /// Somebody else's hand, at once.
    pub async fn switch(&self, instance: &str, status: &str) -> Result<()> {
        self.ask("switch", json!({ "instance": instance, "status": status })).await
    }

    /// Somebody else's hand attaches a disk, by its name, or a new one: its path. Two may have one that is `READ_ONLY` at both.
    pub async fn attach(
        &self,
        instance: &str,
        device: &str,
        disk: Option<&str>,
        mode: &str,
    ) -> Result<String> {
        let what = json!({ "instance": instance, "device": device, "disk": disk, "mode": mode });
        self.ask("attach", what).await
    }

    /// The same: detaches what is there.
    pub async fn detach(&self, instance: &str, device: &str) -> Result<()> {
        self.ask("detach", json!({ "instance": instance, "device": device })).await
    }

    /// The boot disk of an instance, as a path.
    pub async fn boot_disk(&self, instance: &GceInstance) -> Result<String> {
        self.disk(&instance.name).await?;
        Ok(format!("projects/{PROJECT}/zones/{}/disks/{}", instance.zone, instance.name))
    }

    /// Another one of its name takes its place, and has its disks: its number.
    pub async fn replace(&self, instance: &str) -> Result<String> {
        self.ask("replace", json!({ "instance": instance })).await
    }

    /// The same, which comes with disks of its own: those of the one before are nobody's.
    pub async fn replace_alone(&self, instance: &str) -> Result<String> {
        self.ask("replace", json!({ "instance": instance, "disks": false })).await
    }

    /// The truth of an instance, by its number.
    pub async fn truth(&self, instance: &str) -> Result<GceState> {
        self.ask("state", json!({ "instance": instance })).await
    }

    /// Its status: `RUNNING`, `TERMINATED`, or where it is on its way.
    pub async fn state(&self, instance: &str) -> Result<String> {
        Ok(self.truth(instance).await?.status)
    }

    /// The truth of a disk, by its name.
    pub async fn disk(&self, disk: &str) -> Result<GceDiskState> {
        self.ask("disk", json!({ "disk": disk })).await
    }

    /// Everything that came, in order.
    pub async fn journal(&self) -> Result<Vec<GceRequest>> {
        self.asked("").await
    }

    /// What came that names it, in order.
    pub async fn asked(&self, names: &str) -> Result<Vec<GceRequest>> {
        self.ask("journal", json!({ "names": names })).await
    }

    /// The same of one method.
    pub async fn asked_to(&self, method: &str, names: &str) -> Result<Vec<GceRequest>> {
        Ok(self.asked(names).await?.into_iter().filter(|request| request.method == method).collect())
    }

    /// What came that the discovery document does not allow, of one instance or (`""`) of all.
    pub async fn violations(&self, names: &str) -> Result<Vec<GceRequest>> {
        Ok(self.asked(names).await?.into_iter().filter(|request| request.violation.is_some()).collect())
    }

    /// What really became of an instance or a disk, in order.
    pub async fn events(&self, names: &str) -> Result<Vec<GceEvent>> {
        self.ask("events", json!({ "names": names })).await
    }

    /// `zoneOperations.wait` waits so long at most.
    pub async fn waits(&self, most: Duration) -> Result<()> {
        self.ask("waits", json!({ "seconds": most.as_secs_f64() })).await
    }

    /// A request's id is remembered for so long.
    pub async fn memory(&self, lasts: Duration) -> Result<()> {
        self.ask("memory", json!({ "seconds": lasts.as_secs_f64() })).await
    }

    /// The documented limits hold from now on: so many requests a minute of each group, in each region.
    pub async fn limits(&self) -> Result<()> {
        self.ask("bucket", json!({ "limits": {} })).await
    }

    /// Others: `{"mutate": 2}` an interval.
    pub async fn limits_of(&self, limits: Value, interval: Duration) -> Result<()> {
        self.ask("bucket", json!({ "limits": limits, "interval": interval.as_secs_f64() })).await
    }

    /// No limits, as at the beginning.
    pub async fn no_limits(&self) -> Result<()> {
        self.ask("bucket", json!({})).await
    }

    /// From now on it hears and answers nothing, or does again.
    pub async fn silence(&self, on: bool) -> Result<()> {
        self.ask("silence", json!({ "on": on })).await
    }

    /// How many requests wait in silence.
    pub async fn held(&self) -> Result<u32> {
        self.ask("held", json!({})).await
    }

    /// No treatment and no rule of it is left.
    pub async fn mend(&self, names: &str) -> Result<()> {
        self.ask("mend", json!({ "names": names })).await
    }

    /// An access token of that account, for [`ComputeEngine::bare`].
    pub async fn token(&self, user: &GceUser) -> Result<String> {
        self.ask("token", json!({ "email": user.email })).await
    }

    /// A file of its directory, with that content.
    fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).map_err(PeerError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// A service account's key file.
    pub fn service_account_file(&self, user: &GceUser) -> Result<PathBuf> {
        self.file(&format!("{}.json", user.email), &user.key.to_string())
    }

    /// A key file in the name of one account, with the private key of another one: nothing that it signs is good.
    pub fn forged_file(&self, user: &GceUser, other: &GceUser) -> Result<PathBuf> {
        let mut key = user.key.clone();
        key["private_key"] = other.key["private_key"].clone();
        self.file(&format!("forged-{}.json", user.email), &key.to_string())
    }

    /// An external account's file, as workload identity federation has it: its foreign token is in a file beside it.
    pub fn external_account_file(&self, user: &GceUser) -> Result<PathBuf> {
        let subject = self.file(&format!("{}.subject", user.email), &user.subject)?;
        let mut external = user.external.clone();
        external["credential_source"] = json!({ "file": subject });
        self.file(&format!("external-{}.json", user.email), &external.to_string())
    }

    /// The same, whose tokens shall live for so many seconds.
    pub fn short_lived_file(&self, user: &GceUser, seconds: u64) -> Result<PathBuf> {
        let mut user = user.clone();
        user.external["service_account_impersonation"] = json!({ "token_lifetime_seconds": seconds });
        self.external_account_file(&user)
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for ComputeEngine {
    fn drop(&mut self) {
        reaper::folder_removed(self.directory.path());
    }
}

/// Its interpreter, which is that of Google's clients too.
fn interpreter() -> Result<PathBuf> {
    python::of("gcp", "PICKET_TEST_GCP")
}
