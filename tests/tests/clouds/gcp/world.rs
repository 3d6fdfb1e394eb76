//! How the peer's instances behave, as far as Google's pages and other people's reports tell.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{ComputeEngine, GceDisk, GceInstance, GceMake, GceTreatment};
use serde_json::{Value, json};

use crate::gcp::law::{error, path};

const REQUEST: &str = "requestId=8a0c1c9e-7d0a-4b58-9d4f-0a5ef3f6b6a1";

/// A peer, and who may do everything there.
struct Scene {
    gce: ComputeEngine,
    token: String,
}

impl Scene {
    async fn new() -> Result<Self> {
        let gce = ComputeEngine::start().await?;
        let token = gce.token(&gce.user(&["*"]).await?).await?;
        Ok(Self { gce, token })
    }

    async fn post(&self, path: &str) -> Result<Option<(u16, Value)>> {
        self.gce.bare(&self.token, "POST", path, None).await
    }

    /// Posted, and taken: the operation.
    async fn taken(&self, path: &str) -> Result<Value> {
        let (status, body) = self.post(path).await?.expect("an answer");
        assert_eq!((status, &body["kind"]), (200, &json!("compute#operation")), "{body}");
        Ok(body)
    }

    /// Waits for an operation as `zoneOperations.wait` does, once.
    async fn waited(&self, instance: &GceInstance, operation: &Value) -> Result<Value> {
        let name = operation["name"].as_str().unwrap_or_default();
        self.taken(&format!("zones/{}/operations/{name}/wait", instance.zone)).await
    }

    async fn refused(&self, path: &str) -> Result<(u16, String)> {
        let (status, reason, _) = error(&self.post(path).await?);
        Ok((status, reason))
    }
}

fn stop(instance: &GceInstance) -> String {
    format!("{}/stop?noGracefulShutdown=true", path(instance))
}

fn not_ready() -> (u16, String) {
    (400, "resourceNotReady".to_owned())
}

#[tokio::test]
async fn the_same_request_again_does_nothing_anew_and_another_one_is_refused() -> Result<()> {
    let scene = Scene::new().await?;
    let (instance, other) = (scene.gce.instance(&[]).await?, scene.gce.instance(&[]).await?);
    let request = format!("{}&{REQUEST}", stop(&instance));
    let first = scene.taken(&request).await?;
    assert_eq!(first["clientOperationId"].as_str(), REQUEST.strip_prefix("requestId="));
    assert_eq!(scene.waited(&instance, &first).await?["status"], "DONE");
    let started = scene.taken(&format!("{}/start", path(&instance))).await?;
    scene.waited(&instance, &started).await?;

    // It was done: that it runs again is no matter of that request.
    let second = scene.taken(&request).await?;
    assert_eq!((&second["name"], &second["status"]), (&first["name"], &json!("DONE")));
    assert_eq!(scene.gce.state(&instance.id).await?, "RUNNING");
    let elsewhere = format!("{}&{REQUEST}", stop(&other));
    assert_eq!(scene.refused(&elsewhere).await?, (400, "invalid".to_owned()));
    assert_eq!(scene.gce.state(&other.id).await?, "RUNNING");

    scene.gce.memory(Duration::ZERO).await?;
    let third = scene.taken(&request).await?;
    assert_ne!(third["name"], first["name"]);
    scene.waited(&instance, &third).await?;
    assert_eq!(scene.gce.state(&instance.id).await?, "TERMINATED");
    Ok(())
}

#[tokio::test]
async fn a_stop_that_is_stuck_ends_when_it_is_mended_and_bars_another_one() -> Result<()> {
    let scene = Scene::new().await?;
    let instance = scene.gce.instance(&[]).await?;
    let stuck = GceTreatment { stuck: Some("stopping"), ..GceTreatment::default() };
    scene.gce.treat(&instance.id, &stuck).await?;
    let first = scene.taken(&stop(&instance)).await?;
    assert_eq!(first["targetId"].as_str(), Some(instance.id.as_str()));
    scene.gce.waits(Duration::from_millis(50)).await?;
    assert_eq!(scene.waited(&instance, &first).await?["status"], "RUNNING");
    assert_eq!(scene.gce.state(&instance.id).await?, "STOPPING");
    for verb in ["stop?noGracefulShutdown=true", "start", "reset", "suspend"] {
        assert_eq!(scene.refused(&format!("{}/{verb}", path(&instance))).await?, not_ready(), "{verb}");
    }

    // Where another one is taken it ends with the first.
    scene.gce.treat(&instance.id, &GceTreatment { busy: Some("join"), ..stuck }).await?;
    let second = scene.taken(&stop(&instance)).await?;
    assert_ne!(second["name"], first["name"]);
    scene.gce.waits(Duration::from_secs(60)).await?;
    scene.gce.mend(&instance.id).await?;
    assert_eq!(scene.waited(&instance, &second).await?["status"], "DONE");
    assert_eq!(scene.gce.state(&instance.id).await?, "TERMINATED");
    let already = scene.taken(&stop(&instance)).await?;
    assert_eq!(scene.waited(&instance, &already).await?["status"], "DONE");
    let offs = scene.gce.events(&instance.id).await?.into_iter().filter(|event| event.what == "off");
    assert_eq!(offs.count(), 1);
    Ok(())
}

