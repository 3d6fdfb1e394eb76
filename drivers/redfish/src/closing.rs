//! Ending what carried commands (S8): sessions, tasks, and what was sent without a session.
//!
//! A session is over when its deletion was answered, when the service does not know its token any more, or when its idle limit
//! was waited out since it was last used. One that we began to delete is one that we ended.

use std::time::Duration;

use picket_driver::{Call, DriverError, Effort, ErrorKind};
use tokio::time::{Instant, timeout_at};

use crate::answer::Answer;
use crate::connection::ConnectionError;
use crate::line::{Line, end_of};
use crate::service_request::ServiceRequest;
use crate::session::Session;
use crate::task;

/// How long a deletion may stay unanswered. A service that answers late has ended the session all the same; one that never does costs the wait
/// for its idle limit in any case.
const PATIENCE: Duration = Duration::from_secs(10);
/// For so long a session's end is asked for again, before its idle limit is waited out.
pub const ASKING: Duration = Duration::from_secs(60);
/// Wait before it is asked for again; it doubles.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What bounds a thing that was not seen to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A session's idle limit, by the settings; by the service's own word, where that is longer.
    Idle { limit: Duration, said: Option<Duration> },
    /// The life of what was sent without a session.
    Life(Duration),
}

impl Bound {
    /// In words, for people: what was not seen to end, how often that was `asked` for in how long, what of its time is `left`, and which setting
    /// says how long that is.
    pub fn words(self, asked: u32, since: Instant, left: Duration) -> String {
        let (took, left) = (since.elapsed().as_secs_f64(), left.as_secs());
        let open = format!(
            "a session that carried commands was not seen to end, asked {asked} times in {took:.1} s, and may be open for {left} s more: by \
             its idle limit"
        );
        match self {
            Bound::Idle { limit, said: None } => {
                format!("{open}, session_timeout = \"{}s\"", limit.as_secs())
            }
            Bound::Idle { limit, said: Some(said) } => format!(
                "{open}, the service's SessionTimeout of {} s, which is longer than session_timeout = \"{}s\"",
                said.as_secs(),
                limit.as_secs()
            ),
            Bound::Life(life) => format!(
                "a command that was sent without a session was not answered clearly, and may land for {left} s more: by max_life = \"{}s\"",
                life.as_secs()
            ),
        }
    }
}

/// How far the end is of what carried commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseProgress {
    /// Nothing of it is open.
    Yes,
    /// From then on the rest is surely over, if nothing more is sent.
    At(Instant, Bound),
    /// The sessions are over since then; a command had no clear end, and was sent at that time: what the service had begun of it may
    /// be at work. In any case it is over by the end of its life.
    AtWork { sent: Instant, over: Instant, until: Instant },
}

/// Ends what can be ended now.
///
/// # Errors
/// Something was sent of which nobody can say when it is over.
pub async fn close_all(line: &mut Line, call: &Call) -> Result<CloseProgress, DriverError> {
    let longest = line.longest_idle();
    let tasks = match line.tasks.is_empty() {
        true => Ok(()),
        false => task::finish(line, call).await,
    };
    // The epoch ends with this. A doubt does not: whether the manager restarted is seen at the next look.
    if line.unanswered_since.is_none() {
        line.life = None;
    }
    line.epoch = None;
    line.sighted = false;
    // The caller may leave while a deletion is under way, and the service may have carried it out: nothing else is asked in
    // this session.
    let left = line.leave_session();
    line.orphans.extend(left);
    line.orphans.retain(|session| Instant::now() < session.dead_at(longest));
    let mut index = 0;
    while let Some(session) = line.orphans.get(index).cloned() {
        if is_deleted(line, &session, call).await || !session.carried {
            line.orphans.remove(index);
        } else {
            index += 1;
        }
    }
    line.hang_up();
    tasks?;
    let sessions = line.orphans.iter().map(|session| session.dead_at(longest)).max();
    let bare = without_session(line)?;
    if let Some(over_at) = sessions.max(bare) {
        let settings = &line.settings;
        let bound = match settings.max_life.filter(|_| bare == Some(over_at)) {
            Some(life) => Bound::Life(life),
            None => {
                let limit = settings.session_timeout;
                Bound::Idle { limit, said: line.said_timeout.filter(|said| *said > limit) }
            }
        };
        return Ok(CloseProgress::At(over_at, bound));
    }
    line.unclear.in_session = line.unclear.in_session.filter(|sent| Instant::now() < *sent + longest);
    let Some(sent) = line.unclear.in_session else { return Ok(CloseProgress::Yes) };
    let over = *line.unclear.over.get_or_insert_with(Instant::now);
    Ok(CloseProgress::AtWork { sent, over, until: sent + longest })
}

