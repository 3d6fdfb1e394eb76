//! Which of etcd's members answer now (S17, K11).
//!
//! # Invariants
//!
//! - A member is only said to be silent where it would be heard. Either the endpoint at which it was heard
//!   last gives no answer at all now. Or it was never heard, and there is an endpoint for each member of
//!   which nobody answers. Shown by `who_would_be_heard_and_is_not_is_silent`, `who_refuses_is_not_silent`.
//! - One endpoint in front of several members tells of none: it leads to a different one each time. Shown by
//!   `who_would_be_heard_and_is_not_is_silent`.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use picket_etcd_api::Client;
use tokio::time::timeout;

use super::{CheckedMember, Connection, Fault, judge};

/// What is heard at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// The member of this number answers, and has a leader.
    Member(u64),
    /// A member answers, and does not say which one it is.
    Refusal,
    /// No answer, or one by a member without a leader.
    Silence,
}

impl Connection {
    /// The names of those that do not answer, or have no leader; none, where nobody tells who they are.
    pub(crate) async fn silent_members(&self) -> BTreeSet<String> {
        let list = |client: Client| async move { client.members().await };
        let answers = join_all((0..self.endpoints.len()).map(|at| self.reply(at)));
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
        let mut heard = self.heard.lock();
        let silent = silent(&listed, &heard, &answers);
        for (at, reply) in answers.into_iter().enumerate() {
            if let Reply::Member(member) = reply {
                heard.insert(at, member);
            }
        }
        silent
    }

    /// What is heard at that endpoint now.
    async fn reply(&self, at: usize) -> Reply {
        let mut reply = Reply::Silence;
        let asked = timeout(self.request, self.ask_who(at, &mut reply)).await;
        match asked {
            Ok(Ok(())) => return reply,
            Ok(Err(Fault::Stranger(_))) => reply = Reply::Refusal,
            // Nobody is there (any more), or it has no leader (any more).
            Ok(Err(Fault::Elsewhere(_))) => reply = Reply::Silence,
            // An answer that was heard before stays one.
            Ok(Err(_)) | Err(_) => {}
        }
        // A connection that says nothing is made anew by whoever asks next.
        self.endpoints[at].forget();
        reply
    }

    /// Asks for its status, and once more behind a login where the token is over: of one that lives 300 s that is so at each member
    /// that is seldom asked. `reply` is set as soon as something is heard.
    async fn ask_who(&self, at: usize, reply: &mut Reply) -> Result<(), Fault> {
        let endpoint = &self.endpoints[at];
        let ask = async |ready: &CheckedMember| ready.client.status().await.map_err(|error| judge(&error));
        // Whoever may not be asked is silent: nobody is asked then, and nothing is fenced by what is told here.
        let mut ready = self.ready(at).await?;
        let mut status = ask(&ready).await;
        if status.is_err() && ready.is_over() {
            // Its connection ended before: that says nothing of the member.
            ready = self.ready(at).await?;
            status = ask(&ready).await;
        }
        if matches!(status, Err(Fault::Login(_))) && endpoint.has_user() {
            // etcd looks for its leader first: whoever knows no token has one.
            *reply = Reply::Refusal;
            ready = endpoint.log_in_again(&ready).await?;
            self.expect_cluster(at, ready.cluster)?;
            status = ask(&ready).await;
        }
        let status = status.map_err(|fault| {
            if matches!(fault, Fault::Login(_) | Fault::Refused(_)) {
                *reply = Reply::Refusal;
            }
            fault
        })?;
        self.expect_of_it(at, status.header.as_ref())?;
        *reply = status.header.map_or(Reply::Refusal, |header| Reply::Member(header.member_id));
        Ok(())
    }
}

/// `heard`: who answered at an endpoint last. `answers`: what is heard now, endpoint by endpoint.
fn silent(
    listed: &BTreeMap<u64, String>,
    heard: &BTreeMap<usize, u64>,
    answers: &[Reply],
) -> BTreeSet<String> {
    let is_mute = |(_, reply): &(usize, &Reply)| **reply == Reply::Silence;
    let mute = || answers.iter().enumerate().filter(is_mute).map(|(at, _)| at);
    let is_mute_now = |id: u64| mute().any(|at| heard.get(&at) == Some(&id));
    let is_known = |id: u64| heard.values().any(|one| *one == id);
    // An endpoint at which nobody was ever heard may be anybody's who was never heard.
    let is_anybody_s = answers.len() >= listed.len() && mute().any(|at| !heard.contains_key(&at));
    let silent = listed.iter().filter(|(id, _)| {
        !answers.contains(&Reply::Member(**id)) && (is_mute_now(**id) || !is_known(**id) && is_anybody_s)
    });
    silent.map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_would_be_heard_and_is_not_is_silent() {
        let member = |id| if id == 0 { Reply::Silence } else { Reply::Member(id) };
        let listed = (1..=3).map(|id| (id, format!("e{id}"))).collect();
        for (heard, answers, wanted) in [
            (vec![], vec![1, 2, 3], vec![]),
            (vec![], vec![1, 0, 3], vec!["e2"]),
            (vec![], vec![0, 0, 0], vec!["e1", "e2", "e3"]),
            (vec![(0, 1), (1, 2), (2, 3)], vec![1, 0, 3], vec!["e2"]),
            // One address for all of them: who is not behind it just now may live.
            (vec![], vec![1], vec![]),
            (vec![(0, 1)], vec![2], vec![]),
            (vec![(0, 1)], vec![0], vec!["e1"]),
            // Two addresses of one of them.
            (vec![], vec![1, 1, 2], vec![]),
            (vec![(0, 1), (1, 1), (2, 2)], vec![1, 1, 2], vec![]),
            (vec![(0, 1), (1, 2)], vec![1, 0], vec!["e2"]),
        ] {
            let answers: Vec<Reply> = answers.into_iter().map(member).collect();
            let told = silent(&listed, &heard.iter().copied().collect(), &answers);
            let told: Vec<&str> = told.iter().map(String::as_str).collect();
            assert_eq!(told, wanted, "{heard:?}, {answers:?}");
        }
    }

    #[test]
    fn who_refuses_is_not_silent() {
        let listed = (1..=3).map(|id| (id, format!("e{id}"))).collect();
        let (one, gone) = (Reply::Member(1), Reply::Silence);
        for heard in [vec![], vec![(0, 1), (1, 2), (2, 3)]] {
            let heard = heard.into_iter().collect();
            assert!(silent(&listed, &heard, &[one, Reply::Refusal, Reply::Refusal]).is_empty());
        }
        let heard = [(0, 1), (1, 2), (2, 3)].into_iter().collect();
        let told = silent(&listed, &heard, &[one, Reply::Refusal, gone]);
        assert_eq!(told, BTreeSet::from(["e3".to_owned()]));
        // Where neither was ever heard it may be the one or the other: both count as lost.
        assert_eq!(silent(&listed, &BTreeMap::new(), &[one, Reply::Refusal, gone]).len(), 2);
    }
}
