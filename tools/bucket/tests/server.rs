//! The command against a real S3 server that checks credentials, signatures and digests, over a network that cuts, turns bits, and
//! kills who sends in the middle of an upload.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::path::Path;

use support::{
    BUCKET, Fault, Network, SECRET, Sending, Server, command, content, noise, run, succeed, write,
};

const NIGHT: &str = "s3://nights/one/shards/1";

/// The only folder below one.
fn only(folder: &Path) -> std::path::PathBuf {
    let mut folders: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

/// A folder as a shard leaves it, with a dump that goes in several parts.
fn results(folder: &Path) {
    write(folder, "20261118-010203/campaign.json", b"{\"record\": 1}");
    write(folder, "20261118-010203/failures/deadlock-1/failure.json", &noise(5_000, 1));
    write(folder, "20261118-010203/failures/deadlock-1/dump.dmp", &noise(20 << 20, 2));
    write(folder, "20261118-010203/host.log", b"");
}

#[test]
fn what_is_sent_comes_back_and_what_changes_is_replaced() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let (out, back) = (place.path().join("out"), place.path().join("back"));
    results(&out);
    let sending = Sending::start(server.at, &["send", out.to_str().unwrap(), NIGHT, "--every", "1"]);
    write(&out, "20261118-010203/campaign.json", b"{\"record\": 2}");
    fs::remove_file(out.join("20261118-010203/failures/deadlock-1/dump.dmp")).unwrap();
    assert_eq!(sending.end(), Some(0));
    let told = succeed(server.at, &["get", "s3://nights/one/shards", back.to_str().unwrap()]);
    assert_eq!(told, "{\"processes\": 1, \"ended\": 1, \"files\": 3, \"damaged\": 0}\n");
    assert_eq!(content(&only(&back.join("1"))), content(&out));
    // What no list names any more is gone: the list, and one object per content.
    assert_eq!(fs::read_dir(only(&server.folder("one/shards/1"))).unwrap().count(), 1 + 3);
    // Nothing is fetched twice.
    let again = succeed(server.at, &["get", "s3://nights/one/shards", back.to_str().unwrap()]);
    assert!(again.contains("\"files\": 0"), "{again}");
}

#[test]
fn an_upload_that_is_killed_in_the_middle_leaves_what_was_there_and_is_made_up_for() {
    let server = Server::start();
    for bytes in [100_000, 7 << 20, 15 << 20] {
        let network = Network::to(server.at);
        let place = tempfile::tempdir().unwrap();
        let (out, back) = (place.path().join("out"), place.path().join("back"));
        let night = format!("s3://nights/kill-{bytes}");
        let address = format!("{night}/1");
        write(&out, "a/campaign.json", b"{\"record\": 1}");
        let mut sending =
            Sending::start(network.at, &["send", out.to_str().unwrap(), &address, "--every", "1"]);
        let before = content(&out);
        // In one step, so that the next list has all of it or nothing.
        results(&place.path().join("made"));
        network.after(bytes, Fault::Kill(sending.child.id()));
        fs::rename(place.path().join("made/20261118-010203"), out.join("20261118-010203")).unwrap();
        assert_eq!(sending.child.wait().unwrap().code(), None, "it was killed");
        assert!(network.is_over());
        succeed(server.at, &["get", &night, back.to_str().unwrap()]);
        let left = content(&only(&back.join("1")));
        assert_eq!(left, before, "the list names what was there, and nothing that is not");
        // The next process of the shard fetches it, goes on, and sends what it has.
        let other = place.path().join("other");
        let sending = Sending::start(server.at, &["send", other.to_str().unwrap(), &address, "--resume"]);
        assert_eq!(content(&other), before);
        results(&other);
        assert_eq!(sending.end(), Some(0));
        let back = place.path().join("again");
        succeed(server.at, &["get", &night, back.to_str().unwrap()]);
        let mut union = std::collections::BTreeMap::new();
        for process in fs::read_dir(back.join("1")).unwrap() {
            union.extend(content(&process.unwrap().path()));
        }
        assert_eq!(union, content(&other));
    }
}

#[test]
fn a_network_that_cuts_and_turns_bits_is_noticed_and_tried_again() {
    let server = Server::start();
    for (number, fault) in [Fault::Cut, Fault::Flip].into_iter().enumerate() {
        for bytes in [3_000_000, 12_000_000] {
            let network = Network::to(server.at);
            let place = tempfile::tempdir().unwrap();
            let (out, back) = (place.path().join("out"), place.path().join("back"));
            results(&out);
            let night = format!("s3://nights/network-{number}-{bytes}");
            network.after(bytes, fault);
            succeed(network.at, &["send", out.to_str().unwrap(), &format!("{night}/1"), "--once"]);
            assert!(network.is_over(), "{fault:?} after {bytes}");
            succeed(server.at, &["get", &night, back.to_str().unwrap()]);
            assert_eq!(content(&only(&back.join("1"))), content(&out), "{fault:?} after {bytes}");
        }
    }
}

#[test]
fn what_is_damaged_in_the_bucket_is_named_and_left_out() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let (out, back) = (place.path().join("out"), place.path().join("back"));
    write(&out, "a/campaign.json", b"{\"record\": 1}");
    write(&out, "a/failures/x/failure.json", &noise(4_000, 3));
    for shard in ["1", "2"] {
        succeed(server.at, &["send", out.to_str().unwrap(), &format!("s3://nights/d/{shard}"), "--once"]);
    }
    let process = only(&server.folder("d/2"));
    let damaged = fs::read_dir(&process).unwrap().map(|entry| entry.unwrap().path());
    let damaged = damaged.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[100] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let ran = run(server.at, &["get", "s3://nights/d", back.to_str().unwrap()]);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        ran.status.success() && said.contains("a/failures/x/failure.json") && said.contains("damaged"),
        "{said}"
    );
    assert_eq!(content(&back.join("1")).len(), 2);
    assert!(content(&back.join("2")).is_empty(), "half of a process is none");
}

#[test]
fn what_a_merge_replaces_is_gone_when_its_own_is_there() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let back = place.path().join("back");
    for (out, record) in [("one", &b"1"[..]), ("two", b"2")] {
        let out = place.path().join(out);
        write(&out, "campaign.json", record);
        succeed(server.at, &["send", out.to_str().unwrap(), "s3://nights/n/night", "--once", "--replace"]);
    }
    succeed(server.at, &["get", "s3://nights/n/night", back.to_str().unwrap()]);
    assert_eq!(content(&only(&back)), content(&place.path().join("two")));
}

#[test]
fn what_cannot_be_used_is_one_sentence() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let out = place.path().to_str().unwrap();
    let refused = |secret: &str, words: &[&str]| {
        let ran = command(server.at, secret, words).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!((ran.status.code(), said.lines().count()), (Some(2), 1), "{words:?}: {said}");
        said
    };
    for words in
        [&["check", NIGHT][..], &["send", out, NIGHT], &["get", NIGHT, out], &["send", out, NIGHT, "--once"]]
    {
        // An empty folder is sent as an empty list, so every one of them speaks with the bucket.
        assert!(refused("another", words).contains("no permission for s3://nights/one/shards/1"));
    }
    assert!(refused(SECRET, &["check", "s3://other/x"]).contains("there is no bucket for s3://other/x"));
    assert!(refused(SECRET, &["check", "nights/x"]).contains("say s3://bucket/night"));
    succeed(server.at, &["check", NIGHT]);
    assert!(content(&server.folder("one")).is_empty(), "nothing is left of a check in {BUCKET}");
}
