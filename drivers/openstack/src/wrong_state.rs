//! A server that Nova does not stop in its state (409): what of that waiting changes, and what it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use picket_driver::{DriverError, Effect, ErrorKind};
use serde_json::{Value, json};

use crate::fake_nova::{self, SERVER, refused_off, wrong_state};

const LONG: Duration = Duration::from_secs(30);

/// A server that runs, with what is under way at it.
fn server(task: Option<&str>) -> Value {
    json!({
        "id": SERVER, "tenant_id": "p1", "status": "ERROR", "OS-EXT-STS:task_state": task, "OS-EXT-STS:power_state": 1, "locked": false,
    })
}

/// Its off, each stop of which is refused, and how many were sent. What is under way follows from how many were.
async fn off(
    task: impl Fn(usize) -> Option<&'static str> + Send + 'static,
    within: Duration,
) -> (DriverError, usize) {
    let stops = Arc::new(AtomicUsize::new(0));
    let counted = stops.clone();
    let nova = move |asked: &str| {
        if asked.contains("os-stop") {
            counted.fetch_add(1, Ordering::Relaxed);
            return Some(wrong_state("error"));
        }
        Some(match asked.contains("/os-instance-actions") {
            true => json!({ "instanceActions": [] }),
            false => json!({ "server": server(task(counted.load(Ordering::Relaxed))) }),
        })
    };
    let error = refused_off(&fake_nova::driver("member", nova).await, within).await;
    (error, stops.load(Ordering::Relaxed))
}

/// S16: its state is none in which Nova stops a server, and does not change by itself.
#[tokio::test]
async fn a_wrong_state_of_a_server_that_does_nothing_is_final_at_the_second_look() {
    let (error, stops) = off(|_| None, LONG).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    assert!(error.is_final && error.detail.contains("in vm_state error"), "{error}");
    assert_eq!(stops, 2, "what was under way may have ended between the first answer and the look after it");
}

/// What was under way when it was refused may be what kept the stop away.
#[tokio::test]
async fn a_wrong_state_of_a_server_that_was_busy_is_final_two_looks_later() {
    for busy_at in [1, 2] {
        let looks = AtomicUsize::new(0);
        let task = move |stops: usize| {
            // It is busy when it was refused for that time, and at the next look.
            let is_busy = stops == busy_at && looks.fetch_add(1, Ordering::Relaxed) < 2;
            is_busy.then_some("image_uploading")
        };
        let (error, stops) = off(task, LONG).await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
        assert!(error.is_final, "{error}");
        assert_eq!(stops, busy_at + 2, "two more while it did nothing");
    }
}

#[tokio::test]
async fn a_wrong_state_of_a_server_that_is_busy_is_never_final() {
    let (error, stops) = off(|_| Some("image_uploading"), Duration::from_secs(4)).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
    assert!(!error.is_final && error.detail.contains("image_uploading"), "{error}");
    assert_eq!(stops, 1, "Nova said so itself: it would say it again");
}
