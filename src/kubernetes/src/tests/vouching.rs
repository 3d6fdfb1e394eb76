//! What Kubernetes says of a node's machine, for an identity that was learned from a device (S13).

use super::*;

/// What it says of the machine of `r1`, whose Node is found by that.
async fn machine(api: &Arc<Api>, find_by: &str, provider_id: Option<&str>) -> Option<Identity> {
    let settings = json!({ "cluster_uid": CLUSTER, "owner": "blue", "find_by": find_by, "settle": "0s" });
    let release = OutOfService::read(settings.as_object().expect("a table")).expect("settings");
    release.cluster.by(api.client(&release.cluster.clock));
    let (id, devices) = (NodeId::new("r1").expect("a name"), Devices::default());
    let of = ForNode { id: &id, provider_id, devices: &devices };
    let release =
        release.of_node(&of).expect("it can").and_then(Releaser::quarantine).expect("it is in a cluster");
    release.machine(soon()).await.map(|(machine, _)| machine)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_found_by_its_name_or_provider_id_says_its_system_uuid() {
    let mut by_provider = node("n7", UUID, &[]);
    by_provider["spec"]["providerID"] = json!("aws:///z/i-1");
    let said = identities(UUID).pop();
    assert_eq!(machine(&Api::of([node("r1", UUID, &[])]), "name", None).await, said);
    let api = Api::of([by_provider]);
    assert_eq!(machine(&api, "provider_id", Some("aws:///z/i-1")).await, said);
}

/// It was found by what the BMC says: that it says the same is no second word.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_found_by_what_devices_say_vouches_for_none_of_them() {
    let api = Api::of([node("n7", UUID, &[])]);
    assert_eq!(machine(&api, "system_uuid", None).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_there_or_knows_no_uuid_says_nothing() {
    let api = Api::of([node("n7", UUID, &[])]);
    assert_eq!(machine(&api, "name", None).await, None);
    let api = Api::of([node("r1", "00000000-0000-0000-0000-000000000000", &[])]);
    assert_eq!(machine(&api, "name", None).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_says_what_another_one_says_vouches_for_nothing() {
    let api = Api::of([node("r1", UUID, &[]), node("r2", UUID, &[])]);
    assert_eq!(machine(&api, "name", None).await, None);
}

/// What it is found by is missing: the gateway on it does not know where it stands.
#[tokio::test(start_paused = true)]
async fn a_node_with_no_uuid_of_its_own_tells_no_gateway_where_it_stands() {
    for (uuid, is_told) in [(UUID, true), ("03000200-0400-0500-0006-000700080009", false)] {
        let api = Api::of([node("worker-7", uuid, &[])]);
        let said = release(&api).machine_named("worker-7", Instant::now() + Duration::from_secs(5)).await;
        assert_eq!(said.is_ok(), is_told, "{said:?}");
    }
}
