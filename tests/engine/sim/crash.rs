//! `kill -9` at every point of a fence and of an unfence: the same end, never a release without a ground.

use std::time::Duration;

use picket_driver_sim::Fault;
use picket_engine::Until;

use crate::lab::{Lab, lab, s};

/// Fence, release, unfence, over however many deaths.
pub async fn round(lab: &mut Lab) {
    let call = lab.call();
    loop {
        let engine = lab.engine.clone();
        let asked = call.clone();
        let work = async move { engine.fence(&crate::lab::node(), asked).await };
        tokio::select! {
            biased;
            dead = lab.died(s(3_600)) => { assert!(dead); lab.crash().await; }
            admission = work => {
                let id = admission.expect("let in").fence();
                tokio::select! {
                    biased;
                    dead = lab.died(s(7_200)) => { assert!(dead); lab.crash().await; }
                    outcome = lab.outcome(id, Until::Released) => {
                        assert_eq!(outcome.label(), "fenced");
                        break;
                    }
                }
            }
        }
    }
    assert!(!lab.is_on());
    let mut asked = false;
    loop {
        let engine = lab.engine.clone();
        let work = async {
            if !asked
                || engine.node(&crate::lab::node()).expect("known").stored.record.phase.label() == "released"
            {
                let _ = engine.unfence(&crate::lab::node(), "db".to_owned(), crate::lab::person()).await;
            }
            let mut view = engine.follow(&crate::lab::node()).expect("known");
            view.wait_for(|view| view.stored.record.phase.label() == "normal").await.map(|_| ())
        };
        tokio::select! {
            biased;
            dead = lab.died(s(7_200)) => { assert!(dead, "stuck in {}", lab.phase()); asked = true; lab.crash().await; }
            back = work => { back.expect("the engine lives"); break; }
        }
    }
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_point_it_comes_to_the_same_end() {
    let mut whole = lab(1).await;
    round(&mut whole).await;
    let points = whole.points.seen.lock().clone();
    assert!(points.len() >= 20, "{points:?}");
    for (index, point) in points.iter().enumerate() {
        let mut lab = lab(1).await;
        *lab.points.die_at.lock() = Some(index + 1);
        round(&mut lab).await;
        assert!(lab.falls() <= 2, "killed at {point}: {} falls", lab.falls());
        let record = lab.view().stored.record.clone();
        assert!(record.ledger.open().is_empty(), "killed at {point}: {:?}", record.ledger);
    }
}

#[tokio::test(start_paused = true)]
async fn an_on_that_a_dead_gateway_sent_is_waited_out_before_another_is_sent() {
    let mut lab = lab(1).await;
    lab.fence().await;
    lab.fault("bmc", Fault::OnDropped { times: 1 });
    lab.unfence().await.expect("it is let in");
    while lab.received("bmc").ons == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let open = lab.record().ledger.open().iter().filter_map(|open| open.life).max().expect("an on is open");
    lab.crash().await;
    tokio::time::sleep(open - s(1)).await;
    assert_eq!((lab.phase(), lab.received("bmc").ons), ("unfencing", 1));
    lab.mend("bmc");
    lab.reach("normal", s(60)).await;
    assert!(lab.is_on() && lab.received("bmc").ons == 2);
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_a_dead_gateway_sent_is_waited_out_before_an_on_also_where_it_was_answered() {
    let mut whole = lab(1).await;
    whole.fence().await;
    let seen = whole.points.seen.lock().clone();
    let answered = seen.iter().position(|point| point == "saved hold_ended").expect("it holds");
    let mut lab = lab(1).await;
    *lab.points.die_at.lock() = Some(answered + 1);
    lab.open().await;
    assert!(lab.died(s(60)).await);
    // What was sent twice, since its answer was late, may still be under way in the dead gateway's session.
    let fence = lab.record().fence.expect("a fence is open");
    let life =
        fence.topology.devices().filter_map(|spec| spec.max_in_flight.off).max().expect("it is bounded");
    let began = tokio::time::Instant::now();
    lab.crash().await;
    lab.reach("released", s(120)).await;
    assert!(began.elapsed() < life / 2, "the rest is fast: {:?}", began.elapsed());
    lab.unfence().await.expect("it is let in");
    while lab.received("bmc").ons == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(began.elapsed() >= life, "on after {:?} of {life:?}", began.elapsed());
    lab.reach("normal", s(60)).await;
}
