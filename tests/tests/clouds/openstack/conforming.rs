//! What every driver owes, by the driver openstack over a server of a real Nova.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::Identity;
use picket_core::time::Clock;
use picket_driver::conformance::orders::Orders;
use picket_driver::conformance::{Heard, Owners, Storage, Subject, Trouble, VolumeTrouble, run};
use picket_driver::{Call, Context, DriverKind, Effect, PowerDriver, VolumeAt};
use picket_driver_openstack::OpenstackKind;
use picket_engine::clock::SystemClock;
use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, OpenStack, RequestRule, Rules, ServerFault, Who};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::time::Instant;

use crate::openstack::scene::cloud;

const WRONG: &str = "wrong-hunter3";

/// A server that an administrator controls: who may see that its host is up believes also what somebody else switched off.
struct Server {
    cloud: &'static OpenStack,
    id: String,
    /// The volume from which it was booted.
    root: String,
    /// Another server, which may have its volumes.
    other: String,
    right: NamedTempFile,
    unknown: NamedTempFile,
    wrong: AtomicBool,
    rules: Mutex<Option<Rules>>,
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("it can be written");
    file
}

impl Server {
    async fn look(&self) -> Value {
        self.cloud.look(&Who::Admin, &self.id).await.expect("Nova answers")
    }

    /// Nothing is under way.
    async fn rest(&self) {
        let rests = async {
            while !self.look().await["OS-EXT-STS:task_state"].is_null() {
                // Without a pause the looks alone keep a processor busy.
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), rests).await.expect("it rests within a minute");
    }

    fn rule(&self, rules: &[RequestRule]) {
        *self.rules.lock() = Some(self.cloud.rules(rules).expect("rules"));
    }

    fn often(method: &'static str, path: String, what: impl Into<Value>) -> RequestRule {
        let agent = "picket/".to_owned();
        RequestRule { agent, times: 10_000, after: 600.0, ..RequestRule::new(method, path, what) }
    }

    /// Whatever is asked of volumes, of Nova and of Cinder.
    fn of_volumes(&self, what: impl Into<Value> + Clone) {
        let path = format!("/servers/{}/os-volume_attachments", self.id);
        let nova = Self::often("GET", path, what.clone());
        let cinder = RequestRule { service: "volumes", ..Self::often("GET", "/volumes/".to_owned(), what) };
        self.rule(&[nova, cinder]);
    }

    /// Attaches it: at which device.
    async fn attached(&self, volume: &str) -> String {
        self.rest().await;
        self.cloud.attach(&self.id, volume).await.expect("Nova attaches it");
        let path = format!("/servers/{}/os-volume_attachments/{volume}", self.id);
        let asked = json!({ "service": "compute", "method": "GET", "path": path });
        let told = self.cloud.ask(&Who::Tenant, "rest", asked).await.expect("Nova answers");
        let device = told["body"]["volumeAttachment"]["device"].as_str();
        device.unwrap_or_else(|| panic!("its device is told: {told}")).to_owned()
    }

    async fn tell(&self, what: &str) {
        self.cloud.ask(&Who::Owner, what, json!({ "server": self.id })).await.expect("Nova takes it");
    }
}

#[async_trait]
impl Subject for Server {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let clouds = if self.wrong.load(Ordering::SeqCst) { &self.unknown } else { &self.right };
        let settings = json!({ "server": self.id, "cloud": "cloud", "clouds_file": clouds.path() });
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).expect("the kernel has random bytes");
        let context = Context { clock: Arc::new(SystemClock), random: Arc::new(random) };
        let table = settings.as_object().expect("a table");
        OpenstackKind::default().make(table, &context).expect("right settings")
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    async fn is_on(&self) -> bool {
        !self.cloud.runs_on(&self.id).expect("the journal").is_empty()
    }

    async fn set_power(&self, on: bool) {
        self.rest().await;
        if (self.look().await["status"] == "ACTIVE") != on {
            self.tell(if on { "start" } else { "stop" }).await;
            self.rest().await;
        }
    }

    async fn commands(&self) -> Option<u64> {
        let all = self.cloud.requests().expect("the journal");
        let ours = all.iter().filter(|one| {
            one.agent.starts_with("picket/") && one.method != "GET" && one.path.contains(&self.id)
        });
        u64::try_from(ours.count()).ok()
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        let (server, action) = (format!("/servers/{}", self.id), format!("/servers/{}/action", self.id));
        match trouble {
            Trouble::Silence => {
                self.rule(&[Self::often("GET", server, "slow"), Self::often("POST", action, "slow")])
            }
            Trouble::AnswersLost => self.rule(&[Self::often("POST", action, "unanswered")]),
            Trouble::Refuses => self.rule(&[Self::often("POST", action, 403)]),
            Trouble::Gone => self.rule(&[Self::often("GET", server, 404)]),
            Trouble::WrongCredentials => self.wrong.store(true, Ordering::SeqCst),
            // It is one already.
            Trouble::AlreadyIsError => {}
            Trouble::SlowFall(time) => {
                let fault = ServerFault { power_off_delay: time.as_secs_f64(), ..ServerFault::default() };
                self.cloud.hinder(&self.id, &fault).expect("a knob");
            }
            Trouble::Transition => {
                let fault =
                    ServerFault { power_off_delay: 600.0, power_on_delay: 600.0, ..ServerFault::default() };
                self.cloud.hinder(&self.id, &fault).expect("a knob");
                self.tell(if self.is_on().await { "stop" } else { "start" }).await;
            }
            // TCP delivers once; there are no sessions; the words are Nova's own; a server has one id for good.
            _ => return false,
        }
        true
    }

    async fn mend(&self) {
        self.wrong.store(false, Ordering::SeqCst);
        drop(self.rules.lock().take());
        self.cloud.hinder(&self.id, &ServerFault::default()).expect("a knob");
        self.rest().await;
    }

    fn storage(&self) -> Option<&dyn Storage> {
        Some(self)
    }

    async fn hold_state(&self) -> Option<String> {
        let look = self.look().await;
        Some(format!("{} {}", look["locked"], look["locked_reason"]))
    }

    async fn identity(&self) -> Option<Identity> {
        Some(Identity { uuid: Some(self.id.clone()), serial: None })
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn secrets(&self) -> Vec<String> {
        vec!["admin-secret".to_owned(), WRONG.to_owned()]
    }
}

