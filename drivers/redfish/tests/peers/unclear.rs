//! Commands whose end nobody saw: what may be at work of them holds the end of their sessions back (S5, S8, S10).

use std::time::{Duration, Instant};

use picket_driver::{DriverError, Effect, ErrorKind, PowerDriver};
use serde_json::json;
use tokio::task::JoinSet;

use crate::fake::{Fake, Reply, Then};
use crate::subject::Hand;

/// How long what the service had begun is waited for.
const AT_WORK: Duration = Duration::from_secs(5);

fn hung_up() -> Reply {
    Reply { hangs_up: true, ..Reply::raw(204, "") }
}

/// An on that the service carries out, and answers so.
async fn on_is_answered(fake: &Fake, hand: &Hand, reply: Reply) -> DriverError {
    fake.world().set_power(false);
    hand.power().await;
    fake.world().after.push_back(("Reset", reply));
    let error = hand.on().await.expect_err("no clear answer");
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    error
}

/// One that lists its tasks, and makes one of so long of each reset.
async fn with_tasks_of(task: Duration) -> (Fake, Hand) {
    let fake = Fake::start().await;
    {
        let mut world = fake.world();
        (world.has_task_service, world.task) = (true, Some(task));
    }
    let hand = Hand::of(&fake, json!({})).await;
    (fake, hand)
}

#[tokio::test]
async fn a_task_whose_beginning_nobody_heard_may_be_running() {
    let replies = [hung_up(), Reply::raw(504, ""), Reply::raw(503, ""), Reply::raw(202, "").with("Age", "1")];
    let mut tried = JoinSet::new();
    for reply in replies {
        tried.spawn(task_may_be_running(reply));
    }
    tried.join_all().await;
}

async fn task_may_be_running(reply: Reply) {
    let (fake, hand) = with_tasks_of(Duration::from_secs(60)).await;
    let said = format!("{reply:?}");
    on_is_answered(&fake, &hand, reply).await;
    let call = hand.call_of(AT_WORK + Duration::from_secs(2));
    let open = hand.driver.quiesce(&call).await.expect_err("its task runs");
    assert_eq!(open.effect, Effect::Unknown, "{said}: {open}");
    assert_eq!(fake.world().asked("DELETE"), 1, "{said}: and yet its session is over");
}

#[tokio::test]
async fn it_is_looked_at_again_until_it_is_over() {
    let (fake, hand) = with_tasks_of(Duration::from_secs(8)).await;
    let began = Instant::now();
    on_is_answered(&fake, &hand, hung_up()).await;
    hand.quiesce().await.expect("it is over");
    assert!(began.elapsed() >= Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(fake.world().open_sessions(), 0, "the one in which it was looked at is over, too");
    let asked = fake.world().log.len();
    hand.quiesce().await.expect("nothing is open");
    assert_eq!(fake.world().log.len(), asked, "it is said once");
}

#[tokio::test]
async fn what_is_at_work_without_a_task_is_given_its_time() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    on_is_answered(&fake, &hand, hung_up()).await;
    let began = Instant::now();
    hand.quiesce().await.expect("nothing runs");
    assert!(began.elapsed() >= AT_WORK, "{:?}", began.elapsed());
    // A clear answer needs none, whether yes or no.
    for reply in [Reply::raw(204, ""), Reply::raw(403, ""), Reply::raw(503, "").with("Retry-After", "1")] {
        // A busy machine is late with anything: the best of some counts.
        let mut took = Vec::new();
        while took.len() < 5 && took.last().is_none_or(|took| *took >= AT_WORK) {
            hand.power().await;
            fake.world().script.push_back(("Reset", reply.clone()));
            let _ = hand.on().await;
            let began = Instant::now();
            hand.quiesce().await.expect("closed");
            took.push(began.elapsed());
        }
        assert!(took.iter().any(|took| *took < AT_WORK), "{reply:?}: {took:?}");
    }
}

