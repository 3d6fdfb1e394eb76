//! What is missing before it could work: everything at once.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use http::Method;
use picket_proto::client::Gateways;
use picket_proto::v1::ListGatewaysRequest;
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use serde_json::{Value, json};

use crate::api::{Api, Body};
use crate::fault::Fault;
use crate::kured;
use crate::settings::Settings;
use crate::{crd, gateway, unconfigured};

/// How long a gateway may take.
const ANSWERS: Duration = Duration::from_secs(10);

const MEDIK8S: &str = "medik8s-leases";

/// Group, resource, verbs, namespace.
type Needed = (&'static str, &'static str, &'static [&'static str], &'static str);

/// What is needed. `deploy/kubernetes/controller.yaml` grants the same; a test holds it.
#[rustfmt::skip]
const NEEDED: &[Needed] = &[
    ("", "nodes", &["get", "list", "watch", "patch"], ""),
    ("coordination.k8s.io", "leases", &["list", "watch"], "kube-node-lease"),
    (crd::GROUP, crd::PLURAL, &["list", "watch"], ""),
    (crd::GROUP, "fencingpolicies/status", &["patch"], ""),
    ("events.k8s.io", "events", &["create"], "default"),
    ("coordination.k8s.io", "leases", &["get", "create", "update", "delete"], MEDIK8S),
    ("apps", "daemonsets", &["get"], "kube-system"),
];

/// What remediations need besides. `deploy/kubernetes/remediation.yaml` grants the same; a test holds it.
#[rustfmt::skip]
const REMEDIATING: &[Needed] = &[
    (crd::GROUP, crd::remediation::PLURAL, &["get", "list", "watch", "patch"], ""),
    (crd::GROUP, "picketremediations/status", &["patch"], ""),
];

/// What the election needs, in the settings' namespace.
const ELECTION: &[&str] = &["get", "create", "update"];

/// What is missing, a line each.
pub async fn check(settings: &Settings, api: &Api) -> Vec<String> {
    let mut missing = permissions(settings, api).await;
    missing.extend(kured::missing(api, &settings.kured).await);
    let mut kinds = vec![(crd::PLURAL, true)];
    if settings.remediation {
        kinds.extend([(crd::remediation::TEMPLATES, false), (crd::remediation::PLURAL, true)]);
    }
    for (plural, has_status) in kinds {
        missing.extend(definition(api, plural, has_status).await);
    }
    let unheard = gateways(settings).await;
    if unheard.len() < settings.endpoints.len() {
        missing.extend(unconfigured::nodes(settings, api).await);
    }
    missing.extend(unheard);
    missing
}

async fn permissions(settings: &Settings, api: &Api) -> Vec<String> {
    let of = |(group, resource, verbs, namespace): &(
        &'static str,
        &'static str,
        &'static [&'static str],
        &str,
    )| {
        let (group, resource) = (*group, *resource);
        let namespace =
            if resource == "daemonsets" { &settings.kured.namespace } else { *namespace }.to_owned();
        verbs.iter().map(move |verb| (group, resource, *verb, namespace.clone())).collect::<Vec<_>>()
    };
    let election = ("coordination.k8s.io", "leases", ELECTION, settings.lease_namespace.as_str());
    let is_used = |(.., namespace): &&(_, _, _, &str)| settings.medik8s_leases || *namespace != MEDIK8S;
    let mut all: Vec<_> = NEEDED.iter().filter(is_used).flat_map(of).chain(of(&election)).collect();
    if settings.remediation {
        all.extend(REMEDIATING.iter().flat_map(of));
    }
    let answers = futures::stream::iter(all).map(|one| may(api, one, &settings.kured.name)).buffered(8);
    let mut missing: Vec<String> = answers.filter_map(async |answer| answer).collect().await;
    // Where nobody answers it is said once.
    missing.dedup();
    missing
}

async fn may(
    api: &Api,
    (group, resource, verb, namespace): (&str, &str, &str, String),
    kured: &str,
) -> Option<String> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = json!({
        "group": group, "resource": resource, "subresource": subresource, "verb": verb, "namespace": namespace,
        // Of DaemonSets one is looked at.
        "name": if resource == "daemonsets" { kured } else { "" },
    });
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": attributes },
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    match api.send(Method::POST, path, Body::Whole(&review)).await {
        Ok(answer) if answer["status"]["allowed"] == true => None,
        Ok(_) => {
            let of = if group.is_empty() { String::new() } else { format!(".{group}") };
            let sub = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
            let place =
                if namespace.is_empty() { String::new() } else { format!(" in the namespace {namespace}") };
            Some(format!(
                "permission: this account may not {verb} {resource}{of}{sub}{place} (deploy/kubernetes/{}.yaml grants it)",
                if resource == crd::remediation::PLURAL { "remediation" } else { "controller" }
            ))
        }
        Err(fault) => Some(format!("permission: {fault}")),
    }
}

