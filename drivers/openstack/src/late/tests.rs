//! A host that is back does what lies in its queue.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::power::Power;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, PowerDriver};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::STARTS;
use crate::driver::OpenstackDriver;
use crate::fake_nova::{self, EventRow, action, stopped};

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

fn start(steps: &[EventRow]) -> Value {
    action("start", "req-start", "12:00:00", steps)
}

/// One that its host did at once.
fn plain(name: &str) -> Value {
    let steps = [("compute_did_it", GOOD, "hv1", "12:30:01", "12:30:09")];
    action(name, &format!("req-{name}"), "12:30:00", &steps)
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
        let actions = fake_nova::actions(path, &told.lock());
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
        // Its save went through since another start was under way: after the evacuation, on another host.
        (vec![], vec![at(GOOD, "18:00:00")], Power::Unknown),
        (vec![], vec![at(GOOD, "13:01:01")], Power::Unknown),
        // The clocks of the hosts differ by as much.
        (vec![], vec![at(GOOD, "13:01:00")], Power::Off),
        (vec![], vec![("conductor_step", GOOD, "", "12:00:01", "12:00:02")], Power::Unknown),
        // That Nova took another one after it says nothing: it takes some at any time, and somebody may have made it forget a task.
        (vec!["reboot"], vec![], Power::Unknown),
        (vec!["lock", "detach_volume"], vec![], Power::Unknown),
        (vec!["reboot", "resetState"], vec![], Power::Unknown),
        (vec!["resetState", "reboot"], vec![], Power::Unknown),
        (vec!["extend_volume"], vec![], Power::Unknown),
        (vec!["attach_share"], vec![], Power::Unknown),
        (vec!["a word of tomorrow"], vec![], Power::Unknown),
        (vec!["reboot", "resetState"], vec![at(GOOD, "12:00:09")], Power::Off),
    ] {
        for role in ["admin", "member"] {
            let mut actions = vec![stop(), evacuate()];
            actions.extend(between.iter().map(|name| plain(name)));
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

/// An administrator made Nova forget a start that hangs at its ports or volumes, and Nova took our stop, which found nothing to stop.
#[tokio::test]
async fn a_start_that_nova_was_made_to_forget_must_have_ended_before_that() {
    let at = |result, ended| (STARTS, result, "hv2", "12:00:01", ended);
    for (steps, power) in [
        (vec![], Power::Unknown),
        (vec![at(None, "")], Power::Unknown),
        (vec![at(BAD, "12:40:00")], Power::Unknown),
        (vec![at(BAD, "12:00:09")], Power::Off),
        (vec![at(GOOD, "12:00:09")], Power::Off),
    ] {
        let (driver, _) = driver("admin", vec![stop(), plain("resetState"), start(&steps)]).await;
        let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
        assert_eq!(reading.power, power, "{steps:?}: {}", reading.said);
        let is_told =
            reading.said.contains("req-start") && reading.said.contains("set anew by req-resetState");
        assert_eq!(is_told, power == Power::Unknown, "{}", reading.said);
    }
}

/// A rescue makes its guest before it saves, and a resume starts one; a hard reboot saves first, which another reboot lets through.
#[tokio::test]
async fn whatever_may_start_a_guest_must_have_ended_before_the_evacuation() {
    let at = |step, result, ended| (step, result, "hv1", "12:00:01", ended);
    let built = "compute__do_build_and_run_instance";
    let cases: [(&str, Vec<EventRow>, Power); 21] = [
        ("rescue", vec![], Power::Unknown),
        ("rescue", vec![at("compute_rescue_instance", BAD, "18:00:00")], Power::Unknown),
        ("rescue", vec![at("compute_rescue_instance", GOOD, "12:00:09")], Power::Off),
        ("unrescue", vec![], Power::Unknown),
        ("resume", vec![at("compute_resume_instance", None, "")], Power::Unknown),
        ("resume", vec![at("compute_resume_instance", BAD, "12:00:09")], Power::Off),
        ("restore", vec![], Power::Unknown),
        ("reboot", vec![], Power::Unknown),
        ("reboot", vec![at("compute_reboot_instance", GOOD, "18:00:00")], Power::Unknown),
        // Its end is the other host's.
        ("revertResize", vec![at("compute_revert_resize", GOOD, "12:00:09")], Power::Unknown),
        (
            "revertResize",
            vec![
                at("compute_revert_resize", GOOD, "12:00:09"),
                at("compute_finish_revert_resize", GOOD, "12:00:19"),
            ],
            Power::Off,
        ),
        ("a word of tomorrow", vec![], Power::Unknown),
        // It waits for its host, unless it came to none.
        ("rebuild", vec![at("conductor_rebuild_server", GOOD, "12:00:09")], Power::Unknown),
        ("unshelve", vec![at("conductor_unshelve_instance", BAD, "12:00:09")], Power::Off),
        ("create", vec![], Power::Unknown),
        ("create", vec![at(built, GOOD, "12:00:09"), at(built, None, "")], Power::Off),
        // These start none.
        ("resize", vec![], Power::Off),
        ("migrate", vec![], Power::Off),
        ("createImage", vec![at("api_snapshot_instance", GOOD, "12:00:09")], Power::Off),
        ("createBackup", vec![], Power::Off),
        ("attach_volume", vec![], Power::Off),
    ];
    for (name, steps, power) in cases {
        for role in ["admin", "member"] {
            let old = action(name, "req-1", "12:00:00", &steps);
            let (driver, _) = driver(role, vec![stop(), evacuate(), old]).await;
            let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
            assert_eq!(reading.power, power, "{role} {name} {steps:?}: {}", reading.said);
            let is_told =
                reading.said.contains(&format!("its {name} req-1")) && reading.said.contains("look there");
            assert_eq!(is_told, power == Power::Unknown, "{}", reading.said);
        }
    }
}

/// It was started by the host from which it was evacuated first, and went on from the next one after that.
#[tokio::test]
async fn a_start_must_have_ended_before_the_first_evacuation_after_it() {
    let steps = |host| [("compute_rebuild_instance", GOOD, host, "20:00:01", "20:00:09")];
    let again = || action("evacuate", "req-again", "20:00:00", &steps("hv3"));
    let last = || {
        action(
            "stop",
            "req-stop",
            "21:00:00",
            &[("compute_stop_instance", GOOD, "hv3", "21:00:01", "21:00:09")],
        )
    };
    for (ended, power) in [("18:00:00", Power::Unknown), ("12:00:09", Power::Off)] {
        let old = start(&[(STARTS, BAD, "hv1", "12:00:01", ended)]);
        let (driver, _) = driver("admin", vec![last(), again(), evacuate(), old]).await;
        let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
        assert_eq!(reading.power, power, "{}", reading.said);
    }
}

/// An evacuation lies in the queue of its destination; Nova was made to forget it, and another one brought the server elsewhere. The first host that is back
/// sets the older one's migration to `completed`, and the queue of its destination has it still: `rebuild_instance` gets through while the server's task is
/// a rebuild's again.
#[tokio::test]
async fn an_older_evacuation_must_have_ended_before_the_newer_one() {
    let chosen = ("conductor_rebuild_server", GOOD, "", "12:40:01", "12:40:02");
    let at = |result, ended| ("compute_rebuild_instance", result, "hv3", "12:40:03", ended);
    let cases: [(Vec<EventRow>, [Power; 2]); 9] = [
        (vec![], [Power::Unknown; 2]),
        (vec![chosen], [Power::Unknown; 2]),
        (vec![chosen, at(None, "")], [Power::Unknown; 2]),
        (vec![chosen, at(GOOD, "18:00:00")], [Power::Unknown; 2]),
        (vec![chosen, at(GOOD, "12:40:30")], [Power::Off; 2]),
        // The clocks of the hosts differ by as much.
        (vec![chosen, at(GOOD, "13:01:00")], [Power::Off; 2]),
        // It came to no host.
        (vec![("conductor_rebuild_server", BAD, "", "12:40:01", "12:40:02")], [Power::Off; 2]),
        (
            vec![("conductor_rebuild_server", BAD, "", "12:40:01", "12:40:02"), at(None, "")],
            [Power::Unknown; 2],
        ),
        // It is over; its guest is a copy, of which a tenant is not told.
        (vec![chosen, at(BAD, "18:00:00")], [Power::Off, Power::Unknown]),
    ];
    for (steps, powers) in cases {
        for (role, power) in ["admin", "member"].into_iter().zip(powers) {
            let older = action("evacuate", "req-older", "12:40:00", &steps);
            let (driver, _) = driver(
                role,
                vec![stop(), evacuate(), action("resetState", "req-reset", "12:50:00", &[]), older],
            )
            .await;
            let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
            assert_eq!(reading.power, power, "{role} {steps:?}: {}", reading.said);
            let is_told = reading.said.contains("evacuate req-older") && reading.said.contains("look there");
            assert_eq!(is_told, power == Power::Unknown, "{}", reading.said);
            // Neither does its new hypervisor's Off count.
            if role == "admin" {
                let placement = driver.placement(&fake_nova::reading()).await.expect("a placement");
                assert_eq!(placement.moving.is_some(), power == Power::Unknown, "{steps:?}: {placement:?}");
            }
        }
    }
}

fn took_a_start(driver: &OpenstackDriver) {
    let now = fake_nova::clock().boot();
    driver.starts.took("req-start".to_owned(), now + Duration::from_secs(3_600), now);
}

/// A command of ours is not over, for that reason.
async fn waits(driver: &OpenstackDriver, why: &str) {
    loop {
        let soon = fake_nova::reading().until(Instant::now() + Duration::from_millis(700));
        let said = driver.quiesce(&soon).await.expect_err("it may lie in a queue");
        if said.detail.contains(why) {
            return;
        }
        // A question may have come too late for its answer, on a machine that is busy.
        assert!(!said.detail.contains("our start") && !said.detail.contains("is not told"), "{said:?}");
    }
}

#[tokio::test]
async fn a_start_of_ours_is_over_when_its_host_made_an_end_of_it() {
    let (driver, actions) = driver("admin", vec![start(&[])]).await;
    took_a_start(&driver);
    // A fence that comes meanwhile makes nobody forget it.
    driver.ours().begin(picket_core::ids::Generation(7), None);
    waits(&driver, "our start req-start").await;
    *actions.lock() = vec![start(&[(STARTS, BAD, "hv1", "12:00:01", "12:00:09")])];
    driver.quiesce(&fake_nova::reading()).await.expect("it ended, and failed");
    *actions.lock() = Vec::new();
    driver.quiesce(&fake_nova::reading()).await.expect("that is so for good");
}

/// A load balancer whose Nova is away answers 404, too.
#[tokio::test]
async fn a_server_that_is_not_there_ends_no_start_of_ours() {
    let actions: Arc<Mutex<Vec<Value>>> = Arc::new(Mutex::new(vec![start(&[])]));
    let told = actions.clone();
    let nova = move |path: &str| fake_nova::actions(path, &told.lock())?;
    let driver = fake_nova::driver("member", nova).await;
    took_a_start(&driver);
    waits(&driver, "that its host ended it is not told").await;
    // The host that ended it may be another one than that which has the start.
    let ends = [("compute_terminate_instance", GOOD, "hv2", "15:00:01", "15:00:05")];
    actions.lock().insert(0, action("delete", "req-delete", "15:00:00", &ends));
    waits(&driver, "our start req-start").await;
    actions.lock()[1] = start(&[(STARTS, BAD, "hv1", "12:00:01", "12:00:09")]);
    driver.quiesce(&fake_nova::reading()).await.expect("it ended, and so did the server");
}

/// Its answer is heard for longer than its call.
#[tokio::test]
async fn a_start_of_ours_that_is_answered_after_its_call_is_followed_to_its_end() {
    let (gate, heard) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let actions: Arc<Mutex<Vec<Value>>> = Arc::new(Mutex::new(vec![start(&[])]));
    let (told, arrived) = (actions.clone(), heard.clone());
    let nova = move |path: &str| {
        if path.contains("os-start") {
            arrived.notify_one();
            return Some(fake_nova::taken("req-start"));
        }
        let actions = fake_nova::actions(path, &told.lock());
        actions.unwrap_or_else(|| Some(json!({ "server": stopped() })))
    };
    let driver = fake_nova::driver_that_waits("admin", gate.clone(), nova).await;
    let clock = fake_nova::clock();
    let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
    let call = Call::control(Instant::now() + Duration::from_secs(30), clock, orders.permit());
    // It leaves a token.
    driver.read_power(&call).await.expect("a reading");
    tokio::select! {
        started = driver.power_on(orders.on().await.expect("an order"), &call) => panic!("nobody answers: {started:?}"),
        () = heard.notified() => {}
    }
    gate.notify_one();
    waits(&driver, "our start req-start").await;
    *actions.lock() = vec![start(&[(STARTS, BAD, "hv1", "12:00:01", "12:00:09")])];
    driver.quiesce(&fake_nova::reading()).await.expect("it ended");
}

/// Nova was made to forget the first one, and took another one.
#[tokio::test]
async fn each_start_of_ours_is_followed_to_its_end() {
    let ended = || [(STARTS, GOOD, "hv1", "12:00:01", "12:00:09")];
    let of = |request: &str, steps: &[EventRow]| action("start", request, "12:00:00", steps);
    let mut requests = vec!["req-start", "req-again"];
    let actions: Arc<Mutex<Vec<Value>>> =
        Arc::new(Mutex::new(vec![of("req-start", &ended()), of("req-again", &[])]));
    let told = actions.clone();
    let nova = move |path: &str| {
        if path.contains("os-start") {
            return Some(fake_nova::taken(requests.pop().expect("two")));
        }
        let actions = fake_nova::actions(path, &told.lock());
        actions.unwrap_or_else(|| Some(json!({ "server": stopped() })))
    };
    let gate = Arc::new(Notify::new());
    let driver = fake_nova::driver_that_waits("admin", gate.clone(), nova).await;
    let clock = fake_nova::clock();
    let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
    let call = Call::control(Instant::now() + Duration::from_secs(30), clock, orders.permit());
    driver.read_power(&call).await.expect("a reading");
    for _ in 0..2 {
        gate.notify_one();
        driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    }
    waits(&driver, "our start req-again").await;
    *actions.lock() = vec![of("req-start", &ended()), of("req-again", &ended())];
    driver.quiesce(&fake_nova::reading()).await.expect("both ended");
}

/// A start whose name was never heard cannot be followed to its end.
#[tokio::test]
async fn a_start_of_ours_that_nova_took_without_a_name_for_it_may_be_done_while_its_token_lives() {
    let nova = |path: &str| {
        let actions = fake_nova::actions(path, &[]);
        actions.unwrap_or_else(|| Some(json!({ "server": stopped() })))
    };
    let driver = fake_nova::driver("admin", nova).await;
    let clock = fake_nova::clock();
    let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
    let call = Call::control(Instant::now() + Duration::from_secs(30), clock, orders.permit());
    driver.read_power(&call).await.expect("a reading");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    waits(&driver, "Nova may take it").await;
}
