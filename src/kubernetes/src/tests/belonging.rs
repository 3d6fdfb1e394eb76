//! Whether the Node that a caller means is the one of the node `r1`.

use picket_core::cluster_node::{Belongs, ClusterNode};

use super::*;

const AWS: &str = "aws:///z/i-1";
const OTHER: &str = "11111111-2222-4333-8444-555555555555";

/// What a release that finds the Node so says of Node `name`, of that UID.
async fn has(api: &Arc<Api>, find_by: &str, (name, uid): (&str, &str)) -> Belongs {
    let release = unbound(api, json!({ "find_by": find_by }));
    let (id, devices) = (NodeId::new("r1").expect("a name"), Devices::default());
    let of = ForNode { id: &id, provider_id: (find_by == "provider_id").then_some(AWS), devices: &devices };
    let release =
        release.of_node(&of).expect("it can").and_then(Releaser::quarantine).expect("it is in a cluster");
    let node = ClusterNode { name: name.to_owned(), uid: uid.to_owned() };
    release.has(&node, &identities(UUID), soon()).await.expect("it knows Nodes")
}

fn no(words: &str, said: &Belongs) {
    assert!(matches!(said, Belongs::No(why) if why.contains(words)), "{words}: {said:?}");
}

fn in_cloud(name: &str, uuid: &str) -> Value {
    let mut node = node(name, uuid, &[]);
    node["spec"]["providerID"] = json!(AWS);
    node
}

#[tokio::test(start_paused = true)]
async fn by_its_name_it_is_the_node_of_that_name_and_uid() {
    // What another one says of its machine is nothing to it.
    let api = Api::of([node("r1", UUID, &[]), node("w1", UUID, &[])]);
    assert_eq!(has(&api, "name", ("r1", "u-r1")).await, Belongs::Yes);
    no("its Node is r1, and not w1", &has(&api, "name", ("w1", "u-w1")).await);
    no("the UID of Node r1 is u-r1", &has(&api, "name", ("r1", "u-before")).await);
    no("r1", &has(&Api::of([]), "name", ("r1", "u-r1")).await);
}

/// Whoever may register a Node chooses its name: also that of a machine that is no Node.
#[tokio::test(start_paused = true)]
async fn by_its_name_it_is_not_the_node_that_says_another_machine() {
    let api = Api::of([node("r1", OTHER, &[])]);
    no("another machine", &has(&api, "name", ("r1", "u-r1")).await);
    // A Node that says nothing of its machine contradicts nothing.
    let api = Api::of([node("r1", "", &[])]);
    assert_eq!(has(&api, "name", ("r1", "u-r1")).await, Belongs::Yes);
}

#[tokio::test(start_paused = true)]
async fn what_another_cluster_has_is_no_node_of_ours() {
    let system = json!({ "metadata": { "name": "kube-system", "uid": "another" } });
    let api = Api::of_both([node("r1", UUID, &[])], [(api::SYSTEM, system)]);
    for find_by in ["name", "system_uuid"] {
        no("this is another cluster", &has(&api, find_by, ("r1", "u-r1")).await);
    }
}

#[tokio::test(start_paused = true)]
async fn by_what_it_says_of_its_machine_it_is_the_only_one_that_says_so() {
    let api = Api::of([node("m1", UUID, &[]), node("w1", OTHER, &[])]);
    assert_eq!(has(&api, "system_uuid", ("m1", "u-m1")).await, Belongs::Yes);
    no("its Node is m1", &has(&api, "system_uuid", ("w1", "u-w1")).await);
    no("the UID of Node m1", &has(&api, "system_uuid", ("m1", "u-before")).await);
    // The kubelet of w1 lies.
    let api = Api::of([node("m1", UUID, &[]), node("w1", UUID, &[])]);
    for name in ["m1", "w1"] {
        no("both have", &has(&api, "system_uuid", (name, &format!("u-{name}"))).await);
    }
    // It took a providerID that nobody has, and says its own UUID all the same.
    let api = Api::of([node("m1", UUID, &[]), in_cloud("w1", OTHER)]);
    no("another machine", &has(&api, "provider_id", ("w1", "u-w1")).await);
    let api = Api::of([in_cloud("m1", UUID)]);
    assert_eq!(has(&api, "provider_id", ("m1", "u-m1")).await, Belongs::Yes);
}

/// By its name it may go on, and by what a kubelet may write it does not.
#[tokio::test(start_paused = true)]
async fn who_does_not_answer_says_that_it_is_nobody_s() {
    let api = Api::of([node("r1", UUID, &[])]);
    api.fails("r1");
    let said = has(&api, "name", ("r1", "u-r1")).await;
    assert!(matches!(said, Belongs::Untold(_)), "{said:?}");
    // Whose name it has is known without it.
    api.fails("kube-system");
    no("its Node is r1", &has(&api, "name", ("w1", "u-w1")).await);
    api.fails("nodes");
    no("forbidden", &has(&api, "system_uuid", ("r1", "u-r1")).await);
}
