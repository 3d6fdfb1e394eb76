//! The mind: what was seen goes in, what is to be done comes out. No I/O, no clock.
//!
//! **Invariants.** No Node is asked for that was not seen to be unhealthy for as long as its policy says, by looks that follow each other: what
//! passed while nobody looked does not count. Of a Node at most one request is under way. The key of a failure is the same for
//! whoever sees it. Where too many leases stand still or too many Nodes are unhealthy, where two
//! policies speak for a Node, where one selects everything, where two Nodes claim one identity: nothing.

mod brake;
mod claims;
mod episode;
mod exclusion;
mod meaning;
mod node;
mod note;
mod policy;
mod selector;
mod sight;
mod suspects;
mod turn;
mod verdict;
mod voice;
mod wish;

use std::collections::{BTreeMap, BTreeSet};

pub use brake::{Braked, Place, STALE, Sign};
pub use episode::{BACK_WITHIN, End, Order, Stage};
pub use exclusion::Exclusion;
pub(crate) use meaning::{FALSE_IS_HEALTHY, TRUE_IS_HEALTHY};
pub use node::{Condition, Moment, Node};
pub use note::{Note, Phase, STATUS};
pub use policy::{Fault, Grade, Nobody, Policy, Then, Unhealthy, spoken_for};
pub use selector::{Requirement, Selector};
pub use sight::UNBROKEN;
pub use verdict::{Judgement, Report, Verdict, Why};
pub(crate) use wish::MALFORMED;
pub use wish::{Deed, Progress, Said, Standing, Tiding, Wish, WishId};

use brake::{Brakes, Holding, Leases};
use episode::Episode;
use policy::Spoken;
use sight::Sight;
use voice::{Speaker, Voice, unhealthy};

use crate::settings::Select;

/// So long a Node is given to say how it is, whose kubelet is heard again: it posts its status within some ten seconds.
const BETTER_WORD: std::time::Duration = std::time::Duration::from_secs(60);

/// What is known of the cluster, and what was asked for.
#[derive(Clone, Debug, Default)]
pub struct Mind {
    leading: bool,
    select: Select,
    policies: Vec<Policy>,
    nodes: BTreeMap<String, Sight>,
    leases: Leases,
    brakes: Brakes,
    episodes: BTreeMap<String, Episode>,
    rebooting: BTreeSet<String>,
    wishes: Vec<Wish>,
    /// By the UID of a remediation: where it stands, as far as its status may not say yet.
    standings: BTreeMap<String, Standing>,
    /// By the UID of a remediation that came to nothing: until when others speak before it.
    giving_way: BTreeMap<String, Moment>,
}

impl Mind {
    /// Whether this replica leads. What one that led had under way is the next leader's.
    pub fn lead(&mut self, leading: bool) {
        if leading == self.leading {
            return;
        }
        // What a follower made of what it saw is no more the leader's word than what a leader of long ago knew.
        self.episodes.clear();
        self.standings.clear();
        self.giving_way.clear();
        self.leading = leading;
    }

    /// The policies, all of them.
    pub fn policies(&mut self, mut policies: Vec<Policy>) {
        policies.sort_by(|a, b| a.name.cmp(&b.name));
        self.policies = policies;
    }

    /// A Node was looked at; `at`: when the question was sent, or when the watch told it.
    pub fn see(&mut self, node: Node, at: Moment) {
        let name = node.name.clone();
        match self.nodes.get_mut(&name) {
            Some(sight) if sight.node.uid == node.uid => sight.see(node, at),
            _ => {
                // Another Node of that name: what was asked of the other one is not this one's.
                self.episodes.remove(&name);
                self.nodes.insert(name, Sight::new(node, at));
            }
        }
    }

    /// There is no such Node any more.
    pub fn gone(&mut self, name: &str) {
        self.nodes.remove(name);
        self.leases.forget(name);
        self.episodes.remove(name);
    }

    /// There are these Nodes and no others.
    pub fn only(&mut self, names: &BTreeSet<String>) {
        let gone: Vec<String> = self.nodes.keys().filter(|name| !names.contains(*name)).cloned().collect();
        gone.iter().for_each(|name| self.gone(name));
    }

    /// A Node's lease says this renewal.
    pub fn lease(&mut self, node: &str, renewal: &str, at: Moment) {
        self.leases.see(node, renewal, at);
    }

    /// Nodes for which a lock for reboots is held.
    pub fn rebooting(&mut self, nodes: BTreeSet<String>) {
        self.rebooting = nodes;
    }

    /// Whether such a lock is held: it is looked for until it is given back.
    pub fn is_rebooting(&self) -> bool {
        !self.rebooting.is_empty()
    }

