//! The world by itself: each fault does what it says, and the truth is told apart from what devices say.

use std::time::Duration;

use picket_core::power::Power;
use picket_core::time::BootTime;
use picket_driver_sim::{
    Act, Answer, Fault, HoldSettings, Request, Response, RestorePolicy, SessionId, Trouble, Verb, World,
};

const DEV: &str = "n1-bmc";

fn at(seconds: u64) -> BootTime {
    BootTime::from_boot(Duration::from_secs(seconds))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn world() -> World {
    let mut world = World::new(1);
    world.add_machine("n1").add_host("n1", DEV);
    world
}

fn open(world: &mut World, device: &str, now: BootTime) -> SessionId {
    match world.ask(now, device, None, &Request::Open).what {
        Ok(Response::Opened(id)) => id,
        other => panic!("no session: {other:?}"),
    }
}

fn read(world: &mut World, device: &str, session: SessionId, now: BootTime) -> Result<Power, Trouble> {
    match world.ask(now, device, Some(session), &Request::Read).what {
        Ok(Response::Power(power)) => Ok(power),
        Ok(other) => panic!("not a reading: {other:?}"),
        Err(trouble) => Err(trouble),
    }
}

fn command(
    world: &mut World,
    device: &str,
    session: SessionId,
    verb: Verb,
    now: BootTime,
) -> Result<bool, Trouble> {
    match world.ask(now, device, Some(session), &Request::Command(verb)).what {
        Ok(Response::Took { already }) => Ok(already),
        Ok(other) => panic!("not an acknowledgement: {other:?}"),
        Err(trouble) => Err(trouble),
    }
}

#[test]
fn off_and_on() {
    let mut world = world();
    let s = open(&mut world, DEV, at(1));
    assert_eq!(read(&mut world, DEV, s, at(1)), Ok(Power::On));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(2)), Ok(false));
    assert_eq!(read(&mut world, DEV, s, at(2)), Ok(Power::Off));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(3)), Ok(true), "already off");
    assert_eq!(world.last_write("n1", at(3)), Some(at(2)));
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(4)), Ok(false));
    assert!(world.truth("n1", at(4)) && !world.truth("n1", at(3)));
    assert_eq!(
        world.edges("n1", at(9)).iter().map(|edge| (edge.at, edge.on)).collect::<Vec<_>>(),
        [(at(2), false), (at(4), true)]
    );
    assert_eq!((world.received(DEV, at(9)).offs, world.received(DEV, at(9)).ons), (2, 1));
}

#[test]
fn an_off_may_take_its_time_and_a_second_one_adds_nothing() {
    let mut world = world();
    world.fault(DEV, Fault::OffTakes { least: secs(20), most: secs(20) });
    let s = open(&mut world, DEV, at(1));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), Ok(false));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(10)), Ok(false));
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(11)), Err(Trouble::Busy));
    assert_eq!(read(&mut world, DEV, s, at(20)), Ok(Power::On));
    assert_eq!(read(&mut world, DEV, s, at(21)), Ok(Power::Off));
    world.mend(DEV);
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(22)), Ok(false));
    assert!(world.truth("n1", at(50)), "the second off does not come after the on");
}

#[test]
fn an_off_may_be_ignored_lied_about_or_refused() {
    for (fault, answer, says) in [
        (Fault::OffIgnored, Ok(false), Power::On),
        (Fault::OffLied, Ok(false), Power::Off),
        (Fault::OffRefused, Err(Trouble::Refused), Power::On),
        (Fault::OffForbidden, Err(Trouble::Forbidden), Power::On),
    ] {
        let mut world = world();
        world.fault(DEV, fault.clone());
        let s = open(&mut world, DEV, at(1));
        assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), answer, "{fault:?}");
        assert_eq!(read(&mut world, DEV, s, at(2)), Ok(says), "{fault:?}");
        assert!(world.truth("n1", at(3)), "{fault:?}");
        assert_eq!(world.last_write("n1", at(3)), Some(at(3)));
    }
}

