//! Releasers through the trait, under permits that the gate made: the only way there is.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity, MaxInFlight};
use picket_core::election::{Election, ElectionError, Leadership, Lease, Won, lead};
use picket_core::event::{Event, FenceRequest, Holder, Person, PlannedRelease};
use picket_core::gate::release_permit;
use picket_core::ground::{AttestedOff, Look, ReleaseGround};
use picket_core::ids::{DeviceId, FenceId, Incarnation, NodeId, ReleaseId, Revision, Term, Version};
use picket_core::machine;
use picket_core::order::{Opened, ReleaseOrder};
use picket_core::record::{NodeRecord, Then};
use picket_core::step;
use picket_core::store::{Store, Stored};
use picket_core::time::{BootTime, Clock, WallTime};
use picket_core::topology::{Level, Topology};
use picket_release::{Progress, ReleaseError, Releaser, Subject, make};
use picket_store::MemoryStore;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::Instant;

#[derive(Debug)]
struct Now;

impl Clock for Now {
    fn boot(&self) -> BootTime {
        BootTime::from_boot(self.elapsed())
    }
    fn wall(&self) -> WallTime {
        WallTime::from_millis(u64::try_from(self.elapsed().as_millis()).expect("a while yet"))
    }
}

impl Now {
    fn elapsed(&self) -> Duration {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970")
    }
}

#[derive(Debug)]
struct Alone(Term, Incarnation);

#[async_trait]
impl Election for Alone {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        Ok(Won { term: self.0, incarnation: self.1, lease: Lease::endless() })
    }
    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}

/// A node whose fence a person attested, and what permits its releases.
struct Fenced {
    store: MemoryStore,
    leadership: Arc<Leadership>,
    stored: Stored,
}

impl Fenced {
    async fn new(node: &str, releases: &[(&str, &dyn Releaser)]) -> Self {
        let incarnation = Incarnation::mint(Now.wall(), [1; 10]);
        let store = MemoryStore::new(incarnation).expect("a store");
        let term = store.take_term().await.expect("a term");
        let leadership =
            lead(&Alone(term, incarnation), Arc::new(Now), Duration::from_secs(3600)).await.expect("leads");
        let record = NodeRecord::new(NodeId::new(node).expect("a name"));
        let stored = Stored { version: Version(0), revision: Revision(0), record };
        let mut fenced = Self { store, leadership, stored };
        let spec = DeviceSpec {
            id: DeviceId::new("bmc").expect("a name"),
            class: DeviceClass::Host,
            grade: Grade::Observed,
            has_epochs: true,
            longest_cycle: Duration::from_secs(15),
            call: Duration::from_secs(5),
            dwell: Duration::from_secs(1),
            readings: 2,
            max_in_flight: MaxInFlight { off: None, on: None },
            trust_after_restart: None,
            verified: false,
            identity: Identity::default(),
        };
        let request = FenceRequest {
            id: FenceId::mint(Now.wall(), [2; 10]),
            holder: Holder {
                name: "db".to_owned(),
                by: "ada".to_owned(),
                reason: "a test".to_owned(),
                then: Then::StayOff,
                by_person: false,
                asker: None,
            },
            deadline: Duration::from_secs(600),
            min_grade: Grade::Attested,
            topology: Topology::new(vec![Level { devices: vec![spec] }]).expect("a topology"),
            releases: releases
                .iter()
                .map(|(id, releaser)| PlannedRelease {
                    id: ReleaseId::new(id).expect("a name"),
                    max_in_flight: releaser.max_in_flight(),
                    lingers: None,
                    by_name: false,
                })
                .collect(),
            key: None,
            set_aside: None,
        };
        fenced.apply(Event::Fence(Box::new(request))).await;
        let person = Person { name: "ada".to_owned(), reason: "I pulled the cord".to_owned() };
        let looks = [fenced.look()];
        fenced.apply(Event::Attest { person, looks: &looks }).await;
        fenced
    }

    fn look(&self) -> Look {
        Look { device: DeviceId::new("bmc").expect("a name"), asked_at: Now.boot(), reading: None }
    }

    async fn apply(&mut self, event: Event<'_>) -> Vec<Opened> {
        let at = Now.wall();
        let step = machine::step(&self.stored.record, self.stored.version, event, self.leadership.term(), at)
            .expect("allowed");
        let saved = step::save(&self.store, &self.leadership, &step).await.expect("saved");
        let (stored, opened) = step.open(saved).into_parts();
        self.stored = stored;
        opened
    }

