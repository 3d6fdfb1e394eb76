//! What a 409 to a stop or a start does with a lock, and what is told of a state in which Nova stops nothing.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_driver::conformance::orders::Orders;
use picket_driver::{Call, DriverError, Effect, ErrorKind, PowerDriver};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fake_nova::{self, SERVER, conflict, refused_off};

const LONG: Duration = Duration::from_secs(30);
/// What Nova says to a command (Nova 34.0.0, `exception.py` and `api/openstack/common.py`).
const LOCKED: &str = "Instance 5a1bd2c8-1111-4222-8333-444455556666 is locked";
const BUSY: &str =
    "Cannot 'stop' instance 5a1bd2c8-1111-4222-8333-444455556666 while it is in task_state powering-off";
const PAUSED: &str =
    "Cannot 'stop' instance 5a1bd2c8-1111-4222-8333-444455556666 while it is in vm_state paused";

/// What Nova was told, in the words of the bodies.
type BodyLog = Arc<Mutex<Vec<String>>>;

/// A server in that state, locked by somebody with that reason.
fn server(status: &str, power_state: i64, reason: Option<&str>) -> Value {
    json!({
        "id": SERVER, "tenant_id": "p2", "status": status, "OS-EXT-STS:task_state": null, "OS-EXT-STS:power_state": power_state,
        "locked": reason.is_some(), "locked_reason": reason,
    })
}

/// A Nova that takes locks, and refuses a stop or a start so often, in those words.
fn nova(
    mut shown: Value,
    words: &'static str,
    mut times: usize,
) -> (impl FnMut(&str) -> Option<Value> + Send + 'static, BodyLog) {
    let heard: BodyLog = Arc::default();
    let told = heard.clone();
    let answers = move |asked: &str| {
        if asked.contains("/os-instance-actions") {
            return Some(json!({ "instanceActions": [] }));
        }
        if asked.starts_with("POST ") {
            let is = |what: &&str| asked.contains(&format!("{{\"{what}\":"));
            let what = ["os-stop", "os-start", "unlock", "lock"].into_iter().find(is);
            told.lock().push(what.unwrap_or_default().to_owned());
            match what {
                Some("unlock") => shown["locked"] = json!(false),
                Some("lock") => shown["locked"] = json!(true),
                _ if times > 0 => {
                    times -= 1;
                    return Some(conflict(words));
                }
                _ => {}
            }
            return Some(json!({}));
        }
        Some(json!({ "server": shown }))
    };
    (answers, heard)
}

fn told(heard: &BodyLog) -> Vec<String> {
    heard.lock().clone()
}

/// An administrator's lock is what holds (S11): Nova refuses no administrator for one.
#[tokio::test]
async fn a_lock_of_ours_is_undone_where_nova_names_it_as_the_cause_alone() {
    let ours = Some("picket: fenced, generation 1");
    for (words, did) in [
        (BUSY, vec!["os-stop", "os-stop"]),
        (PAUSED, vec!["os-stop", "os-stop"]),
        ("Instance 5a1bd2c8-1111-4222-8333-444455556666 is not ready", vec!["os-stop", "os-stop"]),
        ("a word of tomorrow: the disk is locked", vec!["os-stop", "os-stop"]),
        // Whom Nova takes for no administrator, whatever the role is called.
        (LOCKED, vec!["os-stop", "unlock", "os-stop"]),
    ] {
        let (answers, heard) = nova(server("ACTIVE", 1, ours), words, 1);
        let driver = fake_nova::driver("admin", answers).await;
        let (orders, call) = orders(&driver).await;
        driver.power_off(&orders.off().await.expect("an order"), &call).await.expect("it is taken");
        assert_eq!(told(&heard), did, "{words}");
    }
}

