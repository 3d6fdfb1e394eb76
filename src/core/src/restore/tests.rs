//! S21: what a backup's records become, and what its devices' first words mean.

use std::time::Duration;

use super::*;
use crate::device::DeviceSpec;
use crate::support::{Player, fence_id, host, node, release, request, supply, topology};

fn restore() -> Restore {
    let [at, taken_at] = [2_000_000_000_000, 1_900_000_000_000].map(WallTime::from_millis);
    Restore { at, taken_at, from: Incarnation::mint(WallTime::default(), [7; 10]) }
}

#[test]
fn a_node_that_was_not_fenced_stays_so_and_is_marked() {
    let mut record = NodeRecord::new(node());
    record.generation = Generation(6);
    let (after, ended) = reborn(record, restore(), fence_id(9));
    assert_eq!(
        (after.phase.clone(), after.generation, ended),
        (Phase::Normal, Generation(2_000_000_000_000), None)
    );
    assert!(after.fence.is_none() && after.is_undecided() && !after.is_groundless());
    let mark = after.restored.expect("it is there");
    assert_eq!((mark.phase.as_str(), mark.from, mark.counted), ("normal", restore().from, false));
}

#[test]
fn what_was_proven_wants_a_person_and_keeps_what_was_done_to_it() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach", "storage"]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.off_intent(&["bmc"]);
    player.confirm();
    player.attempt("detach");
    let before = player.record().clone();
    let (after, ended) = reborn(before.clone(), restore(), fence_id(9));
    let (old, kept) = (before.fence.expect("it is there"), after.fence.clone().expect("it is there"));
    assert_eq!(after.phase, Phase::NeedsOperator(Reason::Restored));
    assert!(after.is_groundless() && after.is_undecided());
    assert_eq!(after.ledger, before.ledger);
    assert_eq!(after.held_through_limits(), before.holds.into_keys().collect::<Vec<_>>());
    assert!(after.held_alone().is_empty(), "nobody was told that it stands");
    assert_eq!((kept.id, kept.generation), (fence_id(9), after.generation));
    assert_eq!((&kept.holds, &kept.switched_off), (&old.holds, &old.switched_off));
    assert!(kept.evidence.is_none() && kept.attestation.is_none() && kept.off_sent);
    let releases: Vec<_> = kept.releases.iter().map(|one| (&one.id, one.stage, one.unfinished)).collect();
    let (detach, storage) = (release("detach"), release("storage"));
    assert_eq!(releases, [(&detach, ReleaseStage::Pending, true), (&storage, ReleaseStage::Pending, false)]);
    // In the history the old fence has ended, as it stood.
    let ended = ended.expect("it is there");
    assert_eq!((ended.id, ended.ended_at, &ended.evidence), (old.id, Some(restore().at), &old.evidence));
    assert_eq!(
        ended.moments.last().expect("it is there").what,
        "ended: the store was restored from the backup of 2030-03-17T17:46:40.000Z"
    );
}

#[test]
fn what_is_retired_stays_retired() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.off_intent(&["bmc"]);
    player.confirm();
    let event =
        crate::event::Event::Retire { person: crate::support::person(), settings: None, left: Vec::new() };
    player.apply(event);
    let (after, ended) = reborn(player.record().clone(), restore(), fence_id(9));
    assert_eq!((after.phase.clone(), ended), (Phase::Retired, None));
    assert!(after.retired.is_some() && !after.is_undecided());
    // Another machine may have had its name since the backup: what that reads decides.
    player.restores(restore(), 10);
    player.apply(crate::event::Event::Resettled { settings: Some("bmc: elsewhere".to_owned()) });
    assert!(player.record().is_undecided());
}

#[test]
fn a_restore_of_a_restore_keeps_what_the_first_one_kept() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.off_intent(&["bmc"]);
    player.confirm();
    player.attempt("detach");
    let (once, _) = reborn(player.record().clone(), restore(), fence_id(8));
    let again = Restore { at: WallTime::from_millis(2_000_000_001_000), ..restore() };
    let (twice, ended) = reborn(once.clone(), again, fence_id(9));
    assert_eq!(ended.expect("it is there").id, fence_id(8));
    assert!(twice.generation > once.generation);
    let (one, two) = (once.fence.expect("it is there"), twice.fence.expect("it is there"));
    assert_eq!((one.releases, one.switched_off, one.holds), (two.releases, two.switched_off, two.holds));
}

