//! Views of grants that list programs, made from the programs of this machine.

use std::path::Path;

use model::grant::{GrantedProgram, Programs};
use model::{Digest, OsText};
use sandbox::view::{Executables, Kind, Piece, View, ViewError, mount_points};

use crate::fixture::Bench;

fn on_this_machine(programs: &[&str]) -> Result<View, ViewError> {
    let mut host = Bench::bare().variable("PATH", "/usr/local/bin:/usr/bin:/bin").host;
    host.root = "/".into();
    host.home = "/nonexistent".into();
    host.workspace = "/srv/none".into();
    host.state_dir = "/var/none".into();
    host.mount_points = mount_points().unwrap();
    let list = programs
        .iter()
        .map(|program| GrantedProgram::whatever_it_holds(OsText::try_from(*program).unwrap()))
        .collect();
    View::of(&host, &Programs::Only(list))
}

#[test]
fn a_listed_program_comes_with_its_loader_and_libraries_and_nothing_else() {
    let view = on_this_machine(&["cat"]).unwrap();
    let Executables::Only(listed) = &view.executables else { panic!("a list was given") };
    assert_eq!((listed.programs.len(), listed.loaders.len()), (1, 1), "{listed:?}");
    assert!(listed.libraries.iter().any(|path| path.to_string_lossy().contains("/libc")), "{listed:?}");
    assert!(!listed.needs_code_of(Path::new("/etc")) && listed.needs_code_of(&listed.programs[0]));
    assert_eq!(listed.interpreters().count(), 0);
    assert!(view.pieces.iter().any(|piece| piece.target().to_string_lossy().contains("/libc")));
    let whole = |piece: &&Piece| piece.source() == Some(Path::new("/usr"));
    assert_eq!(view.pieces.iter().find(whole), None);
    let names = ["ls", "bash", "dash", "python3", "ld"];
    let shown = |piece: &Piece| {
        let is_file = matches!(piece, Piece::ReadOnly { kind: Kind::File, .. });
        is_file && piece.target().file_name().is_some_and(|name| names.iter().any(|it| name == *it))
    };
    assert_eq!(view.pieces.iter().find(|piece| shown(piece)), None);
    assert!(view.environment["PATH"].as_str().is_some_and(|path| path.starts_with("/usr/bin")));
}

#[test]
fn a_script_brings_its_interpreter() {
    let bench = Bench::debian();
    bench.file("/usr/local/bin/tool", "#!/usr/bin/env shell\n");
    bench.file("/usr/bin/env", "");
    for program in ["/usr/local/bin/tool", "/usr/bin/env"] {
        bench.mode(program, 0o755);
    }
    // Real machine code from this machine; its loader and libraries stand at the same places in the fixture.
    for program in ["/usr/bin/env", "/usr/bin/shell"] {
        std::fs::copy("/usr/bin/env", bench.at(program)).unwrap();
        bench.mode(program, 0o755);
    }
    let missing = bench.view_of(&["tool"]).map(|_| ()).unwrap_err();
    assert!(
        matches!(missing, ViewError::ProgramMissing { .. } | ViewError::LibraryMissing { .. }),
        "{missing}"
    );
}

#[test]
fn an_interpreter_brings_its_standard_library() {
    let Ok(view) = on_this_machine(&["/usr/bin/perl"]) else { return };
    let has_modules = |piece: &Piece| piece.target().to_string_lossy().contains("/perl");
    assert!(view.pieces.iter().filter(|piece| has_modules(piece)).count() > 1);
}

#[test]
fn programs_that_cannot_be_granted_are_named() {
    assert!(matches!(on_this_machine(&["no-such-program"]), Err(ViewError::ProgramMissing { .. })));
    assert!(matches!(on_this_machine(&["bin/cat"]), Err(ViewError::ProgramMissing { .. })));
    assert!(matches!(on_this_machine(&["/etc/passwd"]), Err(ViewError::ProgramRefused { .. })));
    assert!(matches!(on_this_machine(&["/usr"]), Err(ViewError::ProgramRefused { .. })));
    let bench = Bench::debian();
    bench.program("/home/ada/project/run");
    let error = bench.view_of(&["/home/ada/project/run"]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("it lies in the workspace"), "{error}");
    bench.file("/usr/bin/odd", "plain text");
    bench.mode("/usr/bin/odd", 0o755);
    let error = bench.view_of(&["odd"]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("neither machine code nor a script"), "{error}");
}

#[test]
fn no_piece_of_a_list_lies_in_a_read_only_directory_of_another() {
    for program in ["/usr/bin/python3", "/usr/bin/perl", "/usr/bin/java", "/usr/bin/node", "/bin/sh"] {
        let Ok(view) = on_this_machine(&[program]) else { continue };
        for piece in &view.pieces {
            let is_directory = |it: &&Piece| matches!(it, Piece::ReadOnly { kind: Kind::Directory, .. });
            let around = view.pieces.iter().filter(|it| it.target() != piece.target());
            let around = around.filter(|it| piece.target().starts_with(it.target())).find(is_directory);
            assert_eq!(around, None, "{program}: {piece:?}");
        }
    }
}

#[test]
fn a_program_is_there_under_its_usual_names() {
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    let view = on_this_machine(&[shell.to_str().unwrap()]).unwrap();
    let named_sh = |piece: &Piece| piece.target().file_name().is_some_and(|name| name == "sh");
    assert!(view.pieces.iter().any(named_sh) || shell.ends_with("sh"));
    let others = ["dir", "vdir", "awk", "python"];
    let shown = |piece: &Piece| others.iter().any(|name| piece.target() == Path::new("/usr/bin").join(name));
    assert_eq!(view.pieces.iter().find(|piece| shown(piece)), None);
}

#[test]
fn a_program_that_is_not_what_was_granted_is_refused() {
    let mut host = Bench::bare().variable("PATH", "/usr/bin:/bin").host;
    host.root = "/".into();
    host.home = "/nonexistent".into();
    host.workspace = "/srv/none".into();
    host.state_dir = "/var/none".into();
    let file = std::fs::canonicalize("/usr/bin/cat").unwrap();
    let digest = Digest::of(&std::fs::read(&file).unwrap());
    let granted = |digest| {
        let file = OsText::try_from(file.as_path()).unwrap();
        View::of(&host, &Programs::Only(vec![GrantedProgram { file, digest: Some(digest) }]))
    };
    assert!(granted(digest).is_ok());
    let error = granted(Digest::of(b"another")).unwrap_err().to_string();
    assert!(error.contains("cat` cannot be granted, because its content is another"), "{error}");
}
