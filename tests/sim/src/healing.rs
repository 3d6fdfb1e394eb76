//! The end of a history: all misfortune is over, every fence ends, and an operator brings every node back with the exits that
//! there are.

use std::time::Duration;

use picket_core::device::Grade;
use picket_core::ids::NodeId;
use picket_core::outcome::Reason;
use picket_core::record::{NodeRecord, Phase};
use picket_driver_sim::{Act, Random, Verb};
use picket_engine::{EngineError, FenceCall};

use crate::cast::Cast;
use crate::law::waits_for_somebody;
use crate::people::{HOLDERS, People, fence_call, person, release};
use crate::scene::s;
use crate::shape::VOLUMES;
use crate::trace;

/// Longer than any deadline of the rules, one after the other.
const LONGEST: Duration = Duration::from_secs(1_500);
/// So often an operator does something to one node.
const ROUNDS: usize = 60;

/// Everything works again.
pub(crate) async fn heal(cast: &mut Cast, people: &mut People) {
    cast.scene.say(|| "all is well again".to_owned());
    cast.far.be_kind();
    cast.quorum.back();
    for gateway in &mut cast.gateways {
        gateway.sky.clear();
        if let Some(life) = &gateway.life {
            life.process.calm();
            life.process.go_on();
        }
        // What is bounded by the wall clock comes too late from a gateway whose clock nobody sets right (S8).
        if !gateway.clock.behind().is_zero() {
            gateway.clock.set_right();
            cast.scene.note(trace::What::Jumped { gateway: gateway.id });
        }
    }
    cast.bury().await;
    cast.start_all();
    let now = cast.scene.now();
    cast.scene.world().heal(now);
    for node in &cast.scene.shape.nodes {
        let ours = cast.record(&node.id).fence.clone().map(|fence| fence.switched_off).unwrap_or_default();
        for outlet in node.outlets().filter(|outlet| ours.iter().all(|off| off.as_str() != outlet.as_str())) {
            cast.scene.happen(Act::ForeignOutlet { outlet: outlet.clone(), verb: Verb::On });
        }
    }
    // Whoever still waits is answered.
    let answered = async { while people.calls.join_next().await.is_some() {} };
    if tokio::time::timeout(s(600), answered).await.is_err() {
        cast.scene.broken("every_fence_ends: callers hang".to_owned());
    }
}