/// The same backup is restored once more, after a life in which nodes were fenced: no number of that one is met again.
#[test]
fn a_second_restore_of_one_backup_raises_beyond_what_the_first_one_s_life_gave_out() {
    let record = Player::fencing(&[&[host("bmc")]], &["detach"]).record().clone();
    let (first, _) = reborn(record.clone(), restore(), fence_id(8));
    let an_hour_later = Restore { at: restore().at.after(Duration::from_secs(3_600)), ..restore() };
    let (second, _) = reborn(record, an_hour_later, fence_id(9));
    assert!(second.generation.0 > first.generation.0 + 3_600);
    assert!(raised_term(Term(3), an_hour_later.at).0 > raised_term(Term(3), restore().at).0 + 3_600);
}

#[test]
fn terms_and_generations_are_raised_beyond_any_of_the_old_life() {
    let at = restore().at;
    assert_eq!(raised_term(Term(3), at), Term(at.millis()));
    assert_eq!(
        raised_generation(Generation(at.millis() + 7), at).0,
        at.millis() + 7 + RAISE,
        "its clock is behind"
    );
    assert_eq!(raised_generation(Generation(u64::MAX - 1), at), Generation(u64::MAX));
    assert_eq!(request(1, &[&[host("bmc")]], &[]).releases, []);
}

#[test]
fn a_host_device_is_believed_before_a_supply_and_an_on_before_an_off() {
    use Power::{Off, On, Unknown};
    let player = Player::new();
    let levels = topology(&[&[host("bmc"), host("agent")], &[supply("a"), supply("b")]]);
    let outlets = topology(&[&[supply("a"), supply("b")]]);
    let check = |topology: &Topology, said: &[(&str, Option<Power>)], wanted: Option<Power>| {
        let looks: Vec<Look> = said.iter().map(|(name, power)| player.look(name, *power)).collect();
        assert_eq!(seen(topology, &looks), wanted, "{said:?}");
    };
    check(&levels, &[], None);
    check(&levels, &[("bmc", None), ("agent", Some(Unknown))], None);
    check(&levels, &[("bmc", Some(Off)), ("agent", None)], Some(Off));
    check(&levels, &[("bmc", Some(Off)), ("agent", Some(On))], Some(On));
    check(&levels, &[("bmc", None), ("a", Some(Off)), ("b", Some(Off))], Some(Off));
    check(&levels, &[("bmc", None), ("a", Some(Off)), ("b", Some(On))], None);
    check(&levels, &[("bmc", None), ("a", Some(On)), ("b", Some(On))], None);
    check(&outlets, &[("a", Some(On)), ("b", None)], Some(On));
    check(&outlets, &[("a", Some(Off)), ("b", None)], None);
    check(&outlets, &[("a", Some(Off)), ("b", Some(Off))], Some(Off));
}

/// Where nobody holds its parent, a parent's On says nothing of a node whose own device says Off.
#[test]
fn a_parent_that_is_on_is_believed_only_of_a_node_without_host_devices() {
    use Power::{Off, On};
    let parent = |name: &str| DeviceSpec { class: DeviceClass::Parent, ..host(name) };
    let player = Player::new();
    let both = topology(&[&[host("server")], &[parent("hypervisor")]]);
    let alone = topology(&[&[parent("hypervisor")]]);
    let check = |topology: &Topology, said: &[(&str, Option<Power>)], wanted: Option<Power>| {
        let looks: Vec<Look> = said.iter().map(|(name, power)| player.look(name, *power)).collect();
        assert_eq!(seen(topology, &looks), wanted, "{said:?}");
    };
    check(&both, &[("server", Some(Off)), ("hypervisor", Some(On))], Some(Off));
    check(&both, &[("server", None), ("hypervisor", Some(On))], None);
    check(&both, &[("server", None), ("hypervisor", Some(Off))], Some(Off));
    check(&both, &[("server", Some(On)), ("hypervisor", Some(Off))], Some(On));
    check(&alone, &[("hypervisor", Some(On))], Some(On));
}
