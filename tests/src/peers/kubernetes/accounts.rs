//! Who may ask the API, and of what.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Kubernetes;
use super::pki::by_token;
use crate::error::{PeerError, Result};

const RBAC: &str = "rbac.authorization.k8s.io";

impl Kubernetes {
    /// The kubeconfig of a new ServiceAccount in the namespace `default` that may do what these rules of a ClusterRole say.
    pub async fn account(&self, name: &str, rules: &Value) -> Result<PathBuf> {
        self.with_roles(name, &[json!({ "kind": "ClusterRole", "rules": rules })]).await
    }

    /// The same by manifests that are shipped: each ClusterRole everywhere, each Role in its namespace.
    pub async fn account_by(&self, name: &str, manifests: &[&str]) -> Result<PathBuf> {
        let mut roles = Vec::new();
        for manifest in manifests {
            roles.extend(self.read(name, manifest).await?);
        }
        self.with_roles(name, &roles).await
    }

    /// The objects of a manifest, as kubectl reads it.
    async fn read(&self, name: &str, manifest: &str) -> Result<Vec<Value>> {
        let file = self.directory().join(format!("{name}.yaml"));
        std::fs::write(&file, manifest).map_err(PeerError::io(format!("write {}", file.display())))?;
        let file = file.display().to_string();
        let read = self.kubectl(&["create", "--dry-run=client", "-o", "json", "-f", &file]).await?;
        let objects = serde_json::Deserializer::from_str(&read).into_iter().collect::<Result<_, _>>();
        objects.map_err(|error| PeerError::io(format!("read {file}"))(error.into()))
    }

    async fn with_roles(&self, name: &str, roles: &[Value]) -> Result<PathBuf> {
        let whom = json!([{ "kind": "ServiceAccount", "name": name, "namespace": "default" }]);
        let mut items =
            vec![json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } })];
        for (number, role) in roles.iter().enumerate() {
            let (kind, version) = (role["kind"].as_str().unwrap_or_default(), format!("{RBAC}/v1"));
            let mut about = json!({ "name": format!("{name}-{number}") });
            if let Some(namespace) = role["metadata"].get("namespace") {
                about["namespace"] = namespace.clone();
            }
            let what = json!({ "apiGroup": RBAC, "kind": kind, "name": about["name"] });
            items.push(
                json!({ "apiVersion": version, "kind": kind, "metadata": about, "rules": role["rules"] }),
            );
            items.push(json!({
                "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": about,
                "subjects": whom, "roleRef": what,
            }));
        }
        self.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items })).await?;
        let token = self.kubectl(&["create", "token", name, "--duration=24h"]).await?;
        by_token(self.directory(), name, token.trim())
    }
}
