//! Fences as they were.

use std::sync::Arc;

use picket_proto::v1::{
    Fence, FenceCause, FenceRequest, FenceView, GetFenceRequest, ListFencesRequest, NodeSet, OutcomeKind,
    node_set,
};

use picket_audit::{Audit, Options, Told, Writer};
use picket_driver_sim::{Act, Verb};
use picket_server::Limits;
use tempfile::TempDir;

use crate::lab::{Lab, fence_request, lab, lab_with, named, reason, s, wrong_fields};

async fn get(lab: &Lab, id: &str, view: FenceView) -> Result<Fence, tonic::Status> {
    let request = GetFenceRequest { fence_id: id.to_owned(), view: view.into() };
    lab.client.clone().get_fence(request).await.map(|answer| answer.into_inner().fence.expect("a fence"))
}

/// All pages, two a page.
async fn list(lab: &Lab, request: ListFencesRequest) -> Vec<Fence> {
    let mut request = ListFencesRequest { page_size: 2, ..request };
    let mut all = Vec::new();
    loop {
        let page = lab.client.clone().list_fences(request.clone()).await.expect("listed").into_inner();
        assert!(page.fences.len() <= 2);
        all.extend(page.fences);
        if page.next_page_token.is_empty() {
            return all;
        }
        request.page_token = page.next_page_token;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fence_is_told_whole() {
    let lab = lab().await;
    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    let id = all.last().expect("an end").fence_id.clone();
    lab.unfence("u").await;
    let fence = get(&lab, &id, FenceView::Unspecified).await.expect("there");
    assert_eq!((fence.node.as_str(), fence.generation, fence.off_sent), ("n1", 1, true));
    assert_eq!((fence.askers[0].holder.as_str(), fence.askers[0].reason.as_str()), ("db", "a test"));
    assert_eq!(fence.outcome.expect("an outcome").kind(), OutcomeKind::Fenced);
    assert!(fence.ended_at.is_some());
    let held = fence.evidence.as_ref().expect("it was proven").devices[0].clone();
    assert!(!held.hold.is_empty() && held.hold_detail.starts_with("put back at "), "{held:?}");
    let timings = fence.timings.expect("timings");
    let steps = [timings.off_sent, timings.off_seen, timings.confirmed, timings.released, timings.back];
    let steps: Vec<_> =
        steps.into_iter().map(|step| step.expect("it came so far")).map(|t| (t.seconds, t.nanos)).collect();
    assert!(steps.is_sorted(), "{steps:?}");
    assert!(fence.moments.len() > 5);
    let basic = get(&lab, &id, FenceView::Basic).await.expect("there");
    assert!(basic.moments.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_never_was_and_what_is_no_id_are_told_apart() {
    let lab = lab().await;
    let refused =
        get(&lab, "01890a5d-ac96-774b-bcce-b302099a8057", FenceView::Full).await.expect_err("never was");
    assert_eq!((refused.code(), reason(&refused).0.as_str()), (tonic::Code::NotFound, "FENCE_NOT_FOUND"));
    let refused = get(&lab, "x", FenceView::Full).await.expect_err("no id");
    assert_eq!(wrong_fields(&refused), ["fence_id"]);
}

#[tokio::test(start_paused = true)]
async fn the_history_comes_newest_first_in_pages_and_can_be_narrowed() {
    let lab = lab().await;
    for round in 0..3 {
        lab.fence(&format!("k{round}")).await;
        lab.unfence(&format!("u{round}")).await;
        tokio::time::sleep(s(10)).await;
    }
    let other = FenceRequest { node: named("n2"), ..fence_request("k") };
    lab.open(other).await.expect("let in").outcome().await;
    let all = list(&lab, ListFencesRequest::default()).await;
    let shape =
        |all: &[Fence]| all.iter().map(|fence| (fence.node.clone(), fence.generation)).collect::<Vec<_>>();
    let n = |node: &str, generation| (node.to_owned(), generation);
    assert_eq!(shape(&all), [n("n2", 1), n("n1", 5), n("n1", 3), n("n1", 1)]);
    let nodes = |hosts: &str| Some(NodeSet { of: Some(node_set::Of::Hosts(hosts.to_owned())) });
    let of_n1 = ListFencesRequest { nodes: nodes("n1"), ..Default::default() };
    assert_eq!(shape(&list(&lab, of_n1.clone()).await), [n("n1", 5), n("n1", 3), n("n1", 1)]);
    let open = ListFencesRequest { open_only: true, ..Default::default() };
    assert_eq!(shape(&list(&lab, open).await), [n("n2", 1)]);
    let middle = all[2].opened_at;
    let since = ListFencesRequest { opened_after: middle, ..of_n1.clone() };
    assert_eq!(shape(&list(&lab, since).await), [n("n1", 5), n("n1", 3)]);
    let until = ListFencesRequest { opened_before: middle, ..of_n1 };
    assert_eq!(shape(&list(&lab, until).await), [n("n1", 1)]);
    let aborted =
        ListFencesRequest { outcomes: vec![OutcomeKind::AbortedRecovered.into()], ..Default::default() };
    assert_eq!(shape(&list(&lab, aborted).await), []);
}

fn audit() -> (TempDir, Audit, Writer) {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("audit");
    let options = Options { directory, rotate: 1 << 20, keep: s(86_400), most: u64::MAX, fsync: false };
    let (audit, writer) = Audit::open(options, Arc::new(|| 7)).expect("opened");
    (home, audit, writer)
}

#[tokio::test(start_paused = true)]
async fn what_reaches_no_node_is_audited_once_and_then_counted() {
    let (home, audit, writer) = audit();
    let lab = lab_with(Limits::default(), audit).await;
    let unknown = FenceRequest { node: named("n9"), ..fence_request("k") };
    let unsaid = FenceRequest { reason: String::new(), ..fence_request("k") };
    for request in [unknown.clone(), unknown.clone(), unknown, unsaid] {
        assert!(lab.open(request).await.is_err());
    }
    drop(writer);
    let mut text = Vec::new();
    picket_audit::export(&home.path().join("audit"), None, None, &mut text).expect("read");
    let text = String::from_utf8(text).expect("text");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("\"outcome\":\"refused\"")).collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| line.contains("\"who\":\"uid:")), "{text}");
    assert!(
        lines[0].contains("n9") && lines[1].contains("reason") && lines[2].contains("\"more\":2"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fence_has_what_was_said_to_its_devices_from_the_audit_alone() {
    let (home, audit, _writer) = audit();
    let directory = home.path().join("audit");
    let lab = lab_with(Limits::default(), audit).await;
    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    let id = all.last().expect("an end").fence_id.clone();
    lab.unfence("u").await;
    let fence = get(&lab, &id, FenceView::Full).await.expect("there");
    let asked: Vec<&str> = fence.exchanges.iter().map(|exchange| exchange.asked.as_str()).collect();
    for wanted in ["is it on or off", "power off, hard", "power on"] {
        assert!(asked.contains(&wanted), "{wanted} is not in {asked:?}");
    }
    let off = &fence.exchanges[asked.iter().position(|asked| *asked == "power off, hard").expect("there")];
    assert_eq!((off.device.as_str(), off.answered.as_str()), ("bmc", "taken"));
    assert!(off.at.is_some() && off.took.is_some());
    assert!(fence.audit_head.is_some_and(|head| head.seq > 0));
    assert!(get(&lab, &id, FenceView::Basic).await.expect("there").exchanges.is_empty());
    // They are not in the store: with its files gone the fence is told without them.
    std::fs::remove_dir_all(directory).expect("removed");
    let fence = get(&lab, &id, FenceView::Full).await.expect("there");
    assert!(fence.exchanges.is_empty() && fence.moments.len() > 5);
}

#[tokio::test(start_paused = true)]
async fn what_was_left_out_of_a_long_fence_is_said() {
    let (_home, audit, writer) = audit();
    let lab = lab_with(Limits::default(), audit.clone()).await;
    let all = lab.open(fence_request("k")).await.expect("let in").all().await;
    let id = all.last().expect("an end").fence_id.clone();
    assert!(!get(&lab, &id, FenceView::Full).await.expect("there").exchanges_cut);
    let at = lab.engine.clock().wall().millis();
    for _ in 0..2_000 {
        let details = serde_json::json!({ "device": "bmc", "asked": "power", "answered": "off" });
        let (what, fence) = ("exchange".to_owned(), Some(id.clone()));
        audit.tell(Told { at, what, fence, details, ..Told::default() });
        // The queue of the audit is bounded, and its writer a thread of its own.
        audit.flush();
    }
    let fence = get(&lab, &id, FenceView::Full).await.expect("there");
    assert!(fence.exchanges.len() == 2_000 && fence.exchanges_cut, "{}", fence.exchanges.len());
    drop(writer);
}

#[tokio::test(start_paused = true)]
async fn nobody_asked_for_the_fence_after_a_breach() {
    let lab = lab().await;
    lab.fence("k").await;
    lab.happen(Act::Foreign { machine: "n1".to_owned(), verb: Verb::On });
    lab.reach("fencing").await;
    lab.reach("released").await;
    let fences = list(&lab, ListFencesRequest::default()).await;
    let causes: Vec<_> = fences.iter().map(|fence| (fence.cause(), fence.askers.len())).collect();
    assert_eq!(causes, [(FenceCause::Breach, 0), (FenceCause::Asked, 1)]);

    // Who asks for it later is named, also where they held the node before.
    tokio::time::sleep(s(5)).await;
    let web = FenceRequest { holder: "web".to_owned(), ..fence_request("w") };
    lab.open(web).await.expect("let in").outcome().await;
    let fences = list(&lab, ListFencesRequest::default()).await;
    let askers: Vec<_> = fences[0].askers.iter().map(|asker| asker.holder.as_str()).collect();
    assert_eq!(askers, ["web"]);
}
