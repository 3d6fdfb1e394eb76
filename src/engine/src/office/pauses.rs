//! Pausing and resuming: stored first, then so.

use std::time::Duration;

use picket_core::budget::pause::{Pause, PauseScope};
use picket_core::election::Leadership;
use picket_core::event::Person;
use picket_core::ids::Version;
use picket_core::roles::{Person as Caller, Role};
use picket_core::store::{Store, StoreError};

use super::Office;
use crate::error::EngineError;

/// Where pauses stand among the notes of the fleet.
pub(super) const PREFIX: &str = "pause/";
/// The longest name of a note, in bytes.
const LONGEST_NAME: usize = 512;

/// Who asks, and the role that it needs.
type Right = (Caller, Role);

/// What resuming ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// A pause of that scope.
    pub pause: bool,
    /// The brake: what it counted counts no more until it was well.
    pub brake: bool,
}

fn note_name(scope: &PauseScope) -> String {
    match scope {
        PauseScope::Everything => format!("{PREFIX}everything"),
        PauseScope::Group(name) => format!("{PREFIX}group/{name}"),
        PauseScope::Node(name) => format!("{PREFIX}node/{name}"),
    }
}

/// Which note stands there; none is the version 0.
async fn found(store: &dyn Store, name: &str) -> Result<Version, StoreError> {
    Ok(store.note(name).await?.map_or(Version(0), |note| note.version))
}

/// Writes a note over whatever stands there: the last word counts, and this leadership alone has one.
pub(crate) async fn write(
    store: &dyn Store,
    leadership: &Leadership,
    name: &str,
    text: Option<String>,
) -> Result<(), StoreError> {
    let found = found(store, name).await?;
    put(store, leadership, (name, found), text).await
}

async fn put(
    store: &dyn Store,
    leadership: &Leadership,
    (name, found): (&str, Version),
    text: Option<String>,
) -> Result<(), StoreError> {
    if found == Version(0) && text.is_none() {
        return Ok(());
    }
    match store.put_note(leadership.guard(), name, found, text.clone()).await {
        Err(StoreError::Unknown(why)) => {
            // That it happened shows when it is read again; that it did not, does not: it may be on its way.
            let now = store.note(name).await?.map(|note| note.text);
            if now == text { Ok(()) } else { Err(StoreError::Unknown(why)) }
        }
        written => written.map(|_| ()),
    }
}

impl Office {
    /// Pauses, in place of the pause of the same scope. `right`: whose role that needs, which may be another one once notes before it are written and
    /// the store has answered (S14).
    pub(crate) async fn pause(
        &self,
        (store, leadership): (&dyn Store, &Leadership),
        right: Option<&Right>,
        scope: PauseScope,
        person: Person,
        lasts: Duration,
    ) -> Result<Pause, EngineError> {
        let _writing = self.writing.lock().await;
        let since = self.clock.wall();
        let until = self.clock.boot() + lasts;
        let Person { name: by, reason } = person;
        let pause = Pause { scope, reason, by, since, expires_at: since.after(lasts) };
        let name = note_name(&pause.scope);
        if name.len() > LONGEST_NAME {
            let why = format!("the name of {} is too long to be stored", pause.scope);
            return Err(StoreError::Unavailable(why).into());
        }
        let text = serde_json::to_string(&pause)
            .map_err(|error| StoreError::Unavailable(format!("the pause cannot be written: {error}")))?;
        let found = found(store, &name).await?;
        self.may_still_pause(right, &pause.scope)?;
        put(store, leadership, (&name, found), Some(text)).await?;
        self.papers().pauses.put(pause.clone(), until);
        self.changed.notify_one();
        Ok(pause)
    }

    /// Ends the pause of that scope; of everything, the brake as well. `right`: as above.
    pub(crate) async fn resume(
        &self,
        (store, leadership): (&dyn Store, &Leadership),
        right: Option<&Right>,
        scope: &PauseScope,
    ) -> Result<Resumed, EngineError> {
        let _writing = self.writing.lock().await;
        let name = note_name(scope);
        let found = found(store, &name).await?;
        self.may_still_pause(right, scope)?;
        put(store, leadership, (&name, found), None).await?;
        let now = self.clock.boot();
        let mut papers = self.papers();
        let pause = papers.pauses.end(scope, now);
        let brake = *scope == PauseScope::Everything && papers.books.let_go(now);
        drop(papers);
        self.complained.notify_one();
        self.changed.notify_one();
        Ok(Resumed { pause, brake })
    }

    /// The pauses that stand.
    pub(crate) fn pauses(&self) -> Vec<Pause> {
        self.papers().pauses.standing(self.clock.boot()).cloned().collect()
    }

    /// Takes pauses that have ended out of the store. What cannot be taken out now is, when it is read, over as well.
    pub(crate) async fn sweep(&self, store: &dyn Store, leadership: &Leadership) {
        let _writing = self.writing.lock().await;
        let ended = self.papers().pauses.take_ended(self.clock.boot());
        for scope in ended {
            tracing::info!(%scope, "a pause has ended by itself");
            if let Err(error) = write(store, leadership, &note_name(&scope), None).await {
                tracing::warn!(%scope, %error, "a pause that has ended was not taken out of the store");
            }
        }
    }
}
