//! An Indexed Job of Kubernetes, and a Job that merges: manifests in JSON, which `kubectl apply -f -` takes like YAML.
//!
//! The types below have the fields that are used and no others. The types of `k8s-openapi` would be some hundred thousand lines that
//! everybody who builds Waylay compiles; so only a test has them (`tests/kubernetes.rs`): it reads the manifests with them and writes
//! them again, and a field that does not exist, or has another type, does not come back. `tools/fleet/kubernetes.sh` validates them
//! against the published schemas beside that.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Task, below};
use crate::engine_variables::SHARDS;

/// What a cluster has to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// The image: waylay is in it, and what is tested.
    pub image: String,
    /// The claim of the volume for results, which every pod can write to.
    pub claim: String,
    /// The secret whose variables a bucket needs, where results go to one instead.
    pub secret: String,
    /// Names of both jobs begin with it.
    pub name: String,
    /// Processors of a pod.
    pub cpu: String,
    /// Memory of a pod.
    pub memory: String,
}

/// Where the volume is in a pod.
const RESULTS: &str = "/results";
/// How long the merge waits for shards before it names those that are missing.
const WAIT: &str = "24h";
/// How often a shard is tried again after Waylay itself failed.
const TRIES: u32 = 3;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    api_version: &'static str,
    kind: &'static str,
    metadata: Value,
    spec: JobSpec,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallelism: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_limit_per_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_failed_indexes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff_limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_failure_policy: Option<Value>,
    template: Value,
}

/// The manifests of a night: the shards, then the merge, which waits for them.
pub fn manifests(task: &Task, wishes: &Wishes) -> Value {
    let results = task.bucket.as_deref().unwrap_or(RESULTS);
    let words = task.shard_arguments(&format!("{}/$(JOB_COMPLETION_INDEX)", below(results, "shards")), None);
    let shards = Job {
        api_version: "batch/v1",
        kind: "Job",
        metadata: json!({ "name": format!("{}-shards", wishes.name) }),
        spec: JobSpec {
            completion_mode: Some("Indexed"),
            completions: Some(task.shards),
            parallelism: Some(task.at_most.unwrap_or(task.shards)),
            backoff_limit_per_index: Some(TRIES),
            // A shard that found failures has failed in the eyes of Kubernetes; the others go on.
            max_failed_indexes: Some(task.shards),
            backoff_limit: None,
            pod_failure_policy: Some(failure_policy("FailIndex")),
            template: pod(task, wishes, words, true),
        },
    };
    let words = ["fleet", "collect", "--wait", WAIT, "--shards", &task.shards.to_string(), results];
    let words = words.map(str::to_owned).to_vec();
    let merge = Job {
        api_version: "batch/v1",
        kind: "Job",
        metadata: json!({ "name": format!("{}-merge", wishes.name) }),
        spec: JobSpec {
            completion_mode: None,
            completions: None,
            parallelism: None,
            backoff_limit_per_index: None,
            max_failed_indexes: None,
            backoff_limit: Some(TRIES),
            pod_failure_policy: Some(failure_policy("FailJob")),
            template: pod(task, wishes, words, false),
        },
    };
    json!({ "apiVersion": "v1", "kind": "List", "items": [shards, merge] })
}

/// What the exit codes mean: 1 failures found and 2 bad configuration come again however often it is tried; 3, Waylay failed, may
/// not, and a disruption says nothing about the shard.
fn failure_policy(fail: &str) -> Value {
    let exits = |action: &str, codes: &[u8]| json!({ "action": action, "onExitCodes": { "containerName": "waylay", "operator": "In", "values": codes } });
    json!({ "rules": [
        { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
        exits(fail, &[1, 2]),
        exits("Count", &[3]),
    ] })
}

fn pod(task: &Task, wishes: &Wishes, arguments: Vec<String>, indexed: bool) -> Value {
    let mut environment = vec![json!({ "name": "WAYLAY_NIGHT", "value": task.night })];
    if indexed {
        environment.push(json!({ "name": SHARDS, "value": task.shards.to_string() }));
        environment.push(json!({
            "name": "WAYLAY_MACHINE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } }
        }));
        // Set by Kubernetes as well; here so that arguments may name it.
        environment.push(json!({ "name": "JOB_COMPLETION_INDEX", "valueFrom": { "fieldRef": {
            "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        } } }));
    }
    let resources = json!({ "cpu": wishes.cpu, "memory": wishes.memory });
    let mut container = json!({
        "name": "waylay",
        "image": wishes.image,
        "command": ["waylay"],
        "args": arguments,
        "env": environment,
        "resources": { "requests": resources, "limits": resources },
        // The randomizer stops threads of other processes.
        "securityContext": { "capabilities": { "add": ["SYS_PTRACE"] } },
    });
    let mut spec = json!({
        "restartPolicy": "Never",
        // A shard writes what it has within a second; a bucket takes as long as it takes.
        "terminationGracePeriodSeconds": if task.bucket.is_some() { 120 } else { 30 },
    });
    if task.bucket.is_some() {
        container["envFrom"] = json!([{ "secretRef": { "name": wishes.secret } }]);
    } else {
        container["volumeMounts"] = json!([{ "name": "results", "mountPath": RESULTS }]);
        spec["volumes"] =
            json!([{ "name": "results", "persistentVolumeClaim": { "claimName": wishes.claim } }]);
    }
    spec["containers"] = json!([container]);
    json!({ "spec": spec })
}
