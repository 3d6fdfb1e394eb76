use std::sync::Arc;

use picket_config::Sources;
use picket_engine::Unit;
use picket_engine::clock::SystemClock;

use super::*;

const HEAD: &str = "[store]\nkind = \"memory\"\n[listen]\nunix = \"/run/picket-test.sock\"\n";

pub(super) fn blade(node: &str, system: &str, more: &str) -> String {
    format!(
        "[nodes.{node}.devices.bmc]\ndriver = \"redfish\"\nhost = \"10.0.0.1\"\nsystem = \"{system}\"\nusername = \"picket\"\n\
         password_env = \"PATH\"\n{more}\n"
    )
}

fn simulated(node: &str) -> String {
    format!("[nodes.{node}.devices.bmc]\ndriver = \"sim\"\nmachine = \"{node}\"\n")
}

pub(super) fn build(text: &str, drivers: &Drivers) -> Result<BuiltParts, Faults> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("picket.toml");
    std::fs::write(&file, format!("{HEAD}{text}")).expect("written");
    let (settings, told) = Settings::read(&Sources::at(&file)).expect("it can be read");
    let context = Context { clock: Arc::new(SystemClock), random: Arc::new(|_: &mut [u8]| {}) };
    all(&settings, told, &context, drivers)
}

#[track_caller]
fn unit(built: &BuiltParts, node: &str) -> Arc<Unit> {
    let plan = built.nodes.iter().find(|plan| plan.id.as_str() == node).expect("a node");
    plan.units.values().next().expect("it shares something").clone()
}

#[test]
fn what_is_shared_is_one_unit_whatever_is_read_anew_or_refused() {
    let drivers = Drivers::default();
    let before = build(&blade("n1", "1", "pause = \"1s\""), &drivers).expect("it is right");
    let alone = unit(&before, "n1");
    before.limits.take();
    let was = alone.limits();
    // Refused in the end: nothing of it holds, and the one that runs goes on being the one.
    let both = |more: &str| blade("n1", "1", more) + &blade("n2", "2", "");
    let refused = build(&both("pause = \"2s\""), &drivers).expect("it is right");
    assert!(Arc::ptr_eq(&unit(&refused, "n2"), &alone) && Arc::ptr_eq(&unit(&refused, "n1"), &alone));
    drop(refused.nodes);
    assert_eq!(alone.limits(), was);
    let after = build(&both("at_once = 1"), &drivers).expect("it is right");
    assert!(Arc::ptr_eq(&unit(&after, "n2"), &alone));
    after.limits.take();
    assert_eq!((alone.limits().at_once, alone.limits().pause), (1, std::time::Duration::ZERO));
}

#[test]
fn whether_nodes_may_be_drilled_is_part_of_what_their_settings_are() {
    let drivers = Drivers::default();
    let with = |drills: bool| {
        let groups = format!("[groups.rack]\nhosts = \"n1\"\ndrills = {drills}\n");
        let built = build(&(groups + &blade("n1", "1", "")), &drivers).expect("it is right");
        built.nodes.into_iter().next().expect("a node")
    };
    let (may, may_not) = (with(true), with(false));
    assert!(may.drills && !may_not.drills && may.mark != may_not.mark);
}

#[test]
fn two_machines_of_one_name_are_told_where_anybody_runs_on_one() {
    let drivers = Drivers::default();
    // As simulated as what runs on them: a gateway has simulated devices alone, or none.
    let hypervisors =
        "[nodes.a]\nlabels = { hypervisor = \"b\" }\n".to_owned() + &simulated("a") + &simulated("b");
    build(&hypervisors, &drivers).expect("nobody runs on them");
    let child = "[nodes.vm]\nlevels = [[\"server\"], [\"parent\"]]\n[nodes.vm.devices.server]\ndriver = \"sim\"\nmachine = \"vm\"\n\
                 runs_on = \"b\"\n[nodes.vm.devices.parent]\ndriver = \"parent\"\n";
    let faults = build(&(hypervisors + child), &drivers).expect_err("which one it runs on is not known");
    let told = faults.to_string();
    assert!(told.contains("hypervisor = \"b\" is what b is called too"), "{told}");
}

