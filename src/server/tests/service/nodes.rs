//! GetNode and ListNodes.

use picket_driver_sim::Fault;
use picket_proto::v1::{
    DeviceProblemKind, GetNodeRequest, IdentityMatch, ListNodesRequest, ListNodesResponse, Node, NodeSet,
    Phase, Power, Readiness, ReleaseStage, node_set,
};

use crate::lab::{Lab, fence_request, lab, named, reason, wrong_fields};

async fn list(lab: &Lab, request: ListNodesRequest) -> Result<ListNodesResponse, tonic::Status> {
    lab.client.clone().list_nodes(request).await.map(tonic::Response::into_inner)
}

async fn get(lab: &Lab, name: &str, fresh: bool) -> Node {
    let request = GetNodeRequest { node: named(name), fresh };
    lab.client.clone().get_node(request).await.expect("found").into_inner().node.expect("a node")
}

fn names(answer: &ListNodesResponse) -> Vec<&str> {
    answer.nodes.iter().map(|node| node.name.as_str()).collect()
}

fn hosts(list: &str) -> Option<NodeSet> {
    Some(NodeSet { of: Some(node_set::Of::Hosts(list.to_owned())) })
}

#[tokio::test(start_paused = true)]
async fn nodes_come_in_the_order_of_their_numbers_or_of_the_host_list() {
    let lab = lab().await;
    let all = list(&lab, ListNodesRequest::default()).await.expect("listed");
    assert_eq!((names(&all), all.total_size), (vec!["me", "n1", "n2", "n10"], 4));
    let some =
        list(&lab, ListNodesRequest { nodes: hosts("n[10,1]"), ..Default::default() }).await.expect("listed");
    assert_eq!(names(&some), ["n10", "n1"]);
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_and_belong_to_their_list() {
    let lab = lab().await;
    let mut seen = Vec::new();
    let mut request = ListNodesRequest { page_size: 3, ..Default::default() };
    let mut revisions = Vec::new();
    loop {
        let page = list(&lab, request.clone()).await.expect("listed");
        seen.extend(page.nodes.iter().map(|node| node.name.clone()));
        revisions.push(page.revision);
        assert_eq!(page.total_size, 4);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
        // What changes in between does not disturb the pages.
        lab.open(fence_request("k")).await.expect("let in").update().await;
    }
    assert_eq!(seen, ["me", "n1", "n2", "n10"]);
    assert_eq!(revisions.len(), 2);
    assert_eq!(revisions[0], revisions[1]);
    let other = ListNodesRequest { nodes: hosts("n1"), ..request };
    assert_eq!(wrong_fields(&list(&lab, other).await.expect_err("another list")), ["page_token"]);
}

#[tokio::test(start_paused = true)]
async fn phases_select_and_wrong_ones_are_told() {
    let lab = lab().await;
    lab.fence("k").await;
    let released = ListNodesRequest { phases: vec![Phase::Released.into()], ..Default::default() };
    let answer = list(&lab, released).await.expect("listed");
    assert_eq!((names(&answer), answer.total_size), (vec!["n1"], 1));
    let wrong =
        ListNodesRequest { phases: vec![4711], page_size: -1, nodes: hosts("n["), ..Default::default() };
    let refused = list(&lab, wrong).await.expect_err("wrong");
    assert_eq!(wrong_fields(&refused), ["nodes.hosts", "phases", "page_size"]);
    let unknown = list(&lab, ListNodesRequest { nodes: hosts("n1,x[1-20]"), ..Default::default() }).await;
    let refused = unknown.expect_err("unknown");
    assert_eq!(reason(&refused).0, "NODE_NOT_FOUND");
    assert!(
        refused.message().contains("x1, x2") && refused.message().contains("12 more"),
        "{}",
        refused.message()
    );
    let group = NodeSet { of: Some(node_set::Of::Group("rack1".to_owned())) };
    let refused = list(&lab, ListNodesRequest { nodes: Some(group), ..Default::default() })
        .await
        .expect_err("no group");
    assert_eq!(reason(&refused).0, "GROUP_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn the_nodes_of_a_group_are_listed_and_say_so() {
    let lab = lab().await;
    let of = |group: &str| {
        let nodes = NodeSet { of: Some(node_set::Of::Group(group.to_owned())) };
        ListNodesRequest { nodes: Some(nodes), ..Default::default() }
    };
    let answer = list(&lab, of("rack=r1")).await.expect("listed");
    assert_eq!(names(&answer), ["n1", "n2", "n10"]);
    assert!(answer.nodes.iter().all(|node| node.groups == ["rack=r1"]));
    assert_eq!(get(&lab, "me", false).await.groups, [""; 0]);
    let refused = list(&lab, of("rack=r2")).await.expect_err("no such group");
    let (word, metadata) = reason(&refused);
    assert_eq!((word.as_str(), metadata["near"].as_str()), ("GROUP_NOT_FOUND", "rack=r1"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_never_asked_is_unknown_and_a_fresh_one_is_known() {
    let lab = lab().await;
    let stale = get(&lab, "n10", false).await;
    let power = stale.power.expect("a power");
    assert_eq!((power.power(), power.asked_at, power.age), (Power::Unknown, None, None));
    assert_eq!(
        (stale.readiness(), stale.phase(), stale.phase_since),
        (Readiness::Unspecified, Phase::Normal, None)
    );

    let fresh = get(&lab, "n10", true).await;
    assert_eq!(fresh.power.expect("a power").power(), Power::On);
    assert_eq!(fresh.readiness(), Readiness::Degraded, "nobody else says whose it is");
    let device = &fresh.devices[0];
    assert_eq!((device.driver.as_str(), device.address.as_str(), device.level), ("sim", "n10-bmc", 1));
    // It was learned by this check.
    assert_eq!(device.identity_match(), IdentityMatch::Learned);
    let identity = lab.world.lock().identity("n10").clone();
    assert_eq!(fresh.identity.expect("an identity").system_uuid, identity.uuid.expect("a UUID"));
    let reading = device.reading.as_ref().expect("a reading");
    assert_eq!((reading.power(), reading.said.as_str()), (Power::On, "on"));
    assert!(reading.epoch.is_some() && reading.answered_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_device_that_does_not_answer_is_told_with_what_is_wrong() {
    let lab = lab().await;
    lab.fault("n2-bmc", Fault::Silent);
    let node = get(&lab, "n2", true).await;
    assert_eq!(
        (node.power.expect("a power").power(), node.readiness()),
        (Power::Unknown, Readiness::NotReady)
    );
    let problem = &node.devices[0].problems[0];
    assert_eq!(problem.kind(), DeviceProblemKind::TimedOut);
    lab.fault("n1-bmc", Fault::WrongPassword);
    let node = get(&lab, "n1", true).await;
    assert_eq!(node.devices[0].problems[0].kind(), DeviceProblemKind::Authentication);
    let all = list(&lab, ListNodesRequest { fresh: true, ..Default::default() }).await.expect("listed");
    let ready: Vec<_> = all.nodes.iter().map(Node::readiness).collect();
    assert_eq!(ready, [Readiness::Ready, Readiness::NotReady, Readiness::NotReady, Readiness::Degraded]);
}

#[tokio::test(start_paused = true)]
async fn a_fenced_node_shows_its_holds_its_fence_and_its_proof() {
    let lab = lab().await;
    lab.fence("k").await;
    let node = get(&lab, "n1", false).await;
    assert_eq!((node.phase(), node.generation, node.proven), (Phase::Released, 1, true));
    assert_eq!(node.holds.iter().map(|hold| hold.holder.as_str()).collect::<Vec<_>>(), ["db"]);
    assert!(!node.fence_id.is_empty() && node.phase_since.is_some() && node.fence_opened_at.is_some());
    assert_eq!(node.power.expect("a power").power(), Power::Off);
    lab.unfence("u").await;
    let node = get(&lab, "n1", false).await;
    assert_eq!((node.phase(), node.generation, node.proven), (Phase::Normal, 2, false));
    assert!(
        node.holds.is_empty()
            && node.fence_id.is_empty()
            && node.back_since.is_some()
            && node.open_effects.is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_shows_how_far_its_releases_are_and_until_when() {
    let lab = lab().await;
    assert_eq!(get(&lab, "n1", false).await.releases, []);
    lab.volumes_only_accept(true);
    let stream = lab.open(fence_request("k")).await.expect("let in");
    lab.reach("fenced").await;
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    let node = get(&lab, "n1", false).await;
    let [release] = &node.releases[..] else { panic!("{:?}", node.releases) };
    assert_eq!(
        (release.name.as_str(), release.stage(), release.attempts),
        ("detach", ReleaseStage::Accepted, 1)
    );
    assert!(release.changed_at.is_some() && !release.unfinished);
    let wait = node.wait.expect("it waits for the release");
    assert_eq!((release.due_at, wait.whose.as_str()), (wait.until, "release detach"));
    assert!(release.due_at.is_some());

    lab.volumes_only_accept(false);
    assert!(stream.outcome().await.released);
    let node = get(&lab, "n1", false).await;
    assert_eq!((node.releases[0].stage(), node.releases[0].due_at), (ReleaseStage::Complete, None));
    lab.unfence("u").await;
    assert_eq!(get(&lab, "n1", false).await.releases, [], "what was released is history now");
}
