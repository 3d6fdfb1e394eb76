//! A fence must not cost the store its quorum (S17): nobody would lead after it, and nothing could be confirmed.

use std::collections::{BTreeMap, BTreeSet};

use super::bar::{Bar, LimitKind, names};
use crate::ids::NodeId;

/// The members of the store, and the nodes that carry them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quorum {
    /// Each member by its name, with the node that carries it; `None`: a machine that is no node.
    pub members: BTreeMap<String, Option<NodeId>>,
}

impl Quorum {
    /// How many members must be left.
    pub fn needed(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Whether the store would lose its quorum without `node`. `falls`: whether a node falls with that one. `dark`: whether a node is
    /// kept off, or is being fenced, already. `silent`: members that do not answer, for whatever reason, which count as lost (K11).
    pub(super) fn bar(
        &self,
        node: &NodeId,
        falls: impl Fn(&NodeId) -> bool,
        dark: impl Fn(&NodeId) -> bool,
        silent: &BTreeSet<String>,
    ) -> Option<Bar> {
        let members = |wanted: &dyn Fn(&String, Option<&NodeId>) -> bool| {
            let members = self.members.iter().filter(|(member, on)| wanted(member, on.as_ref()));
            members.map(|(member, _)| member.as_str()).collect::<Vec<_>>()
        };
        let own = members(&|_, on| on.is_some_and(&falls));
        let gone = members(&|_, on| on.is_some_and(|on| !falls(on) && dark(on)));
        let mute =
            members(&|member, on| silent.contains(member) && !on.is_some_and(|on| falls(on) || dark(on)));
        let left = self.members.len().saturating_sub(own.len() + gone.len() + mute.len());
        if own.is_empty() || left >= self.needed() {
            return None;
        }
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let more = |many: &[&str], how: &str| match many.len() {
            0 => String::new(),
            many => format!("; {how} {many}"),
        };
        let besides = more(&gone, "dark are already") + &more(&mute, "no answer comes from");
        Some(Bar {
            kind: LimitKind::Quorum,
            whose: "the store".to_owned(),
            allowed: number(self.needed()),
            found: number(left),
            text: format!(
                "{node} carries {} of the store's {} members, and without it {left} would be left of the {} that it needs{besides}",
                own.join(", "),
                self.members.len(),
                self.needed()
            ),
            names: names(gone.into_iter().chain(mute)),
            retry_after: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).expect("a good name")
    }

    fn three() -> Quorum {
        let members = [("e1", Some(node("n1"))), ("e2", Some(node("n2"))), ("e3", None)];
        Quorum { members: members.into_iter().map(|(name, on)| (name.to_owned(), on)).collect() }
    }

    #[test]
    fn the_second_of_three_members_is_kept_and_whoever_carries_none_is_no_matter() {
        let quorum = three();
        let (one, two, other) = (node("n1"), node("n2"), node("n9"));
        let none = BTreeSet::new();
        let bar = |who: &NodeId, dark: &dyn Fn(&NodeId) -> bool| quorum.bar(who, |on| on == who, dark, &none);
        assert_eq!(bar(&one, &|_| false), None, "two are left");
        let two_of = bar(&two, &|dark| *dark == one).expect("one would be left");
        assert_eq!((two_of.allowed, two_of.found, two_of.kind.reason().label()), (2, 1, "quorum"));
        assert!(
            two_of.text.contains("n2 carries e2")
                && two_of.text.contains("dark are already 1")
                && two_of.names == "e1",
            "{two_of:?}"
        );
        assert_eq!(bar(&other, &|dark| *dark == one), None);
        assert_eq!(bar(&one, &|dark| *dark == one), None, "it is not counted twice");
        assert_eq!(Quorum::default().bar(&one, |on| *on == one, |_| true, &none), None);
    }

    /// K11: a machine that failed, and that nobody has fenced, carries a member that is lost all the same.
    #[test]
    fn a_member_that_does_not_answer_counts_as_lost_wherever_it_is_and_once() {
        let quorum = three();
        let (one, two) = (node("n1"), node("n2"));
        let bar = |who: &NodeId, dark: &dyn Fn(&NodeId) -> bool, silent: &[&str]| {
            let silent = silent.iter().map(ToString::to_string).collect();
            quorum.bar(who, |on| on == who, dark, &silent)
        };
        // Its own member may well be silent: that is why it is fenced.
        assert_eq!(bar(&one, &|_| false, &["e1"]), None);
        let barred = bar(&two, &|_| false, &["e1"]).expect("one would be left");
        assert_eq!((barred.allowed, barred.found), (2, 1));
        assert!(barred.text.ends_with("of the 2 that it needs; no answer comes from 1"), "{}", barred.text);
        assert_eq!(barred.names, "e1");
        assert!(bar(&one, &|_| false, &["e3"]).is_some(), "one on a machine that is no node");
        let barred = bar(&two, &|dark| *dark == one, &["e1", "e2"]).expect("one would be left");
        assert!(barred.found == 1 && barred.text.ends_with("; dark are already 1"), "{}", barred.text);
        assert_eq!(bar(&node("n9"), &|_| false, &["e1", "e2"]), None, "it carries none");
    }

    #[test]
    fn two_members_on_one_machine_fall_together() {
        let members = [("e1", Some(node("n1"))), ("e2", Some(node("n1"))), ("e3", Some(node("n2")))];
        let quorum =
            Quorum { members: members.into_iter().map(|(name, on)| (name.to_owned(), on)).collect() };
        let none = BTreeSet::new();
        assert!(quorum.bar(&node("n1"), |on| *on == node("n1"), |_| false, &none).is_some());
        assert!(quorum.bar(&node("n2"), |on| *on == node("n2"), |_| false, &none).is_none());
    }
}
