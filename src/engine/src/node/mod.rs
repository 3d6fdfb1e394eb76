//! One task a node.
//!
//! The phases are `checking` (Normal, by a `schedule`), `fencing`, `releasing`, `watching`, `kept_off`,
//! `unfencing` and `retired`. They share `looking` (asking for power), `hands` (bounded calls), `sessions`
//! (losses and silences), `drain` (waiting out effects), `steps` (how the record changes) and `command`
//! (callers). What a node at rest does not need is in a box that is made when it is needed: there are ten
//! thousand tasks.
//!
//! # Invariants
//!
//! - The node's record is changed by its task alone, one event after the other.
//! - The loop of a phase ends when the node's place (phase, generation, fence) changes. Shown by
//!   `a_node_whose_evidence_began_from_zero_is_at_another_place`.
//! - What proves lives in the task and dies with it (S4). Shown by
//!   `another_leadership_proves_the_parent_anew_before_it_believes_of_the_child`.

mod around;
mod asked;
mod away;
mod checking;
mod children;
mod command;
mod drain;
mod failure;
mod fencing;
mod hands;
mod holding;
mod idling;
mod inbox;
mod kept;
mod kept_off;
mod looking;
mod measuring;
mod obstacles;
mod orphaned;
mod outlets;
mod own_host;
mod publishing;
mod quarantine;
mod releasing;
mod restored;
mod retired;
mod schedule;
mod sessions;
mod steps;
mod succession;
mod telling;
mod unfencing;
mod watching;
mod whose;
mod witness;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use away::Doubt;
use children::SharedLook;
pub(crate) use command::{Command, Wish};
use failure::Failure;
pub(crate) use failure::{Fatal, Gone};
use hands::Hands;
use holding::HoldRead;
use idling::Spoken;
pub(crate) use inbox::{Inbox, Mailbox, mailbox};
pub(crate) use kept::Kept;
use looking::Lingering;
use orphaned::Aside;
pub(crate) use outlets::{Outlets, Turns};
use picket_core::election::Leadership;
use picket_core::ground::ReleaseGround;
use picket_core::ids::{DeviceId, EffectId, FenceId, Generation, NodeId, Revision};
use picket_core::record::{NodeRecord, Phase, Said};
use picket_core::store::Stored;
use picket_core::time::{BootTime, WallTime};
use publishing::Readings;
use quarantine::{Met, Tellings};
use schedule::Schedule;
use sessions::Sessions;
use steps::Place;
pub(crate) use telling::Teller;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::office::{Office, Standing};
use crate::parts::{NodePlan, Parts, PlannedRelease};
use crate::readiness::Readiness;
use crate::request::Acting;
use crate::view::{Live, NodeView};
use crate::work::Work;

/// The ground on which volumes may be released, and since when the node is dark.
#[derive(Debug)]
struct Ground {
    ground: ReleaseGround,
    dark_since: BootTime,
}

