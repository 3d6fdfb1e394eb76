//! What a release sets up and what lets volumes go for as long as it stands, as a taint of Kubernetes does (K3): it stands only while the
//! node is proven off, and nothing is switched on while it does, nor soon after.

mod around;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Identity;
use picket_core::ground::ReleasePermit;
use picket_core::ids::{NodeId, ReleaseId};
use picket_core::ledger::EffectKind;
use picket_core::order::ReleaseOrder;
use picket_core::outcome::{Outcome, Reason};
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Act, Fault, SharedWorld, Verb};
use picket_release::{Left, Pace, Progress, ReleaseError, Releaser, Subject};
use tokio::time::Instant;

use crate::crash;
use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::Setup;

/// An attempt lands no later than that after it was sent.
const LIFE: Duration = Duration::from_secs(10);
const LINGERS: Duration = Duration::from_secs(30);

/// A cluster, in which a taint lets volumes go.
#[derive(Debug)]
struct Cluster {
    world: SharedWorld,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stands: bool,
    /// What it is to let go takes so long.
    takes: Duration,
    /// What was let go so far, and what is left.
    since: Option<BootTime>,
    placed: Vec<BootTime>,
    removed: Vec<BootTime>,
    /// Nobody answers.
    is_away: bool,
    /// The next attempt is not answered, and lands so much later.
    late: Option<Duration>,
    lands: Vec<BootTime>,
    /// To read what an attempt goes by takes so long.
    reads_for: Duration,
    /// What it goes by is not what it should be.
    refuses: Option<&'static str>,
    /// Another machine has taken the node's name there.
    replaced: bool,
    /// It booted there, although the node is off.
    booted: bool,
    /// When it was told that the node is being fenced; and so it says of the node still.
    announced: Vec<BootTime>,
    keeps_pods_away: bool,
    /// It never answers that.
    deaf: bool,
    /// It refuses to hear that.
    hard_of_hearing: bool,
    /// Somebody else set up the same.
    foreign: bool,
    /// Nobody answers before an on.
    mute: bool,
    asked_for_on: usize,
    /// A question how far it is takes so long.
    answers_after: Duration,
    wrong: Vec<String>,
}

impl Cluster {
    fn new(world: &SharedWorld, clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = Mutex::new(State { takes: s(1), ..State::default() });
        Arc::new(Self { world: world.clone(), clock, state })
    }

    fn is_on(&self) -> bool {
        self.world.lock().expect("whole").truth(NODE, self.clock.boot())
    }

    fn is_away(&self, is_away: bool) {
        self.state.lock().expect("whole").is_away = is_away;
    }

    /// What was under way has landed by now.
    fn land(&self, state: &mut State) {
        let now = self.clock.boot();
        let (landed, rest): (Vec<_>, Vec<_>) = state.lands.drain(..).partition(|at| *at <= now);
        state.lands = rest;
        if let Some(at) = landed.last() {
            (state.stands, state.since) = (true, Some(*at));
            state.placed.push(*at);
        }
    }

    fn seen<T>(&self, of: impl FnOnce(&State) -> T) -> T {
        let mut state = self.state.lock().expect("whole");
        self.land(&mut state);
        of(&state)
    }
}