#[tokio::test]
async fn grace_lasts_until_a_stop_that_skips_it_and_the_guest_has_its_time_unless_it_is_skipped() -> Result<()>
{
    let scene = Scene::new().await?;
    let scheduling = json!({ "gracefulShutdown": { "enabled": true } });
    let graceful = scene.gce.make(&GceMake { scheduling, ..GceMake::default() }).await?;
    let first = scene.taken(&format!("{}/stop", path(&graceful))).await?;
    assert_eq!(scene.refused(&format!("{}/stop", path(&graceful))).await?, not_ready());
    assert_eq!(scene.gce.state(&graceful.id).await?, "PENDING_STOP");
    let second = scene.taken(&stop(&graceful)).await?;
    for operation in [&first, &second] {
        assert_eq!(scene.waited(&graceful, operation).await?["status"], "DONE");
    }
    assert_eq!(scene.gce.state(&graceful.id).await?, "TERMINATED");

    let slow = scene.gce.instance(&[]).await?;
    let scheduling = json!({ "skipGuestOsShutdown": true });
    let quick = scene.gce.make(&GceMake { scheduling, ..GceMake::default() }).await?;
    for (instance, most, status) in [(&slow, 400, "RUNNING"), (&quick, 30_000, "DONE")] {
        scene.gce.waits(Duration::from_millis(most)).await?;
        scene.gce.treat(&instance.id, &GceTreatment { acpi: Some(600.0), ..GceTreatment::default() }).await?;
        let operation = scene.taken(&stop(instance)).await?;
        assert_eq!(scene.waited(instance, &operation).await?["status"], status);
    }
    Ok(())
}

#[tokio::test]
async fn rules_lose_hold_garble_and_fail_what_they_name_and_nothing_else() -> Result<()> {
    let scene = Scene::new().await?;
    let [refused, lost, late, failed] = [(); 4].map(|()| scene.gce.instance(&["data-0"]));
    let (refused, lost, late, failed) = (refused.await?, lost.await?, late.await?, failed.await?);
    let gce = &scene.gce;
    let busy = json!({ "status": 503, "reason": "backendError", "message": "Try again." });
    gce.rule("instances.stop", &refused.id, 1, busy).await?;
    gce.rule("instances.stop", &lost.name, 1, json!({ "do": "lost" })).await?;
    gce.treat(&lost.id, &GceTreatment { stopping: Some(600.0), ..GceTreatment::default() }).await?;
    gce.rule("instances.stop", &late.id, 1, json!({ "do": "late", "seconds": 0.4 })).await?;
    gce.rule("instances.detachDisk", &failed.id, 1, json!({ "do": "fault", "code": "INTERNAL_ERROR" }))
        .await?;

    assert_eq!(scene.refused(&stop(&refused)).await?, (503, "backendError".to_owned()));
    assert_eq!(gce.state(&refused.id).await?, "RUNNING");
    assert_eq!(scene.post(&stop(&lost)).await?, None);
    assert_eq!(gce.state(&lost.id).await?, "STOPPING", "it was done");
    assert_eq!(scene.refused(&stop(&lost)).await?, not_ready());

    let held = scene.taken(&stop(&late)).await?;
    assert_eq!(scene.waited(&late, &held).await?["status"], "DONE");
    let asked = gce.asked_to("instances.stop", &late.id).await?;
    assert!(asked[0].at - asked[0].came > 0.35, "{asked:?}");

    let detach = format!("{}/detachDisk?deviceName=data-0", path(&failed));
    let operation = scene.taken(&detach).await?;
    let ended = scene.waited(&failed, &operation).await?;
    assert_eq!(ended["error"]["errors"][0]["code"], "INTERNAL_ERROR", "{ended}");
    assert_eq!(gce.truth(&failed.id).await?.devices.len(), 2);
    let operation = scene.taken(&detach).await?;
    assert_eq!(scene.waited(&failed, &operation).await?.get("error"), None);
    assert_eq!(gce.truth(&failed.id).await?.devices.len(), 1);

    for how in ["garbled", "misshapen", "cut"] {
        gce.rule("instances.get", &failed.id, 1, json!({ "do": how })).await?;
        let told = gce.bare(&scene.token, "GET", &path(&failed), None).await?.expect("an answer").1;
        assert_ne!(told["id"].as_str(), Some(failed.id.as_str()), "{how}: {told}");
    }
    gce.treat(&failed.id, &GceTreatment { word: Some("DREAMING"), ..GceTreatment::default() }).await?;
    let told = gce.bare(&scene.token, "GET", &path(&failed), None).await?.expect("an answer").1;
    assert_eq!((&told["status"], gce.state(&failed.id).await?.as_str()), (&json!("DREAMING"), "RUNNING"));
    Ok(())
}