#[test]
fn a_second_host_device_of_the_machine_tells_the_truth() {
    let mut world = world();
    world.add_host("n1", "n1-cmc").fault(DEV, Fault::SaysOff);
    let (a, b) = (open(&mut world, DEV, at(1)), open(&mut world, "n1-cmc", at(1)));
    assert_eq!(read(&mut world, DEV, a, at(1)), Ok(Power::Off));
    assert_eq!(read(&mut world, "n1-cmc", b, at(1)), Ok(Power::On));
}

#[test]
fn a_stuck_transition_is_neither_on_nor_off() {
    let mut world = world();
    world.fault(DEV, Fault::SaysTransition).fault(DEV, Fault::OffTakes { least: secs(5), most: secs(5) });
    let s = open(&mut world, DEV, at(1));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), Ok(false));
    assert_eq!(read(&mut world, DEV, s, at(3)), Ok(Power::Unknown));
    assert_eq!(read(&mut world, DEV, s, at(6)), Ok(Power::Off));
    world.fault(DEV, Fault::SaysNothing);
    assert_eq!(read(&mut world, DEV, s, at(7)), Ok(Power::Unknown));
}

#[test]
fn already_off_is_a_flag_an_error_or_unsaid() {
    for (fault, answer) in [
        (None, Ok(true)),
        (Some(Fault::AlreadyIsError), Err(Trouble::AlreadySo)),
        (Some(Fault::AlreadyIsRefused), Err(Trouble::Refused)),
        (Some(Fault::AlreadyIsUnsaid), Ok(false)),
    ] {
        let mut world = World::new(1);
        world.add_machine_off("n1").add_host("n1", DEV);
        if let Some(fault) = fault {
            world.fault(DEV, fault);
        }
        let s = open(&mut world, DEV, at(1));
        assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), answer);
        assert!(world.edges("n1", at(4)).is_empty());
        assert_eq!(world.last_write("n1", at(9)), None);
    }
}

#[test]
fn a_restarted_bmc_forgets_its_sessions_and_may_be_estranged() {
    let mut world = world();
    let old = open(&mut world, DEV, at(1));
    let restart = |estranged| Act::RestartBmc { device: DEV.to_owned(), down: secs(3), estranged };
    world.happen(at(2), restart(true));
    assert_eq!(read(&mut world, DEV, old, at(4)), Err(Trouble::Silence), "restarting");
    assert_eq!(read(&mut world, DEV, old, at(5)), Err(Trouble::NoSession));
    let new = open(&mut world, DEV, at(5));
    assert_eq!(read(&mut world, DEV, new, at(5)), Ok(Power::Off), "it says off for a live machine");
    assert_eq!(command(&mut world, DEV, new, Verb::Off, at(6)), Ok(true));
    assert!(world.truth("n1", at(7)));
    world.happen(at(8), restart(false));
    let newer = open(&mut world, DEV, at(12));
    assert_eq!(read(&mut world, DEV, newer, at(12)), Ok(Power::On));
}

#[test]
fn sessions_are_few_and_idle_ones_end() {
    let mut world = world();
    world.set_sessions(DEV, 2, secs(30));
    let first = open(&mut world, DEV, at(1));
    let _second = open(&mut world, DEV, at(2));
    assert_eq!(world.ask(at(3), DEV, None, &Request::Open).what, Err(Trouble::SessionsFull));
    assert_eq!(read(&mut world, DEV, first, at(20)), Ok(Power::On), "keeps it open");
    let _third = open(&mut world, DEV, at(32));
    assert_eq!(read(&mut world, DEV, first, at(50)), Err(Trouble::NoSession));
    world.happen(at(51), Act::LoseSessions { device: DEV.to_owned() });
    assert_eq!(world.sessions(DEV, at(51)), 0);
    world.fault(DEV, Fault::SessionsFull);
    assert_eq!(world.ask(at(52), DEV, None, &Request::Open).what, Err(Trouble::SessionsFull));
}

