//! What the gateway is asked, and how it knows the Node.

use std::time::{Duration, SystemTime};

use picket_proto::v1::{self, FenceRequest, node_selector};

use crate::decider::{AfterFence, FenceOrder, Grade, Node};
use crate::fence_request;
use crate::settings::Select;

/// What the gateway is asked.
///
/// # Errors
/// The Node lacks that by which the settings name it.
pub fn request(order: &FenceOrder, select: Select, holder: &str) -> Result<FenceRequest, String> {
    let late = SystemTime::now() + fence_request::LATEST;
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let grade = match order.grade {
        Grade::Claimed => v1::Grade::Claimed,
        Grade::Learned => v1::Grade::Learned,
        Grade::Hypervisor => v1::Grade::Hypervisor,
        Grade::Observed => v1::Grade::Observed,
    };
    let then = match order.then {
        AfterFence::StayOff => v1::FenceThen::StayOff,
        AfterFence::PowerOn => v1::FenceThen::PowerOn,
    };
    // What a kubelet may write of its Node never chooses another machine: the gateway compares that Node with the one that it finds.
    Ok(FenceRequest {
        node: Some(v1::NodeSelector { by: Some(selected(&order.node, select)?) }),
        reason: order.reason.clone(),
        idempotency_key: order.key.clone(),
        holder: holder.to_owned(),
        until: v1::FenceUntil::Released as i32,
        then: then as i32,
        minimum_grade: grade as i32,
        deadline: order.deadline.map(|span| prost_types::Duration { seconds: seconds(span), nanos: 0 }),
        not_after: Some(late.into()),
        kubernetes_node: Some(v1::KubernetesNode {
            name: order.node.name.clone(),
            uid: order.node.uid.clone(),
        }),
        ..FenceRequest::default()
    })
}

/// How the gateway knows the Node.
///
/// # Errors
/// The Node lacks that by which the settings name it.
pub fn selected(node: &Node, select: Select) -> Result<node_selector::By, String> {
    let needed = |what: &str, value: &String| match value.is_empty() {
        true => Err(format!(
            "the Node {} has no {what}, by which the settings name it (gateway.select)",
            node.name
        )),
        false => Ok(value.clone()),
    };
    Ok(match select {
        Select::Name => node_selector::By::Name(node.name.clone()),
        Select::ProviderId => node_selector::By::ProviderId(needed("spec.providerID", &node.provider_id)?),
        Select::SystemUuid => node_selector::By::SystemUuid(needed("system UUID", &node.system_uuid)?),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_node_is_named_as_the_settings_say_or_not_at_all() {
        let node = Node { name: "n1".to_owned(), provider_id: "p://1".to_owned(), ..Node::default() };
        assert_eq!(selected(&node, Select::Name), Ok(node_selector::By::Name("n1".to_owned())));
        assert_eq!(
            selected(&node, Select::ProviderId),
            Ok(node_selector::By::ProviderId("p://1".to_owned()))
        );
        assert!(selected(&node, Select::SystemUuid).expect_err("none is known").contains("system UUID"));
    }

    pub(crate) fn order() -> FenceOrder {
        let node = Node {
            name: "n1".to_owned(),
            uid: "u-1".to_owned(),
            provider_id: "p://1".to_owned(),
            system_uuid: "4b554245-2d4e-4f44-452d-303030303031".to_owned(),
            ..Node::default()
        };
        FenceOrder {
            node,
            key: "k".to_owned(),
            reason: "why".to_owned(),
            policy: "p".to_owned(),
            remediation: None,
            then: AfterFence::StayOff,
            grade: Grade::Claimed,
            deadline: None,
            unhealthy: Vec::new(),
        }
    }

    /// By whatever it is selected: what a kubelet says of its machine is compared with whose it is.
    #[test]
    fn a_request_names_the_node_and_its_uid() {
        for select in [Select::Name, Select::ProviderId, Select::SystemUuid] {
            let named = request(&order(), select, "me").expect("it has all of them").kubernetes_node;
            let named = named.map(|node| (node.name, node.uid));
            assert_eq!(named, Some(("n1".to_owned(), "u-1".to_owned())), "{select:?}");
        }
    }
}
