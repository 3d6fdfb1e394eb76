use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::record::HoldState;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, HoldFound, PowerDriver};
use serde_json::json;
use tokio::time::Instant;

use super::{SERVICE, STOPS, UP};
use crate::driver::OpenstackDriver;
use crate::fake_nova::{self, stopped};

#[test]
fn the_stops_that_there_were_are_of_one_generation() {
    assert!(STOPS.starts_with(HoldState::SEEN));
}

/// The driver of a server whose host's service is forced down, or is not, and what Nova is told.
async fn on(forced: bool) -> (OpenstackDriver, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = told.clone();
    let mut is_forced = forced;
    let nova = move |asked: &str| {
        if asked.starts_with("PUT ") {
            heard.lock().push(asked.to_owned());
            is_forced = false;
        }
        if asked.contains("/os-services") {
            return Some(json!({ "services": [{ "id": "s1", "state": "down", "forced_down": is_forced }] }));
        }
        let mut server = stopped();
        server["host_status"] = json!(if is_forced { "DOWN" } else { "UP" });
        Some(json!({ "server": server }))
    };
    (fake_nova::driver("admin", nova).await, told)
}

async fn orders(driver: &OpenstackDriver) -> (Orders, Call) {
    let clock = fake_nova::clock();
    let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
    let call = Call::control(Instant::now() + Duration::from_secs(30), clock, orders.permit());
    (orders, call)
}

/// A successor does not know what the process before it forced down.
#[tokio::test]
async fn what_was_not_forced_down_before_the_hold_is_put_back_by_a_successor() {
    let by_host = HoldFound::from([(UP.to_owned(), "compute-7".to_owned())]);
    let by_service = HoldFound::from([(SERVICE.to_owned(), "s1".to_owned())]);
    for (found, forced, puts) in [
        (&by_host, true, 1),
        (&by_service, true, 1),
        (&by_host, false, 0),
        (&by_service, false, 0),
        // It was so before.
        (&HoldFound::new(), true, 0),
    ] {
        let (driver, told) = on(forced).await;
        let (orders, call) = orders(&driver).await;
        let left = driver.left_beside(found, &call).await.expect("told");
        assert_eq!(left.is_some_and(|left| left.contains("s1")), puts > 0, "{found:?}, {forced}");
        let undone = driver.disengage_hold(&orders.unhold(found).await.expect("an order"), &call).await;
        assert_eq!(undone.expect("undone").detail, "");
        let told = told.lock().clone();
        assert_eq!(told.len(), puts, "{found:?}, {forced}: {told:?}");
        assert!(told.iter().all(|one| one == r#"PUT /os-services/s1 {"forced_down":false}"#), "{told:?}");
    }
}

/// Whoever is a member of the server's project writes what a lock's reason says, and undoes its owner's lock (S11).
#[tokio::test]
async fn a_lock_that_its_owner_made_or_may_undo_is_no_hold_of_an_administrator_s() {
    let of = |project: &str| Some(project.to_owned());
    for (project, locked, holds) in [
        (of("p2"), None, true),
        // A forgery of the owner's, and a lock of ours: Nova shows one as the other.
        (of("p2"), of("picket: fenced, generation 7"), true),
        (of("p1"), None, false),
        (of("p1"), of("picket: fenced, generation 7"), false),
        (None, None, false),
    ] {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let (heard, mut now) = (told.clone(), locked.clone());
        let whose = project.clone();
        let nova = move |asked: &str| {
            if asked.starts_with("POST ") {
                heard.lock().push(asked.to_owned());
                now = Some("picket: fenced, generation 1".to_owned());
            }
            if asked.contains("/os-instance-actions") {
                return Some(json!({ "instanceActions": [] }));
            }
            let mut server = stopped();
            server["tenant_id"] = json!(whose);
            (server["locked"], server["locked_reason"]) = (json!(now.is_some()), json!(now));
            Some(json!({ "server": server }))
        };
        let mut driver = fake_nova::driver("admin", nova).await;
        driver.settings.hold = true;
        let (orders, call) = orders(&driver).await;
        let order = orders.hold(&HoldFound::new()).await.expect("an order");
        let report = driver.engage_hold(&order, &call).await.expect("it is locked");
        let said = format!("{project:?}, {locked:?}: {report:?}");
        assert_eq!(!report.engaged.is_empty(), holds, "{said}");
        assert_eq!(report.detail.contains(super::OWNERS), !holds, "{said}");
        let told = told.lock().clone();
        assert!(told.len() == 1 && told[0].contains("locked_reason"), "{said}: {told:?}");
        // A look at it says the same.
        let found = driver.inspect_hold(&call).await.expect("told");
        assert_eq!(!driver.engaged(&found).is_empty(), holds, "{said}: {found:?}");
    }
}

/// Nova would say DOWN of a host that lives, by our own word.
#[tokio::test]
async fn a_host_that_was_forced_down_since_the_hold_is_asked_before_its_server_is_not_stopped() {
    let not_forced = HoldFound::from([(SERVICE.to_owned(), "s1".to_owned())]);
    for (by_this_process, found, puts) in [
        (true, &HoldFound::new(), 1),
        // A process before this one forced it down.
        (false, &not_forced, 1),
        // It was so before.
        (false, &HoldFound::new(), 0),
    ] {
        let (driver, told) = on(true).await;
        let (orders, call) = orders(&driver).await;
        driver.services().forced = by_this_process.then(|| "s1".to_owned());
        let stopped = driver.power_off(&orders.off_found(found).await.expect("an order"), &call).await;
        assert_eq!(told.lock().len(), puts, "{by_this_process}, {found:?}");
        let is_refused = stopped.is_err_and(|error| error.detail.contains("compute host"));
        assert_eq!(is_refused, puts == 0, "{by_this_process}, {found:?}");
    }
}

/// The release of another server of that host forces its service down again whenever its turn comes.
#[tokio::test]
async fn a_host_that_is_forced_down_again_and_again_is_asked_once_a_call() {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = told.clone();
    let nova = move |asked: &str| {
        if asked.starts_with("PUT ") {
            heard.lock().push(asked.to_owned());
        }
        if asked.contains("/os-services") {
            return Some(json!({ "services": [{ "id": "s1", "state": "up", "forced_down": true }] }));
        }
        let mut server = stopped();
        server["host_status"] = json!("DOWN");
        Some(json!({ "server": server }))
    };
    let driver = fake_nova::driver("admin", nova).await;
    let (orders, call) = orders(&driver).await;
    let found = HoldFound::from([(SERVICE.to_owned(), "s1".to_owned())]);
    let stopped = driver.power_off(&orders.off_found(&found).await.expect("an order"), &call).await;
    assert!(stopped.is_err_and(|error| error.detail.contains("compute host")));
    assert_eq!(told.lock().len(), 1);
}
