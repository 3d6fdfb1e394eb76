//! Where all nodes' tasks and callers meet before a fence begins: the budget's books, the pauses, the
//! queue.
//!
//! # Invariants
//!
//! - Deciding and taking a place is one step under one lock, and the place is taken before the intent is
//!   stored: two tasks never take the last one. The place is given back if storing fails. Shown by
//!   `of_fifty_requests_at_once_three_begin`.
//! - What counts is read from the store when a leadership begins. Shown by
//!   `the_books_are_counted_from_the_store_after_a_death`.
//! - No task waits while it holds the lock.

mod brake;
mod calendar;
mod callers;
mod children;
mod pauses;
pub(crate) mod queue;
mod reload;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use calendar::Calendar;
pub(crate) use callers::names;
use children::ChildsHold;
pub(crate) use children::Standing;
use parking_lot::{Mutex, MutexGuard};
pub use pauses::Resumed;
pub(crate) use pauses::write as write_note;
use picket_core::budget::pause::{Pause, Pauses};
use picket_core::budget::{Aside, Bar, Books, Budget, LimitKind, Ticket};
use picket_core::groups::Groups;
use picket_core::ids::NodeId;
use picket_core::record::{NodeRecord, Restored};
use picket_core::restore::Lives;
use picket_core::roles::Roles;
use picket_core::time::{BootTime, Clock};
use queue::{Queue, Seen};
use tokio::sync::Notify;

use crate::parts::{NodePlan, Parts};

/// The office of an engine.
#[derive(Debug)]
pub(crate) struct Office {
    clock: Arc<dyn Clock>,
    calendar: Mutex<Calendar>,
    desk: Mutex<Papers>,
    /// Pauses are written one after the other, so that what is stored is what holds.
    writing: tokio::sync::Mutex<()>,
    /// Something changed that may let somebody go who waits.
    changed: Notify,
    /// What the brake counts may have changed.
    complained: Notify,
    /// Why settings were refused since those of now were taken, and when.
    refused_settings: Mutex<Option<String>>,
    pub(crate) queue: Queue,
}

#[derive(Debug)]
struct Papers {
    books: Books,
    pauses: Pauses,
    /// Who may what: in the same papers as the budget, so that a reload changes both at once.
    roles: Roles,
    /// What the settings of now say of each node.
    nodes: BTreeMap<NodeId, Says>,
    /// What is told of the requests that wait.
    queued: BTreeMap<Ticket, Seen>,
    /// The nodes that children hold, and which (S22).
    held: BTreeMap<NodeId, Vec<ChildsHold>>,
    /// Nodes of which a record is being stored that relies on its parent's proof.
    relying: BTreeSet<NodeId>,
    /// The nodes that are not at rest, as the store has them: of whatever settings, and from the first moment of a leadership on.
    standing: BTreeMap<NodeId, Standing>,
    /// Nodes at rest of which a release or a receipt is open, and until when at most on our own clock (S5).
    ending: BTreeMap<NodeId, BootTime>,
    /// What the store came out of, if a backup.
    restored: Option<Restored>,
    /// By what the store is known again at a far side; `None`: no leadership has begun.
    lives: Option<Arc<Lives>>,
}

/// How a place was taken: the limits that would have barred it and were set aside.
#[derive(Debug)]
pub(crate) struct Place(Vec<Bar>);

impl Place {
    /// In words, what setting the store's quorum aside came to, or else (`false`) the rest.
    pub(crate) fn words(&self, quorum: bool) -> Option<&str> {
        let bar = self.0.iter().find(|bar| (bar.kind == LimitKind::Quorum) == quorum);
        bar.map(|bar| bar.text.as_str())
    }
}

/// What can be counted of the office, for whoever shows numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfficeNumbers {
    /// Fences that are open: begun, and neither released nor waiting for a person.
    pub open: usize,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Pauses that stand.
    pub pauses: usize,
    /// The brake holds.
    pub braked: bool,
}

/// The nodes of the settings.
type Plans = BTreeMap<NodeId, Arc<NodePlan>>;

fn books(budget: Budget, plans: &Plans) -> Books {
    let groups = Groups::of_nodes(plans.values().map(|plan| (&plan.id, &*plan.groups)));
    let mut books = Books::new(budget, plans.keys().cloned().collect(), &groups);
    for plan in plans.values() {
        let parents = plan.drivers.values().filter_map(|driver| driver.only_parent());
        parents.for_each(|parent| books.runs_on(&plan.id, parent));
    }
    books
}

/// What settings say of a node to whoever judges who may what with it, and when. One that is not at rest is worked by those that it had then,
/// and judged by those of now.
#[derive(Clone, Debug)]
pub(crate) struct Says {
    pub(crate) groups: Arc<BTreeSet<String>>,
    pub(crate) labels: Arc<BTreeMap<String, String>>,
    pub(crate) fenced_for: Arc<BTreeSet<NodeId>>,
}

