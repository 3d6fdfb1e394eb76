//! S4, S5, S7 where a release is made of parts: what is found, let go side by side, given up, and found again.

use std::time::Duration;

use crate::event::{Event, Survey};
use crate::machine::Refused;
use crate::order::Opened;
use crate::outcome::Reason;
use crate::record::{Fence, Part, ReleaseStage};
use crate::support::{Player, host, person, release};

fn part(volume: &str, device: &str) -> Part {
    Part { volume: volume.to_owned(), device: device.to_owned(), name: String::new() }
}

fn survey(player: &mut Player, on_ground: bool, volumes: &[&str]) -> Result<(), Refused> {
    let parts = volumes.iter().map(|volume| part(volume, "/dev/vdb")).collect();
    surveyed(player, on_ground, parts)
}

fn surveyed(player: &mut Player, on_ground: bool, parts: Vec<Part>) -> Result<(), Refused> {
    let max_in_flight = Some(Duration::from_secs(60));
    let found = Ok(Survey {
        parts,
        stays: vec![(
            Part { volume: "root".to_owned(), ..Part::default() },
            "it is the root volume".to_owned(),
        )],
        on_ground,
        max_in_flight,
    });
    player.try_apply(Event::ReleaseSurveyed { release: release("volumes"), found }).map(drop)
}

fn fencing() -> Player {
    Player::fencing(&[&[host("bmc")]], &["volumes", "webhook"])
}

fn stages(player: &Player) -> Vec<(String, ReleaseStage)> {
    player.open_fence().releases.iter().map(|one| (one.id.to_string(), one.stage)).collect()
}

fn stage(player: &Player, name: &str) -> ReleaseStage {
    player.open_fence().release(&release(name)).unwrap().stage
}

fn abandon(player: &mut Player, name: &str) {
    player.apply(Event::Abandon { release: release(name), person: person(), orphan: false });
}

/// The cloud was seen to have it free, whoever did that.
fn free(player: &mut Player, name: &str) {
    player.progress(name, ReleaseStage::Complete, None);
}

#[test]
fn what_was_attached_before_the_off_is_in_the_record_and_begins_nothing() {
    let mut player = fencing();
    survey(&mut player, false, &["v1", "v2"]).unwrap();
    let names: Vec<String> = stages(&player).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["volumes/v1", "volumes/v2", "volumes", "webhook"]);
    assert!(stages(&player).iter().all(|(_, stage)| *stage == ReleaseStage::Pending));
    let last = &player.open_fence().moments.last().unwrap().what;
    assert_eq!(
        last,
        "volumes: attached before the off, and to be let go: v1 (/dev/vdb), v2 (/dev/vdb); stays: root (it is the root volume)"
    );
    // Seen free before the off, it would be no news; nothing is let go by being looked at.
    assert_eq!(player.phase(), "fencing");
    player.confirm();
    let intent =
        |name| Event::ReleaseIntent { release: release(name), life: None, lingers: None, sets_up: true };
    assert!(matches!(
        player.try_apply(intent("volumes")),
        Err(Refused::NotReleased(_) | Refused::Phase { .. })
    ));
}

#[test]
fn parts_go_side_by_side_and_what_comes_after_them_waits_for_all() {
    let mut player = fencing();
    player.confirm();
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    let first = player.attempt("volumes/v1");
    let second = player.attempt("volumes/v2");
    assert_eq!(player.open_effects(), ["release volumes/v1", "release volumes/v2"]);
    let intent =
        Event::ReleaseIntent { release: release("webhook"), life: None, lingers: None, sets_up: true };
    let refused = player.try_apply(intent).expect_err("the volumes come first");
    assert!(matches!(&refused, Refused::NotReleased(names) if names.len() == 3), "{refused}");
    player.progress("volumes/v1", ReleaseStage::Complete, Some(first));
    player.progress("volumes/v2", ReleaseStage::Complete, Some(second));
    assert_eq!(stage(&player, "volumes"), ReleaseStage::Pending, "it is asked once more what is attached");
    survey(&mut player, true, &[]).unwrap();
    assert_eq!(stage(&player, "volumes"), ReleaseStage::Complete);
    player.complete("webhook");
    assert_eq!(player.phase(), "released");
}

