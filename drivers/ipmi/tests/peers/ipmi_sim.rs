//! The driver against OpenIPMI's `ipmi_sim`: what it does when all is well.

use std::time::Duration;

use crate::bench::{Bench, LONG, password};
use crate::bmc::Bmc;
use crate::network::{Fate, Network, OF_17};
use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep};

const GUID: &str = "0123456789abcdef0123456789abcde0";

#[tokio::test]
async fn each_step_takes_the_packets_that_it_is_allowed() {
    let bmc = Bmc::start(GUID);
    for (suites, cold) in [(json!([3]), 12), (json!([17, 3]), 14)] {
        let allowed = [
            ("cold off and first Off reading", cold),
            ("first look", 2),
            ("warm off and first Off reading", 4),
            ("a further reading", 2),
            ("identity", 2),
            ("close", 2),
        ];
        // On a busy machine a chassis program may take longer than the first wait, and copies are sent: not counted.
        let mut counts = Vec::new();
        for _ in 0..20 {
            counts.push(packets_of(&bmc, &suites).await);
            if counts.last() == Some(&allowed) {
                break;
            }
        }
        assert_eq!(counts.iter().min(), Some(&allowed), "{counts:#?}");
    }
}

/// The packets of each step, both ways, in the life of one session.
async fn packets_of(bmc: &Bmc, suites: &serde_json::Value) -> [(&'static str, u64); 6] {
    let bench = Bench::new(bmc.address(), json!({ "cipher_suites": suites })).await;
    let mut before = 0;
    let mut step = |what: &'static str| {
        let packets = bench.driver.packets();
        let now = packets.sent + packets.received;
        (what, now - std::mem::replace(&mut before, now))
    };
    bmc.set_power(true);
    off_and_seen(&bench).await;
    let cold = step("cold off and first Off reading");
    bmc.set_power(true);
    assert_eq!(bench.read().await.expect("answered").power, Power::On);
    let look = step("first look");
    off_and_seen(&bench).await;
    let warm = step("warm off and first Off reading");
    assert_eq!(bench.read().await.expect("answered").power, Power::Off);
    let reading = step("a further reading");
    let identity = bench.driver.identify(&bench.call()).await.expect("answered").identity;
    assert_eq!(identity.uuid.as_deref(), Some(GUID));
    let identity = step("identity");
    bench.driver.quiesce(&bench.call()).await.expect("closed");
    [cold, look, warm, reading, identity, step("close")]
}

async fn off_and_seen(bench: &Bench) {
    bench.off().await.expect("taken");
    assert_eq!(bench.read().await.expect("answered").power, Power::Off);
}

#[tokio::test]
async fn it_says_the_guid_of_its_system() {
    let bmc = Bmc::start(GUID);
    let bench = Bench::new(bmc.address(), json!({})).await;
    let identity = bench.driver.identify(&bench.call()).await.expect("answered").identity;
    assert_eq!(identity.uuid.as_deref(), Some(GUID));
    assert_eq!(bench.driver.far_side(), Some(format!("GUID {GUID}")), "and its handshake");
    let silent = Bmc::start("00000000000000000000000000000000");
    let bench = Bench::new(silent.address(), json!({})).await;
    assert!(
        bench.driver.identify(&bench.call()).await.expect("answered").identity.is_empty(),
        "all zeros say nothing"
    );
    assert_eq!(
        bench.driver.far_side(),
        Some(format!("GUID {}", "0".repeat(32))),
        "nothing of use is a word, too"
    );
}

#[tokio::test]
async fn what_the_bmc_cannot_hold_is_said_and_no_error() {
    let bmc = Bmc::start(GUID);
    for (privilege, button) in
        [("operator", "needs the privilege administrator"), ("administrator", "not supported")]
    {
        let bench = Bench::new(bmc.address(), json!({ "privilege": privilege })).await;
        let found = bench.driver.inspect_hold(&bench.call()).await.expect("answered");
        let order = bench.orders.hold(&found).await.expect("an order");
        let report = bench.driver.engage_hold(&order, &bench.call()).await.expect("answered");
        println!("{report:?}");
        assert!(report.detail.contains("restore policy: not supported, no such command (0xC1)"));
        assert!(report.detail.contains(&format!("power button: {button}")));
        assert!(!report.engaged.iter().any(|what| what.contains("policy") || what.contains("button")));
    }
    let bench = Bench::new(bmc.address(), json!({ "hold": false })).await;
    let before = bench.driver.packets();
    assert!(bench.driver.inspect_hold(&bench.call()).await.expect("nothing is asked").is_empty());
    let order = bench.orders.hold(&Default::default()).await.expect("an order");
    let report = bench.driver.engage_hold(&order, &bench.call()).await.expect("nothing is asked");
    assert!(report.engaged.is_empty() && report.detail.contains("settings"));
    assert_eq!(bench.driver.packets(), before);
}

