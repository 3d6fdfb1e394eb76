//! What the driver remembers of its session with a device.

use std::time::Duration;

use picket_core::power::{Epoch, EpochOrigin};
use picket_core::time::BootTime;

use crate::wire::SessionId;

/// One session that is, or may be, open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) epoch: Epoch,
    /// The last call in it got no answer. If the device still knows it, the device did not restart.
    pub(crate) doubtful: bool,
    /// It was made after a loss, and nothing was read in it yet.
    pub(crate) unseen: bool,
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
    lost: bool,
    /// A session that was given up without its device's word may be open until then.
    pub(crate) haunted_until: Option<BootTime>,
    /// A command was sent whose answer has not come.
    pub(crate) unanswered: bool,
}

impl Line {
    pub(crate) fn opened(&mut self, id: SessionId, now: BootTime) {
        self.epochs += 1;
        let origin = if std::mem::take(&mut self.lost) { EpochOrigin::AfterLoss } else { EpochOrigin::Fresh };
        let epoch = Epoch { id: self.epochs, origin };
        let unseen = origin == EpochOrigin::AfterLoss;
        self.session = Some(Session { id, epoch, doubtful: false, unseen, closing: false, last_sent: now });
    }

    /// The device does not know it any more.
    pub(crate) fn refused(&mut self) {
        if self.session.take().is_some() {
            self.lost = true;
        }
    }

    /// The device does not answer in it: it may still be open there until it was idle for `idle`.
    pub(crate) fn given_up(&mut self, idle: Duration) {
        self.lost |= self.session.is_some();
        self.left(idle);
    }

    /// We began to end it and did not hear the device's word: it was not lost, unless it had fallen silent before.
    pub(crate) fn left(&mut self, idle: Duration) {
        if let Some(session) = self.session.take() {
            self.lost |= session.doubtful;
            self.haunted_until = self.haunted_until.max(Some(session.last_sent + idle));
        }
    }

    /// It ended by itself, as nothing was said in it for so long: it was lost only if it had fallen silent before.
    pub(crate) fn idled_out(&mut self) {
        self.lost |= self.session.take().is_some_and(|session| session.doubtful);
    }

    /// We ended it, and the device said so.
    pub(crate) fn closed(&mut self) {
        self.session = None;
    }
}