#[test]
fn nothing_found_completes_only_what_was_asked_after_the_confirmation_with_all_parts_over() {
    let mut player = fencing();
    survey(&mut player, false, &[]).unwrap();
    assert_eq!(stage(&player, "volumes"), ReleaseStage::Pending, "before the off it says nothing of after");
    player.confirm();
    survey(&mut player, false, &[]).unwrap();
    assert_eq!(stage(&player, "volumes"), ReleaseStage::Pending, "an answer that came late neither");
    survey(&mut player, true, &["v1"]).unwrap();
    survey(&mut player, true, &[]).unwrap();
    assert_eq!(
        stage(&player, "volumes"),
        ReleaseStage::Pending,
        "that a list lacks it is no word that it is free"
    );
    free(&mut player, "volumes/v1");
    survey(&mut player, true, &[]).unwrap();
    assert_eq!(stage(&player, "volumes"), ReleaseStage::Complete);
    assert!(survey(&mut player, true, &["v1"]).is_err(), "it is over");
}

#[test]
fn what_is_found_attached_again_is_let_go_again() {
    let mut player = fencing();
    player.confirm();
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    player.complete("volumes/v1");
    free(&mut player, "volumes/v2");
    survey(&mut player, true, &["v1", "v3"]).unwrap();
    assert_eq!(stage(&player, "volumes/v1"), ReleaseStage::Pending);
    assert_eq!(stage(&player, "volumes/v2"), ReleaseStage::Complete);
    assert_eq!(stage(&player, "volumes/v3"), ReleaseStage::Pending);
    player.complete("volumes/v3");
    // Somewhere else on the machine, what was accepted was another detach.
    let effect = player.attempt("volumes/v1");
    player.progress("volumes/v1", ReleaseStage::Accepted, None);
    surveyed(&mut player, true, vec![part("v1", "/dev/vdz")]).unwrap();
    let known = player.open_fence().release(&release("volumes/v1")).unwrap();
    assert_eq!(
        (known.stage, known.part.as_ref().unwrap().device.as_str()),
        (ReleaseStage::Pending, "/dev/vdz")
    );
    assert!(player.record().ledger.get(effect).is_some(), "and may still land");
}

#[test]
fn the_longer_life_of_an_attempt_stands_in_the_ledger() {
    let mut player = fencing();
    player.confirm();
    survey(&mut player, true, &["v1"]).unwrap();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (now, wanted) in [
        (None, seconds(60)),
        (Some(seconds(30)), seconds(60)),
        (Some(seconds(90)), seconds(90)),
        (Some(None), None),
    ] {
        let opened = player.apply(Event::ReleaseIntent {
            release: release("volumes/v1"),
            life: now,
            lingers: None,
            sets_up: true,
        });
        let Some(Opened::Release(order)) = opened.first() else { unreachable!("an intent opens an attempt") };
        assert_eq!(order.life(), wanted);
        assert_eq!(player.record().ledger.get(order.effect()).unwrap().life, wanted);
    }
}

#[test]
fn one_part_is_given_up_by_its_name_and_is_not_begun_again() {
    let mut player = fencing();
    player.confirm();
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    abandon(&mut player, "volumes/v1");
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    assert_eq!(stage(&player, "volumes/v1"), ReleaseStage::Abandoned);
    player.complete("volumes/v2");
    survey(&mut player, true, &["v1"]).unwrap();
    assert_eq!(stage(&player, "volumes"), ReleaseStage::Complete);
    player.breach(2, "bmc").unwrap();
    assert_eq!(stage(&player, "volumes/v1"), ReleaseStage::Abandoned);
    assert_eq!(stage(&player, "volumes/v2"), ReleaseStage::Pending);
    assert_eq!(stage(&player, "volumes"), ReleaseStage::Pending);
}

#[test]
fn who_gives_up_the_release_gives_up_its_open_parts_and_what_nothing_bounds_of_them() {
    let mut player = fencing();
    player.confirm();
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    player.complete("volumes/v1");
    player.apply(Event::ReleaseIntent {
        release: release("volumes/v2"),
        life: Some(None),
        lingers: None,
        sets_up: true,
    });
    abandon(&mut player, "volumes");
    assert_eq!(stage(&player, "volumes/v1"), ReleaseStage::Complete);
    assert_eq!(stage(&player, "volumes/v2"), ReleaseStage::Abandoned);
    assert!(player.open_effects().is_empty(), "a person's word ends it: {:?}", player.open_effects());
    player.breach(2, "bmc").unwrap();
    let open: Vec<String> =
        stages(&player).into_iter().filter(|(_, stage)| !stage.is_over()).map(|one| one.0).collect();
    assert_eq!(open, ["webhook"]);
}

