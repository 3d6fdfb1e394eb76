//! Who calls. Over the Unix socket the kernel says so; over loopback TCP it is only known that it is somebody on this
//! machine. Roles come later; until then the socket's mode says who may.

use picket_proto::v1::ErrorReason;
use tonic::Request;
use tonic::transport::server::{TcpConnectInfo, UdsConnectInfo};

use crate::fault::Fault;

/// The caller's name, as it stands in holds, history and logs: `uid:1000`, `tcp:127.0.0.1`.
pub(crate) fn name<T>(request: &Request<T>) -> Result<String, Fault> {
    let extensions = request.extensions();
    if let Some(info) = extensions.get::<UdsConnectInfo>()
        && let Some(peer) = &info.peer_cred
    {
        return Ok(format!("uid:{}", peer.uid()));
    }
    if let Some(address) = extensions.get::<TcpConnectInfo>().and_then(TcpConnectInfo::remote_addr) {
        return Ok(format!("tcp:{}", address.ip()));
    }
    Err(Fault::new(
        ErrorReason::Unauthenticated,
        "who calls is not known: the connection tells neither user nor address",
    ))
}
