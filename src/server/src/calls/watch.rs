//! WatchNodes: the present, then every change.
//!
//! # Invariants
//!
//! - What is told is read from the store's list of changes. The engine's feed only wakes the watch, so that
//!   falling behind loses nothing. Shown by `a_watch_that_fell_behind_looks_at_each_node_when_it_is_read`,
//!   `a_watch_goes_on_from_its_revision_and_misses_nothing`.
//! - A revision is given out only when every change up to it was told.
//! - A node is looked at when it is the next to be told: a caller who does not read costs no more than the
//!   names. Shown by `a_node_is_looked_at_when_it_is_read_and_not_when_the_watch_begins`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, stream};
use picket_core::budget::Bar;
use picket_core::groups::Groups;
use picket_core::ids::{NodeId, Revision};
use picket_engine::NodeView;
use picket_proto::v1::{self, watch_nodes_response::Event};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::FencingHandlers;
use crate::admission::{AuthenticatedCaller, Slot};
use crate::errors;
use crate::fault::{Fault, Fields};
use crate::revision::Position;
use crate::select::NodeSetTarget;

/// A sign of life comes at least so often.
const SIGN: Duration = Duration::from_secs(60);
/// While nodes are told one after the other the brake is looked at so often.
const BRAKED: Duration = Duration::from_secs(1);

/// What is to be told next.
#[derive(Debug)]
enum Due {
    /// A node as it is then; of the present, or because of that change.
    Node(NodeId, Option<Revision>),
    /// A node as it is then, since something besides the store changed.
    Shown(NodeId),
    /// Anything else.
    Event(Box<v1::WatchNodesResponse>),
}

/// One watch.
#[derive(Debug)]
struct Watch {
    handlers: FencingHandlers,
    wanted: NodeSetTarget,
    members: BTreeSet<NodeId>,
    /// The groups by which the members were found: with other settings there are others.
    groups: Arc<Groups>,
    feed: broadcast::Receiver<(Revision, NodeId)>,
    /// What is told besides the store's changes: readiness.
    shown: broadcast::Receiver<NodeId>,
    at: Position,
    told: BTreeMap<NodeId, Revision>,
    queue: VecDeque<Due>,
    sign_at: Instant,
    /// The brake as it was found, and when.
    brake: Option<(Instant, Option<Bar>)>,
    over: bool,
    _slot: Slot,
}

impl FencingHandlers {
    /// Begins a watch.
    pub(crate) async fn watch(
        &self,
        caller: AuthenticatedCaller,
        request: v1::WatchNodesRequest,
    ) -> Result<impl Stream<Item = Result<v1::WatchNodesResponse, Status>> + Send + use<>, Status> {
        let mut fields = Fields::default();
        let wanted = NodeSetTarget::of(request.nodes.as_ref(), "nodes", &mut fields);
        let resumed = match request.revision.as_str() {
            "" => None,
            text => Position::of(text, "revision", &mut fields),
        };
        fields.done()?;
        let Some(wanted) = wanted else { return Err(errors::internal("a set was lost").into()) };
        self.tells()?;
        let groups = self.engine.groups();
        let members = wanted.members(self)?;
        // First the feed, so that what changes from here on wakes the watch.
        let (feed, shown) = (self.engine.feed(), self.engine.shown());
        if let Some(position) = resumed {
            position.is_known(&self.engine).await?;
        }
        let at = match resumed {
            Some(position) => position,
            None => Position::settled(&self.engine).await.map_err(errors::asked)?,
        };
        let mut watch = Watch {
            handlers: self.clone(),
            wanted,
            members: members.iter().cloned().collect(),
            groups,
            feed,
            shown,
            at,
            told: BTreeMap::new(),
            queue: VecDeque::new(),
            sign_at: Instant::now() + SIGN,
            brake: None,
            over: false,
            _slot: caller.slot,
        };
        if resumed.is_none() {
            watch.present(members);
        }
        Ok(stream::unfold(watch, |mut watch| async move { watch.next().await.map(|event| (event, watch)) }))
    }
}

impl Watch {
    /// The nodes as they are. Nobody can go on from within the present: only its end has a revision.
    fn present(&mut self, members: Vec<NodeId>) {
        self.queue.extend(members.into_iter().map(|member| Due::Node(member, None)));
        self.synced();
    }

    /// A node as it is now, unless it was told as it is since that change.
    fn look(
        &mut self,
        node: NodeId,
        change: Option<Revision>,
    ) -> Result<Option<v1::WatchNodesResponse>, Fault> {
        if change.is_some_and(|change| self.told.get(&node).is_some_and(|told| *told >= change)) {
            return Ok(None);
        }
        self.handlers.tells()?;
        if !self.may_tell_of(&node) {
            return Ok(self.leaves(&node).then(|| self.removed(&node)));
        }
        // One that has left the settings since is told of by its own change.
        let Ok(view) = self.handlers.engine.node(&node) else { return Ok(None) };
        self.told.insert(node, view.stored.revision);
        let at = change.map(|revision| Position { revision, ..self.at }.text());
        let event = Some(Event::Node(self.under_brake(&view)));
        Ok(Some(v1::WatchNodesResponse { revision: at.unwrap_or_default(), event }))
    }

    /// A node as it is now, whatever was told of it. Whoever may not look at it any more is told so with the next change.
    fn look_again(&mut self, node: &NodeId) -> Result<Option<v1::WatchNodesResponse>, Fault> {
        self.handlers.tells()?;
        let view = self.handlers.engine.node(node).ok().filter(|_| self.may_tell_of(node));
        Ok(view.map(|view| {
            let event = Some(Event::Node(self.under_brake(&view)));
            v1::WatchNodesResponse { revision: self.at.text(), event }
        }))
    }

