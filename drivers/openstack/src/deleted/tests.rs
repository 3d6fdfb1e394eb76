//! A delete that came in the middle of something.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::power::Power;
use serde_json::Value;

use super::{BUILDS, ENDS};
use crate::driver::OpenstackDriver;
use crate::fake_nova::{self, EventRow, action};

const GOOD: Option<&str> = Some("Success");
const BAD: Option<&str> = Some("Error");

/// Asked for at ten, and done by that host a second later.
fn delete(host: &'static str) -> Value {
    action("delete", "req-delete", "10:00:00", &[(ENDS, GOOD, host, "10:00:01", "10:00:05")])
}

async fn driver(actions: Vec<Value>) -> (OpenstackDriver, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = asked.clone();
    let nova = move |path: &str| {
        heard.lock().push(path.to_owned());
        fake_nova::actions(path, &actions)?
    };
    let driver = fake_nova::driver("member", nova).await;
    driver.ours().before = Some(BTreeSet::new());
    (driver, asked)
}

async fn reading(driver: &OpenstackDriver) -> (Power, String) {
    let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
    (reading.power, reading.said)
}

#[tokio::test]
async fn what_can_start_a_guest_must_have_ended_before_its_host_ended_the_server() {
    let start = |result, host, ended| ("compute_start_instance", result, host, "09:50:00", ended);
    let cases: [(&str, Vec<EventRow>, Power); 14] = [
        ("start", vec![start(GOOD, "hv1", "10:00:00")], Power::Off),
        ("start", vec![start(BAD, "hv1", "10:00:00")], Power::Off),
        ("start", vec![start(GOOD, "hv1", "10:00:01")], Power::Unknown),
        ("start", vec![start(BAD, "hv1", "10:00:03")], Power::Unknown),
        ("start", vec![start(None, "hv1", "")], Power::Unknown),
        // It waits for its host.
        ("start", vec![], Power::Unknown),
        // Two hosts have two clocks.
        ("reboot", vec![start(GOOD, "hv2", "10:00:00")], Power::Unknown),
        ("reboot", vec![start(GOOD, "", "09:59:01")], Power::Unknown),
        ("reboot", vec![start(GOOD, "hv2", "09:59:00")], Power::Off),
        ("resize", vec![start(GOOD, "hv1", "09:55:00"), start(None, "hv1", "")], Power::Unknown),
        ("a word of tomorrow", vec![], Power::Unknown),
        ("attach_volume", vec![], Power::Off),
        ("resetState", vec![], Power::Off),
        ("softDelete", vec![], Power::Off),
    ];
    for (name, steps, power) in cases {
        let lock = action("lock", "req-lock", "09:59:59", &[]);
        let (driver, _) = driver(vec![delete("hv1"), lock, action(name, "req-1", "09:50:00", &steps)]).await;
        let (is, said) = reading(&driver).await;
        assert_eq!(is, power, "{name} {steps:?}: {said}");
        let is_told = said.contains(&format!("its {name} req-1")) && said.contains("look at the host");
        assert_eq!(is_told, power == Power::Unknown, "{said}");
    }
    let unsaid = action("delete", "req-delete", "10:00:00", &[(ENDS, GOOD, "", "10:00:01", "10:00:05")]);
    let one = action("start", "req-1", "09:50:00", &[start(GOOD, "", "10:00:00")]);
    assert_eq!(reading(&driver(vec![unsaid, one]).await.0).await.0, Power::Unknown);
}

/// Nova notes the end of each try at the step of the first.
#[tokio::test]
async fn a_server_that_was_built_at_the_second_host_is_built() {
    let tried = |first, second| {
        let steps =
            [(BUILDS, first, "hv3", "09:00:00", "09:00:30"), (BUILDS, second, "hv1", "09:00:10", "09:00:30")];
        action("create", "req-create", "09:00:00", &steps)
    };
    for (create, power) in [
        (tried(GOOD, None), Power::Off),
        (tried(GOOD, GOOD), Power::Off),
        (tried(BAD, None), Power::Unknown),
        (tried(None, None), Power::Unknown),
    ] {
        let (is, said) = reading(&driver(vec![delete("hv1"), create.clone()]).await.0).await;
        assert_eq!(is, power, "{create}: {said}");
    }
}

#[tokio::test]
async fn what_had_ended_is_not_asked_for_again() {
    let steps: [EventRow; 1] = [("compute_start_instance", GOOD, "hv1", "09:50:00", "09:50:09")];
    let started = |request: &str| action("start", request, "09:50:00", &steps);
    let (driver, asked) = driver(vec![delete("hv1"), started("req-2"), started("req-1")]).await;
    for (turn, starts) in [2, 0].into_iter().enumerate() {
        asked.lock().clear();
        assert_eq!(reading(&driver).await.0, Power::Off);
        let asked = asked.lock().clone();
        let of_starts =
            asked.iter().filter(|path| path.ends_with("/req-1") || path.ends_with("/req-2")).count();
        assert_eq!(of_starts, starts, "{turn}: {asked:?}");
    }
}

/// It had ended before the delete, and after the evacuation: the host from which that went started a guest, which no delete ends.
#[tokio::test]
async fn what_had_ended_before_the_delete_had_not_ended_before_the_evacuation() {
    let evacuate = || {
        let steps = [("compute_rebuild_instance", GOOD, "hv2", "09:00:01", "09:00:20")];
        action("evacuate", "req-evacuate", "09:00:00", &steps)
    };
    for (ended, power) in [("09:30:00", Power::Unknown), ("08:50:09", Power::Off)] {
        let steps: [EventRow; 1] = [("compute_start_instance", BAD, "hv1", "08:50:00", ended)];
        let start = action("start", "req-start", "08:49:59", &steps);
        let (driver, _) = driver(vec![delete("hv2"), evacuate(), start]).await;
        for _ in 0..2 {
            let (is, said) = reading(&driver).await;
            assert_eq!(is, power, "{said}");
            assert_eq!(said.contains("its start req-start"), power == Power::Unknown, "{said}");
        }
    }
}