#[tokio::test]
async fn a_button_that_only_an_administrator_locks_is_told_before_a_hold_is_tried() {
    for (bmc, privilege, remarks) in [
        (Bmc::with_holds(GUID), "operator", 1),
        (Bmc::with_holds(GUID), "administrator", 0),
        (Bmc::start(GUID), "operator", 0),
    ] {
        let bench = Bench::new(bmc.address(), json!({ "privilege": privilege })).await;
        bench.driver.inspect_hold(&bench.call()).await.expect("answered");
        let told = bench.driver.remarks();
        assert_eq!(told.len(), remarks, "{told:?}");
        assert!(told.iter().all(|remark| remark.contains("the privilege administrator")), "{told:?}");
    }
}

#[tokio::test]
async fn a_hold_is_engaged_seen_and_put_back() {
    let bmc = Bmc::with_holds(GUID);
    let hold = |name: &str| -> i64 {
        let state = std::fs::read_to_string(bmc.file("hold")).expect("a state");
        let line = state.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {state}")).parse().expect("a number")
    };
    // Restore policy "previous", reset button locked, an operating system's watchdog that would cycle the power.
    let before =
        "policy 1\nbuttons 2\nwatchdog_set 1\nwatchdog_use 4\nwatchdog_action 3\nwatchdog_countdown 3000\n";
    std::fs::write(bmc.file("hold"), before).expect("a state");
    let bench = Bench::new(bmc.address(), json!({ "privilege": "administrator" })).await;
    let found = bench.driver.inspect_hold(&bench.call()).await.expect("answered");
    let order = bench.orders.hold(&found).await.expect("an order");
    let report = bench.driver.engage_hold(&order, &bench.call()).await.expect("answered");
    assert_eq!(
        report.engaged,
        ["watchdog timer stopped", "restore policy always-off", "power button locked"]
    );
    assert_eq!(report.detail, "");
    assert_eq!(["policy", "buttons", "watchdog_action", "watchdog_running"].map(hold), [0, 3, 0, 0]);
    let order = bench.orders.unhold(&found).await.expect("an order");
    let report = bench.driver.disengage_hold(&order, &bench.call()).await.expect("answered");
    assert_eq!((report.engaged.len(), report.detail.as_str()), (0, ""));
    let names =
        ["policy", "buttons", "watchdog_use", "watchdog_action", "watchdog_countdown", "watchdog_running"];
    assert_eq!(names.map(hold), [1, 2, 4, 3, 3000, 0], "as found, and not running");
}

#[tokio::test]
async fn nothing_but_the_allowed_suites_is_spoken() {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    let proposed = network.proposed();
    let bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
    let error = bench.off().await.expect_err("ipmi_sim has no suite 17");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unsupported, Effect::DidNotHappen));
    assert!(error.detail.contains("17"), "{error}");
    assert_eq!(proposed.now(), [OF_17], "and nothing weaker was tried");
    assert!(bmc.is_on());
}

#[tokio::test]
async fn wrong_credentials_are_not_tried_again_at_once() {
    let bmc = Bmc::start(GUID);
    let wrong = password("another");
    for more in [json!({ "username": "nobody" }), json!({ "password_file": wrong.path() })] {
        let bench = Bench::new(bmc.address(), more).await;
        let error = bench.off().await.expect_err("refused");
        assert_eq!((error.kind, error.effect), (ErrorKind::Authentication, Effect::DidNotHappen));
        let mut sent = bench.driver.packets().sent;
        // A busy machine may need longer than the pause for ten: the next pause is twice as long.
        for pause in [1, 2, 4, 8, 16].map(Duration::from_secs) {
            let began = Instant::now();
            for _ in 0..10 {
                assert_eq!(bench.read().await.expect_err("refused").kind, ErrorKind::Authentication);
            }
            let now = bench.driver.packets().sent;
            if now == sent {
                break;
            }
            assert!(began.elapsed() > pause / 2, "the BMC was left alone");
            sent = now;
        }
        let until = Instant::now() + LONG;
        while bench.driver.packets().sent == sent {
            assert!(Instant::now() < until, "a while later it is tried again");
            sleep(Duration::from_millis(50)).await;
            bench.read().await.expect_err("refused");
        }
    }
    assert!(bmc.is_on());
}

