//! Callers and persons, at random; and the operator who brings everything back once all misfortune is over.

use std::sync::Arc;

use picket_core::device::Grade;
use picket_core::event::{BoundKey, Holder, Person};
use picket_core::ids::ReleaseId;
use picket_core::outcome::Reason;
use picket_core::record::{Phase, Then};
use picket_core::time::Clock;
use picket_driver_sim::{Act, Random, Verb};
use picket_engine::{Engine, FenceCall};
use tokio::task::JoinSet;

use super::law::Law;
use crate::lab::{Lab, NODE, node, s};

const HOLDERS: [&str; 3] = ["db", "k8s", "ops"];

fn release(name: &str) -> ReleaseId {
    ReleaseId::new(name).expect("a good name")
}

fn somebody(random: &mut Random) -> Person {
    Person { name: HOLDERS[random.below(3) as usize].to_owned(), reason: "chaos".to_owned() }
}

fn call(random: &mut Random) -> FenceCall {
    let holder = HOLDERS[random.below(3) as usize].to_owned();
    let key = random.below(40);
    let digest = if random.percent(90) { "d" } else { "other" };
    FenceCall {
        holder: Holder {
            by: holder.clone(),
            name: holder,
            reason: "chaos".to_owned(),
            then: if random.percent(30) { Then::PowerOn } else { Then::StayOff },
        },
        key: random.percent(70).then(|| BoundKey { key: format!("c{key}"), digest: digest.to_owned() }),
        min_grade: random.percent(15).then_some(Grade::Observed),
        deadline: random.percent(30).then(|| s(30 + random.below(300))),
        not_after: None,
        expected_generation: None,
        set_aside: None,
        turn: None,
    }
}

/// Somebody asks for something, and may have left before it is answered.
pub fn ask(random: &mut Random, engine: &Engine, law: &Arc<Law>, calls: &mut JoinSet<()>) {
    let (engine, law) = (engine.clone(), law.clone());
    let (who, patience) = (somebody(random), s(1 + random.below(200)));
    let what = random.below(20);
    let call = call(random);
    let holder = HOLDERS[random.below(3) as usize].to_owned();
    let which = if random.percent(70) { "detach" } else { "notify" };
    // Whoever vouches went there and looked.
    let is_off = law.on_since(law.clock.boot()).is_none();
    calls.spawn(async move {
        let asked = async {
            match what {
                0..7 => format!("fence: {:?}", engine.fence(&node(), call).await.map(|a| a.fence())),
                7..12 => {
                    format!(
                        "unfence {holder}: {:?}",
                        engine.unfence(&node(), holder.clone(), who).await.err()
                    )
                }
                12..15 => format!("retry: {:?}", engine.retry(&node(), who).await.err()),
                15 => format!("abandon: {:?}", engine.abandon(&node(), release(which), who).await.err()),
                16 => format!("stand down: {:?}", engine.stand_down(&node(), who).await.err()),
                17 if is_off => format!("attest: {:?}", engine.attest(&node(), who).await.err()),
                _ => format!("check: {:?}", engine.check(&node()).await.err()),
            }
        };
        match tokio::time::timeout(patience, asked).await {
            Ok(words) => law.say(words),
            Err(_) => law.say(format!("a caller left ({what})")),
        }
    });
}

/// Everything is whole again: an operator brings the node back, with the exits that there are.
pub async fn bring_back(lab: &Lab, law: &Arc<Law>, random: &mut Random) {
    let ada = || Person { name: "ada".to_owned(), reason: "all is well again".to_owned() };
    for round in 0..60 {
        law.hold();
        let settled = lab.settled(s(1_500)).await;
        let record = lab.record();
        law.say(format!("the operator, round {round}, finds {}", record.phase.label()));
        assert!(settled, "{}", law.story(&format!("it hangs: {record:#?} {:#?}", lab.view().live)));
        match record.phase.clone() {
            Phase::Normal => {
                assert!(record.ledger.open().is_empty(), "{}", law.story(&format!("{record:#?}")));
                return;
            }
            Phase::Released => {
                for holder in record.holds.keys() {
                    let dropped = lab.engine.unfence(&node(), holder.clone(), ada()).await;
                    law.say(format!("unfence {holder}: {:?}", dropped.err()));
                }
            }
            Phase::PowerOnFailed => {
                law.say(format!("retry: {:?}", lab.engine.retry(&node(), ada()).await.err()));
            }
            Phase::NeedsOperator(reason) => {
                tokio::time::sleep(s(random.below(400))).await;
                exit(lab, law, reason, round).await;
            }
            Phase::Fencing | Phase::Fenced | Phase::Unfencing | Phase::Retired => {}
        }
        tokio::time::sleep(s(1)).await;
    }
    panic!("{}", law.story(&format!("it does not come back: {:#?} {:#?}", lab.record(), lab.view().live)));
}

/// What an operator does who reads the reason.
async fn exit(lab: &Lab, law: &Arc<Law>, reason: Reason, round: usize) {
    let ada = || Person { name: "ada".to_owned(), reason: "all is well again".to_owned() };
    let is_on = law.on_since(lab.clock.boot()).is_some();
    if reason == Reason::StandDownUnseen && !is_on {
        law.say("switched on by hand");
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    }
    if reason == Reason::UnboundedEffect {
        for name in law.shape.releases {
            let gone = lab.engine.abandon(&node(), release(name), ada()).await;
            law.say(format!("abandon {name}: {:?}", gone.err()));
        }
    }
    // A device that restarted while the node was off can be believed by nobody but a person who goes there.
    let vouch = reason == Reason::BmcRestarted || round % 3 == 2;
    if vouch && !is_on {
        let attested = lab.engine.attest(&node(), ada()).await;
        law.say(format!("attest: {:?}", attested.as_ref().err()));
        if attested.is_ok() {
            return;
        }
    }
    law.say(format!("retry: {:?}", lab.engine.retry(&node(), ada()).await.err()));
}
