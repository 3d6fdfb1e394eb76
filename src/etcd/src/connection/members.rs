//! Which of etcd's members answer now (S17, K11).
//!
//! **Invariant.** A member is only said to be silent where it would be heard: it has an endpoint of its own in the settings (there are as many as
//! members), or it was heard there before. One endpoint in front of all of them tells of none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use futures::future::join_all;
use tokio::time::timeout;

use super::{Connection, Fault, judge};

impl Connection {
    /// The names of those that do not answer, or have no leader; none, where nobody tells who they are.
    pub(crate) async fn silent_members(&self) -> BTreeSet<String> {
        let list = |client: etcd_client::Client| async move { client.cluster_client().member_list().await };
        let answers = join_all((0..self.endpoints.len()).map(|at| self.who_answers(at)));
        let (listed, answers) = tokio::join!(self.read(list), answers);
        let listed: BTreeMap<u64, String> = match listed {
            Ok(listed) => listed
                .members()
                .iter()
                .filter(|one| !one.is_learner())
                .map(|one| (one.id(), one.name().to_owned()))
                .collect(),
            Err(fault) => {
                tracing::warn!(why = %fault, "which of etcd's members there are is not told: none of them counts as lost");
                return BTreeSet::new();
            }
        };
        let answers: BTreeSet<u64> = answers.into_iter().flatten().collect();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = silent(&listed, self.endpoints.len(), &heard, &answers);
        heard.extend(answers);
        silent
    }

    /// The member behind that endpoint, by its number, where it answers and has a leader.
    async fn who_answers(&self, at: usize) -> Option<u64> {
        let asked = async {
            let ready = self.ready(at).await?;
            let status = ready.client.maintenance_client().status().await.map_err(|error| judge(&error))?;
            Ok::<_, Fault>(status.header().map(etcd_client::ResponseHeader::member_id))
        };
        match timeout(self.request, asked).await {
            Ok(Ok(member)) => member,
            // A connection that says nothing is made anew by whoever asks next.
            Ok(Err(_)) | Err(_) => {
                self.endpoints[at].forget();
                None
            }
        }
    }
}

fn silent(
    listed: &BTreeMap<u64, String>,
    endpoints: usize,
    heard: &BTreeSet<u64>,
    answers: &BTreeSet<u64>,
) -> BTreeSet<String> {
    let would_be_heard = |id: &u64| endpoints >= listed.len() || heard.contains(id);
    let silent = listed.iter().filter(|(id, _)| !answers.contains(id) && would_be_heard(id));
    silent.map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_would_be_heard_and_is_not_is_silent() {
        let listed = (1..=3).map(|id| (id, format!("e{id}"))).collect();
        let set = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<_>>();
        for (endpoints, heard, answers, wanted) in [
            (3, set(&[]), set(&[1, 2, 3]), vec![]),
            (3, set(&[]), set(&[1, 3]), vec!["e2"]),
            // One address for all of them: who is not behind it just now may live.
            (1, set(&[]), set(&[1]), vec![]),
            (1, set(&[1]), set(&[2]), vec!["e1"]),
            (2, set(&[1, 2]), set(&[1]), vec!["e2"]),
            (3, set(&[]), set(&[]), vec!["e1", "e2", "e3"]),
        ] {
            let told = silent(&listed, endpoints, &heard, &answers);
            assert_eq!(
                told.iter().map(String::as_str).collect::<Vec<_>>(),
                wanted,
                "{endpoints}, {heard:?}, {answers:?}"
            );
        }
    }
}
