//! The table of a release of the kind `kubernetes`.

use std::path::PathBuf;
use std::time::Duration;

use picket_reach::Settings;
use picket_release::Pace;

use crate::cluster::Cluster;
use crate::finding::FindBy;
use crate::identity::Match;

/// What `cluster_uid` is.
const UID: &str = "as kubectl get namespace kube-system -o jsonpath={.metadata.uid} says: a node of another cluster may have the same name";
/// The longest that one attempt may take.
const LONGEST: Duration = Duration::from_secs(60);
/// The least that a release may take: a CSI driver's controller that sleeps is waited for (K5).
const LEAST: Duration = Duration::from_secs(8 * 60);
/// What stands in the value of a taint, between `picket.` and the generation.
const LONGEST_OWNER: usize = 32;

/// Which cluster, and how it is reached.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    by: picket_login::Login,
    cluster_uid: String,
}

impl Login {
    /// Keys: `kubeconfig` (a file; not given: the service account of the pod in which the gateway runs), `context` (one of it; not
    /// given: its current one), `login_program` (an absolute path: the program that its user logs in by), `login_env` (the variables that it
    /// gets), `cluster_uid` (the UID of the namespace `kube-system`). A file that is not there yet is no fault.
    pub(crate) fn read(settings: &mut Settings<'_>) -> Self {
        let kubeconfig = settings.text("kubeconfig").map(PathBuf::from);
        let context = settings.text("context");
        if context.is_some() && kubeconfig.is_none() {
            settings.fault("context", "is one of a kubeconfig, and none is named");
        }
        let is_absolute = kubeconfig.as_ref().is_none_or(|path| path.is_absolute());
        let program = settings.text("login_program").map(PathBuf::from);
        if program.is_some() && kubeconfig.is_none() {
            settings.fault("login_program", "is one of a kubeconfig, and none is named");
        }
        let by = picket_login::Login::new(kubeconfig, context, program, settings.texts("login_env"));
        if !is_absolute {
            settings.fault("kubeconfig", "expected an absolute path, for example \"/etc/picket/kubeconfig\"");
        } else if let Err(wrong) = by.look()
            && let Some(key) = wrong.key()
        {
            settings.fault(key, wrong.to_string());
        }
        let uid = settings.needed("cluster_uid", &format!("\"3f0c6d4e-…\", {UID}"));
        if let Some(uid) = uid.as_ref().filter(|uid| !is_uid(uid)) {
            settings.fault("cluster_uid", format!("expected a UID, {UID}; found {uid:?}"));
        }
        Self { by, cluster_uid: uid.unwrap_or_default() }
    }

    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::new(self.by.clone(), self.cluster_uid.clone())
    }

    /// That of the cluster in which the Machines of Cluster API are, by the same program.
    fn elsewhere(&self, path: PathBuf) -> picket_login::Login {
        picket_login::Login::new(Some(path), None, self.by.program.clone(), self.by.env.clone())
    }
}

/// As the API server makes them: it is compared as text.
fn is_uid(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// Where the Machines of Cluster API are.
#[derive(Clone, Debug)]
pub(crate) enum At {
    /// In the Node's own cluster.
    Here,
    /// In the cluster of that kubeconfig, by its current context.
    Elsewhere(picket_login::Login),
}

impl At {
    fn read(settings: &mut Settings<'_>, login: &Login) -> Option<Self> {
        match settings.text("machines")?.as_str() {
            "here" => Some(Self::Here),
            path if path.starts_with('/') => {
                let login = login.elsewhere(path.into());
                // What is wrong with the program stands at its own key.
                if let Err(wrong) = login.look()
                    && wrong.key() == Some("kubeconfig")
                {
                    settings.fault("machines", wrong.to_string());
                }
                Some(Self::Elsewhere(login))
            }
            other => {
                let message = format!(
                    "expected \"here\" (the Machines of Cluster API are in the Node's own cluster) or the absolute path of the management \
                     cluster's kubeconfig; found {other:?}"
                );
                settings.fault("machines", message);
                None
            }
        }
    }
}

/// As the settings have it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) login: Login,
    pub(crate) owner: String,
    pub(crate) matched: Match,
    pub(crate) find_by: FindBy,
    /// Pods are left to pod GC and to taint eviction: the taint comes first (K4).
    pub(crate) leaves_pods: bool,
    /// While a fence has not let everything go, the Node is kept from being deleted (K8).
    pub(crate) keeps_node: bool,
    /// Where the Machines of Cluster API are (K8).
    pub(crate) machines: Option<At>,
    /// Once a Node is back, the fence of its addresses by which ceph-csi blocks them is undone.
    pub(crate) undoes_network_fences: bool,
    pub(crate) pace: Pace,
}

