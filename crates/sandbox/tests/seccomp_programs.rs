//! Ordinary programs under the filter of commands: they end as they do without it, and what is to be reported is.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test, and one that starts programs"
)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use sandbox::seccomp::{Arch, Call, Options, command_filter, load_with_listener, set_no_new_privs};

/// How a command ended, and which calls were reported on the way.
struct Run {
    output: Output,
    reported: BTreeSet<&'static str>,
}

impl Run {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }
}

fn shell(script: &str, directory: &Path) -> Command {
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(directory).env("LC_ALL", "C").env("HOME", directory);
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        command.env(name, "someone@example.com");
    }
    command
}

/// Starts a command under the filter and answers its notifications with "go on" until its last process is gone.
fn confined(mut command: Command, options: &Options) -> Run {
    let program = command_filter(options);
    let (read, write) = io::pipe().unwrap();
    // SAFETY: the closure runs between fork and exec. It makes system calls on memory that was there before: `program`
    // is only read, and neither loading nor writing allocates. The listener stays open until the exec closes it.
    unsafe {
        command.pre_exec(move || {
            set_no_new_privs()?;
            let listener = load_with_listener(&program.0)?;
            let name = [std::process::id() as i32, listener.fd.as_raw_fd()].map(i32::to_ne_bytes);
            io::Write::write_all(&mut &write, name.as_flattened())?;
            let _open_until_the_exec = std::mem::ManuallyDrop::new(listener);
            Ok(())
        });
    }
    let supervisor = thread::spawn(move || supervise(read));
    let output = command.output();
    // The other end of the pipe is in the closure.
    drop(command);
    let reported = supervisor.join().unwrap();
    Run { output: output.unwrap(), reported }
}

fn supervise(mut name: io::PipeReader) -> BTreeSet<&'static str> {
    let mut bytes = [0; 8];
    if name.read_exact(&mut bytes).is_err() {
        return BTreeSet::new();
    }
    let [pid, fd] = [&bytes[..4], &bytes[4..]].map(|half| i32::from_ne_bytes(half.try_into().unwrap()));
    let listener = descriptor_of(pid, fd);
    let mut reported = BTreeSet::new();
    while let Some(number) = answer_one(&listener) {
        let call = Call::ALL.iter().find(|call| call.number(Arch::NATIVE) == Some(number)).unwrap();
        reported.insert(call.name());
    }
    reported
}

fn descriptor_of(pid: i32, fd: RawFd) -> OwnedFd {
    // SAFETY: takes numbers and answers with a new descriptor.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the same.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, fd, 0) };
    assert!(process >= 0 && copy >= 0, "{}", io::Error::last_os_error());
    // SAFETY: nobody else has the two.
    let [_process, copy] = [process, copy].map(|fd| unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
    copy
}

/// Lets one reported call go on and returns its number; `None` when no process is left.
fn answer_one(listener: &OwnedFd) -> Option<u32> {
    const RECV: libc::c_ulong = 0xc050_2100;
    const SEND: libc::c_ulong = 0xc018_2101;
    loop {
        let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is one valid entry.
        unsafe { libc::poll(&raw mut poll, 1, -1) };
        if poll.revents & libc::POLLIN == 0 {
            return None;
        }
        // SAFETY: all fields are numbers, for which zero is a value; the kernel demands zeros.
        let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request takes a `seccomp_notif`, and `notification` is one.
        if unsafe { libc::ioctl(listener.as_raw_fd(), RECV, &raw mut notification) } != 0 {
            continue;
        }
        let mut response = libc::seccomp_notif_resp { id: notification.id, val: 0, error: 0, flags: 1 };
        // SAFETY: the request takes a `seccomp_notif_resp`, and `response` is one. The program may be gone by now.
        unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw mut response) };
        return Some(notification.data.nr as u32);
    }
}

fn installed(program: &str) -> bool {
    let found =
        Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !found {
        eprintln!("`{program}` is not installed: not tried");
    }
    found
}

