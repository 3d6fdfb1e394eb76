//! Several gateways: those that do not lead tell what is stored, and go on where the leader cannot or must not.

mod recovering;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use picket_core::budget::pause::PauseScope;
use picket_core::election::{Election, ElectionError, Known, Lease, Member, Won};
use picket_core::ids::Term;
use picket_core::outcome::{Outcome, Reason};
use picket_core::restore::HOLD;
use picket_core::store::{Store, StoreError};
use picket_core::time::WallTime;
use picket_driver_sim::{Fault, Verb};
use picket_engine::{ChangeError, Engine, EngineError, NoHooks, Part, Until};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, NODE, lab, node, person, s};

/// Who stands, and who leads; what the others see at once.
#[derive(Debug, Default)]
struct Booth {
    leader: Option<(String, Term, Arc<Lease>)>,
    members: BTreeMap<String, Member>,
}

type Shared = Arc<watch::Sender<Booth>>;

#[derive(Debug)]
struct Candidate {
    name: String,
    booth: Shared,
    store: Arc<dyn Store>,
}

impl Candidate {
    fn member(&self) -> Member {
        Member { gateway: self.name.clone(), ..Member::default() }
    }
}

#[async_trait]
impl Election for Candidate {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        let mut seen = self.booth.subscribe();
        drop(seen.wait_for(|booth| booth.leader.is_none()).await);
        let term =
            self.store.take_term().await.map_err(|error| ElectionError::Unavailable(error.to_string()))?;
        let lease = Lease::endless();
        let leader = (self.name.clone(), term, lease.clone());
        self.booth.send_modify(|booth| booth.leader = Some(leader));
        Ok(Won { term, incarnation: self.store.incarnation(), lease })
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        self.booth.send_modify(|booth| {
            if let Some((_, _, lease)) = booth.leader.take_if(|leader| leader.0 == self.name) {
                lease.end();
            }
        });
        Ok(())
    }

    async fn leave(&self) -> Result<(), ElectionError> {
        self.booth.send_modify(|booth| drop(booth.members.remove(&self.name)));
        self.resign().await
    }

    fn me(&self) -> Member {
        self.member()
    }

    fn known(&self) -> Known {
        match &self.booth.borrow().leader {
            Some((name, term, _)) => {
                Known::Leader(Member { gateway: name.clone(), ..Member::default() }, *term)
            }
            None => Known::Nobody(WallTime::from_millis(1)),
        }
    }

    fn others(&self) -> Vec<Member> {
        self.booth.borrow().members.values().filter(|member| member.gateway != self.name).cloned().collect()
    }

    fn set_aside(&self, why: Option<String>) {
        let member = Member { aside: why, ..self.member() };
        self.booth.send_modify(|booth| drop(booth.members.insert(self.name.clone(), member)));
    }
}

/// The election of `a`, which still sees `b`: that one has just stopped.
pub fn after_the_end_of_b(store: Arc<dyn Store>) -> Arc<dyn Election> {
    let b = Member { gateway: "b".to_owned(), ..Member::default() };
    let seen = Booth { leader: None, members: BTreeMap::from([(b.gateway.clone(), b)]) };
    Arc::new(Candidate { name: "a".to_owned(), booth: Arc::new(watch::Sender::new(seen)), store })
}

/// The lab's own gateway is `a`, and leads; `b` stands by.
struct Two {
    a: Lab,
    b: Engine,
    booth: Shared,
    stop: CancellationToken,
}

async fn two(seed: u64, own_host: bool) -> Two {
    two_of(lab(seed).await, own_host).await
}

async fn two_of(mut a: Lab, own_host: bool) -> Two {
    a.stop().await;
    let booth: Shared = Arc::new(watch::Sender::default());
    let store: Arc<dyn Store> = a.store.clone();
    let candidate = |name: &str| -> Arc<dyn Election> {
        Arc::new(Candidate { name: name.to_owned(), booth: booth.clone(), store: store.clone() })
    };
    let mut beside = a.setup.clone();
    a.setup.election = Some(candidate("a"));
    a.setup.nodes[0].own_host = own_host;
    a.start().await;
    beside.election = Some(candidate("b"));
    let b = beside.engine(&a.world, &a.clock, &store, Arc::new(NoHooks));
    let (running, stop) = (b.clone(), CancellationToken::new());
    let until = stop.clone();
    tokio::spawn(async move { running.run(until).await.expect("a whole store") });
    b.until_serving().await;
    tokio::time::sleep(s(2)).await;
    Two { a, b, booth, stop }
}

