//! What callers ask for, one thing after the other and beside each other.

use std::sync::Arc;

use picket_core::roles::Role;
use picket_driver_sim::Random;
use picket_proto::v1::*;
use prost_types::Duration;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tonic::{Status, Streaming};
use tonic_types::StatusExt;

use super::laws::{Kind, Laws};
use super::rights::{CALLERS, HOLDER, id};
use super::stage::{NODES, Stage};
use crate::lab::{Client, named, s};

pub struct Acts<'a> {
    stage: &'a Stage,
    under_way: JoinSet<()>,
}

/// One of them.
fn any<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration { seconds: seconds as i64, nanos: 0 })
}

impl<'a> Acts<'a> {
    pub fn new(stage: &'a Stage) -> Self {
        Self { stage, under_way: JoinSet::new() }
    }

    pub async fn one(&mut self, random: &mut Random) {
        let stage = self.stage;
        match random.below(100) {
            0..40 => self.fence(random),
            40..54 => self.end_a_hold(random),
            54..62 => self.hold(random),
            62..70 => self.go_on(random),
            70..82 => self.look(random),
            82..90 => stage.reload(random).await,
            90..94 => stage.jump(random),
            _ => stage.trouble(random),
        }
    }

    /// Nobody waits any more.
    pub async fn all_have_left(&mut self) {
        while let Some(left) = self.under_way.join_next().await {
            left.expect("no caller fails");
        }
    }

    /// A node, and somebody who asks: more often than not one who may.
    fn draw(&self, random: &mut Random, role: Role) -> (&'static str, &'static str) {
        let mut drawn = (any(random, &CALLERS), any(random, &NODES));
        for _ in 0..3 {
            if self.stage.laws.may_now(drawn.0, role, drawn.1) {
                break;
            }
            drawn = (any(random, &CALLERS), any(random, &NODES));
        }
        drawn
    }