    /// What was asked for under this key has ended. False: that was not the last word asked of this Node, and changes nothing.
    pub fn ended(&mut self, node: &str, key: &str, end: &End, now: Moment) -> bool {
        let Some(episode) = self.episodes.get_mut(node) else { return false };
        if episode.key != key || episode.stage != Stage::Asking {
            return false;
        }
        let (goes_on, then, wish) = (episode.ended(end, now), episode.then, episode.wish.clone());
        if let Some(wish) = wish {
            self.gives_way(&wish, end, then, now);
        }
        if !goes_on {
            self.episodes.remove(node);
            if let Some(sight) = self.nodes.get_mut(node) {
                sight.recovered = Some(now);
            }
        }
        true
    }

    /// A Node, as it was seen last.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name).map(|sight| &sight.node)
    }

    /// The same, where it is not a remediation by which it was asked for.
    pub fn policy_s(&self, name: &str) -> Option<&Node> {
        let is_wish = self.episodes.get(name).is_some_and(|episode| episode.wish.is_some());
        self.node(name).filter(|_| !is_wish)
    }

    fn spoken(&self) -> Spoken {
        let nodes: Vec<&Node> = self.nodes.values().map(|sight| &sight.node).collect();
        policy::speak(&self.policies, &nodes)
    }

    fn voice(&self, speaker: Speaker) -> Voice<'_> {
        Voice::of(speaker, &self.policies, &self.wishes, &self.standings)
    }

    /// What is to be done now.
    pub fn judge(&mut self, now: Moment) -> Judgement {
        if self.leading {
            self.returned();
            self.take_turns(now);
        }
        let spoken = self.spoken();
        let speaking = self.speaking();
        let mut brakes = std::mem::take(&mut self.brakes);
        let braked = brakes.hold(&self.counted(&speaking, &spoken), &self.leases, now);
        self.brakes = brakes;
        let mut verdicts = BTreeMap::new();
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            let verdict = match self.speaker(&name, &speaking, &spoken) {
                Some(Ok(speaker)) => self.one(&name, speaker, &spoken, &braked, now),
                Some(Err(nobody)) => self.unspoken(&name, nobody),
                None => continue,
            };
            verdicts.insert(name, verdict);
        }
        let reports = self.reports(spoken, &verdicts);
        let tidings = self.tidings(&verdicts, now);
        Judgement { verdicts, reports, tidings, braked: braked.into_values().collect() }
    }

    /// What was asked for is followed to its end, also where its policy is gone meanwhile.
    fn unspoken(&mut self, name: &str, nobody: &Nobody) -> Verdict {
        if let Some(Episode { stage: Stage::Asking, .. }) = self.episodes.get(name) {
            return Verdict::Follow(Stage::Asking);
        }
        self.episodes.remove(name);
        Verdict::Leave(Why::Nobody(nobody.clone()))
    }

    fn one(
        &mut self,
        name: &str,
        speaker: Speaker,
        spoken: &Spoken,
        braked: &Holding,
        now: Moment,
    ) -> Verdict {
        let Some(sight) = self.nodes.get(name) else { return Verdict::Leave(Why::Unseen) };
        let voice = Voice::of(speaker, &self.policies, &self.wishes, &self.standings);
        let turn = voice.turn(sight);
        if !self.episodes.contains_key(name)
            && turn.is_some()
            && let Some(key) = voice.returning(&sight.node)
        {
            let order = voice.order(&sight.node, key);
            self.episodes.insert(name.to_owned(), Episode::returning(&order, now));
        }
        let (mut round, mut known) = (0, None);
        if let Some(episode) = self.episodes.get_mut(name) {
            if episode.stage == Stage::Asking {
                return Verdict::Follow(Stage::Asking);
            }
            if turn.is_none() {
                self.episodes.remove(name);
                return Verdict::Leave(Why::Healthy);
            }
            round = episode.round;
            let is_same = episode.seen(&sight.node, now);
            match &episode.stage {
                _ if !is_same => {
                    self.episodes.remove(name);
                    round = 0;
                }
                // Each asks for itself, by its own key: of it is told what the gateway says to it, and not what was said to another.
                Stage::Waiting(_) | Stage::Kept | Stage::Person
                    if voice.is_of_another(episode.wish.as_deref()) =>
                {
                    round = 0;
                }
                Stage::Waiting(until) if now >= *until => known = Some(episode.key.clone()),
                // It did not come back in time: that is one more failure.
                Stage::Returning(until) if now >= *until => round = episode.next_round(),
                stage => return Verdict::Follow(stage.clone()),
            }
        }
        let Some(turn) = turn else { return Verdict::Leave(Why::Healthy) };
        if let Some(why) = self.spared(sight, speaker, spoken) {
            return Verdict::Leave(why);
        }
        if let Some(why) = self.hindrance(sight, voice, (braked, self.policy_of(name, spoken)), now) {
            return Verdict::Leave(why);
        }
        let noted = (!self.episodes.contains_key(name)).then(|| voice.known(&sight.node)).flatten();
        let (key, round) = match (known, noted) {
            (Some(key), _) => (key, round),
            (None, Some(noted)) => noted,
            (None, None) => (episode::key(&sight.node, &turn, round), round),
        };
        let order = voice.order(&sight.node, key);
        match self.episodes.get_mut(name) {
            Some(episode) if episode.key == order.key => episode.again(&order),
            _ => drop(self.episodes.insert(name.to_owned(), Episode::new(&order, round))),
        }
        if let Some(wish) = order.wish.clone() {
            self.asks(&wish);
        }
        Verdict::Fence(Box::new(order))
    }

    /// Why an unhealthy Node is not asked for, if somebody's word says so. A remediation goes by the rules of policies (K12).
    fn spared(&self, sight: &Sight, speaker: Speaker, spoken: &Spoken) -> Option<Why> {
        let node = &sight.node;
        let ruled_out = match (speaker, spoken.of.get(&node.name)) {
            (Speaker::Wish(_), Some(Ok(place))) if self.policies[*place].paused => {
                Some(Why::Paused(self.policies[*place].name.clone()))
            }
            (Speaker::Wish(_), Some(Err(nobody))) if let Some(policy) = nobody.paused(&self.policies) => {
                Some(Why::Paused(policy.to_owned()))
            }
            (Speaker::Wish(_), Some(Err(Nobody::Excluded(policy)))) => {
                Some(Why::Excluded(Exclusion::Policy(policy.clone())))
            }
            (Speaker::Wish(_), Some(Err(_))) if node.is_control_plane() => Some(Why::Unnamed),
            _ => None,
        };
        ruled_out.or_else(|| self.voice(speaker).spared(sight, self.rebooting.contains(&node.name)))
    }

    /// Why an unhealthy Node that nobody spares is not asked for now.
    fn hindrance(
        &self,
        sight: &Sight,
        voice: Voice<'_>,
        (braked, policy): (&Holding, Option<&str>),
        now: Moment,
    ) -> Option<Why> {
        if !sight.is_fresh(now) {
            return Some(Why::Unseen);
        }
        if let Some(why) = voice.early(sight, now) {
            return Some(why);
        }
        if let Some(why) = self.heard_again(sight, voice, now) {
            return Some(why);
        }
        if let Some(braked) = brake::over(braked, sight.zone(), policy) {
            return Some(Why::Braked(braked.clone()));
        }
        if let Some(why) = self.barred_by_another(&sight.node) {
            return Some(why);
        }
        (!self.leading).then_some(Why::NotLeading)
    }

    /// Unknown is what nobody has heard: of a kubelet that is heard again a better word is about to come.
    fn heard_again(&self, sight: &Sight, voice: Voice<'_>, now: Moment) -> Option<Why> {
        let until = self.leases.heard_since(&sight.node.name, now)? + BETTER_WORD;
        (now < until && voice.goes_by_silence(sight)).then_some(Why::Heard(until))
    }

    /// What other Nodes are, or say, that keeps this one from being asked for.
    fn barred_by_another(&self, node: &Node) -> Option<Why> {
        self.claimed(node).or_else(|| self.other_of_the_control_plane(node).map(Why::ControlPlane))
    }

    /// Another Node of the control plane that is not there, or soon will not be.
    fn other_of_the_control_plane(&self, node: &Node) -> Option<String> {
        if !node.is_control_plane() {
            return None;
        }
        let others = self.nodes.values().map(|sight| &sight.node);
        let mut others = others.filter(|other| other.name != node.name && other.is_control_plane());
        let lost = |other: &Node| !other.is_ready() || self.episodes.contains_key(&other.name);
        others.find(|other| lost(other)).map(|other| other.name.clone())
    }

    fn reports(&self, spoken: Spoken, verdicts: &BTreeMap<String, Verdict>) -> Vec<Report> {
        let of = |place: usize| {
            let spoken = &spoken.of;
            self.nodes.iter().filter(move |(name, _)| spoken.get(*name).is_some_and(|of| *of == Ok(place)))
        };
        let report = |(place, (policy, faults)): (usize, (&Policy, Vec<Fault>))| {
            let is_fencing = |name: &&String| self.episodes.get(*name).is_some_and(Episode::is_fencing);
            let held = of(place).find_map(|(name, _)| match verdicts.get(name) {
                Some(Verdict::Leave(why)) => why.holds(name),
                _ => None,
            });
            let paused =
                policy.paused.then(|| Fault { reason: "Paused", message: "spec.paused is true".to_owned() });
            Report {
                policy: policy.name.clone(),
                generation: policy.generation,
                selected: spoken.selected[place],
                selective: spoken.selective[place],
                unhealthy: of(place).filter(|(_, sight)| unhealthy(sight, policy).is_some()).count(),
                fencing: of(place).map(|(name, _)| name).filter(is_fencing).count(),
                faults,
                holding: paused.or(held),
            }
        };
        self.policies.iter().zip(spoken.faults.clone()).enumerate().map(report).collect()
    }
}

#[cfg(test)]
mod tests;
