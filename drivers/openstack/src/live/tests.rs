//! Where a server runs after live migrations.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::power::Power;
use serde_json::{Value, json};

use super::{BEGUN, LANDED, LIVE, ROLLED_BACK};
use crate::deleted::ENDS;
use crate::fake_nova::{self, EventRow, action, stopped};

const GOOD: Option<&str> = Some("Success");
const BAD: Option<&str> = Some("Error");

fn live(steps: &[EventRow]) -> Value {
    action(LIVE, "req-live", "12:00:00", steps)
}

const WENT: EventRow = (BEGUN, GOOD, "hv1", "12:00:01", "12:00:02");
const ARRIVED: EventRow = (LANDED, GOOD, "hv2", "12:00:30", "12:00:31");
const NOT_SAVED: EventRow = (LANDED, BAD, "hv2", "12:00:30", "12:00:31");
const BACK: EventRow = (ROLLED_BACK, GOOD, "hv2", "12:00:30", "12:00:31");

fn plain(name: &str, at: &str) -> Value {
    action(name, &format!("req-{name}"), at, &[])
}

fn stop() -> Value {
    action("stop", "req-stop", "14:00:00", &[("compute_stop_instance", GOOD, "hv1", "14:00:01", "14:00:09")])
}

/// What the driver reads of that server, after these actions, where Nova tells an administrator of these migrations; and what it asked.
async fn read(
    role: &str,
    server: Option<Value>,
    actions: Vec<Value>,
    migrations: Value,
) -> (Power, String, Vec<String>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = asked.clone();
    let nova = move |path: &str| {
        heard.lock().push(path.to_owned());
        if path.starts_with("/os-migrations") {
            return Some(json!({ "migrations": migrations }));
        }
        fake_nova::actions(path, &actions)
            .unwrap_or_else(|| server.clone().map(|server| json!({ "server": server })))
    };
    let driver = fake_nova::driver(role, nova).await;
    driver.ours().before = Some(BTreeSet::new());
    let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
    let asked = asked.lock().clone();
    (reading.power, reading.said, asked)
}

fn hidden() -> Value {
    let mut server = stopped();
    server.as_object_mut().expect("a table").retain(|key, _| !key.contains("host"));
    server
}

/// The guest runs at the destination, and Nova has the source, where a later start made another one: its Off is that one's.
#[tokio::test]
async fn a_stop_proves_nothing_where_a_guest_was_started_anew_after_a_live_migration_that_is_not_known_to_have_ended()
 {
    let known = |role: &'static str, between: Vec<&'static str>, steps: &'static [EventRow]| async move {
        let server = if role == "admin" { stopped() } else { hidden() };
        let mut actions = vec![stop()];
        actions.extend(between.iter().map(|name| plain(name, "13:00:00")));
        actions.push(live(steps));
        // Nova's word of it is that of a source that began anew.
        let migrations =
            json!([{ "id": 1, "status": "error", "migration_type": LIVE, "dest_compute": "compute-8" }]);
        read(role, Some(server), actions, migrations).await
    };
    for role in ["admin", "member"] {
        for (between, steps, power) in [
            (vec!["start"], &[WENT] as &[EventRow], Power::Unknown),
            (vec!["reboot"], &[WENT], Power::Unknown),
            (vec!["unrescue"], &[WENT, NOT_SAVED], Power::Unknown),
            (vec!["a word of tomorrow"], &[WENT], Power::Unknown),
            (vec!["lock", "start", "attach_volume"], &[], Power::Unknown),
            // Nova was made to forget it, and takes a stop in the middle of it.
            (vec!["resetState"], &[WENT], Power::Unknown),
            (vec!["lock", "resetState"], &[], Power::Unknown),
            (vec!["resetState"], &[WENT, ARRIVED], Power::Off),
            (vec!["resetState"], &[WENT, BACK], Power::Off),
            // Nova's Off is of what is defined at the source, and nothing has defined it anew.
            (vec![], &[WENT], Power::Off),
            (vec!["lock", "attach_volume"], &[WENT], Power::Off),
            // It came to its end, one or the other.
            (vec!["start"], &[WENT, ARRIVED], Power::Off),
            (vec!["start"], &[WENT, BACK], Power::Off),
            (vec!["start"], &[(BEGUN, BAD, "hv1", "12:00:01", "12:00:02")], Power::Off),
            (
                vec!["start"],
                &[("conductor_live_migrate_instance", BAD, "", "12:00:00", "12:00:01")],
                Power::Off,
            ),
        ] {
            let (is, said, _) = known(role, between.clone(), steps).await;
            assert_eq!(is, power, "{role} {between:?} {steps:?}: {said}");
            let is_told = said.contains("live-migration req-live is not known to have ended well")
                && said.contains("look there");
            assert_eq!(is_told, power == Power::Unknown, "{said}");
        }
    }
}

