//! `[store]` with `kind = "etcd"`: where etcd is, and how it is talked to.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::time::written;

use crate::fault::Place;
use crate::sections::absolute;
use crate::table::Table;

/// `kind = "etcd"`: several gateways share one store, and elect one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdSettings {
    /// `endpoints`: the clients' URLs of etcd's members, without a path: `https://etcd1:2379`. One is talked to at a time; where
    /// it fails, the next one.
    pub endpoints: Vec<String>,
    /// `ca_file`, `cert_file` and `key_file`, absolute paths of PEM files; read again with each new connection.
    pub tls: EtcdTls,
    /// `user` with `password_file`, `password_env` or `password_credential`. Default: none.
    pub user: Option<EtcdUser>,
    /// `prefix`: every key of this fleet begins with it, so that several share one etcd. Default: `/picket/`.
    pub prefix: String,
    /// `request`: how long one request may take; 200 ms to 30 s. Default: 2 s. A write without an answer is *unknown* afterwards.
    pub request: Duration,
    /// `dial`: how long making a connection may take; 100 ms to 30 s. Default: 1 s.
    pub dial: Duration,
    /// `members`: etcd's members by name, each with the node that carries it, or `""` for a machine that is no node: a fence that
    /// would cost etcd its quorum is BLOCKED (S17). Default: none is carried by a node.
    pub members: BTreeMap<String, Option<NodeId>>,
    /// `allow_etcd_with_lease_bug`: takes also versions before 3.4.31, and 3.5.0 to 3.5.12, in which an etcd leader that was
    /// deposed while its disk stalled goes on renewing leases. Default: false.
    pub allow_lease_bug: bool,
}

/// The certificates for etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdTls {
    /// `ca_file`: who vouches for etcd's members. Wanted for `https`.
    pub ca: Option<PathBuf>,
    /// `cert_file` and `key_file`: the gateway's own certificate with its key. Default: none.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// An account of etcd's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdUser {
    /// `user`.
    pub name: String,
    /// Where its password is. It is read when the gateway logs in, so that a replaced one needs no restart.
    pub password: SecretSource,
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// A file that holds nothing else, which not everybody may read.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// A credential of systemd.
    Credential(String),
}

/// Reads everything but `kind`.
pub(crate) fn read(table: &mut Table<'_>) -> EtcdSettings {
    let plaintext = table.flag("allow_plaintext").unwrap_or(false);
    let anonymous = table.flag("allow_anonymous").unwrap_or(false);
    let user = user(table);
    let given = table.texts("endpoints");
    if given.as_ref().is_none_or(Vec::is_empty) {
        table.fault("endpoints", "is missing: the URLs of etcd's members ([\"https://etcd1:2379\", ...])");
    }
    let mut endpoints: Vec<String> = Vec::new();
    let (mut secure, mut open) = (false, false);
    for (place, text) in given.unwrap_or_default() {
        match endpoint(&text) {
            Ok((url, Reach::Secure)) => {
                secure = true;
                add(table, &mut endpoints, url, &place);
            }
            Ok((url, reach)) => {
                open = true;
                if reach == Reach::Elsewhere && user.is_some() {
                    table.log().push(place.fault(
                        "a password would go over the network in the clear: use https, or remove user",
                    ));
                } else if reach == Reach::Elsewhere && !plaintext {
                    table.log().push(place.fault(format!(
                        "{text:?} has no TLS and is not of this machine: everybody on the way could release volumes. Use \
                         https with ca_file, or set allow_plaintext = true beside it"
                    )));
                }
                add(table, &mut endpoints, url, &place);
            }
            Err(why) => table.log().push(place.fault(why)),
        }
    }
    let tls = tls(table, secure, open);
    if user.is_none() && tls.own.is_none() && !anonymous {
        table.fault(
            "user",
            "is missing: whoever may write the store may forge it, so etcd should know who we are. Give user with \
             password_file, or cert_file with key_file, or set allow_anonymous = true",
        );
    }
    EtcdSettings {
        endpoints,
        tls,
        user,
        prefix: prefix(table),
        members: members(table),
        request: within(table, "request", Duration::from_secs(2), Duration::from_millis(200)),
        dial: within(table, "dial", Duration::from_secs(1), Duration::from_millis(100)),
        allow_lease_bug: table.flag("allow_etcd_with_lease_bug").unwrap_or(false),
    }
}

