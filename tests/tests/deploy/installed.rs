//! The chart on the real Kubernetes of the tests.

use picket_tests::peers::{Kubernetes, KubernetesMachine, until};
use picket_tests::{PeerError, Result, Said};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::certificates::Authority;
use crate::fleet::{Alice, READY_WITHIN, certificate, fleet, secret, store};
use crate::image;
use crate::variants::{all, alone, chart, of, rendered};

/// One for all tests here; it ends with this process.
async fn cluster() -> Result<&'static Kubernetes> {
    static CLUSTER: OnceCell<Kubernetes> = OnceCell::const_new();
    let start = async || {
        let cluster = Kubernetes::start(2).await?;
        for namespace in ["fencing", "medik8s-leases"] {
            cluster.kubectl(&["create", "namespace", namespace]).await?;
        }
        Ok(cluster)
    };
    CLUSTER.get_or_try_init(start).await
}

/// What the API server itself says of all that is made; what belongs to the Prometheus operator it does not know.
#[tokio::test]
async fn the_api_server_would_take_all_of_it() -> Result<()> {
    let cluster = cluster().await?;
    for (name, values) in all().into_iter().chain([("alone", alone())]) {
        let objects = rendered(&values).await?;
        let known = objects.iter().filter(|object| object["apiVersion"] != "monitoring.coreos.com/v1");
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": known.collect::<Vec<_>>() });
        let file = cluster.directory().join(format!("chart-{name}.json"));
        std::fs::write(&file, list.to_string()).map_err(PeerError::io("write a manifest"))?;
        let file = file.display().to_string();
        // What the API does not know by that name is no mere warning.
        let said = cluster.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-f", &file]).await?;
        assert!(of("StatefulSet", &objects).len() <= said.matches("statefulset").count(), "{name}: {said}");
    }
    Ok(())
}

/// Installed from the archive on a machine that is a node of its own fleet: it fences the other one, and never the one that it stands on.
#[tokio::test]
async fn a_gateway_installed_by_helm_fences_its_neighbour_and_not_itself() -> Result<()> {
    let cluster = cluster().await?;
    let (here, there) = (cluster.machine("n1"), cluster.machine("n2"));
    let authority = Authority::new(&cluster.directory().join("fencing"));
    let host = std::net::IpAddr::from([10, 250, 0, 11]);
    let gateway = authority.at(&[host]);
    let store = store(cluster, &authority).await?;

    let image = image::made().await?;
    here.import(&image.archive).await?;
    let system = cluster.json(&["get", "namespace", "kube-system"]).await?;
    let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
    let secrets = [
        certificate("picket-tls", &gateway, &authority),
        certificate("picket-etcd", &authority.caller("gateways@example.org"), &authority),
        secret("bmc", &[("password", picket_tests::peers::PASSWORD)]),
    ];
    cluster.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": secrets })).await?;
    let install = async |verb: &str, more: &str| {
        let values = json!({
            "settings": { "toml": fleet(uid, cluster.machines(), more), "secrets": ["bmc"] },
            "gateways": {
                "replicas": 1,
                "runOn": "anywhere",
                "hostNetwork": true,
                "nodeSelector": { "kubernetes.io/hostname": here.name() },
                "tls": { "secretName": "picket-tls" },
                "storage": { "kind": "emptyDir" },
                "advertise": "https://10.250.0.11:7070",
                // Nobody leads from the API server's service to the API server in this cluster.
                "env": { "KUBERNETES_SERVICE_HOST": "10.250.0.1", "KUBERNETES_SERVICE_PORT": "6443" },
            },
            "etcd": { "endpoints": store.endpoints(), "tls": { "secretName": "picket-etcd" } },
        });
        let file = cluster.directory().join("values.json");
        std::fs::write(&file, values.to_string()).map_err(PeerError::io("write values"))?;
        let (chart, file) = (chart().display().to_string(), file.display().to_string());
        let said = cluster
            .helm(&[verb, "picket", &chart, "--namespace", "fencing", "--values", &file, "--timeout", "120s"])
            .await?;
        assert_eq!(said.code, 0, "{said:?}\n{}", here.said_by_pods("fencing"));
        Ok::<Said, PeerError>(said)
    };
    let installed = install("install", "").await?;
    assert!(installed.out.contains("ONE GATEWAY") && installed.out.contains("emptyDir"), "{installed:?}");
    is_ready(cluster, here).await?;

    let alice = Alice {
        cluster,
        endpoint: format!("https://{host}:7070"),
        authority: &authority.file(),
        own: authority.caller("alice@example.org"),
    };
    let told = alice.is_answered().await?;
    assert!(told.contains("picket-0") && told.contains("https://10.250.0.11:7070"), "{told}");
    let own = alice.picket(&["fence", here.name(), "--yes", "--reason", "a test"]).await?;
    assert!(own.code == 3 && format!("{own:?}").contains("self"), "{own:?}");
    assert!(here.runs());
    let fenced = alice.picket(&["fence", there.name(), "--yes", "--reason", "a test"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}");
    assert!(!there.runs());
    let node = cluster.node(there).await?;
    assert!(
        node["spec"]["taints"].to_string().contains("picket.dev/fenced"),
        "by the chart's role: {node:#}"
    );

    // Other settings: every gateway was restarted with them, and the upgrade is the word that they are the fleet's.
    install("upgrade", "[rules]\nwatch = \"11s\"\n").await?;
    let told = alice.is_answered().await?;
    assert!(told.contains("leads"), "{told}");
    let back = alice.picket(&["unfence", there.name(), "--yes", "--reason", "done"]).await?;
    assert_eq!(back.code, 0, "{back:?}");
    let gone = cluster.helm(&["uninstall", "picket", "--namespace", "fencing", "--wait"]).await?;
    assert_eq!(gone.code, 0, "{gone:?}");
    let left = cluster.kubectl(&[
        "get",
        "clusterroles,clusterrolebindings",
        "-l",
        "app.kubernetes.io/name=picket",
        "-o",
        "name",
    ]);
    assert_eq!(left.await?, "");
    Ok(())
}

/// Waits until the only gateway's pod is ready, which does not fall meanwhile.
async fn is_ready(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<()> {
    let seen = async || {
        let pod =
            cluster.json(&["get", "pod", "picket-0", "--namespace", "fencing", "--ignore-not-found"]).await?;
        let falls = pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or_default();
        assert!(falls < 2, "{}", machine.said_by_pods("fencing"));
        let conditions = pod["status"]["conditions"].as_array();
        Ok(conditions
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")))
    };
    let waited = until("the gateway's pod is ready", READY_WITHIN, seen).await;
    if waited.is_err() {
        let events = cluster.kubectl(&["describe", "pod", "--namespace", "fencing"]).await?;
        panic!("{waited:?}\n{events}\n{}{}", machine.said_by_pods("fencing"), machine.last_words());
    }
    Ok(())
}
