//! A gateway that does not lead: it shows what is stored, takes other settings, and stands for election.
//!
//! # Invariants
//!
//! - Nothing is sent, and nothing is stored. Shown by `who_follows_tells_what_is_stored_and_does_nothing`.
//! - What is shown was read from the store, and how long ago is told with it. What is older than 10 s is
//!   not told as the present. Shown by `what_is_too_old_is_not_told_as_the_present`.
//! - A gateway that stops waiting for leadership resigns: the leadership may have been won meanwhile. Shown
//!   by `a_gateway_that_is_stopped_leaves_the_election`,
//!   `a_campaign_that_nobody_waits_for_leaves_nothing_behind`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use picket_core::election::{self, Digests, Known, Leadership, Member};
use picket_core::ids::{Incarnation, NodeId, Term};
use picket_core::record::{NodeRecord, Phase};
use picket_core::store::{StoreError, Stored};
use picket_core::time::{BootTime, WallTime};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::change::{Asked, Change, ChangeError, Changed};
use super::{Engine, Lead};
use crate::error::Absent;
use crate::parents::Nodes;
use crate::successors::Successors;

/// The store is looked at so often where it does not say that something changed.
const LOOK: Duration = Duration::from_secs(1);
/// A store that failed is asked again after this time.
const AGAIN: Duration = Duration::from_millis(500);
/// What was read longer ago than this is not told as the present any more.
const STALE: Duration = Duration::from_secs(10);

/// What a gateway that does not lead has seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Following {
    /// When what is shown was asked for; `None`: nothing was read yet.
    synced: Option<BootTime>,
    /// Since when the store cannot be read, and why.
    away: Option<(WallTime, String)>,
    /// Why it does not stand.
    aside: Option<String>,
    /// Of which life of the store it is.
    pub(super) life: Option<Incarnation>,
}

/// In which part this gateway answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// It leads.
    Leads(Term),
    /// Another one leads, and what is stored was read so long ago.
    Follows {
        /// Who leads.
        leader: Member,
        /// In which term.
        term: Term,
        /// The age of what is shown.
        age: Duration,
    },
}

impl Engine {
    /// In which part this gateway answers questions, or why it cannot.
    pub fn part(&self) -> Result<Part, Absent> {
        let why = match self.leading() {
            Ok(term) => return Ok(Part::Leads(term)),
            Err(why) => why,
        };
        let age = self.age();
        let absent = |why, since| Absent { why, since, age };
        let known = |since: WallTime| Some(since).filter(|since| since.millis() > 0);
        let following = self.shared.following.borrow().clone();
        let me = self.me().gateway;
        match self.shared.parts.election.known() {
            // Nobody is sent to himself: what was won is not begun yet, or what was lost not over.
            Known::Leader(leader, _) if leader.gateway == me => Err(absent(why, None)),
            Known::Leader(leader, term) => match age {
                // Also where it has just won, and does not lead yet.
                Some(age) if age <= STALE => Ok(Part::Follows { leader, term, age }),
                _ if leader.gateway == self.me().gateway => Err(absent(why, None)),
                _ => {
                    let (since, why) = following.away.map_or((None, why), |(since, why)| (Some(since), why));
                    Err(absent(
                        format!("{} leads, and the store cannot be read: {why}", leader.gateway),
                        since,
                    ))
                }
            },
            Known::Nobody(since) => Err(absent(why, known(since))),
            Known::Away(since, why) => Err(absent(why, known(since))),
        }
    }

    /// How long ago what is shown was read, where this gateway does not lead; `None`: nothing was read yet.
    pub fn age(&self) -> Option<Duration> {
        let synced = self.shared.following.borrow().synced?;
        Some(self.shared.parts.clock.boot().since(synced))
    }

    /// Whether its devices switch no real machine (S1).
    pub fn is_simulated(&self) -> bool {
        self.shared.parts.simulated
    }

    /// This gateway, as the others know it.
    pub fn me(&self) -> Member {
        self.shared.parts.election.me()
    }

    /// Who leads, as last seen. That it is this gateway, which does not lead yet or any more, helps nobody: then nobody does,
    /// since a time that is not known (zero).
    pub fn known(&self) -> Known {
        match self.shared.parts.election.known() {
            Known::Leader(leader, _) if leader.gateway == self.me().gateway && self.leading().is_err() => {
                Known::Nobody(WallTime::from_millis(0))
            }
            known => known,
        }
    }

    /// Who takes part in the election besides this gateway, by name.
    pub fn others(&self) -> Vec<Member> {
        self.shared.parts.election.others()
    }

