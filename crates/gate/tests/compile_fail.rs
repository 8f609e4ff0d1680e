//! The programs that must not compile: what a permit proves holds only as long as nobody can make, copy or skip one.

#[test]
fn a_permit_cannot_be_forged_copied_reused_read_or_skipped() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_fail/the_right_way.rs");
    cases.compile_fail("tests/compile_fail/[!t]*.rs");
}
