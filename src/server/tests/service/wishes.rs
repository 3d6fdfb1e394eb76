//! Holds, attestation, retirement, exchanged boards, checks and drills over the wire.

use picket_audit::Audit;
use picket_core::budget::Budget;
use picket_core::roles::Role;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_proto::v1::watch_nodes_response::Event;
use picket_proto::v1::{
    AcceptIdentityRequest, AttestRequest, CheckDevicesRequest, CheckDevicesResponse, DeviceProblemKind,
    DrillRequest, DrillResponse, DropHoldRequest, FenceCause, GetFenceRequest, HoldRequest, IdentityMatch,
    Node, NodeSet, OutcomeKind, Phase, Readiness, RetireRequest, WatchNodesRequest, drill_request, node_set,
};
use picket_server::Limits;
use tokio_stream::StreamExt;
use tonic::{Code, Status};

use crate::lab::{
    Lab, Updates, fence_request, kind, lab, lab_of, named, reason, s, unfence_request, wrong_fields,
};
use crate::roles::{mine, side};

async fn hold(lab: &Lab, holder: &str, why: &str) -> Result<Node, Status> {
    let request = HoldRequest {
        node: named("n1"),
        holder: holder.to_owned(),
        reason: why.to_owned(),
        ..Default::default()
    };
    Ok(lab.client.clone().hold(request).await?.into_inner().node.expect("a node"))
}

async fn drop_hold(lab: &Lab, holder: &str) -> Result<Node, Status> {
    let request = DropHoldRequest {
        node: named("n1"),
        holder: holder.to_owned(),
        reason: "a test".to_owned(),
        ..Default::default()
    };
    Ok(lab.client.clone().drop_hold(request).await?.into_inner().node.expect("a node"))
}

async fn retire(lab: &Lab) -> Result<Node, Status> {
    let request =
        RetireRequest { node: named("n1"), reason: "it burned".to_owned(), expected_generation: None };
    Ok(lab.client.clone().retire(request).await?.into_inner().node.expect("a node"))
}

