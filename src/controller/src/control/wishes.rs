//! Remediations: what was seen of them goes to the mind, and what the mind says of them is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::turns::Turns;
use super::{Control, WRITE_AGAIN};
use crate::asked::Asked;
use crate::letting::{self, Let, Stays};
use crate::measured::{SEEN, STUCK, WISHES};
use crate::mind::{Deed, Order, Standing, Tiding, Wish, WishId};
use crate::object::SeenWish;
use crate::outcome::Ended;
use crate::remediation::{self, Kept};
use crate::retired;
use crate::teller::Teller;
use crate::told;
use crate::watch::Remediations;

/// So often it is asked whether the machine of one that stands is retired.
const RETIRED_EVERY: Duration = Duration::from_secs(30);
/// So much of that, and of holds, is asked about at once: a gateway has so much room for one caller, and others ask it too.
const AT_ONCE: usize = 16;

/// What is known of them besides the mind; by their UIDs.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    seen: BTreeMap<String, Arc<SeenWish>>,
    written: BTreeMap<String, (Value, Instant)>,
    /// When its finalizer was last seen to.
    tried: BTreeMap<String, Instant>,
    turns: Turns,
    pub(super) letting: JoinSet<(String, Result<Let, Stays>)>,
    /// Since when no hold is found, and nothing is asked.
    holdless: BTreeMap<String, Instant>,
    /// Why those that are deleted still stand.
    stuck: BTreeMap<String, Told>,
}

/// Why one stands, as a person was told.
#[derive(Debug)]
struct Told {
    text: String,
    /// It is told because its Node is not Ready.
    is_paged: bool,
}

impl Wishes {
    /// Another replica leads.
    pub(super) fn rest(&mut self) {
        self.written.clear();
        self.tried.clear();
        self.turns.rest();
        self.stuck.clear();
        self.holdless.clear();
        self.letting.abort_all();
    }

    #[cfg(test)]
    pub(super) fn words(&self, uid: &str) -> String {
        self.stuck.get(uid).map(|told| told.text.clone()).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn stuck(&self) -> usize {
        self.stuck.len()
    }

    fn is_due(&self, uid: &str, every: Duration, now: Instant) -> bool {
        self.tried.get(uid).is_none_or(|last| now - *last >= every)
    }

    /// Its finalizer is seen to, if that is due. What found no place is due still: others may make many, and change them without a pause.
    fn keep(&mut self, teller: &Teller, wish: &WishId, kept: Kept, now: Instant) {
        if self.is_due(&wish.uid, WRITE_AGAIN, now) && teller.keep(wish, kept) {
            self.tried.insert(wish.uid.clone(), now);
        }
    }
}

impl Control {
    /// Those that there are, if they are others than before: once a tick, however often they change.
    pub(super) fn take_wishes(&mut self, latest: &mut watch::Receiver<Remediations>) {
        if latest.has_changed().unwrap_or(false) {
            self.metrics.count(&SEEN, &["picketremediations"]);
            let all = latest.borrow_and_update().clone();
            self.read_wishes(all);
        }
    }

    pub(super) fn read_wishes(&mut self, all: Remediations) {
        let namespaces = &self.asker.settings.remediation_namespaces;
        let uid = |one: &Arc<SeenWish>| one.metadata.uid.clone().unwrap_or_default();
        let wishes = all.iter().map(|one| remediation::read(one).counting_in(namespaces)).collect();
        self.wishes.seen = all.into_iter().map(|one| (uid(&one), one)).collect();
        let seen = &self.wishes.seen;
        self.wishes.tried.retain(|uid, _| seen.contains_key(uid));
        self.wishes.turns.retain(|uid| seen.contains_key(uid));
        self.wishes.stuck.retain(|uid, _| seen.contains_key(uid));
        self.wishes.written.retain(|uid, _| seen.contains_key(uid));
        self.wishes.holdless.retain(|uid, _| seen.contains_key(uid));
        self.mind.wishes(wishes);
    }

