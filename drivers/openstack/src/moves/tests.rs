//! Where a server runs after evacuations.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::power::Power;
use serde_json::{Value, json};

use super::OpenstackDriver;
use crate::fake_nova::{self, SERVER, USER, stopped};

/// A step: its name and result, and the host that did it. Without a result it has not ended.
type EventRow = (&'static str, Option<&'static str>, &'static str);
/// An action: its name, its request, its steps.
type Done = (&'static str, &'static str, &'static [EventRow]);

const STOPPED: Done = ("stop", "req-stop", &[("compute_stop_instance", Some("Success"), "hv1")]);
const CHOSEN: EventRow = ("conductor_rebuild_server", Some("Success"), "");
const ARRIVED: EventRow = ("compute_rebuild_instance", Some("Success"), "hv2");
const BROKEN: EventRow = ("compute_rebuild_instance", Some("Error"), "hv2");

const LANDED: EventRow = ("compute_post_live_migration_at_destination", Some("Success"), "hv2");
const GOOD: Done = ("evacuate", "req-good", &[CHOSEN, ARRIVED]);
const BAD: Done = ("evacuate", "req-bad", &[CHOSEN, BROKEN]);
const NOWHERE: Done = ("evacuate", "req-none", &[("conductor_rebuild_server", Some("Error"), "")]);
const CREATE: Done =
    ("create", "req-create", &[("compute__do_build_and_run_instance", Some("Success"), "hv1")]);

fn shown(done: &Done) -> Value {
    let (action, request, steps) = done;
    let events: Vec<Value> = steps
        .iter()
        .map(|(event, result, host)| {
            let end = result.map(|_| "2026-11-22T13:00:09.000000");
            json!({ "event": event, "result": result, "finish_time": end, "hostId": host })
        })
        .collect();
    json!({ "action": action, "request_id": request, "user_id": USER, "start_time": "2026-11-22T14:00:00.000000", "events": events })
}

/// The driver of a server that looks like this, after these actions, newest first, of which Nova tells so many at once; and what it
/// asks of them.
async fn driver(
    role: &str,
    server: Option<Value>,
    done: Vec<Done>,
    max_limit: usize,
) -> (OpenstackDriver, Arc<Mutex<Vec<String>>>) {
    let actions = format!("/servers/{SERVER}/os-instance-actions");
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = asked.clone();
    let nova = move |path: &str| {
        let Some(rest) = path.strip_prefix(&actions) else {
            return server.clone().map(|server| json!({ "server": server }));
        };
        heard.lock().push(rest.to_owned());
        let of = |request: &str| done.iter().position(|(_, one, _)| *one == request);
        let Some(query) = rest.strip_prefix('?') else {
            let one = &done[of(rest.trim_start_matches('/'))?];
            return Some(json!({ "instanceAction": shown(one) }));
        };
        let from = query.split_once("marker=").map_or(0, |(_, last)| of(last).expect("an action") + 1);
        let list = &done[from..done.len().min(from + max_limit)];
        let links = vec![json!({ "rel": "next" }); usize::from(list.len() == max_limit)];
        Some(json!({ "instanceActions": list.iter().map(shown).collect::<Vec<_>>(), "links": links }))
    };
    let driver = fake_nova::driver(role, nova).await;
    driver.ours().before = Some(BTreeSet::new());
    (driver, asked)
}

async fn reading(driver: &OpenstackDriver) -> (Power, String) {
    let reading = driver.reading(&fake_nova::reading()).await.expect("a reading");
    (reading.power, reading.said)
}

async fn read(role: &str, server: Option<Value>, done: Vec<Done>) -> (Power, String) {
    reading(&driver(role, server, done, 1_000).await.0).await
}

/// The source of a failed evacuation has a copy of the guest, shut off: to stop it there says nothing of the guest.
#[tokio::test]
async fn a_stop_proves_nothing_after_an_evacuation_that_is_not_known_to_have_ended_well() {
    let hidden = || {
        let mut server = stopped();
        server.as_object_mut().expect("a table").remove("host_status");
        server
    };
    // No later move ends that guest: to an administrator it is a copy, of which a tenant is not told.
    let (off, unknown, copy) = ([Power::Off; 2], [Power::Unknown; 2], [Power::Off, Power::Unknown]);
    let cases: [(&[Done], [Power; 2]); 14] = [
        (&[], off),
        (&[GOOD], off),
        (&[BAD], unknown),
        (&[("evacuate", "req-1", &[CHOSEN])], unknown),
        (&[("evacuate", "req-1", &[CHOSEN, ("compute_rebuild_instance", None, "hv2")])], unknown),
        (&[("evacuate", "req-1", &[])], unknown),
        // No host was found: no guest was started.
        (&[NOWHERE], off),
        (&[NOWHERE, BAD], unknown),
        (&[GOOD, BAD], copy),
        (&[BAD, GOOD], unknown),
        (&[("live-migration", "req-2", &[LANDED]), BAD], copy),
        // A move that moved nothing says nothing of where the guest is, and leaves none elsewhere.
        (&[("live-migration", "req-2", &[("compute_live_migration", Some("Success"), "hv2")]), BAD], unknown),
        (&[("resize", "req-2", &[("compute_prep_resize", Some("Error"), "hv2")]), BAD], unknown),
        (&[("resize", "req-2", &[("compute_prep_resize", Some("Error"), "hv2")])], off),
    ];
    for (before, powers) in cases {
        for ((role, server), power) in [("admin", stopped()), ("member", hidden())].into_iter().zip(powers) {
            let done = std::iter::once(STOPPED).chain(before.iter().copied()).collect();
            let (is, said) = read(role, Some(server), done).await;
            assert_eq!(is, power, "{role}, {before:?}: {said}");
            assert!(
                is == Power::Off || said.contains("evacuate req-") && said.contains("look there"),
                "{said}"
            );
        }
    }
}

/// A delete that comes in the middle of an evacuation is done by the source. The destination notes Success of what it drops then, and
/// its guest runs.
#[tokio::test]
async fn a_server_that_its_destination_did_not_delete_is_not_off_after_an_evacuation() {
    const BY_SOURCE: Done = ("delete", "req-8", &[("compute_terminate_instance", Some("Success"), "hv1")]);
    const BY_DESTINATION: Done =
        ("delete", "req-9", &[("compute_terminate_instance", Some("Success"), "hv2")]);
    const UNSAID: Done = ("delete", "req-8", &[("compute_terminate_instance", Some("Success"), "")]);
    for (delete, evacuate, power) in [
        (BY_DESTINATION, GOOD, Power::Off),
        (BY_SOURCE, GOOD, Power::Unknown),
        (UNSAID, GOOD, Power::Unknown),
        (BY_DESTINATION, BAD, Power::Unknown),
    ] {
        let (is, said) = read("admin", None, vec![delete, evacuate]).await;
        assert_eq!(is, power, "{said}");
    }
    // Nova had the server at the destination, from where it went on and was deleted elsewhere.
    const GONE_ON: Done = (
        "migrate",
        "req-7",
        &[
            ("compute_prep_resize", Some("Success"), "hv1"),
            ("compute_resize_instance", Some("Success"), "hv2"),
        ],
    );
    // It never left the source, and came to the destination without the guest that runs there.
    const COME: Done = (
        "resize",
        "req-7",
        &[
            ("compute_prep_resize", Some("Success"), "hv2"),
            ("compute_resize_instance", Some("Success"), "hv1"),
        ],
    );
    for (moved, evacuate, power) in
        [(GONE_ON, GOOD, Power::Off), (COME, GOOD, Power::Unknown), (GONE_ON, BAD, Power::Unknown)]
    {
        let (is, said) = read("admin", None, vec![BY_SOURCE, moved, evacuate]).await;
        assert_eq!(is, power, "{said}");
    }
    // One that was restored after that.
    let (is, said) = read("admin", Some(stopped()), vec![STOPPED, BY_SOURCE, GOOD]).await;
    assert_eq!(is, Power::Unknown, "{said}");
    let (is, said) = read("admin", Some(stopped()), vec![STOPPED, BY_DESTINATION, GOOD]).await;
    assert_eq!(is, Power::Off, "{said}");
}

#[tokio::test]
async fn an_evacuation_older_than_the_newest_actions_is_found() {
    const LOCK: Done = ("lock", "req-lock", &[]);
    for (max_limit, oldest, power) in
        [(2, BAD, Power::Unknown), (2, GOOD, Power::Off), (4, BAD, Power::Unknown)]
    {
        let started: &[EventRow] = &[("compute_start_instance", Some("Success"), "hv1")];
        let done = vec![STOPPED, LOCK, NOWHERE, ("start", "req-start", started), oldest, CREATE];
        let (driver, _) = driver("admin", Some(stopped()), done, max_limit).await;
        let (is, said) = reading(&driver).await;
        assert_eq!(is, power, "{max_limit}, {oldest:?}: {said}");
    }
}

#[tokio::test]
async fn what_is_known_of_its_moves_for_good_is_not_asked_for_again() {
    const LOCK: Done = ("lock", "req-lock", &[]);
    const START: Done = ("start", "req-start", &[]);
    const NEVER: Done = ("live-migration", "req-live", &[("compute_live_migration", Some("Error"), "hv1")]);
    let long =
        vec![STOPPED, LOCK, START, ("lock", "req-2", &[] as &[EventRow]), ("start", "req-3", &[]), CREATE];
    // With the steps of our stop.
    for (done, max_limit, first) in [(vec![STOPPED, NOWHERE, NEVER, CREATE], 5, 5), (long, 4, 3)] {
        let (driver, asked) = driver("admin", Some(stopped()), done, max_limit).await;
        // Later readings ask for the newest actions alone.
        for (turn, expected) in [(0, first), (1, 1), (2, 1)] {
            asked.lock().clear();
            assert_eq!(reading(&driver).await.0, Power::Off);
            let asked = asked.lock().clone();
            assert_eq!(asked.len(), expected, "{turn}: {asked:?}");
        }
    }
}

/// No move was among them. What an evacuation comes after is of use then.
#[tokio::test]
async fn actions_that_were_searched_before_an_evacuation_are_asked_for_once_more_after_it() {
    const LOCK: Done = ("lock", "req-lock", &[]);
    for (steps, power) in [
        (&[] as &[EventRow], Power::Unknown),
        (&[("compute_start_instance", Some("Success"), "hv1")], Power::Off),
    ] {
        let done = vec![STOPPED, GOOD, LOCK, ("start", "req-start", steps), CREATE];
        let (driver, _) = driver("admin", Some(stopped()), done, 2).await;
        driver.ours().moves.searched = Some("req-lock".to_owned());
        for _ in 0..2 {
            let (is, said) = reading(&driver).await;
            assert_eq!(is, power, "{said}");
        }
    }
}

/// Nova shows the server, and has no list of what was done to it: that is no list without an evacuation, nor one without a stop.
#[tokio::test]
async fn a_server_whose_actions_are_not_there_is_not_off() {
    let nova = |path: &str| match path.contains("os-instance-actions") {
        true => None,
        false => Some(json!({ "server": stopped() })),
    };
    let driver = fake_nova::driver("admin", nova).await;
    let (power, said) = reading(&driver).await;
    assert_eq!(power, Power::Unknown, "{said}");
    assert!(said.contains("Nova has no actions of it"), "{said}");
    let found = driver.inspect(&fake_nova::reading()).await.expect("an answer");
    assert_eq!(found.get(crate::hold::STOPS), None);
}
