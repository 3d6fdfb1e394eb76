//! How boards are told to stay off when power comes back (S11), and which of them are not.

use std::time::Duration;

use picket_driver::{Call, DriverError, Effect, HoldFound, HoldReport, PowerDriver};
use serde_json::json;
use tokio::time::Instant;

use crate::fake::{Board, Fake, Reply, SYSTEM, Then, Waits, World};
use crate::subject::Hand;

/// A service whose system says no `PowerRestorePolicy`.
async fn with(board: Board) -> (Fake, Hand) {
    let fake = Fake::start().await;
    fake.world().policy = None;
    fake.world().board = board;
    let hand = Hand::of(&fake, json!({})).await;
    (fake, hand)
}

async fn found(hand: &Hand) -> HoldFound {
    hand.driver.inspect_hold(&hand.call()).await.expect("an answer")
}

async fn engage(hand: &Hand, found: &HoldFound) -> Result<HoldReport, DriverError> {
    let order = hand.orders.hold(found).await.expect("an order");
    hand.driver.engage_hold(&order, &hand.call()).await
}

async fn put_back(hand: &Hand, found: &HoldFound) -> HoldReport {
    let order = hand.orders.unhold(found).await.expect("an order");
    hand.driver.disengage_hold(&order, &hand.call()).await.expect("an answer")
}

/// The words of a person's check.
async fn checked(hand: &Hand) -> Vec<String> {
    let call = Call::reading(Instant::now() + Duration::from_secs(30), hand.clock.clone());
    assert!(hand.driver.inspect_hold(&call).await.expect("an answer").is_empty());
    hand.driver.remarks()
}

#[tokio::test]
async fn an_ilo_remains_off_and_gets_its_mode_and_its_delay_back() {
    for name in ["Hpe", "Hp"] {
        let (fake, hand) = with(Board::ilo(name)).await;
        let found = found(&hand).await;
        let report = engage(&hand, &found).await.expect("taken");
        assert_eq!(report.engaged, ["auto power-on remain-off"], "{name}: {report:?}");
        assert_eq!(fake.world().board.says(), ("RemainOff", None), "{name}");
        let now = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
        assert_eq!(hand.driver.engaged(&now), report.engaged, "{name}");
        assert!(put_back(&hand, &found).await.detail.is_empty(), "{name}");
        assert_eq!(fake.world().board.says(), ("PowerOn", Some("30Sec")), "{name}");
    }
}

/// It may be told to remain off, and start the machine all the same when power comes back: what reads so after that proves nothing (S2).
#[tokio::test]
async fn what_an_ilo_says_after_its_restart_does_not_show_that_the_machine_was_kept_off() {
    let (_fake, hand) = with(Board::ilo("Hpe")).await;
    assert!(!hand.driver.outlives("auto power-on remain-off"));
    assert!(hand.driver.outlives("restore policy always-off"));
}

/// Its change may read so at once, or only after that reboot.
#[tokio::test]
async fn an_ilo_that_remains_off_only_after_a_reboot_is_not_held() {
    for waits in [Waits::Shown, Waits::Hidden] {
        let (fake, hand) = with(Board { waits, ..Board::ilo("Hpe") }).await;
        let found = found(&hand).await;
        let report = engage(&hand, &found).await.expect("an answer");
        assert!(report.engaged.is_empty() && report.detail.contains("reboot"), "{waits:?}: {report:?}");
        // Whoever comes next finds no hold either, nor does the reboot bring one.
        let now = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
        assert!(hand.driver.engaged(&now).is_empty(), "{waits:?}: {now:?}");
        let mut world = fake.world();
        world.board.reboot();
        assert_eq!(world.board.says(), ("PowerOn", Some("30Sec")), "{waits:?}");
        assert_eq!(world.commands, 2, "{waits:?}");
    }
}

/// Between the two changes the system is not to be read.
#[tokio::test]
async fn a_change_that_waits_and_is_not_put_back_may_have_changed_something() {
    let (fake, hand) = with(Board { waits: Waits::Shown, ..Board::ilo("Hpe") }).await;
    let found = found(&hand).await;
    let is_silent = |world: &mut World| world.script.push_back((SYSTEM, Reply::json(500, json!({}))));
    let once_read = move |world: &mut World| world.then.push_back(("GET", Then::is(is_silent)));
    fake.world().then.push_back(("PATCH", Then::is(once_read)));
    let error = engage(&hand, &found).await.expect_err("it was not put back");
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    assert_eq!(fake.world().commands, 1);
}

#[tokio::test]
async fn a_board_that_has_both_is_told_in_the_standard_s_own_place() {
    let (fake, hand) = with(Board::ilo("Hpe")).await;
    fake.world().policy = Some("AlwaysOn".to_owned());
    let found = found(&hand).await;
    let report = engage(&hand, &found).await.expect("taken");
    assert_eq!(report.engaged, ["restore policy always-off"], "{report:?}");
    assert_eq!(fake.world().board.auto_on, "PowerOn");
    put_back(&hand, &found).await;
    assert_eq!(fake.world().policy.as_deref(), Some("AlwaysOn"));
}

#[tokio::test]
async fn an_idrac_s_bios_setting_is_told_and_never_changed() {
    let (fake, hand) = with(Board { bios: Some(json!({ "AcPwrRcvry": "On" })), ..Board::default() }).await;
    let told = checked(&hand).await;
    assert!(
        told.iter().any(|one| one.contains("AcPwrRcvry is \"On\"") && one.contains("\"Off\"")),
        "{told:?}"
    );
    let found = found(&hand).await;
    let report = engage(&hand, &found).await.expect("an answer");
    assert!(report.engaged.is_empty() && report.detail.contains("PowerRestorePolicy"), "{report:?}");
    assert_eq!(fake.world().commands, 0);
    fake.world().board.bios = Some(json!({ "AcPwrRcvry": "Last" }));
    assert_eq!(checked(&hand).await, [""; 0], "and no more, once it is mended");
}

#[tokio::test]
async fn a_supermicro_s_bios_setting_is_told_by_its_number() {
    let attributes = json!({ "QuietBoot_0027": true, "RestoreonACPowerLoss_0051": "Power On" });
    let (_fake, hand) = with(Board { bios: Some(attributes), ..Board::default() }).await;
    let told = checked(&hand).await;
    assert!(told.iter().any(|one| one.contains("RestoreonACPowerLoss_0051 is \"Power On\"")), "{told:?}");
}

/// On some it takes seconds: only whoever asks for a check waits for it.
#[tokio::test]
async fn no_fence_waits_for_what_a_bios_says() {
    let (fake, hand) = with(Board { bios: Some(json!({ "AcPwrRcvry": "On" })), ..Board::default() }).await;
    found(&hand).await;
    assert_eq!(fake.world().asked("/Bios"), 0);
    checked(&hand).await;
    assert_eq!(fake.world().asked("/Bios"), 1);
}

#[tokio::test]
async fn a_bios_that_says_nothing_keeps_no_check_from_its_end() {
    let (fake, hand) = with(Board { bios: Some(json!({ "AcPwrRcvry": "On" })), ..Board::default() }).await;
    for status in [401, 403, 404, 500] {
        fake.world().script.push_back(("/Bios", Reply::json(status, json!({}))));
        assert_eq!(checked(&hand).await, [""; 0], "{status}");
    }
    assert_eq!(fake.world().asked("POST /redfish/v1/SessionService/Sessions"), 1, "it is let in still");
}
