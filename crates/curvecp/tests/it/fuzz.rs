//! The fuzz targets on their seeds, on inputs that once failed, on damage to both, and on random bytes.

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(crate::fuzzing::TARGETS, env!("CARGO_MANIFEST_DIR"));
}
