//! One cloud for all tests here.

use std::time::Duration;

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

/// Asks until it is so, for a minute at most.
pub async fn soon(what: &str, mut seen: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let asked = async {
        while !seen().await? {
            tokio::task::yield_now().await;
        }
        Ok(())
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), asked).await;
    ended.unwrap_or_else(|_elapsed| panic!("not within a minute: {what}"))
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
