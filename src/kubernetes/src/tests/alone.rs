//! A Node that only its providerID says to be the machine: whoever has it now may live (K1).

use picket_core::power::Power;

use super::*;

const AWS: &str = "aws:///z/i-1";
const QUIET: Duration = Duration::from_secs(20);

fn of_provider(api: &Arc<Api>, more: Value) -> Arc<dyn Quarantine> {
    let release = unbound(api, more);
    let (id, devices) = (NodeId::new("r1").expect("a name"), Devices::default());
    let of = ForNode { id: &id, provider_id: Some(AWS), devices: &devices };
    release.of_node(&of).expect("it can").and_then(Releaser::quarantine).expect("it is in a cluster")
}

/// `r1` in a cloud, whose machine says that UUID of itself.
fn there(uuid: &str, is_ready: bool) -> Value {
    let mut node = node("r1", uuid, &[]);
    node["spec"]["providerID"] = json!(AWS);
    node["status"]["conditions"][0]["status"] = json!(if is_ready { "True" } else { "Unknown" });
    node
}

fn another(mut node: Value) -> Value {
    node["status"]["nodeInfo"]["machineID"] = json!("another");
    node
}

fn renews(api: &Api, time: &str) {
    let lease = json!({ "metadata": { "name": "r1" }, "spec": { "renewTime": time } });
    api.also("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/r1", lease);
}

/// Of fence 7, whose devices say nothing that Kubernetes knows, in that round.
fn about(round: u32) -> Subject {
    Subject { round, ..subject(Whose { identities: Vec::new(), ..whose(None, "") }) }
}

fn is_replaced<T>(said: Result<T, ReleaseError>, words: &str) {
    let said = said.map(drop);
    let Err(ReleaseError::Replaced(why)) = said else { panic!("{said:?}") };
    assert!(why.starts_with("replaced: ") && why.contains(words), "{why}");
}

async fn check(release: &Arc<dyn Quarantine>, identities: &[Identity], power: Power) -> String {
    let said = release.check(identities, soon()).await;
    release.reads(power);
    said.join("; ")
}

