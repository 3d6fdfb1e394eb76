//! The keeper: a process outside of the gateway that ends a program with all its descendants (S8).
//!
//! The keeper is forked between the gateway and the program:
//!
//! ```text
//! gateway ── keeper ── program ── its children
//! ```
//!
//! The keeper kills when the program has ended, when the program's time is over, and when the lifeline breaks: a pipe whose only other
//! end is the gateway's. So the gateway's death, its standing still, and the drop of the task that started the program all end the same way.
//! The keeper is the subreaper of everything below it (prctl(2), `PR_SET_CHILD_SUBREAPER`). A descendant that began a session of its own, or whose
//! parent ended, becomes the keeper's child instead of init's. The keeper ends last, as the program ended: whoever waited for it
//! knows that nothing of the program is left.
//!
//! **What escapes.** What the program asked of another daemon (systemd, a container runtime, an array) is not below the keeper.
//! A set-user-id program of another user cannot be killed by it: the keeper waits for its end, and the run is not seen to end.
//! Where somebody kills the keeper itself, the program dies with it (`PR_SET_PDEATHSIG`), and the program's own children do not.
//!
//! The keeper is a copy of the gateway that executes no program of its own, so that there is none to install. It lives between fork and
//! exec, where only what is async-signal-safe may be done (signal-safety(7)): it allocates nothing, takes no lock, and cannot panic.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{
    self, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, setpgid,
    setrlimit, setsid, wait,
};
use rustix::time::{ClockId, clock_gettime};
use tokio::process::Command;

/// How often the keeper looks at the clock: a timer would stand still while the machine sleeps.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// How long the keeper waits for those whom it killed before it kills whoever is there then.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// While this is there the program may run. Dropped: the keeper kills it.
#[derive(Debug)]
pub(crate) struct Lifeline {
    _end: PipeWriter,
}

/// The time since boot, in which a sleep of the machine counts.
pub(crate) fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let (secs, nanos) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(secs.unwrap_or_default(), nanos.unwrap_or_default())
}

/// Puts the program under a keeper, which ends it at `end` ([`since_boot`]) at the latest, and does not start it after that. What
/// is spawned by the command is the keeper; it ends as the program ended.
///
/// # Errors
/// There is no pipe, or the kernel tells nobody its children.
#[allow(unsafe_code)]
pub(crate) fn put_under(command: &mut Command, end: Duration) -> io::Result<Lifeline> {
    if !Path::new("/proc/thread-self/children").exists() {
        let why = "there is no /proc/thread-self/children (Linux with CONFIG_PROC_CHILDREN): nothing could end what it starts";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let (lifeline, held) = io::pipe()?;
    // SAFETY: between fork and exec only what is async-signal-safe may be done. `fork_keeper` makes system calls alone.
    unsafe {
        command.pre_exec(move || fork_keeper(&lifeline, end));
    }
    Ok(Lifeline { _end: held })
}

/// Returns in the process that becomes the program; the process that called it becomes the keeper.
#[allow(unsafe_code)]
fn fork_keeper(lifeline: &PipeReader, end: Duration) -> io::Result<()> {
    // The gateway may have stood still since the program was allowed.
    if since_boot() >= end {
        return Err(Errno::TIMEDOUT.into());
    }
    // A terminal's signals, and its end, do not reach the keeper.
    setsid()?;
    let keeper = getpid();
    process::set_child_subreaper(Some(keeper))?;
    // Opened here: without this list nothing could be ended, so nothing is begun.
    let children = open(c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let deaths = deaths()?;
    // SAFETY: this process has one thread; both sides go on with system calls alone.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // The program may signal its own group: the keeper is not in it.
            setpgid(None, None)?;
            process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The keeper may have died before the kernel knew.
            if getppid() == Some(keeper) { Ok(()) } else { Err(Errno::SRCH.into()) }
        }
        program => {
            let Some(program) = Pid::from_raw(program) else { end_as(None) };
            keep(program, lifeline.as_fd(), &children, &deaths, end)
        }
    }
}

