//! Who sits behind a process, for people: the account that logged in, also behind sudo.
//!
//! # Invariants
//!
//! - Nothing is granted by what is found here, and nothing waits for it: what cannot be had is left out.
//! - The environment of the caller (`SUDO_USER`) is not asked: the caller chooses it.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use picket_permissions::account;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

/// How long the names of accounts may take. A disk that hangs keeps no caller out.
const NAMING: Duration = Duration::from_millis(250);
/// So many look for names at once: a disk that hangs takes no more threads.
static TURNS: Semaphore = Semaphore::const_new(2);
/// Nobody logged in: a service, a timer, a container (audit_get_loginuid of the kernel: `AUDIT_UID_UNSET`).
const UNSET: u32 = u32::MAX;
/// Ticks in a second of what /proc says of times (proc_pid_stat(5): `_SC_CLK_TCK`, 100 wherever Linux runs).
const TICKS: u64 = 100;

/// The user who logged in, of the process that connected. `None`: nobody did, or it is not known surely.
pub(crate) fn of(stream: &UnixStream, pid: Option<i32>) -> Option<u32> {
    let pid = Pid::from_raw(pid?)?;
    let process = match peer(stream.as_raw_fd()) {
        Ok(process) => process,
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => older(pid)?,
        // The process has ended: its number may be another one's already.
        Err(_) => return None,
    };
    user(Path::new("/proc"), pid, &process)
}

/// What /proc says of the login of that process.
fn user(proc: &Path, pid: Pid, process: &OwnedFd) -> Option<u32> {
    let file = proc.join(pid.as_raw_pid().to_string()).join("loginuid");
    let login = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    // It lives still, so what was read was read of this process: its number has not been given to another one.
    (login != UNSET && lives(process)).then_some(login)
}

/// The descriptor of a process tells of its end by being readable (pidfd_open(2)).
fn lives(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ended| ended == 0)
}

/// The process that connected, whatever became of its number (`SO_PEERPIDFD`, since Linux 6.5).
///
/// # Errors
/// `ENOPROTOOPT`: the kernel is an older one. Anything else: the process is gone.
#[allow(unsafe_code)]
fn peer(stream: RawFd) -> std::io::Result<OwnedFd> {
    let mut found: RawFd = -1;
    let mut length: libc::socklen_t = 4;
    // SAFETY: the kernel writes at most `length` bytes, which `found` has, and the number of them to `length`. The stream's
    // descriptor is open while its owner is borrowed.
    let answer = unsafe {
        libc::getsockopt(
            stream,
            libc::SOL_SOCKET,
            libc::SO_PEERPIDFD,
            std::ptr::from_mut(&mut found).cast(),
            &mut length,
        )
    };
    if answer != 0 {
        return Err(std::io::Error::last_os_error());
    }
    if found < 0 {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(found) })
}

/// The process of that number, on a kernel that does not tell which one connected; not one that has begun only now.
fn older(pid: Pid) -> Option<OwnedFd> {
    let now = clock_gettime(ClockId::Boottime);
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let now =
        u64::try_from(now.tv_sec).ok()? * TICKS + u64::try_from(now.tv_nsec).ok()? * TICKS / 1_000_000_000;
    (began(&stat)? <= now).then_some(process)
}

/// When a process began, in ticks since the machine's start: the 22nd field, after a name that may hold any letter.
fn began(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

/// How a process is told of: `alice`, or `alice as root` where another one logged in. `None`: no name is known.
pub(crate) async fn shown(user: u32, login: Option<u32>) -> Option<Arc<str>> {
    let named = async {
        let turn = TURNS.acquire().await.ok()?;
        let find = move || {
            let _turn = turn;
            words(user, login, account)
        };
        tokio::task::spawn_blocking(find).await.ok().flatten()
    };
    // Without names the numbers are told.
    tokio::time::timeout(NAMING, named).await.unwrap_or_else(|_| words(user, login, |_| None))
}

fn words(user: u32, login: Option<u32>, account: impl Fn(u32) -> Option<String>) -> Option<Arc<str>> {
    let name = |user: u32| account(user).unwrap_or_else(|| format!("uid:{user}"));
    match login {
        Some(login) if login != user => Some(format!("{} as {}", name(login), name(user)).into()),
        _ => account(user).map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A machine on which one process, our child, was begun by who logged in as 1000.
    struct Scene {
        proc: tempfile::TempDir,
        child: std::process::Child,
    }

    impl Scene {
        fn new(login: &str) -> Self {
            let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
            let proc = tempfile::tempdir().expect("a directory");
            let of = proc.path().join(child.id().to_string());
            std::fs::create_dir(&of).expect("made");
            std::fs::write(of.join("loginuid"), login).expect("written");
            Self { proc, child }
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.child)
        }

        fn user(&self, process: &OwnedFd) -> Option<u32> {
            user(self.proc.path(), self.pid(), process)
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            // It may have ended already.
            let _ = (self.child.kill(), self.child.wait());
        }
    }

    #[test]
    fn the_login_of_a_process_counts_while_the_process_lives() {
        let mut scene = Scene::new("1000\n");
        let process = older(scene.pid()).expect("it has begun");
        assert_eq!(scene.user(&process), Some(1000));
        scene.child.kill().expect("it lives");
        scene.child.wait().expect("it ended");
        assert_eq!(scene.user(&process), None, "its number may be another one's by now");
    }

    #[test]
    fn a_service_has_no_login() {
        let scene = Scene::new("4294967295");
        let process = older(scene.pid()).expect("it has begun");
        assert_eq!(scene.user(&process), None);
    }

    #[test]
    fn the_beginning_of_a_process_stands_behind_any_name() {
        let fields: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let stat = format!("7 (a) b) S {}\n", fields.join(" "));
        assert_eq!(began(&stat), Some(22));
        assert_eq!((began("7 (a) S 1"), began("")), (None, None));
    }

    #[tokio::test]
    async fn the_kernel_tells_which_process_connected() {
        let (stream, _other) = UnixStream::pair().expect("a pair");
        match peer(stream.as_raw_fd()) {
            Ok(process) => assert!(lives(&process)),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT), "{error}"),
        }
    }

    #[test]
    fn who_typed_it_behind_sudo_is_named_beside_the_user_who_counts() {
        let account = |user: u32| [(0, "root"), (1000, "alice")].into_iter().find(|(uid, _)| *uid == user);
        let said = |user, login| words(user, login, |user| account(user).map(|(_, name)| name.to_owned()));
        for (user, login, want) in [
            (1000, Some(1000), Some("alice")),
            (1000, None, Some("alice")),
            (0, Some(1000), Some("alice as root")),
            (0, Some(70_012), Some("uid:70012 as root")),
            (998, Some(1000), Some("alice as uid:998")),
            (998, None, None),
        ] {
            assert_eq!(said(user, login).as_deref(), want, "{user} {login:?}");
        }
    }
}
