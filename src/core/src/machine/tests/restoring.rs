//! S21: a node of a restored store stands on nothing; who reads Off is kept off for an admin; nothing is sent on a backup's
//! word.

use crate::event::{Event, PlannedRelease};
use crate::ids::Incarnation;
use crate::machine::Refused;
use crate::outcome::{Outcome, Reason};
use crate::power::Power;
use crate::record::{Bringing, Cause, Phase, ReleaseStage};
use crate::restore::{HOLD, Restore};
use crate::support::{Player, fence_id, holder, host, person, release, request, s, supply, topology};
use crate::time::WallTime;

fn restore() -> Restore {
    let [at, taken_at] = [1_800_000_000_000, 1_700_000_000_000].map(WallTime::from_millis);
    Restore { at, taken_at, from: Incarnation::mint(WallTime::default(), [7; 10]) }
}

/// Fenced in the old life, with one release begun; restored, and its ledger waited out.
fn was_fenced() -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.off_intent(&["bmc"]);
    player.confirm();
    player.attempt("detach");
    player.restores(restore(), 20);
    adopt(&mut player);
    player.close_all();
    player
}

fn adopt(player: &mut Player) {
    let releases =
        vec![PlannedRelease { id: release("detach"), max_in_flight: None, lingers: None, by_name: false }];
    player.apply(Event::Adopt { topology: topology(&[&[host("bmc")]]), releases, receipts: s(65) });
}

fn read(player: &mut Player, power: Option<Power>) -> Result<(), Refused> {
    let looks = vec![player.look("bmc", power)];
    let (id, topology) = (fence_id(21), topology(&[&[host("bmc")]]));
    player.try_apply(Event::Read { id, topology, looks }).map(|opened| assert!(opened.is_empty()))
}

fn drop_restored(player: &mut Player) -> Result<(), Refused> {
    player.try_apply(Event::DropRestored(person())).map(drop)
}

#[test]
fn what_may_have_been_under_way_stands_in_the_ledger_once_and_bounded() {
    let mut player = Player::new();
    player.restores(restore(), 20);
    adopt(&mut player);
    let open = player.record().ledger.open();
    let lives: Vec<_> = open.iter().map(|open| (open.kind.label(), open.life)).collect();
    assert_eq!(
        lives,
        [("on", Some(s(60))), ("off", Some(s(60))), ("release", Some(s(600))), ("receipt", Some(s(65)))]
    );
    let again = Event::Adopt { topology: topology(&[&[host("bmc")]]), releases: vec![], receipts: s(65) };
    assert!(player.try_apply(again).is_err());
    assert_eq!(player.open_effects().len(), 4);
}

/// Found by `what_is_opened_stands_in_the_ledger`: an off of this life went under the old life's entry, and its answer would
/// have ended that too.
#[test]
fn what_this_life_sends_does_not_join_what_the_old_one_may_have_sent() {
    let mut player = Player::new();
    player.restores(restore(), 20);
    player.fence(request(1, &[&[host("bmc")]], &[]));
    adopt(&mut player);
    player.off_intent(&["bmc"]);
    let offs: Vec<_> = player.open_effects().into_iter().filter(|words| words.contains("off")).collect();
    assert_eq!(offs.len(), 2, "{offs:?}");
    player.off_intent(&["bmc"]);
    let open = player.record().ledger.open();
    let terms: Vec<_> =
        open.iter().filter(|open| open.kind.label() == "off").map(|open| open.term.0 > 0).collect();
    assert_eq!(terms, [false, true]);
}

#[test]
fn a_node_that_reads_off_is_kept_off_and_nothing_of_it_is_proven_or_let_go() {
    let mut player = Player::new();
    player.restores(restore(), 20);
    let generation = player.record().generation;
    read(&mut player, Some(Power::Off)).unwrap();
    let record = player.record();
    assert_eq!((record.phase.clone(), record.restored.clone()), (Phase::Fenced, None));
    assert!(record.generation > generation && record.is_groundless());
    assert_eq!(record.holds.keys().collect::<Vec<_>>(), [HOLD]);
    let fence = player.open_fence();
    assert_eq!((fence.id, fence.cause, &fence.evidence), (fence_id(21), Cause::Restored, &None));
    assert!(fence.releases.is_empty() && fence.outcome.is_none() && !fence.off_sent);
}

