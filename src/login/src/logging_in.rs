//! Programs by which users of kubeconfigs log in, each a script.

use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use kube::{Client, Config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cached_login::CachedLogin;
use crate::{Known, Login, Wrong};

const V1: &str = "client.authentication.k8s.io/v1";

/// A kubeconfig whose user logs in by a program, and that program.
struct Scene {
    home: TempDir,
    login: Login,
}

impl Scene {
    /// The program does that; `told` is what the kubeconfig says besides of it.
    fn new(does: &str, told: Value) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let [path, program] = ["login", "get-token"].map(|name| home.path().join(name));
        let mut exec = json!({ "apiVersion": V1, "command": "get-token", "interactiveMode": "Never" });
        for (key, value) in told.as_object().expect("a table") {
            exec[key] = value.clone();
        }
        let text = json!({
            "current-context": "c",
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
            "clusters": [{ "name": "c", "cluster": { "server": "https://127.0.0.1:6443" } }],
            "users": [{ "name": "u", "user": { "exec": exec } }],
        });
        put(&path, &text.to_string(), 0o600);
        put(&program, &format!("#!/bin/sh\ncd {}\n{does}\n", home.path().display()), 0o755);
        let login = Login::new(Some(path), None, Some(program), Vec::new());
        Self { home, login }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.file("runs")).map_or(0, |text| text.lines().count())
    }

    async fn error(&self) -> String {
        let (plugin, kept) = self.login.known().expect("a kubeconfig").plugin.expect("a program");
        let plugin = plugin.within(Duration::from_secs(5));
        kept.current(&plugin).await.err().map_or(String::new(), |wrong| wrong.to_string())
    }
}

fn put(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// A shell's command that prints a login with that, and notes that it ran.
fn prints(status: &str) -> String {
    format!(
        "echo run >> runs\ncat <<END\n{{\"kind\": \"ExecCredential\", \"apiVersion\": \"{V1}\", \"status\": {{{status}}}}}\nEND"
    )
}

/// An API server that believes that token; and each login by which it was asked.
fn server(known: &Known, believed: &'static str) -> (Client, Arc<Mutex<Vec<Config>>>) {
    let logins = Arc::<Mutex<Vec<Config>>>::default();
    let seen = logins.clone();
    let sends = move |config: &Config| {
        seen.lock().push(config.clone());
        let service = tower::service_fn(move |request: Request<Body>| async move {
            let is_right = request.headers().get("authorization").is_some_and(|value| value == believed);
            let status = if is_right { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
            let said = json!({ "code": status.as_u16() }).to_string();
            let answer = Response::builder().status(status).body(Body::from(said.into_bytes()));
            Ok::<_, Infallible>(answer.expect("an answer"))
        });
        Ok(service)
    };
    (crate::client(known, sends).expect("a client"), logins)
}

async fn ask(client: &Client) -> Result<Value, kube::Error> {
    client.request(Request::get("/version").body(Vec::new()).expect("a request")).await
}

#[tokio::test]
async fn the_program_is_run_once_and_again_after_its_token_was_refused() {
    let scene = Scene::new(&prints("\"token\": \"t$(wc -l < runs)\""), json!({}));
    let mut known = scene.login.known().expect("a kubeconfig");
    scene.login.look().expect("it is right");
    assert_eq!(scene.runs(), 0, "a look runs nothing");
    known.plugin = known.plugin.map(|(plugin, _)| (plugin, CachedLogin::hasty()));
    let (client, logins) = server(&known, "Bearer t2");
    let refused = ask(&client).await.expect_err("t1 is not believed");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 401));
    for _ in 0..3 {
        ask(&client).await.expect("t2 is believed");
    }
    assert_eq!((scene.runs(), logins.lock().len()), (2, 2));
    // Whoever reads the kubeconfig anew has the same login.
    let again = Known { plugin: known.plugin.clone(), ..scene.login.known().expect("a kubeconfig") };
    ask(&server(&again, "Bearer t2").0).await.expect("t2 is believed");
    assert_eq!(scene.runs(), 2);
}

#[tokio::test]
async fn a_login_that_is_never_believed_runs_no_program_for_each_request() {
    let scene = Scene::new(&prints("\"token\": \"t\""), json!({}));
    let (client, _) = server(&scene.login.known().expect("a kubeconfig"), "Bearer another");
    for _ in 0..3 {
        ask(&client).await.expect_err("it is not believed");
    }
    assert_eq!(scene.runs(), 1);
}

