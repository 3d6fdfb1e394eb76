//! A remediation whose machine is gone for good: how the gateway calls that, and that the finalizer goes.

use picket_core::ids::NodeId;
use picket_proto::v1::{self, node_selector};

use crate::ask::Asker;
use crate::letting::{Let, Stays, is_of, known};
use crate::mind::Wish;
use crate::remediation::{Kept, keep};
use crate::settings::Select;

/// Takes the finalizer away of one that is deleted while its Node is not Ready, or is gone, where a person has retired the machine: what kept it off
/// went with that (S16).
///
/// # Errors
/// Why the finalizer stays. That the gateway knows no such node is no word of its machine.
pub async fn retired(asker: &Asker, wish: &Wish) -> Result<Let, Stays> {
    let stays = || Stays::Said(NOT_READY.to_owned());
    let name = gateway_node(asker.settings.select, wish).ok_or_else(stays)?;
    let known = known(asker, &node_selector::By::Name(name.clone())).await.map_err(Stays::Unknown)?;
    if !is_retired(&known, &name, wish, &asker.settings.holder) {
        return Err(stays());
    }
    keep(&asker.api, &wish.id, Kept::NotAnyMore).await.map_err(|fault| Stays::Unknown(fault.to_string()))?;
    Ok(Let::Gone)
}

/// Why one that is deleted stands.
pub const NOT_READY: &str = "it is deleted, and its Node is not Ready";

/// As the gateway calls the node of a remediation, as far as that is known.
pub fn gateway_node(select: Select, wish: &Wish) -> Option<String> {
    let by_name = || (select == Select::Name).then(|| wish.node.clone());
    let name = wish.standing.gateway_node.clone().or_else(by_name);
    // It stands in a command for people, which takes lists, and in a status that others may write.
    name.filter(|name| NodeId::new(name).is_ok())
}

/// Whether that machine is gone for good by a person's word, and nothing of this remediation's keeps it off.
fn is_retired(known: &v1::Node, name: &str, wish: &Wish, holder: &str) -> bool {
    let is_held = known.holds.iter().any(|hold| is_of(hold, wish, holder));
    known.phase() == v1::Phase::Retired && known.name == name && !is_held
}

#[cfg(test)]
mod tests {
    use picket_proto::v1::Hold;
    use serde_json::json;

    use super::*;
    use crate::remediation::read;

    fn made(status: &serde_json::Value) -> Wish {
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
        let wish = made(&json!({ "key": "k8s/u/b/w", "node": "n1", "gatewayNode": "rack1-n1" }));
        let reason = "Kubernetes: the Node n1 is to be remediated (PicketRemediation ns/n1)".to_owned();
        let ours = Hold { holder: "c".to_owned(), reason, ..Hold::default() };
        let known = |phase: i32, name: &str, holds: Vec<Hold>| {
            let known = v1::Node { phase, name: name.to_owned(), holds, ..v1::Node::default() };
            is_retired(&known, "rack1-n1", &wish, "c")
        };
        for phase in 0..20 {
            assert_eq!(known(phase, "rack1-n1", Vec::new()), phase == v1::Phase::Retired as i32, "{phase}");
        }
        let retired = v1::Phase::Retired as i32;
        assert!(!known(retired, "n1", Vec::new()), "that is another one");
        assert!(!known(retired, "rack1-n1", vec![ours]), "it was fenced since");
        assert!(!is_retired(&v1::Node::default(), "rack1-n1", &wish, "c"), "there is no such node");
    }

    #[test]
    fn the_gateway_s_node_is_the_one_that_it_named_or_has_the_node_s_name() {
        let (named, old) = (made(&json!({ "gatewayNode": "rack1-n1" })), made(&json!({ "gatewayNode": "" })));
        for select in [Select::Name, Select::SystemUuid] {
            assert_eq!(gateway_node(select, &named).as_deref(), Some("rack1-n1"), "{select:?}");
        }
        assert_eq!(gateway_node(Select::Name, &old).as_deref(), Some("n1"), "one of before it was noted");
        assert_eq!(gateway_node(Select::ProviderId, &old), None);
        // Whoever may write a status would else have a person retire others.
        for wrong in ["n[1-40]", "n1,n2", "n1; reboot", "--all"] {
            let forged = [json!({ "gatewayNode": wrong }), json!({ "key": "k8s/u/b/w", "node": wrong })];
            assert!(
                forged.iter().all(|status| gateway_node(Select::Name, &made(status)).is_none()),
                "{wrong}"
            );
        }
    }
}