#[test]
fn no_event_lets_anything_go_or_sends_anything_while_a_restore_keeps_it_off() {
    let mut player = was_fenced();
    read(&mut player, Some(Power::Off)).unwrap();
    let looks = [player.look("bmc", Some(Power::Off))];
    let before = player.stored.clone();
    let words = || "for the test".to_owned();
    let refused = [
        Event::ReleaseIntent { release: release("detach"), life: None, lingers: None, sets_up: true },
        Event::OffIntent { devices: vec![crate::support::device("bmc")], identified: Vec::new() },
        Event::HoldIntent { found: [(crate::support::device("bmc"), Default::default())].into() },
        Event::Attest { person: person(), looks: &looks },
        Event::Unproven { why: words(), seen: true },
        Event::Breach { id: fence_id(30), device: crate::support::device("bmc") },
        crate::support::join(holder("scheduler", crate::record::Then::PowerOn), None),
        Event::OnIntent { devices: vec![crate::support::device("bmc")] },
        Event::UnholdIntent,
        Event::Abort { why: words() },
        Event::Bar { reason: Reason::Paused, why: words() },
        Event::Retry(person()),
        Event::StandDown(person()),
        Event::Unfence { holder: HOLD.to_owned(), person: person() },
        Event::Hold { holder: HOLD.to_owned(), person: person() },
        Event::Drill(Box::new(request(31, &[&[host("bmc")]], &[]))),
    ];
    for event in refused {
        let name = format!("{event:?}");
        assert!(player.try_apply(event).is_err(), "{name}");
        assert_eq!(player.stored, before, "{name}");
    }
    // A release that somebody gives up by name makes no ground of it either.
    player.apply(Event::Abandon { release: release("detach"), person: person(), orphan: false });
    assert_eq!((player.phase(), player.open_fence().outcome.clone()), ("fenced", None));
}

#[test]
fn only_an_admin_s_word_drops_the_hold_and_the_releases_come_first() {
    let mut player = was_fenced();
    read(&mut player, Some(Power::Off)).unwrap();
    assert_eq!(player.record().holds.keys().collect::<Vec<_>>(), ["ops", HOLD]);
    let refused = player.try_apply(Event::Unfence { holder: HOLD.to_owned(), person: person() }).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "dropping the hold restored is not possible in phase fenced: only an admin drops it"
    );
    // The caller's own hold goes as ever; the last one wants what was begun to be over.
    player.unfence().unwrap();
    assert_eq!(player.phase(), "fenced");
    let refused = drop_restored(&mut player).unwrap_err();
    assert_eq!(refused, Refused::NotReleased(vec!["detach".to_owned()]));
    assert!(player.record().holds.contains_key(HOLD));
    player.apply(Event::Abandon { release: release("detach"), person: person(), orphan: false });
    drop_restored(&mut player).unwrap();
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::PowerOn));
    assert!(player.open_fence().generation < player.record().generation);
    // What the old life's hold found is put back, and its off undone.
    assert!(player.open_fence().holds.contains_key(&crate::support::device("bmc")));
    assert_eq!(player.on_intent(&["bmc"]).unwrap().len(), 1);
}

#[test]
fn the_caller_s_hold_may_be_the_last_one_and_does_not_pass_the_releases_either() {
    let mut player = was_fenced();
    read(&mut player, Some(Power::Off)).unwrap();
    drop_restored(&mut player).unwrap();
    assert_eq!(player.phase(), "fenced", "ops keeps it off still");
    assert_eq!(player.unfence().unwrap_err(), Refused::NotReleased(vec!["detach".to_owned()]));
    assert!(player.record().holds.contains_key("ops"));
}

#[test]
fn a_fence_goes_through_its_own_off_and_the_hold_outlasts_it() {
    let mut player = was_fenced();
    read(&mut player, Some(Power::Off)).unwrap();
    player.fence(request(22, &[&[host("bmc")]], &["detach"]));
    assert_eq!((player.phase(), player.open_fence().cause), ("fencing", Cause::Asked));
    let fence = player.open_fence();
    assert!(fence.releases[0].unfinished && fence.evidence.is_none());
    // It was kept off before: no abort leaves it off without a fence.
    let aborted = player.try_apply(Event::Abort { why: "it recovered".to_owned() });
    assert_eq!(aborted.unwrap_err(), Refused::OffSent);
    player.off_intent(&["bmc"]);
    player.confirm();
    player.close_all();
    player.complete("detach");
    player.unfence().unwrap();
    assert_eq!((player.phase(), player.record().holds.len()), ("released", 1));
    drop_restored(&mut player).unwrap();
    assert_eq!(player.phase(), "unfencing");
}

