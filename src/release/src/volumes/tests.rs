use picket_core::time::Clock;
use picket_driver_sim::{Disk, Fault, SharedWorld, SimClock, SimDriver, SimOptions, World};
use serde_json::{Value, json};

use super::*;

fn read(table: Value) -> Result<LetGo, Vec<picket_reach::SettingFault>> {
    let table = table.as_object().expect("a table").clone();
    let mut settings = Settings::new(&table);
    let made = LetGo::read("volumes", &mut settings);
    settings.finish(made)
}

fn world() -> SharedWorld {
    let disk = |name: &str| Disk { name: name.to_owned(), ..Disk::default() };
    let mut world = World::new(1);
    world.add_machine("n1").add_host("n1", "bmc").add_host("n1", "cloud").add_host("n1", "other");
    world.add_volume("n1", "v0", "/dev/vda", Disk { root: true, ..disk("system") });
    world.add_volume("n1", "v1", "/dev/vdb", disk("data-1"));
    world.add_volume("n1", "v2", "/dev/vdc", disk("scratch"));
    world.shared()
}

/// Node n1 with these devices.
fn of(devices: &Devices) -> ForNode<'_> {
    static N1: std::sync::LazyLock<picket_core::ids::NodeId> =
        std::sync::LazyLock::new(|| picket_core::ids::NodeId::new("n1").expect("a good name"));
    ForNode { id: &N1, provider_id: None, devices }
}

fn devices(world: &SharedWorld, knowing: &[&str]) -> Devices {
    let driver = |name: &str| {
        let volumes = knowing.contains(&name).then(|| Duration::from_secs(60));
        let options = SimOptions { volumes, ..SimOptions::default() };
        let driver: Arc<dyn PowerDriver> = Arc::new(SimDriver::new(world, name, &options));
        (DeviceId::new(name).expect("a name"), driver)
    };
    ["bmc", "cloud", "other"].map(driver).into()
}

fn call() -> Call {
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
    Call::reading(Instant::now() + Duration::from_secs(5), clock)
}

#[test]
fn every_fault_of_the_settings_is_told() {
    let wrong = json!({"device": "a b", "include": {}, "force": "always", "deadline": "1s", "colour": "red"});
    let faults = read(wrong).expect_err("all of it is wrong");
    let mut keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["colour", "deadline", "device", "force", "include"]);
    let force = faults.iter().find(|fault| fault.key == "force").expect("told");
    assert_eq!(force.message, "expected \"never\" or \"at_last\", found \"always\"");
}

#[test]
fn it_works_by_the_only_device_that_knows_volumes_or_by_the_one_that_is_named() {
    let world = world();
    let of = |table: Value, knowing: &[&str]| {
        let bound = read(table).expect("good").of_node(&of(&devices(&world, knowing)));
        bound.map(|bound| bound.expect("it needs a device").in_parts().expect("volumes").device().to_string())
    };
    assert_eq!(of(json!({}), &["cloud"]), Ok("cloud".to_owned()));
    assert_eq!(of(json!({"device": "other"}), &["cloud", "other"]), Ok("other".to_owned()));
    for (table, knowing, wanted) in [
        (json!({}), vec![], "wants a device that knows the node's volumes, and it has none"),
        (json!({}), vec!["cloud", "other"], "could work by cloud, other: name one of them"),
        (
            json!({"device": "bmc"}),
            vec!["cloud"],
            "works by device bmc, which knows nothing of volumes; cloud would",
        ),
        (json!({"device": "nobody"}), vec!["cloud"], "works by device nobody, which the node does not have"),
    ] {
        let wrong = of(table, &knowing).expect_err(wanted);
        assert!(wrong.contains(wanted), "{wrong}");
    }
}

#[test]
fn how_late_a_detach_may_land_is_what_the_device_says() {
    let world = world();
    let unbound = read(json!({})).expect("good");
    assert_eq!(unbound.max_in_flight(), None, "of no node it is not known");
    let bound = unbound.of_node(&of(&devices(&world, &["cloud"]))).expect("bound").expect("by a device");
    assert_eq!(bound.max_in_flight(), Some(Duration::from_secs(60)));
    assert_eq!(bound.in_parts().expect("volumes").choice(), "all that may go");
}

#[tokio::test(start_paused = true)]
async fn a_survey_says_what_goes_and_of_what_stays_why() {
    let world = world();
    let settings = json!({"exclude": {"name": ["scr*"]}});
    let bound = read(settings)
        .expect("good")
        .of_node(&of(&devices(&world, &["cloud"])))
        .expect("bound")
        .expect("one");
    let parts = bound.in_parts().expect("volumes");
    let found = parts.survey(&call()).await.expect("told");
    let goes = Part { volume: "v1".to_owned(), device: "/dev/vdb".to_owned(), name: "data-1".to_owned() };
    assert_eq!(found.parts, std::slice::from_ref(&goes));
    let stays: Vec<String> = found.stays.iter().map(|(part, why)| format!("{part} ({why})")).collect();
    assert_eq!(
        stays,
        ["v0 (system, /dev/vda) (it is the root volume)", "v2 (scratch, /dev/vdc) (the settings exclude it)"]
    );
    assert!(matches!(parts.observe(&goes, &call()).await, Ok(Progress::NotThere(_))));
    world.lock().detach_by_hand(Default::default(), "n1", "v1");
    assert_eq!(parts.observe(&goes, &call()).await, Ok(Progress::Complete("available".to_owned())));
    world.lock().fault("cloud", Fault::VolumesUntold);
    assert!(matches!(parts.survey(&call()).await, Err(ReleaseError::DidNotHappen(_))));
    assert!(matches!(parts.observe(&goes, &call()).await, Err(ReleaseError::Unknown(_))));
}