/// Waits until a node waits for somebody; false if it does not.
async fn settles(cast: &mut Cast, node: &NodeId) -> bool {
    let until = cast.scene.now() + LONGEST;
    let mut pause = Duration::from_millis(250);
    while cast.scene.now() < until {
        // One stands on a machine, and goes and comes with it.
        cast.bury().await;
        cast.start_all();
        if waits_for_somebody(&cast.record(node)) {
            return true;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(s(4));
    }
    false
}

/// Brings a node back.
pub(crate) async fn bring_back(cast: &mut Cast, node: &NodeId, random: &mut Random) {
    for round in 0..ROUNDS {
        if !settles(cast, node).await {
            cast.scene.broken(format!("every_fence_ends: it hangs: {:#?}", cast.record(node)));
            return;
        }
        if !cast.scene.violations().is_empty() {
            return;
        }
        if cast.scene.shape.node(node).parent.is_some() {
            see_to_parents(cast, random, round).await;
        } else {
            see_to_children(cast, random, round).await;
        }
        let record = cast.record(node);
        cast.scene.say(|| format!("the operator, round {round}, finds {node} {}", record.phase.label()));
        match record.phase {
            Phase::Normal if record.is_at_rest() => return,
            Phase::Normal => tokio::time::sleep(s(5)).await,
            _ => see_to(cast, node, random, round).await,
        }
        tokio::time::sleep(s(1)).await;
    }
    cast.scene.broken(format!("every_fence_ends: it does not come back: {:#?}", cast.record(node)));
}

/// Where a node may run: it cannot come back while that machine is kept off, or was switched off by somebody else.
async fn see_to_parents(cast: &Cast, random: &mut Random, round: usize) {
    let nodes = cast.scene.shape.nodes.iter().filter(|node| node.parent.is_none());
    let parents: Vec<NodeId> = nodes.map(|node| node.id.clone()).collect();
    for parent in parents {
        see_to(cast, &parent, random, round).await;
        if cast.record(&parent).phase == Phase::Normal && !cast.scene.is_on(parent.as_str()) {
            cast.scene.happen(Act::Foreign { machine: parent.to_string(), verb: Verb::On });
        }
    }
}

/// Who holds a parent has to come back first; one whose request waited in the queue may have been fenced since it did.
async fn see_to_children(cast: &mut Cast, random: &mut Random, round: usize) {
    let nodes = cast.scene.shape.nodes.iter().filter(|node| node.parent.is_some());
    let children: Vec<NodeId> = nodes.map(|node| node.id.clone()).collect();
    for child in children {
        if !cast.record(&child).is_at_rest() && settles(cast, &child).await {
            see_to(cast, &child, random, round).await;
        }
    }
}

/// What an operator does with a node that waits for one.
async fn see_to(cast: &Cast, node: &NodeId, random: &mut Random, round: usize) {
    let record = cast.record(node);
    match record.phase.clone() {
        Phase::Released => {
            for holder in record.holds.keys() {
                act(cast, node, What::Unfence(holder.clone())).await;
            }
        }
        Phase::PowerOnFailed => act(cast, node, What::Retry).await,
        Phase::NeedsOperator(reason) => {
            // Some come at once, some when everything old is over.
            let most = if random.percent(70) { 30 } else { 300 };
            tokio::time::sleep(s(random.below(most))).await;
            exit(cast, node, &record, reason, round).await;
        }
        Phase::Normal | Phase::Fencing | Phase::Fenced | Phase::Unfencing | Phase::Retired => {}
    }
}

/// What an operator can do.
#[derive(Clone, Debug)]
enum What {
    Unfence(String),
    Retry,
    Abandon(&'static str),
    Attest,
    FenceForLess,
}

async fn act(cast: &Cast, node: &NodeId, what: What) {
    let lines = cast.lines();
    let told = lines.ask(|engine| {
        let (node, what) = (node.clone(), what.clone());
        async move {
            let ada = person("ada");
            match what {
                What::Unfence(holder) => engine.unfence(&node, holder, ada).await.map(drop),
                What::Retry => engine.retry(&node, ada).await.map(drop),
                What::Abandon(name) => engine.abandon(&node, release(name), ada).await.map(drop),
                What::Attest => engine.attest(&node, ada).await.map(drop),
                What::FenceForLess => engine.fence(&node, for_less()).await.map(drop),
            }
        }
    });
    let told: Option<Option<Result<(), EngineError>>> = tokio::time::timeout(s(300), told).await.ok();
    cast.scene.say(|| format!("{what:?} {node}: {told:?}"));
}

/// A fence by a person, who is content with the least grade that devices can prove.
fn for_less() -> FenceCall {
    let mut call = fence_call(HOLDERS[0]);
    // Of the roles of these histories none is an operator's: it asks at a gateway's own machine.
    (call.min_grade, call.holder.by_person, call.holder.asker) = (Some(Grade::Claimed), true, None);
    call
}

/// What an operator does who reads the reason.
async fn exit(cast: &Cast, node: &NodeId, record: &NodeRecord, reason: Reason, round: usize) {
    let is_on = cast.scene.is_on(node.as_str());
    if reason == Reason::StandDownUnseen && !is_on {
        cast.scene.happen(Act::Foreign { machine: node.to_string(), verb: Verb::On });
    }
    if reason == Reason::UnboundedEffect {
        // Whoever gives one up saw that nothing of it is at work any more.
        while !cast.far.is_quiet() {
            tokio::time::sleep(s(1)).await;
        }
        let volumes = cast.scene.shape.volumes.then_some(&VOLUMES);
        for name in volumes.into_iter().chain(cast.scene.shape.releases) {
            act(cast, node, What::Abandon(name)).await;
        }
    }
    if reason == Reason::GradeTooLow {
        return act(cast, node, What::FenceForLess).await;
    }
    // A device that restarted while the node was off can be believed by nobody but a person who goes there.
    let vouch = reason == Reason::BmcRestarted || round % 3 == 2;
    if vouch && !is_on {
        let generation = record.generation;
        act(cast, node, What::Attest).await;
        let now = cast.record(node);
        if now.generation == generation && !matches!(now.phase, Phase::NeedsOperator(_)) {
            return;
        }
    }
    // Its parent may be out of reach for those who asked (S22): somebody joins who may fence both.
    if round % 2 == 1 && cast.scene.shape.node(node).parent.is_some() {
        act(cast, node, What::FenceForLess).await;
    }
    act(cast, node, What::Retry).await;
}

/// What is back can be fenced, found on, fenced again and brought back, whoever leads by then.
pub(crate) async fn once_more(cast: &mut Cast, node: &NodeId, random: &mut Random) {
    cast.scene.say(|| format!("once more {node}"));
    let shape = cast.scene.shape.clone();
    for outlet in shape.node(node).outlets() {
        cast.scene.happen(Act::ForeignOutlet { outlet: outlet.clone(), verb: Verb::On });
    }
    // Old sessions end, what is late has come, and what was back has cooled down.
    tokio::time::sleep(s(210)).await;
    // A request that waited in the queue may have had its turn meanwhile.
    bring_back(cast, node, random).await;
    cast.scene.happen(Act::Foreign { machine: node.to_string(), verb: Verb::On });
    let found = cast.scene.world().hold(node.as_str());
    if random.percent(50) {
        let leader = cast.scene.past(|past| past.leader.map(|(gateway, _)| gateway));
        if let Some(leader) = leader {
            cast.gateways[leader].kill().await;
            cast.gateways[leader].start();
        }
    }
    let opened = async {
        loop {
            cast.bury().await;
            cast.start_all();
            let told = cast
                .lines()
                .ask(|engine| {
                    let node = node.clone();
                    async move { engine.fence(&node, fence_call(HOLDERS[0])).await }
                })
                .await;
            if matches!(told, Some(Ok(_))) {
                return;
            }
            tokio::time::sleep(s(1)).await;
        }
    };
    if tokio::time::timeout(s(60), opened).await.is_err() {
        return cast.scene.broken(format!("every_fence_ends: {node} cannot be fenced once more"));
    }
    let mut ended = settles(cast, node).await;
    // A gateway that leads anew may find that a session of its own was lost: somebody goes there and looks.
    if ended && cast.record(node).phase == Phase::NeedsOperator(Reason::BmcRestarted) {
        see_to(cast, node, random, 0).await;
        ended = settles(cast, node).await;
    }
    if !ended || cast.record(node).phase != Phase::Released {
        return cast.scene.broken(format!("every_fence_ends: once more: {:#?}", cast.record(node)));
    }
    // Whoever switches it on by hand gives it its supplies first, if it was those that were switched off.
    for outlet in shape.node(node).outlets() {
        cast.scene.happen(Act::ForeignOutlet { outlet: outlet.clone(), verb: Verb::On });
    }
    cast.scene.happen(Act::Foreign { machine: node.to_string(), verb: Verb::On });
    let fenced_again = async {
        while cast.record(node).phase == Phase::Released {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    if tokio::time::timeout(s(60), fenced_again).await.is_err() {
        return cast.scene.broken(format!("every_fence_ends: {node} is on and nobody sees it"));
    }
    bring_back(cast, node, random).await;
    if !cast.scene.is_on(node.as_str()) {
        cast.scene.broken(format!("every_fence_ends: {node} is back and not on"));
    }
    let hold = cast.scene.world().hold(node.as_str());
    let same = (hold.restore, hold.button_locked) == (found.restore, found.button_locked);
    // Two devices with one hold between them find each other's.
    if !same && shape.node(node).hosts().count() == 1 {
        cast.scene
            .broken(format!("every_fence_ends: {node} is back, and its hold was {found:?} and is {hold:?}"));
    }
}
