//! A crowd that takes every session of a BMC and never goes on: half-open ones count too.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::error::{PeerError, Result};

/// More than any BMC has.
const MOST: u32 = 1_000;

/// Opens sessions (cipher suite 3), and leaves them so, until the BMC refuses one for want of resources; how many it took.
/// They end when the BMC ends what idles: ipmi_sim after 30 s.
pub async fn take_all_sessions(bmc: SocketAddr) -> Result<u32> {
    let socket = UdpSocket::bind((bmc.ip(), 0)).await.map_err(PeerError::io("bind a client's socket"))?;
    socket.connect(bmc).await.map_err(PeerError::io("connect a client's socket"))?;
    for taken in 0..MOST {
        match status(&socket, taken + 1).await? {
            0x00 => {}
            // IPMI 2.0 table 13-15: insufficient resources to create a session.
            0x01 => return Ok(taken),
            other => {
                let status = format!("RMCP+ status {other:#04x}");
                return Err(PeerError::Ended {
                    program: "Open Session".to_owned(),
                    status,
                    output: String::new(),
                });
            }
        }
    }
    let what = format!("{bmc} refuses a session");
    Err(PeerError::TimedOut { what, within: Duration::ZERO, seen: format!("{MOST} were opened") })
}

/// What the BMC says to an Open Session Request (13.17) with this session id of ours.
async fn status(socket: &UdpSocket, id: u32) -> Result<u8> {
    let mut request = vec![0x06, 0x00, 0xff, 0x07, 0x06, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0];
    request.extend([0, 0, 0, 0]);
    request.extend(id.to_le_bytes());
    for payload in 0..3 {
        // Authentication, integrity, confidentiality: the first of each is suite 3.
        request.extend([payload, 0, 0, 8, 1, 0, 0, 0]);
    }
    let mut answer = [0; 256];
    for _ in 0..60 {
        socket.send(&request).await.map_err(PeerError::io("send an Open Session Request"))?;
        if let Ok(Ok(length)) = timeout(Duration::from_secs(1), socket.recv(&mut answer)).await
            && let [_, _, _, _, 6, 0x11, ..] = answer[..length]
            && length > 17
        {
            return Ok(answer[17]);
        }
    }
    let what = "an Open Session Response".to_owned();
    Err(PeerError::TimedOut { what, within: Duration::from_secs(60), seen: String::new() })
}
