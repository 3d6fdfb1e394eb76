//! Who asked, for people: by name in what tells of it, and by the number wherever it counts.

use std::sync::Arc;

use picket_audit::{Audit, Options};
use picket_proto::v1::{FenceView, GetFenceRequest, GetNodeRequest};
use picket_server::Limits;
use serde_json::Value;

use crate::lab::{fence_request, lab_with, named, s};

#[tokio::test(start_paused = true)]
async fn a_caller_of_this_machine_has_a_name_and_counts_by_its_number() {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("audit");
    let options = Options {
        directory: directory.clone(),
        rotate: 1 << 20,
        keep: s(86_400),
        most: u64::MAX,
        fsync: false,
    };
    let (audit, writer) = Audit::open(options, Arc::new(|| 7)).expect("opened");
    let lab = lab_with(Limits::default(), audit).await;
    let request = picket_proto::v1::FenceRequest { holder: String::new(), ..fence_request("k") };
    let all = lab.open(request).await.expect("let in").all().await;

    let user = rustix::process::geteuid().as_raw();
    let number = format!("uid:{user}");
    // Whoever logged in stands before it, where somebody did; without an account there is no name.
    let name = picket_permissions::account(user);
    let is_shown = |shown: &str| match &name {
        Some(name) => shown == name || shown.ends_with(&format!(" as {name}")),
        None => shown.is_empty() || shown.ends_with(&number),
    };
    let opened = &all[0].text;
    let by = opened.strip_prefix("fence opened by ").and_then(|text| text.split_once(" for "));
    let (by, rest) = by.unwrap_or_else(|| panic!("{opened}"));
    assert!((is_shown(by) || by == number) && rest.starts_with(&number), "{opened}");

    let node = GetNodeRequest { node: named("n1"), ..Default::default() };
    let node = lab.client.clone().get_node(node).await.expect("told").into_inner().node.expect("a node");
    let hold = &node.holds[0];
    assert!(hold.by == number && hold.holder == number && is_shown(&hold.by_shown), "{hold:?}");
    let fence = GetFenceRequest { fence_id: node.fence_id, view: FenceView::Basic.into() };
    let fence = lab.client.clone().get_fence(fence).await.expect("told").into_inner().fence.expect("a fence");
    assert!(fence.askers[0].caller == number && is_shown(&fence.askers[0].caller_shown), "{fence:?}");

    drop(writer);
    let mut text = Vec::new();
    picket_audit::export(&directory, None, None, &mut text).expect("read");
    let text = String::from_utf8(text).expect("text");
    let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let asked = entries.into_iter().find(|entry| entry["details"]["call"] == "fence").expect("it was asked");
    assert_eq!(asked["who"], number.as_str());
    assert!(is_shown(asked["details"]["person"].as_str().unwrap_or_default()), "{asked}");
}
