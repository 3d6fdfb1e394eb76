//! What is to be said of settings that are no fault.

use std::collections::BTreeMap;

use picket_config::Settings;
use picket_core::roles::{Grant, Role};
use picket_engine::NodePlan;

use super::{Simulated, sources_of};

/// That the gateway is simulated; then what drivers and releases say, each once, with the first of whom it is said and how many more; then what roles
/// and sources let others do.
pub(super) fn of(settings: &Settings, nodes: &[NodePlan], simulated: Option<Simulated>) -> Vec<String> {
    let roles = settings.roles.grants().filter_map(|grant| of_controllers(settings, nodes, grant));
    simulated
        .map(Simulated::remark)
        .into_iter()
        .chain(of_devices(nodes))
        .chain(roles)
        .chain(of_sources(settings))
        .collect()
}

fn of_devices(nodes: &[NodePlan]) -> Vec<String> {
    let mut said: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for node in nodes {
        let devices = node.drivers.iter().map(|(id, driver)| (id.to_string(), driver.remarks()));
        let releases = node.releases.iter().map(|plan| (plan.id.to_string(), plan.releaser.remarks()));
        let source = node.liveness.iter().map(|source| ("its liveness source".to_owned(), source.remarks()));
        for (id, remarks) in devices.chain(releases).chain(source) {
            for remark in remarks {
                said.entry(remark).or_insert_with(|| (format!("{}/{id}", node.id), 0)).1 += 1;
            }
        }
    }
    let words = |(remark, (first, all)): (String, (String, usize))| match all - 1 {
        0 => format!("{first}: {remark}"),
        more => format!("{first} and {more} more: {remark}"),
    };
    said.into_iter().map(words).collect()
}

/// A role `controller` for Nodes of a cluster and for machines that are none: of these the gateway compares nothing with the Node that is asked for
/// (K1). A role for no Node at all is a program's that knows no Nodes.
fn of_controllers(settings: &Settings, nodes: &[NodePlan], grant: &Grant) -> Option<String> {
    let is_of_it =
        |plan: &&NodePlan| grant.role == Role::Controller && grant.nodes.has(&plan.id, &plan.labels);
    let has_source = |plan: &&NodePlan| {
        plan.releases.iter().any(|one| one.quarantine().is_some())
            || sources_of(settings, plan).any(|source| source.kind == "kubernetes")
    };
    let (known, unknown): (Vec<_>, Vec<_>) = nodes.iter().filter(is_of_it).partition(has_source);
    let first = unknown.first().filter(|_| !known.is_empty())?;
    let more = match unknown.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "roles.{}: it is for Nodes of Kubernetes, and for {}{more}, of which no release and no liveness source knows a Node: whoever may register a \
         Node of that name has it fenced. Limit the role by nodes or hosts to what is a Node",
        grant.name, first.id
    ))
}

/// A token that goes to whatever answers at a node's own address.
fn of_sources(settings: &Settings) -> Vec<String> {
    let groups = settings.groups.settings().iter();
    let sources = groups.filter_map(|(name, group)| Some((name, group.rules.liveness.as_ref()?)));
    let is_handed_out = |how: &picket_config::Kinded| {
        let url = how.settings.get("url").and_then(serde_json::Value::as_str).unwrap_or_default();
        how.kind == "http"
            && url.contains("{node}")
            && how.settings.keys().any(|key| key.starts_with("token_"))
    };
    sources
        .filter(|(_, how)| is_handed_out(how))
        .map(|(name, _)| {
            format!(
                "groups.{name}.liveness: each node of the group gets the same token: whoever holds one of them may use it at all others. Let the token \
                 read health alone, or ask without one"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{blade, build};
    use crate::drivers::Drivers;

    fn remarks(text: &str) -> Vec<String> {
        build(text, &Drivers::default()).expect("it is right").remarks
    }

    /// K1: what a Node's name chooses is a Node, or is said beforehand.
    #[cfg(feature = "kubernetes")]
    #[test]
    fn a_controller_s_role_for_nodes_and_for_machines_that_are_none_is_told() {
        let role = |name: &str, more: &str| {
            format!(
                "[roles.{name}]\nrole = \"controller\"\ncallers = [\"spiffe://fencing/{name}\"]\n{more}\n"
            )
        };
        let pods = "[releases.pods]\nkind = \"kubernetes\"\ncluster_uid = \"3f0c6d4e-0000-4000-8000-000000000000\"\n\
                    kubeconfig = \"/etc/picket/kubeconfig\"\n";
        let node = |name: &str, releases: &str| {
            format!("[nodes.{name}]\nreleases = [{releases}]\n") + &blade(name, name, "")
        };
        let fleet = pods.to_owned() + &node("w1", "\"pods\"") + &node("db1", "");
        let told = |more: &str| -> Vec<String> {
            let all = remarks(&(fleet.clone() + &role("nodes", more)));
            all.into_iter().filter(|remark| remark.starts_with("roles.")).collect()
        };
        let whole = told("");
        assert!(whole.len() == 1 && whole[0].contains("for db1, of which"), "{whole:?}");
        assert_eq!(told("hosts = \"w1\""), [""; 0]);
        // A cluster manager's: it knows no Nodes.
        assert_eq!(told("hosts = \"db1\""), [""; 0]);
    }

    #[test]
    fn a_token_that_goes_to_each_node_is_told() {
        let source = |more: &str| {
            format!(
                "[groups.rack]\nhosts = \"n1\"\n[groups.rack.liveness]\nkind = \"http\"\n{more}\n{}",
                blade("n1", "1", "")
            )
        };
        let told = remarks(&source("url = \"https://{node}.example.org/healthz\"\ntoken_env = \"PATH\""));
        assert!(told.iter().any(|remark| remark.starts_with("groups.rack.liveness: ")), "{told:?}");
        for silent in [
            "url = \"https://{node}.example.org/healthz\"",
            "url = \"https://health.example.org/\"\ntoken_env = \"PATH\"",
        ] {
            assert_eq!(remarks(&source(silent)), [""; 0]);
        }
    }
}
