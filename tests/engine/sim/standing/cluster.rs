//! A cluster, as a releaser knows it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::Identity;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Act, SharedWorld, Verb};
use picket_release::{
    Left, LetOn, Pace, Prepared, Progress, Quarantine, ReleaseError, Releaser, Subject, Whose,
};
use tokio::time::Instant;

use super::LINGERS;
use crate::lab::{NODE, node, s};

/// An attempt lands no later than that after it was sent.
const LIFE: Duration = Duration::from_secs(10);

/// A cluster, in which a taint lets volumes go.
#[derive(Debug)]
pub struct Cluster {
    pub world: SharedWorld,
    clock: Arc<dyn Clock>,
    pub state: Mutex<State>,
}

#[derive(Debug, Default)]
pub struct State {
    pub stands: bool,
    /// What it is to let go takes so long.
    pub takes: Duration,
    /// What was let go so far, and what is left.
    pub since: Option<BootTime>,
    pub placed: Vec<BootTime>,
    pub removed: Vec<BootTime>,
    /// Nobody answers.
    pub is_away: bool,
    /// The next attempt is not answered, and lands so much later.
    pub late: Option<Duration>,
    pub lands: Vec<BootTime>,
    /// To read what an attempt goes by takes so long.
    pub reads_for: Duration,
    /// What it goes by is not what it should be.
    pub refuses: Option<&'static str>,
    /// So many attempts find something to do before, which is there again the next time; and when they came.
    pub comes_back: usize,
    pub in_vain: Vec<BootTime>,
    /// So many looks find that something came beside it.
    pub comes_beside: usize,
    /// Something is there that an attempt takes away, and others too as long as they act on what stands or stood.
    pub beside: bool,
    /// When attempts took that away.
    pub taken: Vec<BootTime>,
    /// The next attempt to take that away is not answered, and may come late from then on, until it is taken back.
    pub unanswered: bool,
    pub may_come: bool,
    /// It may know the node by its name alone.
    pub by_name: bool,
    /// Another machine has taken the node's name there.
    pub replaced: bool,
    /// Whoever compares is told of a boot, once: what says so is taken away with what is ours.
    pub boot_is_told: bool,
    /// It is switched on, and not ready there.
    pub not_ready: bool,
    /// How often it was compared who has it.
    pub compared: usize,
    /// Whom the last fence of a node that is gone had met, as it was told to whoever tidies.
    pub gone: Option<Option<String>>,
    /// It booted there, although the node is off.
    pub booted: bool,
    /// When it was told that the node is being fenced; and so it says of the node still.
    pub announced: Vec<BootTime>,
    pub keeps_pods_away: bool,
    /// Whether an off had been sent, by whoever tidied up last.
    pub tidied_off: Option<bool>,
    /// It never answers that.
    pub deaf: bool,
    /// It refuses to hear that.
    pub hard_of_hearing: bool,
    /// Somebody else set up the same.
    pub foreign: bool,
    /// The same, after so many questions before an on.
    pub foreign_after: Option<usize>,
    /// Nobody answers before an on.
    pub mute: bool,
    pub asked_for_on: usize,
    /// Whoever has the machines does not answer.
    pub managers_are_away: bool,
    /// Nobody else remediates its machine.
    pub spared: bool,
    pub spare_asked: usize,
    /// When it was asked to change anything by no attempt.
    pub asked_to_change: Vec<BootTime>,
    /// Who manages machines takes it away.
    pub going: Option<&'static str>,
    /// A question how far it is takes so long.
    pub answers_after: Duration,
    /// In the middle of the next question this outlet is on for a moment: between two seconds and the answer.
    pub turns: Option<&'static str>,
    pub wrong: Vec<String>,
    /// What it says of the machine that has the node's name there.
    pub machine: Option<Identity>,
}

impl State {
    fn whom(&self) -> &'static str {
        if self.replaced { "another machine" } else { "the machine of then" }
    }

    /// What is another machine's is let be.
    fn is_who_stays(&mut self, subject: &Subject) -> Result<(), ReleaseError> {
        if subject.met.as_deref().is_none_or(|met| met == self.whom()) {
            return Ok(());
        }
        self.keeps_pods_away = false;
        Err(ReleaseError::Replaced(format!("replaced: it is {}", self.whom())))
    }
}

impl Cluster {
    pub fn new(world: &SharedWorld, clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = Mutex::new(State { takes: s(1), ..State::default() });
        Arc::new(Self { world: world.clone(), clock, state })
    }

