//! Faults of a BMC, set while it runs.

use std::path::Path;
use std::time::Duration;

use crate::error::{PeerError, Result};

/// A fault. Each counts from the next command on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Knob {
    /// The off is acknowledged and nothing happens.
    IgnoreOff,
    /// The off is acknowledged, nothing happens, and from then on the BMC says off.
    LieOff,
    /// Power commands fail.
    Fail,
    /// Between the acknowledgement of an off and the fall.
    OffDelay(Duration),
    /// The BMC hangs that long in each command about power.
    Slow(Duration),
    /// What it says of power, whatever is true.
    StuckPower(bool),
    /// So many commands are answered "node busy" (0xC0).
    Busy(u32),
    /// So many answers are lost after the command was carried out.
    DropAnswers(u32),
    /// An off while off is refused with "not supported in present state" (0xD5).
    RefuseAgain,
    /// New sessions are refused for want of resources.
    NoSessions,
    /// So many RAKP messages 4 are lost.
    DropRakp4(u32),
    /// The most that a session gets: 2 user, 3 operator, 4 administrator.
    Privilege(u8),
    /// Restore policy is not supported after all.
    NoPolicy,
    /// The button lock is not supported after all.
    NoButtons,
    /// The watchdog is not supported after all.
    NoWatchdog,
}

impl Knob {
    /// The file that stands for it.
    pub(super) fn file(self) -> &'static str {
        match self {
            Knob::IgnoreOff => "ignore_off",
            Knob::LieOff => "lie_off",
            Knob::Fail => "fail",
            Knob::OffDelay(_) => "off_delay",
            Knob::Slow(_) => "slow",
            Knob::StuckPower(_) => "stuck_get",
            Knob::Busy(_) => "busy",
            Knob::DropAnswers(_) => "drop",
            Knob::RefuseAgain => "refuse_again",
            Knob::NoSessions => "no_sessions",
            Knob::DropRakp4(_) => "drop_rakp4",
            Knob::Privilege(_) => "privilege",
            Knob::NoPolicy => "no_policy",
            Knob::NoButtons => "no_buttons",
            Knob::NoWatchdog => "no_watchdog",
        }
    }

    fn content(self) -> String {
        match self {
            Knob::OffDelay(time) | Knob::Slow(time) => time.as_secs_f64().to_string(),
            Knob::StuckPower(on) => u8::from(on).to_string(),
            Knob::Privilege(level) => level.to_string(),
            Knob::Busy(n) | Knob::DropAnswers(n) | Knob::DropRakp4(n) => n.to_string(),
            _ => "1".to_owned(),
        }
    }
}

/// Sets a fault in the directory of a peer that knows the faults named `known`.
pub(super) fn set(directory: &Path, peer: &'static str, known: &[&str], knob: Knob) -> Result<()> {
    if !known.contains(&knob.file()) {
        return Err(PeerError::UnknownKnob { peer, knob: knob.file() });
    }
    write_whole(&directory.join(knob.file()), &knob.content())
}

/// Takes a fault away.
pub(super) fn clear(directory: &Path, knob: Knob) -> Result<()> {
    match std::fs::remove_file(directory.join(knob.file())) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(PeerError::Io { what: format!("clear {knob:?}"), source })
        }
        _ => Ok(()),
    }
}

/// A peer reads the file at any moment: it must never see half of it.
pub(super) fn write_whole(path: &Path, content: &str) -> Result<()> {
    let fresh = path.with_extension("fresh");
    std::fs::write(&fresh, content)
        .and_then(|()| std::fs::rename(&fresh, path))
        .map_err(PeerError::io(format!("write {}", path.display())))
}
