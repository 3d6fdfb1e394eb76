//! The suite of all drivers, over a service with sessions, one without, one that closes each connection, and one whose
//! manager says when it restarted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::Identity;
use picket_core::time::{BootTime, Clock};
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble, run, run_one};
use picket_driver_redfish::RedfishKind;
use serde_json::{Value, json};

use crate::fake::{Fake, PASSWORD, Reply, Says, Slash, Then, World};
use crate::subject::RealClock;

struct FakeSubject {
    fake: Fake,
    settings: Value,
    wrong: Mutex<bool>,
    clock: Arc<dyn Clock>,
    restarts: Mutex<u32>,
    lost_at: Arc<Mutex<Option<BootTime>>>,
    /// Another service, to which it redirects.
    sends_to: Option<&'static str>,
}

impl FakeSubject {
    async fn new(settings: Value) -> Self {
        let (fake, clock) = (Fake::start().await, RealClock::shared());
        Self {
            fake,
            settings,
            wrong: Mutex::new(false),
            clock,
            restarts: Mutex::new(0),
            lost_at: Arc::default(),
            sends_to: None,
        }
    }
}

#[async_trait]
impl Subject for FakeSubject {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let mut settings = self.fake.settings(self.settings.clone());
        if *self.wrong.lock() {
            let path = self.fake.ca_file().with_file_name("wrong");
            std::fs::write(&path, "wrong-hunter3").expect("written");
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&path, private).expect("ours");
            settings.insert("password_file".to_owned(), json!(path));
        }
        Arc::new(RedfishKind::default().device(&settings).expect("right settings"))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    async fn is_on(&self) -> bool {
        self.fake.world().is_on()
    }

    async fn set_power(&self, on: bool) {
        self.fake.world().set_power(on);
    }

    async fn commands(&self) -> Option<u64> {
        Some(self.fake.world().commands)
    }

    async fn hurt(&self, trouble: Trouble) -> bool {
        let mut world = self.fake.world();
        match trouble {
            Trouble::Silence => world.silent = true,
            Trouble::Restart => {
                let mut restarts = self.restarts.lock();
                *restarts += 1;
                world.restart(&format!("2026-11-22T02:00:{restarts:02}Z"));
            }
            Trouble::WrongCredentials => *self.wrong.lock() = true,
            Trouble::Nonsense => world.says = Some(json!("Dreaming")),
            Trouble::Missing => world.says = Some(Value::Null),
            Trouble::Transition => world.says = Some(json!("PoweringOff")),
            Trouble::Gone => {
                world.script.push_back(("GET /redfish/v1/Systems/437", Reply::json(404, json!({}))))
            }
            Trouble::AnswersLost => {
                // More often than a driver asks again in a call.
                world.after.extend((0..100).map(|_| ("ComputerSystem.Reset", hung_up())));
            }
            Trouble::FirstCopyLost => {
                // Of what is asked for, and of nothing that is asked on the way there.
                for line in ["GET /redfish/v1/Systems/437", "ComputerSystem.Reset"] {
                    world.script.push_back((line, hung_up()));
                    let (clock, lost_at) = (self.clock.clone(), self.lost_at.clone());
                    let note = move |_: &mut World| *lost_at.lock() = Some(clock.boot());
                    world.then.push_back((line, Then::is(note)));
                }
            }
            Trouble::Refuses => {
                let refusal = || Reply::json(400, json!({ "error": { "message": "it will not" } }));
                world.script.extend((0..100).map(|_| ("ComputerSystem.Reset", refusal())));
            }
            Trouble::CutAnswers => world.cuts = true,
            Trouble::Redirects => {
                let service = self.sends_to.unwrap_or_default().to_owned();
                world.odd.slash = Some((Slash::Added, 308, service));
            }
            Trouble::UselessLogins => world.odd.says = Says::Place,
            Trouble::SlowAnswers(by) => world.slow = Some(("", by)),
            Trouble::RepeatRefused => {
                let refusal = || Reply::json(500, json!({ "error": { "message": "internal error" } }));
                world.script.extend((0..100).map(|_| ("ComputerSystem.Reset", refusal())));
            }
            Trouble::OtherMachine => world.uuid = OTHER,
            Trouble::SlowFall(time) => world.fall = time,
            Trouble::AlreadyIsError => world.already_is_error = true,
            // TCP delivers once, and in the life of its connection.
            Trouble::Doubled | Trouble::LateCopies(_) => return false,
        }
        true
    }

    async fn mend(&self) {
        *self.wrong.lock() = false;
        let mut world = self.fake.world();
        if world.silent {
            // What it did not answer it will never answer.
            world.drop_connections();
        }
        (world.silent, world.says, world.already_is_error) = (false, None, false);
        (world.fall, world.uuid) = (Duration::ZERO, OWN);
        (world.odd.slash, world.odd.says) = (None, Says::All);
        (world.slow, world.cuts) = (None, false);
        world.script.clear();
        world.after.clear();
        world.then.clear();
    }

    async fn sessions(&self) -> Option<u64> {
        let mut world = self.fake.world();
        world.has_sessions.then(|| world.open_sessions() as u64)
    }

    fn idle_limit(&self) -> Option<Duration> {
        let world = self.fake.world();
        world.has_sessions.then_some(world.session_life)
    }

    async fn hold_state(&self) -> Option<String> {
        self.fake.world().policy.clone()
    }

    async fn identity(&self) -> Option<Identity> {
        let uuid = self.fake.world().uuid.to_owned();
        Some(Identity { uuid: Some(uuid), serial: Some("SN-0041".to_owned()) })
    }

    async fn lost_at(&self) -> Option<BootTime> {
        *self.lost_at.lock()
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned(), "wrong-hunter3".to_owned(), "token-".to_owned()]
    }
}