/// Until a UUID says which machine it is.
#[tokio::test(start_paused = true)]
async fn what_a_providerid_alone_says_is_no_more_than_a_name() {
    let api = Api::of([there(UUID, false)]);
    let release = of_provider(&api, json!({}));
    assert!(release.by_name_alone(), "nothing is known yet");
    let said = check(&release, &[], Power::On).await;
    assert!(said.contains("known by its providerID alone") && said.contains("product_uuid"), "{said}");
    assert!(release.by_name_alone());
    let said = check(&release, &identities(UUID), Power::On).await;
    assert!(!said.contains("providerID") && !release.by_name_alone(), "{said}");
    release.before_attempt(&about(0), soon()).await.expect("it shows no life");
    assert!(release.by_name_alone(), "what is known now counts");
    // Where the settings give none it is not what it goes by.
    assert!(!with(&api, json!({})).by_name_alone());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_ready_is_let_go_once_its_kubelet_is_silent() {
    let api = Api::of([there("", true)]);
    let release = of_provider(&api, json!({}));
    renews(&api, "1");
    let waits = |said: Result<_, ReleaseError>| {
        let said = said.map(drop);
        assert!(
            matches!(&said, Err(ReleaseError::DidNotHappen(why)) if why.contains("providerID alone")),
            "{said:?}"
        );
    };
    waits(release.before_attempt(&about(0), soon()).await);
    // It was on its way.
    tokio::time::sleep(Duration::from_secs(5)).await;
    renews(&api, "2");
    waits(release.before_attempt(&about(0), soon()).await);
    tokio::time::sleep(QUIET - Duration::from_secs(1)).await;
    waits(release.before_attempt(&about(0), soon()).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    release.before_attempt(&about(0), soon()).await.expect("it is silent");
    // In another proof nothing was heard yet; and where no lease is told it has to be not ready.
    waits(release.before_attempt(&about(1), soon()).await);
    let api = Api::of([there("", true)]);
    let release = of_provider(&api, json!({}));
    waits(release.before_attempt(&about(0), soon()).await);
    tokio::time::sleep(QUIET * 2).await;
    waits(release.before_attempt(&about(0), soon()).await);
    api.has(there("", false));
    release.before_attempt(&about(0), soon()).await.expect("it is not ready");
}

/// Nothing lives that is off.
#[tokio::test(start_paused = true)]
async fn a_node_whose_kubelet_lives_after_the_proof_is_another_machine_s() {
    for is_ready in [true, false] {
        let fenced = || {
            let mut node = noted(there("", is_ready), "r1", 7);
            node["spec"]["taints"] =
                json!([{ "key": FENCED, "value": "picket.blue.7", "effect": "NoSchedule" }]);
            node
        };
        for on_the_watch in [false, true] {
            let api = Api::of([fenced()]);
            let release = of_provider(&api, json!({}));
            let mut said = Ok(());
            for time in ["1", "2", "3"] {
                renews(&api, time);
                let met = Whose { met: whose(Some(&fenced()), "").met, ..whose(None, "") };
                let about = Subject { met: subject(met).met, ..about(0) };
                said = match on_the_watch && time != "1" {
                    true => release.compare(&about, soon()).await,
                    false => release.before_attempt(&about, soon()).await.map(drop),
                };
            }
            is_replaced(said, "renews its lease");
            assert_eq!(api.taints("r1"), Vec::<String>::new(), "it is let be");
        }
    }
    // By its UUID it is that machine, whatever its lease says.
    let api = Api::of([there(UUID, true)]);
    let release = of_provider(&api, json!({}));
    for time in ["1", "2", "3"] {
        renews(&api, time);
        let known = Subject { identities: identities(UUID), ..about(0) };
        release.before_attempt(&known, soon()).await.expect("its device proves it off");
        release
            .compare(&Subject { met: whose(Some(&there(UUID, true)), UUID).met, ..known }, soon())
            .await
            .expect("the same");
    }
}

/// The machine is a spare by now, and another one has its Node. Once that is cut off nothing shows it any more.
#[tokio::test(start_paused = true)]
async fn a_node_that_lives_while_its_machine_is_off_lets_nothing_go() {
    let api = Api::of([there("", true)]);
    let release = of_provider(&api, json!({}));
    for (time, power) in [("1", Power::On), ("2", Power::Off), ("3", Power::Off)] {
        renews(&api, time);
        let said = check(&release, &[], power).await;
        assert!(!said.contains("lives"), "{time}: its machine may have been switched off after that: {said}");
    }
    renews(&api, "4");
    // A check whose devices say nothing has seen nobody.
    check(&release, &[], Power::Unknown).await;
    let said = check(&release, &[], Power::Off).await;
    assert!(!said.contains("lives"), "{said}");
    for time in ["5", "6"] {
        renews(&api, time);
        check(&release, &[], Power::Off).await;
    }
    let said = check(&release, &[], Power::Off).await;
    assert!(said.contains("Node r1 lives while the node's devices read off"), "{said}");
    api.has(there("", false));
    let met = |round| Subject { met: whose(Some(&there("", true)), "").met, ..about(round) };
    for _ in 0..2 {
        is_replaced(release.before_attempt(&met(0), soon()).await, "lives while the node's devices read off");
    }
    // Evidence began from zero: nobody looked.
    is_replaced(release.before_attempt(&met(1), soon()).await, "lives");
    // A person's retry takes back whom the fence met, and the Node as it is now is meant. In another fence he is told again.
    release.before_attempt(&about(2), soon()).await.expect("a person's word");
    release.before_attempt(&met(3), soon()).await.expect("it stays so");
    is_replaced(
        release.before_attempt(&Subject { generation: Generation(9), ..about(1) }, soon()).await,
        "lives",
    );
    // The node's own machine is on again.
    check(&release, &[], Power::On).await;
    release
        .before_attempt(&Subject { generation: Generation(11), ..about(0) }, soon())
        .await
        .expect("nothing lives");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_took_the_node_since_its_own_was_on_is_another() {
    let api = Api::of([there("", true)]);
    let release = of_provider(&api, json!({}));
    check(&release, &[], Power::On).await;
    api.has(another(there("", false)));
    is_replaced(release.before_attempt(&about(0), soon()).await, "another machine has Node r1");
    // While they are read on it is taken for the machine's own, installed anew.
    api.has(another(there("", true)));
    check(&release, &[], Power::Unknown).await;
    api.has(another(there("", false)));
    is_replaced(
        release.before_attempt(&Subject { generation: Generation(9), ..about(0) }, soon()).await,
        "another machine",
    );
    api.has(another(there("", true)));
    check(&release, &[], Power::On).await;
    api.has(another(there("", false)));
    release
        .before_attempt(&Subject { generation: Generation(11), ..about(0) }, soon())
        .await
        .expect("the same");
}

/// A CSI driver that registers says on which instance it runs; whether that one lives by now nobody needs to have seen.
#[tokio::test(start_paused = true)]
async fn a_node_on_which_a_driver_registered_from_another_instance_is_that_one_s() {
    let registers = |api: &Api, driver: &str, instance: &str| {
        let one = json!({ "metadata": { "name": "r1" }, "spec": { "drivers": [{ "name": driver, "nodeID": instance }] } });
        let other = json!({ "metadata": { "name": "r2" }, "spec": { "drivers": [{ "name": driver, "nodeID": "i-7" }] } });
        api.also("/apis/storage.k8s.io/v1/csinodes", json!({ "items": [other, one] }));
    };
    for (driver, instance, is_another) in [
        ("ebs.csi.aws.com", "i-2", true),
        ("ebs.csi.aws.com", "i-1", false),
        ("ebs.csi.aws.com", "", true),
        // What others call a node is their matter.
        ("csi.example.com", "i-2", false),
    ] {
        let api = Api::of([there("", false)]);
        let release = of_provider(&api, json!({}));
        registers(&api, driver, instance);
        let told = check(&release, &[], Power::On).await;
        let said = release.before_attempt(&about(0), soon()).await;
        assert_eq!(told.contains("registered on"), is_another, "{driver} {instance}: {told}");
        match is_another {
            true => is_replaced(said, "its CSI driver ebs.csi.aws.com registered on"),
            false => drop(said.expect("the same")),
        }
    }
    // Who is not told lets nothing go.
    let api = Api::of([there("", false)]);
    let release = of_provider(&api, json!({}));
    api.fails("csinodes");
    let said = release.before_attempt(&about(0), soon()).await;
    assert!(matches!(said, Err(ReleaseError::DidNotHappen(_))), "{said:?}");
}
