//! One address at which another machine's service answers from some time on, with the same account and a certificate that passes (S13).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::fake::Fake;
use crate::subject::Hand;

/// Two services, and the address that leads to one of them.
struct Address {
    port: u16,
    leads_to: Arc<watch::Sender<SocketAddr>>,
    /// So many connections from now it leads to the other one.
    stays_for: Arc<AtomicUsize>,
    authorities: NamedTempFile,
    ours: Fake,
    other: Fake,
    task: JoinHandle<()>,
}

impl Drop for Address {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Address {
    /// Two machines that say this of themselves, and nothing else; it leads to the first one.
    async fn of(ours: (&'static str, &'static str), other: (&'static str, &'static str)) -> Self {
        let says = [ours, other];
        let (ours, other) = (Fake::start().await, Fake::start().await);
        for (fake, (uuid, serial)) in [&ours, &other].into_iter().zip(says) {
            let mut world = fake.world();
            world.says_of_itself(uuid, serial);
            world.tells_reset = false;
        }
        let authorities = NamedTempFile::new().expect("a file");
        let pem = [&ours, &other].map(|fake| std::fs::read(fake.ca_file()).expect("a CA")).concat();
        std::fs::write(authorities.path(), pem).expect("written");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let leads_to = Arc::new(watch::Sender::new(ours.address()));
        let stays_for = Arc::new(AtomicUsize::new(usize::MAX));
        let task = tokio::spawn(forward(listener, leads_to.clone(), stays_for.clone(), other.address()));
        Self { port, leads_to, stays_for, authorities, ours, other, task }
    }

    /// A driver that was told of the address.
    async fn hand(&self, more: Value) -> Hand {
        let mut settings = json!({ "port": self.port, "ca_file": self.authorities.path() });
        for (key, value) in more.as_object().expect("a table") {
            settings[key] = value.clone();
        }
        Hand::of(&self.ours, settings).await
    }

    /// From now on it leads to the other one, and what was connected is cut off.
    fn turns(&self) {
        self.leads_to.send_replace(self.other.address());
    }

    /// It leads to the first one again.
    fn turns_back(&self) {
        self.leads_to.send_replace(self.ours.address());
    }
}

async fn forward(
    listener: TcpListener,
    leads_to: Arc<watch::Sender<SocketAddr>>,
    stays_for: Arc<AtomicUsize>,
    other: SocketAddr,
) {
    while let Ok((mut here, _)) = listener.accept().await {
        if stays_for.fetch_sub(1, Ordering::SeqCst) == 0 {
            leads_to.send_replace(other);
        }
        let mut turned = leads_to.subscribe();
        let place = *turned.borrow_and_update();
        tokio::spawn(async move {
            let Ok(mut there) = TcpStream::connect(place).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut here, &mut there) => {}
                _ = turned.changed() => {}
            }
        });
    }
}

const NOTHING: (&str, &str) = ("00000000-0000-0000-0000-000000000000", "");

#[tokio::test]
async fn where_nobody_knows_whose_machine_it_is_its_certificate_stays_the_same() {
    for more in [json!({}), json!({ "authentication": "basic" })] {
        let address = Address::of(NOTHING, NOTHING).await;
        let hand = address.hand(more.clone()).await;
        assert_eq!(hand.driver.far_side(), None, "nobody was asked yet");
        let said = hand.driver.identify(&hand.call()).await.expect("an answer").identity;
        assert!(said.is_empty(), "{said:?}");
        let first = hand.driver.far_side().expect("its certificate");
        assert!(first.to_uppercase().ends_with(address.ours.digest()), "{first}");
        address.ours.world().set_power(false);
        assert_eq!(hand.power().await, Power::Off);
        let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
        let hold = hand.orders.hold(&found).await.expect("an order");
        address.turns();
        // The token is another service's, and power is read first; without one the connection is asked.
        let held = hand.driver.engage_hold(&hold, &hand.call()).await.expect_err("another machine's policy");
        assert_eq!(held.effect, Effect::DidNotHappen, "{more}: {held}");
        for what in ["off", "on"] {
            let sent = if what == "off" { hand.off().await } else { hand.on().await };
            let error = sent.expect_err(what);
            assert_eq!(error.effect, Effect::DidNotHappen, "{what} {more}: {error}");
        }
        let error = hand.read().await.expect_err("another machine");
        assert_eq!(error.kind, ErrorKind::IdentityMismatch, "{more}: {error}");
        let second = hand.driver.far_side().expect("its certificate");
        assert!(second.to_uppercase().ends_with(address.other.digest()), "{second}");
        assert!(error.detail.contains(&first) && error.detail.contains(&second), "{error}");
        assert!(address.other.world().is_on(), "{more}");
        assert_eq!(address.other.world().commands, 0, "{more}");
        address.turns_back();
        assert_eq!(hand.power().await, Power::Off, "{more}");
        hand.off().await.expect("it is the one that was asked");
    }
}

/// A service renews its certificate: where the machine says which it is, that is enough.
#[tokio::test]
async fn a_machine_that_says_whose_it_is_may_have_a_new_certificate() {
    let says = ("8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41", "");
    let address = Address::of(says, says).await;
    let hand = address.hand(json!({ "authentication": "basic" })).await;
    hand.driver.identify(&hand.call()).await.expect("an answer");
    address.turns();
    assert_eq!(hand.power().await, Power::On);
    hand.off().await.expect("it says that it is ours");
    assert!(!address.other.world().is_on());
}

/// A name with two addresses, at services that close each connection after its answer: whose machine it is was asked on another connection.
#[tokio::test]
async fn what_is_sent_goes_by_the_certificate_of_whoever_said_whose_machine_it_is() {
    let (ours, other) = ("8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41", "8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c42");
    let mut refused = 0;
    for stays_for in 0..6 {
        let address = Address::of((ours, ""), (other, "")).await;
        [&address.ours, &address.other].into_iter().for_each(|fake| fake.world().closes = true);
        let hand = address.hand(json!({ "authentication": "basic" })).await;
        hand.driver.identify(&hand.call()).await.expect("an answer");
        assert_eq!(hand.power().await, Power::On);
        address.stays_for.store(stays_for, Ordering::SeqCst);
        let sent = hand.off().await;
        assert_eq!(address.other.world().commands, 0, "after {stays_for} connections: {sent:?}");
        if let Err(error) = sent {
            assert_eq!(error.effect, Effect::DidNotHappen, "after {stays_for} connections: {error}");
            refused += 1;
        }
    }
    assert!(refused > 0, "the address turned while the off was made ready");
}
