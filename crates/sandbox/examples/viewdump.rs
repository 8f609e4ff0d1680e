use sandbox::view::*;
use std::collections::BTreeMap;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let uid = rustix_uid();
    let environment: BTreeMap<_, _> =
        std::env::vars_os().filter(|(k, _)| wanted_variables().contains(k.to_str().unwrap_or(""))).collect();
    let host = Host {
        root: "/".into(),
        home: std::env::var_os("HOME").unwrap().into(),
        user: std::env::var("USER").unwrap_or("root".into()),
        caller: Identity { uid, gid: uid },
        inside: Identity { uid: if uid == 0 { 1500 } else { uid }, gid: if uid == 0 { 1500 } else { uid } },
        environment,
        workspace: args[1].clone().into(),
        state_dir: "/var/lib/fh-state".into(),
        mount_points: mount_points().unwrap(),
        terminal: false,
        offline: true,
    };
    let programs = if args.len() > 2 {
        model::grant::Programs::Only(
            args[2..].iter().map(|a| model::OsText::try_from(a.as_str()).unwrap()).collect(),
        )
    } else {
        model::grant::Programs::Any
    };
    let view = View::of(&host, &programs).unwrap_or_else(|e| {
        println!("{e}");
        std::process::exit(1)
    });
    for piece in &view.pieces {
        match piece {
            Piece::Generated { target, contents, .. } if contents.len() > 200 => {
                println!("Generated {} ({} bytes)", target.display(), contents.len())
            }
            Piece::Generated { target, contents, .. } => {
                println!("Generated {} {:?}", target.display(), String::from_utf8_lossy(contents))
            }
            p => println!("{p:?}"),
        }
    }
    for (k, v) in &view.environment {
        println!("{k}={v}");
    }
    for h in &view.hidden {
        println!("hidden {} {}", h.path.display(), h.why);
    }
    println!("{:?}", view.executables);
    let n = 200;
    let t = std::time::Instant::now();
    for _ in 0..n {
        let _ = View::of(&host, &programs);
    }
    println!("{:?} per view, {} pieces", t.elapsed() / n, view.pieces.len());
}
fn rustix_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid()
}
