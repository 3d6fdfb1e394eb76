//! EC2, as moto has it, with states that last, faults and a journal (`tests/peers/aws/ec2.py`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Process, fresh_address, hand, peer_file, python, reaper};
use crate::error::{PeerError, Result};

/// The policy that is shipped: its actions are what a user needs.
const POLICY: &str = include_str!("../../../deploy/aws/policy.json");

/// What is needed besides by who terminates.
const TERMINATES: &str = include_str!("../../../deploy/aws/terminate.json");

/// An EC2 that runs. One serves many tests: each has instances of its own.
#[derive(Debug)]
pub struct Ec2 {
    address: SocketAddr,
    process: Process,
    directory: TempDir,
}

/// How an instance is treated. What is left at its default does not count.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Treatment {
    /// Seconds before it is stopped.
    pub stopping: f64,
    /// How many stops it takes, each by force and without asking its system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops: Option<u32>,
    /// What its state is called, whatever it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<&'static str>,
    /// Seconds before it runs.
    pub pending: f64,
    /// Seconds before a volume of it is free, unless it is detached by force.
    pub detaching: f64,
    /// Its guest lives, and obeys any stop.
    pub alive: bool,
}

/// A request that came.
#[derive(Clone, Debug, Deserialize)]
pub struct Ec2Request {
    /// Seconds since 1970.
    pub at: f64,
    /// `StopInstances`
    pub action: String,
    /// What it says.
    pub fields: BTreeMap<String, String>,
    /// What was answered; 0: nothing.
    pub status: u16,
}

/// An access key.
#[derive(Clone, Debug, Deserialize)]
pub struct AccessKey {
    /// Its id.
    pub id: String,
    /// Its secret.
    pub secret: String,
}

/// A role, and the token by which who has it may assume it.
#[derive(Clone, Debug, Deserialize)]
pub struct AwsRole {
    /// Its name.
    pub arn: String,
    /// The token.
    pub token: String,
}

/// What became of an instance.
#[derive(Clone, Debug, Deserialize)]
pub struct Became {
    /// `stopped`
    pub state: String,
    /// Seconds since 1970.
    pub at: f64,
}

/// What EBS says of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct VolumeState {
    /// `available`, `in-use`
    pub state: String,
    /// The instances that have it.
    pub at: Vec<String>,
}

