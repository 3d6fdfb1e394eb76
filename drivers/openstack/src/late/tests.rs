//! A host that is back does what lies in its queue.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use picket_core::power::Power;
use picket_driver::PowerDriver;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::STARTS;
use crate::driver::OpenstackDriver;
use crate::fake_nova::{self, Step, action, stopped};

const GOOD: Option<&str> = Some("Success");
const BAD: Option<&str> = Some("Error");

fn stop() -> Value {
    action("stop", "req-stop", "14:00:00", &[("compute_stop_instance", GOOD, "hv2", "14:00:01", "14:00:09")])
}

fn evacuate() -> Value {
    action(
        "evacuate",
        "req-evacuate",
        "13:00:00",
        &[("compute_rebuild_instance", GOOD, "hv2", "13:00:01", "13:00:20")],
    )
}

fn start(steps: &[Step]) -> Value {
    action("start", "req-start", "12:00:00", steps)
}

fn plain(name: &str) -> Value {
    action(name, &format!("req-{name}"), "12:30:00", &[])
}

/// The driver of a server that was stopped, after these actions, newest first, as they stand then.
async fn driver(role: &str, actions: Vec<Value>) -> (OpenstackDriver, Arc<Mutex<Vec<Value>>>) {
    let mut server = stopped();
    if role == "member" {
        server.as_object_mut().expect("a table").retain(|key, _| !key.contains("host"));
    }
    let actions = Arc::new(Mutex::new(actions));
    let told = actions.clone();
    let nova = move |path: &str| {
        if path.starts_with("/os-migrations") {
            let done = json!({ "id": 1, "status": "completed", "migration_type": "evacuation", "dest_compute": "compute-7" });
            return Some(json!({ "migrations": [done] }));
        }
        let actions = fake_nova::actions(path, &told.lock().expect("whole"));
        actions.unwrap_or_else(|| Some(json!({ "server": server })))
    };
    let driver = fake_nova::driver(role, nova).await;
    driver.ours().before = Some(BTreeSet::new());
    (driver, actions)
}

#[tokio::test]
async fn a_start_that_lay_in_the_queue_of_an_evacuated_host_keeps_the_server_from_being_off() {
    let at = |result, ended| (STARTS, result, "hv1", "12:00:01", ended);
    for (between, steps, power) in [
        (vec![], vec![], Power::Unknown),
        (vec![], vec![at(None, "")], Power::Unknown),
        // The host is back: it started the guest, and could not save that.
        (vec![], vec![at(BAD, "18:00:00")], Power::Unknown),
        (vec![], vec![at(BAD, "12:59:30")], Power::Unknown),
        (vec![], vec![at(BAD, "12:00:09")], Power::Off),
        (vec![], vec![at(GOOD, "12:59:59")], Power::Off),
        (vec![], vec![("conductor_step", GOOD, "", "12:00:01", "12:00:02")], Power::Unknown),
        // Nova took the one after it, and takes none while a start is under way.
        (vec!["reboot"], vec![], Power::Off),
        (vec!["lock", "detach_volume"], vec![], Power::Unknown),
        // Unless somebody made it forget that.
        (vec!["reboot", "resetState"], vec![], Power::Off),
        (vec!["resetState", "reboot"], vec![], Power::Unknown),
    ] {
        for role in ["admin", "member"] {
            let mut actions = vec![stop(), evacuate()];
            actions.extend(between.iter().map(|name| plain(name)));
            // What became of the others is not asked for.
            actions.push(start(&steps));
            let (driver, _) = driver(role, actions).await;
            let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
            assert_eq!(reading.power, power, "{role} {between:?} {steps:?}: {}", reading.said);
            let is_told = reading.said.contains("its start req-start") && reading.said.contains("look there");
            assert_eq!(is_told, power == Power::Unknown, "{}", reading.said);
        }
    }
    // Without an evacuation the server's own host has it.
    let (driver, _) = driver("admin", vec![stop(), start(&[])]).await;
    assert_eq!(driver.reading(&fake_nova::reading()).await.expect("a reading").power, Power::Off);
}

#[tokio::test]
async fn a_start_of_ours_is_over_when_its_host_made_an_end_of_it() {
    let (driver, actions) = driver("admin", vec![start(&[])]).await;
    driver.ours().start = Some("req-start".to_owned());
    // A fence that comes meanwhile makes nobody forget it.
    driver.ours().begin(picket_core::ids::Generation(7), None);
    let soon = || fake_nova::reading().until(Instant::now() + Duration::from_millis(700));
    let said = driver.quiesce(&soon()).await.expect_err("it may lie in a queue");
    assert!(said.detail.contains("our start req-start"), "{said:?}");
    *actions.lock().expect("whole") = vec![start(&[(STARTS, BAD, "hv1", "12:00:01", "12:00:09")])];
    driver.quiesce(&fake_nova::reading()).await.expect("it ended, and failed");
    *actions.lock().expect("whole") = Vec::new();
    driver.quiesce(&fake_nova::reading()).await.expect("that is so for good");
}
