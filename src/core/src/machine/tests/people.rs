//! S12 and S16: a person's word, and the exits for people.

use crate::device::{DeviceSpec, Grade, Identity, MaxInFlight};
use crate::event::{Event, FenceRequest};
use crate::ground::AttestedOff;
use crate::ids::{Generation, Term};
use crate::machine::Refused;
use crate::outcome::{Outcome, Reason};
use crate::power::Power::{Off, On, Unknown};
use crate::record::{Bringing, Phase, ReleaseStage};
use crate::support::{Player, device, host, person, release, request, supply};

fn waiting(releases: &[&str]) -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], releases);
    player.give_up(Reason::LevelsSpent);
    player
}

fn stand_down(player: &mut Player) -> Result<(), Refused> {
    player.try_apply(Event::StandDown(person())).map(drop)
}

#[test]
fn a_person_vouches_and_it_is_stored_for_its_generation() {
    let mut player = waiting(&["detach"]);
    player.attest(&[player.look("bmc", Some(Unknown))]).unwrap();
    assert_eq!(player.phase(), "fenced");
    let evidence = player.open_fence().evidence.as_ref().unwrap();
    assert_eq!((evidence.grade, evidence.level), (Grade::Attested, 0));
    assert_eq!(evidence.lowered_by, ["attested by ops: looked at it"]);
    let word = AttestedOff::of(player.record(), Term(9)).unwrap();
    assert_eq!((word.attestation().by.as_str(), word.attestation().generation), ("ops", Generation(1)));
    player.breach(2, "bmc").unwrap();
    assert!(AttestedOff::of(player.record(), Term(9)).is_none(), "void: a host device said On");
}

#[test]
fn no_word_against_a_host_device_that_says_on() {
    let mut player = Player::fencing(&[&[host("bmc"), host("agent")], &[supply("pdu")]], &["detach"]);
    let (off, on) = (player.look("bmc", Some(Off)), player.look("agent", Some(On)));
    let says_on = || Err(Refused::SaysOn { device: "agent".to_owned(), said: "agent On".to_owned() });
    assert_eq!(player.attest(&[off.clone(), on.clone()]), says_on());
    assert!(
        matches!(player.attest(std::slice::from_ref(&off)), Err(Refused::ForeignProof(_))),
        "not all were asked"
    );
    let silent = player.look("agent", None);
    let also_on = [off.clone(), silent.clone(), on];
    assert_eq!(player.attest(&also_on), says_on(), "whichever look said so");
    // What an outlet says is nothing against it.
    player.attest(&[off, silent, player.look("pdu", Some(On))]).unwrap();
}

#[test]
fn no_word_while_an_on_of_ours_may_still_arrive() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.on_intent(&["bmc"]).unwrap();
    player.fence(request(2, &[&[host("bmc")]], &["detach"]));
    let look = player.look("bmc", Some(Off));
    let refused = player.attest(std::slice::from_ref(&look)).unwrap_err();
    assert_eq!(refused, Refused::OpenEffects(vec!["on of bmc".to_owned()]));
    player.close_all();
    player.attest(&[look]).unwrap();
}

#[test]
fn a_person_vouches_only_for_a_node_that_is_being_fenced() {
    let mut player = Player::new();
    assert!(matches!(player.attest(&[]), Err(Refused::Phase { .. })));
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.confirm();
    assert!(matches!(player.attest(&[]), Err(Refused::Phase { phase: "fenced", .. })));
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.give_up(Reason::UnboundedEffect);
    let look = player.look("bmc", None);
    assert!(
        matches!(player.attest(&[look]), Err(Refused::ForeignProof(_))),
        "its fence was ended by an unfence"
    );
}