pub(crate) struct NodeTask {
    pub(crate) parts: Arc<Parts>,
    pub(crate) plan: Arc<NodePlan>,
    pub(crate) hands: Hands,
    teller: Arc<Teller>,
    /// Shared with its view: there is one for each node for years.
    pub(crate) stored: Arc<Stored>,
    pub(crate) mailbox: Inbox,
    view: Arc<watch::Sender<NodeView>>,
    feed: broadcast::Sender<(Revision, NodeId)>,
    office: Arc<Office>,
    /// Shared with its view, like what is stored.
    live: Arc<Live>,
    ground: Option<Arc<Ground>>,
    /// What was seen against it, and is not stored yet.
    doubt: Option<Doubt>,
    /// Cuts the call to a releaser off that is under way on that ground; `None`: none is.
    asking: Option<CancellationToken>,
    /// What it may do, where that is an attempt of a release.
    attempted: Option<EffectId>,
    /// How often in a row a hold under way made room for whoever looks.
    holds_cut: u32,
    /// When this process began to count the life of an open effect.
    counted_from: BTreeMap<EffectId, BootTime>,
    /// Effects that this process sent: their end can be brought about by ending its own sessions.
    own: BTreeSet<EffectId>,
    /// Devices whose session was not seen to close, and since when nothing is said in it.
    unclosed: BTreeMap<DeviceId, BootTime>,
    /// When each device was asked last whether the hold that was engaged there stands.
    holds_read: BTreeMap<DeviceId, HoldRead>,
    /// How often what somebody undid of each device's hold was tried to be engaged again.
    undone_tries: BTreeMap<DeviceId, u32>,
    /// Another process or leadership began what is watched, and nobody asked since whose machines its devices control.
    unasked: bool,
    /// How often late holds were tried since it was released.
    late_tries: u32,
    /// Devices that said whose machine they control, since this leadership began.
    said_whose: BTreeSet<DeviceId>,
    /// Devices of which the last reading was refused, since it would be another machine's, and why in words.
    exchanged: BTreeMap<DeviceId, String>,
    /// What each device said first within this fence: where nobody knows whose machine it should be, it stays so (S13).
    said_first: BTreeMap<DeviceId, Said>,
    /// In which life each device was asked last whose machine it controls, and answered.
    asked_whose_in: BTreeMap<DeviceId, u64>,
    sessions: Sessions,
    /// Which sessions may be open.
    spoken: Spoken,
    /// Readings that a look did not wait for: they go on at the next one.
    lingering: Lingering,
    /// Looks in a row that showed no Off although the node is proven off (S4, K3).
    unseen: u32,
    /// The readings by which the last step was decided.
    readings: Readings,
    /// The last look for a child.
    shared_look: Option<Box<SharedLook>>,
    /// How often the confirmation of the open fence did not hold; reset when the node moves on.
    unproven: u32,
    /// The fence was begun by another process or leadership.
    resumed: bool,
    /// So often something was found before an on that nobody here had set up.
    found_standing: u32,
    /// The generation in which a node that came on after its time was brought back without a person: once.
    came_on_in: Option<Generation>,
    /// What is admitted now is a drill.
    drilling: bool,
    /// In which roles the command was asked that is done now.
    acting: Option<Arc<Acting>>,
    /// What is being asked for is a child's wish.
    of_child: Option<Standing>,
    /// What was seen of the drill under way; `None` where another process began it.
    drilled: Option<Box<witness::Drilled>>,
    /// Nodes of which something changed that is not stored.
    shown: broadcast::Sender<NodeId>,
    turns: Arc<Turns>,
    /// The check after the start is still to be made.
    unchecked: bool,
    schedule: Schedule,
    /// Which fence was given up here first, and when.
    given_up_since: Option<(FenceId, BootTime)>,
    /// What its releases and its liveness source said at the last check.
    around: around::Around,
    /// How ready each device was found by its last check.
    told: Vec<(DeviceId, Readiness)>,
    work: Work,
    orphan: Option<String>,
    aside: Aside,
    /// What clusters are being told.
    tellings: Tellings,
    /// Whom its releases met, until that is stored.
    met: Met,
}

impl NodeTask {
    pub(crate) fn new(
        parts: Arc<Parts>,
        plan: Arc<NodePlan>,
        leadership: Arc<Leadership>,
        stored: Arc<Stored>,
        kept: Kept,
        outlets: Outlets,
    ) -> Self {
        let Outlets { view, feed, shown, turns, work, orphan, office } = outlets;
        if let Some(lives) = office.lives() {
            plan.releases.iter().filter_map(PlannedRelease::quarantine).for_each(|one| one.serves(&lives));
        }
        let now = parts.clock.boot();
        let counted_from = stored.record.ledger.open().iter().map(|open| (open.id, now)).collect();
        let resumed = stored.record.phase != Phase::Normal;
        let teller = Arc::new(Teller::new(&parts, &plan));
        teller.moved(&stored.record);
        let own = kept.own_of(&plan, leadership.guard().incarnation);
        let hands = Hands::new(&parts, &plan, leadership, teller.clone(), work.clone(), kept.spoken.clone());
        hands.work_in(&stored.record.phase);
        // What devices showed before is still what was seen last.
        let mut live = Live {
            proven: false,
            wait: None,
            orphaned: orphan.clone(),
            not_back: BTreeSet::new(),
            unannounced: BTreeMap::new(),
            ..Live::clone(&view.borrow().live)
        };
        live.devices.retain(|device, _| plan.topology.device(device).is_some());
        let mut sessions = kept.sessions;
        if kept.of.as_ref().is_some_and(|(of, _)| !Arc::ptr_eq(of, &plan)) {
            // It was seen by other settings, and is checked anew.
            live.devices.clear();
            sessions.of_other_drivers();
        }
        let sessions = sessions.taking_over(&stored.record, now);
        let unchecked = parts.check_at_start && live.devices.is_empty();
        let said_first = stored.record.fence.as_ref().map(|fence| fence.said.clone()).unwrap_or_default();
        let schedule = Schedule::new(parts.rules.check_every, plan.paces.refused_login, plan.id.as_str());
        Self {
            parts,
            plan,
            hands,
            teller,
            holds_read: BTreeMap::new(),
            undone_tries: BTreeMap::new(),
            stored,
            mailbox: kept.mailbox,
            view,
            feed,
            office,
            live: Arc::new(live),
            ground: None,
            doubt: None,
            asking: None,
            attempted: None,
            holds_cut: 0,
            counted_from,
            own,
            unclosed: BTreeMap::new(),
            unasked: resumed,
            late_tries: 0,
            said_whose: BTreeSet::new(),
            exchanged: BTreeMap::new(),
            said_first,
            asked_whose_in: BTreeMap::new(),
            sessions,
            spoken: kept.spoken,
            lingering: Lingering::default(),
            unseen: 0,
            readings: Readings::default(),
            shared_look: None,
            unproven: 0,
            resumed,
            found_standing: 0,
            came_on_in: None,
            drilling: false,
            acting: None,
            of_child: None,
            drilled: None,
            shown,
            turns,
            work,
            orphan,
            aside: Aside::No,
            tellings: Tellings::default(),
            met: Met::default(),
            unchecked,
            schedule,
            given_up_since: None,
            around: around::Around::default(),
            told: Vec::new(),
        }
    }

