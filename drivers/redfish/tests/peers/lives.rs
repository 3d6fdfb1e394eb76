//! Whether a manager's `LastResetTime` shows its restarts, where no setting says so (S2).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::power::Power;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_driver::{Call, Effect, ErrorKind, PowerDriver};
use serde_json::json;

use crate::fake::{Fake, Reply};
use crate::subject::Hand;

/// A clock that goes on as it is told.
#[derive(Debug, Default)]
struct Told(Mutex<BootTime>);

impl Clock for Told {
    fn boot(&self) -> BootTime {
        *self.0.lock()
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }
}

/// A driver by default settings, and its checks.
struct Checked<'a> {
    fake: &'a Fake,
    hand: Hand,
    clock: Arc<Told>,
}

impl<'a> Checked<'a> {
    async fn of(fake: &'a Fake) -> Self {
        Self { fake, hand: Hand::of(fake, json!({})).await, clock: Arc::default() }
    }

    /// So long after the one before.
    async fn check(&self, after: Duration) -> bool {
        {
            let mut now = self.clock.0.lock();
            *now = *now + after;
        }
        self.fake.world().now += after.as_secs();
        let until = tokio::time::Instant::now() + Duration::from_secs(30);
        self.hand.driver.identify(&Call::reading(until, self.clock.clone())).await.expect("it answers");
        self.hand.driver.has_epochs()
    }