    /// By which settings each gateway works, as last seen.
    pub fn digests(&self) -> Digests {
        self.shared.parts.election.digests()
    }

    /// How long this gateway may still send unless its lease is renewed; `None`: it does not lead, or no lease bounds it.
    pub fn permit_left(&self) -> Option<Duration> {
        match &*self.shared.lead.borrow() {
            Lead::Yes(leadership) => leadership.left(),
            Lead::No(_) => None,
        }
    }

    /// Since when the store is not heard of, or cannot be read, here; `None`: it is heard of.
    pub fn store_away_since(&self) -> Option<WallTime> {
        let unheard = match self.known() {
            // At the beginning of time: this election does not tell.
            Known::Away(since, _) if since.millis() > 0 => Some(since),
            _ => None,
        };
        let unread = match &*self.shared.lead.borrow() {
            Lead::Yes(_) => None,
            Lead::No(_) => self.shared.following.borrow().away.as_ref().map(|(since, _)| *since),
        };
        unheard.into_iter().chain(unread).min()
    }

    /// The digest of the settings by which this gateway works: who has others than the leader does not stand for election. What
    /// cannot be stored now is stored by the election as soon as it can.
    pub async fn set_fleet(&self, digest: &str) {
        if let Err(error) = self.shared.parts.election.set_fleet(digest).await {
            tracing::warn!(%error, "the digest of the settings is not stored yet");
        }
    }

    /// Why this gateway does not stand for election; `None`: it does, or leads.
    pub fn aside(&self) -> Option<String> {
        let aside = self.shared.following.borrow().aside.clone();
        aside.or_else(|| self.me().aside)
    }

    /// Waits until questions are answered here: this gateway leads, or has read what is stored.
    pub async fn until_serving(&self) {
        let (mut lead, mut following) = (self.shared.lead.subscribe(), self.shared.following.subscribe());
        let leads = async { drop(lead.wait_for(|lead| matches!(lead, Lead::Yes(_))).await) };
        let follows = async { drop(following.wait_for(|following| following.synced.is_some()).await) };
        tokio::select! {
            biased;
            () = leads => {}
            () = follows => {}
        }
    }

    /// Whether another gateway would take over if this one went.
    pub(crate) fn has_successor(&self) -> bool {
        self.successors().is_any()
    }

    fn successors(&self) -> Successors {
        Successors::of(&*self.shared.parts.election)
    }

