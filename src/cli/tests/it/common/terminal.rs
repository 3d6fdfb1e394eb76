//! A terminal: a pseudo-terminal around the command, and a small screen that shows what a person would see.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// A command on a terminal of its own.
pub struct Terminal {
    child: Child,
    keyboard: File,
    columns: usize,
    output: mpsc::UnboundedReceiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Terminal {
    /// Starts the command on a terminal of 80 columns and 24 lines.
    pub fn start(command: Command) -> Self {
        Self::of(command, 80, 24)
    }

    /// Starts the command on a terminal of that size.
    pub fn of(mut command: Command, columns: u16, lines: u16) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let size = Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("sized");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let end = || -> Stdio {
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            rustix::fs::open(&*name, flags, Mode::empty()).expect("its other end").into()
        };
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        let child = command.spawn().expect("it runs");
        // The command's ends must be the only ones, or the output would never end.
        drop(command);
        let keyboard = File::from(master.try_clone().expect("cloned"));
        Self { child, keyboard, columns: columns.into(), output: read(master), seen: Vec::new() }
    }

    /// Whether it shows what is typed.
    pub fn echoes(&self) -> bool {
        echoes(&self.keyboard)
    }

    /// Its keyboard, which stays when the command has ended.
    pub fn keyboard(&self) -> Keyboard {
        Keyboard(self.keyboard.try_clone().expect("cloned"))
    }

    /// Makes the window narrower, or wider.
    pub fn resize(&mut self, columns: u16, lines: u16) {
        let size = Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).expect("sized");
    }

    /// Waits until the output holds `text`.
    pub async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let more = tokio::time::timeout(Duration::from_secs(120), self.output.recv()).await;
            let more =
                more.unwrap_or_else(|_| panic!("no {text:?} in {:?}", String::from_utf8_lossy(&self.seen)));
            self.seen.extend(more.unwrap_or_else(|| panic!("ended without {text:?}")));
        }
    }

    /// Types.
    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("typed");
    }

    /// Interrupts it, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signals(Signal::INT);
    }

    /// Sends it that.
    pub fn signals(&self, signal: Signal) {
        let id =
            self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("it runs"), signal).expect("sent");
    }

    /// Waits for its end: the exit code, and all it wrote.
    pub async fn end(self) -> (i32, String) {
        let columns = self.columns;
        let (code, written) = self.written().await;
        // Whatever it was, no line was wider than the terminal.
        drop(screen(&written, columns));
        (code, written)
    }

    /// The same of a window whose size changed.
    pub async fn written(mut self) -> (i32, String) {
        let ended = tokio::time::timeout(Duration::from_secs(120), self.child.wait()).await;
        let code = ended.expect("it ends").expect("it ran").code().expect("it exits");
        while let Some(more) = self.output.recv().await {
            self.seen.extend(more);
        }
        (code, String::from_utf8(self.seen).expect("text"))
    }
}

/// A terminal without its command.
pub struct Keyboard(File);

impl Keyboard {
    /// Whether it shows what is typed.
    pub fn echoes(&self) -> bool {
        echoes(&self.0)
    }
}

fn echoes(terminal: &File) -> bool {
    tcgetattr(terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO)
}

fn read(master: OwnedFd) -> mpsc::UnboundedReceiver<Vec<u8>> {
    let (tell, told) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut master = File::from(master);
        let mut buffer = [0; 4096];
        // Linux answers EIO once nobody has the other end open any more.
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            if tell.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    told
}

/// What stands on a screen of so many columns after all that was written, without colours.
pub fn screen(written: &str, columns: usize) -> String {
    let (mut lines, mut row, mut column) = (vec![String::new()], 0_usize, 0_usize);
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                column = 0;
                if row == lines.len() {
                    lines.push(String::new());
                }
            }
            '\x1b' => {
                assert_eq!(chars.next(), Some('['), "only control sequences: {written:?}");
                let mut number = String::new();
                let command = loop {
                    match chars.next().expect("a whole sequence") {
                        c @ ('0'..='9' | ';') => number.push(c),
                        c => break c,
                    }
                };
                match command {
                    'A' => {
                        row = row.checked_sub(number.parse().expect("a count")).expect("not above the screen")
                    }
                    'J' => {
                        lines.truncate(row + 1);
                        lines[row] = lines[row].chars().take(column).collect();
                    }
                    'm' => {}
                    other => panic!("{other:?} is not known here: {written:?}"),
                }
            }
            c => {
                let mut line: Vec<char> = lines[row].chars().collect();
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                lines[row] = line.into_iter().collect();
                column += 1;
                assert!(column <= columns, "no line is wider than {columns}: {:?}", lines[row]);
            }
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}
