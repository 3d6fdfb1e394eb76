//! A PDU that several nodes share: it answers one question at a time, and slowly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::ids::NodeId;
use picket_core::order::{HoldOrder, OffOrder, OnOrder, UnholdOrder};
use picket_core::outcome::{Outcome, Reason};
use picket_core::power::Reading;
use picket_core::record::Phase;
use picket_driver::{
    Accepted, Call, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, PowerDriver, Traits,
};
use picket_driver_sim::{Fault, SimDriver, Verb};
use picket_engine::{Unit, UnitLimits, Until};

use crate::lab::{Lab, s};
use crate::setup::{NodeSetup, Setup, named};

/// How many ask it now, and how many did at the most.
#[derive(Debug, Default)]
pub struct Door {
    inside: AtomicUsize,
    most: AtomicUsize,
    calls: AtomicUsize,
}

/// An outlet of it: whoever comes while another one is inside is turned away.
#[derive(Debug)]
pub struct Outlet {
    pub inner: SimDriver,
    pub door: Arc<Door>,
}

struct Inside<'a>(&'a Door);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Outlet {
    fn enter(&self) -> Result<Inside<'_>, DriverError> {
        let before = self.door.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(&self.door);
        self.door.most.fetch_max(before + 1, Ordering::SeqCst);
        self.door.calls.fetch_add(1, Ordering::SeqCst);
        let turned_away = || DriverError::new(ErrorKind::Throttled, Effect::DidNotHappen, "one at a time");
        if before == 0 { Ok(inside) } else { Err(turned_away()) }
    }
}

#[async_trait]
impl PowerDriver for Outlet {
    fn traits(&self) -> &Traits {
        self.inner.traits()
    }

    async fn read_power(&self, call: &Call) -> Result<Reading, DriverError> {
        let _inside = self.enter()?;
        self.inner.read_power(call).await
    }

    async fn power_off(&self, order: &OffOrder, call: &Call) -> Result<Accepted, DriverError> {
        let _inside = self.enter()?;
        self.inner.power_off(order, call).await
    }

    async fn power_on(&self, order: OnOrder, call: &Call) -> Result<Accepted, DriverError> {
        let _inside = self.enter()?;
        self.inner.power_on(order, call).await
    }

    async fn identify(&self, call: &Call) -> Result<Identified, DriverError> {
        let _inside = self.enter()?;
        self.inner.identify(call).await
    }

    async fn inspect_hold(&self, call: &Call) -> Result<HoldFound, DriverError> {
        let _inside = self.enter()?;
        self.inner.inspect_hold(call).await
    }

    fn engaged(&self, now: &HoldFound) -> Vec<String> {
        self.inner.engaged(now)
    }

    fn outlives(&self, engaged: &str) -> bool {
        self.inner.outlives(engaged)
    }

    async fn engage_hold(&self, order: &HoldOrder, call: &Call) -> Result<HoldReport, DriverError> {
        let _inside = self.enter()?;
        self.inner.engage_hold(order, call).await
    }

    async fn disengage_hold(&self, order: &UnholdOrder, call: &Call) -> Result<HoldReport, DriverError> {
        let _inside = self.enter()?;
        self.inner.disengage_hold(order, call).await
    }

    async fn quiesce(&self, call: &Call) -> Result<(), DriverError> {
        self.inner.quiesce(call).await
    }
}

fn id(number: usize) -> NodeId {
    NodeId::new(&format!("n{number}")).expect("a good name")
}

/// So many nodes, each with two outlets of one PDU whose answers take so long.
async fn rack(seed: u64, nodes: usize, latency: Duration) -> (Lab, Arc<Door>) {
    let built = built(seed, nodes, latency, |_| {}).await;
    tokio::time::sleep(s(120)).await;
    built
}