/// The keeper's life.
fn keep(program: Pid, lifeline: BorrowedFd<'_>, children: &OwnedFd, deaths: &OwnedFd, end: Duration) -> ! {
    block_signals();
    close_all_but([lifeline.as_raw_fd(), children.as_raw_fd(), deaths.as_raw_fd()]);
    // For `ps`. A keeper without its name keeps as well.
    let _ = rustix::thread::set_name(c"picket-keeper");
    let mut status = None;
    loop {
        bury(program, &mut status);
        if status.is_some() || is_broken(lifeline) || since_boot() >= end {
            break;
        }
        let _ = poll(
            &mut [PollFd::new(&lifeline, PollFlags::IN), PollFd::new(deaths, PollFlags::IN)],
            Some(&LOOK),
        );
        drain(deaths);
    }
    // Whoever is alive below is a child of the keeper's, or below one: when no child is left, nobody is.
    while bury(program, &mut status) {
        kill_all(children);
        let _ = poll(&mut [PollFd::new(deaths, PollFlags::IN)], Some(&ROUND));
        drain(deaths);
    }
    end_as(status)
}

/// Takes note of all who died. Whether any child is left.
fn bury(program: Pid, status: &mut Option<WaitStatus>) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, ended))) if pid == program => *status = Some(ended),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Kills the keeper's children. Nobody but the keeper waits for them, so that their numbers are still theirs.
fn kill_all(children: &OwnedFd) {
    let mut list = [0_u8; 4096];
    let read = rustix::io::pread(children, &mut list, 0).unwrap_or_default();
    let mut number = 0_i32;
    for byte in list.iter().take(read) {
        if byte.is_ascii_digit() {
            number = number.saturating_mul(10).saturating_add(i32::from(byte - b'0'));
            continue;
        }
        // Only what a blank follows is whole: the list may be longer than what was read of it.
        if let Some(child) = Pid::from_raw(number) {
            let _ = kill_process(child, Signal::KILL);
        }
        number = 0;
    }
}

fn is_broken(lifeline: BorrowedFd<'_>) -> bool {
    let mut end = [PollFd::new(&lifeline, PollFlags::IN)];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Nothing is ever written to it.
    poll(&mut end, Some(&none)).is_ok_and(|ready| ready > 0)
}

/// Becomes readable when a child dies, once signals are blocked.
#[allow(unsafe_code)]
fn deaths() -> io::Result<OwnedFd> {
    // SAFETY: system calls on values of this frame, each async-signal-safe; the descriptor is new and belongs to nobody else.
    unsafe {
        let mut child_died = std::mem::zeroed();
        libc::sigemptyset(&raw mut child_died);
        libc::sigaddset(&raw mut child_died, libc::SIGCHLD);
        match libc::signalfd(-1, &raw const child_died, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// No signal ends the keeper but the one that cannot be blocked.
#[allow(unsafe_code)]
fn block_signals() {
    // SAFETY: system calls on values of this frame; each is async-signal-safe.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        // Under a gateway that was started with this signal ignored, children would vanish unseen.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

fn drain(deaths: &OwnedFd) {
    let mut heard = [0_u8; 512];
    while rustix::io::read(deaths, &mut heard).is_ok_and(|read| read > 0) {}
}

/// What was open in the gateway stays open in no keeper: neither its listeners and locks, nor the program's pipes.
#[allow(unsafe_code)]
fn close_all_but(mut kept: [RawFd; 3]) {
    kept.sort_unstable();
    let mut from = 0;
    for upto in kept.into_iter().chain([RawFd::MAX]) {
        if upto > from {
            // As a number: glibc has a function for it from 2.34 on, and Picket runs from 2.28 on.
            // SAFETY: nothing of this process uses what is closed.
            let closed = unsafe { libc::syscall(libc::SYS_close_range, from, upto - 1, 0) };
            if closed != 0 {
                // Linux before 5.9.
                let most = process::getrlimit(Resource::Nofile).current.unwrap_or(65_536);
                let last = upto.min(RawFd::try_from(most).unwrap_or(RawFd::MAX));
                // SAFETY: as above.
                (from..last).for_each(|fd| unsafe {
                    libc::close(fd);
                });
            }
        }
        from = upto.saturating_add(1);
    }
}

/// Ends as the program ended.
#[allow(unsafe_code)]
fn end_as(status: Option<WaitStatus>) -> ! {
    if let Some(signal) = status.and_then(|status| status.terminating_signal()) {
        // The program's core was written, if any: the keeper's would have the gateway's secrets.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // SAFETY: system calls on values of this frame; each is async-signal-safe.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
    }
    let code = status.and_then(|status| status.exit_status()).unwrap_or(libc::EXIT_FAILURE);
    // SAFETY: ends this process, and runs nothing before.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests;
