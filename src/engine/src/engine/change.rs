//! Other settings while the gateway works: all of them, or none.
//!
//! # Invariants
//!
//! - What a node's task did for a plan has ended, its sessions too, before the next plan's task begins.
//!   Shown by `what_was_sent_through_drivers_that_were_replaced_is_waited_out`.
//! - A node that is not at rest, and waits for no person, goes on by its old plan and rules until it is at
//!   rest or waits. Shown by `a_node_that_is_not_at_rest_takes_other_rules_and_releases_once_it_is_back`.
//! - A change that would take away a node that is not at rest, or put its devices elsewhere, is refused as
//!   a whole. Shown by `what_would_take_a_fenced_node_away_is_refused_as_a_whole`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, FuturesUnordered};
use futures::{StreamExt, TryStreamExt};
use picket_core::budget::Budget;
use picket_core::ids::NodeId;
use picket_core::record::{NodeRecord, Phase};
use picket_core::roles::Roles;
use picket_core::rules::Rules;
use picket_core::store::{StoreError, Stored};
use tokio::sync::oneshot;

use super::fleet::never_stored;
use super::{Engine, Reign};
use crate::node::Command;
use crate::parts::{NodePlan, Parts};

/// How long a node's task may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Records of new nodes that are read side by side.
const SIDE_BY_SIDE: usize = 16;

/// What the settings say now.
#[derive(Debug)]
pub struct Change {
    /// The whole fleet.
    pub nodes: Vec<NodePlan>,
    /// The numbers of the rules.
    pub rules: Rules,
    /// How much may be fenced.
    pub budget: Budget,
    /// Who may what, of those whose requests wait.
    pub roles: Roles,
}

/// What a change did to the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Nodes that are new.
    pub added: Vec<NodeId>,
    /// Nodes that left.
    pub removed: Vec<NodeId>,
    /// Nodes with other settings, from now on.
    pub changed: Vec<NodeId>,
    /// Nodes with other settings or rules that are being fenced, kept off or brought back: once they are back, or wait for a person.
    pub later: Vec<NodeId>,
    /// The rules differ.
    pub rules: bool,
    /// The budget differs.
    pub budget: bool,
}

/// Why a change was refused. Nothing was changed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ChangeError {
    /// Nodes that are not at rest would leave, or their devices would be elsewhere.
    #[error("{}", .0.join("\n"))]
    Busy(Vec<String>),
    /// This gateway does not lead, and cannot read what is stored: what is open is not known.
    #[error("what is open is not known just now ({0}), so nothing is changed")]
    NoLeader(String),
    /// The records of new nodes cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) type Asked = (Change, oneshot::Sender<Result<Changed, ChangeError>>);

/// What a change comes to, before anything is changed.
pub(super) struct Draft {
    plans: BTreeMap<NodeId, Arc<NodePlan>>,
    parts: Arc<Parts>,
    budget: Budget,
    roles: Roles,
    pub(super) wishes: BTreeMap<NodeId, Wish>,
    /// What is stored of the nodes that are new.
    pub(super) begin: Vec<Arc<Stored>>,
    changed: Changed,
}

/// What a change asks of one node.
pub(super) enum Wish {
    Leave,
    Move(String),
    Change,
    Rules,
}

/// How settings that were refused for a node come to hold: whatever was opened with its devices ends with them.
fn way_on(id: &NodeId, record: &NodeRecord) -> String {
    let by_a_person = format!(
        "picket stand-down {id} where it runs, or picket retire {id} where its hardware is gone, after picket abandon of each release \
         that was begun; then reload the new settings"
    );
    match record.phase {
        Phase::Fencing => format!(
            "put back what was there of it, and reload; where that was wrong, its fence waits for a person at its deadline: then {by_a_person}"
        ),
        Phase::NeedsOperator(_) | Phase::PowerOnFailed => {
            format!("put back what was there of it, or {by_a_person}")
        }
        Phase::Normal | Phase::Retired => {
            format!("wait until what was sent to it has ended, as picket status {id} shows, and reload")
        }
        _ => format!("put back what was there of it until it is back: picket unfence {id}"),
    }
}

/// A change that is done: whoever asked for it is told so also where an end of the leadership cuts off what is left to do.
struct Done {
    reply: Option<oneshot::Sender<Result<Changed, ChangeError>>>,
    changed: Changed,
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(Ok(std::mem::take(&mut self.changed)));
        }
    }
}

