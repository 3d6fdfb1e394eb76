//! What a BMC answers on a bad day, and what may not be concluded from it.

use std::time::Duration;

use crate::bench::{Bench, LONG};
use crate::network::{Fate, Network, OF_17};
use crate::pyghmi::Pyghmi;
use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, HoldFound, PowerDriver};
use serde_json::json;
use tokio::time::Instant;

async fn bench(bmc: &Pyghmi) -> Bench {
    Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await
}

#[tokio::test]
async fn a_bmc_that_is_busy_at_the_login_does_not_refuse_the_user() {
    for code in ["c0", "c3", "ff"] {
        let bmc = Pyghmi::start("17");
        let mut bench = bench(&bmc).await;
        bmc.set("answer_06_3b", &format!("{code} 2"));
        assert_eq!(bench.read().await.expect("the third time it is raised").power, Power::On, "{code}");
        let sessions = bmc.commands().into_iter().filter(|what| what.starts_with("session")).count();
        assert_eq!(sessions, 1, "{code}: it is asked again in the session");
        bench.driver.quiesce(&bench.call()).await.expect("closed");
        bmc.set("answer_06_3b", &format!("{code} 100"));
        bench.life = Duration::from_secs(1);
        let error = bench.fails_in_time(Bench::off).await;
        assert_eq!(
            (error.kind, error.effect),
            (ErrorKind::Throttled, Effect::DidNotHappen),
            "{code}: {error}"
        );
        bmc.clear("answer_06_3b");
        bench.read().await.expect("nothing is locked");
    }
}

/// It says so in its session: it is not silent, nothing was done, and it gets its off as soon as it takes one.
#[tokio::test]
async fn a_bmc_that_is_busy_while_it_starts_is_told_as_one() {
    let bmc = Pyghmi::start("17");
    let mut bench = bench(&bmc).await;
    bench.read().await.expect("answered");
    for command in ["answer_00_01", "answer_00_02"] {
        bmc.set(command, "c0 9999");
    }
    bench.life = Duration::from_secs(2);
    let reading = bench.answer().await;
    assert_eq!((reading.power, reading.said.as_str()), (Power::Unknown, "chassis status: busy (0xC0)"));
    let error = bench.fails_in_time(Bench::off).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("busy (0xC0)"), "{error}");
    assert_eq!((error.refusal, error.is_final), (None, false), "time changes it: {error}");
    assert!(bmc.is_on());
    for command in ["answer_00_01", "answer_00_02"] {
        bmc.clear(command);
    }
    bench.life = Duration::from_secs(30);
    bench.off().await.expect("taken");
    assert_eq!(bench.read().await.expect("answered").power, Power::Off);
    let sessions = bmc.commands().into_iter().filter(|what| what.starts_with("session")).count();
    assert_eq!(sessions, 1, "its session answered all the time");
}