/// When what was sent without a session, or into a task that nobody can follow, is surely over; `None`: it is.
fn without_session(line: &mut Line) -> Result<Option<Instant>, DriverError> {
    let Some(sent) = line.unclear.without.max(line.unfollowed) else { return Ok(None) };
    let mut effort = Effort::repeatable();
    effort.sent();
    let Some(life) = line.settings.bound() else {
        let why = "a command that was sent without a session was not answered clearly, and nothing says how late it may land: \
                   max_life would";
        return Err(line.error(&effort, ErrorKind::TimedOut, why));
    };
    if Instant::now() < sent + life {
        return Ok(Some(sent + life));
    }
    line.unclear.without = None;
    line.unfollowed = None;
    Ok(None)
}

/// Whether the service says that the session is over. Asked for twice where no answer came: of a session whose deletion was carried out it does
/// not know the token any more.
async fn is_deleted(line: &mut Line, session: &Session, call: &Call) -> bool {
    let until = end_of(call).min(Instant::now() + PATIENCE);
    let Some(end) = ServiceRequest::end(session) else { return is_unknown(line, session, call, until).await };
    for _ in 0..2 {
        let told = timeout_at(until, line.once(&end, call, until)).await;
        match told {
            Ok(Ok(Ok(answer))) if matches!(answer.status, 200 | 204) && !answer.stored => return true,
            Ok(Ok(Ok(answer))) if is_not_known(line, session, &answer) => return true,
            // It knew the token, or did not look at it: it may be known still.
            Ok(Ok(Ok(_))) => return is_unknown(line, session, call, until).await,
            Ok(Ok(Err(ConnectionError::Silent(_)))) => was_heard(line, session),
            Ok(Ok(Err(ConnectionError::Late))) | Err(_) => {
                was_heard(line, session);
                return false;
            }
            Ok(Ok(Err(ConnectionError::NotSent(_))) | Err(_)) => return false,
        }
    }
    false
}

/// The service may have heard a request in that session, and counts its idleness from now on.
fn was_heard(line: &mut Line, session: &Session) {
    for orphan in line.orphans.iter_mut().filter(|orphan| orphan.path == session.path) {
        orphan.last_used = Instant::now();
    }
}

/// Whether the service does not know the session's token, asked for what only the known may read.
async fn is_unknown(line: &mut Line, session: &Session, call: &Call, until: Instant) -> bool {
    let Some(path) = line.sessions.clone() else { return false };
    let ask = ServiceRequest { token: Some(session.token.clone()), ..ServiceRequest::get(path) };
    // It may know it still.
    was_heard(line, session);
    let told = timeout_at(until, line.once(&ask, call, until)).await;
    matches!(told, Ok(Ok(Ok(answer))) if is_not_known(line, session, &answer))
}

/// Whether that answer says that the session's token is not known any more. Another service at the same name never knew it: the one that gave it
/// has to say so, by its certificate.
fn is_not_known(line: &Line, session: &Session, answer: &Answer) -> bool {
    answer.status == 401 && !answer.stored && line.certificate == session.certificate
}