#[async_trait]
impl Storage for Server {
    async fn attach(&self) -> VolumeAt {
        let id = self.cloud.volume("conforms").await.expect("Cinder makes it");
        VolumeAt { device: self.attached(&id).await, id }
    }

    async fn shared(&self) -> Option<VolumeAt> {
        let id = self.cloud.shared_volume("conforms").await.expect("Cinder makes it");
        self.cloud.attach(&self.other, &id).await.expect("Nova attaches it");
        Some(VolumeAt { device: self.attached(&id).await, id })
    }

    async fn hand_over(&self, volume: &VolumeAt) {
        let what = json!({ "server": self.id, "volume": volume.id });
        self.cloud.ask(&Who::Tenant, "detach", what).await.expect("Nova takes it");
        self.cloud.until_volume(&volume.id, "available").await.expect("it goes");
        self.cloud.attach(&self.other, &volume.id).await.expect("Nova attaches it");
    }

    async fn hurt(&self, trouble: VolumeTrouble) -> bool {
        match trouble {
            VolumeTrouble::DetachUnanswered => {
                self.rule(&[Self::often("DELETE", format!("/servers/{}", self.id), "unanswered")])
            }
            // What is neither a list of attachments nor a volume.
            VolumeTrouble::Garbled => self.of_volumes(200),
            VolumeTrouble::Cut => self.of_volumes("cut"),
            VolumeTrouble::SlowDetach(time) => {
                let fault = ServerFault { detach_delay: time.as_secs_f64(), ..ServerFault::default() };
                self.cloud.hinder(&self.id, &fault).expect("a knob");
            }
        }
        true
    }

    async fn owners(&self, volume: &VolumeAt) -> Owners {
        let seen = self.cloud.ask(&Who::Tenant, "volume", json!({ "volume": volume.id })).await;
        let seen = seen.expect("Cinder answers");
        let all: Vec<&str> = seen["attachments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["server_id"].as_str())
            .collect();
        let ours = all.contains(&self.id.as_str());
        Owners { ours, others: all.len() - usize::from(ours) }
    }

    async fn root(&self) -> String {
        self.root.clone()
    }

    async fn detaches(&self, volume: &VolumeAt) -> Vec<Heard> {
        let all = self.cloud.requests().expect("the journal");
        let ours = all.iter().filter(|one| {
            one.agent.starts_with("picket/") && one.method == "DELETE" && one.path.contains(&volume.id)
        });
        // A place is named by the volume there: Nova wants no device.
        let heard = ours.map(|one| Heard {
            names_machine: one.path.contains(&format!("/servers/{}/", self.id)),
            names_place: one.path.ends_with(&format!("/os-volume_attachments/{}", volume.id)),
        });
        heard.collect()
    }
}

#[tokio::test]
async fn the_driver_conforms() -> Result<()> {
    let cloud = cloud().await?;
    let root = cloud.bootable_volume("conforms").await?;
    let id = cloud.server_from("conforms", OPENSTACK_HOSTS[1], &root).await?;
    let other = cloud.server("conforms not", OPENSTACK_HOSTS[0]).await?;
    let clouds = cloud.clouds_yaml(&Who::Admin);
    let (right, unknown) = (file(&clouds), file(&clouds.replace("admin-secret", WRONG)));
    let (wrong, rules) = (AtomicBool::new(false), Mutex::new(None));
    let server = Server { cloud, id, root, other, right, unknown, wrong, rules };
    let report = run(&server).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(
        report.left_out,
        [
            "a restart begins an epoch after loss",
            "after a restart no off is sent before a reading",
            "nothing is sent in another life than that in which it was identified",
            "a quiesce that is not answered is none",
            "after a quiesce no late copy is executed",
            "no session is opened for an on",
            "a question is as old as its first copy",
            "a repeated off that is refused takes nothing back",
            "answers that come late are answers, and nothing is asked twice",
            "an answer that is cut short is never Off, and shuts nobody out",
            "a redirect to the same place is followed, once",
            "no login leaves a session behind",
            "packets that arrive twice change nothing",
        ]
    );
    assert!(report.has_volumes, "{report:?}");
    what_runs_by_now_loses_nothing(&server).await
}

/// S4: what Nova says right before a detach is newer than what it was permitted by.
async fn what_runs_by_now_loses_nothing(server: &Server) -> Result<()> {
    server.set_power(true).await;
    let volume = Storage::attach(server).await;
    let driver = server.driver();
    let volumes = driver.volumes().expect("it has volumes");
    let orders = Orders::new(driver.traits(), server.clock()).await.expect("orders");
    let releasing = orders.release(Duration::from_secs(600)).await.expect("stored");
    let permit = orders.release_permit(&releasing).await.expect("permitted");
    let call = Call::control(Instant::now() + Duration::from_secs(60), server.clock(), orders.permit());
    let error = volumes.detach(&releasing.order, &permit, &volume, false, &call).await.expect_err("it runs");
    assert!(error.effect == Effect::DidNotHappen && error.detail.contains("it is ACTIVE"), "{error:?}");
    assert!(server.detaches(&volume).await.is_empty() && server.owners(&volume).await.ours);
    Ok(())
}