impl Two {
    /// Who leads does so no more, as if its lease were over.
    fn depose(&self) {
        let (_, _, lease) = self.booth.borrow().leader.clone().expect("somebody leads");
        lease.end();
        self.booth.send_modify(|booth| booth.leader = None);
    }

    /// Who leads, once somebody does.
    async fn leader(&self) -> String {
        let mut seen = self.booth.subscribe();
        let booth = seen.wait_for(|booth| booth.leader.is_some()).await.expect("it stays");
        booth.leader.as_ref().map(|leader| leader.0.clone()).unwrap_or_default()
    }

    /// Whom `a` sees beside itself.
    fn others(&self) -> Vec<String> {
        self.a.engine.others().into_iter().map(|other| other.gateway).collect()
    }

    fn phase_at_b(&self) -> &'static str {
        self.b.node(&node()).expect("known").stored.record.phase.label()
    }
}

#[tokio::test(start_paused = true)]
async fn who_follows_tells_what_is_stored_and_does_nothing() {
    let mut two = two(8_001, false).await;
    two.a.fence().await;
    let paused = two.a.engine.pause(PauseScope::Everything, person(), s(600)).await;
    paused.expect("paused");
    tokio::time::sleep(s(2)).await;
    assert_eq!(two.phase_at_b(), "released");
    assert_eq!(two.b.pauses().len(), 1);
    match two.b.part() {
        Ok(Part::Follows { leader, age, .. }) => assert!(leader.gateway == "a" && age <= s(2), "{age:?}"),
        other => panic!("{other:?}"),
    }
    assert!(!two.b.node(&node()).expect("known").live.proven, "a proof is the leader's alone");
    let call = two.a.call();
    assert!(matches!(two.b.fence(&node(), call).await, Err(EngineError::NoLeader(_))));
    let refused = two.b.pause(PauseScope::Everything, person(), s(60)).await;
    assert!(matches!(refused, Err(EngineError::NoLeader(_))), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_not_told_as_the_present() {
    let two = two(8_002, false).await;
    two.a.store.away(s(60));
    tokio::time::sleep(s(30)).await;
    let absent = two.b.part().expect_err("the store is away");
    assert!(absent.age.is_some_and(|age| age > s(20)) && absent.since.is_some(), "{absent:?}");
}

/// The key of a leadership that is over stays until its lease ends.
#[tokio::test(start_paused = true)]
async fn nobody_is_sent_to_a_gateway_by_itself() {
    let two = two(8_009, false).await;
    assert!(matches!(two.b.part(), Ok(Part::Follows { .. })), "{:?}", two.b.part());
    let former = ("b".to_owned(), Term(9), Lease::endless());
    two.booth.send_modify(|booth| booth.leader = Some(former));
    let absent = two.b.part().expect_err("it does not lead, and follows nobody");
    assert!(absent.age.is_some(), "{absent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_ends_hands_over_at_once_and_the_fence_goes_on() {
    let mut two = two(8_003, false).await;
    two.a.fault("bmc", Fault::OffTakes { least: s(20), most: s(20) });
    let id = two.a.open().await;
    two.a.reach("fencing", s(5)).await;
    tokio::time::sleep(s(2)).await;
    let from = tokio::time::Instant::now();
    two.a.stop().await;
    assert_eq!(two.leader().await, "b");
    assert!(from.elapsed() < std::time::Duration::from_millis(500), "{:?}", from.elapsed());
    tokio::time::sleep(s(90)).await;
    let view = two.b.node(&node()).expect("known");
    let (_, outcome) = two.b.outcome(&view, id, Until::Released, None).await.expect("the store");
    assert_eq!(outcome, Some(Outcome::Fenced { released: true }));
}

/// S17.
#[tokio::test(start_paused = true)]
async fn a_leader_leaves_its_own_host_to_another_one_and_does_not_stand_meanwhile() {
    let mut two = two(8_004, true).await;
    let call = two.a.call();
    let id = two.a.engine.fence(&node(), call).await.expect("stored, and left to another one").fence();
    tokio::time::sleep(s(30)).await;
    assert_eq!(two.leader().await, "b");
    let view = two.b.node(&node()).expect("known");
    let (_, outcome) = two.b.outcome(&view, id, Until::Released, None).await.expect("the store");
    assert_eq!(outcome, Some(Outcome::Fenced { released: true }));
    let aside = two.a.engine.aside();
    assert!(aside.as_ref().is_some_and(|why| why.contains("stands on n1")), "{aside:?}");
    // Else another one would leave its own host to this one, and nobody would stand.
    assert_eq!(two.booth.borrow().members["a"].aside, aside, "the others are told");
    assert!(!two.a.is_on());
}

/// A gateway that has stopped succeeds nobody, and is seen at once to be gone.
#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_stopped_leaves_the_election() {
    let two = two(8_012, false).await;
    assert_eq!(two.others(), ["b"]);
    two.depose();
    tokio::time::sleep(s(3)).await;
    assert_eq!((two.leader().await.as_str(), two.others()), ("b", vec!["b".to_owned()]));
    two.stop.cancel();
    tokio::time::sleep(s(1)).await;
    assert!(two.others().is_empty(), "{:?}", two.others());
}

/// S17: alone it is BLOCKED, and nothing is stored.
#[tokio::test(start_paused = true)]
async fn alone_a_gateway_blocks_the_fence_of_its_own_host() {
    let mut two = two(8_005, true).await;
    two.stop.cancel();
    two.booth.send_modify(|booth| drop(booth.members.remove("b")));
    let call = two.a.call();
    let refused = two.a.engine.fence(&node(), call).await;
    assert!(matches!(refused, Err(EngineError::Blocked { reason: Reason::OwnHost, .. })), "{refused:?}");
    assert!(two.a.is_on());
}

/// S17: who reaches no device of a fence lets another one try, once.
#[tokio::test(start_paused = true)]
async fn a_leader_that_reaches_nothing_hands_over_once() {
    let mut two = two(8_006, false).await;
    two.a.fault("bmc", Fault::Silent);
    let id = two.a.open().await;
    // Its silent share passes; the other one asks on, and a person at the deadline.
    tokio::time::sleep(s(25)).await;
    assert_eq!(two.leader().await, "b");
    assert_eq!(two.phase_at_b(), "fencing");
    tokio::time::sleep(s(60)).await;
    assert_eq!((two.leader().await.as_str(), two.phase_at_b()), ("b", "fencing"));
    tokio::time::sleep(s(600)).await;
    let tried = two.b.node(&node()).expect("known").stored.record.fence.clone().expect("open").handed_over;
    assert_eq!(tried.into_iter().collect::<Vec<_>>(), ["a", "b"], "whoever tried last says so");
    assert_eq!(two.a.engine.aside(), None, "who let it try stands for election again");
    assert_eq!((two.leader().await.as_str(), two.phase_at_b()), ("b", "needs_operator"));
    let view = two.b.node(&node()).expect("known");
    let (_, outcome) = two.b.outcome(&view, id, Until::Released, None).await.expect("the store");
    assert_eq!(outcome, Some(Outcome::NeedsOperator(Reason::LevelsSpent)));
}

#[tokio::test(start_paused = true)]
async fn other_settings_are_taken_by_who_follows_unless_they_take_away_what_is_not_at_rest() {
    let mut two = two(8_007, false).await;
    let change = |two: &Two, keep: bool| {
        let mut setup = two.a.setup.clone();
        if !keep {
            setup.nodes[0].name = "n2".to_owned();
        }
        setup.change(&two.a.world)
    };
    two.a.world.lock().add_machine("n2");
    two.a.fence().await;
    tokio::time::sleep(s(2)).await;
    let refused = two.b.change(change(&two, false)).await;
    assert!(matches!(&refused, Err(ChangeError::Busy(why)) if why[0].contains(NODE)), "{refused:?}");
    two.a.unfence().await.expect("brought back");
    two.a.reach("normal", s(60)).await;
    tokio::time::sleep(s(2)).await;
    let changed = two.b.change(change(&two, false)).await.expect("n1 is at rest");
    assert_eq!((changed.removed, changed.added.len()), (vec![node()], 1));
    assert!(two.b.node(&node()).is_err());
}

/// S5, S8: an on that was sent through drivers that other settings replaced may land as long as its session lives there, and
/// the new drivers know nothing of that session. The next leadership here waits it out like anybody else's.
#[tokio::test(start_paused = true)]
async fn what_was_sent_through_drivers_that_were_replaced_is_waited_out() {
    let mut two = two(8_008, false).await;
    two.a.fence().await;
    two.a.fault("bmc", Fault::Late { verb: Verb::On, after: s(40), answered: true, times: 1 });
    two.a.unfence().await.expect("brought back");
    while two.a.received("bmc").ons == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    two.depose();
    tokio::time::sleep(s(3)).await;
    assert_eq!(two.leader().await, "b");
    two.a.setup.releases[0].0 = "let_go".to_owned();
    let changed = two.a.reload().await.expect("taken: what is open goes on by its record");
    assert_eq!(changed.later, [node()]);
    two.stop.cancel();
    two.a.engine.until_leading().await;
    let id = two.a.open().await;
    tokio::time::sleep(s(30)).await;
    assert_eq!(two.a.phase(), "fencing", "no Off counts while that on may land");
    assert_eq!(two.a.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(60)).await;
    assert!(!two.a.is_on());
}

/// A request whose answer was cut off by the end of a leadership may have been done: it is not told as one that did nothing,
/// which clients send to the next leader by themselves.
#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_not_told_as_asked_of_the_wrong_gateway() {
    let mut two = two(8_009, false).await;
    two.a.store.linger(s(5));
    let (engine, call) = (two.a.engine.clone(), two.a.call());
    let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
    tokio::time::sleep(s(1)).await;
    two.depose();
    let answer = asked.await.expect("no panic");
    assert!(matches!(answer, Err(EngineError::Unanswered)), "{answer:?}");
    two.a.store.linger(s(0));
    tokio::time::sleep(s(2)).await;
    assert_ne!(two.phase_at_b(), "normal", "it was stored");
}

/// A permit that is over says so at once, whenever the tasks of its leadership end; and who leads no more is not named as who does.
#[tokio::test(start_paused = true)]
async fn a_leadership_that_is_over_tells_nothing_as_its_own() {
    let two = two(8_010, false).await;
    assert!(matches!(two.a.engine.part(), Ok(Part::Leads(_))));
    let (_, _, lease) = two.booth.borrow().leader.clone().expect("a leads");
    lease.end();
    assert!(two.a.engine.leading().is_err());
    let absent = two.a.engine.part().expect_err("it leads no more, and read nothing as a follower");
    assert!(absent.why.contains("lease"), "{absent:?}");
    assert!(matches!(two.a.engine.known(), Known::Nobody(_)), "{:?}", two.a.engine.known());
}

/// S19, S20: what was proven is said to whoever asks again only by who leads still. Another one may have brought it back.
#[tokio::test(start_paused = true)]
async fn a_deposed_leader_does_not_say_again_that_a_node_is_fenced() {
    let mut two = two(8_011, false).await;
    let call = two.a.call();
    let id = two.a.engine.fence(&node(), call.clone()).await.expect("let in").fence();
    two.a.outcome(id, Until::Released).await;
    two.a.store.take_term().await.expect("another leadership, of which this one does not know yet");
    let again = two.a.engine.fence(&node(), call).await;
    assert!(matches!(again, Err(EngineError::Store(StoreError::Deposed(_)))), "{again:?}");
}

/// S21: what a gateway that was cut off saw of a node is of a life that is void, where the restored store has nothing of that node.
#[tokio::test(start_paused = true)]
async fn a_gateway_that_lives_through_a_restore_goes_on_with_the_new_life_alone() {
    let mut two = two(8_021, false).await;
    let file = two.a.backup().await;
    assert_eq!(two.a.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(2)).await;
    assert_eq!(two.phase_at_b(), "released");
    two.a.kill().await;
    two.a.store.replace(two.a.reborn(&file));
    tokio::time::sleep(s(10)).await;
    assert_eq!(two.phase_at_b(), "normal", "who follows shows what is stored");
    two.depose();
    assert_eq!(two.leader().await, "b");
    let led_in = two.b.leading().expect("leads");
    // It is off, and nobody knows why.
    two.a.engine = two.b.clone();
    two.a.reach("fenced", s(300)).await;
    let record = two.a.record();
    assert!(record.is_groundless() && record.holds.contains_key(HOLD), "{record:?}");
    let id = two.a.open().await;
    assert_eq!(two.a.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(two.b.leading(), Ok(led_in), "one leadership bears it");
    two.stop.cancel();
}
