//! S4, S7, S23 in the record: only what is fenced is released, in order, each attempt with an entry of its own.

use crate::event::Event;
use crate::ids::EffectId;
use crate::machine::Refused;
use crate::order::Opened;
use crate::outcome::{Outcome, Reason};
use crate::record::{Phase, ReleaseStage};
use crate::support::{Player, device, fence_id, host, person, release};

fn fenced(releases: &[&str]) -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], releases);
    player.confirm();
    player
}

fn intent(player: &mut Player, name: &str) -> Result<Vec<Opened>, Refused> {
    player.try_apply(Event::ReleaseIntent {
        release: release(name),
        life: None,
        lingers: None,
        sets_up: true,
    })
}

fn progress(
    player: &mut Player,
    name: &str,
    stage: ReleaseStage,
    known: Option<EffectId>,
) -> Result<(), Refused> {
    let detail = "said so".to_owned();
    player.try_apply(Event::ReleaseProgress { release: release(name), stage, detail, known }).map(drop)
}

fn stage(player: &Player, name: &str) -> ReleaseStage {
    player.open_fence().release(&release(name)).unwrap().stage
}

fn abandon(player: &mut Player, name: &str) -> Result<(), Refused> {
    player.try_apply(Event::Abandon { release: release(name), person: person(), orphan: false }).map(drop)
}

/// Whom a release is about is told once, also before anything was let go, and stands through a breach.
#[test]
fn whom_a_release_is_about_is_who_was_met_first() {
    let mut player = fenced(&["pods"]);
    let met = |subject: &str| Event::ReleaseSubject { release: release("pods"), subject: subject.to_owned() };
    player.apply(met("one"));
    player.apply(met("another"));
    let known = |player: &Player| player.open_fence().release(&release("pods")).unwrap().subject.clone();
    assert_eq!(known(&player).as_deref(), Some("one"));
    player.apply(Event::Breach { id: fence_id(2), device: device("bmc") });
    assert_eq!(known(&player).as_deref(), Some("one"));
    let nobody = Event::ReleaseSubject { release: release("disks"), subject: "one".to_owned() };
    assert!(matches!(player.try_apply(nobody), Err(Refused::NoSuch { .. })));
}

/// Whoever is found to be another machine is a person's matter: to go on with whom there is now, or to give the release up.
#[test]
fn a_person_goes_on_after_another_machine_was_found() {
    let replaced = || {
        let mut player = fenced(&["pods"]);
        let (release, subject) = (release("pods"), "one".to_owned());
        player.apply(Event::ReleaseSubject { release, subject });
        player.apply(Event::GiveUp { reason: Reason::Replaced, detail: "it is another".to_owned() });
        player
    };
    let mut player = replaced();
    player.apply(Event::Retry(person()));
    assert_eq!(player.record().phase, Phase::Fencing);
    assert_eq!(player.open_fence().release(&release("pods")).unwrap().subject, None);
    let mut player = replaced();
    abandon(&mut player, "pods").unwrap();
    assert_eq!(player.record().phase, Phase::Released);
}

#[test]
fn nothing_is_released_in_any_other_phase() {
    let mut player = Player::new();
    assert!(matches!(intent(&mut player, "detach"), Err(Refused::Phase { .. })));
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    assert!(matches!(intent(&mut player, "detach"), Err(Refused::Phase { phase: "fencing", .. })));
    player.confirm();
    player.apply(Event::Unproven { why: "unknown".to_owned(), seen: true });
    assert!(matches!(intent(&mut player, "detach"), Err(Refused::Phase { phase: "fencing", .. })));
    player.confirm();
    player.give_up(Reason::ReleaseDeadline);
    assert!(matches!(intent(&mut player, "detach"), Err(Refused::Phase { phase: "needs_operator", .. })));
}

