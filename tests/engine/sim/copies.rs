//! Copies of a node that an evacuation left on other machines (S1, S22).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::ids::NodeId;
use picket_core::outcome::Outcome;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::Until;
use tokio::time::Instant;

use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::{NodeSetup, PARENT, Setup, named};

const HOSTS: [&str; 3] = ["hv1", "hv2", "hv3"];
const RELEASED: Outcome = Outcome::Fenced { released: true };
/// As long as a slow BMC takes for an answer.
const SLOW: Duration = Duration::from_millis(1_500);

fn id(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

/// `n1` runs on `hv1`. Its own device tells that copies of it may be on `copies`, and so does whoever tells its parent where it runs.
async fn lab(seed: u64, levels: &[&[&str]], copies: &[&str]) -> Lab {
    made(seed, setup(levels, copies)).await
}

fn setup(levels: &[&[&str]], copies: &[&str]) -> Setup {
    let mut setup = Setup::new(NODE, levels);
    let copies = copies.iter().map(|&host| host.to_owned()).collect();
    (setup.tells_copies, setup.copies) = (true, Arc::new(Mutex::new(copies)));
    for name in HOSTS {
        let levels = named(&[&[&bmc(name)]]);
        setup.nodes.push(NodeSetup { name: name.to_owned(), levels, own_host: false });
    }
    setup
}

async fn made(seed: u64, setup: Setup) -> Lab {
    Lab::set_up(seed, setup, |world| {
        for name in HOSTS {
            world.add_machine(name).add_host(name, &bmc(name));
        }
        world.add_machine(NODE).add_host(NODE, "server").set_parent(NODE, HOSTS[0]);
    })
    .await
}

fn bmc(host: &str) -> String {
    format!("{host}-bmc")
}

async fn fence(lab: &mut Lab, host: &str) {
    let call = lab.call();
    lab.engine.fence(&id(host), call).await.expect("let in");
    lab.reach_of(&id(host), "released", s(900)).await;
}

fn told(lab: &Lab) -> String {
    format!("{:?}", lab.record().fence.expect("open"))
}

/// Its host says Off of it. The host from which it was evacuated was only cut off, and writes to the same volumes.
#[tokio::test(start_paused = true)]
async fn a_server_s_own_off_proves_nothing_while_its_copy_may_run_elsewhere() {
    for (seed, copy) in [(720, "hv2"), (721, "no node"), (722, NODE)] {
        let mut lab = lab(seed, &[&["server"]], &[copy]).await;
        let outcome = lab.fence().await;
        assert!(matches!(outcome, Outcome::NeedsOperator(_)), "{copy}: {outcome:?}");
        let told = told(&lab);
        assert!(told.contains(&format!("a copy of it may run on {copy}")), "{told}");
        assert!(told.contains("fence that node") && told.contains("vouch for this node"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_proven_once_the_machine_of_the_copy_is_off() {
    let mut lab = lab(723, &[&["server"]], &["hv2"]).await;
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    fence(&mut lab, "hv2").await;
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("released", s(900)).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_proven_where_the_machine_of_the_copy_is_gone_for_good() {
    let mut lab = lab(724, &[&["server"]], &["hv2"]).await;
    fence(&mut lab, "hv2").await;
    lab.engine.retire(&id("hv2"), person()).await.expect("retired");
    assert_eq!(lab.fence().await, RELEASED);
}

/// Its record says that it is off. Its BMC has said nothing since, and somebody switched it on.
#[tokio::test(start_paused = true)]
async fn a_record_alone_shows_no_copy_off_to_a_server_s_own_device() {
    let mut lab = lab(725, &[&["server"]], &["hv2"]).await;
    fence(&mut lab, "hv2").await;
    lab.fault("hv2-bmc", Fault::Silent);
    lab.happen(Act::Foreign { machine: "hv2".to_owned(), verb: Verb::On });
    let outcome = lab.fence().await;
    assert!(matches!(outcome, Outcome::NeedsOperator(_)), "{outcome:?}");
}

/// A machine of a copy that has a minute for its answer keeps nobody from hearing that the server is on.
#[tokio::test(start_paused = true)]
async fn a_breach_waits_for_no_machine_of_a_copy() {
    let mut setup = setup(&[&["server"]], &["hv2"]);
    setup.adjust = Arc::new(|spec| spec.call = s(60));
    let mut lab = made(728, setup).await;
    fence(&mut lab, "hv2").await;
    assert_eq!(lab.fence().await, RELEASED);
    tokio::time::sleep(s(60)).await;
    lab.fault("hv2-bmc", Fault::Silent);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    let began = Instant::now();
    while lab.record().breaches == 0 {
        tokio::time::sleep(s(1)).await;
    }
    assert!(began.elapsed() <= s(12), "{:?}", began.elapsed());
}

/// A release asks for a reading that is not older than two seconds, also where that takes an answer of three slow BMCs.
#[tokio::test(start_paused = true)]
async fn the_machines_of_several_copies_are_looked_at_beside_each_other() {
    let levels: [&[&[&str]]; 2] = [&[&["server"]], &[&["server"], &[PARENT]]];
    for (seed, levels) in [726, 727].into_iter().zip(levels) {
        let by_parent = levels.len() > 1;
        let mut lab = lab(seed, levels, &["hv2", "hv3"]).await;
        for host in &HOSTS[1..] {
            fence(&mut lab, host).await;
        }
        if by_parent {
            lab.fault("server", Fault::OffRefused);
        }
        for host in HOSTS {
            lab.fault(&bmc(host), Fault::Slow(SLOW));
        }
        let fence = lab.open().await;
        assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED, "by parent: {by_parent}");
    }
}