    pub fn is_on(&self) -> bool {
        self.world.lock().truth(NODE, self.clock.boot())
    }

    pub fn is_away(&self, is_away: bool) {
        self.state.lock().is_away = is_away;
    }

    /// What was under way has landed by now.
    pub fn land(&self, state: &mut State) {
        let now = self.clock.boot();
        let (landed, rest): (Vec<_>, Vec<_>) = state.lands.drain(..).partition(|at| *at <= now);
        state.lands = rest;
        if let Some(at) = landed.last() {
            (state.stands, state.since) = (true, Some(*at));
            state.placed.push(*at);
        }
    }

    pub fn seen<T>(&self, of: impl FnOnce(&State) -> T) -> T {
        let mut state = self.state.lock();
        self.land(&mut state);
        of(&state)
    }
}

#[async_trait]
impl Releaser for Cluster {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(LIFE)
    }

    fn passes_on(&self) -> bool {
        true
    }

    fn pace(&self) -> Pace {
        Pace {
            deadline: s(120),
            attempt: self.seen(|state| s(5).max(state.answers_after)),
            ..Pace::default()
        }
    }

    fn quarantine(self: Arc<Self>) -> Option<Arc<dyn Quarantine>> {
        Some(self)
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
        let mut state = self.state.lock();
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
        if state.foreign {
            return Err(ReleaseError::Barred("somebody else's stands".to_owned()));
        }
        if state.beside && std::mem::take(&mut state.unanswered) {
            state.may_come = true;
            return Err(ReleaseError::Unknown("no answer".to_owned()));
        }
        if std::mem::take(&mut state.beside) {
            if let Some(gone) = state.removed.last().filter(|gone| now.since(**gone) < LINGERS) {
                let wrong =
                    format!("taken away at {now:?}, as others may: what stood is gone since {gone:?}");
                state.wrong.push(wrong);
            }
            state.taken.push(now);
            return Ok(Progress::NotThere("a pod was deleted".to_owned()));
        }
        if state.in_vain.len() < state.comes_back {
            state.in_vain.push(now);
            return Ok(Progress::NotThere("what was there is gone, and comes back".to_owned()));
        }
        (state.stands, state.since) = (true, Some(now));
        state.placed.push(now);
        Ok(Progress::Accepted("it stands".to_owned()))
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        let takes = self.seen(|state| state.answers_after);
        let turns = self.state.lock().turns.take();
        if let Some(outlet) = turns {
            let (mut world, now) = (self.world.lock(), self.clock.boot());
            for (after, verb) in [(s(2) - Duration::from_millis(50), Verb::On), (takes, Verb::Off)] {
                world.schedule(now + after, Act::ForeignOutlet { outlet: outlet.to_owned(), verb });
            }
        }
        tokio::time::sleep(takes).await;
        let now = self.clock.boot();
        let mut state = self.state.lock();
        self.land(&mut state);
        Ok(match state.since.filter(|_| state.stands) {
            _ if state.is_away => return Err(ReleaseError::Unknown("nobody answers".to_owned())),
            _ if state.booted => return Err(ReleaseError::Replaced("replaced: it booted".to_owned())),
            None => Progress::NotThere("it does not stand".to_owned()),
            Some(_) if state.comes_beside > 0 => {
                state.comes_beside -= 1;
                Progress::NotThere("something came beside it".to_owned())
            }
            Some(since) if now.since(since) >= state.takes => Progress::Complete("all is gone".to_owned()),
            Some(_) => Progress::Accepted("something is left".to_owned()),
        })
    }
}

#[async_trait]
impl Quarantine for Cluster {
    fn by_name_alone(&self) -> bool {
        self.seen(|state| state.by_name)
    }

    fn lingers(&self) -> Duration {
        LINGERS
    }

    async fn withdraw(&self, _whose: &Whose, _until: Instant) -> Result<(), ReleaseError> {
        let now = self.clock.boot();
        let mut state = self.state.lock();
        self.land(&mut state);
        if state.is_away {
            return Err(ReleaseError::Unknown("nobody answers".to_owned()));
        }
        state.may_come = false;
        if std::mem::take(&mut state.stands) {
            state.removed.push(now);
        }
        Ok(())
    }