/// A liveness source waits for two seconds: its next request has the login for which this one did not wait.
#[tokio::test]
async fn whoever_does_not_wait_for_it_does_not_end_it() {
    let does = format!("echo >> begun\nsleep 1\n{}", prints("\"token\": \"t\""));
    let scene = Scene::new(&does, json!({}));
    let (client, _) = server(&scene.login.known().expect("a kubeconfig"), "Bearer t");
    let begun = || std::fs::read_to_string(scene.file("begun")).map_or(0, |text| text.lines().count());
    let has_begun = async {
        while begun() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = ask(&client) => panic!("it takes a second"),
        () = has_begun => {}
    }
    ask(&client).await.expect("the same run's");
    assert_eq!((begun(), scene.runs()), (1, 1));
}

/// What is asked may be to take `out-of-service` from a node that came on, which has a second (K3).
#[tokio::test]
async fn nobody_waits_for_another_login_while_one_is_good() {
    let does =
        format!("[ -e runs ] && while [ ! -e go ]; do sleep 0.01; done\n{}", prints("\"token\": \"t\""));
    let scene = Scene::new(&does, json!({}));
    let known = scene.login.known().expect("a kubeconfig");
    let kept = known.plugin.as_ref().expect("a program").1.clone();
    let (client, _) = server(&known, "Bearer t");
    ask(&client).await.expect("it is believed");
    kept.is_to_be_renewed().await;
    for _ in 0..3 {
        ask(&client).await.expect("it is good still");
    }
    assert_eq!(scene.runs(), 1, "the second run is not over");
    put(&scene.file("go"), "", 0o600);
    while scene.runs() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// An API server that is reached is not away, whatever became of the login.
#[tokio::test]
async fn whether_the_api_server_answers_is_told_where_there_is_no_login() {
    let scene = Scene::new("exit 1", json!({}));
    let known = scene.login.known().expect("a kubeconfig");
    let is_answered = |refused: kube::Error| {
        let kube::Error::Service(error) = refused else { panic!("{refused:?}") };
        error.downcast_ref::<Wrong>().expect("there is no login").is_answered()
    };
    assert!(is_answered(ask(&server(&known, "Bearer t").0).await.expect_err("nobody is known")));
    let sends = |_: &Config| {
        Ok(tower::service_fn(|_: Request<Body>| async {
            Err::<Response<Body>, _>(std::io::Error::other("no route"))
        }))
    };
    let away = crate::client(&known, sends).expect("a client");
    assert!(!is_answered(ask(&away).await.expect_err("nobody is there")));
}

#[tokio::test]
async fn a_certificate_is_shown_with_its_key() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let made = rcgen::CertificateParams::new(Vec::new()).and_then(|params| params.self_signed(&key));
    let (certificate, key) = (made.expect("a certificate").pem(), key.serialize_pem());
    let status = json!({ "clientCertificateData": certificate, "clientKeyData": key }).to_string();
    let status = status.trim_matches(['{', '}']).replace("\\n", "\\\\n");
    let scene = Scene::new(&prints(&status), json!({}));
    let (client, logins) = server(&scene.login.known().expect("a kubeconfig"), "");
    ask(&client).await.expect_err("it hears of no token");
    let login = logins.lock().pop().expect("a login");
    crate::client::tls(&login).expect("the pair is right");
    assert!(login.auth_info.client_certificate_data.is_some() && login.auth_info.token.is_none());
    let debug = format!("{:?} {:?}", scene.login, login.auth_info.client_key_data);
    assert!(!debug.contains("PRIVATE"), "{debug}");
}

#[tokio::test]
async fn it_gets_what_the_kubeconfig_says_and_of_our_environment_nothing_else() {
    let does = format!("echo \"$@\" > args\nenv > env\n{}", prints("\"token\": \"t\""));
    let told = json!({
        "args": ["eks", "get-token"], "env": [{ "name": "AWS_PROFILE", "value": "fencing" }], "provideClusterInfo": true,
    });
    let mut scene = Scene::new(&does, told);
    scene.login.env = vec!["CARGO_MANIFEST_DIR".to_owned()];
    assert_eq!(scene.error().await, "");
    let read = |name: &str| std::fs::read_to_string(scene.file(name)).expect("it ran");
    assert_eq!(read("args"), "eks get-token\n");
    let env = read("env");
    let names: Vec<&str> = env.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let ours = ["PATH", "CARGO_MANIFEST_DIR", "AWS_PROFILE", "KUBERNETES_EXEC_INFO"];
    assert!(ours.iter().all(|name| names.contains(name)), "{names:?}");
    let of_the_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| ours.contains(name) || of_the_shell.contains(name)), "{names:?}");
    let info = env.lines().find_map(|line| line.strip_prefix("KUBERNETES_EXEC_INFO=")).expect("it is there");
    let info: Value = serde_json::from_str(info).expect("JSON");
    assert_eq!((&info["apiVersion"], &info["kind"]), (&json!(V1), &json!("ExecCredential")));
    assert_eq!(info["spec"]["interactive"], false);
    assert_eq!(info["spec"]["cluster"]["server"], "https://127.0.0.1:6443");
}