#[test]
fn each_attempt_is_told_with_how_it_ended_also_in_the_same_words() {
    let mut player = fenced(&["detach"]);
    for (stage, word) in [
        (ReleaseStage::Requested, "is not known to be done"),
        (ReleaseStage::Pending, "waits for a new attempt"),
    ] {
        let before = player.open_fence().moments.len();
        for _ in 0..3 {
            player.attempt("detach");
            progress(&mut player, "detach", stage, None).unwrap();
            // Told again without another attempt it is no news.
            progress(&mut player, "detach", stage, None).unwrap();
        }
        let attempts = player.open_fence().release(&release("detach")).unwrap().attempts;
        let told: Vec<String> =
            player.open_fence().moments[before..].iter().map(|moment| moment.what.clone()).collect();
        let wanted = (attempts - 2..=attempts).flat_map(|n| {
            [format!("release detach: attempt {n}"), format!("release detach {word}: said so")]
        });
        assert_eq!(told, wanted.collect::<Vec<_>>());
    }
}

#[test]
fn each_attempt_has_an_entry_and_an_end_of_its_own() {
    let mut player = fenced(&["detach"]);
    let first = player.attempt("detach");
    let second = player.attempt("detach");
    assert_ne!(first, second);
    assert_eq!(player.open_effects(), ["release detach", "release detach"]);
    assert_eq!(player.open_fence().release(&release("detach")).unwrap().attempts, 2);
    progress(&mut player, "detach", ReleaseStage::Complete, Some(second)).unwrap();
    assert_eq!(player.record().ledger.open()[0].id, first, "the first one's end is not known");
    assert_eq!(player.phase(), "released");
}

#[test]
fn they_have_an_order() {
    let mut player = fenced(&["fence-storage", "detach"]);
    let refused = intent(&mut player, "detach").unwrap_err();
    assert_eq!(refused, Refused::NotReleased(vec!["fence-storage".to_owned()]));
    player.complete("fence-storage");
    assert_eq!(player.phase(), "fenced");
    player.complete("detach");
    assert_eq!(player.phase(), "released");
    assert_eq!(player.open_fence().outcome, Some(Outcome::Fenced { released: true }));
}

#[test]
fn what_is_over_is_not_attempted_again_and_says_nothing_more() {
    let mut player = fenced(&["first", "second"]);
    player.complete("first");
    assert!(matches!(intent(&mut player, "first"), Err(Refused::Phase { phase: "over", .. })));
    progress(&mut player, "first", ReleaseStage::Pending, None).unwrap();
    assert_eq!(stage(&player, "first"), ReleaseStage::Complete);
    assert!(matches!(intent(&mut player, "third"), Err(Refused::NoSuch { .. })));
    assert!(progress(&mut player, "third", ReleaseStage::Complete, None).is_err());
}

#[test]
fn requested_accepted_complete() {
    let mut player = fenced(&["detach"]);
    assert_eq!(stage(&player, "detach"), ReleaseStage::Pending);
    let attempt = player.attempt("detach");
    assert_eq!(stage(&player, "detach"), ReleaseStage::Requested);
    progress(&mut player, "detach", ReleaseStage::Accepted, None).unwrap();
    assert_eq!((stage(&player, "detach"), player.open_effects().len()), (ReleaseStage::Accepted, 1));
    progress(&mut player, "detach", ReleaseStage::Complete, Some(attempt)).unwrap();
    assert_eq!((stage(&player, "detach"), player.open_effects().len()), (ReleaseStage::Complete, 0));
}

#[test]
fn a_release_that_was_never_asked_for_is_not_complete() {
    let mut player = fenced(&["detach"]);
    let attempt = player.attempt("detach");
    player.breach(2, "bmc").unwrap();
    // What the attempt of the fence before came to says nothing of this one: the node was on in between.
    assert!(progress(&mut player, "detach", ReleaseStage::Complete, None).is_err());
    assert!(progress(&mut player, "detach", ReleaseStage::Complete, Some(attempt)).is_err());
    assert_eq!(stage(&player, "detach"), ReleaseStage::Pending);
    player.apply(Event::Closed { effects: vec![attempt], why: "answered" });
}

