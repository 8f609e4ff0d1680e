//! Dependencies between our crates point one way, and `unsafe` stays where it belongs.

use xtask::graph::{self, MAY_KNOW};
use xtask::repo::{Dependency, Metadata, Repo};

fn metadata() -> Metadata {
    let repo = Repo::find().expect("cargo reads the manifests");
    repo.metadata(&["--no-deps"]).expect("cargo reads the manifests")
}

#[test]
fn dependencies_point_one_way() {
    assert_eq!(graph::wrong_arrows(&metadata()), [""; 0]);
}

#[test]
fn an_arrow_that_points_back_is_noticed() {
    let mut metadata = metadata();
    let model =
        metadata.packages.iter_mut().find(|package| package.name == "fumehood-model").expect("it is ours");
    model.dependencies.push(Dependency { name: "fumehood-engine".to_owned(), kind: None });
    assert_eq!(graph::wrong_arrows(&metadata), ["fumehood-model must not know fumehood-engine"]);
}

#[test]
fn the_graph_has_no_circle() {
    for (position, (name, known)) in MAY_KNOW.iter().enumerate() {
        let before: Vec<&str> = MAY_KNOW[..position].iter().map(|(name, _)| *name).collect();
        assert!(known.iter().all(|known| before.contains(known)), "{name} knows something that comes later");
    }
}

#[test]
fn unsafe_is_forbidden_everywhere_but_in_the_sandbox() {
    assert_eq!(graph::without_the_ban(&metadata()), [""; 0]);
}