async fn built(
    seed: u64,
    nodes: usize,
    latency: Duration,
    change: impl FnOnce(&mut Setup),
) -> (Lab, Arc<Door>) {
    let mut setup = Setup::new("n1", &[]);
    setup.nodes = (1..=nodes)
        .map(|number| NodeSetup {
            name: format!("n{number}"),
            levels: named(&[&[&format!("n{number}-a"), &format!("n{number}-b")]]),
            own_host: false,
        })
        .collect();
    let door = Arc::<Door>::default();
    let limits = UnitLimits { at_once: 1, pause: Duration::ZERO };
    let unit = Arc::new(Unit::new("pdu1", limits));
    unit.change(limits, (1..=nodes).map(id).collect());
    // How slow it is, a check has seen, as one does after each start.
    setup.check_at_start = true;
    setup.pdu = Some((door.clone(), unit, latency));
    change(&mut setup);
    let lab = Lab::set_up(seed, setup, |world| {
        for number in 1..=nodes {
            let name = format!("n{number}");
            world.add_machine(&name);
            for outlet in ["a", "b"] {
                let outlet = format!("{name}-{outlet}");
                world.add_supply(&name, &outlet).set_sessionless(&outlet);
            }
            world.add_host(&name, &format!("{name}-bmc"));
        }
        world.add_machine("alone").add_host("alone", "alone-bmc");
    })
    .await;
    (lab, door)
}