/// Runs a script with and without the filter: it must end alike and say the same.
fn same(script: &str) -> Run {
    let (with, without) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plain = shell(script, without.path()).output().unwrap();
    let run = confined(shell(script, with.path()), &Options::default());
    let said = |output: &Output| format!("{:?}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert!(plain.status.success(), "without a filter: {}", said(&plain));
    assert!(run.output.status.success(), "with the filter: {}", said(&run.output));
    assert_eq!(run.text(), String::from_utf8_lossy(&plain.stdout), "{script}");
    run
}

#[test]
fn shells_pipes_signals_and_files_work() {
    let run = same(
        "for i in 1 2 3; do echo $i | cat; done; trap 'echo caught' TERM; kill -TERM $$; (sleep 0.1; echo late) & wait
         mkfifo f; echo through > f & cat f; mkdir -p a/b; cp -a a c; ln -s b a/l; touch g; ln g h
         install -m 755 g i; chmod 2775 a; stat -c %a a; mv a d; ls -R; umask",
    );
    assert!(run.reported.contains("execve"));
    assert!(run.reported.iter().any(|call| call.starts_with("rename")), "{:?}", run.reported);
}

#[test]
fn git_works_in_plain_and_in_shared_repositories() {
    same(
        "for kind in false group; do
           git init -q --shared=$kind $kind; cd $kind; mkdir d; echo x > d/f; git add .; git commit -qm one
           git mv d e; git commit -qam two; git log --format=%s; git status --short; git gc -q; git fsck
           git worktree add -q ../w-$kind -b side; cd ..; git clone -q $kind copy-$kind; ls copy-$kind; done",
    );
}

#[test]
fn a_compiler_and_make_work() {
    same(
        "printf '#include <pthread.h>\n#include <stdio.h>\nstatic void *f(void *p) { puts(\"thread\"); return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); return pthread_join(t, 0); }\n' > t.c
         cc -g -pthread t.c -o t; ./t",
    );
    if installed("make") {
        same("printf 'all: a b\na b:\n\techo made > $@\n' > Makefile; make -s -j4; cat a");
    }
}

#[test]
fn python_works_with_threads_processes_sockets_and_terminals() {
    if !installed("python3") {
        return;
    }
    let run = same(
        "python3 - <<'E'
import asyncio, multiprocessing, os, pty, socket, sqlite3, subprocess, threading
t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()
print(subprocess.run(['true']).returncode, multiprocessing.get_context('fork').Pool(2).map(abs, [-1, 2]))
for family, host in (socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1'):
    try:
        s = socket.create_server((host, 0), family=family)
    except OSError as e:
        print(e.errno); continue
    c = socket.create_connection(s.getsockname()[:2]); a, _ = s.accept(); c.send(b'x'); print(a.recv(1))
print(len(socket.getaddrinfo('localhost', 80)) > 0, len(socket.if_nameindex()) > 0)
u = socket.socket(socket.AF_UNIX); u.bind('u'); u.listen()
print(asyncio.run(asyncio.sleep(0.01)), sqlite3.connect('db').execute('pragma journal_mode=wal').fetchone())
pid, fd = pty.fork()
if pid == 0:
    os.execlp('tty', 'tty', '-s')
print(os.waitpid(pid, 0)[1])
E",
    );
    assert!(run.reported.contains("connect"));
}

#[test]
fn node_works_without_io_uring() {
    if installed("node") {
        same(
            "UV_USE_IO_URING=1 node -e '
const fs = require(\"fs\"), net = require(\"net\"), { Worker } = require(\"worker_threads\");
fs.writeFileSync(\"f\", \"x\"); console.log(fs.readFileSync(\"f\", \"utf8\"));
console.log(require(\"child_process\").execFileSync(\"echo\", [\"child\"], { encoding: \"utf8\" }));
fs.promises.readFile(\"f\").then(() => fs.promises.rename(\"f\", \"g\")).then(() => {
  console.log(fs.readdirSync(\".\"));
  const server = net.createServer(s => s.end(\"hello\")).listen(0, \"127.0.0.1\", () =>
    net.connect(server.address().port, \"127.0.0.1\").on(\"data\", d => { console.log(String(d)); server.close(); }));
  new Worker(\"1\", { eval: true });
});'",
        );
    }
}

#[test]
fn a_java_machine_works() {
    if installed("javac") {
        same(
            "cat > T.java <<'E'
public class T {
    public static void main(String[] args) throws Exception {
        Thread t = new Thread(() -> System.out.println(\"thread\")); t.start(); t.join();
        System.out.println(new ProcessBuilder(\"true\").start().waitFor());
        try (var s = new java.net.ServerSocket(0); var c = new java.net.Socket(\"127.0.0.1\", s.getLocalPort())) {
            System.out.println(c.isConnected());
        }
        System.gc();
    }
}
E
javac T.java; java -cp . T",
        );
    } else if installed("java") {
        same("java -version 2>&1");
    }
}

#[test]
fn a_debugger_works_on_its_own_child() {
    if !installed("gdb") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script =
        "printf 'int f(int x) { return x + 1; }\nint main(void) { return f(41); }\n' > d.c; cc -g d.c -o d
        gdb -q -nx -batch -ex 'break f' -ex run -ex 'print x' -ex bt -ex continue ./d 2>&1";
    let run = confined(shell(script, directory.path()), &Options::default());
    let text = run.text();
    assert!(
        text.contains("$1 = 41") && text.contains("main ()") && text.contains("exited with code 052"),
        "{text}"
    );
    assert!(!text.contains("Error disabling address space randomization"), "{text}");
}

#[test]
fn what_is_refused_is_refused_in_ordinary_programs_too() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        "touch f; for c in 'chmod 4755 f' 'chmod u+s f' 'mknod n c 1 3' 'mknod w c 0 0' 'unshare -Ur true' \
        'unshare -n true' 'mount -t tmpfs none .' 'setarch --addr-compat-layout true' 'dmesg -S'; do
        if $c > out 2>&1; then echo \"passed: $c\"; fi; done
        setarch -R true; mknod p p; chmod 644 f; stat -c %A f";
    let run = confined(shell(script, directory.path()), &Options::default());
    assert_eq!(run.text(), "-rw-r--r--\n", "{}", String::from_utf8_lossy(&run.output.stderr));
    assert!(run.output.status.success());
}

#[test]
fn opens_are_reported_when_a_profile_asks() {
    let directory = tempfile::tempdir().unwrap();
    File::create(directory.path().join("f")).unwrap();
    let options = Options { observe_opens: true, ..Options::default() };
    let run = confined(shell("cat f", directory.path()), &options);
    assert!(run.output.status.success());
    assert!(run.reported.contains("openat"), "{:?}", run.reported);
}

#[test]
fn nested_user_namespaces_are_there_when_a_profile_allows_them_and_mounts_are_not() {
    let options = Options { nested_user_namespaces: true, ..Options::default() };
    let directory = tempfile::tempdir().unwrap();
    let run = |script| confined(shell(script, directory.path()), &options).output.status.success();
    assert!(run("unshare -U true"));
    assert!(!run("unshare -Ur mount -t tmpfs none ."));
    assert!(!run("unshare -Um true"));
}
