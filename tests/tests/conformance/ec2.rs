//! EC2, as moto has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::time::Clock;
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_aws::AwsKind;
use picket_tests::Result;
use picket_tests::peers::{AccessKey, Ec2, Treatment};
use serde_json::json;

use crate::scene::{Ticking, WRONG, driver};

/// More often than any check asks.
const ALWAYS: u32 = 1_000_000;

/// One instance of it.
pub struct Ec2Subject {
    ec2: Ec2,
    instance: String,
    key: AccessKey,
    kind: AwsKind,
    clock: Arc<Ticking>,
    wrong: AtomicBool,
}

impl Ec2Subject {
    /// One that runs, with an instance that does.
    pub async fn start() -> Result<Self> {
        let ec2 = Ec2::start().await?;
        let (instance, key) = (ec2.instance(&[]).await?, ec2.picket().await?);
        let (kind, wrong) = (AwsKind::default(), AtomicBool::new(false));
        Ok(Self { ec2, instance, key, kind, clock: Ticking::new(), wrong })
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
        self.ec2.mend(&self.instance).await.expect("moto");
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