#[tokio::test]
async fn its_time_goes_on_between_two_tries_that_are_shorter() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    on_is_answered(&fake, &hand, hung_up()).await;
    let began = Instant::now();
    // As long as a close of a session that idles has.
    let short = async || hand.driver.quiesce(&hand.call_of(AT_WORK - Duration::from_millis(500))).await;
    match short().await {
        Ok(()) => assert!(began.elapsed() >= AT_WORK, "it was over just now"),
        Err(open) => assert_eq!(open.effect, Effect::Unknown, "{open}"),
    }
    // Somebody reads meanwhile, in another session.
    fake.world().slow = Some(("GET /redfish/v1/Systems/437", Duration::from_secs(1)));
    while began.elapsed() < Duration::from_secs(2) {
        hand.power().await;
    }
    // A busy machine may not come to the last look in that time: were it begun anew each time, no number of tries would be enough.
    let mut tries = 0;
    while let Err(open) = short().await {
        tries += 1;
        assert!(open.kind == ErrorKind::TimedOut && tries < 10, "the rest of its time: {open}");
    }
    assert!(began.elapsed() >= AT_WORK, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_service_that_says_nothing_of_its_tasks_leaves_what_is_unclear_open() {
    let (fake, hand) = with_tasks_of(Duration::from_secs(1)).await;
    on_is_answered(&fake, &hand, hung_up()).await;
    fake.world().script.extend((0..9).map(|_| ("TaskService", Reply::raw(403, ""))));
    let call = hand.call_of(AT_WORK + Duration::from_secs(2));
    let open = hand.driver.quiesce(&call).await.expect_err("nobody lets us look");
    assert_eq!(open.effect, Effect::Unknown, "{open}");
}

#[tokio::test]
async fn without_a_session_only_a_clear_answer_is_an_end() {
    for (reply, is_clear) in [
        (Reply::raw(504, ""), false),
        (Reply::raw(500, ""), false),
        (Reply::raw(502, ""), false),
        (Reply::raw(408, ""), false),
        (Reply::raw(503, ""), false),
        (Reply::raw(204, "").with("Age", "0"), false),
        (Reply::raw(503, "").with("Retry-After", "1"), true),
        (Reply::raw(429, ""), true),
    ] {
        let fake = Fake::start().await;
        let hand = Hand::of(&fake, json!({ "authentication": "basic" })).await;
        hand.power().await;
        let said = format!("{reply:?}");
        fake.world().script.push_back(("Reset", reply));
        hand.off().await.expect("taken at last");
        match (is_clear, hand.quiesce().await) {
            (true, Ok(())) => {}
            (false, Err(open)) => assert_eq!(open.effect, Effect::Unknown, "{said}: {open}"),
            (_, other) => panic!("{said}: {other:?}"),
        }
    }
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "authentication": "basic", "max_life": "8s" })).await;
    hand.power().await;
    let began = Instant::now();
    fake.world().script.push_back(("Reset", Reply::raw(504, "")));
    hand.off().await.expect("taken at last");
    hand.quiesce().await.expect("the operator's word");
    assert!(began.elapsed() >= Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_on_that_is_stored_with_no_session_goes_in_none() {
    let fake = Fake::start().await;
    fake.world().set_power(false);
    let hand = Hand::of(&fake, json!({})).await;
    let order = hand.orders.on().await.expect("an order");
    hand.power().await;
    let error = hand.driver.power_on(order, &hand.call()).await.expect_err("nobody could end its session");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen), "{error}");
    assert_eq!(fake.world().commands, 0);
    hand.on().await.expect("stored with it");
}

async fn engages(hand: &Hand, call: Duration) -> Result<Vec<String>, DriverError> {
    let found = [("PowerRestorePolicy".to_owned(), "LastState".to_owned())].into_iter().collect();
    let order = hand.orders.hold(&found).await.expect("an order");
    hand.driver.engage_hold(&order, &hand.call_of(call)).await.map(|report| report.engaged)
}

#[tokio::test]
async fn a_hold_is_judged_by_all_that_was_sent_of_it() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let is_silent = Then::is(|world| world.silent = true);
    fake.world().script.extend([("PATCH", Reply::raw(503, "")), ("PATCH", Reply::raw(412, ""))]);
    fake.world().then.extend([("PATCH", Then::is(|_| ())), ("PATCH", is_silent)]);
    let error = engages(&hand, Duration::from_secs(3)).await.expect_err("nobody knows");
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    {
        let mut world = fake.world();
        world.silent = false;
        world.drop_connections();
    }
    fake.world().script.extend([("PATCH", Reply::raw(503, "")), ("PATCH", Reply::raw(403, ""))]);
    let error = engages(&hand, Duration::from_secs(9)).await.expect_err("the first copy was not refused");
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    fake.world().script.push_back(("PATCH", Reply::raw(403, "")));
    assert_eq!(engages(&hand, Duration::from_secs(9)).await.expect("refused"), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_cache_had_kept_is_no_hold() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let kept = Reply::json(200, json!({ "PowerRestorePolicy": "AlwaysOff" })).with("Age", "7");
    fake.world().script.push_back(("GET /redfish/v1/Systems/437", kept.clone()));
    let error = hand.driver.inspect_hold(&hand.call()).await.expect_err("nobody knows when that was so");
    assert!(error.detail.contains("cache"), "{error}");
    fake.world().script.push_back(("GET /redfish/v1/Systems/437", kept));
    engages(&hand, Duration::from_secs(9)).await.expect_err("else it would seem engaged already");
    assert_eq!(fake.world().commands, 0);
}

#[tokio::test]
async fn a_monitor_that_knows_us_not_says_nothing_of_the_session() {
    for status in [401, 403] {
        let fake = Fake::start().await;
        fake.world().task = Some(Duration::from_secs(60));
        let hand = Hand::of(&fake, json!({})).await;
        hand.power().await;
        let name = hand.driver.session();
        fake.world().script.extend((0..9).map(|_| ("TaskMonitors", Reply::raw(status, ""))));
        hand.off().await.expect("taken");
        assert_eq!(hand.driver.session(), name, "it is known");
        assert_eq!(fake.world().asked("POST /redfish/v1/SessionService/Sessions"), 1);
        let open = hand.driver.quiesce(&hand.call_of(Duration::from_secs(3))).await.expect_err("who knows");
        assert_eq!(open.effect, Effect::Unknown, "{open}");
    }
    // Where the session is over indeed, it is looked at in another.
    let fake = Fake::start().await;
    fake.world().task = Some(Duration::from_secs(3));
    let hand = Hand::of(&fake, json!({})).await;
    hand.off().await.expect("taken");
    fake.world().end_sessions();
    hand.quiesce().await.expect("it is over");
}

#[tokio::test]
async fn a_monitor_that_is_busy_says_nothing_of_its_task() {
    for status in [408, 421, 423, 425] {
        let fake = Fake::start().await;
        fake.world().task = Some(Duration::from_secs(60));
        let hand = Hand::of(&fake, json!({})).await;
        fake.world().script.extend((0..99).map(|_| ("TaskMonitors", Reply::raw(status, ""))));
        hand.off().await.expect("taken");
        let open = hand.driver.quiesce(&hand.call_of(Duration::from_secs(3))).await.expect_err("it runs");
        assert_eq!(open.effect, Effect::Unknown, "{status}: {open}");
    }
}
