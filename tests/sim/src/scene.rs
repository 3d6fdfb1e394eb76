//! What all parts of a history share: the world, its time, and what happened in it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use picket_core::record::Phase;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Act, SharedWorld, SimClock, World};

use crate::book::Books;
use crate::law::Law;
use crate::restarts::Restarts;
use crate::rights::Rights;
use crate::shape::{PLACE, Shape};
use crate::tally::Tally;
use crate::trace::{Blow, Event, Trace, What};

/// The world, its clock, and the observer who sees everything.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) world: SharedWorld,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) shape: Arc<Shape>,
    pub(crate) books: Arc<Books>,
    rights: Mutex<Arc<Rights>>,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    trace: Trace,
    law: Law,
    /// Commands of which the devices were already asked.
    heard: usize,
    /// Volumes' moves that were already seen.
    moved: usize,
    restarts: Restarts,
}

impl Scene {
    pub(crate) fn new(seed: u64, shape: Shape, loud: bool) -> Arc<Self> {
        let mut world = World::new(seed);
        shape.build(&mut world);
        let (world, shape) = (world.shared(), Arc::new(shape));
        Arc::new_cyclic(|scene| {
            let books = Arc::new(Books::new(shape.gateways, scene));
            let law = Law::new(shape.clone(), world.clone(), books.clone());
            let restarts = Restarts::default();
            let seen = Mutex::new(Seen { trace: Trace::new(loud), law, heard: 0, moved: 0, restarts });
            let rights = Mutex::new(shape.rights.clone());
            Self { world, clock: Arc::new(SimClock::new()), shape, books, rights, seen }
        })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }

    /// Who may fence what, by the newest settings.
    pub(crate) fn rights(&self) -> Arc<Rights> {
        self.rights.lock().clone()
    }

    /// The settings say so from now on, to whoever reads them.
    pub(crate) fn set_rights(&self, rights: &Arc<Rights>) {
        self.rights.lock().clone_from(rights);
    }

    pub(crate) fn now(&self) -> BootTime {
        self.clock.boot()
    }

    /// Something happened now. What devices heard before is noted first.
    pub(crate) fn note(&self, what: What) {
        let now = self.now();
        let mut seen = self.seen.lock();
        self.catch_up(&mut seen, now);
        let back = match &what {
            What::Stored { record, was, .. } if was.phase == Phase::Unfencing => {
                (record.phase == Phase::Normal).then(|| record.node.clone())
            }
            _ => None,
        };
        self.take(&mut seen, Event { at: now, what });
        // What runs there again gets its volumes again.
        let own =
            self.shape.volumes().filter(|(node, _)| back.as_ref().is_some_and(|back| back.as_str() == *node));
        for (node, volume) in own {
            let mut world = self.world();
            if !world.is_attached(node, &volume, now) {
                world.attach(now, node, &volume, PLACE);
            }
        }
    }

    fn catch_up(&self, seen: &mut Seen, now: BootTime) {
        let (heard, moved) = {
            let mut world = self.world();
            let heard = world.heard(now);
            let new = heard[seen.heard..].to_vec();
            seen.heard = heard.len();
            let moves = world.volume_moves(now);
            let moved = moves[seen.moved..].to_vec();
            seen.moved = moves.len();
            (new, moved)
        };
        let heard = heard.into_iter().map(|heard| (heard.at, What::Heard(heard)));
        let moved = moved.into_iter().map(|moved| (moved.at, What::Moved(moved)));
        let mut events: Vec<(BootTime, What)> = heard.chain(moved).collect();
        events.sort_by_key(|(at, _)| *at);
        for (at, what) in events {
            self.take(seen, Event { at, what });
        }
    }

    fn take(&self, seen: &mut Seen, event: Event) {
        let Seen { law, restarts, .. } = &mut *seen;
        restarts.see(&event, &law.past, &mut self.world());
        let (at, news) = (event.at, restarts.news());
        seen.take(event);
        (0..news).for_each(|_| seen.take(Event { at, what: What::Struck(Blow::Restarted) }));
    }

    /// Writes into the diary, if somebody reads it.
    pub(crate) fn say(&self, words: impl FnOnce() -> String) {
        let now = self.now();
        self.seen.lock().trace.say(now, words);
    }

    /// Something is wrong that no invariant sees by itself.
    pub(crate) fn broken(&self, words: String) {
        let now = self.now();
        let mut seen = self.seen.lock();
        seen.trace.say(now, || format!("BROKEN: {words}"));
        seen.law.broken.push(words);
    }

    /// What was broken until now.
    pub(crate) fn violations(&self) -> Vec<String> {
        let now = self.now();
        let mut seen = self.seen.lock();
        self.catch_up(&mut seen, now);
        let strayed =
            self.world().strayed().iter().map(|what| format!("one_machine: {what}")).collect::<Vec<_>>();
        seen.law.broken.iter().cloned().chain(strayed).collect()
    }

    /// The diary, the hash of all that happened, and how much that was.
    pub(crate) fn end(&self) -> (String, u64, Tally) {
        let seen = self.seen.lock();
        (seen.trace.diary(), seen.trace.hash(), seen.trace.tally())
    }

    /// Looks at what is known of the past.
    pub(crate) fn past<T>(&self, look: impl FnOnce(&crate::law::Past) -> T) -> T {
        look(&self.seen.lock().law.past)
    }

    pub(crate) fn happen(&self, act: Act) {
        let now = self.now();
        self.say(|| format!("{act:?}"));
        self.world().happen(now, act);
    }

    pub(crate) fn is_on(&self, machine: &str) -> bool {
        let now = self.now();
        self.world().truth(machine, now)
    }
}

impl Seen {
    fn take(&mut self, event: Event) {
        self.trace.take(&event);
        let before = self.law.broken.len();
        self.law.see(&event);
        for broken in &self.law.broken[before..] {
            self.trace.say(event.at, || format!("BROKEN: {broken}"));
        }
    }
}

/// Seconds.
pub(crate) fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Milliseconds.
pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