#[test]
fn the_last_stuck_part_given_up_goes_on_by_itself() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["volumes"]);
    player.confirm();
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    player.give_up(Reason::ReleaseDeadline);
    abandon(&mut player, "volumes/v1");
    assert_eq!(player.phase(), "needs_operator", "another one is stuck");
    abandon(&mut player, "volumes/v2");
    assert_eq!(player.phase(), "fenced", "what is attached is to be asked for once more");
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    assert_eq!(player.phase(), "released");
}

#[test]
fn an_attempt_of_a_part_that_was_not_seen_to_end_is_remembered_over_a_breach() {
    let mut player = fencing();
    player.confirm();
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    player.attempt("volumes/v1");
    player.breach(2, "bmc").unwrap();
    let unfinished: Vec<bool> = player.open_fence().releases.iter().map(|one| one.unfinished).collect();
    assert_eq!(unfinished, [true, false, false, false]);
    assert_eq!(player.open_effects(), ["release volumes/v1"]);
    player.give_up(Reason::LevelsSpent);
    let down = player.try_apply(Event::StandDown(person())).expect_err("volumes may have been let go");
    assert!(matches!(&down, Refused::NotReleased(names) if names == &["volumes/v1"]), "{down}");
}

#[test]
fn there_are_only_so_many_parts() {
    let mut player = fencing();
    player.confirm();
    let many: Vec<Part> = (0..Fence::PARTS).map(|number| part(&format!("v{number}"), "")).collect();
    surveyed(&mut player, true, many).unwrap();
    let before = player.stored.clone();
    let refused = surveyed(&mut player, true, vec![part("one-more", "")]).expect_err("too many");
    assert!(matches!(refused, Refused::TooManyParts(_, 257, Fence::PARTS)), "{refused}");
    assert_eq!(player.stored, before);
}

#[test]
fn a_survey_that_failed_is_told_once() {
    let mut player = fencing();
    let before = player.open_fence().moments.len();
    for _ in 0..3 {
        player.apply(Event::ReleaseSurveyed {
            release: release("volumes"),
            found: Err("no answer".to_owned()),
        });
    }
    let told = &player.open_fence().moments[before..];
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].what, "what volumes would let go cannot be told: no answer");
    assert!(survey(&mut player, false, &["v1"]).is_ok());
    let of_a_part = Event::ReleaseSurveyed { release: release("volumes/v1"), found: Err(String::new()) };
    assert!(matches!(player.try_apply(of_a_part), Err(Refused::Phase { .. })));
}

#[test]
fn a_restored_stores_open_parts_stand_before_their_release_again() {
    let mut player = fencing();
    player.confirm();
    survey(&mut player, true, &["v1", "v2"]).unwrap();
    player.complete("volumes/v1");
    player.attempt("volumes/v2");
    let (at, from) =
        (crate::time::Clock::wall(&*player.clock), crate::store::Store::incarnation(&player.store));
    player.restores(crate::restore::Restore { at, taken_at: at, from }, 2);
    player.fence(crate::support::request(3, &[&[host("bmc")]], &["volumes", "webhook"]));
    let names: Vec<String> = stages(&player).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["volumes/v2", "volumes", "webhook"]);
    assert!(player.open_fence().release(&release("volumes/v2")).unwrap().unfinished);
}

/// The settings exclude by now what they let go before the off.
#[test]
fn what_stays_by_now_is_dropped_unless_it_was_told_to_go() {
    let mut player = fencing();
    survey(&mut player, false, &["v1", "v2"]).unwrap();
    player.confirm();
    player.apply(Event::ReleaseIntent {
        release: release("volumes").part("v2"),
        life: None,
        lingers: None,
        sets_up: true,
    });
    let stays = ["v1", "v2"].map(|volume| (part(volume, "/dev/vdb"), "excluded".to_owned())).to_vec();
    let found = Ok(Survey { stays, on_ground: true, ..Survey::default() });
    player.apply(Event::ReleaseSurveyed { release: release("volumes"), found });
    let names: Vec<String> = stages(&player).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["volumes/v2", "volumes", "webhook"]);
}
