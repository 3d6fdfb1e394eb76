//! `[listen]`: where callers are listened to, and by which certificates.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::fault::{Fault, Place};
use crate::sections::absolute;
use crate::table::Table;

/// `[listen]`: at least one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `unix`: an absolute path of at most 107 bytes. Default: `/run/picket/picket.sock`, unless `tcp` is given.
    pub unix: Option<PathBuf>,
    /// `tcp`: an address with its port; without `tls` of the loopback alone. Default: none.
    pub tcp: Option<SocketAddr>,
    /// `[listen.tls]`: TLS on `tcp`, and callers by their certificates. Default: none.
    pub tls: Option<ListenTls>,
}

/// `[listen.tls]`: absolute paths of PEM files, which are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// `cert_file`: the gateway's certificate, with what leads from it to its CA.
    pub cert_file: PathBuf,
    /// `key_file`: its key, which only the gateway may read.
    pub key_file: PathBuf,
    /// `client_ca_file`: the CAs that vouch for callers.
    pub client_ca_file: PathBuf,
    places: Vec<(&'static str, Place)>,
}

impl ListenTls {
    /// A fault of what `key` names.
    pub fn fault(&self, key: &str, message: impl Into<String>) -> Fault {
        let place = self.places.iter().find(|(known, _)| *known == key).map(|(_, place)| place.clone());
        place.unwrap_or_default().fault(message)
    }
}

const SOCKET: &str = "/run/picket/picket.sock";
/// `sun_path` holds 108 bytes with its closing zero (unix(7)).
const LONGEST_SOCKET: usize = 107;

pub(crate) fn read(mut table: Table<'_>) -> Listen {
    let has_tcp = table.has("tcp");
    let has_tls = table.has("tls");
    let tls = table.table("tls");
    let tls = if has_tls { read_tls(tls) } else { None };
    if has_tls && !has_tcp {
        table.fault(
            "tls",
            "there is no address for it: set tcp (\"0.0.0.0:7070\"), or remove the table; the Unix socket needs no TLS",
        );
    }
    let tcp = table.text("tcp").and_then(|text| match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() || has_tls => Some(address),
        Ok(address) => {
            table.fault(
                "tcp",
                format!(
                    "{address} can be reached from elsewhere, and without TLS only the loopback is served: \
                     use \"127.0.0.1:{port}\" or \"[::1]:{port}\", or the Unix socket, or add [listen.tls]",
                    port = address.port()
                ),
            );
            None
        }
        Err(_) => {
            table.fault(
                "tcp",
                format!("expected an address with its port (\"127.0.0.1:7070\"), found {text:?}"),
            );
            None
        }
    });
    let has_unix = table.has("unix");
    let unix = absolute(&mut table, "unix");
    if let Some(path) = unix.as_ref().filter(|path| path.as_os_str().len() > LONGEST_SOCKET) {
        let length = path.as_os_str().len();
        table.fault(
            "unix",
            format!("the path has {length} bytes, and a socket's has at most {LONGEST_SOCKET}"),
        );
    }
    table.done();
    let unix = if has_unix || has_tcp { unix } else { Some(SOCKET.into()) };
    Listen { unix, tcp, tls }
}

fn read_tls(mut table: Table<'_>) -> Option<ListenTls> {
    let keys = ["cert_file", "key_file", "client_ca_file"];
    let places = keys.map(|key| (key, table.place_of(key))).to_vec();
    let [cert, key, ca] = keys.map(|key| {
        if !table.has(key) {
            table.fault(
                key,
                "is missing: TLS wants cert_file, key_file and client_ca_file; picket pki init makes them",
            );
        }
        absolute(&mut table, key)
    });
    table.done();
    Some(ListenTls { cert_file: cert?, key_file: key?, client_ca_file: ca?, places })
}
