//! What became of our own detaches. Nova's actions name no volume: which one is which, whoever sent it knows.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use picket_driver::{Call, Standing};

use crate::actions;
use crate::driver::OpenstackDriver;

/// By the volume's id: what Nova called the last detach of it that it took from this process, and what became of it once that is a failure.
#[derive(Debug, Default)]
pub(crate) struct Detaches(Mutex<BTreeMap<String, Detach>>);

#[derive(Clone, Debug)]
struct Detach {
    request: String,
    failed: Option<String>,
}

impl Detaches {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Detach>> {
        self.0.lock()
    }

    /// Nova took one, and calls it so.
    pub(crate) fn took(&self, volume: &str, request: Option<String>) {
        let mut all = self.all();
        match request {
            Some(request) => drop(all.insert(volume.to_owned(), Detach { request, failed: None })),
            None => drop(all.remove(volume)),
        }
    }
}

impl OpenstackDriver {
    /// What is attached still although Nova took our detach: with what Nova says became of that. It is told to people, and decides nothing.
    pub(crate) async fn with_failed_detach(&self, standing: Standing, volume: &str, call: &Call) -> Standing {
        let Standing::Attached(words) = standing else { return standing };
        let detach = self.detaches.all().get(volume).cloned();
        let Some(Detach { request, failed }) = detach else { return Standing::Attached(words) };
        let why = match failed {
            Some(why) => why,
            None => {
                let action = actions::one(&self.cloud, &self.settings.server, &request, call).await;
                let Some(why) = action.ok().flatten().and_then(|action| action.failure()) else {
                    return Standing::Attached(words);
                };
                tracing::warn!(
                    server = self.settings.server,
                    volume,
                    request,
                    why,
                    "a detach of ours failed"
                );
                if let Some(known) = self.detaches.all().get_mut(volume).filter(|one| one.request == request)
                {
                    known.failed = Some(why.clone());
                }
                why
            }
        };
        Standing::Attached(format!("{words}; our detach {request} failed: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use picket_driver::{Standing, VolumeAt, Volumes};
    use serde_json::{Value, json};

    use crate::fake_nova::{self, action, stopped};

    const BAD: Option<&str> = Some("Error");

    fn detach(request: &str, result: Option<&'static str>) -> Value {
        let steps = [("compute_detach_volume", result, "hv1", "14:00:01", "14:00:02")];
        let mut action = action("detach_volume", request, "14:00:00", &steps);
        action["events"][0]["details"] = json!(result.map(|_| "the hypervisor could not"));
        action
    }

    /// Actions name no volume: another one's failure is not told of this one.
    #[tokio::test]
    async fn a_detach_that_ended_in_an_error_is_told_with_the_volume_that_is_attached_still() {
        for (taken, actions, attached, told) in [
            (Some("req-2"), vec![detach("req-3", None), detach("req-2", BAD)], true, true),
            // It is under way, or ended well, or was another one's.
            (Some("req-2"), vec![detach("req-3", BAD), detach("req-2", None)], true, false),
            (Some("req-2"), vec![detach("req-2", Some("Success"))], true, false),
            (Some("req-2"), vec![], true, false),
            (None, vec![detach("req-2", BAD)], true, false),
            (Some("req-2"), vec![detach("req-2", BAD)], false, false),
        ] {
            let asked = Arc::new(AtomicUsize::new(0));
            let count = asked.clone();
            let nova = move |path: &str| {
                if path.contains("/os-volume_attachments") {
                    let list = if attached { json!([{ "volumeId": "v1" }]) } else { json!([]) };
                    return Some(json!({ "volumeAttachments": list }));
                }
                if path.contains("/volumes/") {
                    let owners =
                        if attached { json!([{ "server_id": fake_nova::SERVER }]) } else { json!([]) };
                    let status = if attached { "in-use" } else { "available" };
                    return Some(json!({ "volume": { "status": status, "attachments": owners } }));
                }
                if path.contains("/os-instance-actions/") {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                fake_nova::actions(path, &actions).unwrap_or_else(|| Some(json!({ "server": stopped() })))
            };
            let driver = fake_nova::driver("admin", nova).await;
            driver.detaches.took("v1", taken.map(str::to_owned));
            let volume = VolumeAt { id: "v1".to_owned(), device: "/dev/vdb".to_owned() };
            for _ in ["asked", "known"] {
                let standing = driver.standing(&volume, &fake_nova::reading()).await.expect("it answers");
                let words = match &standing {
                    Standing::Attached(words) => words,
                    Standing::Going(words) | Standing::Free(words) => words,
                };
                assert_eq!(matches!(standing, Standing::Attached(_)), attached, "{standing:?}");
                let failure =
                    "in-use; our detach req-2 failed: compute_detach_volume: the hypervisor could not";
                assert_eq!(words == failure, told, "{taken:?}: {standing:?}");
            }
            assert!(!told || asked.load(Ordering::Relaxed) == 1, "what failed has failed for good");
        }
    }
}
