//! The hold that goes with a remediation, once its Node is back.

use std::time::Duration;

use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{
    self, DropHoldRequest, ErrorReason, GetNodeRequest, GetNodeResponse, Hold, NodeSelector, node_selector,
};
use tokio::time::Instant;

use crate::decider::{Progress, RemediationRequest};
use crate::fence_request::{self, FenceRequester};
use crate::outcome::{is_passing, reason};
use crate::remediation::{FinalizerState, keep};
use crate::request;
use crate::settings::Select;
use crate::watch;

/// Where the gateway did not say that it is done, no hold counts as none before it was looked for once more, so much later: what was asked before the
/// first look has come to nothing by then.
const LOOKED_AGAIN: Duration = fence_request::LATEST.saturating_add(Duration::from_secs(5));

/// What has come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldReleaseResult {
    /// Hold and finalizer are gone.
    Gone,
    /// There is no hold yet.
    NoHold,
    /// Its machine is not retired: the gateway shows that it calls it so, or does not show how.
    NotRetired(Option<String>),
}

/// Why it stands, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// That is so.
    Said(String),
    /// Nobody answered, or what was asked for did not come about: how it is now is not known.
    Unknown(String),
}

/// Drops the hold of a Node that is Ready, then takes the finalizer away. `lives`: its kubelet is heard now; `none_since`: when its hold was first
/// not there, with nothing asked since.
///
/// # Errors
/// Why both stay.
pub async fn release_hold(
    requester: &FenceRequester,
    remediation: &RemediationRequest,
    lives: bool,
    none_since: Option<Instant>,
) -> Result<HoldReleaseResult, KeepReason> {
    let (api, name) = (&requester.api, &remediation.node);
    let Some(node) = watch::look(api, name).await.filter(crate::decider::Node::is_ready) else {
        return Err(KeepReason::Unknown("the Node is not Ready any more, or cannot be looked at".to_owned()));
    };
    // By what the machine is the gateway would tell another one's holds.
    if requester.settings.select != Select::Name {
        is_the_same(remediation, &node).map_err(KeepReason::Said)?;
    }
    let select = request::selected(&node, requester.settings.select).map_err(KeepReason::Said)?;
    let known = known(requester, &select).await.map_err(KeepReason::Unknown)?;
    if known.holds.iter().any(|hold| is_of(hold, remediation, &requester.settings.holder)) {
        has_lived_since(remediation, &node, lives).map_err(KeepReason::Said)?;
        let mut client = FencingServiceClient::new(requester.gateways.clone());
        let request = DropHoldRequest {
            node: Some(NodeSelector { by: Some(select) }),
            holder: requester.settings.holder.clone(),
            reason: format!("Kubernetes: the Node {name} is Ready, and {} is deleted", remediation.id),
            // Of the fence that was looked at, and of no later one.
            expected_generation: Some(known.generation),
        };
        match answered(client.drop_hold(request)).await.map_err(KeepReason::Unknown)? {
            Ok(_) => {}
            Err(status) if reason(&status) == Some(ErrorReason::HoldNotFound) => {}
            Err(status) => {
                let why = format!("the gateway does not drop the hold: {}", status.message());
                return Err(if is_passing(&status) {
                    KeepReason::Unknown(why)
                } else {
                    KeepReason::Said(why)
                });
            }
        }
    } else if !counts_as_none(remediation.state.progress, none_since, Instant::now()) {
        return Ok(HoldReleaseResult::NoHold);
    }
    keep(api, &remediation.id, FinalizerState::NotAnyMore)
        .await
        .map_err(|fault| KeepReason::Unknown(fault.to_string()))?;
    Ok(HoldReleaseResult::Gone)
}

/// The Node, as the gateway knows it that leads: one that follows tells what it read a while ago.
pub(crate) async fn known(
    requester: &FenceRequester,
    select: &node_selector::By,
) -> Result<v1::Node, String> {
    let mut client = FencingServiceClient::new(requester.gateways.clone());
    for fresh in [false, true] {
        let request = GetNodeRequest { node: Some(NodeSelector { by: Some(select.clone()) }), fresh };
        match answered(client.get_node(request)).await? {
            Ok(told) => {
                if let Some(node) = as_it_is(told.into_inner()) {
                    return Ok(node);
                }
            }
            Err(status) if reason(&status) == Some(ErrorReason::NodeNotFound) => {
                return Ok(v1::Node::default());
            }
            Err(status) => return Err(format!("the gateway does not tell its holds: {}", status.message())),
        }
    }
    Err("no gateway that leads tells its holds".to_owned())
}

/// `None`: it may have been otherwise for a while.
fn as_it_is(told: GetNodeResponse) -> Option<v1::Node> {
    told.served.is_some_and(|served| served.leads).then(|| told.node.unwrap_or_default())
}

/// Whether nothing that was asked can place a hold any more.
fn counts_as_none(progress: Progress, none_since: Option<Instant>, now: Instant) -> bool {
    progress == Progress::Succeeded || none_since.is_some_and(|since| now - since >= LOOKED_AGAIN)
}

