//! A remediation whose machine is gone for good: how the gateway calls that, and that the finalizer goes.

use picket_core::ids::NodeId;
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{self, Fence, ListFencesRequest, NodeSelector, NodeSet, node_selector, node_set};

use crate::decider::RemediationRequest;
use crate::fence_request::FenceRequester;
use crate::hold_release::{HoldReleaseResult, KeepReason, answered, is_asked_by, is_of, known};
use crate::remediation::{FinalizerState, keep};
use crate::settings::Select;

/// So many seconds the clocks of the API server and of a gateway may differ.
const CLOCKS: i64 = 60;

/// Takes the finalizer away of one that is deleted while its Node is not Ready, or is gone, where a person has retired the machine: what kept it off
/// went with that (S16). What its status alone says of how the gateway calls it is believed once the gateway shows it, too.
///
/// # Errors
/// Nobody answered, and the finalizer stays. That the gateway knows no such node is no word of its machine.
pub async fn retired(
    requester: &FenceRequester,
    remediation: &RemediationRequest,
) -> Result<HoldReleaseResult, KeepReason> {
    let named = gateway_node(requester.settings.select, remediation);
    let Some(name) = named.clone().or_else(|| told(remediation)) else {
        return Ok(HoldReleaseResult::NotRetired(None));
    };
    let select = node_selector::By::Name(name.clone());
    let known = known(requester, &select).await.map_err(KeepReason::Unknown)?;
    let fences = match named {
        Some(_) => None,
        None => Some(fences(requester, select).await.map_err(KeepReason::Unknown)?),
    };
    let found = found(&known, fences.as_deref(), &name, remediation, &requester.settings.holder);
    if found == HoldReleaseResult::Gone {
        let kept = keep(&requester.api, &remediation.id, FinalizerState::NotAnyMore).await;
        kept.map_err(|fault| KeepReason::Unknown(fault.to_string()))?;
    }
    Ok(found)
}

/// What is to come of it. `fences`: those by which the gateway has to show that its node is meant; `None`: that is known.
fn found(
    known: &v1::Node,
    fences: Option<&[Fence]>,
    name: &str,
    remediation: &RemediationRequest,
    holder: &str,
) -> HoldReleaseResult {
    if fences.is_some_and(|fences| !is_shown(known, fences, name, remediation, holder)) {
        return HoldReleaseResult::NotRetired(None);
    }
    match is_retired(known, name, remediation, holder) {
        true => HoldReleaseResult::Gone,
        // Of one that our own selection names the gateway was not asked what it shows.
        false => HoldReleaseResult::NotRetired(fences.map(|_| name.to_owned())),
    }
}

/// Why one that is deleted stands.
pub const NOT_READY: &str = "it is deleted, and its Node is not Ready";
/// Why one that is deleted stands where neither its metadata nor its Node names a key.
pub const HEARSAY: &str = "it is deleted, and nothing but its status says that it has asked for a fence";

/// As the gateway calls the node of a remediation: as our own selection does, or as the gateway has shown; `None`: that is not known.
pub fn gateway_node(select: Select, remediation: &RemediationRequest) -> Option<String> {
    let name = match select {
        Select::Name => Some(remediation.node.as_str()),
        Select::ProviderId | Select::SystemUuid => remediation.state.gateway_node.as_deref(),
    };
    // It stands in a command for people, which takes lists.
    name.filter(|name| NodeId::new(name).is_ok()).map(str::to_owned)
}

/// What a status says of that, which others may write.
fn told(remediation: &RemediationRequest) -> Option<String> {
    remediation.status_claim.gateway_node.clone().filter(|name| NodeId::new(name).is_ok())
}

/// Whether the gateway shows that this remediation has asked for a fence of the node of that name: by a hold that stands, or in its history. An
/// earlier remediation of the same name is another one.
fn is_shown(
    known: &v1::Node,
    fences: &[Fence],
    name: &str,
    remediation: &RemediationRequest,
    holder: &str,
) -> bool {
    let is_later = |at: Option<&prost_types::Timestamp>| {
        at.zip(remediation.created).is_some_and(|(at, created)| at.seconds.saturating_add(CLOCKS) >= created)
    };
    let holds = known.holds.iter().filter(|_| known.name == name);
    let mut holds = holds.filter(|hold| is_later(hold.since.as_ref()));
    let fences = fences.iter().filter(|fence| fence.node == name && is_later(fence.opened_at.as_ref()));
    let mut askers = fences.flat_map(|fence| &fence.askers);
    holds.any(|hold| is_of(hold, remediation, holder))
        || askers.any(|requester| is_asked_by(&requester.holder, &requester.reason, remediation, holder))
}

