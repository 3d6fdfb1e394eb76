//! How good an Off is.

use std::collections::BTreeSet;

use picket_core::power::{Power, Reading};
use serde_json::Value;

use crate::fake_nova::{self, EventRow, action, stopped};

const DONE: &[EventRow] = &[("compute_stop_instance", Some("Success"), "hv1", "14:00:01", "14:00:09")];
const FAILED: &[EventRow] = &[("compute_stop_instance", Some("Error"), "hv1", "14:00:01", "14:00:09")];
const UNDER_WAY: &[EventRow] = &[("compute_stop_instance", None, "hv1", "14:00:01", "")];

fn stop(steps: &[EventRow]) -> Value {
    action("stop", "req-stop", "14:00:00", steps)
}

/// What is read of a server that Nova has as stopped, or not at all, after these actions, newest first. `before`: our stops before the first off.
async fn read(is_there: bool, actions: Vec<Value>, before: &[&str]) -> Reading {
    let nova = move |path: &str| {
        let told = fake_nova::actions(path, &actions);
        told.unwrap_or_else(|| is_there.then(|| serde_json::json!({ "server": stopped() })))
    };
    let driver = fake_nova::driver("admin", nova).await;
    driver.ours().before = Some(before.iter().map(ToString::to_string).collect::<BTreeSet<_>>());
    driver.reading(&fake_nova::reading()).await.expect("a reading")
}

/// Nova takes no stop of a server that it has as stopped, and asks its hypervisor every ten minutes alone.
#[tokio::test]
async fn an_off_that_no_stop_of_ours_stands_behind_is_told_and_graded_lower() {
    let plain = |name: &str| action(name, &format!("req-{name}"), "14:30:00", &[]);
    let mut theirs = stop(DONE);
    theirs["user_id"] = serde_json::json!("somebody else");
    let ours_before: &[&str] = &["req-stop"];
    for (actions, before, is_fresh) in [
        (vec![stop(DONE)], &[] as &[&str], true),
        (vec![plain("detach_volume"), plain("lock"), stop(DONE)], &[], true),
        (vec![], &[], false),
        (vec![theirs], &[], false),
        (vec![stop(DONE)], ours_before, false),
        (vec![stop(FAILED)], &[], false),
        (vec![stop(UNDER_WAY)], &[], false),
        (vec![stop(&[])], &[], false),
        // It may have been started since.
        (vec![plain("start"), stop(DONE)], &[], false),
    ] {
        let reading = read(true, actions.clone(), before).await;
        assert_eq!(reading.power, Power::Off, "{actions:?}: {}", reading.said);
        assert_eq!(reading.lowered_by.is_none(), is_fresh, "{actions:?}: {reading:?}");
        let why = "sync_power_state_interval";
        assert_eq!(reading.said.contains(why), !is_fresh, "{}", reading.said);
        assert!(reading.lowered_by.is_none_or(|told| told.contains(why)), "{}", reading.said);
    }
    // Its host ended it.
    let ends = [("compute_terminate_instance", Some("Success"), "hv1", "15:00:01", "15:00:05")];
    let reading = read(false, vec![action("delete", "req-delete", "15:00:00", &ends)], &[]).await;
    assert_eq!((reading.power, reading.lowered_by), (Power::Off, None), "{}", reading.said);
}
