//! Sessions that stand in the ledger: what is stored with one goes in that one, and whoever leads later ends it by its name (S8).

use std::time::Duration;

use picket_core::power::Power;
use picket_driver::{DriverError, Effect, ErrorKind, PowerDriver};
use serde_json::{Value, json};

use crate::fake::{Fake, Reply, World};
use crate::subject::Hand;

const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// One that read power, and the name of its session.
async fn led(fake: &Fake) -> (Hand, String) {
    let hand = Hand::of(fake, json!({})).await;
    assert_eq!(hand.driver.session(), None);
    hand.power().await;
    let name = hand.driver.session().expect("it has a session");
    assert!(!name.contains("token") && !name.contains("hunter2"), "{name}");
    (hand, name)
}

async fn ends(hand: &Hand, name: &str) -> Result<(), DriverError> {
    hand.driver.end_session(name, &hand.call()).await
}

/// How often it was told to end a session, and how many are open.
fn deleted_and_open(fake: &Fake) -> (usize, usize) {
    let mut world = fake.world();
    (world.asked("DELETE"), world.open_sessions())
}

/// It is not known to have ended.
async fn is_unclear(hand: &Hand, name: &str, why: &str) {
    let error = ends(hand, name).await.expect_err(why);
    assert_eq!(error.effect, Effect::Unknown, "{why}: {error}");
}

/// Stopped between the permit and the sending, and going on when another one leads.
async fn sends_its_off_late(first: &Hand, name: &str) -> Result<(), DriverError> {
    let order = first.orders.off_in(Some(name.to_owned())).await.expect("an order");
    first.driver.power_off(&order, &first.call()).await.map(|_| ())
}

#[tokio::test]
async fn what_another_process_may_yet_send_ends_with_its_session() {
    let fake = Fake::start().await;
    let (first, name) = led(&fake).await;
    let second = Hand::of(&fake, json!({})).await;
    ends(&second, &name).await.expect("ended");
    assert_eq!(fake.world().open_sessions(), 1, "the second one's own");
    let error = sends_its_off_late(&first, &name).await.expect_err("its token is not known any more");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen), "{error}");
    // Nor in another one, which nobody could end: not before power is read, and what is stored with it is another.
    let error = sends_its_off_late(&first, &name).await.expect_err("no session");
    assert_eq!(error.effect, Effect::DidNotHappen);
    assert_eq!(first.power().await, Power::On);
    sends_its_off_late(&first, &name).await.expect_err("another session than the stored one");
    let order = first.orders.on_in(Some(name.clone())).await.expect("an order");
    first.driver.power_on(order, &first.call()).await.expect_err("the same of an on");
    assert_eq!(fake.world().commands, 1, "refused by the service once, and not sent after that");
    assert!(fake.world().is_on());
    let anew = first.driver.session().expect("it has a session again");
    assert_ne!(anew, name);
    sends_its_off_late(&first, &anew).await.expect("stored with the session that is there");
    assert!(!fake.world().is_on());
    // Asked again it says the same: the place is not found, and not listed.
    ends(&second, &name).await.expect("over");
}

#[tokio::test]
async fn a_place_that_is_not_found_is_over_only_where_the_list_of_sessions_says_so() {
    let fake = Fake::start().await;
    let (_first, name) = led(&fake).await;
    let second = Hand::of(&fake, json!({})).await;
    second.power().await;
    let path = |id: u32| json!({ "@odata.id": format!("{SESSIONS}/{id}") });
    let list = |list: Value| Reply::json(200, list);
    for (why, said) in [
        ("it is listed", list(json!({ "Members": [path(1), path(2)] }))),
        ("our own is not listed", list(json!({ "Members": [] }))),
        ("there is more", list(json!({ "Members": [path(2)], "Members@odata.nextLink": "/more" }))),
        ("there are more", list(json!({ "Members": [path(2)], "Members@odata.count": 2 }))),
        ("no list", Reply::json(403, json!({}))),
        ("no list either", Reply::raw(200, "<html>")),
    ] {
        fake.world()
            .script
            .extend([("DELETE", Reply::raw(404, "")), ("GET /redfish/v1/SessionService/Sessions", said)]);
        is_unclear(&second, &name, why).await;
        assert!(fake.world().script.is_empty(), "{why}");
        assert_eq!(fake.world().open_sessions(), 2, "{why}");
    }
    let said = list(json!({ "Members": [path(2)], "Members@odata.count": 1 }));
    fake.world()
        .script
        .extend([("DELETE", Reply::raw(410, "")), ("GET /redfish/v1/SessionService/Sessions", said)]);
    ends(&second, &name).await.expect("our own is listed, and that one not");
}