#[test]
fn a_late_off_lands_after_a_later_on_unless_its_session_was_closed() {
    for closed in [false, true] {
        let mut world = world();
        world.fault(DEV, Fault::Late { verb: Verb::Off, after: secs(10), answered: false, times: 1 });
        let s = open(&mut world, DEV, at(1));
        assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), Err(Trouble::Silence));
        assert_eq!(command(&mut world, DEV, s, Verb::Off, at(2)), Ok(false));
        let s = if closed {
            assert_eq!(world.ask(at(3), DEV, Some(s), &Request::Close).what, Ok(Response::Closed));
            open(&mut world, DEV, at(3))
        } else {
            s
        };
        assert_eq!(command(&mut world, DEV, s, Verb::On, at(4)), Ok(false));
        assert_eq!(world.truth("n1", at(20)), closed);
        let late: Vec<_> = world.heard(at(20)).iter().filter(|heard| heard.late).collect();
        assert_eq!(late.len(), 1);
        assert_eq!((late[0].at, late[0].executed), (at(11), !closed));
    }
}

#[test]
fn a_duplicate_off_lands_too_and_nothing_ends_it_without_sessions() {
    let mut world = world();
    world.set_sessionless(DEV).fault(DEV, Fault::Twice { verb: Verb::Off, after: secs(10), times: 1 });
    let off = Request::Command(Verb::Off);
    assert_eq!(world.ask(at(1), DEV, None, &off).what, Ok(Response::Took { already: false }));
    let on = Request::Command(Verb::On);
    assert_eq!(world.ask(at(2), DEV, None, &on).what, Ok(Response::Took { already: false }));
    assert!(world.truth("n1", at(10)) && !world.truth("n1", at(11)));
}

#[test]
fn an_answer_may_be_lost_and_the_effect_not() {
    let mut world = world();
    let s = open(&mut world, DEV, at(1));
    world.fault(DEV, Fault::AnswerLost { times: 1 });
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), Err(Trouble::Silence));
    assert!(!world.truth("n1", at(1)));
    world.fault(DEV, Fault::RequestLost { times: 1 });
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(2)), Err(Trouble::Silence));
    assert!(!world.truth("n1", at(9)), "it never arrived");
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(10)), Ok(false), "both have worn off");
}

#[test]
fn a_foreign_cycle_comes_on_again_whatever_is_commanded() {
    let mut world = world();
    let s = open(&mut world, DEV, at(1));
    world.happen(at(2), Act::ForeignCycle { machine: "n1".to_owned(), off_for: secs(8) });
    assert_eq!(read(&mut world, DEV, s, at(3)), Ok(Power::Off));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(4)), Ok(true));
    assert!(!world.truth("n1", at(9)) && world.truth("n1", at(10)));
}

#[test]
fn a_hold_stops_button_watchdog_and_restore_policy() {
    let press = || Act::PressButton { machine: "n1".to_owned() };
    let watchdog = || Act::Watchdog { machine: "n1".to_owned(), off_for: secs(1) };
    let mut world = world();
    let s = open(&mut world, DEV, at(1));
    assert_eq!(
        world.ask(at(1), DEV, Some(s), &Request::InspectHold).what,
        Ok(Response::Hold(HoldSettings::FREE))
    );
    let hold = Request::SetHold(HoldSettings::HELD);
    assert_eq!(world.ask(at(2), DEV, Some(s), &hold).what, Ok(Response::Hold(HoldSettings::HELD)));
    world.happen(at(3), press()).happen(at(4), watchdog());
    assert!(world.edges("n1", at(4)).is_empty());
    world.happen(at(5), Act::LoseMains { machine: "n1".to_owned() });
    assert_eq!(
        world.ask(at(7), DEV, Some(s), &Request::Read).what,
        Err(Trouble::Silence),
        "no power, no BMC"
    );
    world.happen(at(8), Act::RestoreMains { machine: "n1".to_owned() });
    assert!(!world.truth("n1", at(9)), "always-off");
    let s = open(&mut world, DEV, at(10));
    let back = Request::SetHold(HoldSettings::FREE);
    let put_back = HoldSettings { watchdog: false, ..HoldSettings::FREE };
    assert_eq!(world.ask(at(10), DEV, Some(s), &back).what, Ok(Response::Hold(put_back)), "never the start");
    assert!(world.happen(at(11), press()).truth("n1", at(11)));
}

