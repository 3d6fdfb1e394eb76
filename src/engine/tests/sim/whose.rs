//! S13 after the proof: another machine stands where a fenced one was.

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;

use crate::lab::{Lab, NODE, lab, s};

const FENCED: Outcome = Outcome::Fenced { released: true };

async fn exchanged(seed: u64) -> Lab {
    let mut lab = lab(seed).await;
    assert_eq!(lab.fence().await, FENCED);
    lab.world.lock().expect("whole").exchange(NODE, "another");
    lab
}

fn asks_a_person(lab: &Lab) {
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::IdentityMismatch));
    assert_eq!((lab.received("bmc").ons, lab.is_on()), (0, false));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_put_back_or_switched_on_that_is_another_machine() {
    let lab = exchanged(981).await;
    let held = lab.world.lock().expect("whole").hold(NODE);
    lab.unfence().await.expect("let in");
    lab.reach("needs_operator", s(60)).await;
    asks_a_person(&lab);
    assert_eq!(lab.world.lock().expect("whole").hold(NODE), held);
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_asks_whom_it_watches() {
    let mut lab = exchanged(982).await;
    lab.crash().await;
    lab.reach("needs_operator", s(60)).await;
    asks_a_person(&lab);
}