    /// The gateway's fence has come to another phase.
    pub(super) fn wish_goes_on(&mut self, order: &Order, text: &str, node: Option<String>) {
        if let Some(wish) = &order.wish {
            let standing = Standing::asked(Some(order.key.clone()), text);
            self.mind.stands(wish, Standing { gateway_node: node, ..standing });
        }
    }

    /// What was asked for has ended.
    pub(super) fn wish_ended(&mut self, order: &Order, ended: &Ended, noted: bool, node: Option<String>) {
        let Some(wish) = &order.wish else { return };
        let before = self.wishes.seen.get(&wish.uid).map(|seen| remediation::read(seen));
        let key = match noted {
            true => Some(order.key.clone()),
            false => before.and_then(|wish| self.mind.standing(&wish).key.clone()),
        };
        let said = (ended.proven, ended.reason, ended.text.as_str());
        let standing = Standing::ended(key, &ended.end, order.then, said);
        self.mind.stands(wish, Standing { gateway_node: node, ..standing });
    }

    /// Each says in its status where it stands, and what is to be done about it is done.
    pub(super) fn serve_wishes(&mut self, mut tidings: Vec<Tiding>, now: Instant) {
        let still: BTreeSet<&String> = standing(&tidings).map(|one| &one.id.uid).collect();
        self.wishes.stuck.retain(|uid, _| still.contains(uid));
        self.let_go_or_not(&tidings);
        for tiding in &mut tidings {
            let Some(seen) = self.wishes.seen.get(&tiding.id.uid).cloned() else { continue };
            self.serve(tiding, &seen, now);
            if let Some(told) = self.wishes.stuck.get(&tiding.id.uid) {
                tiding.conditions.iter_mut().for_each(|(.., text)| text.clone_from(&told.text));
            }
            let before = seen.status.clone().unwrap_or_default();
            self.write_wish(&seen, &tiding.id, remediation::status(tiding, &before), &before);
        }
        self.measure_wishes(&tidings);
        self.ask_about(&tidings, now);
    }

    pub(super) fn serve(&mut self, tiding: &Tiding, seen: &SeenWish, now: Instant) {
        if !matches!(tiding.deed, Deed::LetGo { .. }) {
            self.wishes.holdless.remove(&tiding.id.uid);
        }
        match tiding.deed {
            Deed::Nothing | Deed::LetGo { .. } => {}
            // Whatever a gateway says of it, or does not say.
            Deed::Page => {
                let is_hearsay = tiding.standing.key.is_none();
                let why = if is_hearsay { retired::HEARSAY } else { retired::NOT_READY };
                self.says_stuck(&known(tiding, seen), why, true);
            }
            Deed::Keep => self.wishes.keep(&self.teller, &tiding.id, Kept::Stands, now),
            Deed::Free => self.wishes.keep(&self.teller, &tiding.id, Kept::Not, now),
        }
    }

    /// A gateway is asked about some of those that stand: whether the machine is retired, or to drop the hold.
    fn ask_about(&mut self, tidings: &[Tiding], now: Instant) {
        // What was sent may be let in still: that a machine is retired now says nothing of it.
        let asks = |one: &&Tiding| one.deed != Deed::Page || !self.is_asked(one);
        let every = |one: &Tiding| if one.deed == Deed::Page { RETIRED_EVERY } else { WRITE_AGAIN };
        let waiting = standing(tidings).filter(asks).map(|one| (one.id.uid.clone(), every(one))).collect();
        let room = AT_ONCE.saturating_sub(self.wishes.letting.len());
        let next = self.wishes.turns.next(&waiting, room, now);
        for tiding in tidings.iter().filter(|one| next.contains(&one.id.uid)) {
            let Some(seen) = self.wishes.seen.get(&tiding.id.uid).cloned() else { continue };
            let (asker, uid) = (self.asker.clone(), tiding.id.uid.clone());
            let none_since = self.wishes.holdless.get(&uid).copied();
            let (wish, deed) = (known(tiding, &seen), tiding.deed);
            self.wishes.letting.spawn(async move {
                let done = match deed {
                    Deed::LetGo { lives } => letting::let_go(&asker, &wish, lives, none_since).await,
                    _ => retired::retired(&asker, &wish).await,
                };
                (uid, done)
            });
        }
    }

