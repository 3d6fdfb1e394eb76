//! From host lists to nodes: the gateway expands them, so that both mean the same.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_proto::v1::{ListNodesRequest, Node, NodeSelector, NodeSet, Served, node_selector, node_set};

use crate::duration::{of_wire, words};
use crate::fault::Fault;
use crate::session::Session;

/// Nodes a page.
const PAGE: i32 = 500;

/// The selector of one node by its name.
pub fn selector(name: &str) -> NodeSelector {
    NodeSelector { by: Some(node_selector::By::Name(name.to_owned())) }
}

/// What host lists select; nothing of none, which means all nodes.
pub fn set(hosts: &[String]) -> Option<NodeSet> {
    (!hosts.is_empty()).then(|| NodeSet { of: Some(node_set::Of::Hosts(hosts.join(","))) })
}

/// What is told by a gateway that does not lead, in words.
fn second_hand(served: &Served) -> Option<String> {
    if served.leads {
        return None;
    }
    let age = served.age.as_ref().map(|age| words(of_wire(age))).unwrap_or_default();
    Some(format!(
        "told by {}, which does not lead: {} does. Read from the store {age} ago; readings of power are known to the leader",
        served.gateway, served.leader
    ))
}

/// How old what a gateway tells is: of one that follows and does not say, any age.
fn age_of(served: &Served) -> Duration {
    if served.leads { Duration::ZERO } else { served.age.as_ref().map_or(Duration::MAX, of_wire) }
}

/// All pages of a list of nodes, the revision of the first, and what should be known of who tells it.
pub async fn list(
    session: &Session<'_>,
    request: ListNodesRequest,
) -> Result<(Vec<Node>, String, Vec<String>), Fault> {
    let listed = list_aged(session, request).await?;
    Ok((listed.nodes, listed.revision, listed.troubles))
}

/// A list of nodes, and how old it may be.
pub struct NodeList {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The revision of the first page.
    pub revision: String,
    /// What should be known of who tells it.
    pub troubles: Vec<String>,
    /// How old the oldest page was when it was told; zero where who leads told all of them.
    pub age: Duration,
}

/// The same, with its age.
pub async fn list_aged(session: &Session<'_>, mut request: ListNodesRequest) -> Result<NodeList, Fault> {
    let (mut nodes, mut revision, mut age) = (Vec::new(), None, Duration::ZERO);
    let mut troubles = Vec::new();
    request.page_size = PAGE;
    loop {
        let mut client = session.client.clone();
        let answer = session.asked(client.list_nodes(request.clone())).await?.into_inner();
        if revision.is_none() {
            troubles = answer
                .troubles
                .iter()
                .map(|trouble| format!("the gateway has a trouble: {trouble}"))
                .collect();
            troubles.extend(answer.served.as_ref().and_then(second_hand));
        }
        age = age.max(answer.served.as_ref().map(age_of).unwrap_or_default());
        revision.get_or_insert(answer.revision);
        nodes.extend(answer.nodes);
        if answer.next_page_token.is_empty() {
            return Ok(NodeList { nodes, revision: revision.unwrap_or_default(), troubles, age });
        }
        if answer.next_page_token == request.page_token {
            return Err(Fault::Nonsense("the same page follows itself"));
        }
        request.page_token = answer.next_page_token;
    }
}

/// The nodes that host lists name, in their order, each once. One that is not known fails all, before anything is sent.
pub async fn resolve(session: &Session<'_>, hosts: &[String]) -> Result<Vec<Node>, Fault> {
    let request = ListNodesRequest { nodes: set(hosts), ..Default::default() };
    let (mut nodes, _, _) = list(session, request).await?;
    let mut seen = BTreeSet::new();
    nodes.retain(|node| seen.insert(node.name.clone()));
    if nodes.is_empty() {
        return Err(Fault::Nonsense("the host list selects no node"));
    }
    Ok(nodes)
}

/// Their names.
pub fn names(nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(|node| node.name.clone()).collect()
}
