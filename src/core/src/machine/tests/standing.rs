//! K3 in the record: what a release sets up stands until it was seen to be gone.

use std::time::Duration;

use crate::event::Event;
use crate::ids::EffectId;
use crate::ledger::EffectKind;
use crate::machine::Refused;
use crate::record::{Phase, ReleaseStage};
use crate::support::{Player, host, person, release, request};

const LINGERS: Duration = Duration::from_secs(30);

fn fenced() -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], &["oos"]);
    player.confirm();
    player
}

fn standing(player: &Player) -> Vec<EffectId> {
    player.record().ledger.standing().map(|(id, _)| id).collect()
}

fn progress(player: &mut Player, stage: ReleaseStage, known: Option<EffectId>) -> Result<(), Refused> {
    let detail = "said so".to_owned();
    player.try_apply(Event::ReleaseProgress { release: release("oos"), stage, detail, known }).map(drop)
}

fn stage(player: &Player) -> ReleaseStage {
    player.open_fence().release(&release("oos")).unwrap().stage
}

fn abandon(player: &mut Player, orphan: bool) -> Result<(), Refused> {
    player.try_apply(Event::Abandon { release: release("oos"), person: person(), orphan }).map(drop)
}

#[test]
fn it_stands_from_its_first_attempt_on_and_once() {
    let mut player = fenced();
    let first = player.attempt("oos");
    assert_eq!(player.open_effects(), ["release oos", "what release oos set up"]);
    progress(&mut player, ReleaseStage::Pending, Some(first)).unwrap();
    player.attempt("oos");
    assert_eq!(player.open_effects(), ["what release oos set up", "release oos"]);
    assert!(player.record().ledger.bars_on() && !player.record().ledger.bars_proof());
}

fn ask(player: &mut Player, sets_up: bool) -> EffectId {
    let (life, lingers) = (None, Some(LINGERS));
    player.apply(Event::ReleaseIntent { release: release("oos"), life, lingers, sets_up });
    let mut attempts = player.record().ledger.open().iter();
    attempts.rfind(|open| matches!(open.kind, EffectKind::Release(_))).unwrap().id
}

/// An attempt that takes away what has to go before sets nothing up: once it was answered nothing of it comes late.
#[test]
fn nothing_stands_by_an_answered_attempt_that_sets_nothing_up() {
    let mut player = fenced();
    for answer in [ReleaseStage::Pending, ReleaseStage::Accepted] {
        let attempt = ask(&mut player, false);
        assert_eq!(standing(&player).len(), 1);
        progress(&mut player, answer, Some(attempt)).unwrap();
        assert_eq!(player.open_effects(), Vec::<String>::new());
    }
    ask(&mut player, true);
    assert_eq!(standing(&player).len(), 1);
    // What stood before stands, whatever is attempted.
    let attempt = ask(&mut player, false);
    progress(&mut player, ReleaseStage::Pending, Some(attempt)).unwrap();
    assert_eq!(standing(&player).len(), 1);
}

/// The deletion that nobody answered for may come late, whatever is answered later: it is taken back, and nobody acts on it after that (S8).
#[test]
fn what_was_asked_for_and_not_answered_stands_until_it_is_taken_back() {
    let mut player = fenced();
    let first = ask(&mut player, false);
    progress(&mut player, ReleaseStage::Requested, None).unwrap();
    assert!(matches!(abandon(&mut player, false), Err(Refused::Phase { phase: "asked", .. })));
    player.apply(Event::Closed { effects: vec![first], why: "its longest life has passed" });
    let second = ask(&mut player, false);
    progress(&mut player, ReleaseStage::Pending, Some(second)).unwrap();
    assert_eq!(player.open_effects(), ["what release oos set up"]);
    assert!(player.record().ledger.bars_on());
    player.apply(Event::Withdrawn { effects: standing(&player) });
    assert_eq!(player.open_effects(), Vec::<String>::new(), "there is nothing to be acted on");
    abandon(&mut player, false).unwrap();
}

/// What is set up after it, or found there, is acted on, and is waited out like all of that.
#[test]
fn what_was_asked_for_is_no_more_alone_once_something_is_set_up() {
    for found in [false, true] {
        let mut player = fenced();
        let first = ask(&mut player, false);
        match found {
            true => player.apply(Event::StandsFound { release: release("oos"), lingers: LINGERS }),
            false => player.apply(Event::ReleaseIntent {
                release: release("oos"),
                life: None,
                lingers: Some(LINGERS),
                sets_up: true,
            }),
        };
        progress(&mut player, ReleaseStage::Pending, Some(first)).unwrap();
        assert_eq!(standing(&player).len(), 1, "found: {found}");
        let attempts = player.record().ledger.open().iter();
        let attempts =
            attempts.filter(|open| matches!(open.kind, EffectKind::Release(_))).map(|open| open.id);
        let effects = attempts.collect();
        player.apply(Event::Closed { effects, why: "its longest life has passed" });
        player.apply(Event::Withdrawn { effects: standing(&player) });
        let open = player.record().ledger.open();
        assert_eq!((open.len(), open[0].life), (1, Some(LINGERS)), "found: {found}");
    }
}

/// What somebody else set up in our name is taken away and waited out like our own.
#[test]
fn what_was_found_to_stand_bars_the_on_until_it_is_gone_and_forgotten() {
    let mut player = fenced();
    let found = || Event::StandsFound { release: release("oos"), lingers: LINGERS };
    player.apply(found());
    player.apply(found());
    assert_eq!((standing(&player).len(), stage(&player)), (1, ReleaseStage::Pending));
    assert!(player.record().ledger.bars_on() && !player.record().ledger.bars_proof());
    player.apply(Event::Withdrawn { effects: standing(&player) });
    let open = player.record().ledger.open();
    assert_eq!((open.len(), open[0].life), (1, Some(LINGERS)));
    assert!(player.record().ledger.bars_on());
    let of_none = Event::StandsFound { release: release("another"), lingers: LINGERS };
    assert!(matches!(player.try_apply(of_none), Err(Refused::NoSuch { what: "release", .. })));
}

