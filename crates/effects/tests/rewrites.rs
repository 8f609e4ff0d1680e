//! Rewrites: the same request in other words has the same answer, in both directions.

mod common;

use common::rewrites::rows;

#[test]
fn twenty_rewrites_of_each_row_have_the_answer_of_the_row() {
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for row in rows() {
        assert!(row.rewrites.len() >= 20, "{}: {} ways", row.id, row.rewrites.len());
        let variables: Vec<&str> = row.variables.iter().map(String::as_str).collect();
        for request in &row.rewrites {
            asked += 1;
            let request: Vec<&str> = request.iter().map(String::as_str).collect();
            let effects = common::described(&request, &variables);
            if common::only_reads(&effects) != row.reads {
                wrong.push(format!("{}: {request:?}: {:?}", row.id, common::said(&effects)));
            }
        }
    }
    assert!(
        asked > 1000 && wrong.is_empty(),
        "{} of {asked}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(40)]
    );
}