#[test]
fn a_retry_begins_the_fence_from_zero() {
    let mut player = Player::fencing(&[&[host("bmc")], &[host("agent")]], &["detach"]);
    player.apply(Event::NextLevel { why: "silent".to_owned(), gives_way: false });
    player.attest(&[player.look("bmc", None), player.look("agent", None)]).unwrap();
    player.attempt("detach");
    player.give_up(Reason::ReleaseDeadline);
    player.apply(Event::Retry(person()));
    let fence = player.open_fence();
    assert_eq!((player.phase(), fence.level, fence.generation), ("fencing", 0, Generation(1)));
    assert!(fence.evidence.is_none() && fence.attestation.is_none() && fence.outcome.is_none());
    assert_eq!(
        fence.release(&release("detach")).unwrap().stage,
        ReleaseStage::Requested,
        "what was begun goes on"
    );
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    assert!(player.try_apply(Event::Retry(person())).is_err());
}

/// Whoever gives no word for the end of an effect, nor for who a machine is, tries again only what asks for none.
#[test]
fn the_gateway_tries_again_by_itself_what_wants_no_word_of_a_person() {
    let spent = [Reason::LevelsSpent, Reason::Deadline];
    let wants_a_word = [
        Reason::UnboundedEffect,
        Reason::Replaced,
        Reason::BmcRestarted,
        Reason::Contradiction,
        Reason::Restored,
    ];
    for reason in spent.into_iter().chain(wants_a_word) {
        let mut player = Player::fencing(&[&[host("bmc")]], &[]);
        player.off_intent(&["bmc"]);
        player.give_up(reason);
        let tried = player.try_apply(Event::TryAgain { why: "it is on" });
        assert_eq!(tried.is_ok(), spent.contains(&reason), "{reason:?}");
        assert_eq!(player.record().ledger.open().len(), 1, "{reason:?}");
        assert!(!player.open_fence().by_person);
    }
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.give_up(Reason::Deadline);
    assert!(
        player.try_apply(Event::TryAgain { why: "it is on" }).is_err(),
        "its fence was ended by an unfence"
    );
}

#[test]
fn a_person_s_look_at_the_machine_is_stored_for_what_was_lost_and_ends_with_the_next_loss() {
    let mut player = Player::fencing(&[&[host("bmc")], &[host("other")]], &[]);
    let off = [player.look("bmc", Some(Off)), player.look("other", None)];
    let word = |looks| Event::RetrySeenOff { person: person(), looks };
    assert!(matches!(player.try_apply(word(&off)), Err(Refused::Phase { phase: "fencing", .. })));
    player.give_up(Reason::LevelsSpent);
    let refused = player.try_apply(word(&off)).unwrap_err();
    assert!(refused.to_string().contains("no BMC restarted within this fence"), "{refused}");

    player.apply(Event::Retry(person()));
    player.apply(Event::Lost { device: device("bmc") });
    player.give_up(Reason::BmcRestarted);
    let on = [player.look("bmc", Some(Off)), player.look("other", Some(On))];
    assert!(matches!(player.try_apply(word(&on)), Err(Refused::SaysOn { .. })));
    assert!(matches!(player.try_apply(word(&off[..1])), Err(Refused::ForeignProof(_))), "not all were asked");
    player.apply(word(&off));
    assert_eq!((player.phase(), player.open_fence().seen_off.len()), ("fencing", 1));
    assert!(player.open_fence().lost.contains(&device("bmc")), "it was not seen on");
    player.apply(Event::Lost { device: device("bmc") });
    assert!(player.open_fence().seen_off.is_empty());

    player.give_up(Reason::BmcRestarted);
    player.apply(word(&off));
    assert_eq!(player.open_fence().seen_off.len(), 1);
    player.apply(Event::SeenOn { device: device("other") });
    assert!(player.open_fence().seen_off.is_empty(), "a host device says On");
}

