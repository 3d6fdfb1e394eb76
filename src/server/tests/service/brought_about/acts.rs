//! What callers ask for, one thing after the other and beside each other.

use std::sync::Arc;
use std::time::Duration;

use picket_core::roles::Role;
use picket_driver_sim::Random;
use picket_proto::v1::*;
use prost_types::Duration as Span;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tonic::{Status, Streaming};
use tonic_types::StatusExt;

use super::laws::{Kind, Laws};
use super::pauses::Scope;
use super::rights::{HOLDER, callers, id};
use super::stage::{NODES, Stage};
use crate::lab::{Client, named, s};

pub struct Acts<'a> {
    stage: &'a Stage,
    asked_for: Vec<(u64, Asked, FenceRequest)>,
    under_way: JoinSet<()>,
}

/// One of them.
fn any<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// One of them, if there is one.
fn pick<T: Clone>(random: &mut Random, of: &[T]) -> Option<T> {
    (!of.is_empty()).then(|| of[random.below(of.len() as u64) as usize].clone())
}

fn seconds(seconds: u64) -> Option<Span> {
    Some(Span { seconds: seconds as i64, nanos: 0 })
}

impl<'a> Acts<'a> {
    pub fn new(stage: &'a Stage) -> Self {
        Self { stage, asked_for: Vec::new(), under_way: JoinSet::new() }
    }

    pub async fn one(&mut self, random: &mut Random) {
        let stage = self.stage;
        match random.below(100) {
            0..40 => self.fence(random),
            40..43 => self.repeat(random),
            43..51 => self.end_a_hold(random).await,
            51..55 => self.hold(random),
            55..60 => self.go_on(random),
            60..65 => self.pause(random),
            65..69 => self.resume(random),
            69..73 => self.look(random),
            73..79 => stage.reload(random).await,
            79..83 => stage.blow(random).await,
            83..85 => stage.moves(random),
            _ => stage.trouble(random),
        }
        stage.laws.look().await;
    }

    /// Nobody waits any more.
    pub async fn all_have_left(&mut self) {
        while let Some(left) = self.under_way.join_next().await {
            left.expect("no caller fails");
        }
    }

    /// A node, and somebody who asks: more often than not one who may.
    fn draw(&self, random: &mut Random, role: Role) -> (&'static str, &'static str) {
        let mut drawn = (any(random, callers()), any(random, &NODES));
        for _ in 0..3 {
            if self.stage.laws.may_now(drawn.0, role, drawn.1) {
                break;
            }
            drawn = (any(random, callers()), any(random, &NODES));
        }
        drawn
    }

