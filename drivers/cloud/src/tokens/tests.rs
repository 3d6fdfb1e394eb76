use std::sync::atomic::AtomicUsize;

use picket_core::time::{Clock, WallTime};
use picket_driver::Secret;
use tokio::time::{Instant, advance, sleep, timeout};

use super::*;

const PAUSE: Duration = Duration::from_secs(30);
const LIFE: Duration = Duration::from_secs(3_600);

/// It goes as the test's time does.
#[derive(Debug)]
struct Paused(Instant);

impl Clock for Paused {
    fn boot(&self) -> BootTime {
        BootTime::from_boot(self.0.elapsed())
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }
}

/// Whoever gives tokens.
#[derive(Default)]
struct Giver {
    tokens: Tokens,
    logins: AtomicUsize,
    refuses: parking_lot::Mutex<Option<ErrorKind>>,
}

impl Giver {
    fn refuses(&self, kind: Option<ErrorKind>) {
        *self.refuses.lock() = kind;
    }

    fn logins(&self) -> usize {
        self.logins.load(Ordering::SeqCst)
    }

    /// It takes a second for each token, which lives for an hour.
    async fn get(&self, call: &Call) -> Result<Arc<Token>, DriverError> {
        let log_in = async {
            self.logins.fetch_add(1, Ordering::SeqCst);
            let asked_at = call.now();
            sleep(Duration::from_secs(1)).await;
            match *self.refuses.lock() {
                Some(kind) => Err(DriverError::new(kind, Effect::DidNotHappen, "no")),
                None => Ok(Token {
                    secret: Secret::new("hunter2"),
                    said: (),
                    life: LIFE,
                    asked_at,
                    answered_at: call.now(),
                }),
            }
        };
        self.tokens.get(call, PAUSE, log_in).await
    }
}

fn call(clock: &Arc<Paused>) -> Call {
    Call::reading(Instant::now() + Duration::from_secs(15), clock.clone())
}

fn clock() -> Arc<Paused> {
    Arc::new(Paused(Instant::now()))
}

#[tokio::test(start_paused = true)]
async fn one_login_serves_all_until_shortly_before_its_end() {
    let (giver, clock) = (Giver::default(), clock());
    assert_eq!(giver.tokens.longest_life(), None);
    let (one, other) = (call(&clock), call(&clock));
    let (one, other) = tokio::join!(giver.get(&one), giver.get(&other));
    assert!(Arc::ptr_eq(&one.expect("a token"), &other.expect("a token")));
    assert_eq!(giver.tokens.longest_life(), Some(LIFE + CLOCKS));
    advance(LIFE - RENEWED - Duration::from_secs(2)).await;
    giver.get(&call(&clock)).await.expect("a token");
    assert_eq!(giver.logins(), 1);
    advance(Duration::from_secs(1)).await;
    giver.get(&call(&clock)).await.expect("a token");
    assert_eq!(giver.logins(), 2);
}

/// Accounts are locked after a few tries.
#[tokio::test(start_paused = true)]
async fn credentials_that_were_refused_are_not_tried_again_at_once() {
    for (kind, is_remembered) in
        [(ErrorKind::Authentication, true), (ErrorKind::Forbidden, true), (ErrorKind::Unreachable, false)]
    {
        let (giver, clock) = (Giver::default(), clock());
        giver.refuses(Some(kind));
        giver.get(&call(&clock)).await.expect_err("refused");
        advance(PAUSE - Duration::from_secs(1)).await;
        let error = giver.get(&call(&clock)).await.expect_err("refused");
        assert_eq!((error.kind, giver.logins()), (kind, if is_remembered { 1 } else { 2 }));
        assert_eq!(error.detail.ends_with("not asked again for 30s"), is_remembered, "{error}");
        giver.refuses(None);
        advance(Duration::from_secs(1)).await;
        giver.get(&call(&clock)).await.expect("it is asked again");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_token_serves_where_there_is_no_new_one() {
    let (giver, clock) = (Giver::default(), clock());
    let first = giver.get(&call(&clock)).await.expect("a token");
    giver.refuses(Some(ErrorKind::Unreachable));
    advance(LIFE - RENEWED).await;
    let left = giver.get(&call(&clock)).await.expect("what is left");
    assert!(Arc::ptr_eq(&first, &left) && giver.logins() == 2);
    giver.refuses(Some(ErrorKind::Authentication));
    for _ in ["refused", "not asked again"] {
        let left = giver.get(&call(&clock)).await.expect("what is left");
        assert!(Arc::ptr_eq(&first, &left) && giver.logins() == 3);
    }
    giver.refuses(Some(ErrorKind::Unreachable));
    advance(RENEWED).await;
    let error = giver.get(&call(&clock)).await.expect_err("nothing is left");
    assert_eq!((error.kind, giver.tokens.held(clock.boot()).is_none()), (ErrorKind::Unreachable, true));
}

/// Whoever logs in may have more time than whoever waits for that.
#[tokio::test(start_paused = true)]
async fn another_one_s_login_is_waited_for_no_longer_than_the_call_lasts() {
    let (giver, clock) = (Giver::default(), clock());
    let _logs_in = giver.tokens.renewing.lock().await;
    let waited = timeout(Duration::from_secs(60), giver.get(&call(&clock))).await;
    let error = waited.expect("within its call").expect_err("no token");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::DidNotHappen), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_known_any_more_is_not_used_unless_it_is_of_now() {
    let (giver, clock) = (Giver::default(), clock());
    let first = giver.get(&call(&clock)).await.expect("a token");
    giver.tokens.forget(&first, clock.boot());
    assert!(giver.tokens.held(clock.boot()).is_some(), "what is refused is the request");
    advance(Duration::from_secs(10)).await;
    giver.tokens.forget(&first, clock.boot());
    assert!(giver.tokens.held(clock.boot()).is_none());
    giver.get(&call(&clock)).await.expect("a token");
    giver.tokens.forget(&first, clock.boot());
    assert!(giver.tokens.held(clock.boot()).is_some(), "another one was refused");
}
