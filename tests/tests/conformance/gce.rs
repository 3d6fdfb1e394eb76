//! Compute Engine, made from Google's discovery document.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::time::Clock;
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble};
use picket_driver_gcp::GcpKind;
use picket_tests::peers::{ComputeEngine, GceInstance, GceTreatment, GceUser};
use picket_tests::{PeerError, Result};
use serde_json::{Value, json};

use crate::scene::{Ticking, driver};

/// More often than any check asks.
const ALWAYS: u32 = 1_000_000;

/// One instance of it.
pub struct GceSubject {
    compute: ComputeEngine,
    instance: GceInstance,
    user: GceUser,
    /// The right key, and one that is signed by another.
    keys: [PathBuf; 2],
    kind: GcpKind,
    clock: Arc<Ticking>,
    wrong: AtomicBool,
}

impl GceSubject {
    /// One that runs, with an instance that does.
    pub async fn start() -> Result<Self> {
        let compute = ComputeEngine::start().await?;
        let (instance, user) = (compute.instance(&[]).await?, compute.user(&["*"]).await?);
        let keys =
            [compute.service_account_file(&user)?, compute.forged_file(&user, &compute.user(&["*"]).await?)?];
        for key in &keys {
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(key, mode).map_err(PeerError::io("chmod a key"))?;
        }
        let (kind, wrong) = (GcpKind::default(), AtomicBool::new(false));
        Ok(Self { compute, instance, user, keys, kind, clock: Ticking::new(), wrong })
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
        self.compute.mend(&self.instance.id).await.expect("the peer");
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
