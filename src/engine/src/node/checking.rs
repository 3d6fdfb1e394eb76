//! A node that is not fenced: its devices are asked who they are, and callers are answered.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::IdentityMatch;
use picket_core::event::Event;
use picket_core::ids::DeviceId;

use super::command::Command;
use super::hands::{Did, Doing};
use super::{Fatal, NodeTask, sleep_until};

impl NodeTask {
    pub(super) async fn normal(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        if self.first_check().await? || self.steps_aside() {
            return Ok(());
        }
        loop {
            self.close_expired(|_| true).await?;
            let now = self.now();
            let expiry = self.record().ledger.open().iter().filter_map(|open| self.expires_at(open)).min();
            let timer = async {
                match expiry {
                    Some(at) => sleep_until(now, at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => match command {
                    Command::Check(reply) => {
                        if self.check(Some(reply)).await? {
                            return Ok(());
                        }
                    }
                    command => self.command(command).await?,
                },
                () = timer => {}
            }
            if self.place() != here || self.steps_aside() {
                return Ok(());
            }
        }
    }

    /// The check after the start, some nodes at a time. True if the node was moved meanwhile.
    async fn first_check(&mut self) -> Result<bool, Fatal> {
        let here = self.place();
        let Some(turns) = self.turns.take() else { return Ok(false) };
        loop {
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => self.command(command).await?,
                turn = turns.acquire() => {
                    let _turn = turn;
                    return self.check(None).await;
                }
            }
            if self.place() != here || self.steps_aside() {
                return Ok(true);
            }
        }
    }

    /// Asks every device for its identity and power. Any other request ends it at once: a check never delays an off.
    /// True if the node was moved meanwhile.
    async fn check(
        &mut self,
        reply: Option<super::command::Reply<picket_core::record::NodeRecord>>,
    ) -> Result<bool, Fatal> {
        let here = self.place();
        let devices: Vec<DeviceId> = self.plan.topology.devices().map(|spec| spec.id.clone()).collect();
        let mut doing: FuturesUnordered<Doing> =
            devices.iter().map(|device| self.hands.identify(device)).collect();
        doing.extend(devices.iter().map(|device| self.hands.read(device)));
        loop {
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => {
                    let ends = !command.is_check();
                    self.command(command).await?;
                    if ends {
                        // The calls under way are dropped here; `reply` says so by closing.
                        return Ok(self.place() != here);
                    }
                }
                next = doing.next() => {
                    let Some((device, did)) = next else { break };
                    self.show(&device, &did);
                    if let Did::Identified(Ok(identity)) = did {
                        self.learn(device, identity).await?;
                    }
                }
            }
        }
        if let Some(reply) = reply {
            let _ = reply.send(Ok(self.record().clone()));
        }
        Ok(false)
    }

    /// An identity is learned where nothing is expected yet; never in a fence.
    async fn learn(
        &mut self,
        device: DeviceId,
        identity: picket_core::device::Identity,
    ) -> Result<(), Fatal> {
        let expected = self.expected_identity(&device);
        if self.parts.twins.is_twin(&self.plan.id, &identity) {
            tracing::error!(%device, said = ?identity, "another node's device says the same of itself: it is not learned");
            return Ok(());
        }
        match expected.compare(&identity) {
            IdentityMatch::Mismatch => {
                tracing::error!(%device, said = ?identity, ?expected, "the device controls another machine");
            }
            IdentityMatch::Unknown if expected.is_empty() && !identity.is_empty() => {
                self.persist(|| Event::Learned { device: device.clone(), identity: identity.clone() })
                    .await?;
                self.device_live(&device).identity_match = Some(IdentityMatch::Match);
                self.publish();
            }
            IdentityMatch::Unknown | IdentityMatch::Match => {}
        }
        Ok(())
    }
}
