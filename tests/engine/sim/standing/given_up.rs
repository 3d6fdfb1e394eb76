//! What is seen of a node while it is stored that a person is asked.

use std::time::Duration;

use picket_driver_sim::{Act, Fault, Verb};

use super::{lab, lawful};
use crate::lab::{NODE, s};
use crate::points::Happens;

/// S11: an On that is seen while the store takes that a person is asked is a breach, also where no device says anything after it.
#[tokio::test(start_paused = true)]
async fn an_on_that_is_seen_while_it_is_stored_that_a_person_is_asked_is_not_forgotten() {
    let (mut lab, cluster) = lab(972, s(10_000)).await;
    let store = lab.store.clone();
    let hangs = Happens(Box::new(move || store.linger(s(5))));
    *lab.points.happens_at.lock() = Some(("saving give_up", hangs));
    lab.open().await;
    let is_reached = || lab.points.seen.lock().iter().any(|point| point == "saving give_up");
    while !is_reached() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    tokio::time::sleep(s(3)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.phase(), "fenced", "that it waits is not stored yet");
    tokio::time::sleep(s(20)).await;
    assert_eq!(lab.record().breaches, 1, "{}", lab.phase());
    lawful(&cluster);
}
