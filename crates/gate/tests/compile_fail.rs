//! The programs that must not compile: what a permit proves holds only as long as nobody can make, copy or skip one.
//! That the same steps compile when they are taken in the right way is shown by `receipts.rs`.

#[test]
fn a_permit_cannot_be_forged_copied_reused_read_or_skipped() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
