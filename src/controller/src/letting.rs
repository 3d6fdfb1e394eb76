//! The hold that goes with a remediation, once its Node is back.

use std::time::Duration;

use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{
    self, DropHoldRequest, ErrorReason, GetNodeRequest, GetNodeResponse, Hold, NodeSelector, node_selector,
};
use tokio::time::Instant;

use crate::ask::{self, Asker};
use crate::mind::{Progress, Wish};
use crate::outcome::{is_passing, reason};
use crate::remediation::{Kept, keep};
use crate::request;
use crate::settings::Select;
use crate::watch;

/// Where the gateway did not say that it is done, no hold counts as none before it was looked for once more, so much later: what was asked before the
/// first look has come to nothing by then.
const LOOKED_AGAIN: Duration = ask::LATEST.saturating_add(Duration::from_secs(5));

/// What has come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Let {
    /// Hold and finalizer are gone.
    Gone,
    /// There is no hold yet.
    NoHold,
    /// Its machine is not retired: the gateway shows that it calls it so, or does not show how.
    NotRetired(Option<String>),
}

/// Why it stands, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stays {
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
pub async fn let_go(
    asker: &Asker,
    wish: &Wish,
    lives: bool,
    none_since: Option<Instant>,
) -> Result<Let, Stays> {
    let (api, name) = (&asker.api, &wish.node);
    let Some(node) = watch::look(api, name).await.filter(crate::mind::Node::is_ready) else {
        return Err(Stays::Unknown("the Node is not Ready any more, or cannot be looked at".to_owned()));
    };
    // By what the machine is the gateway would tell another one's holds.
    if asker.settings.select != Select::Name {
        is_the_same(wish, &node).map_err(Stays::Said)?;
    }
    let select = request::selected(&node, asker.settings.select).map_err(Stays::Said)?;
    let known = known(asker, &select).await.map_err(Stays::Unknown)?;
    if known.holds.iter().any(|hold| is_of(hold, wish, &asker.settings.holder)) {
        has_lived_since(wish, &node, lives).map_err(Stays::Said)?;
        let mut client = FencingServiceClient::new(asker.gateways.clone());
        let request = DropHoldRequest {
            node: Some(NodeSelector { by: Some(select) }),
            holder: asker.settings.holder.clone(),
            reason: format!("Kubernetes: the Node {name} is Ready, and {} is deleted", wish.id),
            // Of the fence that was looked at, and of no later one.
            expected_generation: Some(known.generation),
        };
        match answered(client.drop_hold(request)).await.map_err(Stays::Unknown)? {
            Ok(_) => {}
            Err(status) if reason(&status) == Some(ErrorReason::HoldNotFound) => {}
            Err(status) => {
                let why = format!("the gateway does not drop the hold: {}", status.message());
                return Err(if is_passing(&status) { Stays::Unknown(why) } else { Stays::Said(why) });
            }
        }
    } else if !counts_as_none(wish.standing.progress, none_since, Instant::now()) {
        return Ok(Let::NoHold);
    }
    keep(api, &wish.id, Kept::NotAnyMore).await.map_err(|fault| Stays::Unknown(fault.to_string()))?;
    Ok(Let::Gone)
}

/// The Node, as the gateway knows it that leads: one that follows tells what it read a while ago.
pub(crate) async fn known(asker: &Asker, select: &node_selector::By) -> Result<v1::Node, String> {
    let mut client = FencingServiceClient::new(asker.gateways.clone());
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
    tokio::time::timeout(ask::ANSWERS, asking).await.map_err(late)
}

/// Whether that hold is this remediation's. Those of policies have the same holder, and another reason; a holder that the settings leave to the
/// certificate goes by the reason alone.
pub(crate) fn is_of(hold: &Hold, wish: &Wish, holder: &str) -> bool {
    is_asked_by(&hold.holder, &hold.reason, wish, holder)
}

/// Whether this remediation has asked, by the holder and the reason that the gateway shows. `ours`: the holder of the settings.
pub(crate) fn is_asked_by(holder: &str, reason: &str, wish: &Wish, ours: &str) -> bool {
    (ours.is_empty() || holder == ours) && reason.contains(&format!("({})", wish.id))
}

/// Whether the Node is the one that was asked for. The rest of the key.
fn is_the_same<'w>(wish: &'w Wish, node: &crate::mind::Node) -> Result<&'w str, String> {
    let key = wish.standing.key.as_deref().unwrap_or_default();
    key.strip_prefix(&format!("k8s/{}/", node.uid))
        .ok_or_else(|| format!("the Node {} is another one of that name by now", node.name))
}

/// Whether the Node is the one that was fenced, and lives since.
fn has_lived_since(wish: &Wish, node: &crate::mind::Node, lives: bool) -> Result<(), String> {
    let same_life = is_the_same(wish, node)?.starts_with(&format!("{}/", node.boot_id));
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
        let late = now + ask::LATEST;
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
        let wish = read(&seen);
        let hold = |holder: &str, reason: &str| Hold {
            holder: holder.to_owned(),
            reason: reason.to_owned(),
            ..Hold::default()
        };
        let ours = "Kubernetes: the Node n1 is to be remediated (PicketRemediation ns/n1)";
        assert!(is_of(&hold("c", ours), &wish, "c") && is_of(&hold("c", ours), &wish, ""));
        assert!(!is_of(&hold("other", ours), &wish, "c"));
        let policy = "Kubernetes: the Node n1 failed (FencingPolicy workers)";
        assert!(!is_of(&hold("c", policy), &wish, "c"));
        let longer = "Kubernetes: the Node n1 is to be remediated (PicketRemediation ns/n1-x)";
        assert!(!is_of(&hold("c", longer), &wish, "c"));
        let node = |uid: &str, boot: &str| crate::mind::Node {
            name: "n1".to_owned(),
            uid: uid.to_owned(),
            boot_id: boot.to_owned(),
            ..crate::mind::Node::default()
        };
        for (uid, boot, lives, back) in [
            ("u", "b", false, false),
            ("u", "b", true, true),
            ("u", "c", false, true),
            ("v", "c", true, false),
        ] {
            assert_eq!(has_lived_since(&wish, &node(uid, boot), lives).is_ok(), back, "{uid} {boot} {lives}");
        }
    }
}