    pub(super) fn let_go_or_not(&mut self, tidings: &[Tiding]) {
        while let Some(done) = self.wishes.letting.try_join_next() {
            let Ok((uid, done)) = done else { continue };
            let tiding = tidings.iter().find(|one| one.id.uid == uid);
            if let Some(tiding) = tiding {
                self.answered(tiding, done);
            }
        }
    }

    fn answered(&mut self, tiding: &Tiding, done: Result<Let, Stays>) {
        let uid = &tiding.id.uid;
        let stays = match done {
            Ok(Let::Gone) => return,
            Ok(Let::NoHold) => {
                self.wishes.holdless.entry(uid.clone()).or_insert_with(Instant::now);
                return;
            }
            Ok(Let::NotRetired(node)) => {
                if let Some(node) = node {
                    self.mind.shown(&tiding.id, &node);
                }
                return;
            }
            Err(stays) => stays,
        };
        self.wishes.holdless.remove(uid);
        // Of one whose Node is not Ready it is told already.
        let is_back = matches!(tiding.deed, Deed::LetGo { .. });
        if !is_back {
            return;
        }
        let is_told = self.wishes.stuck.get(uid).is_some_and(|told| !told.is_paged);
        let why = match stays {
            Stays::Said(why) => why,
            // A gateway that answers now and then has nobody told in turns.
            Stays::Unknown(_) if is_told => return,
            Stays::Unknown(why) => why,
        };
        if let Some(seen) = self.wishes.seen.get(uid).cloned() {
            self.says_stuck(&known(tiding, &seen), &why, false);
        }
    }

    /// Whether the gateway is asked for it now.
    fn is_asked(&self, tiding: &Tiding) -> bool {
        let order = self.asking.get(&tiding.node).and_then(|(order, _)| order.wish.as_ref());
        order.is_some_and(|wish| wish.uid == tiding.id.uid)
    }

    /// Told once, and for as long as it is so in the metrics.
    fn says_stuck(&mut self, wish: &Wish, why: &str, is_paged: bool) {
        let text = stuck(wish, retired::gateway_node(self.asker.settings.select, wish), why);
        let before = self.wishes.stuck.insert(wish.id.uid.clone(), Told { text: text.clone(), is_paged });
        if before.is_some_and(|before| before.text == text) {
            return;
        }
        tracing::error!(node = wish.node, text, "a remediation is deleted, and stays");
        if let Some(node) = self.mind.node(&wish.node) {
            self.teller.event(node, "RemediationStuck", &text);
        }
    }

    fn write_wish(&mut self, seen: &SeenWish, wish: &WishId, status: Value, before: &Value) {
        let last = self.wishes.written.get(&wish.uid);
        // A status that others have written beforehand would else keep it from being noted.
        let is_noted = Asked::of(&seen.metadata) == Asked::to_note(&seen.metadata, &status);
        if is_noted && is_known(&status, before, last.map(|(written, _)| written)) {
            return;
        }
        if last.is_some_and(|(same, at)| told::is_same(same, &status) && at.elapsed() < WRITE_AGAIN) {
            return;
        }
        // What found no place is told the next time.
        if self.teller.status(wish, &status) {
            self.wishes.written.insert(wish.uid.clone(), (status, Instant::now()));
        }
    }

