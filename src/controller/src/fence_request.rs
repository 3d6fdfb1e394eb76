//! One request to the gateway, from the last look at the Node to its outcome.
//!
//! # Invariants
//!
//! - Every sending has the same key. Shown by `one_that_starts_anew_joins_the_fence_that_it_had_asked_for`.
//! - Before a request is sent, and before it is sent again, the Node is read from a quorum and this replica
//!   leads. A fence of a Node that recovered would begin anew.

use std::sync::Arc;
use std::time::Duration;

use picket_proto::client::Gateways;
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{self, ErrorReason, FenceResponse, FenceUpdate, FenceView, GetFenceRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::{Status, Streaming};

use crate::api::Api;
use crate::decider::{AfterFence, FenceOrder, Note, Phase};
use crate::leader_election::LeadershipWatch;
use crate::medik8s::{self, LeaseOutcome, Medik8sLeases};
use crate::outcome::{OutcomeReport, is_passing, reason, reason_of};
use crate::request::{request, selected};
use crate::settings::Settings;
use crate::waits::{self, Waits};
use crate::{events, hold_release, remediation, request_note, watch};

/// A request that arrives later than this changes nothing.
pub const LATEST: Duration = Duration::from_secs(30);
/// How long a gateway may take until it answers at all.
pub const ANSWERS: Duration = Duration::from_secs(20);
/// Between two questions what has become of a fence that nobody asks for any more.
const HEARD: Duration = Duration::from_secs(5);
/// A wait is looked at so often, whether anything is heard or not.
const LOOKED: Duration = Duration::from_secs(1);
/// Before a stream that broke is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// What asks.
#[derive(Clone, Debug)]
pub struct FenceRequester {
    /// The API server.
    pub api: Api,
    /// The gateways.
    pub gateways: Gateways,
    /// The settings.
    pub settings: Arc<Settings>,
    /// Whether this replica leads.
    pub leading: LeadershipWatch,
    /// Others' leases of Nodes.
    pub others: Arc<Medik8sLeases>,
}

/// What the last look before a request says.
enum Look {
    /// The reason to ask still holds.
    Holds,
    /// It does not.
    Over(OutcomeReport),
    /// Whoever wanted it does not any more.
    Withdrawn(OutcomeReport),
}

/// What is said on the way.
#[derive(Debug)]
pub enum RequestProgress {
    /// The gateway's fence has come to another phase.
    Phase {
        /// The Node, as it was ordered.
        order: Box<FenceOrder>,
        /// The reason of the Event, one word.
        reason: &'static str,
        /// In words.
        text: String,
        /// The node's name in the gateway's settings; `None`: it was not told.
        node: Option<String>,
    },
    /// What it waits for is another thing.
    Waits {
        /// The Node, as it was ordered.
        order: Box<FenceOrder>,
        /// What is told of it.
        told: waits::WaitReport,
    },
    /// It is over.
    Ended {
        /// What was ordered.
        order: Box<FenceOrder>,
        /// How.
        ended: OutcomeReport,
        /// Whether the key was noted on its remediation, and the gateway may have been asked.
        noted: bool,
        /// The node's name in the gateway's settings; `None`: it was not told.
        node: Option<String>,
    },
}

/// What a request has come to so far, over all its streams.
#[derive(Debug, Default)]
struct RequestState {
    /// The key was noted, and the gateway may have been asked.
    noted: bool,
    /// The fence.
    fence: Option<String>,
    /// As the gateway calls the node.
    node: Option<String>,
    phase: Option<i32>,
    waits: Waits,
}

impl RequestState {
    /// What an update has to tell.
    fn hear(&mut self, order: &FenceOrder, update: &FenceUpdate, now: Instant) -> Option<RequestProgress> {
        let told = |value: &String| Some(value.clone()).filter(|value| !value.is_empty());
        self.fence = told(&update.fence_id).or(self.fence.take());
        self.node = told(&update.node).or(self.node.take());
        let is_news = self.phase != Some(update.phase);
        let text = words(update);
        if is_news {
            self.phase = Some(update.phase);
            self.waits.phase(&text);
        }
        self.waits.hear(update, now);
        let (order, reason, node) = (order.clone(), reason_of(update.phase()), self.node.clone());
        is_news.then(|| RequestProgress::Phase { order: Box::new(order), reason, text, node })
    }
}

/// The note of an order.
pub fn note(order: &FenceOrder, phase: Phase, text: &str) -> Note {
    Note {
        phase,
        text: text.to_owned(),
        policy: order.policy.clone(),
        key: order.key.clone(),
        at: events::time(),
    }
}

impl FenceRequester {
    /// Asks, and follows to the end; tells what happens.
    pub async fn ask(self, order: FenceOrder, to: mpsc::Sender<RequestProgress>) {
        let mut asked = RequestState::default();
        let ended = self.to_the_end(&order, &to, &mut asked).await;
        let RequestState { noted, node, .. } = asked;
        let _ = to.send(RequestProgress::Ended { order: Box::new(order), ended, noted, node }).await;
    }

    async fn to_the_end(
        &self,
        order: &FenceOrder,
        to: &mpsc::Sender<RequestProgress>,
        asked: &mut RequestState,
    ) -> OutcomeReport {
        // NodeHealthCheck's lease is as good as ours, and is its own to renew and to give back (K12).
        let taken = match &order.remediation {
            None => medik8s::take(&self.api, &order.node, &self.others).await,
            Some(remediation) => {
                let health_check = remediation.health_check.as_deref();
                medik8s::heed(&self.api, &order.node, health_check, &self.others).await
            }
        };
        match taken {
            Ok(LeaseOutcome::Ours | LeaseOutcome::NoLeases) => {}
            Ok(LeaseOutcome::Held(by)) => {
                return OutcomeReport::held(format!("{by} works on this Node (its lease in medik8s-leases)"));
            }
            Err(fault) => return OutcomeReport::held(fault.to_string()),
        }
        if let Some(ended) = self.not_seen_on(order).await {
            return ended;
        }
        // Who takes over goes on with this key. What is noted is best effort: it is the same key without it.
        if let Err(fault) =
            events::note(&self.api, &order.node, Some(&note(order, Phase::Fencing, "the gateway is asked")))
                .await
        {
            tracing::warn!(node = %order.node.name, %fault, "it cannot be noted on the Node that it is fenced");
        }
        if let Some(remediation) = &order.remediation {
            // Also a note of which nobody knows whether it was taken.
            asked.noted = true;
            if let Err(fault) = request_note::note(&self.api, remediation, &order.node.name, &order.key).await
            {
                asked.noted = !fault.is_changed() && !fault.is_not_found();
                return OutcomeReport::held(format!("the key is not noted on it: {fault}"));
            }
        }
        loop {
            match self.last_look(order, asked.fence.is_some()).await {
                Ok(Look::Holds) => {}
                Ok(Look::Over(ended)) => return ended,
                // It is asked for no more, and what was sent runs to its end: that is heard.
                Ok(Look::Withdrawn(ended)) => match &asked.fence {
                    None => return ended,
                    Some(fence) => match self.outcome(order, fence).await {
                        Some(ended) => return ended,
                        None => {
                            tokio::time::sleep(HEARD).await;
                            continue;
                        }
                    },
                },
                // What is under way goes on without us, and is not asked anew on a hunch.
                Err(()) if asked.fence.is_some() => {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
                Err(()) => return OutcomeReport::held("the API server does not answer: nothing is asked"),
            }
            if !self.leading.now() {
                return OutcomeReport::held("this replica does not lead any more");
            }
            match self.once(order, to, asked).await {
                Ok(ended) => return ended,
                Err(status) if !is_passing(&status) => match &asked.fence {
                    None => return OutcomeReport::refused(status.message().to_owned()),
                    // What was let in runs to its end, whatever is said of whoever asks for it again.
                    Some(fence) => match self.outcome(order, fence).await {
                        Some(ended) => return ended,
                        None => tokio::time::sleep(HEARD).await,
                    },
                },
                Err(status) if asked.fence.is_none() => {
                    return OutcomeReport::unreached(format!(
                        "no gateway took the request: {}",
                        status.message()
                    ));
                }
                Err(status) => {
                    tracing::warn!(node = %order.node.name, why = status.message(), "the fence's stream broke, it is opened again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// A machine that was switched on and not seen on is a person's, by whatever key it is asked for: it is off, and another fence mends nothing.
    /// A gateway that does not tell is asked for the fence all the same.
    async fn not_seen_on(&self, order: &FenceOrder) -> Option<OutcomeReport> {
        let select = selected(&order.node, self.settings.select).ok()?;
        let known = hold_release::known(self, &select).await.ok()?;
        (known.phase() == v1::Phase::PowerOnFailed).then(|| OutcomeReport::not_seen_on(&known))
    }

    /// Whether the reason to ask still holds; an error: nobody could look. `is_open`: it is being fenced.
    async fn last_look(&self, order: &FenceOrder, is_open: bool) -> Result<Look, ()> {
        let Some(now) = watch::look(&self.api, &order.node.name).await else { return Err(()) };
        if let Some(remediation) = &order.remediation
            && !remediation::holds(&self.api, remediation).await.map_err(drop)?
        {
            let text = format!("{remediation} is deleted, or its time is over: nothing more is asked");
            return Ok(Look::Withdrawn(OutcomeReport::interrupted(text)));
        }
        if order.holds(&now) {
            return Ok(Look::Holds);
        }
        let is_back = is_open && now.uid == order.node.uid && now.boot_id != order.node.boot_id;
        Ok(Look::Over(match is_back {
            true => OutcomeReport::superseded("it booted since"),
            false => OutcomeReport::recovered(
                "it is healthy, booted, is excluded, or is another Node by now: nothing is asked",
            ),
        }))
    }

    /// What has become of a fence; `None`: it runs, or nobody answers.
    async fn outcome(&self, order: &FenceOrder, fence: &str) -> Option<OutcomeReport> {
        let request = GetFenceRequest { fence_id: fence.to_owned(), view: FenceView::Basic as i32 };
        let mut client = FencingServiceClient::new(self.gateways.clone());
        let fence = match tokio::time::timeout(ANSWERS, client.get_fence(request)).await.ok()? {
            Ok(answer) => answer.into_inner().fence?,
            // Its store was begun anew.
            Err(status) if reason(&status) == Some(ErrorReason::FenceNotFound) => {
                return Some(OutcomeReport::interrupted("the gateway knows nothing of that fence any more"));
            }
            Err(_) => return None,
        };
        OutcomeReport::of_fence(&fence, order.then == AfterFence::StayOff)
    }

    async fn once(
        &self,
        order: &FenceOrder,
        to: &mpsc::Sender<RequestProgress>,
        asked: &mut RequestState,
    ) -> Result<OutcomeReport, Status> {
        let request = request(order, self.settings.select, &self.settings.holder);
        let request = request.map_err(Status::invalid_argument)?;
        let mut client = FencingServiceClient::new(self.gateways.clone());
        let asking = tokio::time::timeout(ANSWERS, client.fence(request)).await;
        let late = |_| Status::unavailable("it did not answer in time");
        let mut updates: Streaming<FenceResponse> = asking.map_err(late)??.into_inner();
        loop {
            // A wait is told once it has lasted, also where nothing more is heard.
            if let Ok(message) = tokio::time::timeout(LOOKED, updates.message()).await {
                let Some(update) = message?.and_then(|response| response.update) else { break };
                let said = asked.hear(order, &update, Instant::now());
                if let Some(outcome) = &update.outcome {
                    return Ok(OutcomeReport::of(outcome, order.then == AfterFence::StayOff));
                }
                if let Some(said) = said {
                    let _ = to.send(said).await;
                }
            }
            if let Some(told) = asked.waits.due(Instant::now()) {
                let _ = to.send(RequestProgress::Waits { order: Box::new(order.clone()), told }).await;
            }
        }
        Err(Status::unavailable("the stream ended without an outcome"))
    }
}

fn words(update: &FenceUpdate) -> String {
    let phase =
        update.phase().as_str_name().trim_start_matches("PHASE_").to_ascii_lowercase().replace('_', " ");
    match update.text.as_str() {
        "" => phase,
        text if text.starts_with(&phase) => text.to_owned(),
        text => format!("{phase}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::order;

    #[test]
    fn a_phase_is_named_once() {
        let told = |phase: v1::Phase, text: &str| {
            let text = text.to_owned();
            words(&FenceUpdate { phase: phase as i32, text, ..FenceUpdate::default() })
        };
        assert_eq!(told(v1::Phase::Released, "released"), "released");
        assert_eq!(told(v1::Phase::Released, ""), "released");
        assert_eq!(told(v1::Phase::PowerOnFailed, "bmc: away"), "power on failed: bmc: away");
    }

    /// Also over a stream that broke: nothing is told twice for that.
    #[test]
    fn an_update_tells_of_its_phase_once_and_of_what_lasts() {
        let (mut asked, order, begun) = (RequestState::default(), order(), Instant::now());
        let update = |phase: v1::Phase, what: &str| FenceUpdate {
            phase: phase as i32,
            node: "rack1-n1".to_owned(),
            fence_id: "f".to_owned(),
            wait: Some(v1::Wait { what: what.to_owned(), ..v1::Wait::default() }),
            ..FenceUpdate::default()
        };
        let mut told = Vec::new();
        for second in 0..30 {
            let now = begun + Duration::from_secs(second);
            let update =
                update(if second < 10 { v1::Phase::Fencing } else { v1::Phase::Fenced }, "a webhook");
            if let Some(RequestProgress::Phase { text, node, .. }) = asked.hear(&order, &update, now) {
                assert_eq!(node.as_deref(), Some("rack1-n1"));
                told.push((second, text));
            }
            told.extend(asked.waits.due(now).map(|told| (second, told.text)));
        }
        let said = |second, text: &str| (second, text.to_owned());
        let all = [
            said(0, "fencing"),
            said(3, "fencing; it waits for a webhook"),
            said(10, "fenced"),
            said(13, "fenced; it waits for a webhook"),
        ];
        assert_eq!(told, all);
        assert_eq!((asked.fence.as_deref(), asked.node.as_deref()), (Some("f"), Some("rack1-n1")));
    }
}
