//! Which remediation speaks for a Node, and when it gives way to the others that want to.
//!
//! # Invariants
//!
//! - A remediation that came to nothing by what it asks for, or that somebody's lease keeps from asking,
//!   bars no other one and no policy (K12). Shown by
//!   `one_that_came_to_nothing_bars_neither_another_one_nor_the_policy`.
//! - A remediation that a limit of the gateway bars keeps its turn: the limit would bar the others, too.
//!   Shown by `one_that_is_blocked_keeps_its_turn`.
//! - A remediation that only stands by bars no policy that sees its Node otherwise. Shown by
//!   `a_remediation_of_a_node_that_is_ready_silences_no_policy_that_takes_it_for_unhealthy`.

use std::collections::BTreeMap;

use super::Mind;
use super::episode::{AGAIN, AGAIN_AT_MOST, End};
use super::node::{Moment, Node};
use super::policy::Then;
use super::sight::Sight;
use super::spoken::{Nobody, Spoken};
use super::standing::Progress;
use super::voice::{Speaker, unhealthy};

/// A remediation that wants to speak for a Node: the least one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// What it asked for came to nothing.
    pub(super) gives_way: bool,
    /// It was not the last one to ask.
    is_new: bool,
    /// Which one.
    pub(super) place: usize,
}

impl Mind {
    /// By a Node's name: the remediation that speaks for it. Of several the one that has asked, unless it gives way.
    pub(super) fn speaking(&self) -> BTreeMap<String, Turn> {
        let mut speaking: BTreeMap<String, Turn> = BTreeMap::new();
        for (place, wish) in self.wishes.iter().enumerate() {
            let standing = self.standing(wish);
            let is_over = wish.deleted || wish.timed_out || standing.progress == Progress::Succeeded;
            if !wish.kept || is_over || wish.wrong.is_some() {
                continue;
            }
            let episode = self.episodes.get(&wish.node);
            let has_asked = episode.is_some_and(|one| one.wish.as_ref() == Some(&wish.id.uid));
            let gives_way = self.giving_way.contains_key(&wish.id.uid);
            let turn = Turn { gives_way, is_new: !has_asked, place };
            let known = speaking.entry(wish.node.clone()).or_insert(turn);
            *known = turn.min(*known);
        }
        speaking
    }

    /// Who speaks for a Node: a remediation before its policy, for whoever made it has the Node's medik8s lease; behind it where it stands back.
    pub(super) fn speaker<'a>(
        &self,
        name: &str,
        speaking: &BTreeMap<String, Turn>,
        spoken: &'a Spoken,
    ) -> Option<Result<Speaker, &'a Nobody>> {
        match (speaking.get(name), spoken.of.get(name)?) {
            (Some(turn), Err(_)) => Some(Ok(Speaker::Wish(turn.place))),
            (Some(turn), Ok(place)) if !self.stands_back(turn, name) || !self.is_ill_to(*place, name) => {
                Some(Ok(Speaker::Wish(turn.place)))
            }
            (_, Ok(place)) => Some(Ok(Speaker::Policy(*place))),
            (None, Err(nobody)) => Some(Err(nobody)),
        }
    }

    /// Whether no more comes of that remediation for now: what it asked for came to nothing, or it asks for nothing, as the Node is Ready, or is down
    /// for planned work. Whoever makes one that only stands by would silence the Node's policy by it.
    fn stands_back(&self, turn: &Turn, node: &str) -> bool {
        let voice = self.voice(Speaker::Wish(turn.place));
        let asks = |sight: &Sight| {
            voice.turn(sight).is_some() && voice.spared(sight, self.rebooting.contains(node)).is_none()
        };
        turn.gives_way || !self.nodes.get(node).is_some_and(asks)
    }

    /// Whether the policy at that place takes the Node for unhealthy: for no other policy a remediation stands back.
    pub(super) fn is_ill_to(&self, place: usize, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|sight| unhealthy(sight, &self.policies[place]).is_some())
    }

    /// What was asked for by that remediation has ended so.
    pub(super) fn gives_way(&mut self, wish: &str, end: &End, then: Then, now: Moment) {
        let until = match end {
            // It is not asked again: by the same key the gateway says the same.
            End::Person => Moment::MAX,
            // A remediation that succeeded speaks no more; of any other one no more is to come.
            End::Off if then == Then::StayOff => Moment::MAX,
            End::Refused => now + AGAIN_AT_MOST,
            // Another one may be the remediation of whoever has the lease.
            End::Held => now + AGAIN,
            End::Off | End::Recovered | End::Superseded | End::Blocked(_) => return,
        };
        self.giving_way.insert(wish.to_owned(), until);
    }

    /// Those whose time is over, and those whose Node is Ready, give way no more: the next failure is another one.
    pub(super) fn take_turns(&mut self, now: Moment) {
        let gives_way = |uid: &str, node: &str| {
            let until = self.giving_way.get(uid).filter(|until| now < **until)?;
            (!self.node(node).is_some_and(Node::is_ready)).then_some((uid.to_owned(), *until))
        };
        let left = self.wishes.iter().filter_map(|wish| gives_way(&wish.id.uid, &wish.node)).collect();
        self.giving_way = left;
    }
}