    fn measure_wishes(&mut self, tidings: &[Tiding]) {
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for tiding in tidings {
            *counts.entry(remediation::word(tiding.standing.progress)).or_default() += 1.0;
        }
        self.metrics.clear(&WISHES);
        for (word, count) in counts {
            self.metrics.set(&WISHES, &[word], count);
        }
        let stuck = u32::try_from(self.wishes.stuck.len()).unwrap_or(u32::MAX);
        self.metrics.set(&STUCK, &[], f64::from(stuck));
    }
}

/// Whether there is nothing to be written. A definition of before it had `gatewayNode` drops that: it is written once, and not again and again.
fn is_known(status: &Value, before: &Value, written: Option<&Value>) -> bool {
    let was_written =
        |key: &str| key == "gatewayNode" && written.is_some_and(|one| told::is_same(one, status));
    status
        .as_object()
        .is_some_and(|all| all.iter().all(|(key, value)| before[key] == *value || was_written(key)))
}

/// Those that are deleted, and stand for what hangs on them.
fn standing(tidings: &[Tiding]) -> impl Iterator<Item = &Tiding> {
    tidings.iter().filter(|one| matches!(one.deed, Deed::Page | Deed::LetGo { .. }))
}

/// One as it was seen, with what is known of it since.
fn known(tiding: &Tiding, seen: &SeenWish) -> Wish {
    Wish { standing: tiding.standing.clone(), ..remediation::read(seen) }
}

/// What a person can do about one that is deleted and stands. `node`: as the gateway calls it.
fn stuck(wish: &Wish, node: Option<String>, why: &str) -> String {
    let node = node.unwrap_or_else(|| "NODE".to_owned());
    let first = match why {
        retired::HEARSAY => {
            format!("a hold may stand, and the finalizer stays. `picket status {node}` says whether one does")
        }
        _ => "the hold stays, and the finalizer. Bring the Node back".to_owned(),
    };
    format!(
        "{}: {why}: {first}; where its hardware is gone for good, `picket retire {node} --reason TEXT` lets both go; or annotate the remediation with {}=true, and \
         drop the hold by hand",
        wish.id,
        remediation::FREED
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_definition_drops_is_written_once() {
        let status = serde_json::json!({ "phase": "Fencing", "gatewayNode": "n1" });
        let (dropped, other) =
            (serde_json::json!({ "phase": "Fencing" }), serde_json::json!({ "phase": "Waiting" }));
        for (before, written, known) in [
            (&status, None, true),
            (&dropped, None, false),
            (&dropped, Some(&status), true),
            (&dropped, Some(&dropped), false),
            (&other, Some(&status), false),
        ] {
            assert_eq!(is_known(&status, before, written), known, "{before} {written:?}");
        }
    }

    #[test]
    fn one_that_stands_says_how_its_machine_is_retired() {
        let seen = serde_json::from_value(serde_json::json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "metadata": { "name": "n1", "namespace": "ns" }, "spec": {},
        }));
        let wish = remediation::read(&seen.expect("a remediation"));
        let told = stuck(&wish, Some("rack1-n1".to_owned()), retired::NOT_READY);
        assert!(
            told.starts_with("PicketRemediation ns/n1: it is deleted, and its Node is not Ready: "),
            "{told}"
        );
        assert!(
            told.contains("`picket retire rack1-n1 --reason") && told.contains("Bring the Node back"),
            "{told}"
        );
        assert!(told.contains("picket.dev/free-remediation=true"), "{told}");
    }
    use crate::teller::Tell;

    /// K12: a finalizer that found no place is not forgotten for ten seconds while others come before it.
    #[tokio::test]
    async fn a_finalizer_that_found_no_place_is_due_still() {
        let (teller, mut waiting) = Teller::telling(&["a-ns".to_owned()], crate::measured::metrics());
        let wish = |n: usize| {
            let (namespace, name) = ("a-ns".to_owned(), n.to_string());
            WishId { namespace, uid: name.clone(), name, health_check: None }
        };
        let (mut wishes, now) = (Wishes::default(), Instant::now());
        let all = 0..100;
        all.clone().for_each(|n| wishes.keep(&teller, &wish(n), Kept::Stands, now));
        let mut kept = wishes.tried.len();
        assert!(kept > 0 && kept < all.len(), "{kept}");
        // A place that is free is taken by one that has not had any.
        while kept < all.len() {
            assert!(matches!(waiting.next().await, Some((Tell::Keep(..), _))));
            all.clone().for_each(|n| wishes.keep(&teller, &wish(n), Kept::Stands, now));
            kept += 1;
            assert_eq!(wishes.tried.len(), kept);
        }
    }
}