#[tokio::test]
async fn a_bmc_key_is_proven_too() {
    let bmc = Bmc::with_key(GUID, "k_g-of-the-bmc");
    let (right, wrong) = (password("k_g-of-the-bmc\n"), password("another"));
    let login = |key: &NamedTempFile| json!({ "kg_file": key.path() });
    let bench = Bench::new(bmc.address(), login(&right)).await;
    assert_eq!(bench.read().await.expect("answered").power, Power::On);
    let bench = Bench::new(bmc.address(), login(&wrong)).await;
    let error = bench.off().await.expect_err("the key is wrong");
    assert_eq!((error.kind, error.effect), (ErrorKind::Authentication, Effect::DidNotHappen));
    assert!(error.detail.contains("BMC key") && bmc.is_on(), "{error}");
}

#[tokio::test]
async fn a_refused_login_says_why() {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    for (status, kind, words) in [
        (0x01, ErrorKind::Throttled, "slots"),
        (0x0A, ErrorKind::Forbidden, "unauthorized role or privilege level"),
        (0x0D, ErrorKind::Authentication, "unauthorized name"),
        (0x11, ErrorKind::Unsupported, "no cipher suite match"),
        (0x12, ErrorKind::Protocol, "illegal or unrecognized parameter"),
    ] {
        for packet in [0x10, 0x12, 0x14] {
            network.rule(move |_, seen| if seen[5] == packet { Fate::Refuse(status) } else { Fate::Pass });
            let mut bench = Bench::new(network.address(), json!({})).await;
            bench.life = Duration::from_millis(700);
            let error = bench.fails_in_time(Bench::off).await;
            assert_eq!(
                (error.kind, error.effect),
                (kind, Effect::DidNotHappen),
                "{packet:#x} {status:#x}: {error}"
            );
            assert!(error.detail.contains(words), "{packet:#x} {status:#x}: {error}");
        }
    }
    // "No such session" is cured by a new handshake.
    let mut refused = false;
    network.rule(move |_, seen| {
        let refuse = seen[5] == 0x12 && !std::mem::replace(&mut refused, true);
        if refuse { Fate::Refuse(0x02) } else { Fate::Pass }
    });
    Bench::new(network.address(), json!({})).await.read().await.expect("the second time");
    assert!(bmc.is_on());
}

#[tokio::test]
async fn full_slots_are_said_and_waited_for() {
    let bmc = Bmc::start(GUID);
    let (mut benches, mut tries) = (Vec::new(), 0);
    let refused = loop {
        let mut bench = Bench::new(bmc.address(), json!({})).await;
        bench.life = Duration::from_secs(2);
        match bench.read().await {
            Ok(_) => benches.push(bench),
            // A busy machine has not answered.
            Err(late) if late.kind == ErrorKind::TimedOut => {}
            Err(error) => break error,
        }
        tries += 1;
        assert!(tries < 100, "its slots never end");
    };
    assert_eq!((refused.kind, refused.effect), (ErrorKind::Throttled, Effect::DidNotHappen));
    println!("{} sessions, then {refused}", benches.len());
    let late = Bench::new(bmc.address(), json!({})).await;
    let (reading, ()) = tokio::join!(late.read(), async {
        sleep(Duration::from_millis(300)).await;
        // Dropped, a driver closes its session.
        drop(benches.pop());
    });
    assert_eq!(reading.expect("a slot became free").power, Power::On);
}