/// One that went on from where Nova had the server had its guest there, unless a guest was started anew between the two.
#[tokio::test]
async fn a_later_live_migration_that_arrived_shows_where_the_guest_was() {
    let later = action(LIVE, "req-later", "13:00:00", &[WENT, ARRIVED]);
    let start = |at: &str| plain("start", at);
    for (actions, power) in [
        (vec![stop(), start("13:30:00"), later.clone(), live(&[WENT])], Power::Off),
        (vec![stop(), later.clone(), plain("lock", "12:30:00"), live(&[WENT])], Power::Off),
        (vec![stop(), start("13:30:00"), later.clone(), start("12:30:00"), live(&[WENT])], Power::Unknown),
        (vec![stop(), start("13:30:00"), plain("evacuate", "13:00:00"), live(&[WENT])], Power::Unknown),
    ] {
        let names: Vec<String> = actions.iter().map(|one| one["request_id"].to_string()).collect();
        let (is, said, _) = read("member", Some(hidden()), actions, json!([])).await;
        assert_eq!(is, power, "{names:?}: {said}");
    }
}

/// Where no step tells it, as on a path that all hosts share.
#[tokio::test]
async fn an_administrator_is_told_that_a_live_migration_came_to_nothing() {
    let one = |status: &str, to: &str| json!({ "id": 1, "status": status, "migration_type": LIVE, "dest_compute": to });
    for (migrations, power) in [
        (json!([one("failed", "compute-8")]), Power::Off),
        (json!([one("cancelled", "compute-8"), one("completed", "compute-8")]), Power::Off),
        (json!([one("error", "compute-7")]), Power::Off),
        (json!([one("error", "compute-8")]), Power::Unknown),
        (json!([one("running", "compute-8")]), Power::Unknown),
        (json!([one("failed", "compute-8"), one("error", "compute-8")]), Power::Unknown),
        (json!([]), Power::Unknown),
    ] {
        for (role, server) in [("admin", stopped()), ("member", hidden())] {
            let actions = vec![stop(), plain("start", "13:00:00"), live(&[WENT])];
            let (is, said, asked) = read(role, Some(server), actions, migrations.clone()).await;
            let is_admin = role == "admin";
            assert_eq!(is, if is_admin { power } else { Power::Unknown }, "{role} {migrations}: {said}");
            assert_eq!(asked.iter().any(|path| path.starts_with("/os-migrations")), is_admin);
        }
    }
}

/// The source ends nothing in the moment between the move of the guest and Nova's word of it, and notes Success.
#[tokio::test]
async fn a_delete_in_the_middle_of_a_live_migration_is_no_off() {
    let delete = |at: &str, host: &'static str| {
        action("delete", "req-delete", at, &[(ENDS, GOOD, host, "12:00:40", "12:00:41")])
    };
    let between = |steps: &[EventRow]| vec![delete("12:00:40", "hv1"), live(steps)];
    for (actions, power) in [
        (between(&[WENT]), Power::Unknown),
        (between(&[WENT, NOT_SAVED]), Power::Unknown),
        (between(&[]), Power::Unknown),
        (between(&[WENT, BACK]), Power::Off),
        (between(&[(BEGUN, BAD, "hv1", "12:00:01", "12:00:02")]), Power::Off),
        // Nova had the server at the destination before the delete was asked for, or that one did it.
        (between(&[WENT, ARRIVED]), Power::Unknown),
        (vec![delete("12:00:40", "hv2"), live(&[WENT, ARRIVED])], Power::Off),
        (vec![delete("12:01:30", "hv9"), live(&[WENT, ARRIVED])], Power::Unknown),
        (vec![delete("12:01:31", "hv9"), live(&[WENT, ARRIVED])], Power::Off),
        (vec![delete("12:01:31", "hv1"), live(&[WENT])], Power::Unknown),
        // Nothing shows where a server was that is not there.
        (vec![delete("18:00:00", "hv1"), plain("lock", "17:00:00"), live(&[WENT])], Power::Unknown),
    ] {
        for role in ["admin", "member"] {
            // Nova tells no migrations of a server that it deleted: these are none of its.
            let told =
                json!([{ "id": 1, "status": "failed", "migration_type": LIVE, "dest_compute": "compute-8" }]);
            let (is, said, _) = read(role, None, actions.clone(), told).await;
            assert_eq!(is, power, "{role} {actions:?}: {said}");
            assert_eq!(said.contains("look there"), power == Power::Unknown, "{said}");
        }
    }
}
