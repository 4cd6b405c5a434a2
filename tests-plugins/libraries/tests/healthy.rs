//! The healthy tests stay healthy under a fake host: every action comes, on several workers, and nothing is reported.

#[path = "../../faults/tests/defaults/mod.rs"]
mod defaults;
#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;
mod life;

use life::live;
use waylay_libraries as _;

#[test]
fn channel() {
    live(
        "channel",
        20,
        &[
            ("producers", &[1, 2, 3]),
            ("consumers", &[1, 3]),
            ("messages", &[0, 1, 50, 200]),
            ("capacity", &[0, 1, 7, 40]),
        ],
    );
}

#[test]
fn map() {
    live(
        "map",
        20_000,
        &[
            ("action", &[0, 1, 0, 3, 0, 0, 1, 2, 0, 3, 4]),
            ("key", &[1, 2, 3, 5, 8, 13, 21]),
            ("amount", &[1, 2, 3, 9]),
        ],
    );
}

#[test]
fn compression() {
    live(
        "compression",
        3,
        &[
            ("size", &[0, 1, 4096, 1_500_000]),
            ("variety", &[1, 200]),
            ("level", &[1, 3]),
            ("threads", &[1, 2, 3]),
            ("chunk", &[70_000, 1_000_000]),
        ],
    );
}

#[test]
fn two_channels() {
    live(
        "two-channels",
        20,
        &[
            ("senders", &[1, 2, 3]),
            ("receivers", &[1, 3]),
            ("messages", &[1, 40, 150]),
            ("capacity", &[1, 5]),
            ("deadline", &[1_000, 90_000]),
        ],
    );
}

#[test]
fn ordered_map() {
    live(
        "ordered-map",
        30,
        &[
            ("threads", &[2, 4]),
            ("actions", &[1, 100, 400]),
            ("keys", &[1, 7, 100]),
            ("removals", &[0, 1]),
            ("walks", &[0, 1]),
        ],
    );
}

#[test]
fn deque() {
    live(
        "deque",
        30,
        &[
            ("items", &[1, 100, 1500]),
            ("thieves", &[1, 3]),
            ("burst", &[1, 10, 60]),
            ("injected", &[0, 1]),
            ("order", &[0, 1]),
        ],
    );
}

#[test]
fn locks() {
    live(
        "locks",
        20,
        &[
            ("producers", &[1, 3]),
            ("items", &[1, 50, 200]),
            ("capacity", &[1, 2, 9]),
            ("writes", &[0, 1]),
            ("patience", &[10_000, 1_000_000]),
        ],
    );
}

#[test]
fn swap() {
    live(
        "swap",
        20,
        &[
            ("readers", &[1, 3]),
            ("writers", &[1, 2]),
            ("stores", &[1, 100, 300]),
            ("held", &[1, 10]),
            ("updates", &[0, 1]),
        ],
    );
}

#[test]
fn tree() {
    live(
        "tree",
        20,
        &[
            ("nodes", &[1, 50, 2000]),
            ("breadth", &[1, 4]),
            ("value", &[0, 1000]),
            ("walk", &[0, 1, 2, 3]),
            ("walks", &[4]),
            ("grain", &[1, 130, 200]),
        ],
    );
}

#[test]
fn sort() {
    let values: &[(&str, &[i64])] = &[
        ("size", &[0, 1, 5000, 20_000]),
        ("values", &[1, 100_000]),
        ("stable", &[0, 1]),
        ("chunk", &[1, 999]),
    ];
    live("sort", 20, values);
}

#[test]
fn allocator() {
    live(
        "allocator",
        20,
        &[
            ("threads", &[2, 4]),
            ("blocks", &[1, 50, 200]),
            ("size", &[1, 100, 20_000]),
            ("grown", &[0, 1]),
            ("handed", &[1, 2]),
        ],
    );
}

#[cfg(unix)]
#[test]
fn database() {
    live(
        "database",
        500,
        &[
            ("writes", &[1, 0]),
            ("transfers", &[1, 30]),
            ("account", &[0, 5, 63, 32]),
            ("amount", &[-50, 7]),
            ("aborts", &[0, 1]),
        ],
    );
}

#[cfg(unix)]
#[test]
fn messages() {
    live(
        "messages",
        8,
        &[
            ("senders", &[1, 3]),
            ("receivers", &[1, 2]),
            ("messages", &[1, 30, 100]),
            ("size", &[0, 10, 2000]),
            ("water", &[1, 30]),
        ],
    );
}

#[test]
fn every_default_is_a_distribution() {
    assert_eq!(defaults::check(), if cfg!(unix) { 62 } else { 52 });
}
