//! A caller's connection, whichever way it came.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::guard::peer::Peer;

/// A connection whose other end is known, and its places until it is closed.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) way: Way,
    pub(crate) peer: Arc<Peer>,
    pub(crate) _places: [OwnedSemaphorePermit; 2],
}

/// What carries it.
#[derive(Debug)]
pub(crate) enum Way {
    Unix(UnixStream),
    Loopback(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
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
        match &mut $self.get_mut().way {
            Way::Unix($stream) => $does,
            Way::Loopback($stream) => $does,
            Way::Tls($stream) => $does,
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(context))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(context, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.way {
            Way::Unix(stream) => stream.is_write_vectored(),
            Way::Loopback(stream) => stream.is_write_vectored(),
            Way::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
