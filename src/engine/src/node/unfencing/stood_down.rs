//! After a stand-down: the node is seen to be alive.

use picket_core::outcome::Reason;
use picket_core::power::Power;
use picket_core::time::BootTime;

use super::rounds::Rounds;
use crate::node::{Fatal, NodeTask};

impl NodeTask {
    /// After a stand-down: ends when a host device reads On, or on the person's word where none answers. What a BMC says that restarted
    /// within the fence is no answer: it may say Off of a live machine (S2).
    /// `None`: it reads Off, or the node was moved.
    pub(super) async fn seen_alive(&mut self, deadline: BootTime) -> Result<Option<String>, Fatal> {
        let others = self.ask_whose(&self.hosts()).await.others;
        let mut hosts = self.hosts();
        hosts.retain(|host| others.iter().all(|(other, _)| other != host));
        let lost = self.record().fence.as_ref().map(|fence| fence.lost.clone()).unwrap_or_default();
        let silent_until = self.now() + self.parts.rules.silent_share;
        let mut answered = false;
        let mut rounds = Rounds::new(self.plan.paces.on_watch * 2);
        let here = self.place();
        loop {
            let due = rounds.due(&hosts, self.now());
            let Some(looks) = self.watch(&due).await? else { return Ok(None) };
            let heard_at = self.now();
            looks.iter().for_each(|look| {
                rounds.heard(self, &look.device, look.reading.is_some(), heard_at);
            });
            answered |= looks.iter().any(|look| look.reading.is_some() && !lost.contains(&look.device));
            if looks
                .iter()
                .any(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On))
            {
                return Ok(Some("stood down; it reads On".to_owned()));
            }
            let now = self.now();
            if !answered && now >= silent_until {
                return Ok(Some(
                    "stood down on a person's word; no host device answers that is believed".to_owned(),
                ));
            }
            if now >= deadline {
                let detail =
                    "stood down, and no host device reads On: it is off, fence it or switch it on by hand";
                self.give_up(Reason::StandDownUnseen, detail.to_owned()).await?;
                return Ok(None);
            }
            self.wait_for("On to be seen", "host devices", Some(deadline.since(now)));
            let next = rounds.first(&hosts).unwrap_or(now + self.plan.paces.on_watch * 2);
            if self.pause(here, next.min(deadline).since(now)).await? {
                return Ok(None);
            }
        }
    }
}