#[tokio::test]
async fn nobody_there_is_unreachable_or_timed_out_at_the_deadline() {
    let mut bmc = Bmc::at_localhost(GUID);
    bmc.kill();
    let name = json!({ "host": "no-such-host.invalid" });
    'one: for (more, kind) in [(json!({}), ErrorKind::Unreachable), (name, ErrorKind::Unreachable)] {
        let mut said = Vec::new();
        let mut bench = Bench::new(bmc.address(), more).await;
        // On a busy machine a call may be over before its last refusal is heard: a longer one says the same.
        for life in [700, 7_000, 70_000].map(Duration::from_millis) {
            bench.life = life;
            let began = Instant::now();
            let error = bench.off().await.expect_err("nobody is there");
            assert_eq!(error.effect, Effect::DidNotHappen, "{error}");
            if error.kind == kind && began.elapsed() < life {
                continue 'one;
            }
            said.push((began.elapsed(), error));
        }
        panic!("it is not said before the deadline that nobody is there: {said:?}");
    }
    let by_name = Bench::new(bmc.address(), json!({ "host": "localhost" })).await;
    bmc.restart();
    assert_eq!(by_name.read().await.expect("localhost is resolved").power, Power::On);
}

#[tokio::test]
async fn a_session_that_ended_by_idleness_was_not_lost() {
    let bmc = Bmc::start(GUID);
    // A busy machine is slow with anything: the best of some counts.
    let mut took = Vec::new();
    while took.len() < 10 && took.last().is_none_or(|took| *took >= Duration::from_millis(1_500)) {
        let bench = Bench::new(bmc.address(), json!({ "idle_limit": "1s" })).await;
        let first = bench.read().await.expect("answered").epoch.expect("it has epochs");
        sleep(Duration::from_millis(1_100)).await;
        let began = Instant::now();
        let second = bench.read().await.expect("answered").epoch.expect("it has epochs");
        took.push(began.elapsed());
        assert!(second.id > first.id);
        assert!(!second.begins_after_loss());
    }
    let is_quick = took.iter().any(|took| *took < Duration::from_millis(1_500));
    assert!(is_quick, "the dead session was not waited for: {took:?}");
}

#[tokio::test]
async fn a_frozen_bmc_that_answers_again_did_not_restart() {
    let bmc = Bmc::start(GUID);
    let mut bench = Bench::new(bmc.address(), json!({})).await;
    let before = bench.read().await.expect("answered").epoch;
    bmc.freeze(true);
    bench.life = Duration::from_secs(1);
    for _ in 0..3 {
        bench.read().await.expect_err("it is frozen");
    }
    bmc.freeze(false);
    bench.life = LONG;
    assert_eq!(bench.read().await.expect("answered").epoch, before);
}

#[tokio::test]
async fn a_late_off_is_executed_in_its_open_session_and_not_after_the_session_was_ended() {
    let bmc = Bmc::start(GUID);
    for quiesced in [false, true] {
        bmc.set_power(true);
        let network = Network::before(bmc.address()).await;
        let mut bench = Bench::new(network.address(), json!({})).await;
        bench.read().await.expect("answered");
        let commands = bmc.commands().len();
        // As if the gateway had been stopped between the permit and the send.
        network.rule(|to_bmc, _| if to_bmc { Fate::Later(Duration::from_secs(4)) } else { Fate::Pass });
        bench.life = Duration::from_millis(200);
        let error = bench.off().await.expect_err("nothing has arrived");
        assert_eq!(error.effect, Effect::Unknown);
        network.heal();
        bench.life = LONG;
        if quiesced {
            bench.driver.quiesce(&bench.call()).await.expect("the close is answered");
        }
        bench.read().await.expect("answered");
        bench.on().await.expect("taken");
        // Copies of one command follow each other.
        let heard = || {
            let mut heard = bmc.commands().split_off(commands);
            heard.dedup();
            heard
        };
        assert_eq!(heard(), ["power 1"]);
        sleep(Duration::from_secs(5)).await;
        if quiesced {
            assert_eq!(heard(), ["power 1"], "the late off found no session");
            assert!(bmc.is_on());
        } else {
            // What quiesce is for.
            assert_eq!(heard(), ["power 1", "power 0"]);
        }
    }
}

/// What bounds a command whose sender stopped and never came back (S8): the BMC itself, here after 30 s.
#[tokio::test]
async fn a_late_off_finds_that_its_session_has_ended_by_idleness() {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    let mut bench = Bench::new(network.address(), json!({})).await;
    bench.read().await.expect("answered");
    network.rule(|to_bmc, _| if to_bmc { Fate::Later(Duration::from_secs(45)) } else { Fate::Pass });
    bench.life = Duration::from_millis(100);
    bench.off().await.expect_err("nothing has arrived");
    sleep(Duration::from_secs(46)).await;
    assert!(bmc.is_on());
    assert_eq!(bmc.commands(), [""; 0]);
}
