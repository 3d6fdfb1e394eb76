//! One cloud for all tests here.

use picket_tests::Result;
use picket_tests::peers::{OpenStack, Who};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// It ends with this process.
pub async fn cloud() -> Result<&'static OpenStack> {
    static CLOUD: OnceCell<OpenStack> = OnceCell::const_new();
    CLOUD.get_or_try_init(OpenStack::start).await
}

/// What the newest action of a server's came to, as a tenant hears of it: its name and the result of its last event.
pub async fn newest(cloud: &OpenStack, server: &str) -> Result<(String, Value)> {
    let listed = cloud.ask(&Who::Tenant, "actions", json!({ "server": server })).await?;
    let action = listed[0]["action"].as_str().unwrap_or_default().to_owned();
    Ok((action, listed[0]["events"][0]["result"].clone()))
}

/// POST to a server's action: the status and the body.
pub async fn act(cloud: &OpenStack, who: &Who, server: &str, what: Value) -> Result<(u64, Value)> {
    let path = format!("/servers/{server}/action");
    let asked = json!({ "service": "compute", "method": "POST", "path": path, "body": what });
    let told = cloud.ask(who, "rest", asked).await?;
    Ok((told["status"].as_u64().unwrap_or_default(), told["body"].clone()))
}

/// What stops a server.
pub fn stop() -> Value {
    json!({ "os-stop": null })
}

/// The rules of an application credential that are in `deploy`, as they are written there.
pub fn deployed() -> Vec<Value> {
    let text = include_str!("../../../../deploy/openstack/access-rules.json");
    serde_json::from_str(text).expect("JSON")
}

/// The same of what an administrator needs besides.
pub fn deployed_for_admins() -> Vec<Value> {
    let text = include_str!("../../../../deploy/openstack/access-rules-admin.json");
    serde_json::from_str(text).expect("JSON")
}

/// Each of these rules was for something that our own daemon asked.
pub fn all_are_needed(cloud: &OpenStack, rules: impl IntoIterator<Item = Value>) -> Result<()> {
    let of = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let asked = cloud.requests()?;
    for rule in rules {
        let service = if rule["service"] == "compute" { "compute" } else { "volumes" };
        let (method, path) = (of(&rule, "method"), of(&rule, "path"));
        let is_used = asked.iter().any(|one| {
            let place = one.path.split('?').next().unwrap_or_default();
            one.agent.starts_with("picket/")
                && (one.service.as_str(), one.method.as_str()) == (service, method.as_str())
                && fits(&path, place)
        });
        assert!(is_used, "nothing needs {rule}");
    }
    Ok(())
}

/// Whether a request's path is one that the rule means, whose `*` is any one part. Cinder's has the project in front of what it has here.
fn fits(rule: &str, path: &str) -> bool {
    let parts =
        |text: &str| text.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (rule, path) = (parts(rule), parts(path));
    rule.len() == path.len() && rule.iter().zip(&path).all(|(rule, part)| rule == "*" || rule == part)
}
