//! Whom etcd lets in, and whom we believe to be etcd: TLS, users, versions, clusters.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use picket_config::{EtcdSettings, EtcdTls, EtcdUser, SecretSource};
use picket_core::election::{Election, ElectionError};
use picket_core::ids::Version;
use picket_core::store::{Store, StoreError};
use picket_etcd::Candidate;
use picket_tests::peers::{Etcd, EtcdCluster, TcpFault};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde_json::json;

use crate::etcd::common::{plain, write_of};
use crate::etcd::house::{House, candidate, guard, raw, settings, soon};
use crate::etcd::raw::bytes;

fn new(settings: EtcdSettings) -> House {
    House::new(settings, candidate("g1"))
}

fn says<T: std::fmt::Debug>(answer: Result<T, StoreError>, words: &str) {
    match answer {
        Err(StoreError::Unavailable(why)) if why.contains(words) => {}
        other => panic!("{words:?} is not said: {other:?}"),
    }
}

#[tokio::test]
async fn an_etcd_with_the_lease_bug_is_refused_unless_told_otherwise() {
    let cluster = EtcdCluster::start_with(Etcd::Old, 1, &[]).await.unwrap();
    let house = new(settings(cluster.endpoints()));
    says(house.store.load_all().await, "allow_etcd_with_lease_bug");
    match house.election.campaign().await {
        Err(ElectionError::Unavailable(why)) => assert!(why.contains("3.4.23"), "{why}"),
        other => panic!("{other:?}"),
    }
    let told = new(EtcdSettings { allow_lease_bug: true, ..settings(cluster.endpoints()) });
    let won = told.lead().await;
    told.store.write(guard(&won), write_of(plain("r1n01", 1), 0)).await.unwrap();
    told.election.resign().await.unwrap();
}

/// Every member is looked at, also those that are not asked.
#[tokio::test]
async fn one_old_member_among_others_is_refused() {
    let (good, old) =
        (EtcdCluster::start(1).await.unwrap(), EtcdCluster::start_with(Etcd::Old, 1, &[]).await.unwrap());
    let both = [good.endpoints(), old.endpoints()].concat();
    says(new(settings(both)).store.load_all().await, "allow_etcd_with_lease_bug");
}

#[tokio::test]
async fn members_of_two_clusters_are_no_cluster() {
    let (one, two) = (EtcdCluster::start(1).await.unwrap(), EtcdCluster::start(1).await.unwrap());
    let both = [one.endpoints(), two.endpoints()].concat();
    says(new(settings(both)).store.load_all().await, "of another cluster");
}

/// One address in front of the members, which leads to another cluster from some moment on: the connection ends between two requests.
#[tokio::test]
async fn an_address_that_leads_to_another_cluster_is_refused_also_by_who_was_connected() {
    let (mut one, mut two) = (EtcdCluster::start(1).await.unwrap(), EtcdCluster::start(1).await.unwrap());
    let way = TcpFault::before(one.member(0).client()).await.unwrap();
    let house = new(settings(vec![format!("http://{}", way.address())]));
    house.store.load_all().await.unwrap();
    // There is a store in the other one, too.
    new(settings(two.endpoints())).store.load_all().await.unwrap();
    way.lead_to(two.member(0).client(), 0);
    // The connection's next sign of life ends it.
    soon("it is asked of the other one", async || house.store.load_all().await.is_err()).await;
    says(house.store.load_all().await, "of another cluster");
    says(house.store.load_all().await, "of another cluster");
}

