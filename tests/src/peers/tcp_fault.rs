//! A TCP connection that is cut at the worst moment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::fresh_address;
use crate::error::{PeerError, Result};

/// Stands before a server. What clients say always arrives; whether they hear an answer is ours to say.
#[derive(Debug)]
pub struct TcpFault {
    address: SocketAddr,
    deaf: Arc<AtomicBool>,
    shut: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl TcpFault {
    /// Before this server, at an address of its own.
    pub async fn before(server: SocketAddr) -> Result<Self> {
        let address = fresh_address();
        let listener = TcpListener::bind(address).await.map_err(PeerError::io("bind a proxy"))?;
        let (deaf, shut) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut tasks = JoinSet::new();
        let (deafened, closed) = (deaf.clone(), shut.clone());
        tasks.spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if closed.load(Ordering::SeqCst) {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(server).await {
                    streams.spawn(carry(client, server, deafened.clone(), closed.clone()));
                }
                while streams.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, deaf, shut, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the first answer of the server ends its connection instead of being heard: the request was served.
    pub fn cut_after_the_request(&self) {
        self.deaf.store(true, Ordering::SeqCst);
    }

    /// From now on nobody is let in, and who is in is cut off at the next byte.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    /// As it was.
    pub fn heal(&self) {
        self.deaf.store(false, Ordering::SeqCst);
        self.shut.store(false, Ordering::SeqCst);
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, deaf: Arc<AtomicBool>, shut: Arc<AtomicBool>) {
    let (mut asked, mut said) = ([0; 16_384], [0; 16_384]);
    loop {
        let carried = tokio::select! {
            biased;
            read = client.read(&mut asked) => match read {
                Ok(read) if read > 0 && !shut.load(Ordering::SeqCst) => server.write_all(&asked[..read]).await,
                _ => return,
            },
            read = server.read(&mut said) => match read {
                // Cut here, the client cannot know whether it was served: it was.
                Ok(read) if read > 0 && !shut.load(Ordering::SeqCst) && !deaf.load(Ordering::SeqCst) => {
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
