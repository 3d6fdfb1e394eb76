//! What holds for the chart (`deploy/helm/picket`), however it is installed.
//!
//! # Invariants
//!
//! - No gateway runs without a shared store. Shown by `gateways_without_a_shared_store_are_refused`.
//! - No secret is made or taken inline. Shown by
//!   `nothing_secret_is_made_and_secrets_are_read_by_their_owner_s_group_alone`.
//! - A gateway that fences the Nodes of its own etcd names those Nodes (S17). Shown by
//!   `who_fences_the_nodes_of_its_own_etcd_must_know_which_they_are`.
//! - What stands in two places is the same there: helm reads nothing outside of a chart, so `files/` are
//!   copies. Shown by `the_chart_s_copies_are_what_lies_in_deploy`,
//!   `the_alerts_are_those_that_are_shipped`, `the_chart_is_of_this_version`.

use std::collections::BTreeSet;

use picket_tests::{Result, Said, picketd, program};
use serde_json::{Value, json};

use crate::variants::{all, alone, bundled, given, of, one, rendered, told, with};

#[tokio::test]
async fn helm_finds_nothing_to_say_against_it() -> Result<()> {
    for (name, values) in all().into_iter().chain([("alone", alone())]) {
        let said = told(&["lint", "--strict"], &values).await?;
        assert_eq!(said.code, 0, "{name}: {}{}", said.out, said.err);
    }
    Ok(())
}

/// The pods that a way of installing it makes, each with the kind of what makes it.
fn pods(objects: &[Value]) -> Vec<(&str, &Value)> {
    let made =
        |kind: &'static str| of(kind, objects).into_iter().map(move |made| (kind, &made["spec"]["template"]));
    made("StatefulSet").chain(made("Deployment")).chain(made("Job")).collect()
}

fn fits(selector: &Value, labels: &Value) -> bool {
    selector
        .as_object()
        .is_some_and(|all| !all.is_empty() && all.iter().all(|(key, value)| labels[key] == *value))
}

