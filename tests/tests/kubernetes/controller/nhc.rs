//! medik8s' NodeHealthCheck, which is not to be had here: played from its contract with remediators. It may do what the shipped role
//! lets it, takes the Node's lease before it makes a remediation of a template, and deletes that once the Node is healthy.

use std::time::Duration;

use picket_proto::v1::{GetNodeRequest, NodeSelector, Phase, node_selector};
use picket_tests::peers::until;
use picket_tests::{PeerError, Result};
use serde_json::{Value, json};

use crate::controller::scene::{Controller, Scene};

const ALLOWED: &str = include_str!("../../../../deploy/kubernetes/remediation.yaml");
const WITHIN: Duration = Duration::from_secs(120);
const SPACE: &str = "ops";

/// A NodeHealthCheck of the name `workers`, and what it names as its template.
pub struct Nhc<'a> {
    pub scene: &'a Scene,
    uid: String,
    template: Value,
}

impl<'a> Nhc<'a> {
    /// `spec`: of the template; `several`: it supports several templates for one Node.
    pub async fn new(scene: &'a Scene, spec: &Value, several: bool) -> Result<Nhc<'a>> {
        let cluster = scene.cluster;
        let file = scene.file("remediation.yaml", ALLOWED)?;
        cluster.kubectl(&["apply", "-f", &file]).await?;
        let own = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": SPACE } });
        let bound = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": "nhc" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "picket-ext-remediation" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nhc" }],
        });
        for one in [&own, &bound] {
            cluster.apply(one).await?;
        }
        let kind = ("NodeHealthCheck", "nodehealthchecks");
        cluster.define(kind, "remediation.medik8s.io", "v1alpha1", "Cluster").await?;
        clean(scene).await?;
        let check = json!({
            "apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "metadata": { "name": "workers" },
        });
        cluster.apply(&check).await?;
        let check = cluster.json(&["get", "nodehealthcheck", "workers"]).await?;
        let annotations = match several {
            true => json!({ "remediation.medik8s.io/multiple-templates-support": "true" }),
            false => json!({}),
        };
        cluster.apply(&template("picket", &annotations, spec)).await?;
        let template = cluster.json(&["-n", SPACE, "get", "picketremediationtemplate", "picket"]).await?;
        Ok(Self { scene, uid: text(&check["metadata"]["uid"]), template })
    }

    /// The same one with another template of that name, to which it goes on where the first one came to nothing.
    pub async fn next(&self, name: &str, spec: &Value) -> Result<Nhc<'a>> {
        let cluster = self.scene.cluster;
        cluster.apply(&template(name, &self.template["metadata"]["annotations"], spec)).await?;
        let template = cluster.json(&["-n", SPACE, "get", "picketremediationtemplate", name]).await?;
        Ok(Self { scene: self.scene, uid: self.uid.clone(), template })
    }

    /// A controller that does what this one asks for, and leads.
    pub async fn controller(&self) -> Result<Controller> {
        let controller = self.scene.begin("one", &self.scene.remediating("one")?)?;
        self.scene.logged(&controller, "this replica leads").await?;
        Ok(controller)
    }

    /// Takes the lease of a Node.
    pub async fn takes(&self, node: &str, holder: &str) -> Result<()> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": format!("node-{node}"), "namespace": "medik8s-leases" },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 600 },
        });
        self.scene.cluster.apply(&lease).await
    }

    /// Finds a Node unhealthy: its lease, then a remediation of the template. Its name.
    pub async fn gives_up(&self, node: &str) -> Result<String> {
        self.takes(node, "NodeHealthCheck-workers").await?;
        self.makes(node, &json!({})).await
    }

    /// Makes the remediation alone.
    pub async fn makes(&self, node: &str, annotations: &Value) -> Result<String> {
        let mut said = json!({
            "remediation.medik8s.io/node-name": node,
            "remediation.medik8s.io/template-name": self.template["metadata"]["name"],
        });
        if let (Some(said), Some(more)) = (said.as_object_mut(), annotations.as_object()) {
            said.extend(more.clone());
        }
        let annotations = &self.template["metadata"]["annotations"];
        let mut metadata = json!({
            "namespace": SPACE,
            "annotations": said,
            "ownerReferences": [{
                "apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "workers", "uid": self.uid,
            }],
        });
        match annotations["remediation.medik8s.io/multiple-templates-support"] == "true" {
            true => metadata["generateName"] = json!(format!("{node}-")),
            false => metadata["name"] = json!(node),
        }
        let whole = json!({
            "apiVersion": "picket.dev/v1alpha1",
            "kind": "PicketRemediation",
            "metadata": metadata,
            "spec": self.template["spec"]["template"]["spec"],
        });
        let file = self.scene.file("remediation.json", &whole.to_string())?;
        let made = self.scene.cluster.kubectl(&["create", "-f", &file, "-o", "name", "--as=nhc"]).await?;
        Ok(made.trim().rsplit('/').next().unwrap_or_default().to_owned())
    }

    /// Its time for that one is over.
    pub async fn times_out(&self, name: &str) -> Result<()> {
        let said = "remediation.medik8s.io/nhc-timed-out=2026-01-01T00:00:00Z";
        self.annotate(name, said).await
    }

    pub async fn annotate(&self, name: &str, said: &str) -> Result<()> {
        let of = ["-n", SPACE, "annotate", "picketremediation", name, said];
        self.scene.cluster.kubectl(&of).await.map(drop)
    }

    /// Deletes the remediation, and gives the lease back.
    pub async fn deletes(&self, name: &str, node: &str) -> Result<()> {
        let of = ["-n", SPACE, "delete", "picketremediation", name, "--wait=false", "--as=nhc"];
        self.scene.cluster.kubectl(&of).await?;
        let lease = format!("node-{node}");
        let of = ["-n", "medik8s-leases", "delete", "lease", &lease, "--ignore-not-found"];
        self.scene.cluster.kubectl(&of).await.map(drop)
    }

    pub async fn read(&self, name: &str) -> Result<Value> {
        let of = ["-n", SPACE, "get", "picketremediation", name];
        self.scene.cluster.json(&of).await
    }

    /// Waits until a remediation says so of both conditions, by that reason of `Processing`; its words.
    pub async fn says(
        &self,
        name: &str,
        (processing, succeeded, reason): (&str, &str, &str),
        controller: &Controller,
    ) -> Result<String> {
        let (mut words, mut seen) = (String::new(), Value::Null);
        let what = format!("{name} says Processing {processing}, Succeeded {succeeded}, {reason}");
        let said = until(&what, WITHIN, async || {
            seen = self.read(name).await?["status"].clone();
            let all = seen["conditions"].as_array().cloned().unwrap_or_default();
            let of = |kind: &str| all.iter().find(|one| one["type"] == kind).cloned().unwrap_or_default();
            let (first, second) = (of("Processing"), of("Succeeded"));
            words = text(&first["message"]);
            Ok(first["status"] == processing && second["status"] == succeeded && first["reason"] == reason)
        });
        match said.await {
            Err(PeerError::TimedOut { what, within, .. }) => {
                let seen = format!("{seen:#}\n{}", controller.log());
                Err(PeerError::TimedOut { what, within, seen })
            }
            other => other.map(|()| words),
        }
    }

    /// Waits until it is gone.
    pub async fn is_gone(&self, name: &str, controller: &Controller) -> Result<()> {
        let of = ["-n", SPACE, "get", "picketremediation", name, "--ignore-not-found", "-o", "name"];
        let what = format!("{name} is gone");
        let gone =
            until(&what, WITHIN, async || Ok(self.scene.cluster.kubectl(&of).await?.trim().is_empty()));
        match gone.await {
            Err(PeerError::TimedOut { what, within, .. }) => {
                Err(PeerError::TimedOut { what, within, seen: controller.log() })
            }
            other => other,
        }
    }

    /// Who keeps a node off, and where it stands, by the gateway.
    pub async fn holds(&self, node: &str) -> Result<(Vec<String>, Phase)> {
        let failed = |status: tonic::Status| PeerError::Io {
            what: "GetNode".to_owned(),
            source: std::io::Error::other(status),
        };
        let by = Some(node_selector::By::Name(node.to_owned()));
        let request = GetNodeRequest { node: Some(NodeSelector { by }), ..GetNodeRequest::default() };
        let mut client = self.scene.gateway.client().await?;
        let found = client.get_node(request).await.map_err(failed)?.into_inner().node.unwrap_or_default();
        let phase = found.phase();
        Ok((found.holds.into_iter().map(|hold| hold.holder).collect(), phase))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A template of that name.
pub fn template(name: &str, annotations: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "picket.dev/v1alpha1",
        "kind": "PicketRemediationTemplate",
        "metadata": { "name": name, "namespace": SPACE, "annotations": annotations },
        "spec": { "template": { "spec": spec } },
    })
}

/// What another test of this cluster has left goes.
pub async fn clean(scene: &Scene) -> Result<()> {
    let cluster = scene.cluster;
    let all = cluster.json(&["-n", SPACE, "get", "picketremediations"]).await?;
    for one in all["items"].as_array().into_iter().flatten() {
        let name = text(&one["metadata"]["name"]);
        let free = ["-n", SPACE, "patch", "picketremediation", &name, "--type=merge"];
        let none = ["-p", "{\"metadata\":{\"finalizers\":null}}"];
        cluster.kubectl(&[&free[..], &none].concat()).await?;
    }
    cluster.kubectl(&["-n", SPACE, "delete", "picketremediations", "--all"]).await?;
    cluster.kubectl(&["-n", SPACE, "delete", "picketremediationtemplates", "--all"]).await.map(drop)
}
