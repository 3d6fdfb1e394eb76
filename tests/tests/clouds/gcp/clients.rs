//! What the peer says, other people's clients say too: Google's own for Python, of both kinds, and `fence_gce`.

use picket_tests::Result;
use picket_tests::peers::{ComputeEngine, GceDisk, GceInstance, GceMake, GceTreatment};
use serde_json::{Value, json};

/// Named as a step of Google's client names it.
fn place(instance: &GceInstance) -> Value {
    json!({ "zone": instance.zone, "instance": instance.id })
}

/// With more fields.
fn with(instance: &GceInstance, more: &Value) -> Value {
    let mut fields = place(instance);
    for (key, value) in more.as_object().into_iter().flatten() {
        fields[key] = value.clone();
    }
    fields
}

#[tokio::test]
async fn googles_client_stops_lets_disks_go_and_starts() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instance = gce.instance(&["data-0", "data-1"]).await?;
    let other = gce.instance(&[]).await?;
    let key = gce.service_account_file(&gce.user(&["*"]).await?)?;
    let disk = &instance.disks["data-0"];
    let source = format!("projects/{}/zones/{}/disks/{disk}", gce.project(), instance.zone);
    let by_name = json!({ "zone": instance.zone, "instance": instance.name });
    let stop = json!({ "no_graceful_shutdown": true, "request_id": "8a0c1c9e-7d0a-4b58-9d4f-0a5ef3f6b6a1" });
    let again = json!({ "attached_disk_resource": { "source": source, "device_name": "again" } });
    let steps = json!([
        ["get", by_name],
        ["stop", with(&instance, &stop)],
        ["get", place(&instance)],
        ["detach_disk", with(&instance, &json!({ "device_name": "data-0" }))],
        ["disk", { "zone": instance.zone, "disk": disk }],
        ["attach_disk", with(&other, &again)],
        ["disk", { "zone": instance.zone, "disk": disk }],
        ["start", place(&instance)],
        ["reports", place(&instance)],
    ]);
    let told = gce.google(&key, &steps).await?;
    assert!(told.iter().all(|one| one["ok"].is_object()), "{told:#?}");
    let ok = |at: usize| &told[at]["ok"];
    assert_eq!((ok(0)["id"].as_str(), &ok(0)["status"]), (Some(instance.id.as_str()), &json!("RUNNING")));
    assert_eq!((&ok(1)["status"], ok(1)["target"].as_str()), (&json!("DONE"), Some(instance.id.as_str())));
    assert_eq!(ok(2)["status"], "TERMINATED");
    assert_eq!(ok(4)["users"], json!([]));
    let users = ok(6)["users"].as_array().expect("users");
    assert!(
        users.len() == 1 && users[0].as_str().is_some_and(|link| link.ends_with(&other.name)),
        "{users:?}"
    );
    assert_eq!(ok(8), &json!({ "id": instance.id, "status": "RUNNING" }));

    // The truth agrees, and says when: off before the disk went.
    assert_eq!(gce.state(&instance.id).await?, "RUNNING");
    assert_eq!(gce.disk(disk).await?.users, [(other.id.clone(), "READ_WRITE".to_owned())].into());
    assert_eq!(gce.truth(&instance.id).await?.devices, ["persistent-disk-0", "data-1"]);
    let events = gce.events(&instance.id).await?;
    let what: Vec<&str> = events.iter().skip(3).map(|event| event.what.as_str()).collect();
    assert_eq!(what, ["off", "detached", "on"]);
    assert!(events[3].at < events[4].at, "{events:?}");
    assert_eq!(gce.violations("").await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn googles_client_lists_as_things_are_page_by_page_and_by_a_filter() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instances = gce.instances(7, &GceMake::default()).await?;
    gce.switch(&instances[3].id, "TERMINATED").await?;
    let key = gce.service_account_file(&gce.user(&["compute.instances.list"]).await?)?;
    let (zone, one, two) = (&instances[0].zone, &instances[1], &instances[3]);
    let both = format!("(name = \"{}\") OR (id = {})", one.name, two.id);
    let steps = json!([
        ["list", { "zone": zone, "max_results": 3 }],
        ["list", { "zone": zone, "filter": "status != RUNNING" }],
        ["aggregated_list", { "filter": both }],
        ["list", { "zone": zone, "filter": format!("name eq '{}|{}'", one.name, two.name) }],
        ["list", { "zone": zone, "filter": "colour = red" }],
    ]);
    let told = gce.google(&key, &steps).await?;
    let ids = |list: &Value| -> Vec<String> {
        let ids = list.as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
        ids.map(str::to_owned).collect()
    };
    let all: Vec<String> = instances.iter().map(|instance| instance.id.clone()).collect();
    assert_eq!(ids(&told[0]["ok"]), all);
    assert_eq!(ids(&told[1]["ok"]), [two.id.as_str()]);
    assert_eq!(ids(&told[2]["ok"][format!("zones/{zone}")]), [one.id.clone(), two.id.clone()]);
    assert_eq!(ids(&told[3]["ok"]), [one.id.clone(), two.id.clone()]);
    assert_eq!((&told[4]["code"], &told[4]["reasons"]), (&json!(400), &json!(["invalid"])), "{}", told[4]);
    assert_eq!(gce.asked_to("instances.list", "").await?.len(), 3 + 3, "three pages of three");
    Ok(())
}