    async fn order(&mut self, release: &str) -> ReleaseOrder {
        let release = ReleaseId::new(release).expect("a name");
        match self
            .apply(Event::ReleaseIntent { release, life: None, lingers: None, sets_up: true })
            .await
            .pop()
        {
            Some(Opened::Release(order)) => order,
            other => panic!("no release: {other:?}"),
        }
    }

    async fn attempt(&mut self, release: &str, releaser: &dyn Releaser) -> Result<Progress, ReleaseError> {
        let order = self.order(release).await;
        self.attempt_with(&order, releaser).await
    }

    async fn attempt_with(
        &self,
        order: &ReleaseOrder,
        releaser: &dyn Releaser,
    ) -> Result<Progress, ReleaseError> {
        self.attempt_once(order, releaser, || {}).await
    }

    /// The same; that happens between the permit and the attempt.
    async fn attempt_once(
        &self,
        order: &ReleaseOrder,
        releaser: &dyn Releaser,
        permitted: impl FnOnce(),
    ) -> Result<Progress, ReleaseError> {
        let word = AttestedOff::of(&self.stored.record, self.leadership.term()).expect("attested");
        let ground = ReleaseGround::Attested(word);
        let permit =
            release_permit(&self.store, &self.leadership, &Now, &self.stored, &ground, &[self.look()])
                .await
                .expect("permitted");
        permitted();
        releaser.attempt(order, &permit, Instant::now() + releaser.attempt_time()).await
    }

    fn subject(&self, release: &str, accepted: &str) -> Subject {
        Subject {
            node: self.stored.record.node.clone(),
            fence: self.stored.record.fence.as_ref().expect("fenced").id,
            generation: self.stored.record.generation,
            round: 0,
            release: ReleaseId::new(release).expect("a name"),
            accepted: accepted.to_owned(),
            identities: Vec::new(),
            met: None,
        }
    }
}

fn releaser(kind: &str, settings: Value) -> Arc<dyn Releaser> {
    make("san", kind, settings.as_object().expect("a table")).expect("right settings")
}

fn python() -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|python| python.is_file())
}

/// The receiver of another hand: Python's own HTTP server.
struct Receiver {
    _process: tokio::process::Child,
    url: String,
}

impl Receiver {
    async fn start() -> Option<Self> {
        let mut process = tokio::process::Command::new(python()?)
            .args(["-u", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/receiver.py")])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python runs");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let port = lines.next_line().await.expect("reads").expect("it says its port");
        Some(Self { _process: process, url: format!("http://127.0.0.1:{port}/release") })
    }
}

#[tokio::test]
async fn a_webhook_is_told_by_whom_for_what_and_until_when_and_followed_to_its_end() {
    let Some(receiver) = Receiver::start().await else {
        panic!("this test needs python3: apt-get install python3-minimal");
    };
    let webhook = releaser("webhook", json!({"url": receiver.url}));
    let mut fenced = Fenced::new("r1n07", &[("san", &*webhook)]).await;
    let Ok(Progress::Accepted(status_url)) = fenced.attempt("san", &*webhook).await else {
        panic!("the first attempt is accepted");
    };
    let again = fenced.attempt("san", &*webhook).await;
    assert_eq!(again, Ok(Progress::Accepted(status_url.clone())), "the same job by the same key");
    let subject = fenced.subject("san", &status_url);
    let soon = || Instant::now() + Duration::from_secs(60);
    assert_eq!(webhook.observe(&subject, soon()).await, Ok(Progress::Accepted(status_url)));
    assert_eq!(webhook.observe(&subject, soon()).await, Ok(Progress::Complete("detached r1n07".to_owned())));
    let lost = fenced.subject("san", &receiver.url.replace("/release", "/jobs/none"));
    assert!(matches!(webhook.observe(&lost, soon()).await, Ok(Progress::NotThere(_))));
}

#[tokio::test]
async fn a_program_gets_the_same_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, told) = (folder.path().join("release"), folder.path().join("told"));
    let mut file = std::fs::File::create(&program).expect("a file");
    write!(file, "#!/bin/sh\ncat > \"$1\"\n").expect("written");
    drop(file);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("may be set");
    let command = releaser("command", json!({"program": program, "args": [told]}));
    let mut fenced = Fenced::new("r1n07", &[("san", &*command)]).await;
    let order = fenced.order("san").await;
    let result = loop {
        match fenced.attempt_with(&order, &*command).await {
            // Another test forked while the script was open for writing.
            Err(ReleaseError::DidNotHappen(why)) if why.contains("busy") => tokio::task::yield_now().await,
            other => break other,
        }
    };
    assert_eq!(result, Ok(Progress::Complete("complete".to_owned())));
    let told: Value = serde_json::from_slice(&std::fs::read(told).expect("told")).expect("JSON");
    let record = &fenced.stored.record;
    let fence = record.fence.as_ref().expect("fenced").id.to_string();
    assert_eq!(told["key"], format!("{fence}/{}/san", record.generation));
    assert_eq!(
        (&told["version"], &told["ask"], &told["node"], &told["fence"]),
        (&json!(1), &json!("release"), &json!("r1n07"), &json!(fence))
    );
    assert_eq!(told["evidence"]["grade"], "attested");
    let left = told["not_after_unix_ms"].as_u64().expect("a number").abs_diff(Now.wall().millis());
    assert!((50_000..=60_000).contains(&left), "{left} ms");
    assert_eq!(told["term"], json!(1));
}

