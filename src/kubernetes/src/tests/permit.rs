//! What lets something go asks its permit once its connection stands (S4, S6, K6).

use picket_reach::LastWord;

use super::*;
use crate::deleting;
use crate::object::{Node, Pod};

/// A permit that is good for so long from now on.
fn good_for(time: Duration) -> LastWord {
    let end = Instant::now() + time;
    Arc::new(move || match Instant::now() <= end {
        true => Ok(()),
        false => Err("it was seen off longer than 2s ago".to_owned()),
    })
}

/// Right before it was asked for it may have been seen off; once the API server has no time for a handshake that is long ago.
#[tokio::test(start_paused = true)]
async fn what_lets_go_asks_its_permit_once_its_connection_stands() {
    let pod =
        json!({ "metadata": { "name": "db-0", "namespace": "default", "uid": "u", "resourceVersion": "5" } });
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    for (connects_in, goes) in [(1, true), (5, false)] {
        let api = Api::of([node("n1", UUID, &[])]);
        let read: Node = serde_json::from_value(api.node("n1")).expect("a Node");
        let release = unbound(&api, json!({}));
        api.connects_in(Duration::from_secs(connects_in));
        let word = good_for(Duration::from_secs(2));
        let changed = release.change(&read, &json!([]), Some(&word), soon()).await;
        let word = good_for(Duration::from_secs(2));
        let deleted = deleting::delete(&release.cluster, &[&pod], &word, soon()).await;
        if goes {
            changed.expect("it is changed");
            // Who is not there is gone.
            assert_eq!((deleted.sent, deleted.fault().is_none()), (1, true));
            let status = "PATCH /api/v1/namespaces/default/pods/db-0/status";
            assert_eq!(api.changes(), ["PATCH /api/v1/nodes/n1", status]);
            continue;
        }
        let ended = deleted.fault().cloned().map_or(Ok(()), |fault| Err(ReleaseError::from(fault)));
        for refused in [changed, ended] {
            let Err(ReleaseError::DidNotHappen(why)) = refused else { panic!("{refused:?}") };
            assert!(why.ends_with(": it was seen off longer than 2s ago"), "{why}");
        }
        assert_eq!(api.changes(), [""; 0]);
    }
}