#[test]
fn a_fence_before_any_reading_keeps_it_for_an_admin_once_it_is_switched_off() {
    let mut player = Player::new();
    player.restores(restore(), 20);
    player.fence(request(22, &[&[host("bmc")]], &[]));
    assert!(!player.record().holds.contains_key(HOLD));
    // Aborted before its off it is what it was: marked.
    player.apply(Event::Abort { why: "it recovered".to_owned() });
    player.back().unwrap();
    assert!(player.record().restored.is_some() && player.record().is_undecided());
    player.fence(request(23, &[&[host("bmc")]], &[]));
    player.off_intent(&["bmc"]);
    assert!(player.record().holds.contains_key(HOLD) && player.record().restored.is_none());
}

#[test]
fn a_node_that_nobody_had_fenced_and_that_is_on_is_normal() {
    let mut player = Player::new();
    player.restores(restore(), 20);
    assert!(read(&mut player, None).is_err() && read(&mut player, Some(Power::Unknown)).is_err());
    assert!(player.record().is_undecided());
    assert!(player.try_apply(Event::Drill(Box::new(request(31, &[&[host("bmc")]], &[])))).is_err());
    read(&mut player, Some(Power::On)).unwrap();
    let record = player.record();
    assert_eq!((record.phase.clone(), record.restored.clone()), (Phase::Normal, None));
    assert!(!record.is_undecided() && read(&mut player, Some(Power::Off)).is_err());
}

#[test]
fn one_that_was_fenced_and_is_on_waits_for_a_person_and_nothing_is_sent_to_it() {
    let mut player = was_fenced();
    read(&mut player, Some(Power::On)).unwrap();
    assert_eq!(player.record().phase, Phase::NeedsOperator(Reason::Restored));
    assert!(player.breach(30, "bmc").is_err());
    assert_eq!(
        player.try_apply(Event::Retry(person())).unwrap_err().to_string(),
        "a retry is not possible in phase needs operator: nothing was tried since the restore: fence the node, or stand \
         down if it was brought back"
    );
    // It goes off after all: kept off like any other. On again: a person, not a breach.
    read(&mut player, Some(Power::Off)).unwrap();
    assert_eq!((player.phase(), player.record().holds.contains_key(HOLD)), ("fenced", true));
    read(&mut player, Some(Power::On)).unwrap();
    assert_eq!(player.open_fence().outcome, Some(Outcome::NeedsOperator(Reason::Restored)));
    assert_eq!(
        player.try_apply(Event::StandDown(person())).unwrap_err(),
        Refused::Held(vec![HOLD.to_owned()]),
        "an operator does not pass the hold by another door"
    );
    drop_restored(&mut player).unwrap();
    assert_eq!(player.phase(), "needs_operator");
    // What was let go and never seen complete is given up by name first.
    player.apply(Event::Abandon { release: release("detach"), person: person(), orphan: false });
    player.apply(Event::StandDown(person()));
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::StandDown));
}

#[test]
fn one_that_is_on_and_was_fenced_can_be_fenced_at_once() {
    let mut player = was_fenced();
    read(&mut player, Some(Power::On)).unwrap();
    player.fence(request(22, &[&[host("bmc")]], &[]));
    assert_eq!(player.phase(), "fencing");
    let release = &player.open_fence().releases[0];
    assert_eq!(
        (release.stage, release.unfinished),
        (ReleaseStage::Pending, true),
        "not in the settings any more"
    );
}

#[test]
fn a_node_of_which_the_backup_has_nothing_is_marked_like_one_that_was_not_fenced() {
    let mark = crate::record::Restored {
        at: restore().at,
        taken_at: restore().taken_at,
        from: restore().from,
        phase: "unknown".to_owned(),
        counted: false,
    };
    let mut player = Player::new();
    player.apply(Event::Marked(mark.clone()));
    let record = player.record();
    assert_eq!(record.phase, Phase::Normal);
    assert!(record.generation.0 > 0);
    assert!(record.is_undecided() && record.restored.as_ref() == Some(&mark));
    // Of what is stored already nobody says so.
    assert!(player.try_apply(Event::Marked(mark)).is_err());
    read(&mut player, Some(Power::Off)).unwrap();
    assert!(player.record().is_groundless() && player.record().holds.contains_key(HOLD));
}

#[test]
fn old_proofs_and_old_terms_are_void() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.off_intent(&["bmc"]);
    let proof = player.proof();
    player.restores(restore(), 20);
    player.fence(request(22, &[&[host("bmc")]], &[]));
    assert!(matches!(
        player.try_apply(Event::Confirmed(&proof)),
        Err(Refused::ForeignProof(_) | Refused::OpenEffects(_))
    ));
}

/// Switched off by a person's hand, as the BMC was dead: no off of ours was ever sent.
fn attested() -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let silent = [player.look("bmc", None)];
    player.attest(&silent).unwrap();
    assert_eq!((player.phase(), player.open_fence().off_sent), ("released", false));
    player
}