/// With the same names and token a snapshot that is restored is the same cluster, by its number.
#[tokio::test]
async fn an_etcd_that_was_set_back_is_refused_by_who_saw_more() {
    let mut cluster = EtcdCluster::start(1).await.unwrap();
    let house = new(settings(cluster.endpoints()));
    let won = house.lead().await;
    house.store.write(guard(&won), write_of(plain("r1n01", 1), 0)).await.unwrap();
    cluster.member(0).note().unwrap();
    cluster.member(0).restart().await.unwrap();
    // What is only started again goes on where it was.
    let load = async || house.store.load(&crate::etcd::common::node("r1n01")).await;
    soon("it is asked again", async || load().await.is_ok()).await;
    let raw = raw(&cluster.endpoints());
    for _ in 0..10 {
        raw.put("/elsewhere", "1").await.unwrap();
    }
    assert!(load().await.unwrap().is_some());
    cluster.member(0).set_back().await.unwrap();
    let set_back =
        async || matches!(load().await, Err(StoreError::Unavailable(why)) if why.contains("was set back"));
    soon("it is refused", set_back).await;
    // Also once it has as much again.
    for _ in 0..30 {
        raw.put("/elsewhere", "2").await.unwrap();
    }
    says(load().await, "was set back");
    // A gateway that starts knows nothing of it.
    new(settings(cluster.endpoints())).store.load_all().await.unwrap();
}