fn holders(node: &Node) -> Vec<(&str, &str)> {
    node.holds.iter().map(|hold| (hold.holder.as_str(), hold.reason.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hold_keeps_off_what_is_off_and_is_dropped_by_its_name() {
    let lab = lab().await;
    let (word, metadata) = reason(&hold(&lab, "ops", "why").await.expect_err("nothing is to be kept off"));
    assert_eq!((word.as_str(), metadata["phase"].as_str()), ("WRONG_PHASE", "NORMAL"));
    lab.fence("k").await;
    let node = hold(&lab, "ops", "a disk").await.expect("held");
    assert_eq!(holders(&node), [("db", "a test"), ("ops", "a disk")]);
    let node = hold(&lab, "ops", "two disks").await.expect("held");
    assert_eq!(holders(&node), [("db", "a test"), ("ops", "two disks")]);
    assert_eq!(kind(&lab.unfence("u").await), OutcomeKind::StillHeld);
    let (word, metadata) = reason(&drop_hold(&lab, "oops").await.expect_err("no such hold"));
    assert_eq!((word.as_str(), metadata["holders"].as_str()), ("HOLD_NOT_FOUND", "ops"));
    assert!(!lab.is_on("n1"));
    let node = drop_hold(&lab, "ops").await.expect("dropped");
    assert_eq!(node.phase(), Phase::Unfencing, "brought back without being waited for");
    lab.reach("normal").await;
    assert!(lab.is_on("n1"));
    assert_eq!(drop_hold(&lab, "ops").await.expect("it is so already").phase(), Phase::Normal);
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_a_fence_that_was_to_end_with_the_release_lasts_once_it_is_asked_for_by_name() {
    let lab = lab().await;
    lab.volumes_only_accept(true);
    let then = picket_proto::v1::FenceThen::PowerOn.into();
    let _stream = lab.open(picket_proto::v1::FenceRequest { then, ..fence_request("k") }).await;
    lab.reach("fenced").await;
    hold(&lab, "db", "a disk, too").await.expect("held");
    lab.volumes_only_accept(false);
    lab.reach("released").await;
    tokio::time::sleep(s(60)).await;
    assert!(!lab.is_on("n1"));
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_not_allowed_or_of_another_generation_changes_nothing() {
    let lab = lab().await;
    lab.fence("k").await;
    let side = side(&lab, vec![mine(Role::Controller)], Limits::default()).await;
    let foreign = DropHoldRequest {
        node: named("n1"),
        holder: "db".to_owned(),
        reason: "a test".to_owned(),
        ..Default::default()
    };
    let refused = side.client.clone().drop_hold(foreign).await.expect_err("somebody else's");
    assert_eq!(reason(&refused).0, "HOLDER_NOT_ALLOWED");
    let foreign = HoldRequest {
        node: named("n1"),
        holder: "db".to_owned(),
        reason: "a test".to_owned(),
        ..Default::default()
    };
    let refused = side.client.clone().hold(foreign.clone()).await.expect_err("somebody else's");
    assert_eq!(reason(&refused).0, "HOLDER_NOT_ALLOWED");
    let stale = HoldRequest { expected_generation: Some(9), ..foreign };
    let refused = lab.client.clone().hold(stale).await.expect_err("another generation");
    assert_eq!(reason(&refused).0, "GENERATION_MISMATCH");
    let refused = lab.client.clone().hold(HoldRequest { node: named("n1"), ..Default::default() }).await;
    assert_eq!(wrong_fields(&refused.expect_err("no reason")), ["reason"]);
}

fn attest(generation: Option<u64>) -> AttestRequest {
    AttestRequest {
        node: named("n1"),
        reason: "I pulled the plug".to_owned(),
        idempotency_key: "a".to_owned(),
        expected_generation: generation,
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_with_the_role_vouches_and_follows_the_releases() {
    let lab = lab().await;
    let side = side(&lab, vec![mine(Role::Attest), mine(Role::Viewer)], Limits::default()).await;
    let vouch = async |generation| -> Result<Updates, Status> {
        let stream = side.client.clone().attest(attest(generation)).await?.into_inner();
        Ok(Updates::of(stream, |answer| answer.update))
    };
    let word = |came: Result<Updates, Status>| reason(&came.err().expect("refused"));
    assert_eq!(word(vouch(Some(0)).await).0, "WRONG_PHASE", "it is not fenced");
    lab.fault("n1-bmc", Fault::OffIgnored);
    assert_eq!(kind(&lab.fence("k").await), OutcomeKind::NeedsOperator);
    let (word_, metadata) = word(vouch(Some(1)).await);
    assert_eq!(
        (word_.as_str(), metadata["device"].as_str(), metadata["said"].as_str()),
        ("HOST_READS_ON", "bmc", "on")
    );
    assert_eq!(wrong_fields(&vouch(None).await.err().expect("refused")), ["expected_generation"]);
    assert_eq!(word(vouch(Some(7)).await).0, "GENERATION_MISMATCH");
    lab.happen(Act::LoseMains { machine: "n1".to_owned() });
    tokio::time::sleep(s(5)).await;
    let outcome = vouch(Some(1)).await.expect("let in").outcome().await;
    assert_eq!((outcome.kind(), outcome.released), (OutcomeKind::Fenced, true));
    assert!(outcome.detail.contains("attested"), "{}", outcome.detail);
    // The same key again, and then after the fence has ended.
    assert_eq!(kind(&vouch(Some(1)).await.expect("let in").outcome().await), OutcomeKind::Fenced);
    lab.mend("n1-bmc");
    lab.happen(Act::RestoreMains { machine: "n1".to_owned() });
    drop(lab.back(unfence_request("u")).await.expect("let in"));
    lab.reach("normal").await;
    let again = vouch(Some(1)).await.expect("let in").outcome().await;
    assert_eq!(again.kind(), OutcomeKind::Superseded, "never fenced: the node is on");
    assert!(lab.is_on("n1"));
    // Whoever reaches the gateway without roles may not vouch.
    let refused = lab.client.clone().attest(attest(Some(1))).await.expect_err("no role");
    assert_eq!(reason(&refused).0, "ROLE_MISSING");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_retired_once_its_volumes_are_free_and_is_a_node_no_more() {
    let lab = lab().await;
    let (word, _) = reason(&retire(&lab).await.expect_err("it is not fenced"));
    assert_eq!(word, "WRONG_PHASE");
    lab.volumes_only_accept(true);
    let stream = lab.open(fence_request("k")).await.expect("let in");
    lab.reach("fenced").await;
    let (word, metadata) = reason(&retire(&lab).await.expect_err("its volumes are not let go"));
    assert_eq!((word.as_str(), metadata["releases"].as_str()), ("NOT_RELEASED", "detach"));
    lab.volumes_only_accept(false);
    assert_eq!(kind(&stream.outcome().await), OutcomeKind::Fenced);
    let node = retire(&lab).await.expect("retired");
    assert_eq!((node.phase(), node.holds.len(), node.fence_id.as_str()), (Phase::Retired, 0, ""));
    assert_eq!(node.retired.expect("said").reason, "it burned");
    let refused = lab.open(fence_request("k2")).await.err().expect("refused");
    assert_eq!(reason(&refused).1["phase"], "RETIRED");
    let refused = drop_hold(&lab, "db").await.expect_err("nothing is held");
    assert_eq!(reason(&refused).0, "WRONG_PHASE");
    assert_eq!(reason(&retire(&lab).await.expect_err("once is enough")).0, "WRONG_PHASE");
    let again = lab.open(fence_request("k")).await.expect("let in").outcome().await;
    assert_eq!(again.superseded.map(|had| had.kind()), Some(OutcomeKind::Retired));
    assert!(!lab.is_on("n1"), "nothing switched it on");
}

fn accept(uuid: &str) -> AcceptIdentityRequest {
    AcceptIdentityRequest {
        node: named("n10"),
        device: "bmc".to_owned(),
        reason: "a new board".to_owned(),
        uuid: uuid.to_owned(),
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_exchanged_board_is_accepted_as_what_it_says_and_is_expected_to_say() {
    let lab = lab().await;
    let said = lab.world.lock().identity("n10").clone();
    let uuid = said.uuid.clone().expect("it has one");
    let mut client = lab.client.clone();
    let refused =
        client.accept_identity(accept("00112233445566778899aabbccddeeff")).await.expect_err("another");
    assert_eq!(wrong_fields(&refused), ["uuid"]);
    assert!(refused.message().contains(&uuid), "{}", refused.message());
    let node = client.accept_identity(accept(&uuid)).await.expect("accepted").into_inner().node;
    let device = node.expect("a node").devices.remove(0);
    assert_eq!(device.expected_identity.clone().expect("known").uuid, uuid);
    assert_eq!(device.identity_match(), IdentityMatch::Learned, "a person read it off the device");
    let other = AcceptIdentityRequest { device: "bcm".to_owned(), ..accept("") };
    let (word, metadata) = reason(&client.accept_identity(other).await.expect_err("no such device"));
    assert_eq!((word.as_str(), metadata["devices"].as_str()), ("DEVICE_NOT_FOUND", "bmc"));
    let of_settings = AcceptIdentityRequest { node: named("n1"), ..accept("") };
    let refused = client.accept_identity(of_settings.clone()).await.expect_err("the settings say it");
    assert!(refused.message().contains("change `identity` there"), "{}", refused.message());
    lab.fault("n10-bmc", Fault::Silent);
    let refused = client.accept_identity(accept("")).await.expect_err("no answer");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (Code::DeadlineExceeded, "TOO_SLOW"));
    lab.mend("n10-bmc");
    lab.fault("n10-bmc", Fault::WrongPassword);
    tokio::time::sleep(s(90)).await;
    let (word, metadata) = reason(&client.accept_identity(accept("")).await.expect_err("no way in"));
    assert_eq!((word.as_str(), metadata["problem"].as_str()), ("DEVICE_FAILED", "AUTHENTICATION"));
}

async fn check(lab: &Lab, request: CheckDevicesRequest) -> Result<Vec<CheckDevicesResponse>, Status> {
    let mut stream = lab.client.clone().check_devices(request).await?.into_inner();
    let mut all = Vec::new();
    while let Some(told) = stream.next().await {
        all.push(told?);
    }
    Ok(all)
}

#[tokio::test(start_paused = true)]
async fn a_check_tells_each_device_with_what_is_wrong_and_changes_nothing() {
    let lab = lab().await;
    lab.fault("n2-bmc", Fault::WrongPassword);
    lab.fault("n10-bmc", Fault::HoldUnsupported);
    let told = check(&lab, CheckDevicesRequest::default()).await.expect("told");
    assert_eq!(told.len(), 4);
    assert_eq!(told.iter().map(|one| one.left).collect::<Vec<_>>(), [3, 2, 1, 0]);
    let of = |name: &str| {
        let one = told.iter().find(|one| one.node == name).expect("told");
        let device = one.device.clone().expect("a device");
        let problems: Vec<_> = device.problems.iter().map(|problem| problem.kind()).collect();
        (device.readiness(), problems)
    };
    assert_eq!(of("n1"), (Readiness::Ready, vec![]));
    assert_eq!(of("n2"), (Readiness::NotReady, vec![DeviceProblemKind::Authentication]));
    let learned = DeviceProblemKind::IdentityLearned;
    assert_eq!(of("n10"), (Readiness::Degraded, vec![learned, DeviceProblemKind::NoHold]));
    // Its session is left to end by idleness: what restarts under it is seen by a fence that comes before that.
    tokio::time::sleep(s(120)).await;
    let now = lab.clock.boot();
    let received = lab.world.lock().received("n1-bmc", now);
    assert_eq!((received.offs, received.ons, received.opens), (0, 0, 1));
    assert_eq!(lab.world.lock().sessions("n1-bmc", now), 0, "no session is left");
    let refused = check(&lab, CheckDevicesRequest { device: "pdu".to_owned(), nodes: None }).await;
    let (word, metadata) = reason(&refused.expect_err("no such device"));
    assert_eq!((word.as_str(), metadata["devices"].as_str()), ("DEVICE_NOT_FOUND", "bmc"));
}

#[tokio::test(start_paused = true)]
async fn a_device_that_is_found_unready_is_told_to_whoever_watches() {
    let lab = lab().await;
    let nodes = Some(NodeSet { of: Some(node_set::Of::Hosts("n1".to_owned())) });
    let mut watch = lab
        .client
        .clone()
        .watch_nodes(WatchNodesRequest { nodes, ..Default::default() })
        .await
        .expect("let in")
        .into_inner();
    let mut next = async || loop {
        let told = watch.next().await.expect("a message").expect("no error");
        if let Some(Event::Node(node)) = told.event {
            return node.readiness();
        }
    };
    assert_eq!(next().await, Readiness::Unspecified);
    assert_eq!(next().await, Readiness::Ready, "checked by itself");
    lab.fault("n1-bmc", Fault::Silent);
    assert_eq!(next().await, Readiness::NotReady);
    lab.mend("n1-bmc");
    assert_eq!(next().await, Readiness::Ready);
}

async fn drill(
    lab: &Lab,
    target: drill_request::Target,
    key: &str,
    dry_run: bool,
) -> Result<Vec<DrillResponse>, Status> {
    let request = DrillRequest {
        target: Some(target),
        reason: "a test".to_owned(),
        idempotency_key: key.to_owned(),
        dry_run,
    };
    let mut stream = lab.client.clone().drill(request).await?.into_inner();
    let mut all = Vec::new();
    while let Some(told) = stream.next().await {
        all.push(told?);
    }
    Ok(all)
}

fn node_target(name: &str) -> drill_request::Target {
    drill_request::Target::Node(named(name).expect("a selector"))
}

fn ended(told: &[DrillResponse]) -> (String, OutcomeKind) {
    let last = told.last().expect("an end").update.clone().expect("an update");
    (last.node, last.outcome.expect("an outcome").kind())
}

#[tokio::test(start_paused = true)]
async fn a_drill_fences_and_brings_back_the_node_of_a_group_that_was_drilled_least_lately() {
    let lab = lab().await;
    let group = || drill_request::Target::Group("rack=r1".to_owned());
    let plan = drill(&lab, group(), "", true).await.expect("planned");
    assert_eq!(ended(&plan), ("n1".to_owned(), OutcomeKind::DryRun));
    assert!(lab.is_on("n1") && plan[0].findings.iter().any(|one| one == "release detach would be made"));
    let told = drill(&lab, group(), "d1", false).await.expect("drilled");
    assert_eq!(ended(&told), ("n1".to_owned(), OutcomeKind::Unfenced));
    let findings = &told.last().expect("an end").findings;
    assert!(findings.iter().any(|one| one == "off by bmc, and back"), "{findings:?}");
    let fence_id = told[0].update.clone().expect("an update").fence_id;
    let fence = lab.client.clone().get_fence(GetFenceRequest { fence_id, view: 0 }).await.expect("kept");
    let fence = fence.into_inner().fence.expect("a fence");
    assert_eq!(fence.cause(), FenceCause::Drill);
    assert!(lab.is_on("n1"));
    // Asked again with the same key nothing is done twice; with another one the next node is.
    assert_eq!(
        ended(&drill(&lab, group(), "d1", false).await.expect("told")),
        ("n1".to_owned(), OutcomeKind::Unfenced)
    );
    assert_eq!(ended(&drill(&lab, group(), "d2", false).await.expect("drilled")).0, "n2");
    assert_eq!(ended(&drill(&lab, group(), "d3", false).await.expect("drilled")).0, "n1", "n10 allows none");
}

#[tokio::test(start_paused = true)]
async fn a_drill_wants_leave_a_node_of_which_nothing_is_wrong_and_a_machine_that_runs() {
    let lab = lab().await;
    let refused = drill(&lab, node_target("n10"), "", false).await.expect_err("the settings allow none");
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains("drills = true"), "{}", refused.message());
    let told = drill(&lab, node_target("me"), "", false).await.expect("told");
    assert_eq!(ended(&told).1, OutcomeKind::Blocked);
    lab.happen(Act::Foreign { machine: "n2".to_owned(), verb: Verb::Off });
    let refused = drill(&lab, node_target("n2"), "", false).await.expect_err("it is off");
    assert_eq!(reason(&refused).0, "DEVICE_FAILED");
    lab.fence("k").await;
    for dry_run in [true, false] {
        let refused = drill(&lab, node_target("n1"), "", dry_run).await.expect_err("it is fenced");
        assert_eq!(reason(&refused).1["wanted"], "NORMAL");
    }
    let refused = drill(&lab, drill_request::Target::Group("rack=r2".to_owned()), "", false).await;
    assert_eq!(reason(&refused.expect_err("no such group")).0, "GROUP_NOT_FOUND");
}

/// A node that may not be drilled yet is none of those of which the one is taken that was drilled least lately: it would be
/// taken, and refused, for ever.
#[tokio::test(start_paused = true)]
async fn a_node_whose_wiring_must_be_drilled_first_does_not_keep_its_group_from_drills() {
    let nodes = ["n1unwired", "n2"];
    let lab = lab_of(&nodes, Limits::default(), Audit::none(), Budget::unlimited()).await;
    let refused = drill(&lab, node_target("n1unwired"), "", false).await.expect_err("it has volumes");
    assert!(refused.message().contains("nobody knows yet what outlet feed"), "{}", refused.message());
    let group = || drill_request::Target::Group("rack=r1".to_owned());
    let told = drill(&lab, group(), "", false).await.expect("the other one is drilled");
    assert_eq!(ended(&told), ("n2".to_owned(), OutcomeKind::Unfenced));
}

/// A drill asks no liveness source (what it fences is alive), and its plan says no less.
#[tokio::test(start_paused = true)]
async fn the_plan_of_a_drill_is_not_aborted_by_a_node_that_is_alive() {
    let lab = lab_of(&["n1alive"], Limits::default(), Audit::none(), Budget::unlimited()).await;
    let plan = drill(&lab, node_target("n1alive"), "", true).await.expect("planned");
    let told = drill(&lab, node_target("n1alive"), "", false).await.expect("drilled");
    assert_eq!(ended(&told).1, OutcomeKind::Unfenced, "it is drilled");
    assert_eq!(ended(&plan).1, OutcomeKind::DryRun, "{plan:?}");
}