#[async_trait]
impl Releaser for Cluster {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(LIFE)
    }

    fn lingers(&self) -> Option<Duration> {
        Some(LINGERS)
    }

    async fn withdraw(&self, _node: &NodeId, _until: Instant) -> Result<(), ReleaseError> {
        let now = self.clock.boot();
        let mut state = self.state.lock().expect("whole");
        self.land(&mut state);
        if state.is_away {
            return Err(ReleaseError::Unknown("nobody answers".to_owned()));
        }
        if std::mem::take(&mut state.stands) {
            state.removed.push(now);
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace {
            deadline: s(120),
            attempt: self.seen(|state| s(5).max(state.answers_after)),
            ..Pace::default()
        }
    }

    async fn announce(&self, subject: &Subject, _until: Instant) -> Result<Option<String>, ReleaseError> {
        if self.seen(|state| state.deaf) {
            std::future::pending::<()>().await;
        }
        let now = self.clock.boot();
        let mut state = self.state.lock().expect("whole");
        if state.hard_of_hearing {
            return Err(ReleaseError::DidNotHappen("not now".to_owned()));
        }
        state.announced.push(now);
        state.keeps_pods_away = true;
        assert_eq!(subject.node, node());
        let whom = if state.replaced { "another machine" } else { "the machine of then" };
        Ok(Some(whom.to_owned()))
    }

    async fn tidy(
        &self,
        _node: &NodeId,
        _left: Left,
        _until: Instant,
    ) -> Result<Option<String>, ReleaseError> {
        self.state.lock().expect("whole").keeps_pods_away = false;
        Ok(None)
    }

    async fn check(&self, _identities: &[Identity], _until: Instant) -> Vec<String> {
        if self.seen(|state| state.deaf) {
            std::future::pending::<()>().await;
        }
        self.seen(|state| state.refuses).into_iter().map(str::to_owned).collect()
    }

    async fn lets_on(&self, _subject: &Subject, _until: Instant) -> Result<Option<String>, ReleaseError> {
        let mut state = self.state.lock().expect("whole");
        state.asked_for_on += 1;
        match (state.foreign, state.mute) {
            (_, true) => Err(ReleaseError::Unknown("nobody answers".to_owned())),
            (true, _) => Err(ReleaseError::DidNotHappen("somebody else's stands".to_owned())),
            _ => Ok(None),
        }
    }

    async fn prepare(&self, subject: &Subject, _until: Instant) -> Result<Option<String>, ReleaseError> {
        let takes = self.seen(|state| state.reads_for);
        tokio::time::sleep(takes).await;
        let (refuses, replaced) = self.seen(|state| (state.refuses, state.replaced));
        let whom = if replaced { "another machine" } else { "the machine of then" };
        if subject.met.as_deref().is_some_and(|met| met != whom) {
            return Err(ReleaseError::Replaced(format!("replaced: it is {whom}")));
        }
        refuses.map_or(Ok(Some(whom.to_owned())), |why| Err(ReleaseError::DidNotHappen(why.to_owned())))
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        permit.may_send().map_err(ReleaseError::DidNotHappen)?;
        let now = self.clock.boot();
        let is_on = self.is_on();
        let mut state = self.state.lock().expect("whole");
        self.land(&mut state);
        if is_on {
            state.wrong.push(format!("set up at {now:?}, while it is on"));
        }
        if state.stands {
            state.wrong.push(format!("set up at {now:?}, and it stands from before"));
        }
        if let Some(later) = state.late.take() {
            state.lands.push(now + later);
            return Err(ReleaseError::Unknown("no answer".to_owned()));
        }
        if state.is_away {
            return Err(ReleaseError::DidNotHappen("nobody answers".to_owned()));
        }
        (state.stands, state.since) = (true, Some(now));
        state.placed.push(now);
        Ok(Progress::Accepted("it stands".to_owned()))
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        let takes = self.seen(|state| state.answers_after);
        tokio::time::sleep(takes).await;
        let now = self.clock.boot();
        let mut state = self.state.lock().expect("whole");
        self.land(&mut state);
        Ok(match state.since.filter(|_| state.stands) {
            _ if state.is_away => return Err(ReleaseError::Unknown("nobody answers".to_owned())),
            _ if state.booted => return Err(ReleaseError::Replaced("replaced: it booted".to_owned())),
            None => Progress::NotThere("it does not stand".to_owned()),
            Some(since) if now.since(since) >= state.takes => Progress::Complete("all is gone".to_owned()),
            Some(_) => Progress::Accepted("something is left".to_owned()),
        })
    }
}