/// A gateway that stood still after the permit: the life of this attempt is counted by whoever leads now.
#[tokio::test]
async fn no_program_begins_once_the_leadership_of_its_permit_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    let command = releaser("command", json!({"program": "/usr/bin/touch", "args": [mark]}));
    let mut fenced = Fenced::new("r1n07", &[("san", &*command)]).await;
    let order = fenced.order("san").await;
    let result = fenced.attempt_once(&order, &*command, || fenced.leadership.end()).await;
    assert!(
        matches!(&result, Err(ReleaseError::DidNotHappen(why)) if why.contains("was not begun")),
        "{result:?}"
    );
    assert!(!mark.exists());
}

/// The same of a webhook: its receiver hears nothing.
#[tokio::test]
async fn nothing_is_posted_once_the_leadership_of_its_permit_has_ended() {
    let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/release", place.local_addr().expect("an address"));
    let hears = tokio::spawn(async move {
        let (mut stream, _) = place.accept().await.expect("a connection");
        let mut read = [0; 4_096];
        let length = stream.read(&mut read).await.unwrap_or(0);
        String::from_utf8_lossy(&read[..length]).into_owned()
    });
    let webhook = releaser("webhook", json!({"url": url}));
    let mut fenced = Fenced::new("r1n07", &[("san", &*webhook)]).await;
    let order = fenced.order("san").await;
    let result = fenced.attempt_once(&order, &*webhook, || fenced.leadership.end()).await;
    assert_eq!(hears.await.expect("it ends"), "");
    assert!(
        matches!(&result, Err(ReleaseError::DidNotHappen(why)) if why.contains("was not begun: leadership")),
        "{result:?}"
    );
}

#[tokio::test]
async fn none_completes_at_once_and_leaves_nothing_open() {
    let none = releaser("none", json!({}));
    let mut fenced = Fenced::new("r1n07", &[("none", &*none)]).await;
    assert!(matches!(fenced.attempt("none", &*none).await, Ok(Progress::Complete(_))));
    assert_eq!(none.max_in_flight(), Some(Duration::ZERO));
}

#[tokio::test]
async fn an_order_and_a_permit_that_do_not_belong_together_send_nothing() {
    let webhook = releaser("webhook", json!({"url": "http://127.0.0.1:1/"}));
    let mut first = Fenced::new("r1n07", &[("san", &*webhook)]).await;
    let second = Fenced::new("r1n08", &[("san", &*webhook)]).await;
    let order = first.order("san").await;
    let told = second.attempt_with(&order, &*webhook).await;
    assert!(matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("defect")), "{told:?}");
}

#[test]
fn every_fault_is_told_and_an_unknown_kind_names_the_known() {
    let faults = make("san", "webhok", &serde_json::Map::new()).expect_err("no such kind");
    assert_eq!(faults[0].key, "kind");
    assert!(faults[0].message.contains("webhook, command, volumes, none"), "{faults:?}");
    let table = json!({"settle": "1h", "volumes": 3});
    let faults = make("san", "none", table.as_object().expect("a table")).expect_err("wrong");
    assert_eq!(faults.iter().map(|fault| fault.key.as_str()).collect::<Vec<_>>(), ["settle", "volumes"]);
}