#[tokio::test]
async fn what_replaced_an_instance_has_its_name_and_disks_and_is_not_reached_by_its_number() -> Result<()> {
    let scene = Scene::new().await?;
    let old = scene.gce.instance(&["data-0"]).await?;
    let new = scene.gce.replace(&old.id).await?;
    assert_ne!(new, old.id);
    for verb in ["stop?noGracefulShutdown=true", "detachDisk?deviceName=data-0"] {
        assert_eq!(scene.refused(&format!("{}/{verb}", path(&old))).await?, (404, "notFound".to_owned()));
    }
    assert_eq!(scene.gce.state(&old.id).await?, "GONE");
    assert_eq!(scene.gce.disk(&old.disks["data-0"]).await?.users.keys().collect::<Vec<_>>(), [&new]);
    // By the name it is reached: that is why no path of ours has one.
    let by_name = format!("zones/{}/instances/{}/detachDisk?deviceName=data-0", old.zone, old.name);
    let operation = scene.taken(&by_name).await?;
    assert_eq!(operation["targetId"].as_str(), Some(new.as_str()));
    Ok(())
}

#[tokio::test]
async fn over_the_limit_of_an_interval_requests_are_refused_and_other_groups_are_not() -> Result<()> {
    let scene = Scene::new().await?;
    let instances = scene.gce.instances(3, &GceMake::default()).await?;
    scene.gce.limits_of(json!({ "mutate": 2 }), Duration::from_secs(1_000_000_000)).await?;
    scene.taken(&stop(&instances[0])).await?;
    scene.taken(&stop(&instances[1])).await?;
    assert_eq!(scene.refused(&stop(&instances[2])).await?, (403, "rateLimitExceeded".to_owned()));
    let get = scene.gce.bare(&scene.token, "GET", &path(&instances[2]), None).await?;
    assert_eq!(get.expect("an answer").0, 200);
    scene.gce.limits().await?;
    scene.taken(&stop(&instances[2])).await?;
    scene.gce.no_limits().await?;
    Ok(())
}

#[tokio::test]
async fn labels_are_set_by_who_saw_them_last_and_a_group_names_what_it_made() -> Result<()> {
    let scene = Scene::new().await?;
    let instance = scene.gce.make(&GceMake { group: Some("web"), ..GceMake::default() }).await?;
    let gce = &scene.gce;
    let told = gce.bare(&scene.token, "GET", &path(&instance), None).await?.expect("an answer").1;
    let by = told["metadata"]["items"][0]["value"].as_str().unwrap_or_default();
    assert!(by.ends_with(&format!("zones/{}/instanceGroupManagers/web", instance.zone)), "{told}");
    let members = format!("zones/{}/instanceGroupManagers/web/listManagedInstances", instance.zone);
    let (_, listed) = scene.post(&members).await?.expect("an answer");
    assert_eq!(listed["managedInstances"][0]["id"].as_str(), Some(instance.id.as_str()));

    let set =
        |fingerprint: &Value| json!({ "labels": { "picket": "fenced" }, "labelFingerprint": fingerprint });
    let at = format!("{}/setLabels", path(&instance));
    let body = set(&told["labelFingerprint"]);
    assert_eq!(gce.bare(&scene.token, "POST", &at, Some(&body)).await?.expect("an answer").0, 200);
    let (status, reason, _) = error(&gce.bare(&scene.token, "POST", &at, Some(&body)).await?);
    assert_eq!((status, reason.as_str()), (412, "conditionNotMet"));
    assert_eq!(gce.truth(&instance.id).await?.labels["picket"], "fenced");
    Ok(())
}

