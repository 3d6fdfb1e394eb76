//! Whether a fence may begin, and whether one that began may go on to its first off.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use super::bar::{Bar, LimitKind, names};
use super::books::{Books, Count, Stand, Ticket};
use super::{Aside, Limits};
use crate::ids::NodeId;
use crate::time::{BootTime, written};

/// The pause that bars a node, if one does.
pub type Paused<'a> = &'a dyn Fn(&NodeId) -> Option<Bar>;

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Books {
    /// Whether a fence of that node may begin now. `ticket`: its place in the queue; without, it stands behind all that wait.
    ///
    /// # Errors
    /// The first limit that bars it: the brake, the cool-down, then those of the fleet and of its groups.
    pub fn decide(&self, node: &NodeId, ticket: Option<&Ticket>, now: BootTime) -> Result<(), Bar> {
        self.first_bar(node, ticket, false, &|_| None, now)
    }

    /// The same, where somebody sets limits aside. The quorum is set aside by its own name alone (S17): whoever sets a budget
    /// aside may know nothing of it. What bars and was set aside. `paused`: which of those that wait a pause bars; whether one bars this
    /// node is asked before.
    ///
    /// # Errors
    /// The first limit that bars it all the same.
    pub fn decide_aside(
        &self,
        node: &NodeId,
        ticket: Option<&Ticket>,
        aside: Aside,
        paused: Paused<'_>,
        now: BootTime,
    ) -> Result<Vec<Bar>, Bar> {
        let costs_quorum = self.quorum_bar(&self.count, node);
        let mut bars = Vec::new();
        if let Err(bar) = self.first_bar(node, ticket, aside.quorum, paused, now) {
            if !aside.budget || bar.kind == LimitKind::Quorum {
                return Err(bar);
            }
            if let Some(bar) = costs_quorum.clone().filter(|_| !aside.quorum) {
                return Err(bar);
            }
            bars.push(bar);
        }
        bars.extend(costs_quorum.filter(|_| aside.quorum));
        Ok(bars)
    }

    fn first_bar(
        &self,
        node: &NodeId,
        ticket: Option<&Ticket>,
        may_cost_quorum: bool,
        paused: Paused<'_>,
        now: BootTime,
    ) -> Result<(), Bar> {
        let among = |count: &Count| match may_cost_quorum {
            true => self.bar_in_groups(count, node, now),
            false => self.bar_among(count, node, now),
        };
        if let Some(bar) = self.bar_alone(node, now) {
            return Err(bar);
        }
        if let Some(bar) = among(&self.count) {
            return Err(bar);
        }
        // Whoever came before and could go now has the place.
        let until = ticket.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut then, mut braked) = (None, None);
        for (_, earlier) in self.waiting.range((Bound::Unbounded, until)) {
            let count: &mut Count = then.get_or_insert_with(|| self.count.clone());
            // Of the same node: that request opens the fence which this one joins.
            if earlier != node {
                let braked = braked.get_or_insert_with(|| self.brake_bars(None, now));
                let _bar = self.take_turn(count, earlier, braked.as_ref(), paused, now);
            }
        }
        match then.and_then(|count| among(&count)) {
            Some(bar) => {
                let text =
                    format!("{}, counting requests that came before and wait for their turn", bar.text);
                Err(Bar { text, retry_after: None, ..bar })
            }
            None => Ok(()),
        }
    }

    /// For each request that waits, in the order of arrival, whether its turn has come.
    pub fn turns(&self, paused: Paused<'_>, now: BootTime) -> Vec<(Ticket, Result<(), Bar>)> {
        let (mut count, braked) = (self.count.clone(), self.brake_bars(None, now));
        let turn = |(ticket, node): (&Ticket, &NodeId)| {
            (*ticket, self.take_turn(&mut count, node, braked.as_ref(), paused, now).map_or(Ok(()), Err))
        };
        self.waiting.iter().map(turn).collect()
    }

    /// What bars a request that waits; where nothing does, it has its place from then on, one for all requests of its node: they join the
    /// first. What a pause bars has none, since it could stand there for as long as the pause does. `braked`: the brake counts every node that
    /// waits, and is the same to all of them.
    fn take_turn(
        &self,
        count: &mut Count,
        node: &NodeId,
        braked: Option<&Bar>,
        paused: Paused<'_>,
        now: BootTime,
    ) -> Option<Bar> {
        let barred = paused(node).or_else(|| braked.cloned()).or_else(|| self.cools_down(node, now));
        let barred = barred.or_else(|| self.bar_among(count, node, now));
        let has_place = count.stands.get(node).is_some_and(|stand| stand.is_open);
        if barred.is_none() && !has_place {
            count.begin(node, false, now);
        }
        barred
    }

    /// The last look (S15): whether a fence that was begun, and has sent nothing, still may be. What was begun after it bars it
    /// not, nor does it count in a window; settings that became tighter, a breach before it, or the brake do. A budget that was set
    /// aside is; the quorum is by its own name.
    ///
    /// # Errors
    /// The limit that bars it.
    pub fn recheck(&self, node: &NodeId, now: BootTime) -> Result<(), Bar> {
        let Some(own) = self.count.stands.get(node) else { return Ok(()) };
        let brake = self.brake_bars(Some(node), now);
        if let Some(bar) = brake.filter(|_| !own.is_exempt) {
            return Err(bar);
        }
        let before = |stand: &Stand| stand.order < own.order;
        let stands: BTreeMap<NodeId, Stand> = self
            .count
            .stands
            .iter()
            .filter(|(_, stand)| before(stand))
            .map(|(node, stand)| (node.clone(), *stand))
            .collect();
        // One that is in no window any more was begun before all that is.
        let own_place = self.count.begun.iter().rposition(|(_, one)| one == node).unwrap_or(0);
        let begun = self.count.begun.iter().take(own_place).cloned().collect();
        let count = Count { stands, begun, ..Count::default() };
        let costs_quorum = self.lost_quorum(&count, node);
        let beside = || self.another_host(&count, node).filter(|_| !own.is_exempt);
        let quorum = costs_quorum.or_else(beside).filter(|_| !own.may_cost_quorum);
        let in_groups = || self.bar_in_groups(&count, node, now).filter(|_| !own.is_exempt);
        quorum.or_else(in_groups).map_or(Ok(()), Err)
    }

    /// What concerns the node alone, or all of them.
    fn bar_alone(&self, node: &NodeId, now: BootTime) -> Option<Bar> {
        self.brake_bars(Some(node), now).or_else(|| self.cools_down(node, now))
    }

    /// What bars a fence of that node now, for whoever looks on: not the queue, nor the brake, which is found once for all nodes.
    pub fn standing_bar(&self, node: &NodeId, now: BootTime) -> Option<Bar> {
        self.cools_down(node, now).or_else(|| self.bar_among(&self.count, node, now))
    }

    fn cools_down(&self, node: &NodeId, now: BootTime) -> Option<Bar> {
        let (_, since) = self.back.get(node)?;
        let (passed, cool_down) = (now.since(*since), self.budget.cool_down);
        let left = cool_down.checked_sub(passed).filter(|left| !left.is_zero())?;
        let whole = Duration::from_secs(passed.as_secs());
        Some(Bar {
            kind: LimitKind::CoolDown,
            whose: format!("node {node}"),
            allowed: 0,
            found: 1,
            text: format!(
                "{node} came back from its last fence {} ago, and is fenced again {} after that at the soonest",
                written(whole),
                written(cool_down)
            ),
            names: String::new(),
            retry_after: Some(left),
        })
    }

    fn bar_among(&self, count: &Count, node: &NodeId, now: BootTime) -> Option<Bar> {
        self.quorum_bar(count, node).or_else(|| self.bar_in_groups(count, node, now))
    }

    /// Whether a node falls with that one: it is that one, or was last seen to run on it.
    pub(super) fn falls_with(&self, one: &NodeId, node: &NodeId) -> bool {
        self.stands_on(one).any(|on| on == node)
    }

    /// Whether a node, or the one on which it was last seen to run, is not at work.
    fn is_dark(&self, count: &Count, one: &NodeId) -> bool {
        self.stands_on(one).any(|on| count.stands.contains_key(on))
    }

    fn quorum_bar(&self, count: &Count, node: &NodeId) -> Option<Bar> {
        self.lost_quorum(count, node).or_else(|| self.another_host(count, node))
    }

    /// The hosts of the store's members are one group, and are fenced one at a time, whatever the limits of the fleet are (K11).
    fn another_host(&self, count: &Count, node: &NodeId) -> Option<Bar> {
        let hosts: BTreeSet<NodeId> = self.budget.quorum.members.values().flatten().cloned().collect();
        if !hosts.iter().any(|host| self.falls_with(host, node)) {
            return None;
        }
        // What carries one of them takes it away as well; it takes nothing more from a node that fell with it.
        let carries = |one: &&NodeId| {
            !self.falls_with(node, one) && hosts.iter().any(|host| self.falls_with(host, one))
        };
        let carriers: BTreeSet<NodeId> = count.stands.keys().filter(carries).cloned().collect();
        let hosts: BTreeSet<NodeId> = hosts.union(&carriers).cloned().collect();
        let one = Limits { at_once: Some(1), ..Limits::default() };
        let bar = self.at_once("the group of the store's hosts", &one, &hosts, count, node)?;
        Some(Bar { kind: LimitKind::Quorum, ..bar })
    }

    fn lost_quorum(&self, count: &Count, node: &NodeId) -> Option<Bar> {
        let (falls, dark) =
            (|one: &NodeId| self.falls_with(one, node), |one: &NodeId| self.is_dark(count, one));
        self.budget.quorum.bar(node, falls, dark, &self.silent)
    }

    fn bar_in_groups(&self, count: &Count, node: &NodeId, now: BootTime) -> Option<Bar> {
        let of_node = self.groups.iter().filter(|(_, _, members)| members.contains(node));
        let mut bars = of_node.filter_map(|(whose, limits, members)| {
            self.at_once(whose, limits, members, count, node)
                .or_else(|| per_window(whose, limits, members, count, now))
                .or_else(|| self.left(whose, limits, members, count, node))
        });
        bars.next()
    }

    fn at_once(
        &self,
        whose: &str,
        limits: &Limits,
        members: &BTreeSet<NodeId>,
        count: &Count,
        node: &NodeId,
    ) -> Option<Bar> {
        let allowed = limits.most_at_once(members.len())?;
        // What runs on the node, and is fenced with it, has its own place already: it waits for this one.
        let is_open = |one: &&NodeId| !self.falls_with(one, node) && members.contains(*one);
        let open: Vec<&NodeId> = count
            .stands
            .iter()
            .filter(|(_, stand)| stand.is_open)
            .map(|(one, _)| one)
            .filter(is_open)
            .collect();
        let found = number(open.len());
        (found >= allowed).then(|| Bar {
            kind: LimitKind::AtOnce,
            whose: whose.to_owned(),
            allowed,
            found,
            text: format!(
                "{whose} may have {allowed} of its {} nodes fenced at once, and has {found}; one that is released, waits for a person or \
                 is not reached makes room",
                members.len()
            ),
            names: names(open),
            retry_after: None,
        })
    }

    fn left(
        &self,
        whose: &str,
        limits: &Limits,
        members: &BTreeSet<NodeId>,
        count: &Count,
        node: &NodeId,
    ) -> Option<Bar> {
        let allowed = limits.min_not_fenced?;
        // No more are gone than stand in the count, or run on others: a list of a whole fleet asks for each node.
        let most = number(count.stands.len()).saturating_add(number(self.runs_on.len()));
        if number(members.len()) > allowed.saturating_add(most) {
            return None;
        }
        let falling = members.iter().filter(|one| self.falls_with(one, node)).count();
        let gone: Vec<&NodeId> =
            members.iter().filter(|one| !self.falls_with(one, node) && self.is_dark(count, one)).collect();
        let found = number(members.len().saturating_sub(gone.len() + falling));
        (found < allowed).then(|| {
            let away = if gone.is_empty() { String::new() } else { format!(", since {} are not at work", gone.len()) };
            Bar {
                kind: LimitKind::MinNotFenced,
                whose: whose.to_owned(),
                allowed,
                found,
                text: format!(
                    "{whose} must keep {allowed} of its {} nodes, and without {node} would keep {found}{away}",
                    members.len()
                ),
                names: names(gone),
                retry_after: None,
            }
        })
    }
}

fn per_window(
    whose: &str,
    limits: &Limits,
    members: &BTreeSet<NodeId>,
    count: &Count,
    now: BootTime,
) -> Option<Bar> {
    let (allowed, window) = limits.per_window?;
    let begun: Vec<Duration> = count
        .begun
        .iter()
        .filter(|(_, one)| members.contains(one))
        .map(|(at, _)| now.since(*at))
        .filter(|age| *age < window)
        .collect();
    let found = number(begun.len());
    // The oldest come first; so many of them must go.
    let gone = usize::try_from(found.checked_sub(allowed)?).unwrap_or(usize::MAX);
    let retry_after = begun.get(gone).map(|age| window.saturating_sub(*age));
    Some(Bar {
        kind: LimitKind::PerWindow,
        whose: whose.to_owned(),
        allowed,
        found,
        text: format!("{whose} may begin {allowed} fences within {}, and began {found}", written(window)),
        names: String::new(),
        retry_after,
    })
}