    /// A node under the brake, which is found by looking at the whole fleet: of many that are told one after the other now and then.
    fn under_brake(&mut self, view: &NodeView) -> v1::Node {
        let now = Instant::now();
        if self.brake.as_ref().is_none_or(|(at, _)| now - *at > BRAKED) {
            self.brake = Some((now, self.handlers.engine.braked()));
        }
        self.handlers.node_under(view, self.brake.as_ref().and_then(|(_, brake)| brake.as_ref()))
    }

    /// Whether the caller may be told of that node still. Its labels may differ since it was found, and the roles go by these.
    fn may_tell_of(&self, node: &NodeId) -> bool {
        self.handlers.sees(node)
    }

    /// The caller is told nothing of that node any more. False: it was told nothing before.
    fn leaves(&mut self, node: &NodeId) -> bool {
        self.told.remove(node);
        self.members.remove(node)
    }

    fn removed(&self, node: &NodeId) -> v1::WatchNodesResponse {
        v1::WatchNodesResponse { revision: self.at.text(), event: Some(Event::Removed(node.to_string())) }
    }

    fn synced(&mut self) {
        let served = self.handlers.served().ok();
        self.tell(Event::Synced(v1::WatchSynced { served }));
        self.sign_at = Instant::now() + SIGN;
    }

    fn tell(&mut self, event: Event) {
        let event = v1::WatchNodesResponse { revision: self.at.text(), event: Some(event) };
        self.queue.push_back(Due::Event(Box::new(event)));
    }

    async fn next(&mut self) -> Option<Result<v1::WatchNodesResponse, Status>> {
        loop {
            if self.over {
                return None;
            }
            let looked = match self.queue.pop_front() {
                Some(Due::Event(event)) => return Some(Ok(*event)),
                Some(Due::Node(node, change)) => Some(self.look(node, change)),
                Some(Due::Shown(node)) => Some(self.look_again(&node)),
                None => None,
            };
            match looked {
                Some(Ok(Some(event))) => return Some(Ok(event)),
                Some(Ok(None)) => continue,
                Some(Err(fault)) => return Some(Err(self.broken(fault))),
                None => {}
            }
            self.brake = None;
            if let Err(fault) = self.catch_up().await {
                return Some(Err(self.broken(fault)));
            }
            if self.queue.is_empty()
                && let Err(fault) = self.wait().await
            {
                return Some(Err(self.broken(fault)));
            }
        }
    }

    fn broken(&mut self, fault: Fault) -> Status {
        self.over = true;
        fault.status()
    }

    /// Tells what changed since; what is stored and not shown yet has to wait for its turn.
    async fn catch_up(&mut self) -> Result<(), Fault> {
        self.take_new_settings()?;
        let changes = self.handlers.engine.changed_since(self.at.revision).await.map_err(errors::asked)?;
        for (revision, node) in changes {
            let Ok(view) = self.handlers.engine.node(&node) else {
                // It stands in the store and not in the settings any more.
                self.at.revision = revision;
                if matches!(self.wanted, NodeSetTarget::All) && self.handlers.sees_all() {
                    self.tell(Event::Removed(node.to_string()));
                }
                continue;
            };
            if view.stored.revision < revision {
                return Ok(());
            }
            self.at.revision = revision;
            if self.members.contains(&node) {
                self.queue.push_back(Due::Node(node, Some(revision)));
            }
        }
        Ok(())
    }

    /// After a reload there may be other nodes: those that came are told, and those that went.
    fn take_new_settings(&mut self) -> Result<(), Fault> {
        let groups = self.handlers.engine.groups();
        if Arc::ptr_eq(&groups, &self.groups) {
            return Ok(());
        }
        self.groups = groups;
        if let NodeSetTarget::Names(_) | NodeSetTarget::One(_) = self.wanted {
            let is_gone = |id: &&NodeId| self.handlers.engine.node(id).is_err() || !self.may_tell_of(id);
            let gone: Vec<NodeId> = self.members.iter().filter(is_gone).cloned().collect();
            for id in gone {
                self.leaves(&id);
                self.tell(Event::Removed(id.to_string()));
            }
            return Ok(());
        }
        let now: BTreeSet<NodeId> = self.wanted.members(&self.handlers)?.into_iter().collect();
        for gone in self.members.difference(&now).cloned().collect::<Vec<_>>() {
            self.told.remove(&gone);
            self.tell(Event::Removed(gone.to_string()));
        }
        for new in now.difference(&self.members).cloned().collect::<Vec<_>>() {
            self.queue.push_back(Due::Node(new, Some(self.at.revision)));
        }
        self.members = now;
        Ok(())
    }

    async fn wait(&mut self) -> Result<(), Fault> {
        tokio::select! {
            biased;
            woken = self.feed.recv() => match woken {
                Ok(_) | Err(RecvError::Lagged(_)) => {
                    // One look at the store answers all that woke it.
                    while !matches!(self.feed.try_recv(), Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed)) {}
                    Ok(())
                }
                Err(RecvError::Closed) => Err(errors::shutting_down()),
            },
            shown = self.shown.recv() => {
                match shown {
                    Ok(node) => self.queue.extend(self.members.get(&node).cloned().map(Due::Shown)),
                    // Which they were is not known: all of them are told as they are.
                    Err(RecvError::Lagged(_)) => {
                        self.queue.extend(self.members.iter().cloned().map(Due::Shown));
                    }
                    Err(RecvError::Closed) => return Err(errors::shutting_down()),
                }
                Ok(())
            }
            () = self.handlers.stop.cancelled() => Err(errors::shutting_down()),
            () = sleep_until(self.sign_at) => {
                self.synced();
                Ok(())
            }
        }
    }
}
