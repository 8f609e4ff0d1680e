//! The committed table through the careful bundle: every rewrite of a row has the verdict of the row.

#[path = "../../../effects/tests/common/rewrites.rs"]
mod rewrites;

use gate::Decision;

use super::Gates;

#[test]
fn every_rewrite_of_a_row_has_its_verdict_under_the_careful_bundle() {
    let gates = Gates::new();
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for row in rewrites::rows() {
        assert!(row.rewrites.len() >= 20, "{}", row.id);
        for request in &row.rewrites {
            asked += 1;
            let decision = super::decide_with(&gates.cautious, request, &row.variables, &[]);
            let goes = matches!(decision, Decision::Allow(_) | Decision::Narrow(_));
            if goes != row.reads {
                wrong.push(format!("{}: {request:?}: {:?}", row.id, decision.record().verdict));
            }
        }
    }
    assert!(asked > 1000 && wrong.is_empty(), "{} of {asked}: {wrong:#?}", wrong.len());
}