#[tokio::test]
async fn every_pod_is_nobody_of_the_machine_s_and_asks_for_what_it_needs() -> Result<()> {
    for (name, values) in all() {
        let objects = rendered(&values).await?;
        let pods = pods(&objects);
        assert!(pods.len() >= 2, "{name}");
        for (_, pod) in pods {
            let spec = &pod["spec"];
            let security = &spec["securityContext"];
            assert_eq!(
                (&security["runAsNonRoot"], &security["runAsUser"]),
                (&json!(true), &json!(65_532)),
                "{name}"
            );
            assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
            assert_eq!(spec["enableServiceLinks"], false);
            assert!(["hostPID", "hostIPC"].iter().all(|key| spec[key].is_null()), "{name}: {spec:#}");
            assert!(
                spec["volumes"].as_array().is_some_and(|all| all.iter().all(|one| one["hostPath"].is_null()))
            );
            let tolerations = spec["tolerations"].as_array().expect("tolerations");
            assert!(
                tolerations.iter().any(|one| one["key"] == "node-role.kubernetes.io/control-plane"),
                "{name}"
            );
            for container in spec["containers"].as_array().expect("containers") {
                let security = &container["securityContext"];
                assert_eq!(security["readOnlyRootFilesystem"], true, "{name}: {container:#}");
                assert_eq!(
                    (&security["privileged"], &security["allowPrivilegeEscalation"]),
                    (&json!(false), &json!(false))
                );
                assert_eq!(security["capabilities"], json!({ "drop": ["ALL"] }));
                let requests = &container["resources"]["requests"];
                assert!(
                    requests["cpu"].is_string() && requests["memory"].is_string(),
                    "{name}: {container:#}"
                );
                assert!(
                    container["image"]
                        .as_str()
                        .is_some_and(|image| image.contains(':') && !image.ends_with(':'))
                );
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_two_of_a_kind_share_a_machine_and_one_at_a_time_is_disturbed() -> Result<()> {
    for (name, values) in all() {
        let objects = rendered(&values).await?;
        for set in [of("StatefulSet", &objects), of("Deployment", &objects)].concat() {
            let (labels, spec) =
                (&set["spec"]["template"]["metadata"]["labels"], &set["spec"]["template"]["spec"]);
            assert!(fits(&set["spec"]["selector"]["matchLabels"], labels), "{name}: {set:#}");
            let apart =
                &spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
            assert_eq!(apart["topologyKey"], "kubernetes.io/hostname", "{name}");
            assert!(fits(&apart["labelSelector"]["matchLabels"], labels), "{name}: {apart:#}");
            let guards: Vec<&Value> = of("PodDisruptionBudget", &objects)
                .into_iter()
                .filter(|guard| fits(&guard["spec"]["selector"]["matchLabels"], labels))
                .collect();
            assert_eq!(guards.len(), 1, "{name}: two budgets for a pod make it impossible to evict");
            assert_eq!(guards[0]["spec"]["maxUnavailable"], 1);
            assert!(fits(
                &apart["labelSelector"]["matchLabels"],
                &guards[0]["spec"]["selector"]["matchLabels"]
            ));
            assert_eq!(spec["priorityClassName"], "system-cluster-critical");
            for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
                assert!(spec["containers"][0][probe]["httpGet"]["port"].is_string(), "{name}: {probe}");
            }
            // Who is called has a service, which finds it.
            if set["kind"] == "Deployment" {
                continue;
            }
            let service = one("Service", set["spec"]["serviceName"].as_str().expect("a name"), &objects);
            assert!(
                fits(&service["spec"]["selector"], labels) && service["spec"]["clusterIP"] == "None",
                "{name}"
            );
        }
    }
    Ok(())
}

/// GKE admits no pod of a class system-* outside of kube-system where no quota covers it; there is none where no pod has such a class.
#[tokio::test]
async fn a_quota_covers_every_pod_of_a_class_of_the_system_s() -> Result<()> {
    for (name, values) in all().into_iter().chain([("alone", alone())]) {
        let objects = rendered(&values).await?;
        let quotas = of("ResourceQuota", &objects);
        let covered: BTreeSet<&str> = quotas
            .iter()
            .filter_map(|quota| quota.pointer("/spec/scopeSelector/matchExpressions/0/values")?.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let classes =
            pods(&objects).into_iter().filter_map(|(_, pod)| pod["spec"]["priorityClassName"].as_str());
        let critical: BTreeSet<&str> = classes.filter(|class| class.starts_with("system-")).collect();
        assert_eq!(covered, critical, "{name}");
    }
    let plain =
        [("/gateways/priorityClassName", json!("")), ("/controller/priorityClassName", json!("mine"))];
    let objects = rendered(&with(alone(), &plain)).await?;
    assert!(of("ResourceQuota", &objects).is_empty());
    let off = with(alone(), &[("/quota", json!({ "enabled": false }))]);
    assert!(of("ResourceQuota", &rendered(&off).await?).is_empty());
    Ok(())
}

/// In the cluster whose Nodes are fenced, with gateways that are elsewhere: nothing of theirs is made.
#[tokio::test]
async fn the_controller_may_be_installed_alone() -> Result<()> {
    let objects = rendered(&alone()).await?;
    let others = objects.iter().filter(|object| {
        let part = &object["metadata"]["labels"]["app.kubernetes.io/component"];
        *part != "controller" && object["kind"] != "PrometheusRule" && object["kind"] != "ResourceQuota"
    });
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&Value>::new());
    let spec = &one("Deployment", "picket-controller", &objects)["spec"]["template"]["spec"];
    assert_eq!(spec["nodeSelector"], json!({ "rack": "r1" }));
    assert!(
        spec["tolerations"].to_string().contains("mine")
            && spec["containers"][0]["env"].to_string().contains("NO_COLOR")
    );
    let (labels, ports) = (
        &one("Deployment", "picket-controller", &objects)["spec"]["template"]["metadata"]["labels"],
        "/spec/endpoints/0/port",
    );
    let (service, monitor) =
        (one("Service", "picket-controller", &objects), one("ServiceMonitor", "picket-controller", &objects));
    assert!(fits(&service["spec"]["selector"], labels));
    assert!(fits(&monitor["spec"]["selector"]["matchLabels"], &service["metadata"]["labels"]));
    assert_eq!(monitor.pointer(ports), Some(&service["spec"]["ports"][0]["name"]));
    let nothing = with(alone(), &[("/controller/enabled", json!(false))]);
    let nowhere = with(alone(), &[("/controller/endpoints", json!([]))]);
    for (values, why) in [(nothing, "one of the two at least"), (nowhere, "say where they answer")] {
        let said = told(&["template", "picket"], &values).await?;
        assert!(said.code != 0 && said.err.contains(why), "{said:?}");
    }
    Ok(())
}

/// The controller's settings as they lie in a pod, and its own word on them: only the pod's account is missing here.
#[tokio::test]
async fn the_controller_takes_the_settings_that_the_chart_writes() -> Result<()> {
    let (_, values) = all().into_iter().find(|(name, _)| *name == "watching").expect("it is there");
    let objects = rendered(&values).await?;
    let written = one("ConfigMap", "picket-controller", &objects)["data"]["controller.toml"].as_str();
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), written.expect("settings")).expect("written");
    let mut command = tokio::process::Command::new(program("picket-controller")?);
    command.arg("--config").arg(file.path()).arg("check").kill_on_drop(true);
    let said = Said::of(command.output().await.expect("it runs"));
    assert!(said.err.contains("no kubeconfig is set, and this is no pod"), "{said:?}");
    let there = r#""https://picket.fencing.svc:7070""#;
    assert!(written.is_some_and(|settings| settings.contains(there)));
    Ok(())
}

#[tokio::test]
async fn nothing_secret_is_made_and_secrets_are_read_by_their_owner_s_group_alone() -> Result<()> {
    for (name, values) in all() {
        let objects = rendered(&values).await?;
        assert_eq!(of("Secret", &objects), Vec::<&Value>::new(), "{name}");
        for (_, pod) in pods(&objects) {
            for volume in pod["spec"]["volumes"].as_array().expect("volumes") {
                let mode = |of: &Value| of["defaultMode"].as_u64();
                let secret = !volume["secret"].is_null() || volume.to_string().contains("\"secret\":");
                let modes = [mode(&volume["secret"]), mode(&volume["projected"])];
                // What is in a Secret, and what everybody may read, picketd does not take.
                assert!(!secret || modes.contains(&Some(0o440)), "{name}: {volume:#}");
            }
        }
    }
    Ok(())
}

/// The settings as they lie in a pod, and picketd's own word on them. What is in Secrets is not there.
async fn faults(values: &Value) -> Result<Vec<String>> {
    let objects = rendered(values).await?;
    let home = tempfile::tempdir().expect("a directory");
    let set = one("StatefulSet", "picket", &objects);
    let volumes = set["spec"]["template"]["spec"]["volumes"].as_array().expect("volumes");
    let settings = volumes.iter().find(|volume| volume["name"] == "settings").expect("settings");
    for source in settings["projected"]["sources"].as_array().expect("sources") {
        let map = &source["configMap"];
        let found = one("ConfigMap", map["name"].as_str().expect("a name"), &objects);
        for item in map["items"].as_array().expect("items") {
            let path = home.path().join(item["path"].as_str().expect("a path"));
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            let text = found["data"][item["key"].as_str().expect("a key")].as_str().expect("a text");
            std::fs::write(path, text).expect("written");
        }
    }
    let filled = |text: &str| text.replace("$(POD_NAME)", "picket-0").replace("$(NODE_NAME)", "n1");
    let variables: Vec<(String, String)> = set["spec"]["template"]["spec"]["containers"][0]["env"]
        .as_array()
        .expect("variables")
        .iter()
        .filter_map(|one| Some((one["name"].as_str()?.to_owned(), filled(one["value"].as_str()?))))
        .collect();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let said = picketd(&home.path().join("picket.toml"), &["--check"], &variables).await?;
    let lines =
        said.err.lines().skip(1).filter(|line| line.contains(": ") && !line.contains("cannot be read"));
    let told = lines.filter(|line| {
        !line.contains("/run/certificates") && !line.contains("/run/picket") && !line.contains("/var/lib")
    });
    Ok(told.map(str::to_owned).collect())
}

#[tokio::test]
async fn the_settings_in_the_pod_are_right() -> Result<()> {
    for (name, values) in all() {
        let told = faults(&values).await?;
        assert_eq!(told, Vec::<String>::new(), "{name}");
    }
    // So that nothing is shown by a look that sees nothing.
    let wrong = with(given(), &[("/settings/toml", json!("[gateway]\ncolour = \"red\"\n"))]);
    let told = faults(&wrong).await?;
    assert!(told.iter().any(|line| line.contains("colour")), "{told:?}");
    Ok(())
}

/// S17, K13.
#[tokio::test]
async fn a_gateway_of_the_cluster_that_it_fences_learns_its_node() -> Result<()> {
    for (name, values) in all() {
        let objects = rendered(&values).await?;
        let fences = values["gateways"]["fenceThisCluster"] != false;
        let spec = &one("StatefulSet", "picket", &objects)["spec"]["template"]["spec"];
        let env = spec["containers"][0]["env"].as_array().expect("variables");
        let value = |name: &str| env.iter().find(|one| one["name"] == name).cloned().unwrap_or_default();
        assert_eq!(value("NODE_NAME")["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
        assert_eq!(value("POD_NAME")["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
        let node = value("PICKET__GATEWAY__KUBERNETES_NODE")["value"].clone();
        assert_eq!(node, if fences { json!("$(NODE_NAME)") } else { Value::Null }, "{name}");
        // A reference counts only behind what it refers to.
        let place = |name: &str| env.iter().position(|one| one["name"] == name);
        assert!(!fences || place("NODE_NAME") < place("PICKET__GATEWAY__KUBERNETES_NODE"), "{name}");
        assert_eq!(spec["automountServiceAccountToken"], fences, "{name}");
        let bound = of("ClusterRoleBinding", &objects);
        let to_gateways = bound.iter().filter(|one| one["subjects"][0]["name"] == "picket");
        assert_eq!(to_gateways.count(), usize::from(fences), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_bundled_etcd_is_three_members_that_are_told_apart() -> Result<()> {
    let objects = rendered(&bundled()).await?;
    let chart =
        one("ConfigMap", "picket-chart", &objects)["data"]["chart.toml"].as_str().expect("a text").to_owned();
    let chart: toml::Table = toml::from_str(&chart).expect("TOML");
    let store = chart["store"].as_table().expect("a table");
    let members = store["members"].as_table().expect("members");
    let endpoints: BTreeSet<&str> =
        store["endpoints"].as_array().expect("a list").iter().filter_map(toml::Value::as_str).collect();
    for (n, (node, known)) in [("n1", "n1"), ("m2", ""), ("m3", "")].into_iter().enumerate() {
        let name = format!("picket-etcd-{n}");
        assert_eq!(members[&name].as_str(), Some(known), "only a node of the fleet can be fenced");
        assert!(endpoints.contains(format!("https://{name}.fencing.svc:2379").as_str()), "{endpoints:?}");
        let set = one("StatefulSet", &name, &objects);
        assert_eq!(set["spec"]["replicas"], 1);
        let spec = &set["spec"]["template"]["spec"];
        let on = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(on["nodeSelectorTerms"][0]["matchFields"][0]["values"], json!([node]), "{name}");
        let args: Vec<&str> = spec["containers"][0]["args"]
            .as_array()
            .expect("arguments")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let given = |option: &str| {
            let found = args.iter().find_map(|arg| arg.strip_prefix(&format!("--{option}=")));
            found.unwrap_or_else(|| panic!("{name} has no --{option}: {args:?}"))
        };
        assert_eq!(given("name"), name);
        assert!(
            given("initial-cluster").contains(&format!("{name}={}", given("initial-advertise-peer-urls")))
        );
        assert!(
            args.contains(&"--client-cert-auth") && args.contains(&"--peer-client-cert-auth"),
            "{args:?}"
        );
        assert_eq!(given("initial-cluster").split(',').count(), 3);
    }
    assert_eq!((members.len(), endpoints.len()), (3, 3));
    Ok(())
}

#[tokio::test]
async fn who_else_may_not_reaches_no_member_of_etcd() -> Result<()> {
    let objects = rendered(&bundled()).await?;
    let policy = one("NetworkPolicy", "picket-etcd", &objects);
    for rule in policy["spec"]["ingress"].as_array().expect("rules") {
        let open = rule["from"].is_null();
        assert!(!open || rule["ports"][0]["port"] == 2381, "only its health is told to everybody: {rule:#}");
    }
    // On the Nodes' network a gateway has no label by which it could be let in; certificates are asked for all the same.
    let host = rendered(&with(bundled(), &[("/gateways/hostNetwork", json!(true))])).await?;
    let clients = &one("NetworkPolicy", "picket-etcd", &host)["spec"]["ingress"][0];
    assert!(clients["from"].is_null() && clients["ports"][0]["port"] == 2379, "{clients:#}");
    let none = rendered(&with(bundled(), &[("/networkPolicy/enabled", json!(false))])).await?;
    assert_eq!(of("NetworkPolicy", &none), Vec::<&Value>::new());
    Ok(())
}