#[tokio::test(start_paused = true)]
async fn a_rack_on_one_slow_pdu_is_fenced_one_call_at_a_time_and_all_of_it_is_proven() {
    for (seed, nodes, latency) in
        [(801, 12, Duration::from_millis(120)), (802, 6, Duration::from_millis(700))]
    {
        let (mut lab, door) = rack(seed, nodes, latency).await;
        let mut fences = Vec::new();
        for number in 1..=nodes {
            let mut call = lab.call();
            call.deadline = Some(s(900));
            fences.push((id(number), lab.engine.fence(&id(number), call).await.expect("let in").fence()));
        }
        for (node, fence) in fences {
            lab.reach_of(&node, "released", s(900)).await;
            let view = lab.engine.node(&node).expect("a node");
            let outcome = lab.engine.outcome(&view, fence, Until::Released, None).await.expect("a store").1;
            assert_eq!(outcome, Some(Outcome::Fenced { released: true }), "{node}");
        }
        assert_eq!(door.most.load(Ordering::SeqCst), 1, "{:?}", door.calls);
        let plan = {
            let call = lab.call();
            lab.engine.unfence(&id(1), "db".to_owned(), crate::lab::person()).await.expect("unfenced");
            lab.reach_of(&id(1), "normal", s(900)).await;
            lab.engine.plan(&id(1), call).await.expect("a plan")
        };
        let off = plan.steps.iter().find(|step| step.target == "n1-a").expect("its step");
        assert!(off.text.contains("at pdu1 it takes turns with n"), "{off:?}");
        assert_eq!(door.most.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_turn_says_so_and_whose_it_is() {
    let (mut lab, _door) = rack(803, 2, Duration::from_millis(700)).await;
    for number in 1..=2 {
        let call = lab.call();
        lab.engine.fence(&id(number), call).await.expect("let in");
    }
    tokio::time::sleep(s(3)).await;
    let wait = lab.engine.node(&id(2)).expect("a node").live.wait.clone().expect("it waits");
    assert_eq!(
        (wait.what.as_str(), wait.whose.as_str()),
        ("its turn at what it shares", "pdu1 (busy with n1)")
    );
    lab.reach_of(&id(2), "released", s(900)).await;
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_is_too_slow_for_a_release_is_told_before_any_fence() {
    let (lab, _door) = rack(804, 2, Duration::from_millis(1_200)).await;
    let device = picket_core::ids::DeviceId::new("n1-a").expect("a good name");
    let view = lab.engine.node(&id(1)).expect("a node");
    let obstacles = &view.live.devices[&device].checked.as_ref().expect("checked").obstacles;
    let told = |words: &str| obstacles.iter().any(|one| one.contains(words));
    assert!(told("at pdu1 are read in 2.4 s") && told("at_once"), "{obstacles:?}");
}

fn silent(lab: &Lab, nodes: usize) {
    for outlet in (1..=nodes).flat_map(|number| ["a", "b"].map(|outlet| format!("n{number}-{outlet}"))) {
        lab.fault(&outlet, Fault::Silent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_pdu_keeps_no_node_from_its_next_level() {
    let nodes = 40;
    let (mut lab, _door) = built(805, nodes, Duration::from_millis(20), |setup| {
        for node in &mut setup.nodes {
            node.levels.push(vec![format!("{}-bmc", node.name)]);
        }
        setup.check_at_start = false;
    })
    .await;
    silent(&lab, nodes);
    for number in 1..=nodes {
        let call = lab.call();
        lab.engine.fence(&id(number), call).await.expect("let in");
    }
    for number in 1..=nodes {
        lab.reach_of(&id(number), "released", s(900)).await;
    }
}

/// A healthy one is waited for, as long as the levels that come after it have their time.
#[tokio::test(start_paused = true)]
async fn a_busy_pdu_is_waited_for_where_no_other_level_would_do() {
    let nodes = 14;
    let (mut lab, _door) = built(809, nodes, Duration::from_millis(300), |setup| {
        for node in &mut setup.nodes {
            node.levels.push(vec![format!("{}-bmc", node.name)]);
        }
    })
    .await;
    tokio::time::sleep(s(120)).await;
    (1..=nodes).for_each(|number| lab.fault(&format!("n{number}-bmc"), Fault::Silent));
    for number in 1..=nodes {
        let mut call = lab.call();
        call.deadline = Some(s(3_600));
        lab.engine.fence(&id(number), call).await.expect("let in");
    }
    for number in 1..=nodes {
        lab.reach_of(&id(number), "released", s(3_600)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_checks_of_a_dead_pdu_s_nodes_keep_no_other_node_s_waiting() {
    let nodes = 300;
    let (lab, _door) = built(806, nodes, Duration::from_millis(20), |setup| {
        let levels = named(&[&["alone-bmc"]]);
        setup.nodes.push(NodeSetup { name: "alone".to_owned(), levels, own_host: false });
        setup.check_at_start = false;
    })
    .await;
    silent(&lab, nodes);
    tokio::time::sleep(lab.setup.rules.check_every * 3).await;
    let checked = |lab: &Lab| {
        let view = lab.engine.node(&NodeId::new("alone").expect("a good name")).expect("a node");
        view.live.devices.values().next().and_then(|live| live.checked.as_ref()).map(|checked| checked.at)
    };
    let first = checked(&lab).expect("it was checked");
    tokio::time::sleep(lab.setup.rules.check_every * 2).await;
    assert!(checked(&lab) > Some(first), "again within two intervals");
}

#[tokio::test(start_paused = true)]
async fn another_limit_holds_at_once_for_whoever_waits_and_whoever_has_a_turn_keeps_it() {
    let (mut lab, door) = rack(807, 4, Duration::from_millis(700)).await;
    let (_, unit, _) = lab.setup.pdu.clone().expect("there is one");
    for number in 1..=4 {
        let call = lab.call();
        lab.engine.fence(&id(number), call).await.expect("let in");
    }
    tokio::time::sleep(s(2)).await;
    assert_eq!(door.most.load(Ordering::SeqCst), 1);
    unit.change(UnitLimits { at_once: 2, pause: Duration::ZERO }, (1..=4).map(id).collect());
    tokio::time::sleep(s(2)).await;
    assert_eq!(door.most.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_close_that_did_not_get_its_turn_is_no_word_for_the_end_of_an_on() {
    let (mut lab, _door) = built(808, 2, Duration::from_millis(20), |setup| {
        setup.adjust = Arc::new(|spec| {
            spec.max_in_flight.on = None;
            if spec.id.as_str().starts_with("n2") {
                spec.call = s(400);
            }
        });
    })
    .await;
    let call = lab.call();
    lab.engine.fence(&id(1), call).await.expect("let in");
    lab.reach_of(&id(1), "released", s(300)).await;
    // It takes the on, answers nothing, and does it much later.
    for outlet in ["n1-a", "n1-b"] {
        lab.fault(outlet, Fault::Late { verb: Verb::On, after: s(10_000), answered: false, times: 100 });
    }
    lab.engine.unfence(&id(1), "db".to_owned(), crate::lab::person()).await.expect("let in");
    tokio::time::sleep(s(8)).await;
    // Somebody else's device keeps the unit busy.
    ["n2-a", "n2-b"].into_iter().for_each(|outlet| lab.fault(outlet, Fault::Slow(s(390))));
    let engine = lab.engine.clone();
    let busy = tokio::spawn(async move { engine.check(&id(2)).await.map(drop) });
    tokio::time::sleep(s(20)).await;
    let call = lab.call();
    lab.engine.fence(&id(1), call).await.expect("let in");
    tokio::time::sleep(s(1_200)).await;
    let record = lab.engine.node(&id(1)).expect("a node").stored.record.clone();
    assert_eq!(record.phase, Phase::NeedsOperator(Reason::UnboundedEffect), "{:?}", record.ledger);
    busy.abort();
}

/// One node keeps its turn for longer than the other node's deadline: the other fence ends, with nothing sent (S16).
#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_come_before_the_deadline_needs_an_operator_and_says_so() {
    let (mut lab, _door) = rack(811, 2, Duration::from_millis(700)).await;
    ["n1-a", "n1-b"].into_iter().for_each(|outlet| lab.fault(outlet, Fault::OffIgnored));
    let call = lab.call();
    lab.engine.fence(&id(1), call).await.expect("let in");
    tokio::time::sleep(s(3)).await;
    let mut call = lab.call();
    call.deadline = Some(s(60));
    lab.engine.fence(&id(2), call).await.expect("let in");
    tokio::time::sleep(s(58)).await;
    let of = |lab: &Lab, number| lab.engine.node(&id(number)).expect("a node").stored.record.clone();
    assert_eq!(of(&lab, 2).phase, Phase::Fencing, "all of its time is left to it");
    lab.reach_of(&id(2), "needs_operator", s(5)).await;
    assert_eq!(of(&lab, 1).phase, Phase::Fencing, "whose turn it is goes on");
    let record = of(&lab, 2);
    assert_eq!(record.phase, Phase::NeedsOperator(Reason::Deadline));
    let fence = record.fence.expect("open");
    let why = "its turn at what its devices share with others did not come before its deadline";
    assert!(fence.moments.iter().any(|moment| moment.what.contains(why)), "{:?}", fence.moments);
    assert_eq!((fence.off_sent, lab.received("n2-a").offs, lab.received("n2-b").offs), (false, 0, 0));
    // The shared unit comes free, and a person has the fence tried again.
    ["n1-a", "n1-b"].into_iter().for_each(|outlet| lab.mend(outlet));
    lab.reach_of(&id(1), "released", s(300)).await;
    lab.engine.retry(&id(2), crate::lab::person()).await.expect("taken");
    lab.reach_of(&id(2), "released", s(300)).await;
}

/// Who waits for a word that may not come keeps nobody from the turn (K9).
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_source_that_is_away_has_no_turn_meanwhile() {
    let source = crate::liveness::gone();
    let (mut lab, _door) =
        built(810, 2, Duration::from_millis(700), |setup| setup.liveness = Some(source)).await;
    tokio::time::sleep(s(120)).await;
    let call = lab.call();
    lab.engine.fence(&id(1), call).await.expect("let in");
    tokio::time::sleep(s(10)).await;
    let mut call = lab.call();
    call.holder.by_person = true;
    lab.engine.fence(&id(2), call).await.expect("let in");
    lab.reach_of(&id(2), "released", s(120)).await;
    let record = lab.engine.node(&id(1)).expect("a node").stored.record.clone();
    assert_eq!(record.phase, Phase::Fencing);
    assert!(record.fence.is_some_and(|fence| !fence.off_sent), "nothing was sent");
}