pub(crate) async fn answered<T>(
    asking: impl Future<Output = Result<T, tonic::Status>>,
) -> Result<Result<T, tonic::Status>, String> {
    let late = |_| "no gateway answered in time".to_owned();
    tokio::time::timeout(fence_request::ANSWERS, asking).await.map_err(late)
}

/// Whether that hold is this remediation's. Those of policies have the same holder, and another reason; a holder that the settings leave to the
/// certificate goes by the reason alone.
pub(crate) fn is_of(hold: &Hold, remediation: &RemediationRequest, holder: &str) -> bool {
    is_asked_by(&hold.holder, &hold.reason, remediation, holder)
}

/// Whether this remediation has asked, by the holder and the reason that the gateway shows. `ours`: the holder of the settings.
pub(crate) fn is_asked_by(holder: &str, reason: &str, remediation: &RemediationRequest, ours: &str) -> bool {
    (ours.is_empty() || holder == ours) && reason.contains(&format!("({})", remediation.id))
}

/// Whether the Node is the one that was asked for. The rest of the key.
fn is_the_same<'w>(
    remediation: &'w RemediationRequest,
    node: &crate::decider::Node,
) -> Result<&'w str, String> {
    let key = remediation.state.key.as_deref().unwrap_or_default();
    key.strip_prefix(&format!("k8s/{}/", node.uid))
        .ok_or_else(|| format!("the Node {} is another one of that name by now", node.name))
}

/// Whether the Node is the one that was fenced, and lives since.
fn has_lived_since(
    remediation: &RemediationRequest,
    node: &crate::decider::Node,
    lives: bool,
) -> Result<(), String> {
    let same_life = is_the_same(remediation, node)?.starts_with(&format!("{}/", node.boot_id));
    match same_life && !lives {
        true => Err("the Node says Ready from before it was fenced".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::remediation::read;

    #[test]
    fn what_one_says_that_follows_is_not_taken_for_the_present() {
        let node = v1::Node { name: "n1".to_owned(), ..v1::Node::default() };
        let told = |leads| GetNodeResponse {
            node: Some(node.clone()),
            served: Some(v1::Served { leads, ..v1::Served::default() }),
            ..GetNodeResponse::default()
        };
        assert_eq!(as_it_is(told(true)), Some(node.clone()));
        assert_eq!(as_it_is(told(false)), None);
        assert_eq!(as_it_is(GetNodeResponse { served: None, ..told(true) }), None);
    }

    /// A request of which nobody knows what became may come to something for as long as it is good.
    #[test]
    fn no_hold_counts_as_none_once_nothing_can_place_one_any_more() {
        let now = Instant::now();
        let late = now + fence_request::LATEST;
        assert!(counts_as_none(Progress::Succeeded, None, now));
        for progress in [Progress::Waiting, Progress::Fencing, Progress::Returning, Progress::Failed] {
            assert!(!counts_as_none(progress, None, late));
            assert!(!counts_as_none(progress, Some(now), late));
            assert!(counts_as_none(progress, Some(now), now + LOOKED_AGAIN));
        }
    }

    #[test]
    fn a_hold_goes_by_whose_it_is_and_a_node_is_back_by_its_uid_and_another_life_or_its_lease() {
        let seen = serde_json::from_value(json!({
            "apiVersion": "picket.dev/v1alpha1",
            "kind": "PicketRemediation",
            "metadata": {
                "name": "n1", "namespace": "ns", "uid": "w",
                "annotations": { "picket.dev/asked": "{\"node\":\"n1\",\"key\":\"k8s/u/b/w\"}" },
            },
            "spec": {},
            "status": { "key": "k8s/v/c/w", "node": "n2" },
        }))
        .expect("a remediation");
        let remediation = read(&seen);
        let hold = |holder: &str, reason: &str| Hold {
            holder: holder.to_owned(),
            reason: reason.to_owned(),
            ..Hold::default()
        };
        let ours = "Kubernetes: the Node n1 is to be remediated (PicketRemediation ns/n1)";
        assert!(is_of(&hold("c", ours), &remediation, "c") && is_of(&hold("c", ours), &remediation, ""));
        assert!(!is_of(&hold("other", ours), &remediation, "c"));
        let policy = "Kubernetes: the Node n1 failed (FencingPolicy workers)";
        assert!(!is_of(&hold("c", policy), &remediation, "c"));
        let longer = "Kubernetes: the Node n1 is to be remediated (PicketRemediation ns/n1-x)";
        assert!(!is_of(&hold("c", longer), &remediation, "c"));
        let node = |uid: &str, boot: &str| crate::decider::Node {
            name: "n1".to_owned(),
            uid: uid.to_owned(),
            boot_id: boot.to_owned(),
            ..crate::decider::Node::default()
        };
        for (uid, boot, lives, back) in [
            ("u", "b", false, false),
            ("u", "b", true, true),
            ("u", "c", false, true),
            ("v", "c", true, false),
        ] {
            assert_eq!(
                has_lived_since(&remediation, &node(uid, boot), lives).is_ok(),
                back,
                "{uid} {boot} {lives}"
            );
        }
    }
}
