//! What the driver remembers of its session with a device.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::power::{Epoch, Loss};
use picket_core::time::BootTime;

use crate::wire::SessionId;

/// One session that is, or may be, open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) epoch: Epoch,
    /// Since when calls in it got no answer. If the device still knows it, the device did not restart.
    pub(crate) doubtful: Option<BootTime>,
    /// When the first question was asked since its last answer, also by a caller who left.
    pub(crate) unanswered: Option<BootTime>,
    /// Its close was begun: nothing else is asked in it any more.
    pub(crate) closing: bool,
    /// When the last copy of anything was sent in it.
    pub(crate) last_sent: BootTime,
}

/// The session, and what is left of those before.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) session: Option<Session>,
    epochs: u64,
    /// The session before was lost, and since when.
    lost: Option<BootTime>,
    /// The newest loss, which every epoch after it tells.
    loss: Option<Loss>,
    /// Nothing was read since the newest loss.
    pub(crate) unseen: bool,
    /// A session that was given up without its device's word may be open until then.
    pub(crate) haunted_until: Option<BootTime>,
    /// The device opened it, and whoever asked for it has not taken it: a caller may leave in between.
    pub(crate) untaken: Option<SessionId>,
    /// A command was sent whose answer has not come.
    pub(crate) unanswered: bool,
    /// Which session is there, for who does not wait for the line.
    pub(crate) shown: CurrentSession,
}

/// The session that is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentSession(Arc<Mutex<Option<SessionId>>>);

impl CurrentSession {
    pub(crate) fn get(&self) -> Option<SessionId> {
        *self.0.lock()
    }

    pub(crate) fn set(&self, id: Option<SessionId>) {
        *self.0.lock() = id;
    }
}

impl Line {
    fn take(&mut self) -> Option<Session> {
        self.shown.set(None);
        self.session.take()
    }

    pub(crate) fn opened(&mut self, id: SessionId, now: BootTime) {
        self.untaken = None;
        self.epochs += 1;
        let epoch = self.epochs;
        self.loss = self.lost.take().map(|since| Loss { epoch, since }).or(self.loss);
        let epoch = Epoch { id: epoch, loss: self.loss };
        self.unseen |= epoch.begins_after_loss();
        self.shown.set(Some(id));
        self.session =
            Some(Session { id, epoch, doubtful: None, unanswered: None, closing: false, last_sent: now });
    }

    /// The device does not know it any more.
    pub(crate) fn refused(&mut self, now: BootTime) {
        if let Some(session) = self.take() {
            self.lost = self.lost.or(session.unanswered).or(Some(now));
        }
    }

    /// The device does not answer in it: it may still be open there until it was idle for `idle`.
    pub(crate) fn given_up(&mut self, idle: Duration, now: BootTime) {
        if let Some(session) = &mut self.session {
            session.doubtful = session.unanswered.or(Some(now));
        }
        self.left(idle);
    }

    /// We began to end it and did not hear the device's word: it was not lost, unless it had fallen silent before.
    pub(crate) fn left(&mut self, idle: Duration) {
        if let Some(session) = self.take() {
            self.lost = self.lost.or(session.doubtful);
            self.haunted_until = self.haunted_until.max(Some(session.last_sent + idle));
        }
    }

    /// It ended by itself, as nothing was said in it for so long: it was lost only if it had fallen silent before.
    pub(crate) fn idled_out(&mut self) {
        self.lost = self.lost.or(self.take().and_then(|session| session.doubtful));
    }

    /// We ended it, and the device said so.
    pub(crate) fn closed(&mut self) {
        self.take();
    }
}
