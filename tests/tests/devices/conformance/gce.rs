//! Compute Engine, made from Google's discovery document.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::Identity;
use picket_core::time::Clock;
use picket_driver::conformance::{Heard, Owners, Storage, Subject, Trouble, VolumeTrouble};
use picket_driver::{PowerDriver, VolumeAt};
use picket_driver_gcp::GcpKind;
use picket_tests::peers::{ComputeEngine, GceInstance, GceTreatment, GceUser};
use picket_tests::{PeerError, Result};
use serde_json::{Value, json};

use crate::conformance::scene::{Ticking, driver};

/// More often than any check asks.
const ALWAYS: u32 = 1_000_000;

/// What a disk is called, of which this is the path.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// One instance of it.
pub struct GceSubject {
    compute: ComputeEngine,
    instance: GceInstance,
    /// Another instance, which may have its disks.
    other: GceInstance,
    user: GceUser,
    /// The right key, and one that is signed by another.
    keys: [PathBuf; 2],
    kind: GcpKind,
    clock: Arc<Ticking>,
    wrong: AtomicBool,
    /// Its data disks, by their names.
    disks: Mutex<Vec<String>>,
}

impl GceSubject {
    /// One that runs, with an instance that does.
    pub async fn start() -> Result<Self> {
        let compute = ComputeEngine::start().await?;
        let (instance, other) = (compute.instance(&[]).await?, compute.instance(&[]).await?);
        let user = compute.user(&["*"]).await?;
        let keys =
            [compute.service_account_file(&user)?, compute.forged_file(&user, &compute.user(&["*"]).await?)?];
        for key in &keys {
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(key, mode).map_err(PeerError::io("chmod a key"))?;
        }
        let (kind, wrong, disks) = (GcpKind::default(), AtomicBool::new(false), Mutex::default());
        Ok(Self { compute, instance, other, user, keys, kind, clock: Ticking::new(), wrong, disks })
    }

    fn disks(&self) -> Vec<String> {
        self.disks.lock().clone()
    }

    /// Whatever is asked of the instance or a disk of it.
    async fn all_ruled(&self, what: Value) {
        for names in self.disks().iter().chain([&self.instance.id]) {
            self.compute.rule("*", names, ALWAYS, what.clone()).await.expect("the peer");
        }
    }

    async fn attached(&self, mode: &str) -> VolumeAt {
        let device = format!("data-{}", self.disks().len());
        let id = self.compute.attach(&self.instance.id, &device, None, mode).await.expect("the peer");
        self.disks.lock().push(name(&id).to_owned());
        VolumeAt { id, device }
    }

    async fn treated(&self, how: GceTreatment) {
        self.compute.treat(&self.instance.id, &how).await.expect("the peer");
    }

    async fn ruled(&self, method: &str, what: Value) {
        self.compute.rule(method, &self.instance.id, ALWAYS, what).await.expect("the peer");
    }
}

