//! Which modules lie on a cycle, and the shortest one; on a graph of names, with no idea of files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// From each name to those that it needs.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The groups of names each of which needs, by some way, every other of its group; only groups of two and more.
pub(crate) fn knots(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|name| (name, reached(graph, name))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for name in graph.keys() {
        let is_mutual = |other: &&String| reach[name].contains(*other) && reach[*other].contains(name);
        let group: BTreeSet<String> = graph.keys().filter(is_mutual).cloned().collect();
        if group.len() > 1 && !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

/// All that `from` needs, by some way; itself only when a way leads back.
fn reached(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        for next in graph.get(name).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

/// The shortest way from a name of the group back to itself, with that name at both ends.
pub(crate) fn shortest_cycle(graph: &Graph, knot: &BTreeSet<String>) -> Vec<String> {
    knot.iter().filter_map(|name| way_back(graph, name)).min_by_key(Vec::len).expect("a group has a cycle")
}

fn way_back(graph: &Graph, from: &str) -> Option<Vec<String>> {
    let mut open = VecDeque::from([vec![from.to_string()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = open.pop_front() {
        for next in graph.get(way.last()?).into_iter().flatten() {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == from {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                open.push_back(longer);
            }
        }
    }
    None
}

#[test]
fn a_cycle_is_told_from_a_diamond() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry((*from).into()).or_default().insert((*to).into());
            graph.entry((*to).into()).or_default();
        }
        graph
    };
    assert!(knots(&graph(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])).is_empty());
    let knotted = graph(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("c", "b"), ("d", "e")]);
    let found = knots(&knotted);
    assert_eq!(found, [["b", "c", "d"].map(String::from).into()]);
    assert_eq!(shortest_cycle(&knotted, &found[0]), ["b", "c", "b"]);
}
