//! A TCP connection that is cut at the worst moment.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::fresh_address;
use crate::error::{PeerError, Result};

/// Stands before a server. What clients say always arrives, unless it is told otherwise; whether they hear an answer is ours to say.
#[derive(Debug)]
pub struct TcpFault {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct State {
    deaf: AtomicBool,
    shut: AtomicBool,
    /// The next that a client says is lost with its connection.
    loses: AtomicBool,
    /// Where clients get, once so many more things were said to the server.
    leads: Mutex<Option<(SocketAddr, u32)>>,
    lost_at: Mutex<Option<Instant>>,
}

impl State {
    /// Who gets what is said next by a client of `server`.
    fn leads(&self, server: SocketAddr) -> SocketAddr {
        match &mut *self.leads.lock() {
            Some((other, 0)) => *other,
            Some((_, left)) => {
                *left -= 1;
                server
            }
            None => server,
        }
    }

    /// Who is there for a new client of `server`.
    fn is_there(&self, server: SocketAddr) -> SocketAddr {
        match &*self.leads.lock() {
            Some((other, 0)) => *other,
            _ => server,
        }
    }
}

impl TcpFault {
    /// Before this server, at an address of its own.
    pub async fn before(server: SocketAddr) -> Result<Self> {
        Self::at(fresh_address(), server).await
    }

    /// Before this server, at another port of this address: its certificate may name that.
    pub async fn on(host: IpAddr, server: SocketAddr) -> Result<Self> {
        Self::at(SocketAddr::from((host, 0)), server).await
    }

    async fn at(address: SocketAddr, server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(address).await.map_err(PeerError::io("bind a proxy"))?;
        let address = listener.local_addr().map_err(PeerError::io("ask a proxy for its port"))?;
        let state = Arc::new(State::default());
        let mut tasks = JoinSet::new();
        let shared = state.clone();
        tasks.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if shared.shut.load(Ordering::SeqCst) {
                    continue;
                }
                let there = shared.is_there(server);
                if let Ok(stream) = TcpStream::connect(there).await {
                    streams.spawn(carry(client, stream, there, server, shared.clone()));
                }
                while streams.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, state, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the first answer of the server ends its connection instead of being heard: the request was served.
    pub fn cut_after_the_request(&self) {
        self.state.deaf.store(true, Ordering::SeqCst);
    }

    /// From now on nobody is let in, and who is in is cut off at the next byte.
    pub fn shut(&self) {
        self.state.shut.store(true, Ordering::SeqCst);
    }

    /// Once: the next that a client says is lost, and its connection ends.
    pub fn lose_the_next_request(&self) {
        self.state.loses.store(true, Ordering::SeqCst);
    }

    /// The address leads to another server, once so many more pieces were said to this one: a lease that was given anew, a duplicate
    /// address. Connections that stand end with the next piece, which nobody gets.
    pub fn lead_to(&self, other: SocketAddr, after: u32) {
        *self.state.leads.lock() = Some((other, after));
    }

    /// When that was.
    pub fn lost_at(&self) -> Option<Instant> {
        *self.state.lost_at.lock()
    }

    /// As it was.
    pub fn heal(&self) {
        self.state.loses.store(false, Ordering::SeqCst);
        self.state.deaf.store(false, Ordering::SeqCst);
        self.state.shut.store(false, Ordering::SeqCst);
    }
}

/// From the client to `there`, for as long as the address of `before` leads there.
async fn carry(
    mut client: TcpStream,
    mut server: TcpStream,
    there: SocketAddr,
    before: SocketAddr,
    state: Arc<State>,
) {
    let (mut asked, mut said) = ([0; 16_384], [0; 16_384]);
    let is = |what: &AtomicBool| what.load(Ordering::SeqCst);
    loop {
        let carried = tokio::select! {
            biased;
            read = client.read(&mut asked) => match read {
                Ok(read) if read > 0 && state.loses.swap(false, Ordering::SeqCst) => {
                    *state.lost_at.lock() = Some(Instant::now());
                    return;
                }
                Ok(read) if read > 0 && !is(&state.shut) && state.leads(before) == there => server.write_all(&asked[..read]).await,
                _ => return,
            },
            read = server.read(&mut said) => match read {
                // Cut here, the client cannot know whether it was served: it was.
                Ok(read) if read > 0 && !is(&state.shut) && !is(&state.deaf) => {
                    client.write_all(&said[..read]).await
                }
                _ => return,
            },
        };
        if carried.is_err() {
            return;
        }
    }
}
