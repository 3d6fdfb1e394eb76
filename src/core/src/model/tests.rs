//! What is explored: in a few minutes here, and further where `PICKET_SOAK` is set. And that the model sees.
//!
//! Bounds, numbers of states, and how a rule that was taken away is missed, are printed: `cargo test -p picket-core --lib model::
//! -- --nocapture`.

use super::explore::{agrees, exhausts, sees};
use super::properties::{ASTRAY, HELD_BACK, HOLD, KEPT, LIT, OWED, RECEIPT, RELEASE, STANDS, UNWANTED_ON};
use super::setup::Setup;
use super::weaken::Weak;
use super::world::{ALWAYS, Budget};

const NONE: Budget = Budget {
    fences: 0,
    unfences: 0,
    receipts: 0,
    people: 0,
    crashes: 0,
    pauses: 0,
    cuts: 0,
    late: 0,
    doubled: 0,
    silences: 0,
    overdue: 0,
    cycles: 0,
    buttons: 0,
    restarts: 0,
    leads: 0,
    aborts: 0,
    deaths: 0,
};

/// A fence, an unfence, and a fence that races with it, on a node with so many host devices.
fn race(name: &'static str, hosts: usize, more: Budget) -> Setup {
    Setup::new(name, hosts, Budget { fences: 2, unfences: ALWAYS, ..more })
}

/// The leader dies; a message is late.
fn crash(hosts: usize) -> Setup {
    race("crash", hosts, Budget { crashes: 1, late: 1, ..NONE })
}

/// A message arrives twice, another is late.
fn doubled(hosts: usize) -> Setup {
    race("doubled", hosts, Budget { doubled: 1, late: 1, ..NONE })
}

/// A process stands still, for as long as it likes.
fn pause(hosts: usize, late: u8) -> Setup {
    race("pause", hosts, Budget { pauses: 1, late, ..NONE })
}

/// The leader does not reach the election any more, and goes on as long as it may.
fn cut(hosts: usize) -> Setup {
    race("cut", hosts, Budget { cuts: 1, late: 1, ..NONE })
}

/// Somebody asks for a receipt and relies on it; the leader dies.
fn receipt(hosts: usize) -> Setup {
    race("receipt", hosts, Budget { receipts: 2, crashes: 1, ..NONE })
}

/// A device knows a hold, and to put back what it found.
fn held(hosts: usize) -> Setup {
    let setup = race("held", hosts, Budget { crashes: 1, doubled: 1, ..NONE });
    Setup { holds: [true, false], ..setup }
}

/// The same, with a bound on the far side that outlives a fence and an unfence.
fn long(setup: Setup) -> Setup {
    let cycle = setup.cycle;
    Setup { life: 9, ..setup }.with_cycle(cycle)
}

/// Somebody's power cycle is under way when the fence begins; somebody presses the button of a fenced node. Leases are so long
/// that a gateway that stands still may lead on.
fn foreign(hosts: usize) -> Setup {
    let budget = Budget { fences: 1, unfences: ALWAYS, cycles: 1, buttons: 1, pauses: 1, ..NONE };
    Setup { permit: 4, lease: 5, ..Setup::new("foreign", hosts, budget).with_cycle(2) }
}

/// The same, where the device refuses the off that is sent again to a node that is off.
fn refusing() -> Setup {
    Setup { name: "refusing", refuses: true, ..foreign(1) }
}

/// The only device restarts under an off that it took, and says Off from then on; it may be silent, or late, besides.
fn restarts() -> Setup {
    race("restarts", 1, Budget { restarts: 1, silences: 1, ..NONE })
}

/// The address of the only device leads to another machine's, and perhaps home again.
fn astray(leads: u8, more: Budget) -> Setup {
    let setup = race("astray", 1, Budget { leads, ..more });
    Setup { holds: [true, false], ..setup }
}

/// The same, to the device of a machine that is off.
fn astray_to_one_that_is_off(leads: u8, more: Budget) -> Setup {
    Setup { other_is_on: false, ..astray(leads, more) }
}

/// A node that went off by itself, and that a person may vouch for; a sign of life comes before the off.
fn alive(hosts: usize) -> Setup {
    race("alive", hosts, Budget { aborts: 1, deaths: 1, people: 1, ..NONE })
}

/// Each of two devices is a level; one restarts under an off that it took, or its time passes.
fn levels() -> Setup {
    Setup::new("levels", 2, Budget { fences: 1, unfences: ALWAYS, restarts: 1, overdue: 1, ..NONE }).apart()
}

/// Deadlines pass, a device is silent, and a person decides.
fn people(hosts: usize, people: u8) -> Setup {
    race("people", hosts, Budget { people, overdue: 1, silences: 1, ..NONE })
}

/// Its release is made of two parts; a detach is late, or its answer is lost.
fn parts(more: Budget) -> Setup {
    Setup { parts: true, ..race("parts", 1, Budget { late: 1, ..more }) }
}

