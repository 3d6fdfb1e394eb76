//! Lines for the journal: each begins with its priority (sd-daemon(3)), so that `journalctl -p err` finds those that matter.

use std::io::{self, Write};
use std::os::fd::AsFd;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Priorities of syslog(3) that are told here.
const ERROR: u8 = 3;
const WARNING: u8 = 4;
const INFO: u8 = 6;
const DEBUG: u8 = 7;

/// Standard error, with priorities where the journal reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journal {
    is_read: bool,
}

impl Journal {
    /// Looks whether the journal reads standard error: systemd then names that very stream (`JOURNAL_STREAM`, systemd.exec(5)).
    pub(crate) fn of_process() -> Self {
        let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
        let here = rustix::fs::fstat(io::stderr().as_fd());
        Self { is_read: here.is_ok_and(|here| is(&named, here.st_dev, here.st_ino)) }
    }

    /// Writes words of an error that no log tells, such as why it does not start.
    pub(crate) fn error(self, text: &str) {
        // Where nothing can be written nobody can be told of it.
        drop(self.line(ERROR).write_all(format!("{text}\n").as_bytes()));
    }

    fn line(self, priority: u8) -> Line {
        Line { priority: self.is_read.then_some(priority) }
    }
}

/// Whether a stream is the named one: its device and its inode, in decimal.
fn is(named: &str, device: u64, inode: u64) -> bool {
    named.split_once(':') == Some((&device.to_string(), &inode.to_string()))
}

impl<'a> MakeWriter<'a> for Journal {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        self.line(INFO)
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line {
        self.line(match *meta.level() {
            Level::ERROR => ERROR,
            Level::WARN => WARNING,
            Level::INFO => INFO,
            Level::DEBUG | Level::TRACE => DEBUG,
        })
    }
}

/// Writes what one event tells.
#[derive(Debug)]
pub(crate) struct Line {
    priority: Option<u8>,
}

impl Line {
    fn prefixed(&self, text: &[u8]) -> Vec<u8> {
        let Some(priority) = self.priority else { return text.to_vec() };
        // The journal takes each line for an entry of its own.
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.flat_map(|line| [format!("<{priority}>").into_bytes(), line.to_vec()].concat()).collect()
    }
}

impl Write for Line {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        // At once: another thread's line must not come between a priority and its text.
        io::stderr().write_all(&self.prefixed(text)).map(|()| text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_begins_with_its_priority_where_the_journal_reads() {
        let told = |is_read, text: &[u8]| Journal { is_read }.line(ERROR).prefixed(text);
        assert_eq!(
            told(true, b"the store is damaged:\n  byte 7\n"),
            b"<3>the store is damaged:\n<3>  byte 7\n"
        );
        assert_eq!(told(false, b"the store\n"), b"the store\n");
        assert_eq!(told(true, b""), b"");
    }

    #[test]
    fn the_stream_must_be_the_one_that_is_named() {
        assert!(is("8:4711", 8, 4_711));
        for other in ["", "8", "8:", "8:4712", "9:4711", "08:4711", "8:4711:1"] {
            assert!(!is(other, 8, 4_711), "{other:?}");
        }
    }
}