    /// Stands for election until it is won; meanwhile what is stored is shown.
    pub(super) async fn stand(
        &self,
        asked: &mut mpsc::Receiver<Asked>,
        stop: &CancellationToken,
    ) -> Option<Result<Arc<Leadership>, StoreError>> {
        let election = self.shared.parts.election.clone();
        // What ended this gateway's own leadership may keep it from the next one.
        let why = self.why_aside();
        self.shared.following.send_modify(|following| following.aside = why);
        let mut following = self.shared.following.subscribe();
        let campaign = async {
            loop {
                // The others are told at once: nobody leaves its own host to one that does not stand.
                let why = following.borrow().aside.clone();
                election.set_aside(why.clone());
                if why.is_some() {
                    drop(following.wait_for(|following| following.aside != why).await);
                    continue;
                }
                let parts = self.fleet().parts.clone();
                tokio::select! {
                    biased;
                    won = election::lead(&*election, parts.clock.clone(), parts.rules.clock_jump) => {
                        break won.map_err(|error| StoreError::Unavailable(error.to_string()));
                    }
                    why = aside(&mut following) => {
                        tracing::warn!(why, "does not stand for election");
                        let _ = election.resign().await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            won = campaign => Some(won),
            never = self.look_on(asked) => match never {},
            () = stop.cancelled() => None,
        }
    }

    /// Shows what is stored, as it changes.
    async fn look_on(&self, asked: &mut mpsc::Receiver<Asked>) -> Infallible {
        self.forget_what_was_proven();
        let mut seen = None;
        loop {
            self.turn_away();
            let began = self.shared.parts.clock.boot();
            let pause = match self.read(seen).await {
                Ok(newest) => {
                    seen = Some(newest);
                    let aside = self.why_aside();
                    self.shared.following.send_modify(|following| {
                        following.synced = Some(began);
                        following.away = None;
                        following.aside = aside;
                    });
                    LOOK
                }
                Err(error) => {
                    if matches!(error, StoreError::Compacted(_)) {
                        // What changed since is not told any more: everything is read.
                        seen = None;
                    }
                    let now = self.shared.parts.clock.wall();
                    self.shared.following.send_modify(|following| {
                        let since = following.away.take().map_or(now, |(since, _)| since);
                        following.away = Some((since, error.to_string()));
                    });
                    AGAIN
                }
            };
            let store = self.shared.parts.store.clone();
            let changed = async {
                match seen {
                    // One that fails is looked at once the pause is over.
                    Some((_, seen)) if store.changed(seen).await.is_ok() => {}
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(asked) = asked.recv() => self.change_while_following(asked).await,
                () = changed => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// What came for a leadership that has ended is let go unanswered: whoever waits for it is told that nobody leads here.
    fn turn_away(&self) {
        let slots: Vec<_> = self.fleet().slots.values().cloned().collect();
        for slot in slots {
            if let Ok(mut kept) = slot.kept.try_lock() {
                kept.mailbox.clear();
            }
        }
        if let Ok(mut inbox) = self.shared.office.queue.inbox.try_lock() {
            while inbox.try_recv().is_ok() {}
        }
    }

    /// A proof dies with its leadership, and what was waited for is another's to wait for.
    fn forget_what_was_proven(&self) {
        for slot in self.fleet().slots.values() {
            slot.view.send_if_modified(|view| {
                let live = Arc::make_mut(&mut view.live);
                let knew = live.proven || live.wait.is_some() || !live.unannounced.is_empty();
                (live.proven, live.wait) = (false, None);
                live.unannounced.clear();
                knew
            });
        }
    }

    /// S17: who stands on a machine that is kept off, or has let others try a fence, does not stand for election while
    /// somebody else does; nor who does not know on which it stands.
    fn why_aside(&self) -> Option<String> {
        let own = &self.shared.parts.own;
        if let Some(why) = own.unknown() {
            return Some(why);
        }
        let successors = self.successors();
        if !successors.is_any() {
            return None;
        }
        let me = self.me().gateway;
        let fleet = self.fleet();
        let mut slots = fleet.slots.values();
        slots.find_map(|slot| {
            let view = slot.view.borrow();
            let record = &view.stored.record;
            let kept_off = !matches!(record.phase, Phase::Normal | Phase::Unfencing | Phase::Retired);
            let is_own = || slot.plan.own_host || own.is(&slot.plan, record, &slot.parts.twins);
            if kept_off && (is_own() || self.shared.carries_own_host(&record.node)) {
                return Some(format!("it stands on {}, which is {}", record.node, record.phase.label()));
            }
            let tried = &record.fence.as_ref().filter(|_| record.phase == Phase::Fencing)?.handed_over;
            (tried.contains(&me) && successors.is_any_beside(tried)).then(|| {
                format!("it reaches no device of {}, and another gateway has not tried yet", record.node)
            })
        })
    }

    /// Other settings, while another gateway leads: refused where they would take a node away that is not at rest. What is
    /// open is gone on with by whoever leads, and by the record's own topology.
    async fn change_while_following(&self, asked: Asked) {
        let (change, reply) = asked;
        let answer = self.decide_while_following(change).await;
        let _ = reply.send(answer);
    }

    async fn decide_while_following(&self, change: Change) -> Result<Changed, ChangeError> {
        if self.age().is_none_or(|age| age > STALE) {
            let why = self.shared.following.borrow().away.clone();
            let why = why.map_or("nothing was read from the store yet".to_owned(), |(_, why)| why);
            return Err(ChangeError::NoLeader(why));
        }
        let draft = self.draft(change).await?;
        let wanted = draft.wishes.keys();
        let found = wanted.filter_map(|id| {
            let slot = self.slot(id).ok()?;
            let record = slot.view.borrow().stored.record.clone();
            Some((id.clone(), (record, slot.orphan.is_some())))
        });
        let found: BTreeMap<NodeId, (NodeRecord, bool)> = found.collect();
        let mut seated: Vec<Arc<Stored>> = found.keys().map(|id| self.last_seen(id)).collect();
        seated.extend(draft.begin.iter().cloned());
        let (changed, _) = self.settle(draft, &found)?;
        for stored in seated {
            self.show_stored(stored, false);
        }
        self.wake(&changed).await;
        Ok(changed)
    }
}

/// Waits until there is a reason not to stand.
async fn aside(following: &mut watch::Receiver<Following>) -> String {
    drop(following.wait_for(|following| following.aside.is_some()).await);
    following.borrow().aside.clone().unwrap_or_default()
}
