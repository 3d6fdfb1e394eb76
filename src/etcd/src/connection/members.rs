//! Which of etcd's members answer now (S17, K11).
//!
//! **Invariant.** A member is only said to be silent where it would be heard: the endpoint at which it was heard last gives no answer at all now, or
//! it was never heard, and there is an endpoint for each member of which nobody answers. One endpoint in front of several of them, which leads now to
//! one and then to another, tells of none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use futures::future::join_all;
use picket_etcd_api::Client;
use tokio::time::timeout;

use super::{Connection, Fault, judge};

impl Connection {
    /// The names of those that do not answer, or have no leader; none, where nobody tells who they are.
    pub(crate) async fn silent_members(&self) -> BTreeSet<String> {
        let list = |client: Client| async move { client.members().await };
        let answers = join_all((0..self.endpoints.len()).map(|at| self.who_answers(at)));
        let (listed, answers) = tokio::join!(self.read(list), answers);
        let listed: BTreeMap<u64, String> = match listed {
            Ok(listed) => {
                let voters = listed.members.into_iter().filter(|one| !one.is_learner);
                voters.map(|one| (one.id, one.name)).collect()
            }
            Err(fault) => {
                tracing::warn!(why = %fault, "which of etcd's members there are is not told: none of them counts as lost");
                return BTreeSet::new();
            }
        };
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = silent(&listed, &heard, &answers);
        for (at, member) in answers.into_iter().enumerate() {
            if let Some(member) = member {
                heard.insert(at, member);
            }
        }
        silent
    }

    /// The member behind that endpoint, by its number, where it answers and has a leader.
    async fn who_answers(&self, at: usize) -> Option<u64> {
        let asked = async {
            let status = async || {
                let ready = self.ready(at).await?;
                let status = ready.client.status().await;
                Ok::<_, Fault>((status.map_err(|error| judge(&error)), ready.is_over()))
            };
            let status = match status().await? {
                // Its connection ended before: that says nothing of the member.
                (Err(_), true) => status().await?.0,
                (status, _) => status,
            }?;
            Ok::<_, Fault>(status.header.map(|header| header.member_id))
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

/// `heard`: who answered at an endpoint last. `answers`: who does now, endpoint by endpoint.
fn silent(
    listed: &BTreeMap<u64, String>,
    heard: &BTreeMap<usize, u64>,
    answers: &[Option<u64>],
) -> BTreeSet<String> {
    let mute = || answers.iter().enumerate().filter(|(_, answer)| answer.is_none()).map(|(at, _)| at);
    let is_mute_now = |id: u64| mute().any(|at| heard.get(&at) == Some(&id));
    let is_known = |id: u64| heard.values().any(|one| *one == id);
    // An endpoint at which nobody was ever heard may be anybody's who was never heard.
    let is_anybody_s = answers.len() >= listed.len() && mute().any(|at| !heard.contains_key(&at));
    let silent = listed.iter().filter(|(id, _)| {
        !answers.contains(&Some(**id)) && (is_mute_now(**id) || !is_known(**id) && is_anybody_s)
    });
    silent.map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_would_be_heard_and_is_not_is_silent() {
        let listed = (1..=3).map(|id| (id, format!("e{id}"))).collect();
        for (heard, answers, wanted) in [
            (vec![], vec![Some(1), Some(2), Some(3)], vec![]),
            (vec![], vec![Some(1), None, Some(3)], vec!["e2"]),
            (vec![], vec![None, None, None], vec!["e1", "e2", "e3"]),
            (vec![(0, 1), (1, 2), (2, 3)], vec![Some(1), None, Some(3)], vec!["e2"]),
            // One address for all of them: who is not behind it just now may live.
            (vec![], vec![Some(1)], vec![]),
            (vec![(0, 1)], vec![Some(2)], vec![]),
            (vec![(0, 1)], vec![None], vec!["e1"]),
            // Two addresses of one of them.
            (vec![], vec![Some(1), Some(1), Some(2)], vec![]),
            (vec![(0, 1), (1, 1), (2, 2)], vec![Some(1), Some(1), Some(2)], vec![]),
            (vec![(0, 1), (1, 2)], vec![Some(1), None], vec!["e2"]),
        ] {
            let told = silent(&listed, &heard.iter().copied().collect(), &answers);
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            assert_eq!(told, wanted, "{heard:?}, {answers:?}");
        }
    }
}