#[test]
fn standing_down_brings_it_back_without_an_on_of_the_host() {
    let mut player = Player::fencing(&[&[host("bmc")], &[supply("pdu")]], &["detach"]);
    player.off_intent(&["bmc", "pdu"]);
    player.give_up(Reason::LevelsSpent);
    stand_down(&mut player).unwrap();
    let record = player.record();
    assert_eq!(
        (player.phase(), record.generation, record.bringing),
        ("unfencing", Generation(2), Bringing::StandDown)
    );
    assert!(record.holds.is_empty());
    assert!(matches!(player.on_intent(&["pdu"]), Err(Refused::OpenEffects(_))), "the offs are waited out");
    player.close_all();
    player.on_intent(&["pdu"]).unwrap();
    player.apply(Event::SuppliesOn { devices: vec![device("pdu")] });
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })));
    player.close_all();
    player.back().unwrap();
    assert_eq!(player.store.last_write().fences[0].outcome, Some(Outcome::StoodDown));
}

#[test]
fn standing_down_is_refused_once_a_release_began() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.attest(&[player.look("bmc", None)]).unwrap();
    player.attempt("detach");
    player.give_up(Reason::ReleaseDeadline);
    assert_eq!(stand_down(&mut player), Err(Refused::NotReleased(vec!["detach".to_owned()])));
    player.apply(Event::Abandon { release: release("detach"), person: person(), orphan: false });
    assert_eq!(player.phase(), "released", "with nothing left to wait for, the usual way back");
}

#[test]
fn a_fence_that_goes_on_by_itself_needs_no_person() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    assert!(matches!(stand_down(&mut player), Err(Refused::Phase { .. })));
    player.confirm();
    assert!(matches!(stand_down(&mut player), Err(Refused::Phase { .. })));
}

#[test]
fn every_phase_under_way_can_give_up_and_no_other() {
    let give_up = || Event::GiveUp { reason: Reason::Deadline, detail: String::new() };
    let mut player = Player::new();
    assert!(player.try_apply(give_up()).is_err());
    let mut player = waiting(&[]);
    player.apply(Event::GiveUp { reason: Reason::IdentityMismatch, detail: String::new() });
    assert_eq!(player.record().phase, Phase::NeedsOperator(Reason::IdentityMismatch), "what was found since");
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.apply(give_up());
    player.apply(Event::Retry(person()));
    player.apply(Event::OnFailed { detail: String::new() });
    assert!(player.try_apply(give_up()).is_err());
}

#[test]
fn what_nothing_bounds_ends_by_a_persons_word() {
    let mut agent = host("agent");
    agent.max_in_flight = MaxInFlight { off: None, on: None };
    let mut player = Player::fencing(&[&[agent]], &[]);
    player.off_intent(&["agent"]);
    player.give_up(Reason::LevelsSpent);
    player.apply(Event::Retry(person()));
    assert_eq!(player.record().ledger.open().len(), 1, "nobody was asked about it");
    player.give_up(Reason::UnboundedEffect);
    player.apply(Event::Retry(person()));
    assert_eq!(player.record().ledger.open(), []);
    assert!(player.open_fence().moments.iter().any(|moment| moment.what.contains("says that it has ended")));
}

fn abandon(player: &mut Player, name: &str, orphan: bool) -> Result<(), Refused> {
    player.try_apply(Event::Abandon { release: release(name), person: person(), orphan }).map(drop)
}

fn retire_an_orphan(player: &mut Player) -> Result<(), Refused> {
    player.try_apply(Event::Retire { person: person(), settings: None, left: Vec::new() }).map(drop)
}

#[test]
fn what_of_an_orphan_was_begun_before_a_breach_is_given_up_by_name_and_then_it_is_retired() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach", "taint"]);
    player.confirm();
    player.attempt("detach");
    player.breach(2, "bmc").unwrap();
    assert_eq!(retire_an_orphan(&mut player), Err(Refused::NotReleased(vec!["detach".to_owned()])));
    assert!(
        matches!(abandon(&mut player, "detach", false), Err(Refused::Phase { phase: "fencing", .. })),
        "of any other node the fence comes to its end first"
    );
    abandon(&mut player, "detach", true).unwrap();
    assert_eq!(
        (player.phase(), player.record().generation),
        ("fencing", Generation(2)),
        "that alone ends nothing"
    );
    player.off_intent(&["bmc"]);
    retire_an_orphan(&mut player).unwrap();
    let ended = &player.store.last_write().fences[0];
    assert!(ended.all_released() && ended.releases.iter().all(|one| one.stage == ReleaseStage::Abandoned));
    assert_eq!(player.phase(), "retired");
    assert!(
        player.open_effects().contains(&"release detach".to_owned()),
        "what may be under way is waited out"
    );
}