#[test]
fn the_mains_come_back_with_the_machine_where_nothing_holds_it() {
    let mut world = world();
    world.set_restore("n1", RestorePolicy::AlwaysOn);
    let s = open(&mut world, DEV, at(1));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), Ok(false));
    world.happen(at(2), Act::LoseMains { machine: "n1".to_owned() });
    world.happen(at(10), Act::RestoreMains { machine: "n1".to_owned() });
    assert!(world.truth("n1", at(10)));
    assert_eq!(read(&mut world, DEV, s, at(11)), Err(Trouble::NoSession), "the BMC restarted with it");
}

#[test]
fn a_machine_falls_with_its_last_outlet_after_the_hold_up_time() {
    let mut world = world();
    world.add_supply("n1", "pdu-1").add_supply("n1", "pdu-2").set_hold_up("n1", secs(2));
    let (a, b) = (open(&mut world, "pdu-1", at(1)), open(&mut world, "pdu-2", at(1)));
    assert_eq!(command(&mut world, "pdu-1", a, Verb::Off, at(2)), Ok(false));
    assert!(world.truth("n1", at(10)), "one of two is not off");
    assert_eq!(command(&mut world, "pdu-2", b, Verb::Off, at(11)), Ok(false));
    assert_eq!(read(&mut world, "pdu-2", b, at(11)), Ok(Power::Off));
    assert!(world.truth("n1", at(12)) && !world.truth("n1", at(13)));
    assert_eq!(command(&mut world, "pdu-1", a, Verb::On, at(14)), Ok(false));
    assert!(world.truth("n1", at(14)), "as it was");
}

#[test]
fn power_that_comes_back_within_the_hold_up_time_is_not_missed() {
    let mut world = world();
    world.add_supply("n1", "pdu-1").set_hold_up("n1", secs(4));
    let s = open(&mut world, "pdu-1", at(1));
    for (second, verb) in [(2, Verb::Off), (4, Verb::On), (5, Verb::Off)] {
        assert_eq!(command(&mut world, "pdu-1", s, verb, at(second)), Ok(false));
    }
    assert!(world.truth("n1", at(8)), "the hold-up time began again");
    assert!(!world.truth("n1", at(9)));
}

#[test]
fn a_wrongly_wired_outlet_starves_another_machine() {
    let mut world = world();
    world.add_machine("n2").add_supply("n1", "pdu-1").add_supply("n2", "pdu-2");
    world.happen(at(1), Act::Rewire { outlet: "pdu-2".to_owned(), machine: "n1".to_owned() });
    world.happen(at(1), Act::Rewire { outlet: "pdu-1".to_owned(), machine: "n2".to_owned() });
    let s = open(&mut world, "pdu-1", at(2));
    assert_eq!(command(&mut world, "pdu-1", s, Verb::Off, at(2)), Ok(false));
    assert_eq!(read(&mut world, "pdu-1", s, at(9)), Ok(Power::Off));
    assert!(world.truth("n1", at(9)) && !world.truth("n2", at(9)));
}

