//! What a kubelet may write on its own Node is no word about another machine (K1).

use super::*;

const OTHER: &str = "11111111-2222-4333-8444-555555555555";

/// Node `w1` of another machine, whose kubelet notes on it that the node `r1` was let go there in that generation, before another boot.
fn forged(uuid: &str, generation: u64, taints: &[(&str, &str)]) -> Value {
    let mut node = node("w1", uuid, taints);
    let note = json!({
        "owner": "blue", "node": "r1", "generation": generation, "off": true, "offIn": generation, "stands": true, "bootID": "x",
    });
    node["metadata"]["annotations"][OURS] = json!(note.to_string());
    node
}

#[tokio::test(start_paused = true)]
async fn a_forged_note_bars_no_other_nodes_power_on() {
    // The second kubelet claims the UUID of `r1` besides.
    for claimed in [OTHER, UUID] {
        let api = Api::of([node("n1", UUID, &[]), forged(claimed, 7, &[])]);
        let let_on = release(&api).before_on(&subject(whose(None, UUID)), soon()).await;
        assert_eq!(let_on.expect("it may be switched on"), LetOn::default(), "{claimed}");
    }
}

/// The way out of a release, and the on, wait until nothing stands: a Node on which nothing can stand is not waited for.
#[tokio::test(start_paused = true)]
async fn a_forged_note_keeps_no_other_nodes_withdrawal_from_ending() {
    let met = node("n1", UUID, &[]);
    for met in [Some(&met), None] {
        let api = Api::of([node("n1", UUID, &[]), forged(OTHER, 7, &[])]);
        api.fails("w1");
        release(&api).withdraw(&whose(met, UUID), soon()).await.expect("nothing stands");
    }
    // No kubelet sets a taint on its Node: what stands beside a note is looked at, whoever wrote that.
    for stands in [(OUT_OF_SERVICE, "nodeshutdown"), (FENCED, "picket.blue.7")] {
        let api = Api::of([node("n1", UUID, &[]), forged(OTHER, 7, &[stands])]);
        api.fails("w1");
        release(&api).withdraw(&whose(None, UUID), soon()).await.expect_err("it is not known");
    }
}

#[tokio::test(start_paused = true)]
async fn a_forged_note_keeps_no_other_node_from_being_back() {
    for generation in [7, 70] {
        let mut forged = forged(OTHER, generation, &[]);
        forged["metadata"]["finalizers"] = json!(["picket.dev/fencing-blue"]);
        let api = Api::of([node("n1", UUID, &[]), forged]);
        let left = Left {
            whose: whose(None, UUID),
            generation: Generation(7),
            gone: false,
            off: true,
            met_last: None,
        };
        assert_eq!(release(&api).clean_up(&left, soon()).await.expect("answered"), None, "{generation}");
        let is_cleared = api.node("w1")["metadata"]["annotations"] == json!({});
        assert_eq!(is_cleared, generation == 7, "what may be a later fence's stays");
    }
}
