//! What the API server tells of an object, and when it came: kubectl watches.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use picket_tests::peers::{Kubernetes, kubectl, until};
use serde_json::Value;

use crate::edge::Wrong;

const WITHIN: Duration = Duration::from_secs(300);

/// One thing that was told.
#[derive(Clone, Debug)]
pub struct Told {
    pub at: SystemTime,
    /// `ADDED`, `MODIFIED`, `DELETED`.
    pub what: String,
    pub object: Value,
}

/// Watches one object until it is dropped.
pub struct Watch {
    name: String,
    child: std::process::Child,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watch {
    /// Begins; what is there is told first.
    pub async fn begin(cluster: &Kubernetes, kind: &str, name: &str) -> Result<Self, Wrong> {
        let mut command = cluster.place().command(kubectl()?);
        command.arg("--kubeconfig").arg(cluster.admin());
        command.args(["get", kind, name, "--watch", "--output-watch-events", "-o", "json"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = child.stdout.take().ok_or("kubectl has no output")?;
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        std::thread::spawn(move || {
            let events = serde_json::Deserializer::from_reader(out).into_iter::<Value>();
            for mut event in events.map_while(Result::ok) {
                let what = event["type"].as_str().unwrap_or_default().to_owned();
                let one = Told { at: SystemTime::now(), what, object: event["object"].take() };
                heard.lock().push(one);
            }
        });
        let watch = Self { name: format!("{kind} {name}"), child, told };
        watch.first("is watched", |_| true).await?;
        Ok(watch)
    }

    fn find(&self, is: impl Fn(&Told) -> bool) -> Option<Told> {
        self.told.lock().iter().find(|one| is(one)).cloned()
    }

    /// Waits for the first one like that.
    pub async fn first(&self, what: &str, is: impl Fn(&Told) -> bool) -> Result<Told, Wrong> {
        let mut found = None;
        until(&format!("{} {what}", self.name), WITHIN, async || {
            found = self.find(&is);
            Ok(found.is_some())
        })
        .await?;
        found.ok_or_else(|| "it was found".into())
    }
}

/// Whether a Node is Ready.
pub fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|one| one["type"] == "Ready"));
    ready.is_some_and(|ready| ready["status"] == "True")
}