/// What was taken off for a start is put back, also where Nova took it at the second try, or at none.
#[tokio::test]
async fn a_lock_that_was_undone_for_a_start_is_put_back_whatever_became_of_that() {
    for (times, did) in [
        (0, vec!["unlock", "os-start", "lock"]),
        (1, vec!["unlock", "os-start", "os-start", "lock"]),
        (9, vec!["unlock", "os-start", "os-start", "lock"]),
    ] {
        let (answers, heard) = nova(server("SHUTOFF", 4, Some("we migrate it")), "in vm_state error", times);
        let driver = fake_nova::driver("member", answers).await;
        let (orders, call) = orders(&driver).await;
        let started = driver.power_on(orders.on().await.expect("an order"), &call).await;
        assert_eq!(started.is_ok(), times < 9, "{started:?}");
        assert_eq!(told(&heard), did, "refused {times} times");
    }
}

async fn orders(driver: &crate::driver::OpenstackDriver) -> (Orders, Call) {
    let clock = fake_nova::clock();
    let orders = Orders::new(driver.traits(), clock.clone()).await.expect("orders");
    let call = Call::control(Instant::now() + LONG, clock, orders.permit());
    let _ = driver.read_power(&call).await;
    (orders, call)
}

/// Its off, of which Nova refuses each.
async fn refused(shown: Value, words: &'static str) -> (DriverError, Vec<String>) {
    let (answers, heard) = nova(shown, words, 9);
    let error = refused_off(&fake_nova::driver("admin", answers).await, LONG).await;
    (error, told(&heard))
}

/// S16: waiting changes nothing of it, and a person is told what does.
#[tokio::test]
async fn a_state_in_which_nova_stops_nothing_is_refused_for_good_with_the_command_that_helps() {
    for (status, power_state, help) in [
        ("PAUSED", 3, Some("server unpause")),
        ("SUSPENDED", 4, Some("server resume")),
        ("RESCUE", 1, Some("server unrescue")),
        ("SHELVED", 4, Some("server unshelve")),
        ("SHELVED_OFFLOADED", 4, Some("server unshelve")),
        ("VERIFY_RESIZE", 1, Some("server resize confirm")),
        ("SOFT_DELETED", 4, Some("server restore")),
        ("ERROR", 1, None),
    ] {
        let (error, did) = refused(server(status, power_state, None), "in vm_state whatever").await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
        assert!(error.is_final && did == ["os-stop", "os-stop"], "{error}: {did:?}");
        let command = help.map(|help| format!("openstack {help} {SERVER}"));
        assert!(command.is_none_or(|command| error.detail.contains(&command)), "{error}");
        assert_eq!(
            error.detail.contains("Nova neither stops nor starts a server that is"),
            help.is_some(),
            "{error}"
        );
    }
}

/// There is no host that could be down.
#[tokio::test]
async fn a_server_without_a_host_is_refused_for_good_and_is_told_nothing() {
    for (task, is_final) in [(json!(null), true), (json!("spawning"), false)] {
        let mut shown = server("SHELVED_OFFLOADED", 4, None);
        (shown["host_status"], shown["OS-EXT-STS:task_state"]) = (json!(""), task);
        let (error, did) = refused(shown, "").await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
        assert_eq!((error.is_final, did.len()), (is_final, 0), "{error}");
        assert!(error.detail.contains(&format!("openstack server unshelve {SERVER}")), "{error}");
    }
}

/// S16: what keeps a fence from its end is an obstacle before there is a fence, with what ends it.
#[tokio::test]
async fn a_state_in_which_nova_stops_nothing_is_an_obstacle_of_the_check() {
    for (status, power_state, help) in [
        ("PAUSED", 3, Some("unpause")),
        ("RESCUE", 1, Some("unrescue")),
        ("ACTIVE", 1, None),
        ("ERROR", 0, None),
    ] {
        let (answers, _) = nova(server(status, power_state, None), "", 0);
        let driver = fake_nova::driver("admin", answers).await;
        driver.identify(&fake_nova::reading()).await.expect("it answers");
        let all = driver.obstacles();
        assert_eq!(all.len(), usize::from(help.is_some()), "{status}: {all:?}");
        assert!(all.iter().all(|one| help.is_some_and(|help| one.contains(help))), "{status}: {all:?}");
        // Nova does stop what is in ERROR.
        let is_told = driver.remarks().iter().any(|one| one.contains("it is in ERROR"));
        assert_eq!(is_told, status == "ERROR", "{:?}", driver.remarks());
    }
}