#[tokio::test]
async fn each_way_to_a_token_leads_to_one_that_is_good() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instance = gce.instance(&[]).await?;
    let user = gce.user(&["compute.instances.get"]).await?;
    let steps = json!([["get", place(&instance)]]);
    let told = [
        gce.google(&gce.service_account_file(&user)?, &steps).await?,
        gce.google(&gce.external_account_file(&user)?, &steps).await?,
        gce.google_on_machine(&gce.metadata(&user).await?, &steps).await?,
    ];
    for one in &told {
        assert_eq!(one[0]["ok"]["status"], "RUNNING", "{told:#?}");
    }
    let kinds: Vec<String> =
        gce.asked(&instance.id).await?.into_iter().filter_map(|one| Some(one.token?.kind)).collect();
    assert_eq!(kinds, ["self-signed", "impersonated", "metadata"]);
    Ok(())
}

#[tokio::test]
async fn a_disk_that_is_read_by_many_leaves_one_of_them_and_an_ssd_is_asked_about() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let first =
        gce.make(&GceMake { disks: vec![GceDisk::new("ro").read_only()], ..GceMake::default() }).await?;
    let shared = &first.disks["ro"];
    let disks = vec![GceDisk::new("ro").read_only().of(shared), GceDisk::new("wide").regional()];
    let second = gce.make(&GceMake { disks, ssds: 1, ..GceMake::default() }).await?;
    let key = gce.service_account_file(&gce.user(&["*"]).await?)?;
    let steps = json!([
        ["detach_disk", with(&first, &json!({ "device_name": "ro" }))],
        ["disk", { "zone": first.zone, "disk": shared }],
        ["stop", place(&second)],
        ["stop", with(&second, &json!({ "discard_local_ssd": true, "no_graceful_shutdown": true }))],
        ["detach_disk", with(&second, &json!({ "device_name": "wide" }))],
    ]);
    let told = gce.google(&key, &steps).await?;
    assert_eq!(told[1]["ok"]["users"].as_array().map(Vec::len), Some(1), "{told:#?}");
    assert_eq!((&told[2]["code"], &told[2]["reasons"]), (&json!(400), &json!(["badRequest"])), "{told:#?}");
    assert_eq!((&told[3]["ok"]["status"], &told[4]["ok"]["status"]), (&json!("DONE"), &json!("DONE")));
    assert_eq!(gce.disk(shared).await?.users.keys().collect::<Vec<_>>(), [&second.id]);
    assert!(gce.disk(&second.disks["wide"]).await?.users.is_empty());
    assert!(gce.events(&second.id).await?.iter().any(|event| event.what == "discarded"));
    Ok(())
}

#[tokio::test]
async fn fence_gce_agrees_with_the_truth() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let (instance, other) = (gce.instance(&[]).await?, gce.instance(&[]).await?);
    let key = gce.service_account_file(&gce.user(&["*"]).await?)?;
    gce.treat(&instance.id, &GceTreatment { graceful: Some(0.5), ..GceTreatment::default() }).await?;
    // Its own exit codes: 2 is off.
    for (action, code, status) in [
        ("status", 0, "RUNNING"),
        ("off", 0, "TERMINATED"),
        ("status", 2, "TERMINATED"),
        ("off", 0, "TERMINATED"),
        ("on", 0, "RUNNING"),
        ("status", 0, "RUNNING"),
    ] {
        let (ended, said) = gce.fence_gce(&key, action, &instance).await?;
        assert_eq!((ended, gce.state(&instance.id).await?.as_str()), (code, status), "{action}: {said}");
    }
    let (ended, said) = gce.fence_gce(&key, "list", &instance).await?;
    assert_eq!(ended, 0, "{said}");
    for one in [&instance, &other] {
        assert!(said.contains(&format!("{},{}", one.id, one.name)), "{said}");
    }
    assert_eq!(gce.asked_to("instances.stop", &instance.id).await?.len(), 1);
    assert_eq!(gce.state(&other.id).await?, "RUNNING");
    assert_eq!(gce.violations("").await?.len(), 0);
    Ok(())
}