/// What a policy that is shipped allows.
fn allowed(policy: &str) -> Vec<String> {
    let policy: Value = serde_json::from_str(policy).unwrap_or_default();
    let statements = policy["Statement"].as_array().cloned().unwrap_or_default();
    let actions =
        statements.iter().flat_map(|statement| statement["Action"].as_array().into_iter().flatten());
    actions.filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Ec2 {
    /// Starts one on an address of its own.
    pub async fn start() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("picket-ec2-").tempdir();
        let directory = directory.map_err(PeerError::io("create a directory"))?;
        reaper::folder(directory.path());
        let address = fresh_address();
        let mut command = Command::new(Self::python()?);
        command.args(["-B", "-W", "ignore"]).arg(peer_file("aws").join("ec2.py"));
        command.arg(address.ip().to_string()).arg(address.port().to_string());
        let log = directory.path().join("ec2.log");
        let process = hand::started(command, &log, address).await?;
        Ok(Self { address, process, directory })
    }

    /// The Python in which it runs, with AWS's own client.
    pub fn python() -> Result<PathBuf> {
        python::of("aws", "PICKET_TEST_AWS")
    }

    /// Where it is asked.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What `ec2.py` answers to that verb.
    async fn ask<T: DeserializeOwned>(&self, verb: &str, with: Value) -> Result<T> {
        hand::ask("ec2.py", &self.process, self.address, verb, with).await
    }

    /// So many instances that run, each with volumes at these devices besides its root.
    pub async fn instances(&self, count: usize, devices: &[&str]) -> Result<Vec<String>> {
        self.ask("make", json!({ "count": count, "volumes": devices })).await
    }

    /// One of them.
    pub async fn instance(&self, devices: &[&str]) -> Result<String> {
        Ok(self.instances(1, devices).await?.remove(0))
    }

    /// One that runs by a spot request: `one-time`, `persistent`.
    pub async fn spot_instance(&self, kind: &str) -> Result<String> {
        self.ask("spot", json!({ "kind": kind })).await
    }

    /// The volumes of an instance by their devices, without its root.
    pub async fn volumes(&self, instance: &str) -> Result<BTreeMap<String, String>> {
        self.ask("volumes", json!({ "instance": instance })).await
    }

    /// What EBS says of a volume.
    pub async fn volume(&self, volume: &str) -> Result<VolumeState> {
        self.ask("volume", json!({ "volume": volume })).await
    }

    /// A user who may do that and no more.
    pub async fn user(&self, actions: &[&str]) -> Result<AccessKey> {
        self.ask("user", json!({ "actions": actions })).await
    }

    /// The actions that the shipped policy allows.
    pub fn policy() -> Vec<String> {
        allowed(POLICY)
    }

    /// A user who may do what the shipped policy allows.
    pub async fn picket(&self) -> Result<AccessKey> {
        self.allowed(&[POLICY]).await
    }

    /// A user who may terminate besides.
    pub async fn who_terminates(&self) -> Result<AccessKey> {
        self.allowed(&[POLICY, TERMINATES]).await
    }

    async fn allowed(&self, policies: &[&str]) -> Result<AccessKey> {
        let actions: Vec<String> = policies.iter().flat_map(|policy| allowed(policy)).collect();
        self.user(&actions.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// The truth: `running`, `stopped`, or where it is on its way.
    pub async fn state(&self, instance: &str) -> Result<String> {
        self.ask("state", json!({ "instance": instance })).await
    }

    /// Somebody else's hand, at once.
    pub async fn switch(&self, instance: &str, state: &str) -> Result<()> {
        self.ask("switch", json!({ "instance": instance, "state": state })).await
    }

    /// From now on, instead of what was before.
    pub async fn treat(&self, instance: &str, how: &Treatment) -> Result<()> {
        let mut how = json!(how);
        how["instance"] = instance.into();
        self.ask("treat", how).await
    }

    /// The same for many.
    pub async fn treat_all(&self, instances: &[String], how: &Treatment) -> Result<()> {
        let mut how = json!(how);
        how["instances"] = json!(instances);
        self.ask("treat_all", how).await
    }

    /// What becomes of the next requests for that action which name that instance, or volume; `ec2.py` says what can.
    pub async fn rule(&self, action: &str, names: &str, times: u32, what: Value) -> Result<()> {
        self.ask("rule", json!({ "action": action, "names": names, "times": times, "do": what })).await
    }

    /// A volume bears these tags, too; `Name` is its name.
    pub async fn label(&self, volume: &str, tags: Value) -> Result<()> {
        self.ask("label", json!({ "volume": volume, "tags": tags })).await
    }

    /// The truth: into which states it came, in order.
    pub async fn became(&self, instance: &str) -> Result<Vec<Became>> {
        self.ask("became", json!({ "instance": instance })).await
    }

    /// Its root volume.
    pub async fn root(&self, instance: &str) -> Result<String> {
        self.ask("root", json!({ "instance": instance })).await
    }

    /// A volume that nobody has.
    pub async fn blank_volume(&self) -> Result<String> {
        self.ask("blank", json!({})).await
    }

    /// Somebody else's hand: attaches a volume.
    pub async fn attach(&self, instance: &str, volume: &str, device: &str) -> Result<()> {
        self.ask("attach", json!({ "instance": instance, "volume": volume, "device": device })).await
    }

    /// The same: detaches it.
    pub async fn detach(&self, instance: &str, volume: &str, device: &str) -> Result<()> {
        self.ask("detach", json!({ "instance": instance, "volume": volume, "device": device })).await
    }

    /// The volume may have several owners, and this is one more.
    pub async fn share(&self, instance: &str, volume: &str, device: &str) -> Result<()> {
        self.ask("share", json!({ "instance": instance, "volume": volume, "device": device })).await
    }

    /// Whether the volume at that device is deleted with the instance.
    pub async fn goes_with(&self, instance: &str, device: &str, on: bool) -> Result<()> {
        self.ask("goes", json!({ "instance": instance, "device": device, "on": on })).await
    }

    /// Somebody else hibernates it.
    pub async fn hibernate(&self, instance: &str) -> Result<()> {
        self.ask("hibernate", json!({ "instance": instance })).await
    }

    /// The shipped policy that keeps off is in force for it, and sees `lag` seconds late that the tag is gone.
    pub async fn keep_off(&self, instance: &str, lag: u32) -> Result<()> {
        self.ask("keep_off", json!({ "instance": instance, "lag": lag })).await
    }

    /// From now on it takes a signature for so long.
    pub async fn patience(&self, seconds: u64) -> Result<()> {
        self.ask("patience", json!({ "seconds": seconds })).await
    }

    /// A role that may do what the shipped policy allows.
    pub async fn role(&self) -> Result<AwsRole> {
        self.ask("role", json!({ "actions": allowed(POLICY) })).await
    }

    /// A role that may assume others.
    pub async fn role_that_assumes(&self) -> Result<AwsRole> {
        self.ask("role", json!({ "actions": ["sts:AssumeRole"] })).await
    }

    /// From now on the metadata services give that role's credentials: an instance's at this endpoint, ECS's at `/ecs/credentials` of it
    /// to who says the word that this returns.
    pub async fn serve(&self, role: &AwsRole) -> Result<String> {
        let () = self.ask("serve", json!({ "arn": role.arn })).await?;
        self.ask("ecs_token", json!({})).await
    }

    /// How often a path of theirs was asked for.
    pub async fn served(&self, path: &str) -> Result<u64> {
        self.ask("served", json!({ "path": path })).await
    }

    /// Its DisableApiStop is set, and it is of that auto-scaling group.
    pub async fn protect(&self, instance: &str, group: &str) -> Result<()> {
        self.ask("protect", json!({ "instance": instance, "group": group })).await
    }

    /// From now on it hears and answers nothing, or does again.
    pub async fn silence(&self, on: bool) -> Result<()> {
        self.ask("silence", json!({ "on": on })).await
    }

    /// No treatment and no rule of it is left.
    pub async fn mend(&self, names: &str) -> Result<()> {
        self.ask("mend", json!({ "names": names })).await
    }

    /// Its tags.
    pub async fn tags(&self, instance: &str) -> Result<BTreeMap<String, String>> {
        self.ask("tags", json!({ "instance": instance })).await
    }

    /// What came that names it, in order.
    pub async fn asked(&self, names: &str) -> Result<Vec<Ec2Request>> {
        self.ask("journal", json!({ "names": names })).await
    }

    /// The same of one action.
    pub async fn asked_to(&self, action: &str, names: &str) -> Result<Vec<Ec2Request>> {
        Ok(self.asked(names).await?.into_iter().filter(|request| request.action == action).collect())
    }

    /// From now on requests and instances are counted as AWS documents, from full buckets on.
    pub async fn limits(&self, on: bool) -> Result<()> {
        self.ask("limits", json!({ "on": on })).await
    }

    /// How many requests for each action came, and how many of these were refused by limits.
    pub async fn counts(&self) -> Result<BTreeMap<String, [u64; 2]>> {
        self.ask("counts", json!({})).await
    }

    /// Files in AWS's form with that key, of which the first is the configuration.
    pub fn files(&self, name: &str, key: &AccessKey) -> Result<[PathBuf; 2]> {
        let keys =
            format!("[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n", key.id, key.secret);
        self.written(name, "[default]\nregion = eu-central-1\n", &keys)
    }

    /// The same with these texts.
    pub fn written(&self, name: &str, config: &str, credentials: &str) -> Result<[PathBuf; 2]> {
        let place = |what: &str| self.directory.path().join(format!("{name}-{what}"));
        let places = [place("config"), place("credentials")];
        for (place, text) in places.iter().zip([config, credentials]) {
            std::fs::write(place, text).map_err(PeerError::io("write a file"))?;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(place, mode).map_err(PeerError::io("chmod a file"))?;
        }
        Ok(places)
    }
}

impl Drop for Ec2 {
    fn drop(&mut self) {
        reaper::folder_removed(self.directory.path());
    }
}
