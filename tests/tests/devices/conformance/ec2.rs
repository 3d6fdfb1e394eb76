//! EC2, as moto has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::Identity;
use picket_core::time::Clock;
use picket_driver::conformance::{Heard, Owners, Storage, Subject, Trouble, VolumeTrouble};
use picket_driver::{PowerDriver, VolumeAt};
use picket_driver_aws::AwsKind;
use picket_tests::Result;
use picket_tests::peers::{AccessKey, Ec2, Treatment};
use serde_json::json;

use crate::conformance::scene::{Ticking, WRONG, driver};

/// More often than any check asks.
const ALWAYS: u32 = 1_000_000;

/// One instance of it.
pub struct Ec2Subject {
    ec2: Ec2,
    instance: String,
    /// Another instance, which may have its volumes.
    other: String,
    key: AccessKey,
    kind: AwsKind,
    clock: Arc<Ticking>,
    wrong: AtomicBool,
    volumes: Mutex<Vec<String>>,
}

impl Ec2Subject {
    /// One that runs, with an instance that does.
    pub async fn start() -> Result<Self> {
        let ec2 = Ec2::start().await?;
        let (instance, other, key) =
            (ec2.instance(&[]).await?, ec2.instance(&[]).await?, ec2.picket().await?);
        let (kind, wrong, volumes) = (AwsKind::default(), AtomicBool::new(false), Mutex::default());
        Ok(Self { ec2, instance, other, key, kind, clock: Ticking::new(), wrong, volumes })
    }

    fn volumes(&self) -> Vec<String> {
        self.volumes.lock().clone()
    }

    /// Whatever is asked of the instance or a volume of it.
    async fn all_ruled(&self, what: serde_json::Value) {
        for names in self.volumes().iter().chain([&self.instance]) {
            self.ec2.rule("*", names, ALWAYS, what.clone()).await.expect("moto");
        }
    }

    async fn treated(&self, how: Treatment) {
        self.ec2.treat(&self.instance, &how).await.expect("moto");
    }

    async fn ruled(&self, action: &str, what: serde_json::Value) {
        self.ec2.rule(action, &self.instance, ALWAYS, what).await.expect("moto");
    }
}

#[async_trait]
impl Subject for Ec2Subject {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let wrong = self.wrong.load(Ordering::SeqCst);
        let key = AccessKey { secret: WRONG.to_owned(), ..self.key.clone() };
        let (name, key) = if wrong { ("wrong", &key) } else { ("right", &self.key) };
        let [config, credentials] = self.ec2.files(name, key).expect("files");
        let settings = json!({
            "instance": self.instance, "endpoint": self.ec2.endpoint(), "config_file": config, "credentials_file": credentials,
            "profile": "default",
        });
        driver(&self.kind, &settings, &self.clock)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        self.ec2.state(&self.instance).await.expect("moto") != "stopped"
    }

    async fn set_power(&self, on: bool) {
        let state = if on { "running" } else { "stopped" };
        self.ec2.switch(&self.instance, state).await.expect("moto");
    }

    async fn commands(&self) -> Option<u64> {
        let asked = self.ec2.asked(&self.instance).await.expect("moto");
        Some(asked.iter().filter(|request| !request.action.starts_with("Describe")).count() as u64)
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        let word = |word| Treatment { word: Some(word), ..Treatment::default() };
        match trouble {
            Trouble::Silence => self.ec2.silence(true).await.expect("moto"),
            Trouble::WrongCredentials => self.wrong.store(true, Ordering::SeqCst),
            Trouble::Nonsense => self.treated(word("frobnicating")).await,
            Trouble::Missing => self.treated(word("")).await,
            Trouble::Transition => self.treated(word("stopping")).await,
            Trouble::Gone => {
                let words = format!("The instance ID '{}' does not exist", self.instance);
                self.ruled("*", json!({ "code": "InvalidInstanceID.NotFound", "message": words })).await;
            }
            Trouble::SlowFall(after) => {
                self.treated(Treatment { stopping: after.as_secs_f64(), ..Treatment::default() }).await;
            }
            Trouble::AnswersLost => self.ruled("*", json!({ "do": "lost" })).await,
            Trouble::Refuses => self.ruled("StopInstances", json!({ "code": "OperationNotPermitted" })).await,
            // It has no sessions; TCP delivers once; what is off it takes an off of; and an id is one instance's for ever.
            _ => return false,
        }
        true
    }

    async fn mend(&self) {
        self.wrong.store(false, Ordering::SeqCst);
        self.ec2.silence(false).await.expect("moto");
        for names in self.volumes().iter().chain([&self.instance]) {
            self.ec2.mend(names).await.expect("moto");
        }
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }

    async fn hold_state(&self) -> Option<String> {
        Some(format!("{:?}", self.ec2.tags(&self.instance).await.expect("moto")))
    }

    async fn identity(&self) -> Option<Identity> {
        Some(Identity { uuid: None, serial: Some(self.instance.clone()) })
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn secrets(&self) -> Vec<String> {
        vec![self.key.secret.clone(), WRONG.to_owned()]
    }
}

#[async_trait]
impl Storage for Ec2Subject {
    async fn attach(&self) -> VolumeAt {
        let id = self.ec2.blank_volume().await.expect("moto");
        let number = {
            let mut all = self.volumes.lock();
            all.push(id.clone());
            all.len()
        };
        let device = format!("/dev/sdf{number}");
        self.ec2.attach(&self.instance, &id, &device).await.expect("moto");
        VolumeAt { id, device }
    }

    async fn shared(&self) -> Option<VolumeAt> {
        let volume = self.attach().await;
        self.ec2.share(&self.other, &volume.id, &volume.device).await.expect("the peer");
        Some(volume)
    }

    async fn hand_over(&self, volume: &VolumeAt) {
        self.ec2.detach(&self.instance, &volume.id, &volume.device).await.expect("moto");
        self.ec2.attach(&self.other, &volume.id, &volume.device).await.expect("moto");
    }

    async fn hurt(&self, trouble: VolumeTrouble) -> bool {
        match trouble {
            VolumeTrouble::DetachUnanswered => self.ruled("DetachVolume", json!({ "do": "lost" })).await,
            VolumeTrouble::Garbled => self.all_ruled(json!({ "do": "garbled" })).await,
            VolumeTrouble::Cut => self.all_ruled(json!({ "do": "cut" })).await,
            VolumeTrouble::SlowDetach(after) => {
                self.treated(Treatment { detaching: after.as_secs_f64(), ..Treatment::default() }).await;
            }
        }
        true
    }

    async fn owners(&self, volume: &VolumeAt) -> Owners {
        let at = self.ec2.volume(&volume.id).await.expect("moto").at;
        let ours = at.contains(&self.instance);
        Owners { ours, others: at.len() - usize::from(ours) }
    }

    async fn root(&self) -> String {
        self.ec2.root(&self.instance).await.expect("moto")
    }

    async fn detaches(&self, volume: &VolumeAt) -> Vec<Heard> {
        let heard = self.ec2.asked_to("DetachVolume", &volume.id).await.expect("moto");
        let is = |fields: &std::collections::BTreeMap<String, String>, key: &str, value: &str| {
            fields.get(key).is_some_and(|said| said == value)
        };
        let heard = heard.iter().map(|request| Heard {
            names_machine: is(&request.fields, "InstanceId", &self.instance),
            names_place: is(&request.fields, "Device", &volume.device),
        });
        heard.collect()
    }
}
