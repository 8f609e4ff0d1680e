//! What the others lack is here: this compiles, so each of them fails for its own reason.

fn run(permit: gate::Permit) -> (model::Action, model::Grant) {
    permit.spend().into_parts()
}

#[allow(dead_code)]
fn straight_path(
    decision: gate::Decision,
    receipt: &audit::Receipt,
) -> Result<Option<(model::Action, model::Grant)>, gate::ReceiptMismatch> {
    match decision {
        gate::Decision::Allow(authorization) | gate::Decision::Narrow(authorization) => {
            Ok(Some(run(authorization.recorded(receipt)?)))
        }
        gate::Decision::RequireApproval(_) | gate::Decision::Deny(_) => Ok(None),
    }
}

fn main() {}