/// The last fences of that node.
async fn fences(requester: &FenceRequester, select: node_selector::By) -> Result<Vec<Fence>, String> {
    let node = NodeSelector { by: Some(select) };
    let nodes = Some(NodeSet { of: Some(node_set::Of::Node(node)) });
    let request =
        ListFencesRequest { nodes, view: v1::FenceView::Basic as i32, ..ListFencesRequest::default() };
    let mut client = FencingServiceClient::new(requester.gateways.clone());
    match answered(client.list_fences(request)).await? {
        Ok(told) => Ok(told.into_inner().fences),
        Err(status) => Err(format!("the gateway does not tell its fences: {}", status.message())),
    }
}

/// Whether that machine is gone for good by a person's word, and nothing of this remediation's keeps it off.
fn is_retired(known: &v1::Node, name: &str, remediation: &RemediationRequest, holder: &str) -> bool {
    let is_held = known.holds.iter().any(|hold| is_of(hold, remediation, holder));
    known.phase() == v1::Phase::Retired && known.name == name && !is_held
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::Hold;
    use serde_json::json;

    use super::*;
    use crate::remediation::read;

    fn made(status: &serde_json::Value) -> RemediationRequest {
        let seen = serde_json::from_value(json!({
            "apiVersion": "picket.dev/v1alpha1",
            "kind": "PicketRemediation",
            "metadata": { "name": "n1", "namespace": "ns" },
            "spec": {},
            "status": status,
        }));
        read(&seen.expect("a remediation"))
    }

    /// S16: a person's word alone says that a machine is gone for good.
    #[test]
    fn a_machine_is_retired_by_its_phase_and_by_nothing_else() {
        let remediation = made(&json!({ "gatewayNode": "rack1-n1" }));
        let reason = "Kubernetes: the Node n1 is to be remediated (PicketRemediation ns/n1)".to_owned();
        let ours = Hold { holder: "c".to_owned(), reason, ..Hold::default() };
        let known = |phase: i32, name: &str, holds: Vec<Hold>| {
            let known = v1::Node { phase, name: name.to_owned(), holds, ..v1::Node::default() };
            is_retired(&known, "rack1-n1", &remediation, "c")
        };
        for phase in 0..20 {
            assert_eq!(known(phase, "rack1-n1", Vec::new()), phase == v1::Phase::Retired as i32, "{phase}");
        }
        let retired = v1::Phase::Retired as i32;
        assert!(!known(retired, "n1", Vec::new()), "that is another one");
        assert!(!known(retired, "rack1-n1", vec![ours]), "it was fenced since");
        assert!(!is_retired(&v1::Node::default(), "rack1-n1", &remediation, "c"), "there is no such node");
    }

    /// S16: whoever may write a status would else have others retired, or a finalizer gone while its hold stays.
    #[test]
    fn the_gateway_s_node_is_the_one_that_is_selected_or_that_a_gateway_has_shown() {
        let named = |shown: Option<&str>| {
            let mut remediation = made(&json!({ "gatewayNode": "rack1-n1" }));
            remediation.state.gateway_node = shown.map(str::to_owned);
            remediation
        };
        for shown in [None, Some("rack2-n2")] {
            assert_eq!(gateway_node(Select::Name, &named(shown)).as_deref(), Some("n1"), "{shown:?}");
            for select in [Select::ProviderId, Select::SystemUuid] {
                assert_eq!(gateway_node(select, &named(shown)).as_deref(), shown, "{select:?}");
            }
        }
        for wrong in ["n[1-40]", "n1,n2", "n1; reboot", "--all"] {
            let forged = made(&json!({ "key": "k8s/u/b/w", "node": wrong }));
            assert_eq!(gateway_node(Select::Name, &forged).as_deref(), Some("n1"), "{wrong}");
            let odd = RemediationRequest { node: wrong.to_owned(), ..forged };
            assert_eq!(gateway_node(Select::Name, &odd), None, "{wrong}");
            assert_eq!(gateway_node(Select::SystemUuid, &named(Some(wrong))), None, "{wrong}");
        }
    }

    /// K12: a gateway shows its node by a hold or by a fence of this remediation, and of no other one.
    #[test]
    fn a_gateway_shows_its_node_by_what_this_remediation_asked_for() {
        let remediation =
            RemediationRequest { created: Some(1_000), ..made(&json!({ "gatewayNode": "rack1-n1" })) };
        let ours = "Kubernetes: the Node n1 is to be remediated (PicketRemediation ns/n1)";
        let other = "Kubernetes: the Node n9 is to be remediated (PicketRemediation ns/n9)";
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let shown = |name: &str, holder: &str, reason: &str, seconds: i64| {
            let (name, holder, reason) = (name.to_owned(), holder.to_owned(), reason.to_owned());
            let requester = v1::FenceAsker {
                holder: holder.clone(),
                reason: reason.clone(),
                ..v1::FenceAsker::default()
            };
            let fence = Fence {
                node: name.clone(),
                askers: vec![requester],
                opened_at: at(seconds),
                ..Fence::default()
            };
            let hold = Hold { holder, reason, since: at(seconds), ..Hold::default() };
            let held = v1::Node { name: name.clone(), holds: vec![hold], ..v1::Node::default() };
            let free = v1::Node { name, ..v1::Node::default() };
            [
                is_shown(&held, &[], "rack1-n1", &remediation, "c"),
                is_shown(&free, &[fence], "rack1-n1", &remediation, "c"),
            ]
        };
        assert_eq!(shown("rack1-n1", "c", ours, 1_000), [true; 2]);
        assert_eq!(shown("rack1-n1", "c", ours, 1_000 - CLOCKS), [true; 2], "clocks differ");
        assert_eq!(shown("rack1-n1", "c", ours, 999 - CLOCKS), [false; 2], "an earlier one of that name");
        assert_eq!(shown("rack1-n1", "c", other, 1_000), [false; 2], "another one has asked");
        assert_eq!(shown("rack1-n1", "d", ours, 1_000), [false; 2], "somebody else says so");
        assert_eq!(shown("rack1-n9", "c", ours, 1_000), [false; 2], "that is another node");
        let ageless = RemediationRequest { created: None, ..remediation.clone() };
        let held = v1::Node {
            name: "rack1-n1".to_owned(),
            holds: vec![Hold {
                holder: "c".to_owned(),
                reason: ours.to_owned(),
                since: at(1_000),
                ..Hold::default()
            }],
            ..v1::Node::default()
        };
        assert!(
            is_shown(&held, &[], "rack1-n1", &remediation, "c")
                && !is_shown(&held, &[], "rack1-n1", &ageless, "c")
        );
        let fence = |node: &str, reason: &str| Fence {
            node: node.to_owned(),
            askers: vec![v1::FenceAsker {
                holder: "c".to_owned(),
                reason: reason.to_owned(),
                ..v1::FenceAsker::default()
            }],
            opened_at: at(1_000),
            ..Fence::default()
        };
        // What a status says of a machine that somebody else had retired frees nothing, and is named to nobody.
        let retired =
            v1::Node { name: "rack1-n1".to_owned(), phase: v1::Phase::Retired as i32, ..v1::Node::default() };
        let come =
            |known: &v1::Node, fences: Option<&[Fence]>| found(known, fences, "rack1-n1", &remediation, "c");
        assert_eq!(come(&retired, Some(&[])), HoldReleaseResult::NotRetired(None));
        assert_eq!(come(&retired, Some(&[fence("rack1-n1", other)])), HoldReleaseResult::NotRetired(None));
        assert_eq!(come(&retired, Some(&[fence("rack1-n1", ours)])), HoldReleaseResult::Gone);
        assert_eq!(come(&retired, None), HoldReleaseResult::Gone, "our own selection names it");
        assert_eq!(
            come(&v1::Node::default(), None),
            HoldReleaseResult::NotRetired(None),
            "which the gateway does not show"
        );
        let fenced = v1::Node { phase: v1::Phase::Released as i32, ..retired.clone() };
        assert_eq!(come(&fenced, Some(&[fence("rack1-n1", other)])), HoldReleaseResult::NotRetired(None));
        let named = HoldReleaseResult::NotRetired(Some("rack1-n1".to_owned()));
        assert_eq!(come(&fenced, Some(&[fence("rack1-n1", ours)])), named);
        let evil = made(&json!({ "gatewayNode": "n[1-40]" }));
        assert_eq!((told(&evil), told(&remediation).as_deref()), (None, Some("rack1-n1")));
    }
}