    fn holder(&self, random: &mut Random, caller: &'static str) -> &'static str {
        match random.below(10) {
            0..6 => caller,
            6..8 => HOLDER,
            _ => any(random, &CALLERS),
        }
    }

    /// One that there is, for the most part.
    fn held(&self, random: &mut Random, caller: &'static str, node: &str) -> String {
        let holds = self.stage.holds(&id(node));
        match holds.is_empty() || random.percent(30) {
            true => self.holder(random, caller).to_owned(),
            false => holds[random.below(holds.len() as u64) as usize].clone(),
        }
    }

    /// Asks, in a task of its own, and has what is heard judged.
    fn ask<F>(&mut self, patience: u64, asks: &Asked, call: impl FnOnce(Client, Arc<Laws>, u64) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let laws = self.stage.laws.clone();
        let number = laws.asks(asks);
        let call = call(self.stage.clients[asks.caller].clone(), laws, number);
        self.under_way.spawn(async move {
            let _left = tokio::time::timeout(s(patience), call).await;
        });
    }

    fn fence(&mut self, random: &mut Random) {
        let (caller, node) = self.draw(random, Role::Controller);
        let holder = self.holder(random, caller);
        let sets_aside = random.percent(8);
        let then = if random.percent(30) { FenceThen::PowerOn } else { FenceThen::StayOff };
        let (key, waits) = (random.below(30), random.percent(45));
        let (keyed, at_most) = (random.percent(50), random.percent(50));
        let (bound, short) = (1 + random.below(300), random.percent(20).then(|| 20 + random.below(200)));
        let asks = Asked { caller, node, holder: holder.to_owned(), kind: Kind::Fence { sets_aside } };
        self.ask(5 + random.below(900), &asks, |mut client, laws, number| async move {
            let request = FenceRequest {
                node: named(node),
                reason: format!("r{number}"),
                holder: if holder == caller { String::new() } else { holder.to_owned() },
                idempotency_key: if keyed { format!("k{key}") } else { String::new() },
                then: then.into(),
                deadline: short.and_then(seconds),
                override_budget: sets_aside.then(|| LimitOverride { reason: format!("r{number}") }),
                queue: waits.then(|| QueueWish { at_most: if at_most { seconds(bound) } else { None } }),
                ..FenceRequest::default()
            };
            hear(&laws, number, client.fence(request).await).await;
        });
    }

    /// Unfences, or drops a hold.
    fn end_a_hold(&mut self, random: &mut Random) {
        let (caller, node) = self.draw(random, Role::Controller);
        let holder = self.held(random, caller, node);
        let unfences = random.percent(50);
        let asks = Asked { caller, node, holder: holder.clone(), kind: Kind::Ends };
        self.ask(300, &asks, |mut client, laws, number| async move {
            let reason = format!("r{number}");
            match unfences {
                true => {
                    let request =
                        UnfenceRequest { node: named(node), reason, holder, ..UnfenceRequest::default() };
                    hear(&laws, number, client.unfence(request).await).await;
                }
                false => {
                    let request =
                        DropHoldRequest { node: named(node), reason, holder, ..DropHoldRequest::default() };
                    laws.hears(number, &words(client.drop_hold(request).await));
                }
            }
        });
    }

    fn hold(&mut self, random: &mut Random) {
        let (caller, node) = self.draw(random, Role::Controller);
        let holder = self.holder(random, caller);
        let asks = Asked { caller, node, holder: holder.to_owned(), kind: Kind::Hold };
        self.ask(300, &asks, |mut client, laws, number| async move {
            let (reason, holder) = (format!("r{number}"), holder.to_owned());
            let request = HoldRequest { node: named(node), reason, holder, ..HoldRequest::default() };
            laws.hears(number, &words(client.hold(request).await));
        });
    }

    /// Decides what a fence does next.
    fn go_on(&mut self, random: &mut Random) {
        let (caller, node) = self.draw(random, Role::Operator);
        let (retries, pauses) = (random.percent(40), random.percent(30));
        let kind = if retries || pauses { Kind::Other } else { Kind::StandsDown };
        let asks = Asked { caller, node, holder: String::new(), kind };
        let lasts = seconds(30 + random.below(200));
        self.ask(300, &asks, |mut client, laws, number| async move {
            let reason = format!("r{number}");
            if pauses {
                let scope = Some(PauseScope { of: Some(pause_scope::Of::Node(node.to_owned())) });
                let request = PauseRequest { scope, reason, lasts };
                laws.hears(number, &words(client.pause(request).await));
            } else if retries {
                let request = RetryRequest { node: named(node), reason, ..RetryRequest::default() };
                hear(&laws, number, client.retry(request).await).await;
            } else {
                let request = StandDownRequest { node: named(node), reason, ..StandDownRequest::default() };
                hear(&laws, number, client.stand_down(request).await).await;
            }
        });
    }

    fn look(&mut self, random: &mut Random) {
        let (caller, node) = self.draw(random, Role::Viewer);
        let (which, fresh) = (random.below(4), random.percent(30));
        let asks = Asked { caller, node, holder: String::new(), kind: Kind::Other };
        self.ask(300, &asks, |mut client, laws, number| async move {
            let heard = match which {
                0 => words(client.list_nodes(ListNodesRequest::default()).await),
                1 => words(client.list_fences(ListFencesRequest::default()).await),
                2 => words(client.get_node(GetNodeRequest { node: named(node), fresh }).await),
                _ => {
                    let fence = FenceRequest {
                        node: named(node),
                        reason: format!("r{number}"),
                        ..FenceRequest::default()
                    };
                    words(client.plan_fence(PlanFenceRequest { fence: Some(fence) }).await)
                }
            };
            laws.hears(number, &heard);
        });
    }
}

/// Who asks for what.
pub struct Asked {
    pub caller: &'static str,
    pub node: &'static str,
    pub holder: String,
    pub kind: Kind,
}

fn refusal(status: &Status) -> String {
    format!("{} {:?} {:?}", status.message(), status.get_error_details(), status.code())
}

fn words<T: std::fmt::Debug>(answer: Result<tonic::Response<T>, Status>) -> String {
    answer.map_or_else(|status| refusal(&status), |answer| format!("{:?}", answer.into_inner()))
}

async fn hear<T: std::fmt::Debug>(
    laws: &Laws,
    number: u64,
    answer: Result<tonic::Response<Streaming<T>>, Status>,
) {
    let mut stream = match answer {
        Ok(answer) => answer.into_inner(),
        Err(status) => return laws.hears(number, &refusal(&status)),
    };
    while let Some(message) = stream.next().await {
        laws.hears(number, &message.map_or_else(|status| refusal(&status), |message| format!("{message:?}")));
    }
}
