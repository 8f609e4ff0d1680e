//! A receipt that no log gave.

fn forge(digest: model::Digest) -> audit::Receipt {
    audit::Receipt {
        seq: 1,
        digest,
        event: "decided",
        about: model::Subject::default(),
        decided: None,
        stage: None,
    }
}

fn main() {}
