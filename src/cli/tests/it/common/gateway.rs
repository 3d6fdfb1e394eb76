//! The gateway: its answers come from a script, and what it was asked is kept.

mod calls;
mod script;
mod service;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use picket_proto::v1::fencing_service_server::FencingServiceServer;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;

pub use self::script::{Script, Step, Watched, unknown_node};
use self::service::Service;

/// A gateway on the loopback.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

impl Gateway {
    /// Starts one.
    pub async fn start(script: Script) -> Self {
        // At an address of its own: nobody else gets its port while it is away.
        let [a, b, c, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
        let host = Ipv4Addr::new(127, 1 + a % 100, b, 1 + c % 250);
        let listener = TcpListener::bind((host, 0)).await.expect("a port");
        let script = Arc::new(Mutex::new(script));
        let address = listener.local_addr().expect("it is bound");
        Self { address, task: serve(listener, Arc::clone(&script)), script }
    }

    /// Kills it with all its connections, and starts it again on the same port.
    pub async fn restart(&mut self, pause: Duration) {
        self.kill().await;
        tokio::time::sleep(pause).await;
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("reused");
        socket.bind(self.address).expect("the same port");
        self.task = serve(socket.listen(64).expect("it listens"), Arc::clone(&self.script));
    }

    /// Kills it, and waits until nobody listens any more.
    pub async fn kill(&self) {
        self.task.abort();
        while tokio::net::TcpStream::connect(self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves each connection in a task of the same set, so that all of them die together.
fn serve(listener: TcpListener, script: Arc<Mutex<Script>>) -> JoinHandle<()> {
    // A runtime of its own: dropping it drops the connections too, as the death of a process does.
    tokio::spawn(async move {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let listener = listener.into_std().expect("a listener");
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                let service = FencingServiceServer::new(Service { script });
                let server = tonic::transport::Server::builder()
                    .add_service(service)
                    .serve_with_incoming(TcpListenerStream::new(listener));
                tokio::select! { _ = server => {}, _ = stopped => {} }
            });
        });
        // Dropped with this task, which stops the thread.
        let _stop = stop;
        std::future::pending::<()>().await;
        drop(thread);
    })
}
