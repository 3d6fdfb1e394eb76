//! Kinds that others define, as far as a test wants them: any object is one.

use serde_json::json;

use super::Kubernetes;
use crate::error::Result;

impl Kubernetes {
    /// Defines that kind (`machines`, of `Machine`) of the group, and waits until it is served. `scope`: `Cluster` or `Namespaced`.
    pub async fn define(
        &self,
        (kind, plural): (&str, &str),
        group: &str,
        version: &str,
        scope: &str,
    ) -> Result<()> {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let name = format!("{plural}.{group}");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": {
                "group": group,
                "scope": scope,
                "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
                "versions": [{ "name": version, "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
            },
        });
        self.apply(&definition).await?;
        self.kubectl(&["wait", "--for=condition=Established", &format!("crd/{name}")]).await.map(drop)
    }
}