/// A node with a taint; what it lets go takes so long.
async fn lab(seed: u64, takes: Duration) -> (Lab, Arc<Cluster>) {
    eprintln!("seed {seed}");
    tokio::time::advance(s(100)).await;
    let mut lab = Lab::dark(seed, Setup::new(NODE, &[&["bmc"]]), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    });
    let cluster = Cluster::new(&lab.world, lab.clock.clone());
    cluster.state.lock().expect("whole").takes = takes;
    lab.setup.releases = vec![("taint".to_owned(), cluster.clone())];
    lab.start().await;
    (lab, cluster)
}

fn taint() -> ReleaseId {
    ReleaseId::new("taint").expect("a good name")
}

fn lawful(cluster: &Cluster) {
    let wrong = cluster.seen(|state| state.wrong.clone());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn until(cluster: &Cluster, what: impl Fn(&State) -> bool) {
    let work = async {
        while !cluster.seen(&what) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(s(600), work).await.expect("it comes to that");
}

/// It stands until everything is let go, and not while anybody waits for the next fence; the on waits a while longer.
#[tokio::test(start_paused = true)]
async fn it_is_taken_away_before_the_release_is_complete_and_no_on_comes_soon_after() {
    let (mut lab, cluster) = lab(901, s(3)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let (placed, removed) = cluster.seen(|state| (state.placed.clone(), state.removed.clone()));
    assert_eq!((placed.len(), removed.len(), cluster.seen(|state| state.stands)), (1, 1, false));
    assert!(removed[0].since(placed[0]) < s(6), "{placed:?} {removed:?}");
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    let on = lab.world.lock().expect("whole").edges(NODE, lab.clock.boot()).last().expect("it is on").at;
    assert!(on.since(removed[0]) >= LINGERS, "on {:?} after it was gone", on.since(removed[0]));
    assert!(on.since(removed[0]) < LINGERS + s(20), "on {:?} after it was gone", on.since(removed[0]));
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn power_that_is_back_takes_it_away_within_two_seconds_of_the_reading() {
    let (mut lab, cluster) = lab(902, s(12)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(7)).await;
    let at = lab.clock.boot();
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    until(&cluster, |state| !state.stands).await;
    let after = lab.clock.boot().since(at);
    assert!(after < s(4), "power is read every two seconds: {after:?}");
    assert!(lab.record().breaches > 0 || lab.phase() == "fenced", "it is gone before the breach is stored");
    // Off again, proven again: it is set up anew, and the rest is let go.
    lab.reach("released", s(200)).await;
    assert_eq!(lab.record().breaches, 1);
    assert_eq!(cluster.seen(|state| state.placed.len()), 2);
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn three_looks_without_an_answer_take_it_away() {
    let (mut lab, cluster) = lab(903, s(40)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.fault("bmc", Fault::Silent);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(20), "{:?}", lab.clock.boot().since(at));
    // Its session was lost within the fence: its Off proves nothing any more, and nothing is set up anew.
    lab.mend("bmc");
    lab.reach("needs_operator", s(300)).await;
    assert_eq!(cluster.seen(|state| (state.stands, state.placed.len())), (false, 1));
    lawful(&cluster);
}

/// What an attempt goes by is read before the look that permits it.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_answers_slowly_is_no_reason_to_let_nothing_go() {
    let (mut lab, cluster) = lab(911, s(1)).await;
    cluster.state.lock().expect("whole").reads_for = s(4);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!(cluster.seen(|state| state.placed.len()), 1);
    lawful(&cluster);
}

/// Also while the cluster takes its time for an answer.
#[tokio::test(start_paused = true)]
async fn three_looks_without_an_answer_take_it_away_in_the_middle_of_a_call() {
    let (mut lab, cluster) = lab(910, s(60)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.state.lock().expect("whole").answers_after = s(300);
    // The next question is under way.
    tokio::time::sleep(s(3)).await;
    lab.fault("bmc", Fault::Silent);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    // A BMC that is silent has five seconds for each answer, and is asked every two.
    assert!(lab.clock.boot().since(at) < s(25), "{:?}", lab.clock.boot().since(at));
    lawful(&cluster);
}

/// An attempt that nobody answered may set it up for as long as it lives: what was seen to be gone before counts for nothing.
#[tokio::test(start_paused = true)]
async fn what_a_late_attempt_sets_up_after_it_was_seen_to_be_gone_is_found() {
    let (mut lab, cluster) = lab(904, s(2)).await;
    cluster.state.lock().expect("whole").late = Some(s(9));
    lab.open().await;
    until(&cluster, |state| state.late.is_none()).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(20)).await;
    until(&cluster, |state| state.lands.is_empty() && state.placed.len() == 1).await;
    until(&cluster, |state| !state.stands).await;
    lab.reach("released", s(300)).await;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    assert!(!cluster.seen(|state| state.stands));
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn whoever_leads_next_takes_it_away_first() {
    let (mut lab, cluster) = lab(905, s(12)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.crash().await;
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(1), "{:?}", lab.clock.boot().since(at));
    lab.reach("released", s(300)).await;
    lawful(&cluster);
}

/// Nothing is switched on while it stands, however long nobody answers; then a person is told, and in the end it is gone.
#[tokio::test(start_paused = true)]
async fn where_the_cluster_is_away_it_stays_off_and_a_person_is_told() {
    let (mut lab, cluster) = lab(906, s(10)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.is_away(true);
    lab.reach("needs_operator", s(300)).await;
    assert!(cluster.seen(|state| state.stands), "nobody could take it away");
    let asked = lab.engine.abandon(&node(), taint(), person()).await;
    let why = asked.expect_err("it stands").to_string();
    assert!(why.contains("lets volumes go for as long as it stands"), "{why}");
    tokio::time::sleep(s(3_600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    cluster.is_away(false);
    until(&cluster, |state| !state.stands).await;
    lab.engine.abandon(&node(), taint(), person()).await.expect("it is gone");
    lab.reach("released", s(60)).await;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_runs_out_of_time_takes_it_away_before_a_person_is_asked() {
    let (mut lab, cluster) = lab(907, s(10_000)).await;
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert!(!cluster.seen(|state| state.stands));
    let standing = |kind: &EffectKind| matches!(kind, EffectKind::Standing(_));
    let open = lab.record().ledger.open().iter().find(|open| standing(&open.kind)).cloned();
    assert_eq!(open.expect("it is waited out").life, Some(LINGERS));
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_given_up_takes_it_away_first() {
    let (mut lab, cluster) = lab(908, s(10_000)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(3)).await;
    lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
    assert!(!cluster.seen(|state| state.stands));
    assert_eq!(lab.phase(), "released");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_point_it_comes_to_the_same_end_and_never_on_while_it_stands() {
    let (mut whole, _) = lab(909, s(3)).await;
    crash::round(&mut whole).await;
    let points = whole.points.seen.lock().expect("whole").clone();
    assert!(points.iter().any(|point| point == "saved release_progress"), "{points:?}");
    for (index, point) in points.iter().enumerate() {
        let (mut lab, cluster) = lab(909, s(3)).await;
        *lab.points.die_at.lock().expect("whole") = Some(index + 1);
        crash::round(&mut lab).await;
        let stood = cluster.seen(|state| (state.stands, state.placed.clone(), state.removed.clone()));
        assert!(!stood.0, "killed at {point}");
        for edge in
            lab.world.lock().expect("whole").edges(NODE, lab.clock.boot()).iter().filter(|edge| edge.on)
        {
            let near = stood.2.iter().any(|gone| *gone <= edge.at && edge.at.since(*gone) < LINGERS);
            assert!(!near, "killed at {point}: on at {:?}, gone at {:?}", edge.at, stood.2);
        }
        lawful(&cluster);
        assert!(lab.record().ledger.open().is_empty(), "killed at {point}: {:?}", lab.record().ledger);
    }
}