#[test]
fn the_end_of_an_attempt_ends_no_other_effect() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.off_intent(&["bmc"]);
    let off = player.record().ledger.open()[0].id;
    player.confirm();
    player.attempt("detach");
    progress(&mut player, "detach", ReleaseStage::Accepted, Some(off)).unwrap();
    assert_eq!(player.open_effects(), ["off of bmc", "release detach"]);
}

#[test]
fn only_a_person_abandons() {
    let mut player = fenced(&["detach"]);
    player.attempt("detach");
    assert!(progress(&mut player, "detach", ReleaseStage::Abandoned, None).is_err());
    abandon(&mut player, "detach").unwrap();
    assert_eq!((stage(&player, "detach"), player.phase()), (ReleaseStage::Abandoned, "released"));
    assert_eq!(player.open_effects(), ["release detach"], "its attempt is waited out before an on");
    let detail = &player.open_fence().release(&release("detach")).unwrap().detail;
    assert_eq!(detail, "abandoned by ops: looked at it");
}

#[test]
fn abandoning_wants_a_release_that_is_under_way() {
    let mut player = fenced(&["first", "second"]);
    let refused = abandon(&mut player, "third").unwrap_err();
    assert_eq!(refused.to_string(), "there is no release \"third\" here; there is: first, second");
    player.complete("first");
    assert!(matches!(abandon(&mut player, "first"), Err(Refused::Phase { phase: "complete", .. })));
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    assert!(matches!(abandon(&mut player, "detach"), Err(Refused::Phase { phase: "fencing", .. })));
    player.give_up(Reason::LevelsSpent);
    assert!(matches!(abandon(&mut player, "third"), Err(Refused::NoSuch { .. })));
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.give_up(Reason::LevelsSpent);
    let refused = abandon(&mut player, "detach").unwrap_err();
    assert_eq!(refused.to_string(), "there is no release \"detach\" here; the node has none");
}

#[test]
fn after_the_deadline_the_last_one_abandoned_ends_the_waiting() {
    let mut player = fenced(&["first", "second"]);
    player.attempt("first");
    player.give_up(Reason::ReleaseDeadline);
    abandon(&mut player, "first").unwrap();
    assert_eq!(player.record().phase, Phase::NeedsOperator(Reason::ReleaseDeadline));
    abandon(&mut player, "second").unwrap();
    assert_eq!(player.record().phase, Phase::Released);
}

#[test]
fn what_was_never_confirmed_is_not_released_by_abandoning() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.give_up(Reason::Deadline);
    abandon(&mut player, "detach").unwrap();
    assert_eq!(player.record().phase, Phase::NeedsOperator(Reason::Deadline));
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.give_up(Reason::ReleaseDeadline);
    abandon(&mut player, "detach").unwrap();
    assert_eq!(player.record().phase, Phase::NeedsOperator(Reason::ReleaseDeadline), "no evidence");
}

#[test]
fn abandoning_after_an_unfence_does_not_fence_the_node_again() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.stored.record.fence.as_mut().unwrap().releases =
        Player::fencing(&[&[host("bmc")]], &["detach"]).open_fence().releases.clone();
    player.give_up(Reason::ReleaseDeadline);
    abandon(&mut player, "detach").unwrap();
    assert_eq!(player.phase(), "needs_operator");
}

#[test]
fn giving_up_an_attempt_that_nothing_bounds_is_a_person_s_word_for_its_end() {
    let mut player = Player::new();
    let mut request = crate::support::request(1, &[&[host("bmc")]], &["detach"]);
    request.releases[0].max_in_flight = None;
    player.fence(request);
    player.confirm();
    player.attempt("detach");
    abandon(&mut player, "detach").unwrap();
    assert_eq!(player.open_effects(), [] as [&str; 0]);
}

fn pass_on(player: &mut Player, from: &str, to: &str) -> Result<(), Refused> {
    let (release, to) = (release(from), release(to));
    player.try_apply(Event::PassedOn { release, to, why: "its time is over".to_owned() }).map(drop)
}

