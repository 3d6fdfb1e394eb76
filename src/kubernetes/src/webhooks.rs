//! Webhooks of the cluster that fail closed on what a release does, for `picket check`: the pods behind them may stand on the node that is fenced.

use serde::Deserialize;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::object::List;
use crate::remains::named;

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// What a release asks for: the operation, the resource as a rule names it or all of its kind, and that in words.
const ASKED: [(&str, &[&str], &str); 3] = [
    ("DELETE", &["pods", "*", "*/*"], "the deletion of pods"),
    ("UPDATE", &["pods/status", "pods/*", "*/status", "*/*"], "the status of pods"),
    ("UPDATE", &["nodes", "*", "*/*"], "changes of Nodes"),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Configuration {
    webhooks: Vec<Webhook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Webhook {
    name: String,
    failure_policy: String,
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    api_groups: Vec<String>,
    operations: Vec<String>,
    resources: Vec<String>,
}

impl Rule {
    fn is_asked_about(&self, operation: &str, resources: &[&str]) -> bool {
        let any = |given: &[String], wanted: &[&str]| given.iter().any(|one| wanted.contains(&one.as_str()));
        any(&self.api_groups, &["", "*"])
            && any(&self.operations, &[operation, "*"])
            && any(&self.resources, resources)
    }
}

/// What is to be said of those of the cluster; which Nodes or pods their selectors leave out is not looked at.
pub(crate) async fn of_cluster(cluster: &Cluster, until: Instant) -> Result<Vec<String>, Fault> {
    let (validating, mutating) = tokio::join!(
        cluster.get::<List<Configuration>>(VALIDATING, until),
        cluster.get::<List<Configuration>>(MUTATING, until)
    );
    let all = validating?.items.into_iter().chain(mutating?.items).flat_map(|one| one.webhooks);
    Ok(words(&all.collect::<Vec<Webhook>>()))
}

fn words(webhooks: &[Webhook]) -> Vec<String> {
    let told = ASKED.iter().filter_map(|(operation, resources, what)| {
        let fails_closed = |one: &&Webhook| {
            one.failure_policy != "Ignore"
                && one.rules.iter().any(|rule| rule.is_asked_about(operation, resources))
        };
        let names: Vec<String> =
            webhooks.iter().filter(fails_closed).map(|one| one.name.clone()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "webhooks fail closed on {what}: {}: while none of their pods answers, as where all of them stand on the node that is \
                 fenced, the API server refuses that, and a release waits: let them run on several Nodes, or set their failurePolicy to Ignore",
                named(&names)
            )
        })
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(webhooks: Value) -> Vec<String> {
        words(&serde_json::from_value::<Vec<Webhook>>(webhooks).expect("webhooks"))
    }

    fn webhook(name: &str, policy: &str, operations: &[&str], resources: &[&str]) -> Value {
        json!({ "name": name, "failurePolicy": policy, "rules": [
            { "apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": resources },
        ] })
    }

    #[test]
    fn those_that_fail_closed_on_pods_and_nodes_are_named() {
        let told = told(json!([
            webhook("deletes.example.org", "Fail", &["CREATE", "DELETE"], &["pods"]),
            webhook("creates.example.org", "Fail", &["CREATE"], &["pods"]),
            webhook("ignores.example.org", "Ignore", &["DELETE"], &["pods"]),
            webhook("all.example.org", "Fail", &["*"], &["*"]),
            webhook("nodes.example.org", "Fail", &["UPDATE"], &["nodes"]),
            webhook("heartbeats.example.org", "Fail", &["UPDATE"], &["nodes/status"]),
            webhook("status.example.org", "Fail", &["UPDATE"], &["pods/status"]),
            { "name": "apps.example.org", "failurePolicy": "Fail", "rules": [
                { "apiGroups": ["apps"], "operations": ["*"], "resources": ["*"] },
            ] },
        ]));
        let expected = [
            "the deletion of pods: deletes.example.org, all.example.org: ",
            "the status of pods: status.example.org: ",
            "changes of Nodes: all.example.org, nodes.example.org: ",
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(&format!("webhooks fail closed on {expected}")), "{told}");
        }
        assert_eq!(super::words(&[]), [""; 0]);
    }
}