#[test]
fn a_node_of_a_cloud_that_no_device_is_of_is_told_with_those_that_are() {
    let (drivers, home) = (Drivers::default(), tempfile::tempdir().expect("a directory"));
    let clouds = home.path().join("clouds.yaml");
    let auth = "auth: { auth_url: 'https://keystone.example:5000/v3', username: picket, password: p, project_name: p, user_domain_name: d, project_domain_name: d }";
    std::fs::write(&clouds, format!("clouds:\n  b:\n    {auth}\n    region_name: one\n")).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&clouds, mode).expect("its mode");
    let server = format!(
        "[nodes.vm.devices.nova]\ndriver = \"openstack\"\nserver = \"5a1bd2c8-8f0e-4a6f-9d2b-0d3c5f1e7a90\"\ncloud = \"b\"\n\
         clouds_file = {:?}\n",
        clouds.display().to_string()
    );
    let hypervisor = |of: &str| {
        format!("[nodes.hv]\nlabels = {{ hypervisor_of = {of:?} }}\n") + &blade("hv", "1", "") + &server
    };
    let faults = build(&hypervisor("elsewhere"), &drivers).expect_err("no such cloud");
    let told = faults.to_string();
    let right = "https://keystone.example:5000/v3, region one";
    assert!(
        told.contains(&format!(
            "hypervisor_of = \"elsewhere\" is no cloud of these settings: expected {right:?}"
        )),
        "{told}"
    );
    build(&hypervisor(right), &drivers).expect("it is that cloud's");
}

#[test]
fn a_release_of_volumes_wants_a_device_that_knows_them() {
    let text = |device: &str| {
        let releases = format!("[releases.volumes]\nkind = \"volumes\"\n{device}\n");
        releases + "[nodes.n1]\nreleases = [\"volumes\"]\n" + &blade("n1", "1", "")
    };
    for (device, wanted) in [
        ("", "release volumes wants a device that knows the node's volumes, and it has none"),
        ("device = \"cloud\"", "release volumes works by device cloud, which the node does not have"),
        ("device = \"bmc\"", "release volumes works by device bmc, which knows nothing of volumes"),
    ] {
        let faults = build(&text(device), &Drivers::default()).expect_err("it has none");
        let words: Vec<String> = faults.all().iter().map(ToString::to_string).collect();
        assert!(words.len() == 1 && words[0].contains(wanted), "{words:?}");
    }
}

/// A node of AWS whose device names an instance of its own.
#[cfg(feature = "aws")]
fn instance(provider_id: &str) -> String {
    format!(
        "[nodes.n1]\nprovider_id = \"{provider_id}\"\n[nodes.n1.devices.ec2]\ndriver = \"aws\"\n\
         instance = \"i-0123456789abcdef0\"\nregion = \"eu-central-1\"\n"
    )
}

#[cfg(feature = "aws")]
#[test]
fn a_device_is_the_machine_that_its_node_is_asked_for_by() {
    let drivers = Drivers::default();
    build(&instance("aws:///eu-central-1a/i-0123456789abcdef0"), &drivers).expect("it is this one");
    let faults =
        build(&instance("aws:///eu-central-1a/i-0123456789abcdef1"), &drivers).expect_err("it is another");
    let told = faults.to_string();
    assert!(told.contains("is another machine than device ec2 switches (i-0123456789abcdef0)"), "{told}");
}

#[cfg(feature = "aws")]
#[test]
fn what_a_node_is_asked_for_by_is_part_of_what_its_settings_are() {
    let mark = |zone: &str| {
        let text = instance(&format!("aws:///{zone}/i-0123456789abcdef0"));
        build(&text, &Drivers::default()).expect("it is right").nodes.remove(0).mark
    };
    assert_ne!(mark("eu-central-1a"), mark("eu-central-1b"));
}

/// K13: a gateway inside the cluster that it lets go learns its own Node, or does not start.
#[cfg(feature = "kubernetes")]
#[test]
fn who_uses_its_pod_s_account_says_on_which_node_it_stands() {
    const RELEASES: &str = "[nodes.n1]\nreleases = [\"pods\"]";
    let text = |gateway: &str, release: &str| {
        format!(
            "[gateway]\nname = \"g1\"\n{gateway}\n[releases.pods]\nkind = \"kubernetes\"\n\
             cluster_uid = \"3f0c6d4e-0000-4000-8000-000000000000\"\n{release}\n{}",
            blade("n1", "1", RELEASES)
        )
    };
    let built = |gateway: &str, release: &str| build(&text(gateway, release), &Drivers::default());
    let told = built("", "").expect_err("it does not know").to_string();
    assert!(told.contains("PICKET__GATEWAY__KUBERNETES_NODE") && told.contains("releases.pods"), "{told}");
    let own = |built: BuiltParts| built.nodes[0].own_host;
    // Its Node may be one of ours, or none.
    assert!(own(built("kubernetes_node = \"n1\"", "").expect("it knows")));
    assert!(!own(built("kubernetes_node = \"m1\"", "").expect("it knows")));
    assert!(own(built("node = \"n1\"", "").expect("it knows")));
    // Where Nodes are found otherwise than by their names, a node of that name is not it: the Node itself is asked.
    let by_uuid = "find_by = \"system_uuid\"";
    let asked = built("kubernetes_node = \"n1\"", by_uuid).expect("it is asked");
    assert!(asked.own.is_asked());
    assert!(!own(asked));
    // Nobody asks a cluster elsewhere which machine the pod stands on: the name stays.
    let elsewhere = format!("kubeconfig = \"/etc/picket/kubeconfig\"\n{by_uuid}");
    let named = built("kubernetes_node = \"n1\"", &elsewhere).expect("it knows");
    assert!(!named.own.is_asked());
    assert!(own(named));
    // Of a node that no release finds a name is all that there is.
    let alone = text("kubernetes_node = \"n1\"", by_uuid).replace(RELEASES, "");
    assert!(own(build(&alone, &Drivers::default()).expect("it is asked")));
    assert!(!built("node = \"n1\"", "find_by = \"system_uuid\"").expect("it knows").own.is_asked());
    assert!(!built("kubernetes_node = \"n1\"", "").expect("it knows").own.is_asked());
    // Elsewhere, with a kubeconfig, it stands on no Node of that cluster.
    assert!(!own(built("", "kubeconfig = \"/etc/picket/kubeconfig\"").expect("it need not")));
}

