//! Disks of an instance that is proven off are let go, each named with the instance and its device, and the root stays.

use picket_tests::Result;
use picket_tests::peers::{GceDisk, GceMake, GceTreatment};
use serde_json::json;

use crate::gcp::scene::{Plan, compute};
use crate::scene::soon;

#[tokio::test]
async fn the_disks_of_a_fenced_instance_are_free_and_its_root_is_not() -> Result<()> {
    let instance = compute().await?.instance(&["data", "log"]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene
        .compute
        .treat(scene.id(), &GceTreatment { detaching: Some(1.5), ..GceTreatment::default() })
        .await?;
    // One of them is refused the first time.
    let limited = json!({ "status": 403, "reason": "rateLimitExceeded" });
    scene.compute.rule("instances.detachDisk", "log", 1, limited).await?;
    let told = scene.must_fence().await?;
    for disk in instance.disks.values() {
        assert!(scene.compute.disk(disk).await?.users.is_empty(), "{disk}");
    }
    scene.detached_once_proven(&told, 2).await?;
    let detached = scene.compute.asked_to("instances.detachDisk", scene.id()).await?;
    let taken = detached.iter().filter(|one| one.status == 200).count();
    assert_eq!(taken, 2, "each was taken once: {detached:#?}");
    // And one of them is attached to another machine.
    let other = scene
        .compute
        .make(&GceMake {
            disks: vec![GceDisk::new("data").of(&instance.disks["data"])],
            ..GceMake::default()
        })
        .await?;
    assert_eq!(
        scene.compute.disk(&instance.disks["data"]).await?.users.keys().collect::<Vec<_>>(),
        [&other.id]
    );
    assert_eq!(scene.unfence().await?.kind(), "unfenced");
    Ok(())
}

#[tokio::test]
async fn a_regional_disk_is_let_go_and_one_that_several_have_loses_only_this_one() -> Result<()> {
    let compute = compute().await?;
    let shared = GceMake { disks: vec![GceDisk::new("shared").read_only()], ..GceMake::default() };
    let other = compute.make(&shared).await?;
    let disk = other.disks["shared"].clone();
    let mine = vec![GceDisk::new("regional").regional(), GceDisk::new("shared").read_only().of(&disk)];
    let instance = compute.make(&GceMake { disks: mine, ..GceMake::default() }).await?;
    let scene = Plan::new().over(&instance).await?;
    let told = scene.must_fence().await?;
    scene.detached_while_off(2).await?;
    assert!(compute.disk(&instance.disks["regional"]).await?.users.is_empty());
    assert_eq!(compute.disk(&disk).await?.users.keys().collect::<Vec<_>>(), [&other.id]);
    assert!(told.result["releases"].to_string().contains("in use by 1 other"), "{:#?}", told.result);
    let asked = compute.asked(&instance.disks["regional"]).await?;
    assert!(asked.iter().any(|one| one.method == "regionDisks.get"), "{asked:#?}");
    Ok(())
}

#[tokio::test]
async fn what_the_settings_exclude_by_label_name_or_path_stays() -> Result<()> {
    let compute = compute().await?;
    let disks = vec![
        GceDisk::new("data").labelled("picket", "go"),
        GceDisk::new("by-label").labelled("picket", "stay"),
        GceDisk::new("by-name"),
        GceDisk::new("by-path"),
    ];
    let instance = compute.make(&GceMake { disks, ..GceMake::default() }).await?;
    let path = |device: &str| {
        format!("projects/{}/zones/{}/disks/{}", compute.project(), instance.zone, instance.disks[device])
    };
    let exclude = format!(
        "exclude = {{ tag = [\"picket=stay\"], name = [\"{}\"], id = [\"{}\"] }}\n",
        instance.disks["by-name"],
        path("by-path")
    );
    let scene = Plan::new().releasing(&exclude).over(&instance).await?;
    let told = scene.must_fence().await?;
    scene.detached_once_proven(&told, 1).await?;
    for device in ["by-label", "by-name", "by-path"] {
        let kept = scene.compute.disk(&instance.disks[device]).await?;
        assert!(kept.users.contains_key(scene.id()), "{device}: {kept:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_detach_whose_answer_is_lost_or_that_comes_to_nothing_happens_once() -> Result<()> {
    let instance = compute().await?.instance(&["lost", "fails"]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene.compute.rule("instances.detachDisk", "lost", 1, json!({ "do": "lost" })).await?;
    let fails =
        json!({ "do": "fault", "code": "INTERNAL_ERROR", "message": "it came to nothing", "status": 500 });
    scene.compute.rule("instances.detachDisk", "fails", 1, fails).await?;
    scene.must_fence().await?;
    scene.detached_while_off(2).await
}

/// What somebody detached by hand is fine, and whoever has it by then keeps it.
#[tokio::test]
async fn what_somebody_detached_by_hand_is_fine_and_stays_with_its_new_owner() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["by-hand"]).await?;
    let owner = compute.instance(&[]).await?;
    let disk = &instance.disks["by-hand"];
    let scene = Plan::new().over(&instance).await?;
    scene.compute.treat(scene.id(), &GceTreatment { stopping: Some(4.0), ..GceTreatment::default() }).await?;
    let by_hand = async {
        soon("it stops", async || Ok(scene.compute.state(scene.id()).await? == "STOPPING")).await?;
        soon("it is off", async || Ok(scene.compute.state(scene.id()).await? == "TERMINATED")).await?;
        // Whoever is first.
        scene.by_hand("detachDisk?deviceName=by-hand").await?;
        let free = async || Ok(compute.disk(disk).await?.users.is_empty());
        soon("it is free", free).await?;
        compute.attach(&owner.id, "by-hand", Some(disk), "READ_WRITE").await
    };
    let (told, _) = tokio::try_join!(scene.fence(), by_hand)?;
    let released = &told.result["outcome"]["released"];
    assert_eq!(
        (told.kind(), released),
        ("fenced", &json!(true)),
        "{:#?}\n{}",
        told.result,
        scene.gateway.log()
    );
    assert_eq!(compute.disk(disk).await?.users.keys().collect::<Vec<_>>(), [&owner.id]);
    scene.detached_while_off(1).await
}