#[tokio::test]
async fn no_other_answer_is_an_end() {
    let fake = Fake::start().await;
    let (_first, name) = led(&fake).await;
    let second = Hand::of(&fake, json!({})).await;
    for status in [202, 206, 301, 400, 403, 405, 409, 500, 501] {
        fake.world().script.push_back(("DELETE", Reply::raw(status, "")));
        is_unclear(&second, &name, &status.to_string()).await;
    }
    let lost = Reply { hangs_up: true, ..Reply::raw(204, "") };
    fake.world().script.extend((0..50).map(|_| ("DELETE", lost.clone())));
    let call = second.call_of(Duration::from_secs(2));
    let error = second.driver.end_session(&name, &call).await.expect_err("no answer");
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    assert_eq!(fake.world().open_sessions(), 2);
}

#[tokio::test]
async fn a_number_that_was_given_again_is_not_taken_for_the_session_that_had_it() {
    let fake = Fake::start().await;
    fake.world().reuses = true;
    let (first, name) = led(&fake).await;
    fake.world().end_sessions();
    // Ours has the number now: the first one's is over, and ours stays.
    let (second, same) = led(&fake).await;
    assert_eq!(name, same);
    ends(&second, &name).await.expect("over");
    assert_eq!(deleted_and_open(&fake), (0, 1));
    // Ours ended unseen, and the first one has the number again.
    fake.world().end_sessions();
    assert_eq!(first.power().await, Power::On);
    assert_eq!(first.driver.session(), Some(name.clone()));
    ends(&second, &name).await.expect("ended");
    let error = sends_its_off_late(&first, &name).await.expect_err("its session is over");
    assert_eq!(error.effect, Effect::DidNotHappen, "{error}");
    assert!(fake.world().is_on());
}

#[tokio::test]
async fn a_session_of_ours_that_carried_something_is_ended_like_any_other() {
    let fake = Fake::start().await;
    let (hand, name) = led(&fake).await;
    sends_its_off_late(&hand, &name).await.expect("taken");
    // The store began another life: what this process sent is nobody's own.
    ends(&hand, &name).await.expect("ended");
    let error = sends_its_off_late(&hand, &name).await.expect_err("over");
    assert_eq!(error.effect, Effect::DidNotHappen, "{error}");
}

#[tokio::test]
async fn what_became_a_task_is_waited_for() {
    let fake = Fake::start().await;
    {
        let mut world = fake.world();
        world.has_task_service = true;
        world.task = Some(Duration::from_secs(20));
    }
    let (first, name) = led(&fake).await;
    sends_its_off_late(&first, &name).await.expect("taken");
    let second = Hand::of(&fake, json!({})).await;
    is_unclear(&second, &name, "a task is running").await;
    fake.world().script.push_back(("GET /redfish/v1/TaskService/Tasks", Reply::raw(403, "")));
    is_unclear(&second, &name, "nobody lets us look").await;
    while ends(&second, &name).await.is_err() {}
    let asked = |world: &World| world.asked("GET /redfish/v1/TaskService/Tasks/0");
    assert!(asked(&fake.world()) >= 2, "until it was over");
}

/// The root shows a caller without a name fewer links than there are.
#[tokio::test]
async fn a_root_that_hides_its_tasks_from_strangers_is_not_believed_to_have_none() {
    let fake = Fake::start().await;
    {
        let mut world = fake.world();
        world.has_task_service = true;
        world.task = Some(Duration::from_secs(600));
    }
    let (first, name) = led(&fake).await;
    sends_its_off_late(&first, &name).await.expect("taken");
    let second = Hand::of(&fake, json!({})).await;
    second.power().await;
    fake.world().hides_from_strangers = true;
    is_unclear(&second, &name, "a task is running").await;
}

#[tokio::test]
async fn nothing_is_deleted_by_other_settings_or_without_a_permit() {
    let fake = Fake::start().await;
    let (_first, name) = led(&fake).await;
    let second = Hand::of(&fake, json!({})).await;
    for other in [
        name.replace("127.0.0.1", "127.0.0.2"),
        name.replace(" of admin", " of operator"),
        "/redfish/v1/SessionService/Sessions/1".to_owned(),
    ] {
        is_unclear(&second, &other, &other).await;
    }
    second.orders.permit().end();
    let error = ends(&second, &name).await.expect_err("it does not lead");
    assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::Unknown), "{error}");
    assert_eq!(deleted_and_open(&fake), (0, 1));
}

#[tokio::test]
async fn without_sessions_there_is_no_name() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "authentication": "basic" })).await;
    hand.power().await;
    assert!(!hand.driver.names_sessions() && hand.driver.session().is_none());
}
