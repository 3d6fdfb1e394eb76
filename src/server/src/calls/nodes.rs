//! GetNode and ListNodes.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::ids::NodeId;
use picket_engine::NodeView;
use picket_proto::v1::{self, ErrorReason};
use tonic::Status;

use super::FencingHandlers;
use crate::convert::request::{choice, page_size};
use crate::convert::words;
use crate::errors::{self, Verb};
use crate::fault::{Fault, Fields};
use crate::page::Page;
use crate::revision::Position;
use crate::select::{NodeSetTarget, NodeTarget};

/// What a node's task may take besides its devices' calls.
const BESIDES: Duration = Duration::from_secs(2);

impl FencingHandlers {
    /// One node.
    pub(crate) async fn get_node(&self, request: v1::GetNodeRequest) -> Result<v1::GetNodeResponse, Status> {
        let mut fields = Fields::default();
        let wanted = NodeTarget::of(request.node.as_ref(), "node", &mut fields);
        fields.done()?;
        let Some(wanted) = wanted else { return Err(errors::internal("a selector was lost").into()) };
        self.tells()?;
        if request.fresh {
            self.leads()?;
        }
        let node = wanted.find(self)?;
        let settled = Position::settled(&self.engine).await.map_err(errors::asked)?;
        let view = if request.fresh { self.fresh(&node).await? } else { self.stored(&node)? };
        // Its devices took their time, and whoever asked may have for the answer before.
        self.may(&node)?;
        let served = Some(self.served()?);
        Ok(v1::GetNodeResponse { node: Some(self.node(&view)), revision: settled.text(), served })
    }

    /// A page of nodes.
    pub(crate) async fn list_nodes(
        &self,
        request: v1::ListNodesRequest,
    ) -> Result<v1::ListNodesResponse, Status> {
        let mut fields = Fields::default();
        let wanted = NodeSetTarget::of(request.nodes.as_ref(), "nodes", &mut fields);
        let phases: Vec<v1::Phase> =
            request.phases.iter().map(|phase| choice("phases", *phase, &mut fields)).collect();
        let size = page_size(request.page_size, &mut fields);
        let list = v1::ListNodesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
        let page = Page::of(&request.page_token, &list, &mut fields);
        fields.done()?;
        let Some(wanted) = wanted else { return Err(errors::internal("a set was lost").into()) };
        self.tells()?;
        if request.fresh {
            self.leads()?;
        }

        let members = wanted.members(self)?;
        let settled = Position::settled(&self.engine).await.map_err(errors::asked)?;
        let revision = if page.after.is_some() { page.shared.clone() } else { settled.text() };
        let fits =
            |view: &NodeView| phases.is_empty() || phases.contains(&words::phase(&view.stored.record.phase));
        // Where the page before ended is found among all members: a node may have changed its phase since.
        let ended = page.after.and_then(|after| members.iter().position(|member| member.as_str() == after));
        let begin = ended.map_or(0, |at| at + 1);
        let (mut views, mut total, mut more) = (Vec::new(), 0, false);
        for (index, member) in members.iter().enumerate() {
            // A large fleet keeps what fences on this thread waiting for no longer than a few nodes take.
            if index % 64 == 63 {
                tokio::task::yield_now().await;
            }
            let is_next = index >= begin && views.len() < size;
            // Of what is counted alone nothing has to be known, unless a phase is asked for.
            let view = (is_next || !phases.is_empty()).then(|| self.stored(member)).transpose()?;
            if view.as_ref().is_some_and(|view| !fits(view)) {
                continue;
            }
            total += 1;
            more |= index >= begin && !is_next;
            views.extend(view.filter(|_| is_next));
        }
        if request.fresh {
            views = self.all_fresh(views).await?;
            views.retain(|view| self.sees(&view.plan.id));
        }
        let last = views.last().filter(|_| more).map(|view| view.plan.id.to_string());
        let brake = self.engine.braked();
        Ok(v1::ListNodesResponse {
            nodes: views.iter().map(|view| self.node_under(view, brake.as_ref())).collect(),
            next_page_token: last.map(|last| page_token(&list, &revision, &last)).unwrap_or_default(),
            revision,
            total_size: total,
            troubles: self.troubles(),
            served: Some(self.served()?),
        })
    }

    /// What is wrong with this gateway and stops no fence.
    fn troubles(&self) -> Vec<String> {
        let audit = self.engine.audit().state();
        let failing = audit.failing.map(|why| {
            format!(
                "the audit cannot be written: {why}; entries lost since the gateway began: {}",
                audit.lost
            )
        });
        failing.into_iter().collect()
    }

    async fn all_fresh(&self, views: Vec<NodeView>) -> Result<Vec<NodeView>, Fault> {
        let asked = views
            .into_iter()
            .enumerate()
            .map(|(index, view)| async move { self.fresh(&view.plan.id).await.map(|view| (index, view)) });
        let mut asked: FuturesUnordered<_> = asked.collect();
        let mut fresh = Vec::new();
        while let Some(answer) = asked.next().await {
            fresh.push(answer?);
        }
        fresh.sort_by_key(|(index, _)| *index);
        Ok(fresh.into_iter().map(|(_, view)| view).collect())
    }

    /// A node whose devices were asked just now.
    async fn fresh(&self, node: &NodeId) -> Result<NodeView, Fault> {
        let devices =
            self.view(node)?.plan.topology.devices().map(|spec| spec.call).max().unwrap_or_default();
        // Identity and power are asked one after the other by devices that take one question at a time.
        let limit = devices * 2 + BESIDES;
        match tokio::time::timeout(limit, self.engine.check(node)).await {
            Ok(Ok(view)) => {
                self.leads()?;
                Ok(view)
            }
            Ok(Err(error)) => Err(errors::engine(error, Verb::Look, node, &self.engine)),
            Err(_) => Err(Fault::new(
                ErrorReason::TooSlow,
                format!(
                    "the devices of {node} did not answer within {limit:?}; ask without `fresh` for what is known"
                ),
            )),
        }
    }
}

fn page_token(list: &v1::ListNodesRequest, revision: &str, last: &str) -> String {
    Page::of("", list, &mut Fields::default()).next(revision, last)
}
