//! For the tests of drivers: a clock that is set, a log that is read, and the HTTP of a cloud's stand-in.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::time::{BootTime, Clock, WallTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;

/// For how long the machine was up when a clock began.
const UP: Duration = Duration::from_secs(1_000);

/// A clock that goes as this machine's does, and is set forward.
#[derive(Debug)]
pub struct SetClock {
    began: std::time::Instant,
    wall: WallTime,
    ahead: AtomicU64,
}

impl SetClock {
    /// On its wall it is so many seconds after 1970.
    pub fn at(seconds: u64) -> Self {
        let (began, wall) = (std::time::Instant::now(), WallTime::from_millis(seconds * 1_000));
        Self { began, wall, ahead: AtomicU64::new(0) }
    }

    /// Sets it forward by so many seconds.
    pub fn ahead(&self, seconds: u64) {
        self.ahead.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn boot(&self) -> BootTime {
        let ahead = Duration::from_secs(self.ahead.load(Ordering::SeqCst));
        BootTime::from_boot(UP + self.began.elapsed() + ahead)
    }

    fn wall(&self) -> WallTime {
        self.wall.after(self.boot().since_boot().saturating_sub(UP))
    }
}

/// All that is logged by this thread while it is there.
#[derive(Debug)]
pub struct Log {
    written: Written,
    _heard: DefaultGuard,
}

#[derive(Clone, Debug, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Of every level.
    pub fn of_everything() -> Self {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        let log = Self { written, _heard: tracing::subscriber::set_default(subscriber) };
        tracing::trace!("heard");
        assert!(log.text().contains("heard"), "nothing is logged");
        log
    }

    /// The log so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.0.lock()).into_owned()
    }
}

/// Serves on this machine until the test is over: each request's head and body is answered so, as it goes over the wire; `None`: the
/// connection ends. Returns where.
pub async fn serve(answers: impl Fn(String, String) -> Option<String> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let endpoint = format!("http://{}", listener.local_addr().expect("bound"));
    let answers = Arc::new(answers);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answers = answers.clone();
            tokio::spawn(async move {
                while let Some((head, body)) = request(&mut stream).await {
                    let Some(answer) = answers(head, body) else { return };
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    endpoint
}

/// The head and the body of the next request; `None`: none comes.
pub async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = header(head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match stream.read_buf(&mut read).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// What that header of a head says.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = head.lines().filter_map(|line| line.split_once(": "));
    pairs.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