impl Asked {
    /// Keys besides those of [`Login`]: `owner` (this installation, in taints and annotations; `picket`), `node_deletion` (`held`: from the
    /// fence on until all is let go a finalizer keeps the Node, if it is deleted; `free`), `match` (`identity`: the Node's system UUID or
    /// providerID must be the device's; `name`: its name is enough), `find_by` (`name`: the Node has the node's name; `provider_id`,
    /// `system_uuid`: it has whatever name, and says that of its machine), `pods` (`deleted`: by Picket, each by its UID, before the taint;
    /// `left`: to pod GC and to taint eviction, which delete by names), `machines` (`here`, or a kubeconfig: where the Machines of Cluster API
    /// are, so that nobody else remediates them meanwhile; not given: nothing is asked of them), `network_fences` (`left`: what ceph-csi, or whoever else,
    /// fenced of the Node's addresses is left to them; `undone`: once the Node is back, by csi-addons).
    pub(crate) fn read(settings: &mut Settings<'_>) -> Option<Self> {
        let login = Login::read(settings);
        let owner = settings.text("owner").unwrap_or_else(|| "picket".to_owned());
        if !is_label(&owner) {
            let message = format!(
                "expected at most {LONGEST_OWNER} letters, digits and hyphens, a letter or digit first and last; found {owner:?}"
            );
            settings.fault("owner", message);
        }
        let matched = match settings.word("match", &["identity", "name"]) {
            Some("name") => Match::Name,
            _ => Match::Identity,
        };
        let find_by = FindBy::of_word(settings.word("find_by", &FindBy::WORDS));
        if find_by != FindBy::Name && matched == Match::Name {
            settings.fault(
                "match",
                "expected \"identity\": a Node that is found by what it says of its machine is known by that",
            );
        }
        let leaves_pods = settings.word("pods", &["deleted", "left"]) == Some("left");
        let keeps_node = settings.word("node_deletion", &["held", "free"]) != Some("free");
        let machines = At::read(settings, &login);
        let undoes_network_fences = settings.word("network_fences", &["left", "undone"]) == Some("undone");
        let pace = Pace::read(settings, LONGEST);
        if pace.deadline < LEAST {
            settings.fault("deadline", "expected 8m at least: what detaches volumes may be away for minutes");
        }
        Some(Self {
            login,
            owner,
            matched,
            find_by,
            leaves_pods,
            keeps_node,
            machines,
            undoes_network_fences,
            pace,
        })
    }
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let ends = [text.bytes().next(), text.bytes().last()];
    !text.is_empty()
        && text.len() <= LONGEST_OWNER
        && text.bytes().all(inner)
        && ends.iter().flatten().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "3f0c6d4e-0000-4000-8000-000000000000";

    fn faults(table: serde_json::Value) -> Vec<String> {
        let mut settings = Settings::new(table.as_object().expect("a table"));
        let made = Asked::read(&mut settings);
        match settings.finish(made) {
            Ok(_) => Vec::new(),
            Err(faults) => faults.into_iter().map(|fault| fault.key).collect(),
        }
    }

    #[test]
    fn the_least_is_whose_cluster_it_is() {
        assert_eq!(faults(json!({})), ["cluster_uid"]);
        assert!(faults(json!({"cluster_uid": UID})).is_empty());
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let table = json!({
            "kubeconfig": "kubeconfig", "cluster_uid": 7, "owner": "my_cluster", "match": "hope", "deadline": "1m", "colour": "red",
        });
        assert_eq!(faults(table), ["kubeconfig", "cluster_uid", "owner", "match", "deadline", "colour"]);
        assert_eq!(faults(json!({"context": "here", "cluster_uid": UID})), ["context"]);
        assert_eq!(faults(json!({"login_program": "/bin/true", "cluster_uid": UID})), ["login_program"]);
        assert_eq!(faults(json!({"cluster_uid": UID, "machines": "there"})), ["machines"]);
        assert!(faults(json!({"cluster_uid": UID, "machines": "/etc/picket/management"})).is_empty());
        let found = json!({"cluster_uid": UID, "find_by": "provider_id", "match": "name", "pods": "kept"});
        assert_eq!(faults(found), ["match", "pods"]);
        assert_eq!(faults(json!({"cluster_uid": UID, "network_fences": "mine"})), ["network_fences"]);
        assert!(faults(json!({"cluster_uid": UID, "network_fences": "undone"})).is_empty());
        assert!(faults(json!({"cluster_uid": UID, "find_by": "system_uuid", "pods": "left"})).is_empty());
    }

    #[test]
    fn a_cluster_is_known_by_a_uid_alone() {
        for uid in
            ["kube-system", "u", "3F0C6D4E-0000-4000-8000-000000000000", "3f0c6d4e00004000800000000000000000"]
        {
            let table = json!({"cluster_uid": uid});
            let mut settings = Settings::new(table.as_object().expect("a table"));
            let made = Asked::read(&mut settings);
            let faults = settings.finish(made.map(drop)).expect_err("it is none");
            let told = &faults[0].message;
            assert!(told.contains("kubectl get namespace kube-system -o jsonpath={.metadata.uid}"), "{told}");
            assert!(told.ends_with(&format!("found {uid:?}")), "{told}");
        }
    }

    #[test]
    fn a_kubeconfig_that_is_there_and_wrong_is_a_fault_and_one_that_is_missing_is_none() {
        let home = tempfile::tempdir().expect("a directory");
        let [path, missing] = ["login", "missing"].map(|name| home.path().join(name));
        let put = |text: &str| {
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("ours");
        };
        put("current-context: there\n");
        assert_eq!(faults(json!({"cluster_uid": UID, "kubeconfig": path})), ["kubeconfig"]);
        assert_eq!(faults(json!({"cluster_uid": UID, "kubeconfig": path, "context": "a"})), ["context"]);
        assert_eq!(faults(json!({"cluster_uid": UID, "machines": path})), ["machines"]);
        assert!(faults(json!({"cluster_uid": UID, "kubeconfig": missing, "machines": missing})).is_empty());
        put("current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n\
             clusters: [{name: c, cluster: {server: \"https://127.0.0.1\"}}]\nusers: [{name: u, user: {token: t}}]\n");
        assert!(faults(json!({"cluster_uid": UID, "kubeconfig": path, "machines": path})).is_empty());
    }
}