    fn remark(&self) -> Option<String> {
        self.hand.driver.remarks().into_iter().next()
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn two_checks_find_out_and_a_restart_between_two_wants_two_more() {
    let fake = Fake::start().await;
    let driver = Checked::of(&fake).await;
    assert!(!driver.check(Duration::ZERO).await);
    assert!(!driver.check(Duration::from_secs(1)).await, "too close");
    assert!(driver.check(MINUTE).await);
    fake.world().restart("2026-11-22T02:00:00Z");
    assert!(!driver.check(MINUTE).await);
    assert!(driver.check(MINUTE).await);
    assert_eq!(driver.remark(), None);
}

#[tokio::test]
async fn one_that_drifts_is_told_and_not_asked_any_more() {
    let fake = Fake::start().await;
    let driver = Checked::of(&fake).await;
    driver.check(Duration::ZERO).await;
    assert!(driver.check(MINUTE).await);
    fake.world().last_reset = json!("2026-11-22T01:00:01Z");
    assert!(!driver.check(MINUTE).await);
    let told = driver.remark().expect("it is told");
    assert!(told.contains("LastResetTime drifts"), "{told}");
    let asked = fake.world().asked("Managers");
    let reading = driver.hand.read().await.expect("a reading");
    assert_eq!((reading.power, reading.epoch), (Power::On, None));
    assert!(!driver.check(MINUTE).await);
    assert_eq!(fake.world().asked("Managers"), asked);
}

/// The clock of one without a battery begins at the same second each time, and only its present time would show that this was years ago.
#[tokio::test]
async fn one_that_does_not_say_its_present_time_is_not_believed() {
    let fake = Fake::start().await;
    fake.world()
        .script
        .push_back(("Managers", Reply::json(200, json!({ "LastResetTime": "2026-11-22T01:00:00Z" }))));
    fake.world()
        .script
        .push_back(("Managers", Reply::json(200, json!({ "LastResetTime": "2026-11-22T01:00:00Z" }))));
    let driver = Checked::of(&fake).await;
    assert!(!driver.check(Duration::ZERO).await && !driver.check(MINUTE).await);
    assert!(driver.remark().is_some_and(|remark| remark.contains("DateTime")), "{:?}", driver.remark());
    assert!(!driver.check(MINUTE).await && driver.check(MINUTE).await, "now it says it");
}

/// An enclosure's manager, or one that stands for several systems, lives on where the controller of one system restarts.
#[tokio::test]
async fn a_manager_of_others_besides_shows_no_restart() {
    for (manager, told) in [
        (json!({ "ManagerType": "EnclosureManager" }), "of the type EnclosureManager"),
        (json!({ "Links": { "ManagerForServers": [{}, {}] } }), "stands for 2 systems"),
    ] {
        let fake = Fake::start().await;
        fake.world().manager = manager;
        let driver = Checked::of(&fake).await;
        assert!(!driver.check(Duration::ZERO).await && !driver.check(MINUTE).await);
        assert!(driver.remark().is_some_and(|remark| remark.contains(told)), "{:?}", driver.remark());
        assert_eq!(driver.hand.read().await.expect("a reading").epoch, None);
    }
    let fake = Fake::start().await;
    fake.world().manager = json!({ "ManagerType": "BMC", "Links": { "ManagerForServers": [{}] } });
    let driver = Checked::of(&fake).await;
    assert!(!driver.check(Duration::ZERO).await && driver.check(MINUTE).await);
}

/// As a gateway that takes a fence over, and has not checked anything.
#[tokio::test]
async fn without_a_check_a_restart_is_told_all_the_same() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.driver.identify(&hand.call()).await.expect("it answers");
    let before = hand.read().await.expect("a reading").epoch.expect("the manager says it");
    fake.world().restart("2026-11-22T02:00:00Z");
    let after = hand.read().await.expect("a reading").epoch.expect("the manager says it");
    assert!(after.was_lost_after(before.id), "{before:?}, {after:?}");
    assert!(!hand.driver.has_epochs(), "one look shows nothing");
}

#[tokio::test]
async fn a_manager_that_does_not_say_it_keeps_its_power_from_nobody() {
    let fake = Fake::start().await;
    for (reset, remark) in [
        (json!(null), None),
        (json!("1970-01-01T00:00:07Z"), Some("clock is not set")),
        (json!(17), Some("no time")),
    ] {
        fake.world().last_reset = reset.clone();
        let driver = Checked::of(&fake).await;
        assert!(!driver.check(Duration::ZERO).await && !driver.check(MINUTE).await, "{reset}");
        let told = driver.remark();
        assert_eq!(told.is_some(), remark.is_some(), "{reset}: {told:?}");
        assert!(remark.is_none_or(|words| told.is_some_and(|told| told.contains(words))), "{reset}");
        let asked = fake.world().asked("Managers");
        for _ in 0..3 {
            assert_eq!(driver.hand.read().await.expect("a reading").epoch, None, "{reset}");
        }
        assert_eq!(fake.world().asked("Managers"), asked, "it is not asked each time");
    }
    for status in [401, 403, 404, 500] {
        let hand = Hand::of(&fake, json!({})).await;
        fake.world().script.extend((0..9).map(|_| ("Managers", Reply::raw(status, ""))));
        assert_eq!(hand.read().await.expect("a reading").epoch, None, "{status}");
        assert_eq!(hand.read().await.expect("nobody is locked out").power, Power::On, "{status}");
        fake.world().script.clear();
    }
}

#[tokio::test]
async fn once_it_was_said_a_reading_without_is_none_until_a_check_finds_it_gone() {
    let fake = Fake::start().await;
    let driver = Checked::of(&fake).await;
    driver.check(Duration::ZERO).await;
    assert!(driver.check(MINUTE).await);
    fake.world().tells_reset = false;
    let error = driver.hand.read().await.expect_err("who knows whether it restarted");
    assert_eq!((error.kind, error.effect), (ErrorKind::Settings, Effect::DidNotHappen), "{error}");
    assert!(!driver.check(MINUTE).await);
    assert_eq!(driver.hand.read().await.expect("a reading").epoch, None);
}

#[tokio::test]
async fn who_must_not_ask_for_it_does_not() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": false })).await;
    hand.driver.identify(&hand.call()).await.expect("it answers");
    assert_eq!(hand.read().await.expect("a reading").epoch, None);
    assert_eq!(fake.world().asked("Managers"), 0);
}
