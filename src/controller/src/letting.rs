//! The hold that goes with a remediation, once its Node is back.

use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{self, DropHoldRequest, ErrorReason, GetNodeRequest, Hold, NodeSelector};

use crate::ask::{self, Asker};
use crate::mind::Wish;
use crate::outcome::reason;
use crate::remediation::{Kept, keep};
use crate::watch;

/// Drops the hold of a Node that is Ready, then takes the finalizer away. `lives`: its kubelet is heard now.
///
/// # Errors
/// Why both stay, in words.
pub async fn let_go(asker: &Asker, wish: &Wish, lives: bool) -> Result<(), String> {
    let (api, name) = (&asker.api, &wish.node);
    let Some(node) = watch::look(api, name).await.filter(crate::mind::Node::is_ready) else {
        return Err("the Node is not Ready any more, or cannot be looked at".to_owned());
    };
    let select = || Ok::<_, String>(NodeSelector { by: Some(ask::selected(&node, asker.settings.select)?) });
    let mut client = FencingServiceClient::new(asker.gateways.clone());
    let request = GetNodeRequest { node: Some(select()?), ..GetNodeRequest::default() };
    let known = match answered(client.get_node(request)).await? {
        Ok(known) => known.into_inner().node.unwrap_or_default(),
        Err(status) if reason(&status) == Some(ErrorReason::NodeNotFound) => v1::Node::default(),
        Err(status) => return Err(format!("the gateway does not tell its holds: {}", status.message())),
    };
    if known.holds.iter().any(|hold| is_of(hold, wish, &asker.settings.holder)) {
        is_back(wish, &node, lives)?;
        let request = DropHoldRequest {
            node: Some(select()?),
            holder: asker.settings.holder.clone(),
            reason: format!("Kubernetes: the Node {name} is Ready, and {} is deleted", wish.id),
            // Of the fence that was looked at, and of no later one.
            expected_generation: Some(known.generation),
        };
        match answered(client.drop_hold(request)).await? {
            Ok(_) => {}
            Err(status) if reason(&status) == Some(ErrorReason::HoldNotFound) => {}
            Err(status) => return Err(format!("the gateway does not drop the hold: {}", status.message())),
        }
    }
    keep(api, &wish.id, Kept::NotAnyMore).await.map_err(|fault| fault.to_string())
}

async fn answered<T>(
    asking: impl Future<Output = Result<T, tonic::Status>>,
) -> Result<Result<T, tonic::Status>, String> {
    let late = |_| "no gateway answered in time".to_owned();
    tokio::time::timeout(ask::ANSWERS, asking).await.map_err(late)
}

/// Whether that hold is this remediation's. Those of policies have the same holder, and another reason; a holder that the settings leave to the
/// certificate goes by the reason alone.
fn is_of(hold: &Hold, wish: &Wish, holder: &str) -> bool {
    (holder.is_empty() || hold.holder == holder) && hold.reason.contains(&format!("({})", wish.id))
}

/// Whether the Node is the one that was fenced, and lives since.
fn is_back(wish: &Wish, node: &crate::mind::Node, lives: bool) -> Result<(), String> {
    let key = wish.standing.key.as_deref().unwrap_or_default();
    let Some(rest) = key.strip_prefix(&format!("k8s/{}/", node.uid)) else {
        return Err(format!("the Node {} is another one of that name by now", node.name));
    };
    let same_life = rest.starts_with(&format!("{}/", node.boot_id));
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
    fn a_hold_goes_by_whose_it_is_and_a_node_is_back_by_its_uid_and_another_life_or_its_lease() {
        let seen = serde_json::from_value(json!({
            "apiVersion": "picket.dev/v1alpha1",
            "kind": "PicketRemediation",
            "metadata": { "name": "n1", "namespace": "ns" },
            "spec": {},
            "status": { "key": "k8s/u/b/w", "node": "n1" },
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
            assert_eq!(is_back(&wish, &node(uid, boot), lives).is_ok(), back, "{uid} {boot} {lives}");
        }
    }
}