#[test]
fn ons_may_be_dropped_devices_silent_slow_busy_or_closed_to_us() {
    let mut world = world();
    let s = open(&mut world, DEV, at(1));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(1)), Ok(false));
    world.fault(DEV, Fault::OnDropped { times: 1 }).fault(DEV, Fault::Busy { times: 1 });
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(2)), Err(Trouble::Busy));
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(2)), Ok(false));
    assert!(!world.truth("n1", at(3)));
    assert_eq!(command(&mut world, DEV, s, Verb::On, at(3)), Ok(false));
    assert!(world.truth("n1", at(3)));
    world.fault(DEV, Fault::Slow(secs(2)));
    let slow = world.ask(at(4), DEV, Some(s), &Request::Read);
    assert_eq!(slow, Answer { late_by: secs(2), what: Ok(Response::Power(Power::On)) });
    world.mend(DEV).fault(DEV, Fault::WrongPassword);
    assert_eq!(world.ask(at(5), DEV, None, &Request::Open).what, Err(Trouble::Password));
    world.mend(DEV).fault(DEV, Fault::Silent);
    assert_eq!(read(&mut world, DEV, s, at(6)), Err(Trouble::Silence));
    world.mend(DEV).fault(DEV, Fault::HoldUnsupported);
    assert_eq!(world.ask(at(7), DEV, Some(s), &Request::InspectHold).what, Err(Trouble::Unsupported));
    let other = picket_core::device::Identity { uuid: None, serial: Some("another".to_owned()) };
    world.mend(DEV).fault(DEV, Fault::SaysIdentity(other.clone())).fault(DEV, Fault::HoldIgnored);
    assert_eq!(world.ask(at(8), DEV, Some(s), &Request::Identify).what, Ok(Response::Identity(other)));
    assert!(world.ask(at(8), DEV, Some(s), &Request::SetHold(HoldSettings::HELD)).what.is_ok());
    assert_eq!(world.hold("n1"), HoldSettings::FREE);
    world.mend(DEV).fault(DEV, Fault::SaysNonsense).fault(DEV, Fault::LateEnd(secs(2)));
    let read = Answer { late_by: Duration::ZERO, what: Ok(Response::Power(Power::Unknown)) };
    assert_eq!(world.ask(at(9), DEV, Some(s), &Request::Read), read);
    let end = world.ask(at(9), DEV, Some(s), &Request::Close);
    assert_eq!(end, Answer { late_by: secs(2), what: Ok(Response::Closed) });
    assert_eq!(world.ask(at(9), DEV, Some(s), &Request::Read).what, Err(Trouble::NoSession));
}

#[test]
fn acts_are_data_and_happen_when_they_are_due() {
    let act: Act = serde_json::from_str(
        r#"{"fault": {"device": "n1-bmc", "fault": {"off_takes": {"least": "1s", "most": "1s"}}}}"#,
    )
    .expect("an act");
    let mut world = world();
    world.schedule(at(5), act).schedule(at(3), Act::Foreign { machine: "n1".to_owned(), verb: Verb::Off });
    world.schedule(at(4), Act::Foreign { machine: "n1".to_owned(), verb: Verb::On });
    assert!(!world.truth("n1", at(3)) && world.truth("n1", at(4)));
    let s = open(&mut world, DEV, at(6));
    assert_eq!(command(&mut world, DEV, s, Verb::Off, at(6)), Ok(false));
    assert!(world.truth("n1", at(6)) && !world.truth("n1", at(7)));
    assert_eq!(world.first_write_since("n1", at(7), at(90)), None);
}

#[test]
fn a_world_that_goes_on_for_days_keeps_a_bounded_history() {
    let mut world = world();
    world.set_history(10);
    world.set_sessions(DEV, 4, secs(60));
    let s = open(&mut world, DEV, at(1));
    for turn in 1..1000 {
        let verb = if turn % 2 == 1 { Verb::Off } else { Verb::On };
        assert_eq!(command(&mut world, DEV, s, verb, at(turn)), Ok(false));
        assert_eq!(world.truth("n1", at(turn)), verb == Verb::On);
    }
    assert!((10..=20).contains(&world.heard(at(1000)).len()));
    assert!((10..=20).contains(&world.edges("n1", at(1000)).len()));
    assert_eq!(world.last_write("n1", at(1000)), Some(at(999)));
}