fn add(table: &Table<'_>, endpoints: &mut Vec<String>, url: String, place: &Place) {
    if endpoints.contains(&url) {
        table.log().push(place.fault(format!("{url} stands here twice")));
    } else {
        endpoints.push(url);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// With TLS.
    Secure,
    /// Without, on this machine.
    Loopback,
    /// Without, across a network.
    Elsewhere,
}

fn endpoint(text: &str) -> Result<(String, Reach), String> {
    let wrong = || format!("expected a URL with a host and a port (\"https://etcd1:2379\"), found {text:?}");
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let address = bare.unwrap_or(host).parse::<IpAddr>().ok();
    let is_name = host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let is_host = match address {
        Some(IpAddr::V6(_)) => bare.is_some(),
        Some(IpAddr::V4(_)) => bare.is_none(),
        None => is_name,
    };
    if !is_host || port.parse::<u16>().ok().is_none_or(|port| port == 0) {
        return Err(wrong());
    }
    let here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let reach = match scheme {
        "https" => Reach::Secure,
        "http" if here => Reach::Loopback,
        "http" => Reach::Elsewhere,
        _ => return Err(wrong()),
    };
    Ok((format!("{scheme}://{rest}"), reach))
}

fn tls(table: &mut Table<'_>, secure: bool, open: bool) -> EtcdTls {
    let ca = absolute(table, "ca_file");
    let (cert, key) = (absolute(table, "cert_file"), absolute(table, "key_file"));
    if secure && open {
        table.fault("endpoints", "some have TLS and some have not: use https for all of them");
    }
    if secure && !table.has("ca_file") {
        table.fault("ca_file", "is missing: the CA that vouches for etcd's members");
    }
    for key in ["ca_file", "cert_file", "key_file"] {
        if open && !secure && table.has(key) {
            table.fault(key, "is of no use with http: use https endpoints");
        }
    }
    match (table.has("cert_file"), table.has("key_file")) {
        (true, false) => table.fault("key_file", "is missing: the key of cert_file"),
        (false, true) => table.fault("cert_file", "is missing: the certificate of key_file"),
        _ => {}
    }
    EtcdTls { ca, own: cert.zip(key) }
}

fn user(table: &mut Table<'_>) -> Option<EtcdUser> {
    let keys = ["password_file", "password_env", "password_credential"];
    let given: Vec<&'static str> = keys.into_iter().filter(|key| table.has(key)).collect();
    let name = table.text("user");
    let file = absolute(table, "password_file").map(SecretSource::File);
    let variable = table.text("password_env").map(SecretSource::Variable);
    let credential = table.text("password_credential").map(SecretSource::Credential);
    if let [_, second, ..] = given[..] {
        table.fault(
            second,
            "a password has one source: give password_file, password_env or password_credential",
        );
    }
    match (table.has("user"), given.first()) {
        (true, None) => {
            table.fault("user", "has no password: give password_file, password_env or password_credential");
        }
        (false, Some(key)) => table.fault(key, "is a password of nobody: give user"),
        _ => {}
    }
    Some(EtcdUser { name: name?, password: file.or(variable).or(credential)? })
}

fn members(table: &mut Table<'_>) -> BTreeMap<String, Option<NodeId>> {
    let mut members = BTreeMap::new();
    let own = table.table("members");
    for (member, entry) in own.rest() {
        let wanted = "expected the name of the node that carries it, or \"\" for a machine that is no node";
        match entry.to_json() {
            serde_json::Value::String(text) if text.is_empty() => drop(members.insert(member, None)),
            serde_json::Value::String(text) => match NodeId::new(&text) {
                Ok(node) => drop(members.insert(member, Some(node))),
                Err(error) => own.log().push(entry.place.fault(format!("{wanted}: {error}"))),
            },
            _ => own.log().push(entry.place.fault(format!("{wanted}, found {}", entry.kind()))),
        }
    }
    members
}

fn prefix(table: &mut Table<'_>) -> String {
    const USUAL: &str = "/picket/";
    let Some(text) = table.text("prefix") else { return USUAL.to_owned() };
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if text.len() <= 256 && text.ends_with('/') && text.chars().all(known) {
        return text;
    }
    table.fault(
        "prefix",
        format!("expected at most 256 letters, digits, '-', '_', '.' and '/', the last a '/' (\"/picket/\"), found {text:?}"),
    );
    USUAL.to_owned()
}

fn within(table: &mut Table<'_>, key: &'static str, usual: Duration, least: Duration) -> Duration {
    let most = Duration::from_secs(30);
    let Some(given) = table.duration(key) else { return usual };
    if !(least..=most).contains(&given) {
        table.fault(key, format!("expected {} to {}", written(least), written(most)));
    }
    given
}