/// Its release sets up what lets the volume go for as long as it stands; an attempt is late, or its answer is lost.
fn standing(more: Budget) -> Setup {
    Setup { stands: true, ..race("standing", 1, Budget { late: 1, ..more }) }
}

macro_rules! explored {
    ($($name:ident: $setup:expr;)*) => {$(
        #[test]
        fn $name() {
            exhausts($setup);
        }
    )*};
}

explored! {
    all_goes_well: race("well", 2, NONE);
    a_leader_dies: crash(2);
    a_message_arrives_twice: doubled(2);
    a_process_stands_still: pause(2, 0);
    a_process_stands_still_and_a_message_is_late: pause(1, 1);
    a_leader_is_cut_off: cut(2);
    a_receipt_is_relied_on: receipt(2);
    a_device_is_held: held(2);
    a_leader_dies_and_bounds_are_long: long(crash(1));
    a_message_arrives_twice_and_bounds_are_long: long(doubled(1));
    a_leader_is_cut_off_and_bounds_are_long: long(cut(1));
    a_receipt_is_relied_on_and_bounds_are_long: long(receipt(1));
    a_device_is_held_and_bounds_are_long: long(held(1));
    somebody_else_switches_the_node: foreign(1);
    somebody_else_switches_a_node_whose_device_refuses_the_repeat: refusing();
    a_device_restarts: restarts();
    an_address_leads_to_another_machine: astray(2, NONE);
    an_address_leads_to_one_that_is_off: astray_to_one_that_is_off(2, NONE);
    an_address_leads_to_one_that_is_off_and_a_leader_dies: astray_to_one_that_is_off(1, Budget { crashes: 1, ..NONE });
    an_address_leads_to_another_machine_and_people_decide: astray(2, Budget { people: 1, ..NONE });
    people_decide: people(1, 1);
    a_sign_of_life_comes: alive(2);
    a_level_is_spent: race("level spent", 2, Budget { overdue: 1, silences: 1, ..NONE }).apart();
    a_device_restarts_and_another_is_asked: race("restart, two levels", 2, Budget { restarts: 1, late: 1, ..NONE }).apart();
    volumes_are_parts_and_a_leader_dies: parts(Budget { crashes: 1, ..NONE });
    volumes_are_parts_and_an_off_arrives_twice: parts(Budget { doubled: 1, ..NONE });
    volumes_are_parts_and_a_process_stands_still: parts(Budget { pauses: 1, ..NONE });
    volumes_are_parts_and_a_leader_is_cut_off: parts(Budget { cuts: 1, ..NONE });
    volumes_are_parts_and_people_decide: parts(Budget { people: 1, overdue: 1, ..NONE });
    volumes_are_parts_and_somebody_presses_the_button: parts(Budget { buttons: 1, ..NONE });
    volumes_are_parts_and_nobody_tells_them: parts(Budget { silences: 1, ..NONE });
    volumes_are_parts_and_bounds_are_long: long(parts(Budget { crashes: 1, ..NONE }));
    it_stands_and_a_leader_dies: standing(Budget { crashes: 1, ..NONE });
    it_stands_and_a_process_stands_still: standing(Budget { pauses: 1, ..NONE });
    it_stands_and_people_decide: standing(Budget { people: 1, overdue: 1, ..NONE });
    it_stands_and_somebody_presses_the_button: standing(Budget { buttons: 1, ..NONE });
    it_stands_and_nobody_answers: standing(Budget { silences: 1, ..NONE });
    it_stands_and_bounds_are_long: long(standing(Budget { crashes: 1, ..NONE }));
    a_reboot: Setup { reboots: true, name: "reboot", ..crash(2) };
}

/// What takes more than CI has: more goes wrong at once, on more devices.
#[test]
fn more_of_everything() {
    if std::env::var_os("PICKET_SOAK").is_none() {
        return;
    }
    exhausts(pause(2, 1));
    exhausts(people(1, 2));
    exhausts(people(2, 1));
    exhausts(foreign(2));
    let both = Budget { crashes: 1, pauses: 1, late: 1, doubled: 1, ..NONE };
    exhausts(race("both", 1, both));
    let twice = Budget { crashes: 2, late: 1, doubled: 1, ..NONE };
    exhausts(race("twice", 2, twice));
    exhausts(race("alive", 1, Budget { aborts: 1, deaths: 1, people: 2, late: 1, crashes: 1, ..NONE }));
    exhausts(race("overdue", 1, Budget { crashes: 1, late: 1, overdue: 1, people: 1, ..NONE }));
    exhausts(Setup {
        holds: [true; 2],
        ..race("held", 1, Budget { late: 1, overdue: 1, pauses: 1, ..NONE })
    });
    let button = Budget { buttons: 1, crashes: 1, receipts: 1, late: 1, ..NONE };
    exhausts(race("button", 1, button));
    exhausts(race("levels", 2, Budget { restarts: 1, overdue: 1, people: 1, ..NONE }).apart());
    exhausts(Setup { reboots: true, ..race("reboots", 1, both) });
    exhausts(parts(Budget { buttons: 1, crashes: 1, ..NONE }));
    for setup in [crash(2), doubled(2), cut(2), receipt(2), held(2), pause(1, 1), people(1, 1), foreign(1)] {
        exhausts(long(setup));
    }
    exhausts(Setup { most: 3, ..doubled(2) });
    exhausts(race("receipts", 2, Budget { receipts: 2, crashes: 1, pauses: 1, ..NONE }));
}