    async fn cordon(&self, subject: &Subject, _until: Instant) -> Result<Option<String>, ReleaseError> {
        if self.seen(|state| state.deaf) {
            std::future::pending::<()>().await;
        }
        let now = self.clock.boot();
        let mut state = self.state.lock();
        state.asked_to_change.push(now);
        if state.hard_of_hearing {
            return Err(ReleaseError::DidNotHappen("not now".to_owned()));
        }
        state.announced.push(now);
        state.keeps_pods_away = true;
        assert_eq!(subject.node, node());
        Ok(Some(state.whom().to_owned()))
    }

    async fn exclude(&self, subject: &Subject, _until: Instant) -> Result<(), ReleaseError> {
        assert!(subject.met.is_some());
        let mut state = self.state.lock();
        state.asked_to_change.push(self.clock.boot());
        state.spare_asked += 1;
        match state.managers_are_away {
            true => return Err(ReleaseError::Unknown("nobody answers".to_owned())),
            false => state.spared = true,
        }
        Ok(())
    }

    async fn readmit(&self, left: &Left, _until: Instant) -> Result<Option<String>, ReleaseError> {
        if self.seen(|state| state.managers_are_away) {
            std::future::pending::<()>().await;
        }
        let mut state = self.state.lock();
        assert!(!state.keeps_pods_away || left.gone, "the node itself is tidied first");
        state.spared = false;
        Ok(None)
    }

    async fn clean_up(&self, left: &Left, _until: Instant) -> Result<Option<String>, ReleaseError> {
        let mut state = self.state.lock();
        state.asked_to_change.push(self.clock.boot());
        state.gone = left.gone.then(|| left.whose.met.clone());
        if state.is_away {
            return Err(ReleaseError::Unknown("nobody answers".to_owned()));
        }
        if state.not_ready && state.keeps_pods_away {
            return Ok(Some("the node to be ready".to_owned()));
        }
        let stays = left.gone && left.whose.met.as_deref().is_none_or(|met| met == state.whom());
        (state.keeps_pods_away, state.tidied_off) = (state.keeps_pods_away && stays, Some(left.off));
        Ok(None)
    }

    async fn machine(&self, _until: Instant) -> Option<(Identity, String)> {
        self.seen(|state| state.machine.clone())
            .map(|machine| (machine, "the cluster says the same".to_owned()))
    }

    async fn compare(&self, subject: &Subject, _until: Instant) -> Result<(), ReleaseError> {
        self.state.lock().compared += 1;
        if self.seen(|state| state.mute) {
            std::future::pending::<()>().await;
        }
        let mut state = self.state.lock();
        if std::mem::take(&mut state.boot_is_told) {
            return Err(ReleaseError::Replaced("replaced: it booted".to_owned()));
        }
        state.is_who_stays(subject)
    }

    async fn is_being_deleted(&self, _subject: &Subject, _until: Instant) -> Option<String> {
        self.seen(|state| state.going).map(str::to_owned)
    }

    async fn check(&self, _identities: &[Identity], _until: Instant) -> Vec<String> {
        if self.seen(|state| state.deaf) {
            std::future::pending::<()>().await;
        }
        self.seen(|state| state.refuses).into_iter().map(str::to_owned).collect()
    }

    async fn before_on(&self, subject: &Subject, _until: Instant) -> Result<LetOn, ReleaseError> {
        let mut state = self.state.lock();
        self.land(&mut state);
        state.asked_for_on += 1;
        state.is_who_stays(subject)?;
        let is_there = state.foreign || state.foreign_after.is_some_and(|asked| state.asked_for_on > asked);
        match (is_there, state.mute) {
            (_, true) => Err(ReleaseError::Unknown("nobody answers".to_owned())),
            (true, _) => Err(ReleaseError::Barred("somebody else's stands".to_owned())),
            _ => Ok(LetOn { stands: state.stands, found: None }),
        }
    }

    async fn before_attempt(&self, subject: &Subject, _until: Instant) -> Result<Prepared, ReleaseError> {
        let takes = self.seen(|state| state.reads_for);
        tokio::time::sleep(takes).await;
        let (refuses, whom) = self.seen(|state| (state.refuses, state.whom()));
        let (beside, stands) = self.seen(|state| (state.beside.then(|| "a pod".to_owned()), state.stands));
        if subject.met.as_deref().is_some_and(|met| met != whom) {
            return Err(ReleaseError::Replaced(format!("replaced: it is {whom}")));
        }
        match refuses {
            Some(why) => Err(ReleaseError::DidNotHappen(why.to_owned())),
            None => Ok(Prepared { met: Some(whom.to_owned()), beside, stands }),
        }
    }
}