#[test]
fn an_orphan_with_its_settings_back_does_not_let_go_what_was_given_up() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach", "taint"]);
    player.attest(&[player.look("bmc", None)]).unwrap();
    player.attempt("detach");
    player.give_up(Reason::ReleaseDeadline);
    player.apply(Event::Retry(person()));
    assert_eq!(player.phase(), "fencing", "begun, and tried again");
    abandon(&mut player, "detach", true).unwrap();
    player.close_all();
    player.confirm();
    assert_eq!(player.phase(), "fenced");
    assert!(
        player
            .try_apply(Event::ReleaseIntent {
                release: release("detach"),
                life: None,
                lingers: None,
                sets_up: true
            })
            .is_err()
    );
    player.complete("taint");
    assert_eq!(player.phase(), "released");
}

#[test]
fn what_nothing_bounds_of_an_orphans_release_ends_by_name_wherever_it_stands() {
    for unfences in [false, true] {
        let mut unbounded = request(1, &[&[host("bmc")]], &["detach"]);
        unbounded.releases[0].max_in_flight = None;
        let mut player = Player::new();
        player.fence(unbounded);
        player.confirm();
        player.attempt("detach");
        player.complete("detach");
        if unfences {
            player.unfence().unwrap();
        }
        assert_eq!(
            retire_an_orphan(&mut player),
            Err(Refused::OpenEffects(vec!["release detach".to_owned()]))
        );
        abandon(&mut player, "detach", true).unwrap();
        assert_eq!(player.open_fence().releases[0].stage, ReleaseStage::Complete, "it was seen complete");
        retire_an_orphan(&mut player).unwrap();
    }
    let mut player = Player::new();
    assert!(abandon(&mut player, "detach", true).is_err());
}

/// S13: with another board the wiring that drills have seen is forgotten, also by the fence that waits for that word.
#[test]
fn a_board_that_was_exchanged_takes_the_verified_wiring_from_the_fence_that_waits_for_it() {
    let unverified = DeviceSpec { verified: false, ..supply("a") };
    let mut player = Player::new();
    player.apply(Event::Drill(Box::new(request(1, &[std::slice::from_ref(&unverified)], &[]))));
    player.off_intent(&["a"]);
    player.confirm();
    player.close_all();
    player.unfence().unwrap();
    player.apply(Event::SuppliesOn { devices: vec![device("a")] });
    let verified = [(device("a"), "pdu/7 feeds bmc".to_owned())].into();
    player.apply(Event::Drilled { verified, identities: [].into(), findings: Vec::new() });
    player.back().unwrap();

    let wired = player.record().wired.clone();
    let open = request(2, &[&[host("bmc")], &[unverified, supply("b")]], &["detach"]);
    let topology = open.topology.clone().with_verified(|id| wired.contains_key(id));
    player.fence(FenceRequest { topology, ..open });
    player.give_up(Reason::IdentityMismatch);
    let identity = Identity { uuid: None, serial: Some("another".to_owned()) };
    player.apply(Event::Accepted { device: device("bmc"), identity, person: person() });
    assert!(player.record().wired.is_empty());
    let verified = |name: &str| player.open_fence().topology.device(&device(name)).unwrap().verified;
    assert!(verified("b"), "what the settings say stands");
    assert!(!verified("a"), "its outlets may feed another machine: the retry would prove by them, unlowered");
}
