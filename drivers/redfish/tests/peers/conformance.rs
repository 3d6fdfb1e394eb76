//! The suite of all drivers, over a service with sessions, one without, one that closes each connection, and one whose
//! manager says when it restarted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::time::Clock;
use picket_driver::PowerDriver;
use picket_driver::conformance::{Subject, Trouble, run};
use picket_driver_redfish::RedfishKind;
use serde_json::{Value, json};

use crate::fake::{Fake, PASSWORD};
use crate::subject::RealClock;

struct FakeSubject {
    fake: Fake,
    settings: Value,
    wrong: Mutex<bool>,
    clock: Arc<dyn Clock>,
    restarts: Mutex<u32>,
}

impl FakeSubject {
    async fn new(settings: Value) -> Self {
        let (fake, clock) = (Fake::start().await, RealClock::shared());
        Self { fake, settings, wrong: Mutex::new(false), clock, restarts: Mutex::new(0) }
    }
}

#[async_trait]
impl Subject for FakeSubject {
    fn driver(&self) -> Arc<dyn PowerDriver> {
        let mut settings = self.fake.settings(self.settings.clone());
        if *self.wrong.lock().expect("whole") {
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
                let mut restarts = self.restarts.lock().expect("whole");
                *restarts += 1;
                world.restart(&format!("2026-11-22T02:00:{restarts:02}Z"));
            }
            Trouble::WrongCredentials => *self.wrong.lock().expect("whole") = true,
            Trouble::Nonsense => world.says = Some(json!("PoweringOff")),
            Trouble::SlowFall(time) => world.fall = time,
            Trouble::AlreadyIsError => world.already_is_error = true,
            // TCP delivers once.
            Trouble::Doubled => return false,
        }
        true
    }

    async fn mend(&self) {
        *self.wrong.lock().expect("whole") = false;
        let mut world = self.fake.world();
        if world.silent {
            // What it did not answer it will never answer.
            world.drop_connections();
        }
        (world.silent, world.says, world.already_is_error) = (false, None, false);
        world.fall = Duration::ZERO;
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned(), "wrong-hunter3".to_owned(), "token-".to_owned()]
    }
}

async fn conforms(subject: FakeSubject, left_out: &[&str]) {
    let report = run(&subject).await.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.left_out, left_out, "{report:?}");
}

const NO_EPOCHS: [&str; 3] = [
    "a restart begins an epoch after loss",
    "after a restart no off is sent before a reading",
    "packets that arrive twice change nothing",
];

#[tokio::test]
async fn with_sessions() {
    conforms(FakeSubject::new(json!({})).await, &NO_EPOCHS).await;
}

#[tokio::test]
async fn without_sessions() {
    let subject = FakeSubject::new(json!({ "authentication": "basic" })).await;
    subject.fake.world().has_sessions = false;
    conforms(subject, &NO_EPOCHS).await;
}

#[tokio::test]
async fn with_connections_that_are_closed_after_each_answer() {
    let subject = FakeSubject::new(json!({ "last_reset_time": true })).await;
    subject.fake.world().closes = true;
    conforms(subject, &NO_EPOCHS[2..]).await;
}

#[tokio::test]
async fn with_a_manager_that_tells_its_restarts() {
    conforms(FakeSubject::new(json!({ "last_reset_time": true })).await, &NO_EPOCHS[2..]).await;
}
