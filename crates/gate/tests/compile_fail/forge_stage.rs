//! An approval that nobody gave.

fn forged(task: model::TaskId, receipt: model::Digest) -> gate::stages::At<gate::stages::Approval> {
    gate::stages::At { task, round: 1, receipt, stage: std::marker::PhantomData }
}

fn main() {}