impl Says {
    fn of(plan: &NodePlan) -> Self {
        Self { groups: plan.groups.clone(), labels: plan.labels.clone(), fenced_for: plan.fenced_for.clone() }
    }
}

fn nodes(plans: &Plans) -> BTreeMap<NodeId, Says> {
    plans.values().map(|plan| (plan.id.clone(), Says::of(plan))).collect()
}

impl Office {
    pub(crate) fn new(parts: &Parts, plans: &Plans) -> Self {
        let papers = Papers::new(parts.budget.clone(), parts.roles.clone(), plans);
        Self {
            clock: parts.clock.clone(),
            calendar: Mutex::default(),
            desk: Mutex::new(papers),
            writing: tokio::sync::Mutex::new(()),
            changed: Notify::new(),
            complained: Notify::new(),
            refused_settings: Mutex::default(),
            queue: Queue::new(),
        }
    }

    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.desk.lock()
    }

    /// Whether a fence of that node may begin: the decision alone. Nothing is counted.
    pub(crate) fn decide(
        &self,
        plan: &NodePlan,
        aside: Aside,
        ticket: Option<&Ticket>,
    ) -> Result<Place, Bar> {
        self.papers().decide(plan, aside, ticket, &*self.clock)
    }

    /// Decides, and takes the place if it is free, or a limit is set aside.
    /// A breach goes on `through_pauses` (S11).
    pub(crate) fn take(
        &self,
        plan: &NodePlan,
        aside: Aside,
        ticket: Option<&Ticket>,
        through_pauses: bool,
    ) -> Result<Place, Bar> {
        let now = self.clock.boot();
        let mut papers = self.papers();
        let place = match through_pauses {
            true => papers.among_those_that_wait(plan, aside, ticket, now)?,
            false => papers.decide(plan, aside, ticket, &*self.clock)?,
        };
        papers.books.take_aside(&plan.id, aside, now);
        Ok(place)
    }

    /// Somebody says that the node is dead.
    pub(crate) fn complains(&self, node: &NodeId, holder: &str) {
        self.papers().books.complain(node, holder, self.clock.boot());
        self.complained.notify_one();
    }

    /// That holder does not want that node off any more.
    pub(crate) fn takes_back(&self, node: &NodeId, holder: &str) {
        self.papers().books.takes_back(node, holder);
        self.complained.notify_one();
        self.changed.notify_one();
    }

    /// How long a node is not fenced anew after its last fence.
    pub(crate) fn cool_down(&self) -> Duration {
        self.papers().books.budget().cool_down
    }

    /// The intent was not stored: the place is free again.
    pub(crate) fn give_back(&self, record: &NodeRecord) {
        self.papers().books.give_back(record, self.clock.boot());
        self.changed.notify_one();
    }

    /// The record is stored.
    pub(crate) fn stored(&self, record: &NodeRecord) {
        self.papers().stored(record, self.clock.boot());
        self.complained.notify_one();
        self.changed.notify_one();
    }

    /// What the store came out of, if a backup (S21).
    pub(crate) fn restored(&self) -> Option<Restored> {
        self.papers().restored.clone()
    }

    /// By what the store is known again where something is noted in its name.
    pub(crate) fn lives(&self) -> Option<Arc<Lives>> {
        self.papers().lives.clone()
    }

    /// Whether a member of the store falls with that node.
    pub(crate) fn carries_a_member(&self, node: &NodeId) -> bool {
        self.papers().books.carries_a_member(node)
    }

    /// These members of the store do not answer now.
    pub(crate) fn hears_nothing_of(&self, members: BTreeSet<String>) {
        self.papers().books.hears_nothing_of(members);
    }

    /// A child runs on that parent: a fence of the parent takes it away too.
    pub(crate) fn runs_on(&self, child: &NodeId, parent: &NodeId) {
        self.papers().books.runs_on(child, parent);
    }

    /// The node on which that one was last seen to run.
    pub(crate) fn parent(&self, child: &NodeId) -> Option<NodeId> {
        self.papers().books.parent(child).cloned()
    }

    /// The nodes that are known to run on that one.
    pub(crate) fn children(&self, parent: &NodeId) -> Vec<NodeId> {
        self.papers().books.children(parent).cloned().collect()
    }

    /// No device of that node answers, and nothing was sent to it: others have its place until one does.
    pub(crate) fn reaches_nothing(&self, node: &NodeId) {
        self.papers().books.reaches_nothing(node);
        self.changed.notify_one();
    }

    /// A device of that node answers again.
    pub(crate) fn reaches(&self, node: &NodeId) {
        self.papers().books.reaches(node);
    }

    /// The same of a fence that had lent its place: where that is taken it stays lent. Why, then.
    pub(crate) fn regains(&self, node: &NodeId) -> Option<Bar> {
        self.papers().books.regains(node, self.clock.boot()).err()
    }

    /// It is an orphan: its fence does not go on.
    pub(crate) fn is_left_alone(&self, node: &NodeId) {
        self.papers().books.is_left_alone(node);
        self.changed.notify_one();
    }

    /// The last look (S15): why a fence that has sent no off may not go on.
    pub(crate) fn last_look(&self, plan: &NodePlan) -> Option<Bar> {
        let now = self.clock.boot();
        let papers = self.papers();
        let paused = papers.pauses.bar(&plan.id, &papers.says(plan).groups, now);
        paused.or_else(|| papers.books.recheck(&plan.id, now).err())
    }

    /// Other settings, from now on: what was counted stays so.
    pub(crate) fn change(&self, budget: Budget, roles: Roles, plans: &Plans) {
        let mut papers = self.papers();
        papers.roles = roles;
        papers.books = books(budget, plans).going_on_from(&papers.books);
        papers.nodes = nodes(plans);
        drop(papers);
        self.changed.notify_one();
    }

    /// The limits that hold.
    pub(crate) fn budget(&self) -> Budget {
        self.papers().books.budget().clone()
    }

    /// How long a request may wait, and how many may.
    pub(crate) fn queue_rules(&self) -> (Duration, u32) {
        let papers = self.papers();
        let budget = papers.books.budget();
        (budget.queue_expires, budget.queue_most)
    }

    /// The pauses that cover a node.
    pub(crate) fn covering(&self, plan: &NodePlan) -> Vec<Pause> {
        let now = self.clock.boot();
        let papers = self.papers();
        let groups = papers.says(plan).groups;
        papers.pauses.covering(&plan.id, &groups, now).cloned().collect()
    }

    /// The pause, the cool-down or the limit that bars a fence of that node now, for whoever looks on.
    pub(crate) fn standing_bar(&self, node: &NodeId) -> Option<Bar> {
        let now = self.clock.boot();
        let papers = self.papers();
        papers.paused(node, now).or_else(|| papers.books.standing_bar(node, now))
    }

    /// Why the brake holds, if it does.
    pub(crate) fn braked(&self) -> Option<Bar> {
        self.papers().books.braked(self.clock.boot())
    }

    pub(crate) fn numbers(&self) -> OfficeNumbers {
        let now = self.clock.boot();
        let mut papers = self.papers();
        OfficeNumbers {
            open: papers.books.open(),
            waiting: papers.books.waiting(),
            pauses: papers.pauses.standing(now).count(),
            braked: papers.books.braked(now).is_some(),
        }
    }
}