#[test]
fn simulated_devices_stand_alone_whatever_levels_and_templates_they_are_in() {
    let drivers = Drivers::default();
    let alone = build(&(simulated("n1") + &simulated("n2")), &drivers).expect("they are alone");
    assert_eq!(alone.simulated, Some(Simulated::ByDriver("sim")));
    assert!(alone.nodes.iter().all(|plan| plan.topology.is_simulated()));
    // A template that no node uses is no device.
    let template = "[templates.spare.devices.bmc]\ndriver = \"sim\"\nmachine = \"{node}\"\n";
    let real = build(&(blade("n1", "1", "") + template), &drivers).expect("it has real devices alone");
    assert!(real.simulated.is_none() && real.nodes.iter().all(|plan| !plan.topology.is_simulated()));
    let told =
        build(&(blade("n1", "1", "") + &simulated("n2")), &drivers).expect_err("they are mixed").to_string();
    for words in
        ["nodes.n2.devices.bmc.driver: ", "device n2/bmc (driver sim, ", "device n1/bmc (driver redfish, "]
    {
        assert!(told.contains(words), "no {words:?} in {told}");
    }
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_simulated_gateway_has_no_release_that_lets_anything_go() {
    let release = |kind: &str| format!("[releases.detach]\nkind = \"{kind}\"\n");
    let webhook = release("webhook") + "url = \"http://127.0.0.1:9/\"\n";
    let setting = |is: bool| format!("[gateway]\nsimulated = {is}\n");
    let built = |text: String| build(&text, &Drivers::default());
    // Without a word of devices, those of a real driver are real.
    built(blade("n1", "1", "") + &webhook).expect("it is real");
    built(blade("n1", "1", "") + &webhook + &setting(false)).expect("it says that it is real");
    let on_sockets =
        built(blade("n1", "1", "") + &release("none") + &setting(true)).expect("it lets nothing go");
    assert_eq!(on_sockets.simulated, Some(Simulated::BySetting));
    let command = release("command") + "program = \"/bin/true\"\n";
    for (kind, release) in [("webhook", &webhook), ("command", &command)] {
        for wrong in [simulated("n1") + release, blade("n1", "1", "") + release + &setting(true)] {
            let told = built(wrong).expect_err("volumes would go").to_string();
            let words = format!("releases.detach.kind: release detach is of kind {kind:?}");
            assert!(told.contains(&words), "no {words:?} in {told}");
        }
    }
    let told = built(simulated("n1") + &setting(false)).expect_err("it is simulated").to_string();
    assert!(
        told.contains("nodes.n1.devices.bmc.driver: ") && told.contains("gateway.simulated = false"),
        "{told}"
    );
}

#[test]
fn a_driver_that_a_build_leaves_out_is_told_from_one_that_nobody_has() {
    let mut drivers = Drivers::default();
    drivers.kinds.retain(|kind| kind.name() != "gcp");
    let with = |driver: &str| format!("[nodes.n1.devices.vm]\ndriver = \"{driver}\"\ninstance = \"17\"\n");
    for (driver, words) in [
        ("gcp", "the driver \"gcp\" is not in this build of picketd, which has "),
        ("gpc", "there is no driver \"gpc\"; known are "),
    ] {
        let faults = build(&with(driver), &drivers).expect_err("it is not there").to_string();
        assert!(faults.contains(words) && !faults.contains("gcp,"), "{faults}");
    }
}