#[test]
fn what_has_one_number_goes_on_in_one_way() {
    for setup in [
        crash(1),
        doubled(1),
        receipt(1),
        restarts(),
        held(1),
        long(held(1)),
        foreign(1),
        cut(1),
        levels(),
        alive(1),
        parts(Budget { crashes: 1, ..NONE }),
        standing(Budget { crashes: 1, ..NONE }),
    ] {
        agrees(&setup);
    }
}

#[test]
fn s2_the_model_sees_an_off_from_another_life_of_the_device() {
    sees(restarts().without(Weak::Epochs), LIT);
}

#[test]
fn s2_the_model_sees_a_window_that_is_too_short() {
    sees(foreign(1).without(Weak::LongWindow), LIT);
}

#[test]
fn s13_the_model_sees_an_off_to_another_machine() {
    sees(astray(1, NONE).without(Weak::Whose), ASTRAY);
}

#[test]
fn s13_the_model_sees_another_machine_that_is_believed_to_be_off() {
    sees(astray_to_one_that_is_off(1, NONE).without(Weak::Whose), ASTRAY);
}

#[test]
fn s13_the_model_sees_an_order_that_goes_in_another_session() {
    sees(astray(1, NONE).without(Weak::Lives), ASTRAY);
}

#[test]
fn s13_the_model_sees_an_on_that_another_machine_reads() {
    sees(astray(1, Budget { late: 1, ..NONE }).without(Weak::Watch), OWED);
}

#[test]
fn s4_the_model_sees_a_permit_without_a_look() {
    sees(foreign(1).without(Weak::Look), RELEASE);
}

#[test]
fn s5_the_model_sees_a_ledger_that_forgets() {
    sees(held(1).without(Weak::Ledger), UNWANTED_ON);
}

#[test]
fn s5_the_model_sees_a_restore_that_is_forgotten() {
    sees(held(1).without(Weak::LedgerOfRestores), HOLD);
}

#[test]
fn s5_the_model_sees_a_hold_whose_answer_is_taken_for_its_end() {
    sees(long(held(1)).without(Weak::LedgerOfHolds), HELD_BACK);
}

#[test]
fn s6_the_model_sees_a_deposed_leader_that_acts() {
    let setup = Setup::new("pause", 1, Budget { fences: 1, unfences: ALWAYS, pauses: 1, ..NONE });
    sees(setup.without(Weak::Leadership), UNWANTED_ON);
}

#[test]
fn s7_the_model_sees_an_on_beside_a_release() {
    sees(crash(2).without(Weak::Unfence), RELEASE);
}

#[test]
fn s5_the_model_sees_an_attempt_of_a_part_that_is_forgotten() {
    sees(long(parts(NONE)).without(Weak::LedgerOfParts), RELEASE);
}

#[test]
fn s7_the_model_sees_a_part_that_is_begun_before_the_confirmation() {
    sees(parts(NONE).without(Weak::EarlyPart), RELEASE);
}

#[test]
fn s7_the_model_sees_a_release_that_is_over_before_its_parts_are() {
    sees(parts(NONE).without(Weak::OnePart), KEPT);
}

#[test]
fn s7_the_model_sees_a_last_look_that_nobody_took() {
    sees(parts(NONE).without(Weak::LastSurvey), KEPT);
}

#[test]
fn s5_the_model_sees_what_stands_and_is_forgotten() {
    sees(standing(NONE).without(Weak::Standing), STANDS);
}

#[test]
fn k3_the_model_sees_what_is_set_up_after_it_was_seen_to_be_gone() {
    sees(long(standing(Budget { silences: 3, ..NONE })).without(Weak::Settled), RELEASE);
}

#[test]
fn k3_the_model_sees_an_on_right_after_it_is_gone() {
    sees(standing(NONE).without(Weak::Lingers), STANDS);
}

#[test]
fn s8_the_model_sees_a_far_side_without_a_bound() {
    sees(crash(1).without(Weak::FarSide), UNWANTED_ON);
}

#[test]
fn s8_the_model_sees_a_receiver_that_acts_twice() {
    sees(doubled(2).without(Weak::OncePerKey), RELEASE);
}

#[test]
fn s19_the_model_sees_a_receipt_that_is_not_waited_out() {
    sees(receipt(2).without(Weak::Receipt), RECEIPT);
}