impl Papers {
    fn new(budget: Budget, roles: Roles, plans: &Plans) -> Self {
        let (pauses, queued) = Default::default();
        let (held, relying, standing, ending) = Default::default();
        let (books, nodes) = (books(budget, plans), nodes(plans));
        let (restored, lives) = (None, None);
        Self { books, pauses, roles, nodes, queued, held, relying, standing, ending, restored, lives }
    }

    /// What the settings of now say of a node; of one that left them, what they said.
    fn says(&self, plan: &NodePlan) -> Says {
        self.nodes.get(&plan.id).cloned().unwrap_or_else(|| Says::of(plan))
    }

    /// The pause that bars a node of the settings.
    fn paused(&self, node: &NodeId, now: BootTime) -> Option<Bar> {
        self.pauses.bar(node, &self.nodes.get(node)?.groups, now)
    }

    /// The record is stored.
    fn stored(&mut self, record: &NodeRecord, now: BootTime) {
        self.books.stored(record, now);
        self.stored_of_a_child(record, now);
    }

    fn decide(
        &self,
        plan: &NodePlan,
        aside: Aside,
        ticket: Option<&Ticket>,
        clock: &dyn Clock,
    ) -> Result<Place, Bar> {
        let now = clock.boot();
        // Nobody sets a pause aside: whoever may, resumes.
        if let Some(bar) = self.pauses.bar(&plan.id, &self.says(plan).groups, now) {
            return Err(bar);
        }
        self.among_those_that_wait(plan, aside, ticket, now)
    }

    fn among_those_that_wait(
        &self,
        plan: &NodePlan,
        aside: Aside,
        ticket: Option<&Ticket>,
        now: BootTime,
    ) -> Result<Place, Bar> {
        let paused = |node: &NodeId| self.paused(node, now);
        self.books.decide_aside(&plan.id, ticket, aside, &paused, now).map(Place)
    }
}