    fn holder(&self, random: &mut Random, caller: &'static str) -> &'static str {
        match random.below(10) {
            0..6 => caller,
            6..8 => HOLDER,
            _ => any(random, callers()),
        }
    }

    /// One that there is, for the most part.
    async fn held(&self, random: &mut Random, caller: &'static str, node: &str) -> String {
        let holds = self.stage.holds(&id(node)).await;
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
        let number = self.stage.laws.asks(asks);
        self.call(patience, number, asks.caller, call);
    }

    fn call<F>(
        &mut self,
        patience: u64,
        number: u64,
        caller: &'static str,
        call: impl FnOnce(Client, Arc<Laws>, u64) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let call = call(self.stage.clients[caller].clone(), self.stage.laws.clone(), number);
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
        let life = if at_most { s(bound) } else { Duration::MAX };
        let kind = Kind::Fence { sets_aside, waits: waits.then_some(life) };
        let asked = Asked { caller, node, holder: holder.to_owned(), kind };
        let number = self.stage.laws.asks(&asked);
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
        self.asked_for.push((number, asked.clone(), request.clone()));
        self.send_fence(number, caller, request, 5 + random.below(900));
    }

    /// Asks for the same once more, word for word.
    fn repeat(&mut self, random: &mut Random) {
        // What was asked for a moment ago waits still.
        let newest = self.asked_for.len().saturating_sub(6);
        if let Some((number, asked, request)) = pick(random, &self.asked_for[newest..]) {
            let again = self.stage.laws.asks_again(&asked, number);
            self.send_fence(again, asked.caller, request, 5 + random.below(900));
        }
    }

    fn send_fence(&mut self, number: u64, caller: &'static str, request: FenceRequest, patience: u64) {
        self.call(patience, number, caller, |mut client, laws, number| async move {
            hear(&laws, number, client.fence(request).await).await;
        });
    }

    /// Unfences, or drops a hold.
    async fn end_a_hold(&mut self, random: &mut Random) {
        let (caller, node) = self.draw(random, Role::Controller);
        let holder = self.held(random, caller, node).await;
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
                    tell(&laws, number, client.drop_hold(request).await);
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
            tell(&laws, number, client.hold(request).await);
        });
    }

    /// Decides what a fence does next.
    fn go_on(&mut self, random: &mut Random) {
        let (caller, node) = self.draw(random, Role::Operator);
        let retries = random.percent(55);
        let kind = if retries { Kind::Other } else { Kind::StandsDown };
        let asks = Asked { caller, node, holder: String::new(), kind };
        self.ask(300, &asks, |mut client, laws, number| async move {
            let reason = format!("r{number}");
            if retries {
                let request = RetryRequest { node: named(node), reason, ..RetryRequest::default() };
                hear(&laws, number, client.retry(request).await).await;
            } else {
                let request = StandDownRequest { node: named(node), reason, ..StandDownRequest::default() };
                hear(&laws, number, client.stand_down(request).await).await;
            }
        });
    }

    /// Whom it concerns, that one or any, and who asks: more often than not one who may.
    fn scope(&self, random: &mut Random, about: Option<Scope>) -> (&'static str, Scope) {
        let mut drawn = (any(random, callers()), Scope::Everything);
        for _ in 0..8 {
            let (caller, node) = self.draw(random, Role::Operator);
            let scope = match random.below(5) {
                0 => Scope::Everything,
                1 | 2 => Scope::Rack,
                _ => Scope::Node(node),
            };
            drawn = (caller, about.unwrap_or(scope));
            if self.stage.laws.may_pause_now(caller, drawn.1) {
                break;
            }
        }
        drawn
    }

    fn pause(&mut self, random: &mut Random) {
        // A fence that has sent nothing yet, where there is one.
        let about = pick(random, &self.stage.laws.unsent()).filter(|_| random.percent(70));
        let (caller, scope) = self.scope(random, about);
        let longest = if random.percent(20) { 3_000 } else { 300 };
        let lasts = 30 + random.below(longest);
        let kind = Kind::Pause { scope, lasts };
        let asks = Asked { caller, node: scope.node(), holder: String::new(), kind };
        self.ask(300, &asks, |mut client, laws, number| async move {
            let reason = format!("r{number}");
            let request = PauseRequest { scope: scope.asked(), reason, lasts: seconds(lasts) };
            tell(&laws, number, client.pause(request).await);
        });
    }

    fn resume(&mut self, random: &mut Random) {
        // One that stands, where one does.
        let about = pick(random, &self.stage.laws.paused()).filter(|_| random.percent(80));
        let (caller, scope) = self.scope(random, about);
        let kind = Kind::Resume { scope };
        let asks = Asked { caller, node: scope.node(), holder: String::new(), kind };
        self.ask(300, &asks, |mut client, laws, number| async move {
            let reason = format!("r{number}");
            let request = ResumeRequest { scope: scope.asked(), reason };
            tell(&laws, number, client.resume(request).await);
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
            laws.hears(number, &heard, false);
        });
    }
}

/// Who asks for what.
#[derive(Clone, Debug)]
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

fn tell<T: std::fmt::Debug>(laws: &Laws, number: u64, answer: Result<tonic::Response<T>, Status>) {
    let is_granted = answer.is_ok();
    laws.hears(number, &words(answer), is_granted);
}

async fn hear<T: std::fmt::Debug>(
    laws: &Laws,
    number: u64,
    answer: Result<tonic::Response<Streaming<T>>, Status>,
) {
    let mut stream = match answer {
        Ok(answer) => answer.into_inner(),
        Err(status) => return laws.hears(number, &refusal(&status), false),
    };
    while let Some(message) = stream.next().await {
        let text = message.map_or_else(|status| refusal(&status), |message| format!("{message:?}"));
        laws.hears(number, &text, false);
    }
}
