//! GetFence and ListFences.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use picket_audit::{Bounds, Found, Window};
use picket_core::ids::{FenceId, NodeId};
use picket_core::record::Fence;
use picket_core::store::FenceQuery;
use picket_core::time::WallTime;
use picket_engine::EngineError;
use picket_proto::v1::{self, ErrorReason};
use tonic::Status;

use super::FencingHandlers;
use crate::convert::request::{choice, page_size};
use crate::convert::time::wall;
use crate::convert::{fence, outcome};
use crate::errors;
use crate::fault::{Fault, Fields};
use crate::page::Page;
use crate::select::NodeSetTarget;

/// How many fences are read from the store at once.
const BATCH: usize = 256;
/// How many fences a request looks at. Where few of them fit, the next page goes on from there.
const LOOKED_AT: usize = 8 * BATCH;
/// How many exchanges of a fence are told.
const EXCHANGES: usize = 2_000;
/// How much of the audit is read for them.
const BYTES: u64 = 256 << 20;
/// The wall clock may have been set between an entry and the next.
const EARLIER: u64 = 60_000;
/// What was under way when a fence ended is told after it.
const AFTER: Duration = Duration::from_secs(3_600);

/// Which fences a caller wants.
struct Filter {
    nodes: Option<BTreeSet<NodeId>>,
    after: Option<WallTime>,
    before: Option<WallTime>,
    open_only: bool,
    outcomes: Vec<v1::OutcomeKind>,
}

impl Filter {
    fn fits(&self, fence: &Fence) -> bool {
        let kind = || outcome::of_fence(fence).map(|outcome| outcome.kind());
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&fence.node))
            && self.after.is_none_or(|after| fence.opened_at >= after)
            && self.before.is_none_or(|before| fence.opened_at < before)
            && !(self.open_only && fence.ended_at.is_some())
            && (self.outcomes.is_empty() || kind().is_some_and(|kind| self.outcomes.contains(&kind)))
    }

    /// The one node, where it is one: then the store looks at its fences alone.
    fn only(&self) -> Option<NodeId> {
        self.nodes.as_ref().filter(|nodes| nodes.len() == 1).and_then(|nodes| nodes.first().cloned())
    }
}

impl FencingHandlers {
    /// One fence.
    pub(crate) async fn get_fence(
        &self,
        request: v1::GetFenceRequest,
    ) -> Result<v1::GetFenceResponse, Status> {
        let mut fields = Fields::default();
        let id = read_id(&request.fence_id, "fence_id", &mut fields);
        let view: v1::FenceView = choice("view", request.view, &mut fields);
        fields.done()?;
        let Some(id) = id else { return Err(errors::internal("an id was lost").into()) };
        let found = self.engine.get_fence(id).await.map_err(errors::asked)?;
        // Whoever may not look at a node is not told its name for the id of a fence.
        let hidden = found.as_ref().filter(|found| !self.knows(&found.node));
        hidden.inspect(|hidden| self.conceal(&hidden.node));
        let Some(found) = found.filter(|found| self.knows(&found.node)) else {
            let message =
                format!("there is no fence {id}: it never was, or is older than the history that is kept");
            return Err(Fault::new(ErrorReason::FenceNotFound, message)
                .resource("fence", &id.to_string())
                .into());
        };
        let full = view != v1::FenceView::Basic;
        let mut told = self.fence_of(&found, full);
        if full {
            let read = self.exchanges(&found).await;
            told.exchanges = self.hiding(read.exchanges.into_iter().map(fence::exchange).collect());
            told.exchanges_cut = read.is_cut;
        }
        Ok(v1::GetFenceResponse { fence: Some(told) })
    }