struct Pki {
    directory: tempfile::TempDir,
    ca: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let pki = Self { directory: tempfile::tempdir().unwrap(), ca };
        pki.write("ca.pem", &pki.ca.pem());
        pki
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(self.at(name), text).unwrap();
        std::fs::set_permissions(self.at(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A certificate for these addresses, or of a client.
    fn issue(&self, name: &str, addresses: &[IpAddr]) {
        let names: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.ca).unwrap();
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test]
async fn tls_is_spoken_with_whom_the_ca_vouches_for_and_nobody_else() {
    let (pki, other) = (Pki::new(), Pki::new());
    // etcd wants to know its address before it has one: its certificate is of all that it may get.
    let loopback: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap()];
    pki.issue("server", &loopback);
    pki.issue("client", &[]);
    other.issue("client", &[]);
    let arguments = [
        format!("--cert-file={}", shown(&pki.at("server.pem"))),
        format!("--key-file={}", shown(&pki.at("server.key"))),
        "--client-cert-auth".to_owned(),
        format!("--trusted-ca-file={}", shown(&pki.at("ca.pem"))),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut cluster = EtcdCluster::start_with(Etcd::Present, 1, &arguments).await.unwrap();
    // The certificate that it shows from now on is of its own address; etcd reads it anew for each connection.
    pki.issue("server", &[cluster.member(0).client().ip()]);
    let with = |ca: &Pki, own: Option<&Pki>| {
        let own = own.map(|own| (own.at("client.pem"), own.at("client.key")));
        EtcdSettings { tls: EtcdTls { ca: Some(ca.at("ca.pem")), own }, ..settings(cluster.endpoints()) }
    };

    let house = new(with(&pki, Some(&pki)));
    let won = house.lead().await;
    house.store.write(guard(&won), write_of(plain("r1n01", 1), 0)).await.unwrap();

    says(new(with(&other, Some(&pki))).store.load_all().await, "certificate");
    for stranger in [with(&pki, None), with(&pki, Some(&other))] {
        let refused = new(stranger).store.load_all().await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
    let plain = settings(vec![cluster.endpoints()[0].replace("https", "http")]);
    let refused = new(plain).store.load_all().await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    // A certificate of somebody else's address.
    pki.issue("server", &["127.0.0.99".parse().unwrap()]);
    says(new(with(&pki, Some(&pki))).store.load_all().await, "certificate");
}

/// An etcd that knows users: root, and one for us.
async fn with_users(members: usize, arguments: &[&str]) -> EtcdCluster {
    let cluster = EtcdCluster::start_with(Etcd::Present, members, arguments).await.unwrap();
    let everything =
        json!({ "permType": "READWRITE", "key": bytes("/picket/"), "range_end": bytes("/picket0") });
    for (call, what) in [
        ("auth/role/add", json!({ "name": "root" })),
        ("auth/user/add", json!({ "name": "root", "password": "toor" })),
        ("auth/user/grant", json!({ "user": "root", "role": "root" })),
        ("auth/role/add", json!({ "name": "picket" })),
        ("auth/role/grant", json!({ "name": "picket", "perm": everything })),
        ("auth/user/add", json!({ "name": "picket", "password": "secret12" })),
        ("auth/user/grant", json!({ "user": "picket", "role": "picket" })),
        ("auth/enable", json!({})),
    ] {
        raw(&cluster.endpoints()).ask(call, what).await.unwrap();
    }
    cluster
}

fn password(pki: &Pki, text: &str) -> Option<EtcdUser> {
    pki.write("password", text);
    Some(EtcdUser { name: "picket".to_owned(), password: SecretSource::File(pki.at("password")) })
}

#[tokio::test]
async fn etcd_knows_us_by_name_and_password() {
    let cluster = with_users(1, &["--bcrypt-cost=4"]).await;
    let files = Pki::new();
    says(new(settings(cluster.endpoints())).store.load_all().await, "set user in [store]");
    let wrong = new(EtcdSettings { user: password(&files, "hunter2"), ..settings(cluster.endpoints()) });
    let refused = wrong.store.load_all().await;
    assert!(!format!("{refused:?}").contains("hunter2"));
    says(refused, "does not know this user with this password");
    // What is in the file is read when it is needed: nothing has to be started again.
    files.write("password", "secret12\n");
    wrong.store.load_all().await.unwrap();

    let mine = EtcdSettings { user: password(&files, "secret12"), ..settings(cluster.endpoints()) };
    let won = new(mine.clone());
    let guard = guard(&won.lead().await);
    won.store.write(guard, write_of(plain("r1n01", 1), 0)).await.unwrap();
    let elsewhere = EtcdSettings { prefix: "/elsewhere/".to_owned(), ..mine };
    says(new(elsewhere).store.load_all().await, "grant it read and write of the prefix");
    let nobody = EtcdCluster::start(1).await.unwrap();
    let unneeded = EtcdSettings { user: password(&files, "secret12"), ..settings(nobody.endpoints()) };
    says(new(unneeded).store.load_all().await, "remove user from [store]");
}

#[tokio::test]
async fn a_token_that_expired_or_was_voided_is_replaced_without_a_word() {
    let cluster = with_users(1, &["--bcrypt-cost=4", "--auth-token=simple", "--auth-token-ttl=1"]).await;
    let files = Pki::new();
    let mine = EtcdSettings { user: password(&files, "secret12"), ..settings(cluster.endpoints()) };
    // Of more than a busy machine stands still, and less than is waited for below.
    let house = House::new(mine, Candidate { lease: Duration::from_secs(7), ..candidate("g1") });
    house.store.load_all().await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    house.store.load_all().await.expect("a new token");

    let leadership = house.permit().await;
    house.store.write(leadership.guard(), write_of(plain("r1n01", 1), 0)).await.unwrap();
    // Any change of users voids what was handed out; so does a new password.
    let root = async |call, name, password| {
        let root = raw(&cluster.endpoints()).by("root", "toor").await;
        root.ask(call, json!({ "name": name, "password": password })).await.unwrap();
    };
    root("auth/user/add", "somebody", "else").await;
    house.store.write(leadership.guard(), write_of(plain("r1n01", 2), 1)).await.expect("a new token");
    files.write("password", "another1");
    root("auth/user/changepw", "picket", "another1").await;
    house.store.write(leadership.guard(), write_of(plain("r1n01", 3), 2)).await.expect("the new password");
    tokio::time::sleep(Duration::from_secs(8)).await;
    leadership.check().expect("its lease was kept all the while");
    let version = house.store.load(&crate::etcd::common::node("r1n01")).await.unwrap().unwrap().version;
    assert_eq!(version, Version(3));
}

/// What the quorum is counted by (S17): a token is renewed at the member alone at which it is used, and at the others it is over.
#[tokio::test]
async fn a_member_at_which_our_token_expired_is_not_silent_and_one_that_died_is() {
    let mut cluster = with_users(3, &["--bcrypt-cost=4", "--auth-token=simple", "--auth-token-ttl=1"]).await;
    let files = Pki::new();
    let mine = EtcdSettings {
        user: password(&files, "secret12"),
        request: Duration::from_secs(20),
        ..settings(cluster.endpoints())
    };
    let house = new(mine);
    house.store.load_all().await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(house.store.silent_members().await, BTreeSet::new());
    cluster.member(2).process().kill();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(house.store.silent_members().await, BTreeSet::from(["e2".to_owned()]));
}