/// S23: what is behind it acts first, and it is not over for that (S7).
#[test]
fn what_is_passed_on_has_its_turn_after_what_acts_in_its_place() {
    let mut player = fenced(&["pods", "volumes"]);
    player.attempt("pods");
    assert!(intent(&mut player, "volumes").is_err());
    pass_on(&mut player, "pods", "volumes").unwrap();
    assert!(pass_on(&mut player, "pods", "volumes").is_err(), "once");
    let state = player.open_fence().release(&release("pods")).unwrap();
    assert_eq!(state.passed_on, Some(release("volumes")));
    assert_eq!(state.detail, "passed on to volumes: its time is over");
    let effect = player.attempt("volumes");
    progress(&mut player, "volumes", ReleaseStage::Complete, Some(effect)).unwrap();
    assert_eq!(player.phase(), "fenced", "not everything is let go");
    let effect = player.attempt("pods");
    progress(&mut player, "pods", ReleaseStage::Complete, Some(effect)).unwrap();
    assert_eq!(player.phase(), "released");
}

/// They have an order (S23): who is told at the end is told once both are over, and the two never act side by side.
#[test]
fn what_is_passed_on_opens_the_way_to_nothing_else() {
    let barred_by = |player: &mut Player, name: &str| match intent(player, name) {
        Err(Refused::NotReleased(waiting)) => waiting,
        other => panic!("{other:?}"),
    };
    let turn = |player: &Player| player.open_fence().next_release().map(|one| one.id.to_string());
    let mut player = fenced(&["pods", "volumes", "told"]);
    pass_on(&mut player, "pods", "volumes").unwrap();
    assert_eq!(turn(&player).as_deref(), Some("volumes"));
    assert_eq!(barred_by(&mut player, "told"), ["pods", "volumes"]);
    assert_eq!(barred_by(&mut player, "pods"), ["volumes"]);
    let effect = player.attempt("volumes");
    progress(&mut player, "volumes", ReleaseStage::Complete, Some(effect)).unwrap();
    assert_eq!(turn(&player).as_deref(), Some("pods"));
    assert_eq!(barred_by(&mut player, "told"), ["pods"]);
    let effect = player.attempt("pods");
    progress(&mut player, "pods", ReleaseStage::Complete, Some(effect)).unwrap();
    assert_eq!(turn(&player).as_deref(), Some("told"));
    intent(&mut player, "told").unwrap();
}

#[test]
fn only_backwards_and_to_what_is_open_is_passed_on() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["first", "second"]);
    assert!(matches!(pass_on(&mut player, "first", "second"), Err(Refused::Phase { phase: "fencing", .. })));
    player.confirm();
    assert!(matches!(
        pass_on(&mut player, "second", "first"),
        Err(Refused::Phase { phase: "before it", .. })
    ));
    assert!(matches!(pass_on(&mut player, "first", "first"), Err(Refused::Phase { phase: "before it", .. })));
    assert!(matches!(pass_on(&mut player, "first", "third"), Err(Refused::NoSuch { .. })));
    let mut longer = fenced(&["first", "told", "second"]);
    assert!(matches!(
        pass_on(&mut longer, "first", "second"),
        Err(Refused::Phase { phase: "before it", .. })
    ));
    abandon(&mut player, "second").unwrap();
    assert!(matches!(pass_on(&mut player, "first", "second"), Err(Refused::Phase { phase: "over", .. })));
}

/// Whoever asks for it anew, or a breach, begins with the first again.
#[test]
fn what_was_passed_on_is_first_again_after_a_retry_and_a_breach() {
    let passed_on =
        |player: &Player| player.open_fence().release(&release("pods")).unwrap().passed_on.is_some();
    let mut player = fenced(&["pods", "volumes"]);
    pass_on(&mut player, "pods", "volumes").unwrap();
    player.give_up(Reason::ReleaseDeadline);
    player.apply(Event::Retry(person()));
    assert!(!passed_on(&player));
    player.confirm();
    pass_on(&mut player, "pods", "volumes").unwrap();
    player.apply(Event::Breach { id: fence_id(2), device: device("bmc") });
    assert!(!passed_on(&player));
}
