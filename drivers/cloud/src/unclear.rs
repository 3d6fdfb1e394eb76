//! Commands that were not answered, or whose answer does not say what became of them, while their far side may still take them.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use picket_core::time::BootTime;

/// Until when each of them may be taken.
#[derive(Clone, Debug, Default)]
pub struct Unclear(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    commands: Vec<(u64, BootTime)>,
    /// No number is given twice: one that waits for longer than its command may be taken ends itself alone.
    next: u64,
}

/// One command while its answer is waited for.
#[derive(Debug)]
pub struct Sending {
    of: Unclear,
    id: u64,
}

impl Unclear {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock()
    }

    /// One is about to be sent, which may be taken until then. A caller who goes away before the answer leaves it unclear.
    pub fn sending(&self, until: BootTime) -> Sending {
        let mut open = self.open();
        let id = open.next;
        open.next += 1;
        open.commands.push((id, until));
        Sending { of: self.clone(), id }
    }

    /// The last moment at which one of them may be taken, if that is yet to come.
    pub fn until(&self, now: BootTime) -> Option<BootTime> {
        let mut open = self.open();
        open.commands.retain(|(_, until)| *until > now);
        open.commands.iter().map(|(_, until)| *until).max()
    }
}

impl Sending {
    /// Its end is known.
    pub fn answered(self) {
        self.of.open().commands.retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_not_answered_is_unclear_until_it_cannot_be_taken() {
        let at = |seconds| BootTime::default() + Duration::from_secs(seconds);
        let unclear = Unclear::default();
        let (first, second) = (unclear.sending(at(100)), unclear.sending(at(200)));
        assert_eq!(unclear.until(at(1)), Some(at(200)));
        second.answered();
        assert_eq!(unclear.until(at(1)), Some(at(100)));
        let third = unclear.sending(at(50));
        first.answered();
        assert_eq!(unclear.until(at(1)), Some(at(50)));
        assert_eq!(unclear.until(at(50)), None);
        drop(third);
        // Its answer comes after all.
        let (late, next) = (unclear.sending(at(60)), unclear.sending(at(300)));
        assert_eq!(unclear.until(at(400)), None);
        let last = unclear.sending(at(500));
        late.answered();
        next.answered();
        assert_eq!(unclear.until(at(401)), Some(at(500)));
        drop(last);
    }
}
