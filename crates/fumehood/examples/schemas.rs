//! Writes the schemas of all JSON documents to `docs/schemas`: `cargo run -p fumehood --example schemas`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    std::fs::create_dir_all(&directory)?;
    for (name, schema) in fumehood::output::shape::schemas() {
        std::fs::write(directory.join(format!("{name}.json")), format!("{schema:#}\n"))?;
    }
    Ok(())
}
