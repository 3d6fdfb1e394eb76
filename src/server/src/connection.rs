//! A caller's connection, whichever way it came.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::transport::server::Connected;

use crate::guard::peer::Peer;
use crate::tls::trusted_connections::TrustedConnection;

/// A connection whose other end is known, and its slots until it is closed.
#[derive(Debug)]
pub(crate) struct Connection {
    transport: Transport,
    peer: Arc<Peer>,
    /// Ends when nothing vouches for the caller any more.
    over: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    _slots: Vec<OwnedSemaphorePermit>,
}

/// What carries it.
#[derive(Debug)]
pub(crate) enum Transport {
    Unix(UnixStream),
    Loopback(TcpStream),
    Tls(Box<TlsStream<TcpStream>>, Arc<TrustedConnection>),
}

impl Connection {
    pub(crate) fn new(transport: Transport, peer: Peer, slots: Vec<OwnedSemaphorePermit>) -> Self {
        let over = match &transport {
            Transport::Tls(_, trusted) => Some(Box::pin(trusted.over.clone().cancelled_owned())),
            Transport::Unix(_) | Transport::Loopback(_) => None,
        };
        Self { transport, peer: Arc::new(peer), over, _slots: slots }
    }

    fn stands(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let is_over = self.over.as_mut().is_some_and(|over| over.as_mut().poll(context).is_ready());
        if is_over {
            let why = "nothing vouches for the caller any more";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
        }
        Ok(())
    }
}

impl Connected for Connection {
    type ConnectInfo = Arc<Peer>;

    fn connect_info(&self) -> Arc<Peer> {
        self.peer.clone()
    }
}

/// Does the same with each way.
macro_rules! each {
    ($self:ident, $stream:ident => $does:expr) => {
        match &mut $self.get_mut().transport {
            Transport::Unix($stream) => $does,
            Transport::Loopback($stream) => $does,
            Transport::Tls($stream, _) => $does,
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stands(context)?;
        each!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stands(context)?;
        each!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stands(context)?;
        each!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stands(context)?;
        each!(self, stream => Pin::new(stream).poll_write_vectored(context, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Unix(stream) => stream.is_write_vectored(),
            Transport::Loopback(stream) => stream.is_write_vectored(),
            Transport::Tls(stream, _) => stream.is_write_vectored(),
        }
    }
}