    /// What the audit has of a fence. That it cannot be read keeps nobody from the rest. Few read at once, not for ever
    /// and not for nobody: the store works on the same threads and the same disk.
    async fn exchanges(&self, found: &Fence) -> Found {
        let audit = self.engine.audit().clone();
        if !audit.is_kept() {
            return Found::default();
        }
        let to = found.ended_at.map_or(u64::MAX, |ended| ended.after(AFTER).millis());
        let window = Window { from: found.opened_at.millis().saturating_sub(EARLIER), to };
        let bounds = Bounds { window, exchanges: EXCHANGES, bytes: BYTES };
        let id = found.id.to_string();
        let Ok(turn) = self.admission.readers.clone().acquire_owned().await else { return Found::default() };
        // It goes with this future, which is dropped when the caller hangs up.
        let asker = Arc::new(());
        let wanted = Arc::downgrade(&asker);
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            audit.exchanges(&id, &bounds, || wanted.strong_count() > 0)
        });
        let read = read.await;
        drop(asker);
        match read {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => {
                tracing::warn!(fence = %found.id, %error, "the fence's exchanges cannot be read");
                Found::default()
            }
            Err(error) => {
                tracing::error!(fence = %found.id, %error, "reading the fence's exchanges broke off");
                Found::default()
            }
        }
    }

    /// A page of the history, newest first.
    pub(crate) async fn list_fences(
        &self,
        request: v1::ListFencesRequest,
    ) -> Result<v1::ListFencesResponse, Status> {
        let mut fields = Fields::default();
        let wanted = NodeSetTarget::of(request.nodes.as_ref(), "nodes", &mut fields);
        let mut moment = |at: Option<&prost_types::Timestamp>, field: &str| {
            let read = at.and_then(wall);
            if at.is_some() && read.is_none() {
                fields.wrong(field, "is no moment after 1970-01-01T00:00:00Z");
            }
            read
        };
        let after = moment(request.opened_after.as_ref(), "opened_after");
        let before = moment(request.opened_before.as_ref(), "opened_before");
        let outcomes = request.outcomes.iter().map(|kind| choice("outcomes", *kind, &mut fields)).collect();
        let view: v1::FenceView = choice("view", request.view, &mut fields);
        let size = page_size(request.page_size, &mut fields);
        let list = v1::ListFencesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
        let page = Page::of(&request.page_token, &list, &mut fields);
        let from = page.after.as_deref().and_then(|after| read_id(after, "page_token", &mut fields));
        fields.done()?;
        let nodes = match wanted {
            None | Some(NodeSetTarget::All) if self.sees_all() => None,
            None => Some(NodeSetTarget::All.members(self)?.into_iter().collect()),
            Some(wanted) => Some(wanted.members(self)?.into_iter().collect()),
        };
        let filter = Filter { nodes, after, before, open_only: request.open_only, outcomes };
        let (fences, next) = find(|query| self.engine.fences(query), &filter, from, size).await?;
        Ok(v1::ListFencesResponse {
            next_page_token: next.map(|after| page.next("", &after.to_string())).unwrap_or_default(),
            fences: fences.iter().map(|found| self.fence_of(found, view == v1::FenceView::Full)).collect(),
        })
    }

    fn fence_of(&self, found: &Fence, full: bool) -> v1::Fence {
        let view = self.engine.node(&found.node).ok().filter(|_| found.ended_at.is_none());
        self.hiding(fence::fence(found, full, view.as_ref().map(|view| &view.stored.record.holds)))
    }
}

/// So many fences that fit, and the one after which the next page begins, if there is more to look at.
async fn find<F>(
    read: impl Fn(FenceQuery) -> F,
    filter: &Filter,
    from: Option<FenceId>,
    size: usize,
) -> Result<(Vec<Fence>, Option<FenceId>), Fault>
where
    F: Future<Output = Result<Vec<Fence>, EngineError>>,
{
    let (mut found, mut before): (Vec<Fence>, _) = (Vec::new(), from);
    for _ in 0..LOOKED_AT / BATCH {
        let query = FenceQuery { node: filter.only(), before, limit: BATCH };
        let batch = read(query).await.map_err(errors::asked)?;
        let Some(oldest) = batch.last() else { return Ok((found, None)) };
        before = Some(oldest.id);
        // Ids grow with the time of opening, so that everything after this one is older still.
        let past = filter.after.is_some_and(|after| oldest.opened_at < after);
        let last = past || batch.len() < BATCH;
        for fence in batch {
            if !filter.fits(&fence) {
                continue;
            }
            if found.len() == size {
                let after = found.last().map(|last| last.id);
                return Ok((found, after));
            }
            found.push(fence);
        }
        if last {
            return Ok((found, None));
        }
    }
    // Of a long history little may fit, and one caller must not read all of it in one request.
    Ok((found, before))
}

fn read_id(text: &str, field: &str, fields: &mut Fields) -> Option<FenceId> {
    text.parse().map_err(|_| fields.wrong(field, "is no fence id: a UUID is wanted, as answers give it")).ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::follow::a_fence;

    /// So many fences of `n1`, and the oldest of all is of `n2`; newest first.
    fn history(count: u64) -> Vec<Fence> {
        let id = |at: u64| FenceId::mint(WallTime::from_millis(at), [0; 10]);
        let node = |at: u64| NodeId::new(if at == 1 { "n2" } else { "n1" }).expect("a good name");
        let fences = (1..=count).rev().map(|at| Fence { id: id(at), node: node(at), ..a_fence(1, None) });
        fences.collect()
    }

    fn filter(nodes: &[&str]) -> Filter {
        let nodes = nodes.iter().map(|name| NodeId::new(name).expect("a good name")).collect();
        Filter { nodes: Some(nodes), after: None, before: None, open_only: false, outcomes: Vec::new() }
    }

    /// S14: a caller whose nodes have few fences reads a bounded part of the others' in one request.
    #[tokio::test]
    async fn a_page_of_a_long_history_ends_where_enough_was_looked_at_and_the_next_goes_on() {
        let history = history(5_000);
        let looked = Cell::new(0);
        let read = |query: FenceQuery| {
            let older = history.iter().filter(|fence| query.before.is_none_or(|before| fence.id < before));
            let batch: Vec<Fence> = older.take(query.limit).cloned().collect();
            looked.set(looked.get() + batch.len());
            std::future::ready(Ok(batch))
        };
        let (mut pages, mut from) = (Vec::new(), None);
        loop {
            looked.set(0);
            let (found, next) = find(&read, &filter(&["n2", "n3"]), from, 100).await.expect("read");
            assert!(looked.get() <= LOOKED_AT, "{}", looked.get());
            pages.push(found.len());
            from = next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(pages, [0, 0, 1]);

        let (found, next) = find(&read, &filter(&["n1", "n3"]), None, 300).await.expect("read");
        assert_eq!((found.len(), next), (300, found.last().map(|last| last.id)), "a full page ends as ever");
    }
}