#[tokio::test]
async fn in_silence_nothing_is_done_and_somebody_elses_hand_ends_what_is_on_its_way() -> Result<()> {
    let scene = Scene::new().await?;
    let instance = scene.gce.instance(&[]).await?;
    scene.gce.silence(true).await?;
    let start = format!("{}/start", path(&instance));
    let (request, mended) = tokio::join!(scene.post(&start), async {
        while scene.gce.held().await? == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        scene.gce.silence(false).await
    });
    mended?;
    assert_eq!(request?, None);
    assert_eq!(scene.gce.asked(&instance.id).await?.len(), 0);

    scene.gce.treat(&instance.id, &GceTreatment { stopping: Some(600.0), ..GceTreatment::default() }).await?;
    let operation = scene.taken(&stop(&instance)).await?;
    scene.gce.switch(&instance.id, "REPAIRING").await?;
    let ended = scene.waited(&instance, &operation).await?;
    assert!(ended["status"] == "DONE" && ended["error"].is_object(), "{ended}");
    assert_eq!(scene.gce.state(&instance.id).await?, "REPAIRING");
    Ok(())
}

#[tokio::test]
async fn a_regional_disk_may_be_forced_over_and_an_instance_that_is_deleted_leaves_its_disks() -> Result<()> {
    let scene = Scene::new().await?;
    let disks = vec![GceDisk::new("wide").regional()];
    let first = scene.gce.make(&GceMake { disks, ..GceMake::default() }).await?;
    let second = scene.gce.instance(&[]).await?;
    let wide = &first.disks["wide"];
    let source = format!("projects/{}/regions/europe-west3/disks/{wide}", scene.gce.project());
    let attach = json!({ "source": source, "deviceName": "wide" });
    for (force, error) in [(false, true), (true, false)] {
        let at = format!("{}/attachDisk?forceAttach={force}", path(&second));
        let begun = scene.gce.bare(&scene.token, "POST", &at, Some(&attach)).await?.expect("an answer").1;
        assert_eq!(scene.waited(&second, &begun).await?["error"].is_object(), error, "{force}");
    }
    assert_eq!(scene.gce.disk(wide).await?.users.keys().collect::<Vec<_>>(), [&second.id]);

    let (_, begun) = scene.gce.bare(&scene.token, "DELETE", &path(&second), None).await?.expect("an answer");
    assert_eq!(scene.waited(&second, &begun).await?["status"], "DONE");
    assert_eq!(scene.gce.state(&second.id).await?, "GONE");
    let where_it_is = format!("regions/europe-west3/disks/{wide}?fields=name,users");
    let told = scene.gce.bare(&scene.token, "GET", &where_it_is, None).await?.expect("an answer").1;
    assert_eq!(told, json!({ "name": wide }));
    let events = scene.gce.events(&second.id).await?;
    let what: Vec<&str> = events.iter().map(|event| event.what.as_str()).collect();
    assert_eq!(what, ["attached", "attached", "off", "detached", "detached", "gone"]);
    Ok(())
}

#[tokio::test]
async fn a_suspended_instance_is_not_off_and_a_reset_proves_nothing() -> Result<()> {
    let scene = Scene::new().await?;
    let instance = scene.gce.instance(&[]).await?;
    for (verb, status) in [("reset", "RUNNING"), ("suspend", "SUSPENDED"), ("resume", "RUNNING")] {
        let operation = scene.taken(&format!("{}/{verb}", path(&instance))).await?;
        assert_eq!(scene.waited(&instance, &operation).await?["status"], "DONE");
        assert_eq!(scene.gce.state(&instance.id).await?, status, "{verb}");
    }
    scene.gce.switch(&instance.id, "SUSPENDED").await?;
    assert_eq!(scene.refused(&format!("{}/start", path(&instance))).await?, (400, "invalid".to_owned()));
    let operation = scene.taken(&stop(&instance)).await?;
    assert_eq!(scene.waited(&instance, &operation).await?["status"], "DONE");
    let events = scene.gce.events(&instance.id).await?;
    let what: Vec<&str> = events.iter().skip(1).map(|event| event.what.as_str()).collect();
    assert_eq!(what, ["reset", "suspended", "on", "suspended", "off"]);
    Ok(())
}
