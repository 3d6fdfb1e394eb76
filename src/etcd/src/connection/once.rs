//! A connection that is made once: a channel of tonic's makes another one by itself, and whoever answers there was not looked at.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use etcd_client::Channel;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::codegen::http::Uri;
use tonic::transport::Endpoint as Address;

/// How often its channel wanted a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Once(Arc<AtomicU8>);

impl Once {
    /// Whether the connection has ended, and the channel wanted another one.
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 1
    }

    fn begin(&self) -> io::Result<()> {
        let before =
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| Some(count.saturating_add(1)));
        match before {
            Ok(0) => Ok(()),
            _ => {
                Err(io::Error::new(io::ErrorKind::NotConnected, "the connection has ended: it is made anew"))
            }
        }
    }
}

/// A channel to there, which connects when it is first used, and never again.
pub(super) fn channel(address: &Address, once: &Once) -> Channel {
    let once = once.clone();
    let connect = tower::service_fn(move |to: Uri| {
        let once = once.clone();
        async move {
            once.begin()?;
            let host = to.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
            let is_tls = to.scheme_str() == Some("https");
            let port = to.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
            let stream = TcpStream::connect((host, port)).await?;
            // A request is small, and waits for its answer.
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(TokioIo::new(stream))
        }
    });
    Channel::Tonic(address.connect_with_connector_lazy(connect))
}