#[test]
fn a_release_is_complete_only_without_it() {
    let mut player = fenced();
    let attempt = player.attempt("oos");
    progress(&mut player, ReleaseStage::Accepted, Some(attempt)).unwrap();
    assert!(progress(&mut player, ReleaseStage::Complete, None).is_err());
    let found = vec![Event::Withdrawn { effects: standing(&player) }];
    let detail = String::new();
    let complete = Event::ReleaseProgress {
        release: release("oos"),
        stage: ReleaseStage::Complete,
        detail,
        known: None,
    };
    player.apply(Event::After { found, event: Box::new(complete) });
    assert_eq!(player.record().phase, Phase::Released);
    let open = player.record().ledger.open();
    assert_eq!((open.len(), open[0].life), (1, Some(LINGERS)), "it may be acted on a moment longer");
}

#[test]
fn what_is_gone_is_set_up_anew_by_another_attempt() {
    let mut player = fenced();
    let attempt = player.attempt("oos");
    progress(&mut player, ReleaseStage::Accepted, Some(attempt)).unwrap();
    player.apply(Event::Withdrawn { effects: standing(&player) });
    assert_eq!((stage(&player), standing(&player).len()), (ReleaseStage::Pending, 0));
    player.attempt("oos");
    assert_eq!(standing(&player).len(), 1);
    assert_eq!(player.open_effects().len(), 3, "what was taken away is waited out besides");
}

#[test]
fn while_an_attempt_is_open_it_is_not_gone() {
    let mut player = fenced();
    let attempt = player.attempt("oos");
    let effects = standing(&player);
    player.apply(Event::Withdrawn { effects: effects.clone() });
    assert_eq!(standing(&player), effects);
    player.apply(Event::Closed { effects: vec![attempt], why: "its longest life has passed" });
    player.apply(Event::Withdrawn { effects });
    assert!(standing(&player).is_empty());
}

/// Found by `some_way_leads_back`: an attempt that nothing bounds was never over, what stood never gone, and the release not
/// to be given up.
#[test]
fn a_word_ends_the_attempt_that_nothing_bounds_and_what_stands_goes_first() {
    let mut request = request(1, &[&[host("bmc")]], &["oos"]);
    request.releases[0].max_in_flight = None;
    let mut player = Player::new();
    player.apply(Event::Fence(Box::new(request)));
    player.confirm();
    player.apply(Event::StandsFound { release: release("oos"), lingers: LINGERS });
    assert!(matches!(abandon(&mut player, false), Err(Refused::Phase { phase: "standing", .. })));
    player.attempt("oos");
    let effects = standing(&player);
    player.apply(Event::Withdrawn { effects: effects.clone() });
    assert_eq!(standing(&player), effects, "it may be set up again");
    abandon(&mut player, false).unwrap();
    assert_eq!((stage(&player), player.open_effects().len()), (ReleaseStage::Requested, 1));
    assert_eq!(player.record().phase, Phase::Fenced);
    assert!(matches!(abandon(&mut player, false), Err(Refused::Phase { phase: "standing", .. })));
    player.apply(Event::Withdrawn { effects });
    abandon(&mut player, false).unwrap();
    assert_eq!((stage(&player), player.record().phase.clone()), (ReleaseStage::Abandoned, Phase::Released));
}

#[test]
fn it_is_given_up_only_once_it_is_gone() {
    let mut player = fenced();
    let attempt = player.attempt("oos");
    assert!(matches!(abandon(&mut player, false), Err(Refused::Phase { phase: "standing", .. })));
    progress(&mut player, ReleaseStage::Accepted, Some(attempt)).unwrap();
    player.apply(Event::Withdrawn { effects: standing(&player) });
    abandon(&mut player, false).unwrap();
    assert_eq!(player.record().phase, Phase::Released);
}

/// The settings may come back, and with them whoever can take it away.
#[test]
fn what_an_orphan_s_release_set_up_stands_until_the_node_is_retired() {
    let mut player = fenced();
    player.attempt("oos");
    let effects = standing(&player);
    abandon(&mut player, true).unwrap();
    assert_eq!((stage(&player), standing(&player)), (ReleaseStage::Abandoned, effects));
    assert!(player.record().ledger.bars_on());
    player.apply(Event::Retire { person: person(), settings: None, left: Vec::new() });
    assert!(standing(&player).is_empty());
}

#[test]
fn it_outlives_a_breach() {
    let mut player = fenced();
    player.attempt("oos");
    let effects = standing(&player);
    player.breach(2, "bmc").unwrap();
    assert_eq!(standing(&player), effects);
    let kinds = player.record().ledger.open().iter().map(|open| open.kind.clone());
    assert!(kinds.into_iter().any(|kind| kind == EffectKind::Standing(release("oos"))));
}

#[test]
fn while_it_stands_nothing_acts_in_its_place() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["oos", "volumes"]);
    player.confirm();
    let attempt = player.attempt("oos");
    progress(&mut player, ReleaseStage::Accepted, Some(attempt)).unwrap();
    let passed_on = || Event::PassedOn {
        release: release("oos"),
        to: release("volumes"),
        why: "its time is over".to_owned(),
    };
    assert!(matches!(player.try_apply(passed_on()), Err(Refused::Phase { phase: "standing", .. })));
    player.apply(Event::Withdrawn { effects: standing(&player) });
    player.apply(passed_on());
}