async fn definition(api: &Api, plural: &str, has_status: bool) -> Option<String> {
    let name = format!("{plural}.{}", crd::GROUP);
    let apply = format!("apply it: {}", crd::APPLY);
    let found = match served(api, crd::VERSION).await {
        Ok(found) => found,
        Err(fault) => return Some(format!("definition: {fault}")),
    };
    match (found.contains(plural), !has_status || found.contains(&format!("{plural}/status"))) {
        (true, true) => return None,
        (true, false) => {
            return Some(format!("definition: {name} is not complete in {}; {apply}", crd::VERSION));
        }
        (false, _) => {}
    }
    // Others of the group may be there in our version.
    let mut others = Vec::new();
    let group = api.find::<Value>(&format!("/apis/{}", crd::GROUP)).await.ok().flatten().unwrap_or_default();
    let versions = group["versions"].as_array().into_iter().flatten();
    for version in versions.filter_map(|one| one["version"].as_str()) {
        if served(api, version).await.is_ok_and(|kinds| kinds.contains(plural)) {
            others.push(version.to_owned());
        }
    }
    Some(match others.is_empty() {
        true => format!("definition: {name} is missing; {apply}"),
        false => format!(
            "definition: {name} is there in {}, and this controller speaks {}; {apply}",
            others.join(", "),
            crd::VERSION
        ),
    })
}

/// The resources of our group that the API server has in that version.
async fn served(api: &Api, version: &str) -> Result<BTreeSet<String>, Fault> {
    let found = api.find::<Value>(&format!("/apis/{}/{version}", crd::GROUP)).await?.unwrap_or_default();
    let resources = found["resources"].as_array().into_iter().flatten();
    Ok(resources.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect())
}

async fn gateways(settings: &Settings) -> Vec<String> {
    let mut missing = Vec::new();
    if let Some(files) = &settings.certificates
        && let Err(why) = gateway::tls(files)
    {
        missing.push(format!("gateway: {why}"));
        return missing;
    }
    for endpoint in &settings.endpoints {
        let one = Settings { endpoints: vec![endpoint.clone()], ..settings.clone() };
        if let Some(why) = unheard(gateway::gateways(&one)).await {
            missing.push(format!("gateway: {endpoint}: {why}"));
        }
    }
    missing
}

async fn unheard(gateways: Gateways) -> Option<String> {
    let asking = async {
        gateways.connect().await.map_err(|unreached| {
            let told = unreached.0.first().map(|(_, why)| picket_login::chain(&**why));
            told.unwrap_or_else(|| unreached.to_string())
        })?;
        let mut client = FencingServiceClient::new(gateways);
        let answer = client.list_gateways(ListGatewaysRequest {}).await;
        answer.map(drop).map_err(|status| status.message().to_owned())
    };
    tokio::time::timeout(ANSWERS, asking)
        .await
        .unwrap_or_else(|_| Err("it does not answer in time".to_owned()))
        .err()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    type Rule = (String, String, String, String);

    fn rules(of: &Value, namespace: &str) -> Vec<Rule> {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut all = Vec::new();
        for rule in of["rules"].as_array().into_iter().flatten() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let one = |verb| (group.clone(), resource.clone(), verb, namespace.to_owned());
                    all.extend(texts(&rule["verbs"]).into_iter().map(one));
                }
            }
        }
        all
    }

    fn granted(text: &str) -> BTreeSet<Rule> {
        let documents: Vec<Value> = text
            .split("\n---\n")
            .map(|document| serde_saphyr::from_str(document).expect("it is YAML"))
            .collect();
        let of = |document: &Value| match document["kind"].as_str() {
            Some("ClusterRole") if document["metadata"]["labels"].is_null() => rules(document, ""),
            Some("Role") => rules(document, document["metadata"]["namespace"].as_str().unwrap_or_default()),
            _ => Vec::new(),
        };
        documents.iter().flat_map(of).collect()
    }

    fn needed(all: &[Needed]) -> BTreeSet<Rule> {
        let each = all.iter().flat_map(|(group, resource, verbs, namespace)| {
            verbs.iter().map(|verb| [*group, *resource, *verb, *namespace].map(str::to_owned).into())
        });
        each.collect()
    }

    #[test]
    fn what_is_granted_is_what_is_needed_and_no_more() {
        let election = ("coordination.k8s.io", "leases", ELECTION, "picket");
        assert_eq!(
            granted(include_str!("../../../deploy/kubernetes/controller.yaml")),
            needed(&[NEEDED, &[election]].concat())
        );
        assert_eq!(granted(include_str!("../../../deploy/kubernetes/remediation.yaml")), needed(REMEDIATING));
    }
}