fn was_attested() -> Player {
    let mut player = attested();
    player.restores(restore(), 20);
    player
}

fn bar(player: &mut Player) {
    player.apply(Event::Bar { reason: Reason::Paused, why: "for the test".to_owned() });
}

#[test]
fn a_fence_after_a_restore_that_is_barred_before_its_off_brings_nothing_back() {
    // It was on its way back when the backup was taken, and nobody kept it off.
    let mut player = attested();
    player.unfence().unwrap();
    player.restores(restore(), 20);
    assert!(player.record().is_undecided() && player.record().holds.is_empty());
    player.fence(request(22, &[&[host("bmc")]], &[]));
    bar(&mut player);
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::Abort));
    assert!(player.on_intent(&["bmc"]).is_err());
    // What its devices say first decides where it stands, as it did before.
    player.back().unwrap();
    assert!(player.record().is_undecided() && player.record().restored.is_some());
    read(&mut player, Some(Power::Off)).unwrap();
    assert!(player.record().is_groundless() && player.record().holds.contains_key(HOLD));
}

#[test]
fn a_fence_that_is_barred_before_any_reading_takes_no_hold_of_the_old_life() {
    let mut player = was_attested();
    player.fence(request(22, &[&[host("bmc")]], &[]));
    let before = player.stored.clone();
    let end = Event::Bar { reason: Reason::Paused, why: "a pause".to_owned() };
    assert_eq!(player.try_apply(end).unwrap_err(), Refused::Held(vec!["ops".to_owned()]));
    assert_eq!(player.stored, before);
    // Of a machine that is seen to run nothing keeps it off.
    player.apply(Event::Abort { why: "it is ready again".to_owned() });
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::Abort));
    assert!(player.record().holds.is_empty());
}

#[test]
fn an_unfence_that_an_admin_let_begin_goes_on_where_a_fence_interrupted_it() {
    let mut player = was_attested();
    read(&mut player, Some(Power::Off)).unwrap();
    player.unfence().unwrap();
    drop_restored(&mut player).unwrap();
    assert_eq!(player.phase(), "unfencing");
    player.fence(request(22, &[&[host("bmc")]], &[]));
    bar(&mut player);
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::PowerOn));
    assert_eq!(player.on_intent(&["bmc"]).unwrap().len(), 1);
}

#[test]
fn a_person_s_word_keeps_it_for_an_admin_as_an_off_does() {
    let mut player = Player::new();
    player.restores(restore(), 20);
    let until_released = holder("scheduler", crate::record::Then::PowerOn);
    let request = request(22, &[&[host("bmc")]], &["detach"]);
    player.fence(crate::event::FenceRequest { holder: until_released, ..request });
    player.give_up(Reason::LevelsSpent);
    let silent = [player.look("bmc", None)];
    player.attest(&silent).unwrap();
    assert_eq!(player.record().restored, None);
    player.complete("detach");
    assert_eq!(player.phase(), "released");
    assert_eq!(player.record().holds.keys().collect::<Vec<_>>(), [HOLD]);
    drop_restored(&mut player).unwrap();
    assert_eq!(player.phase(), "unfencing");
}

#[test]
fn a_person_s_word_keeps_it_also_where_nothing_is_to_be_let_go() {
    let mut player = Player::new();
    player.restores(restore(), 20);
    let until_released = holder("scheduler", crate::record::Then::PowerOn);
    let request = request(22, &[&[host("bmc")]], &[]);
    player.fence(crate::event::FenceRequest { holder: until_released, ..request });
    let silent = [player.look("bmc", None)];
    player.attest(&silent).unwrap();
    assert_eq!((player.phase(), player.record().holds.contains_key(HOLD)), ("released", true));
}

/// Outlets that the old life cut after the backup was taken stand in no list of it.
#[test]
fn outlets_that_read_off_come_back_also_where_the_backup_has_a_fence() {
    let outlets = || topology(&[&[supply("pdu-a"), supply("pdu-b")]]);
    let mut player = Player::new();
    player.fence(request(1, &[&[supply("pdu-a"), supply("pdu-b")]], &[]));
    player.restores(restore(), 20);
    let looks = ["pdu-a", "pdu-b"].map(|outlet| player.look(outlet, Some(Power::Off))).to_vec();
    player.apply(Event::Read { id: fence_id(21), topology: outlets(), looks });
    assert!(player.record().is_groundless());
    let cut: Vec<_> = player.open_fence().switched_off.iter().map(ToString::to_string).collect();
    assert_eq!(cut, ["pdu-a", "pdu-b"]);
}