#[async_trait]
impl Subject for GceSubject {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let key = &self.keys[usize::from(self.wrong.load(Ordering::SeqCst))];
        let settings = json!({
            "instance": self.instance.provider_id(), "id": self.instance.id, "endpoint": self.compute.endpoint(),
            "credentials_file": key,
        });
        driver(&self.kind, &settings, &self.clock)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        self.compute.state(&self.instance.id).await.expect("the peer") != "TERMINATED"
    }

    async fn set_power(&self, on: bool) {
        let status = if on { "RUNNING" } else { "TERMINATED" };
        self.compute.switch(&self.instance.id, status).await.expect("the peer");
    }

    async fn commands(&self) -> Option<u64> {
        let asked = self.compute.asked(&self.instance.id).await.expect("the peer");
        let is_command = |method: &str| {
            method.starts_with("instances.") && !method.contains(".get") && !method.contains(".list")
        };
        Some(asked.iter().filter(|request| is_command(&request.method)).count() as u64)
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        let word = |word| GceTreatment { word: Some(word), ..GceTreatment::default() };
        match trouble {
            Trouble::Silence => self.compute.silence(true).await.expect("the peer"),
            Trouble::WrongCredentials => self.wrong.store(true, Ordering::SeqCst),
            Trouble::Nonsense => self.treated(word("FROBNICATING")).await,
            Trouble::Transition => self.treated(word("STOPPING")).await,
            Trouble::Gone => {
                let words = format!("The resource 'instances/{}' was not found", self.instance.id);
                self.ruled("*", json!({ "status": 404, "reason": "notFound", "message": words })).await;
            }
            Trouble::SlowFall(after) => {
                self.treated(GceTreatment { stopping: Some(after.as_secs_f64()), ..GceTreatment::default() })
                    .await;
            }
            Trouble::AnswersLost => self.ruled("*", json!({ "do": "lost" })).await,
            Trouble::Refuses => {
                self.ruled("instances.stop", json!({ "status": 400, "reason": "invalid", "message": "No." }))
                    .await;
            }
            // It has no sessions; TCP delivers once; what is off it takes an off of; an id is one instance's for ever; and the document
            // has no status that is left out.
            _ => return false,
        }
        true
    }

    async fn mend(&self) {
        self.wrong.store(false, Ordering::SeqCst);
        self.compute.silence(false).await.expect("the peer");
        for names in self.disks().iter().chain([&self.instance.id]) {
            self.compute.mend(names).await.expect("the peer");
        }
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }

    async fn identity(&self) -> Option<Identity> {
        Some(Identity { uuid: None, serial: Some(self.instance.id.clone()) })
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn secrets(&self) -> Vec<String> {
        let key = self.user.key["private_key"].as_str().unwrap_or_default();
        key.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned).collect()
    }
}

#[async_trait]
impl Storage for GceSubject {
    async fn attach(&self) -> VolumeAt {
        self.attached("READ_WRITE").await
    }

    async fn shared(&self) -> Option<VolumeAt> {
        // What may be written to is at one instance alone.
        let volume = self.attached("READ_ONLY").await;
        let at =
            self.compute.attach(&self.other.id, &volume.device, Some(name(&volume.id)), "READ_ONLY").await;
        assert_eq!(at.expect("the peer"), volume.id);
        Some(volume)
    }

    async fn hand_over(&self, volume: &VolumeAt) {
        self.compute.detach(&self.instance.id, &volume.device).await.expect("the peer");
        let disk = Some(name(&volume.id));
        self.compute.attach(&self.other.id, &volume.device, disk, "READ_WRITE").await.expect("the peer");
    }

    async fn hurt(&self, trouble: VolumeTrouble) -> bool {
        match trouble {
            VolumeTrouble::DetachUnanswered => {
                self.ruled("instances.detachDisk", json!({ "do": "lost" })).await
            }
            VolumeTrouble::Garbled => self.all_ruled(json!({ "do": "garbled" })).await,
            VolumeTrouble::Cut => self.all_ruled(json!({ "do": "cut" })).await,
            VolumeTrouble::SlowDetach(after) => {
                self.treated(GceTreatment {
                    detaching: Some(after.as_secs_f64()),
                    ..GceTreatment::default()
                })
                .await;
            }
        }
        true
    }

    async fn owners(&self, volume: &VolumeAt) -> Owners {
        let users = self.compute.disk(name(&volume.id)).await.expect("the peer").users;
        let ours = users.contains_key(&self.instance.id);
        Owners { ours, others: users.len() - usize::from(ours) }
    }

    async fn root(&self) -> String {
        self.compute.boot_disk(&self.instance).await.expect("the peer")
    }

    async fn detaches(&self, volume: &VolumeAt) -> Vec<Heard> {
        let heard = self.compute.asked_to("instances.detachDisk", &volume.device).await.expect("the peer");
        let heard = heard.iter().map(|request| Heard {
            names_machine: request.path.contains(&format!("/instances/{}/", self.instance.id)),
            names_place: request.field("deviceName") == Some(volume.device.as_str()),
        });
        heard.collect()
    }
}