impl Engine {
    /// Changes fleet and rules, all or nothing; one change after the other.
    ///
    /// # Errors
    /// It is refused as a whole, and everything goes on as before.
    pub async fn change(&self, change: Change) -> Result<Changed, ChangeError> {
        if !self.is_at_work() {
            return Err(ChangeError::NoLeader("it stops".to_owned()));
        }
        let gone = || ChangeError::NoLeader("leadership ended meanwhile".to_owned());
        let (reply, answer) = oneshot::channel();
        self.shared.asks.send((change, reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// Tells what became of the settings that were read anew: why they were refused, before or by [`Engine::change`]; `None`: they were taken.
    /// A retry says so.
    pub fn note_reload(&self, refused: Option<&str>) {
        self.shared.office.note_reload(refused);
    }

    /// That the settings which were read last were refused for the sake of this node, and why. `None`: they were not, or not for it.
    pub fn refused_settings_of(&self, node: &NodeId) -> Option<String> {
        let refused = self.shared.office.refused_settings()?;
        let begins = format!("{node} cannot ");
        let lines =
            refused.lines().map(|line| line.rsplit_once("were refused: ").map_or(line, |(_, why)| why));
        lines.into_iter().find(|line| line.starts_with(&begins)).map(str::to_owned)
    }

    /// Does a change within a leadership. The outer error ends the leadership.
    pub(super) async fn do_change(&self, asked: Asked, reign: &mut Reign) -> Result<(), StoreError> {
        let (change, reply) = asked;
        let (changed, leaving) = match self.decide(change, reign).await {
            Ok(done) => done,
            Err(refused) => {
                let _ = reply.send(Err(refused));
                return Ok(());
            }
        };
        let done = Done { reply: Some(reply), changed };
        self.wake(&done.changed).await;
        self.wait_for_leaving(leaving, reign).await
    }

    async fn decide(
        &self,
        change: Change,
        reign: &mut Reign,
    ) -> Result<(Changed, BTreeSet<NodeId>), ChangeError> {
        let draft = self.draft(change).await?;
        let found = self.step_aside(&draft.wishes).await;
        let begin = draft.begin.clone();
        let (changed, leaving) = self.settle(draft, &found)?;
        self.seat_all(begin, reign);
        Ok((changed, leaving))
    }

    /// What a change comes to. Changes nothing.
    pub(super) async fn draft(&self, change: Change) -> Result<Draft, ChangeError> {
        let (budget, roles) = (change.budget.clone(), change.roles.clone());
        let (plans, parts) = self.merged(change);
        let rules = !Arc::ptr_eq(&parts, &self.fleet().parts);
        let new: Vec<NodeId> =
            plans.keys().filter(|id| !self.fleet().slots.contains_key(*id)).cloned().collect();
        let store = &self.shared.parts.store;
        let known = async |id: &NodeId| {
            let known = store.load(id).await?;
            Ok::<_, StoreError>(Arc::new(known.unwrap_or_else(|| never_stored(id))))
        };
        let begin = stream::iter(&new).map(known).buffered(SIDE_BY_SIDE).try_collect().await?;
        let changed = Changed {
            rules,
            budget: budget != self.shared.office.budget(),
            added: new,
            ..Changed::default()
        };
        let wishes = self.wishes(&plans, rules);
        Ok(Draft { plans, parts, budget, roles, wishes, begin, changed })
    }

    /// Takes a change as a whole, or refuses it: with the record of each node of which it wants something, and whether that is
    /// an orphan. Returns the nodes that are worked by another plan from now on, or not at all.
    pub(super) fn settle(
        &self,
        draft: Draft,
        found: &BTreeMap<NodeId, (NodeRecord, bool)>,
    ) -> Result<(Changed, BTreeSet<NodeId>), ChangeError> {
        let Draft { plans, parts, budget, roles, wishes, begin, mut changed } = draft;
        let mut leaving = BTreeSet::new();
        let mut busy = Vec::new();
        for (id, wish) in wishes {
            let Some((record, is_orphan)) = found.get(&id) else {
                busy.push(format!("{id}: its task does not answer; is the store away?"));
                continue;
            };
            match wish {
                // One whose devices are where its fence had them is none any more.
                Wish::Change if *is_orphan => {
                    leaving.insert(id.clone());
                    changed.changed.push(id);
                }
                _ if *is_orphan => drop(leaving.insert(id)),
                Wish::Leave if !record.is_at_rest() => {
                    let what = format!("{id} cannot leave the settings");
                    busy.push(format!("{what}: it is {}; {}", record.unrest(), way_on(&id, record)));
                }
                Wish::Move(how) if !record.is_at_rest() => {
                    let what = format!("{id} cannot have its devices elsewhere ({how})");
                    busy.push(format!("{what}: it is {}; {}", record.unrest(), way_on(&id, record)));
                }
                _ if !record.takes_other_settings() => changed.later.push(id),
                Wish::Leave => {
                    leaving.insert(id.clone());
                    changed.removed.push(id);
                }
                Wish::Move(_) | Wish::Change => {
                    leaving.insert(id.clone());
                    changed.changed.push(id);
                }
                Wish::Rules => drop(leaving.insert(id)),
            }
        }
        if !busy.is_empty() {
            return Err(ChangeError::Busy(busy));
        }
        self.shared.office.change(budget, roles, &plans);
        begin.iter().for_each(|stored| self.shared.office.take_in(&stored.record));
        self.fleet_mut().change(plans, parts);
        Ok((changed, leaving))
    }

    /// What is the same stays what it is, with its drivers and sessions.
    fn merged(&self, change: Change) -> (BTreeMap<NodeId, Arc<NodePlan>>, Arc<Parts>) {
        let fleet = self.fleet();
        let plans = change.nodes.into_iter().map(|plan| {
            let old = fleet.plans.get(&plan.id).filter(|old| old.mark == plan.mark);
            (plan.id.clone(), old.cloned().unwrap_or_else(|| Arc::new(plan)))
        });
        let parts = if fleet.parts.rules == change.rules {
            fleet.parts.clone()
        } else {
            Arc::new(Parts { rules: change.rules, ..(*fleet.parts).clone() })
        };
        (plans.collect(), parts)
    }

    fn wishes(&self, plans: &BTreeMap<NodeId, Arc<NodePlan>>, rules: bool) -> BTreeMap<NodeId, Wish> {
        let fleet = self.fleet();
        let wish = |(id, slot): (&NodeId, &Arc<super::fleet::Slot>)| {
            let wish = match plans.get(id) {
                None => Wish::Leave,
                Some(plan) if Arc::ptr_eq(plan, &slot.plan) => {
                    if !rules {
                        return None;
                    }
                    Wish::Rules
                }
                Some(plan) => match slot.plan.topology.elsewhere(&plan.topology) {
                    Some(how) => Wish::Move(how),
                    None => Wish::Change,
                },
            };
            Some((id.clone(), wish))
        };
        fleet.slots.iter().filter_map(wish).collect()
    }

    /// Asks the nodes' tasks to step aside, side by side. Who is at rest does so at once, an orphan too; the others once
    /// they are at rest. Returns the records of those that answered, and whether each is an orphan.
    async fn step_aside(&self, wishes: &BTreeMap<NodeId, Wish>) -> BTreeMap<NodeId, (NodeRecord, bool)> {
        let mut asking = FuturesUnordered::new();
        for (id, wish) in wishes {
            let Ok(slot) = self.slot(id) else { continue };
            let plan_goes = !matches!(wish, Wish::Rules);
            let id = id.clone();
            asking.push(async move {
                let (reply, answer) = oneshot::channel();
                slot.mailbox.send_first(Command::StepAside { plan_goes, reply });
                Some((id, (answer.await.ok()?, slot.orphan.is_some())))
            });
        }
        let mut found = BTreeMap::new();
        let _ = tokio::time::timeout(PATIENCE, async {
            while let Some(one) = asking.next().await {
                found.extend(one);
            }
        })
        .await;
        found
    }

    /// Until the tasks that stepped aside have ended and their nodes are worked by the new plans.
    async fn wait_for_leaving(
        &self,
        mut leaving: BTreeSet<NodeId>,
        reign: &mut Reign,
    ) -> Result<(), StoreError> {
        let all = async {
            while !leaving.is_empty() {
                let Some(ended) = reign.tasks.join_next().await else { return Ok(()) };
                if let Ok(ended) = &ended {
                    leaving.remove(&ended.node);
                }
                self.ended(ended, reign)?;
            }
            Ok(())
        };
        // What takes longer is gone on with as it ends.
        tokio::time::timeout(PATIENCE, all).await.unwrap_or(Ok(()))
    }

    /// Whoever watches the fleet looks again.
    pub(super) async fn wake(&self, changed: &Changed) {
        let Ok(revision) = self.shared.parts.store.revision().await else { return };
        for id in changed.added.iter().chain(&changed.removed).chain(&changed.changed) {
            let _ = self.shared.feed.send((revision, id.clone()));
        }
    }
}
