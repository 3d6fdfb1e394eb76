//! A program of the operator's dies with the gateway.

use std::io;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use tokio::process::Command;

/// Lets the kernel kill the program when the thread that starts it ends (`PR_SET_PDEATHSIG`, prctl(2)).
///
/// It must be started from a thread that lives as long as the gateway: a worker of the runtime, never a blocking one.
/// The kernel forgets it where the program is set-user-id, and it does not reach what the program starts itself;
/// systemd's `KillMode=control-group`, its default, does.
#[allow(unsafe_code)]
pub(crate) fn with_us(command: &mut Command) {
    let us = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have died before the kernel knew.
        if getppid() == Some(us) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()))
        }
    };
    // SAFETY: between fork and exec only what is async-signal-safe may be done. The closure makes two system calls,
    // through rustix, which makes them directly; it allocates nothing, takes no lock and touches no memory but its own.
    unsafe {
        command.pre_exec(prepare);
    }
}