/// Its UUID, and another machine's.
const OWN: &str = "8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41";
const OTHER: &str = "11112222-3333-4444-9555-666677778888";

/// Nothing is answered.
fn hung_up() -> Reply {
    Reply { hangs_up: true, ..Reply::raw(204, "") }
}

async fn conforms(subject: FakeSubject, left_out: &[&str]) {
    let report = run(&subject).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.left_out, left_out, "{report:?}");
}

const NO_EPOCHS: [&str; 5] = [
    "a restart begins an epoch after loss",
    "after a restart no off is sent before a reading",
    "nothing is sent in another life than that in which it was identified",
    "after a quiesce no late copy is executed",
    "packets that arrive twice change nothing",
];
const NEITHER: [&str; 8] = [
    "a restart begins an epoch after loss",
    "after a restart no off is sent before a reading",
    "nothing is sent in another life than that in which it was identified",
    "a quiesce that is not answered is none",
    "after a quiesce no late copy is executed",
    "no session is opened for an on",
    "no login leaves a session behind",
    "packets that arrive twice change nothing",
];

#[tokio::test]
async fn with_sessions() {
    conforms(FakeSubject::new(json!({ "last_reset_time": false })).await, &NO_EPOCHS).await;
}

#[tokio::test]
async fn without_sessions() {
    let subject = FakeSubject::new(json!({ "authentication": "basic", "last_reset_time": false })).await;
    subject.fake.world().has_sessions = false;
    conforms(subject, &NEITHER).await;
}

/// By default settings.
#[tokio::test]
async fn with_a_manager_that_tells_its_restarts_unasked() {
    conforms(FakeSubject::new(json!({})).await, &NO_EPOCHS[3..]).await;
}

#[tokio::test]
async fn with_a_manager_that_does_not_say_when_it_was_reset() {
    let subject = FakeSubject::new(json!({})).await;
    subject.fake.world().tells_reset = false;
    conforms(subject, &NO_EPOCHS).await;
}

#[tokio::test]
async fn without_sessions_and_with_a_manager_that_tells_its_restarts_unasked() {
    let subject = FakeSubject::new(json!({ "authentication": "basic" })).await;
    subject.fake.world().has_sessions = false;
    conforms(subject, &NEITHER[3..]).await;
}

#[tokio::test]
async fn with_connections_that_are_closed_after_each_answer() {
    let subject = FakeSubject::new(json!({ "last_reset_time": true })).await;
    subject.fake.world().closes = true;
    conforms(subject, &NO_EPOCHS[3..]).await;
}

#[tokio::test]
async fn with_a_manager_that_tells_its_restarts() {
    conforms(FakeSubject::new(json!({ "last_reset_time": true })).await, &NO_EPOCHS[3..]).await;
}

/// The suite sees a driver that does not follow: as ours does not to another service.
#[tokio::test]
async fn what_is_not_followed_is_seen() {
    let mut subject = FakeSubject::new(json!({})).await;
    subject.sends_to = Some("https://elsewhere.example");
    let seen = run_one(&subject, "a redirect to the same place is followed, once")
        .await
        .expect_err("it is not followed");
    assert!(seen.what.contains("redirected"), "{seen}");
}