    /// What the next leadership in this process goes on with.
    pub(crate) fn keep(mut self) -> Kept {
        self.mailbox.forget_own();
        let of = Some((self.plan, self.hands.leadership().guard().incarnation));
        Kept { of, own: self.own, sessions: self.sessions, spoken: self.spoken, ..Kept::new(self.mailbox) }
    }

    /// Walks the node through its phases until this leadership is over.
    pub(crate) async fn run(&mut self) -> Gone {
        self.publish();
        self.recover();
        if self.orphan.is_none()
            && let Err(fatal) = Box::pin(self.take_up()).await
        {
            return Gone::Fatal(fatal.0);
        }
        let was_retired = self.stored.record.phase == Phase::Retired;
        loop {
            // One that a person retired is none any more: whatever the settings say now goes on with it.
            let retired = self.orphan.is_some() && !was_retired && self.stored.record.phase == Phase::Retired;
            if retired || self.steps_aside() {
                Box::pin(self.leave()).await;
                return Gone::Aside;
            }
            self.lingering.clear();
            self.quarantine();
            let record = &self.stored.record;
            let fence = record.fence.as_ref().map(|fence| fence.id.to_string()).unwrap_or_default();
            let span =
                tracing::info_span!("node", node = %record.node, fence, generation = record.generation.0);
            let orphan = self.orphan.clone();
            let done = async {
                if let Some(why) = orphan {
                    return Box::pin(self.orphaned(&why)).await;
                }
                if self.doubt.is_some() && Box::pin(self.store_doubt()).await? {
                    return Ok(());
                }
                Box::pin(self.show_if_still_off()).await?;
                // Each in a box of its own: a node at rest, and nearly all are, has no room for the phases that it is not in.
                match self.stored.record.phase.clone() {
                    _ if self.stored.record.is_undecided() => Box::pin(self.restored()).await,
                    Phase::Normal => Box::pin(self.normal()).await,
                    Phase::Fencing => Box::pin(self.fencing()).await,
                    Phase::Fenced => Box::pin(self.releasing()).await,
                    Phase::Released => Box::pin(self.released()).await,
                    Phase::Unfencing => Box::pin(self.unfencing()).await,
                    Phase::PowerOnFailed => Box::pin(self.power_on_failed()).await,
                    Phase::NeedsOperator(reason) => Box::pin(self.needs_operator(reason)).await,
                    Phase::Retired => Box::pin(self.retired()).await,
                }
            }
            .instrument(span)
            .await;
            if let Err(fatal) = done {
                return Gone::Fatal(fatal.0);
            }
            self.set_wait(None);
        }
    }

    /// What is stored before anything else is done.
    async fn take_up(&mut self) -> Result<(), Fatal> {
        self.store_sessions().await?;
        self.mark_unknown().await?;
        self.adopt().await
    }

    fn now(&self) -> BootTime {
        self.parts.clock.boot()
    }

    fn wall(&self) -> WallTime {
        self.parts.clock.wall()
    }

    fn record(&self) -> &NodeRecord {
        &self.stored.record
    }

    fn mint_fence(&self) -> FenceId {
        let mut random = [0; 10];
        (self.parts.random)(&mut random);
        FenceId::mint(self.wall(), random)
    }
}

/// Sleeps until a moment of the boot-time clock, as the runtime's clock runs.
pub(crate) async fn sleep_until(now: BootTime, until: BootTime) {
    tokio::time::sleep(until.since(now)).await;
}
