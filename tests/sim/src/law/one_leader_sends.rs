//! S6: whoever may send leads, as the store sees it; what writes, too; an on and a release follow right upon the store's
//! word. Who does not lead any more, and whose whole machine stood still, may send what needs no word of the store.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::time::BootTime;
use picket_driver_sim::Verb;

use super::{Invariant, Past};
use crate::scene::s;
use crate::trace::{Control, Event, GatewayId, What};

/// From the store's word until the on leaves: the word's way back, and one login.
const AT_ONCE: Duration = Duration::from_secs(8);

#[derive(Debug, Default)]
pub(super) struct OneLeaderSends {
    /// When the store last confirmed a node to a gateway.
    checked: BTreeMap<(GatewayId, NodeId), BootTime>,
    /// How long each gateway was stopped, and since when.
    stopped: BTreeMap<GatewayId, Vec<(BootTime, BootTime)>>,
}

impl OneLeaderSends {
    /// How old the store's word is, while the process ran.
    fn age(&self, gateway: GatewayId, node: &NodeId, now: BootTime) -> Option<Duration> {
        let at = *self.checked.get(&(gateway, node.clone()))?;
        let stops = self.stopped.get(&gateway).into_iter().flatten();
        let stopped = stops.map(|(from, until)| (*until).min(now).since((*from).max(at)));
        Some(now.since(at).saturating_sub(stopped.sum()))
    }
}

impl Invariant for OneLeaderSends {
    fn name(&self) -> &'static str {
        "one_leader_sends"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        let leads = |gateway: GatewayId| past.may_think_it_leads(gateway, event.at);
        match &event.what {
            What::Won { .. } if past.leader.is_some() => {
                return Err(format!("{event:?} while {:?} leads", past.leader));
            }
            What::Began { gateway } => self.checked.retain(|(of, _), _| of != gateway),
            What::Stopped { gateway, until, .. } => {
                self.stopped.entry(*gateway).or_default().push((event.at, *until));
            }
            What::WentOn { gateway } => {
                let stops = self.stopped.entry(*gateway).or_default();
                stops.iter_mut().for_each(|(_, until)| *until = (*until).min(event.at));
            }
            What::Checked { gateway, node } => {
                self.checked.insert((*gateway, node.clone()), event.at);
            }
            What::Stored { gateway, term, .. } if past.leader != Some((*gateway, *term)) => {
                return Err(format!("written by g{gateway} in term {term} while {:?} leads", past.leader));
            }
            What::Permitted { gateway, device, control } => {
                if !leads(*gateway) {
                    return Err(format!(
                        "g{gateway} may send {control:?} to {device}, and {:?} leads",
                        past.leader
                    ));
                }
                if *control == Control::Detach {
                    let age = self.age(*gateway, &past.owner(device).node, event.at);
                    if age.is_none_or(|age| age > s(2)) {
                        return Err(format!("a detach so long after the store's word: {age:?}"));
                    }
                }
                if *control == Control::Power(Verb::On) {
                    let node = &past.owner(device).node;
                    let age = self.age(*gateway, node, event.at);
                    if age.is_none_or(|age| age > AT_ONCE) {
                        return Err(format!("an on to {device} so long after the store's word: {age:?}"));
                    }
                }
            }
            What::Attempt { gateway, node, .. } => {
                let age = self.age(*gateway, node, event.at);
                if !leads(*gateway) || age.is_none_or(|age| age > s(2)) {
                    return Err(format!(
                        "{event:?} so long after the store's word: {age:?}; {:?} leads",
                        past.leader
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
