//! The manifests for Kubernetes, read and written again with the types of its own interface: what does not come back as it went in is
//! a field that does not exist, or of another type.

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};
use waylay_fleet::engine::kubernetes::{Wishes, manifests};
use waylay_fleet::engine::{Engine, Task};

fn task(bucket: Option<&str>) -> Task {
    let words = ["run", "mix.toml", "--seed", "7"].map(str::to_owned).to_vec();
    let mut task = Task::new(Engine::Kubernetes, "/nights/one".into(), "waylay".into(), words, 16);
    task.at_most = Some(4);
    task.bucket = bucket.map(str::to_owned);
    task.night = "n".to_owned();
    task
}

fn made(bucket: Option<&str>) -> Value {
    let wishes = Wishes {
        image: "registry/waylay:1".into(),
        claim: "results".into(),
        secret: "keys".into(),
        name: "night".into(),
        cpu: "2".into(),
        memory: "4Gi".into(),
    };
    manifests(&task(bucket), &wishes)
}

#[test]
fn every_field_is_one_of_kubernetes_and_of_its_type() {
    for bucket in [None, Some("s3://nights/one")] {
        for item in made(bucket)["items"].as_array().unwrap() {
            let job: Job = serde_json::from_value(item.clone()).unwrap();
            assert_eq!(serde_json::to_value(&job).unwrap(), *item);
        }
    }
    // A field that does not exist does not come back, and a wrong type is refused: otherwise the lines above say nothing.
    let mut wrong = made(None)["items"][0].clone();
    wrong["spec"]["compleations"] = json!(16);
    let job: Job = serde_json::from_value(wrong.clone()).unwrap();
    assert_ne!(serde_json::to_value(&job).unwrap(), wrong);
    wrong["spec"]["completions"] = json!("16");
    assert!(serde_json::from_value::<Job>(wrong).is_err());
}

#[test]
fn the_manifests_say_what_is_needed() {
    let list = made(None);
    let spec = &list["items"][0]["spec"];
    let of = |name: &str| spec[name].clone();
    assert_eq!(
        [of("completionMode"), of("completions"), of("parallelism"), of("backoffLimitPerIndex")],
        [json!("Indexed"), json!(16), json!(4), json!(3)]
    );
    let rules = &spec["podFailurePolicy"]["rules"];
    assert_eq!(rules[1]["onExitCodes"]["values"], json!([1, 2]));
    assert_eq!((&rules[0]["action"], &rules[1]["action"]), (&json!("Ignore"), &json!("FailIndex")));
    let container = &spec["template"]["spec"]["containers"][0];
    let arguments = container["args"].to_string();
    assert!(arguments.contains("/results/shards/$(JOB_COMPLETION_INDEX)"), "{arguments}");
    assert_eq!(container["securityContext"]["capabilities"]["add"], json!(["SYS_PTRACE"]));
    let merge = &list["items"][1]["spec"];
    assert_eq!(merge["podFailurePolicy"]["rules"][1]["action"], json!("FailJob"), "it has no indexes");
    assert!(merge.get("completionMode").is_none());
}

#[test]
fn results_go_to_a_volume_or_to_a_bucket() {
    for (bucket, out, from) in
        [(None, "/results", "volumeMounts"), (Some("s3://nights/one"), "s3://nights/one", "envFrom")]
    {
        let list = made(bucket);
        let pods = [0, 1].map(|job: usize| list["items"][job]["spec"]["template"]["spec"].clone());
        assert!(
            pods[0]["containers"][0]["args"]
                .to_string()
                .contains(&format!("{out}/shards/$(JOB_COMPLETION_INDEX)"))
        );
        assert!(pods[1]["containers"][0]["args"].as_array().unwrap().contains(&json!(out)));
        for pod in pods {
            assert!(pod["containers"][0].get(from).is_some(), "{pod:#}");
            assert_eq!(pod.get("volumes").is_some(), bucket.is_none(), "{pod:#}");
        }
    }
}

/// Whoever changes the manifests sees here what users will get.
#[test]
fn the_manifests_are_those_that_were_looked_at() {
    let text = serde_json::to_string_pretty(&made(None)).unwrap() + "\n";
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubernetes.json");
    if std::env::var_os("WAYLAY_WRITE_DOCS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap_or_default(), text, "WAYLAY_WRITE_DOCS=1 writes it anew");
}