#[tokio::test]
async fn a_user_who_does_not_get_the_level_waits_before_the_next_login_and_not_for_long() {
    for code in ["80", "81", "d4"] {
        let bmc = Pyghmi::start("17");
        let bench = bench(&bmc).await;
        bmc.set("answer_06_3b", &format!("{code} 99"));
        for what in ["refused", "not asked"] {
            let error = bench.read().await.expect_err(what);
            // A person has to give it to the user.
            assert_eq!((error.kind, error.is_final), (ErrorKind::Forbidden, true), "{code}, {what}: {error}");
        }
        bmc.clear("answer_06_3b");
        let until = Instant::now() + LONG;
        while let Err(error) = bench.read().await {
            assert!(Instant::now() < until, "a while later it is asked again: {error}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// S1: an answer that is not whole says neither on nor off, and how long it was.
#[tokio::test]
async fn a_chassis_status_of_two_bytes_is_unknown() {
    let bmc = Pyghmi::start("17");
    let bench = bench(&bmc).await;
    for (power, length) in [("0", 2), ("1", 2), ("0", 0)] {
        bmc.set("power", power);
        bmc.set("short_00_01", &length.to_string());
        let reading = bench.read().await.expect("an answer");
        let said = format!("chassis status of {length} bytes");
        assert_eq!((reading.power, reading.said), (Power::Unknown, said), "{power}");
    }
    bmc.clear("short_00_01");
    assert_eq!(bench.read().await.expect("whole").power, Power::Off);
}

#[tokio::test]
async fn a_question_that_came_to_nothing_is_no_answer() {
    let bmc = Pyghmi::start("17");
    let bench = bench(&bmc).await;
    for code in ["c3", "ce", "c7", "ff"] {
        bmc.set("answer_06_37", &format!("{code} 1"));
        let error = bench.driver.identify(&bench.call()).await.expect_err("it does not say who it is");
        assert_ne!(error.kind, ErrorKind::Unsupported, "{code}: {error}");
        assert!(bench.driver.identify(&bench.call()).await.expect("it says").identity.uuid.is_some());
        bmc.set("answer_06_25", &format!("{code} 1"));
        let error = bench.driver.inspect_hold(&bench.call()).await.expect_err("it may have a watchdog");
        assert_ne!(error.kind, ErrorKind::Unsupported, "{code}: {error}");
        bench.driver.inspect_hold(&bench.call()).await.expect("it has none");
    }
}

#[tokio::test]
async fn a_bmc_that_never_answers_a_question_is_taken_for_one_that_cannot() {
    let bmc = Pyghmi::start("17");
    let bench = bench(&bmc).await;
    bmc.set("answer_06_37", "ff 100");
    for _ in 0..4 {
        bench.driver.identify(&bench.call()).await.expect_err("it does not say who it is");
    }
    assert_eq!(bench.driver.identify(&bench.call()).await.expect("it cannot say").identity.uuid, None);
    bmc.clear("answer_06_37");
    assert!(bench.driver.identify(&bench.call()).await.expect("it says").identity.uuid.is_some());
}

#[tokio::test]
async fn what_may_be_put_back_later_is_not_done_with() {
    let bmc = Pyghmi::start("17");
    let mut bench = bench(&bmc).await;
    let found = HoldFound::from([("restore_policy".to_owned(), "previous".to_owned())]);
    let order = bench.orders.unhold(&found).await.expect("an order");
    bench.life = Duration::from_secs(1);
    for (code, kind, effect) in [
        ("c0", ErrorKind::Throttled, Effect::DidNotHappen),
        ("c7", ErrorKind::Refused, Effect::DidNotHappen),
        ("ff", ErrorKind::Protocol, Effect::Unknown),
    ] {
        bmc.set("answer_00_06", &format!("{code} 100"));
        let put_back = async |bench: &Bench| bench.driver.disengage_hold(&order, &bench.call()).await;
        let error = match effect {
            Effect::DidNotHappen => bench.fails_in_time(put_back).await,
            _ => put_back(&bench).await.expect_err("not put back"),
        };
        assert_eq!((error.kind, error.effect), (kind, effect), "{code}: {error}");
    }
    for code in ["c1", "d4"] {
        bmc.set("answer_00_06", &format!("{code} 100"));
        let report = bench.driver.disengage_hold(&order, &bench.call()).await.expect("it never can be");
        assert!(report.detail.contains("restore policy"), "{code}: {report:?}");
    }
}

#[tokio::test]
async fn that_there_is_no_such_session_cannot_be_said_in_that_session() {
    let bmc = Pyghmi::start("17");
    let bench = bench(&bmc).await;
    bench.read().await.expect("answered");
    bench.off().await.expect("taken");
    bmc.set("answer_06_3c", "87 1");
    bench.driver.quiesce(&bench.call()).await.expect("its end is seen from outside");
    let sessions = bmc.commands().into_iter().filter(|what| what.starts_with("session")).count();
    assert_eq!(sessions, 2, "another session was opened to ask");
}

#[tokio::test]
async fn a_message_whose_sums_are_wrong_and_whose_hmac_is_right_is_taken() {
    let bmc = Pyghmi::start("17");
    let bench = bench(&bmc).await;
    bench.read().await.expect("answered");
    assert_eq!(bench.driver.remarks(), [""; 0]);
    bmc.set("odd_sum", "1");
    assert_eq!(bench.read().await.expect("the packet's code is right").power, Power::On);
    bench.off().await.expect("taken");
    assert_eq!(bench.read().await.expect("answered").power, Power::Off);
    let remarks = bench.driver.remarks();
    assert!(remarks.len() == 1 && remarks[0].contains("sums them up wrongly"), "{remarks:?}");
}

#[tokio::test]
async fn a_refused_suite_names_those_that_are_offered_and_the_setting() {
    let bmc = Pyghmi::start("3");
    let network = Network::before(bmc.address()).await;
    let proposed = network.proposed();
    let bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        let before = bench.driver.packets().sent;
        let error = bench.off().await.expect_err("it has no 17");
        assert_eq!((error.kind, error.effect), (ErrorKind::Unsupported, Effect::DidNotHappen));
        for words in ["allow, 17", "no cipher suite match", "offers 3: set cipher_suites = [17, 3]"] {
            assert!(error.detail.contains(words), "{error}");
        }
        sent.push(bench.driver.packets().sent - before);
    }
    assert_eq!(proposed.now(), [OF_17], "what anybody may have said is told, and nothing weaker is tried");
    assert!(sent[0] > sent[1] && sent[1] == sent[2], "it is asked once: {sent:?}");
}

#[tokio::test]
async fn a_suite_that_was_refused_once_is_tried_again_at_the_next_login() {
    let bmc = Pyghmi::start("3,17");
    let network = Network::before(bmc.address()).await;
    let bench = Bench::new(network.address(), json!({ "cipher_suites": [17, 3] })).await;
    let mut left = 1;
    network.rule(move |to_bmc, packet| {
        let open = to_bmc && packet.get(5) == Some(&0x10);
        if open && left > 0 {
            left -= 1;
            return Fate::Refuse(0x11);
        }
        Fate::Pass
    });
    bench.read().await.expect("with suite 3, after a refusal that anybody may have sent");
    bench.driver.quiesce(&bench.call()).await.expect("closed");
    let proposed = network.proposed();
    bench.read().await.expect("answered");
    assert_eq!(proposed.now(), [OF_17]);
}

/// An off that is not possible now, then silence before the driver has looked at power: the off is not sent again, in no session, before
/// whoever decides was told of the loss (S2, S5).
#[tokio::test]
async fn no_off_is_sent_again_before_a_loss_after_its_refusal_was_told() {
    let bmc = Pyghmi::start("17");
    let network = Network::before(bmc.address()).await;
    let mut bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
    bench.life = Duration::from_secs(10);
    bench.read().await.expect("answered");
    bmc.set("answer_00_02", "d5 1");
    // The session answers once more, and from then on neither hears nor is heard; others are.
    let (mut old, mut answered) = (None, false);
    network.rule(move |to_bmc, packet| {
        let session = packet.get(6..10).map(<[u8]>::to_vec);
        if to_bmc && old.is_none() {
            old = session;
            return Fate::Pass;
        }
        if to_bmc {
            return if answered && session == old { Fate::Lose } else { Fate::Pass };
        }
        answered = true;
        Fate::Pass
    });
    bench.off().await.expect_err("not possible, and then silence");
    let offs = |bmc: &Pyghmi| bmc.commands().into_iter().filter(|what| what == "off").count();
    assert_eq!(offs(&bmc), 0, "nothing was sent after it");
    let epoch = bench.read().await.expect("answered").epoch.expect("it has epochs");
    assert!(epoch.begins_after_loss());
    bench.off().await.expect("it was read, so it may be sent");
    assert_eq!(offs(&bmc), 1);
}