#[tokio::test]
async fn what_goes_wrong_with_it_is_told_and_what_it_printed_is_not() {
    let ended = prints("\"token\": \"hunter2\", \"expirationTimestamp\": \"2020-01-01T00:00:00Z\"");
    let failing = format!("{}\necho 'no such profile' >&2\nexit 1", prints("\"token\": \"hunter2\""));
    for (does, words) in [
        (ended.as_str(), "printed a login that has ended, by this machine's clock"),
        ("echo hunter2", "printed no JSON"),
        (&failing, "ended with exit status: 1: no such profile"),
        ("head -c 100000 /dev/zero", "printed more than a login"),
    ] {
        let scene = Scene::new(does, json!({}));
        let told = scene.error().await;
        let right = told.starts_with("login_program /") && told.contains(words) && !told.contains("hunter2");
        assert!(right, "{does}: {told}");
        // It is not run for each request.
        let (client, _) = server(&scene.login.known().expect("a kubeconfig"), "");
        let before = scene.runs();
        for _ in 0..2 {
            let refused = ask(&client).await.expect_err("there is no login");
            assert!(matches!(&refused, kube::Error::Service(why) if why.is::<Wrong>()), "{refused:?}");
        }
        assert!(scene.runs() <= before + 1, "{does}");
    }
}

#[tokio::test]
async fn one_that_hangs_is_killed_with_all_that_it_started() {
    let scene = Scene::new("sleep 600 & echo $! > child\necho $$ > self\nwait", json!({}));
    let told = scene.error().await;
    assert!(told.ends_with("was killed after 5s"), "{told}");
    for name in ["child", "self"] {
        let number = std::fs::read_to_string(scene.file(name)).expect("it ran");
        let number = number.trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        assert!(rustix::process::test_kill_process(number).is_err(), "{name} lives");
    }
}

#[test]
fn what_the_settings_do_not_name_is_not_run() {
    let told = |change: &dyn Fn(&mut Login), exec: Value| {
        let mut scene = Scene::new("true", exec);
        change(&mut scene.login);
        let [looked, known] = [scene.login.look(), scene.login.known().map(drop)];
        assert_eq!(looked.clone().err(), known.err());
        looked.err().map_or((None, String::new()), |wrong| (wrong.key(), wrong.to_string()))
    };
    assert_eq!(told(&|_| {}, json!({})), (None, String::new()));
    let none = |login: &mut Login| login.program = None;
    let at = |path: &'static str| move |login: &mut Login| login.program = Some(path.into());
    for (change, exec, key, words) in [
        (
            &none as &dyn Fn(&mut Login),
            json!({"installHint": "get it there"}),
            "kubeconfig",
            "set login_program",
        ),
        (&none, json!({"installHint": "get it there"}), "kubeconfig", "says of it: get it there"),
        (&at("/bin/true"), json!({}), "kubeconfig", "\"get-token\", and login_program is /bin/true"),
        (
            &at("/bin/true"),
            json!({"command": "/usr/bin/true"}),
            "kubeconfig",
            "and login_program is /bin/true",
        ),
        (&at("/bin/nothing"), json!({}), "login_program", "cannot be found"),
        (&at("get-token"), json!({}), "login_program", "is not an absolute path"),
        (&|login| login.env = vec!["A=b".to_owned()], json!({}), "login_env", "names of variables"),
        (&|_| {}, json!({"apiVersion": "client.authentication.k8s.io/v1alpha1"}), "kubeconfig", "expected"),
        (&|_| {}, json!({"interactiveMode": "Always"}), "kubeconfig", "a person at a terminal"),
        (&|_| {}, json!({"env": [{"name": "A"}]}), "kubeconfig", "name and value"),
    ] {
        let (at, why) = told(change, exec);
        assert!(at == Some(key) && why.contains(words), "{words}: {at:?} {why}");
    }
}

#[test]
fn a_program_that_others_may_change_is_none() {
    let scene = Scene::new("true", json!({}));
    let program = scene.file("get-token");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o757)).expect("it is ours");
    let wrong = scene.login.look().expect_err("everybody may change it");
    assert_eq!(wrong.key(), Some("login_program"));
    assert!(wrong.to_string().contains("run chmod o-w"), "{wrong}");
}
