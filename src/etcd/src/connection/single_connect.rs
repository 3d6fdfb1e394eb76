//! A connection that is made once: a channel of tonic's makes another one by itself, and whoever answers there was not looked at.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint as Address};
use tower::Service;

/// How often its channel wanted a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct SingleConnect(Arc<AtomicU8>);

impl SingleConnect {
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

/// A channel to there, which connects when it is first used, within `dial`, and never again. A name may have several addresses, of which
/// one that is silent must not use up the time: hyper's connector divides it among them.
pub(super) fn channel(address: &Address, single_connect: &SingleConnect, dial: Duration) -> Channel {
    let single_connect = single_connect.clone();
    let mut tcp = HttpConnector::new();
    // TLS is put around it by tonic.
    tcp.enforce_http(false);
    // A request is small, and waits for its answer.
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(dial));
    // So long the first of IPv6 and IPv4 is waited for alone.
    tcp.set_happy_eyeballs_timeout(Some(dial / 4));
    let connect = tower::service_fn(move |to: Uri| {
        let (single_connect, mut tcp) = (single_connect.clone(), tcp.clone());
        async move {
            single_connect.begin()?;
            tcp.call(to).await.map_err(io::Error::other)
        }
    });
    address.connect_with_connector_lazy(connect)
}
