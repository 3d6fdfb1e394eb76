//! A network between a driver and one BMC that loses, doubles and holds back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::window::Windows;

/// What happens to a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    /// Passed on after this one.
    After(Vec<u8>),
    Lose,
    /// Refused with this RMCP+ status, without the BMC's knowledge: for packets of the handshake.
    Refuse(u8),
    /// Before it arrive copies with one bit flipped, in turn each of its bits.
    Forged,
    /// Passed on only so much later.
    Later(Duration),
    /// Passed on three times, the first so much later, the others 30 ms after one another.
    Scattered(Duration),
}

/// Decides by direction (true: towards the BMC) and the datagram.
pub type Decide = Box<dyn FnMut(bool, &[u8]) -> Fate + Send>;

type Rule = Arc<Mutex<Decide>>;
/// The BMC to which the address leads.
type Way = Arc<Mutex<SocketAddr>>;
/// Of a BMC that drops what comes twice, or too far ahead; none: it takes everything.
type Window = Arc<Mutex<Option<Windows>>>;

/// The relay. Drivers speak to [`Network::address`]. Dropped, it ends.
pub struct Network {
    address: SocketAddr,
    way: Way,
    rule: Rule,
    window: Window,
    _tasks: JoinSet<()>,
}

/// The authentication algorithm of suite 3, and that of suite 17 (IPMI 2.0 table 13-17).
pub const OF_3: u8 = 1;
pub const OF_17: u8 = 3;

/// The cipher suites that the driver proposed, each once, however often its datagram was sent.
#[derive(Clone, Default)]
pub struct Proposed(Arc<Mutex<BTreeSet<u8>>>);

impl Proposed {
    pub fn now(&self) -> Vec<u8> {
        self.0.lock().iter().copied().collect()
    }
}

impl Network {
    pub async fn before(bmc: SocketAddr) -> Self {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
        let address = front.local_addr().expect("its number");
        let pass: Decide = Box::new(|_, _| Fate::Pass);
        let rule: Rule = Arc::new(Mutex::new(pass));
        let mut tasks = JoinSet::new();
        let window = Window::default();
        let way = Way::new(Mutex::new(bmc));
        tasks.spawn(relay(front, way.clone(), rule.clone(), window.clone()));
        Self { address, way, rule, window, _tasks: tasks }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the BMC drops every sequence number that it has seen in a session, or that is outside of its window.
    pub fn drop_duplicates(&self) {
        *self.window.lock() = Some(Windows::default());
    }

    /// From now on the address leads to another BMC. What is under way arrives where it was sent.
    pub fn lead_to(&self, bmc: SocketAddr) {
        *self.way.lock() = bmc;
    }

    /// From now on everything passes, and the authentication algorithms are noted that are proposed to the BMC.
    pub fn proposed(&self) -> Proposed {
        let proposed = Proposed::default();
        let noted = proposed.0.clone();
        self.rule(move |to_bmc, packet| {
            // An open session request: of its payload the first algorithm is that of the authentication.
            if to_bmc && packet.get(5) == Some(&0x10) {
                noted.lock().insert(packet[28] & 0x3F);
            }
            Fate::Pass
        });
        proposed
    }

    pub fn rule(&self, decide: impl FnMut(bool, &[u8]) -> Fate + Send + 'static) {
        *self.rule.lock() = Box::new(decide);
    }

    pub fn heal(&self) {
        self.rule(|_, _| Fate::Pass);
    }

    pub fn cut(&self) {
        self.rule(|_, _| Fate::Lose);
    }

    /// Loses so many of 100 datagrams in each direction. The caller prints the seed.
    pub fn lossy(&self, percent: u64, seed: u64) {
        let mut roll = dice(seed);
        self.rule(move |_, _| if roll() % 100 < percent { Fate::Lose } else { Fate::Pass });
    }

    /// The same, and three copies of all others, out of order within 160 ms.
    pub fn disordered(&self, percent: u64, seed: u64) {
        let mut roll = dice(seed);
        self.rule(move |_, _| {
            let after = Duration::from_micros(roll() % 100_000);
            if roll() % 100 < percent { Fate::Lose } else { Fate::Scattered(after) }
        });
    }
}

/// splitmix64.
fn dice(seed: u64) -> impl FnMut() -> u64 + Send + 'static {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

async fn relay(front: Arc<UdpSocket>, way: Way, rule: Rule, window: Window) {
    let mut clients: BTreeMap<(SocketAddr, SocketAddr), Arc<UdpSocket>> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut buffer = [0; 2048];
    loop {
        let Ok((len, client)) = front.recv_from(&mut buffer).await else { continue };
        let bmc = *way.lock();
        let back = match clients.get(&(client, bmc)) {
            Some(back) => back.clone(),
            None => {
                let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
                back.connect(bmc).await.expect("loopback");
                clients.insert((client, bmc), back.clone());
                tasks.spawn(answers(front.clone(), client, back.clone(), rule.clone()));
                back
            }
        };
        let fate = rule.lock()(true, &buffer[..len]);
        if let Fate::Refuse(status) = fate {
            // The payload type of an answer is that of its request plus one; the message tag is the first byte.
            let answer = [6, 0, 0xFF, 7, 6, buffer[5] + 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, buffer[16], status];
            let _ = front.send_to(&answer, client).await;
            continue;
        }
        let datagram = buffer[..len].to_vec();
        send(&mut tasks, fate, back, To::Bmc(window.clone()), datagram).await;
    }
}

async fn answers(front: Arc<UdpSocket>, client: SocketAddr, back: Arc<UdpSocket>, rule: Rule) {
    let mut tasks = JoinSet::new();
    let mut buffer = [0; 2048];
    loop {
        // A refusal says that the BMC is not there; it may come back.
        let Ok(len) = back.recv(&mut buffer).await else { continue };
        let fate = rule.lock()(false, &buffer[..len]);
        let datagram = buffer[..len].to_vec();
        send(&mut tasks, fate, front.clone(), To::Client(client), datagram).await;
    }
}

/// Whom a datagram is passed on to.
enum To {
    Bmc(Window),
    Client(SocketAddr),
}

/// Passes on in order what is passed on at once; only what waits has a task of its own.
async fn send(tasks: &mut JoinSet<()>, fate: Fate, socket: Arc<UdpSocket>, to: To, datagram: Vec<u8>) {
    let send = async move |datagram: &[u8]| {
        let _ = match &to {
            To::Client(client) => socket.send_to(datagram, client).await,
            To::Bmc(window) => {
                let taken = |window: &mut Windows| window.take(datagram);
                if window.lock().as_mut().is_none_or(taken) { socket.send(datagram).await } else { Ok(0) }
            }
        };
    };
    match fate {
        Fate::Lose | Fate::Refuse(_) => {}
        Fate::Pass => send(&datagram).await,
        Fate::After(first) => {
            send(&first).await;
            send(&datagram).await;
        }
        Fate::Forged => {
            for bit in 0..datagram.len() * 8 {
                let mut forged = datagram.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                send(&forged).await;
            }
            send(&datagram).await;
        }
        Fate::Scattered(after) => {
            tasks.spawn(async move {
                for copy in 0..3 {
                    tokio::time::sleep(if copy == 0 { after } else { Duration::from_millis(30) }).await;
                    send(&datagram).await;
                }
            });
        }
        Fate::Later(after) => {
            tasks.spawn(async move {
                tokio::time::sleep(after).await;
                send(&datagram).await;
            });
        }
    }
}
