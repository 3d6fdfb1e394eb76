//! What goes wrong in a history.

use std::sync::Arc;
use std::time::Duration;

use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Random, Verb};
use tokio::task::JoinSet;

use super::law::Law;
use super::shape::Shape;
use crate::lab::{Lab, s};

pub struct Misfortune {
    random: Random,
    shape: Shape,
}

impl Misfortune {
    pub fn new(seed: u64, shape: &Shape) -> Self {
        Self { random: Random::new(seed), shape: shape.clone() }
    }

    pub async fn strike(&mut self, lab: &mut Lab, law: &Arc<Law>, calls: &mut JoinSet<()>) {
        match self.random.below(20) {
            0 => self.crash(lab, law, calls).await,
            1 => {
                let points = 1 + usize::try_from(self.random.below(8)).expect("few");
                *lab.points.die_at.lock().expect("whole") = Some(lab.points.count() + points);
            }
            2 => {
                let millis = i64::try_from(self.random.below(20_000)).expect("few") - 10_000;
                law.say(format!("the wall clock jumps by {millis} ms"));
                lab.clock.jump_wall(millis);
                law.jumped();
            }
            3 => {
                let time = self.random.between(Duration::ZERO, s(60));
                law.say(format!("the store is away for {time:?}"));
                lab.store.away(time);
            }
            4 => {
                let (silent, slow) = (self.random.below(40), self.random.between(Duration::ZERO, s(3)));
                law.say(format!("the store keeps silent in {silent} %, and takes {slow:?}"));
                lab.store.rough(u8::try_from(silent).expect("few"), slow);
            }
            5 => {
                let time = self.random.between(Duration::ZERO, s(100));
                law.say(format!("the gateway is stopped for {time:?}"));
                tokio::time::advance(time).await;
            }
            6 => {
                let points = 1 + usize::try_from(self.random.below(8)).expect("few");
                let time = self.random.between(Duration::ZERO, s(100));
                law.say(format!("the gateway will be stopped for {time:?}"));
                *lab.points.stop_at.lock().expect("whole") = Some((lab.points.count() + points, time));
            }
            7 => self.late(lab, law),
            _ => self.device(lab, law),
        }
    }

    /// The gateway dies, and starts again after a while.
    pub async fn crash(&mut self, lab: &mut Lab, law: &Arc<Law>, calls: &mut JoinSet<()>) {
        let down =
            if self.random.percent(50) { Duration::ZERO } else { self.random.between(Duration::ZERO, s(90)) };
        law.say(format!("the gateway dies for {down:?}"));
        *lab.points.die_at.lock().expect("whole") = None;
        lab.kill().await;
        // Its callers lose their connections.
        calls.shutdown().await;
        tokio::time::sleep(down).await;
        lab.start().await;
    }

    /// Some of it ends by itself.
    pub fn relent(&mut self, lab: &Lab, law: &Arc<Law>) {
        law.say("healed for now");
        let now = lab.clock.boot();
        lab.world.lock().expect("whole").heal(now);
        lab.store.clear();
    }

    /// A command that is late by more than a session lives when nobody uses it.
    fn late(&mut self, lab: &Lab, law: &Arc<Law>) {
        let with_sessions: Vec<&String> = self
            .shape
            .levels
            .iter()
            .flatten()
            .filter(|name| !self.shape.sessionless.contains(name))
            .collect();
        let Some(device) = with_sessions.get(self.random.below(with_sessions.len() as u64) as usize) else {
            return;
        };
        let verb = if self.random.percent(50) { Verb::Off } else { Verb::On };
        let after = self.random.between(s(1), s(200));
        let fault = if self.random.percent(50) {
            Fault::Twice { verb, after, times: 2 }
        } else {
            Fault::Late { verb, after, answered: self.random.percent(50), times: 2 }
        };
        law.say(format!("{device}: {fault:?}"));
        lab.fault(device, fault);
    }

    fn device(&mut self, lab: &Lab, law: &Arc<Law>) {
        let lies = self.shape.liar.is_some();
        let drawn = lab.world.lock().expect("whole").misfortune(&mut self.random, lies);
        let Some(act) = drawn.filter(|act| self.is_fair(act)) else { return };
        law.say(format!("{act:?}"));
        lab.happen(act);
    }

    /// Only the liar lies Off for a live machine.
    fn is_fair(&self, act: &Act) -> bool {
        match act {
            Act::RestartBmc { device, estranged: true, .. }
            | Act::Fault { device, fault: Fault::OffLied | Fault::SaysOff } => {
                self.shape.liar.as_ref() == Some(device)
            }
            _ => true,
        }
    }
}
