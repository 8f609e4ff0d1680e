//! Small programs of each kind that developers use all day.

use crate::bench::{Bench, has, lines};

#[test]
fn a_commit_is_made_in_a_linked_worktree() {
    let bench = Bench::new();
    let main = bench.beside("main");
    bench.prepare(&format!(
        "git init -q '{0}' && cd '{0}' && git config user.name Tester && git config user.email tester@example.com \
         && echo one > file && git add file && git commit -qm one \
         && rmdir ../project && git worktree add -q ../project -b topic",
        main.display()
    ));
    let script = "echo two >> file && git add file && git commit -qm two && git log --format='%an %s' && git status --short";
    let inside = bench.inside(script);
    assert_eq!(inside.code, Some(0), "{inside:?}");
    assert!(inside.stdout.lines().next().is_some_and(|line| line.ends_with(" two")), "{inside:?}");
    // The host's repository has not heard of it.
    let outside = bench.outside("git log --format=%s && git status --short");
    assert_eq!(outside.stdout, "one\n");
}

#[test]
fn a_java_program_is_compiled_and_run() {
    assert!(has("javac"), "this test needs a Java compiler");
    let bench = Bench::new();
    bench.file(
        "Main.java",
        "import java.util.stream.*;\n\
         public class Main {\n  public static void main(String[] a) throws Exception {\n\
         \x20   System.out.println(IntStream.range(0, 1000).parallel().sum());\n\
         \x20   System.out.println(java.net.InetAddress.getByName(\"localhost\").isLoopbackAddress());\n\
         \x20   java.net.InetAddress.getLocalHost();\n\
         \x20   java.nio.file.Files.createTempFile(\"a\", \"b\");\n  }\n}\n",
    );
    assert_eq!(bench.same("javac Main.java && java Main", lines).stdout, "499500\ntrue\n");
}

#[test]
fn a_debugger_follows_its_own_child() {
    assert!(has("gdb"), "this test needs a debugger");
    let bench = Bench::new();
    bench.file("main.c", "int twice(int x) { return 2 * x; }\nint main(void) { return twice(21) - 42; }\n");
    let script = "gcc -g -O0 -o main main.c && gdb -q -batch -ex 'break twice' -ex run -ex 'print x' -ex continue ./main";
    let facts = |output: &str| lines(output).into_iter().filter(|line| line.starts_with("$1 = ")).collect();
    let ran = bench.same(script, facts);
    assert!(ran.stdout.contains("$1 = 21") && ran.stdout.contains("exited normally"), "{ran:?}");
}

#[test]
fn a_server_answers_its_client_on_its_own_loopback() {
    let bench = Bench::new();
    bench.file("hello.txt", "hello from here\n");
    bench.file(
        "talk.py",
        "import http.server, threading, urllib.request\n\
         server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
         threading.Thread(target=server.serve_forever, daemon=True).start()\n\
         url = f'http://localhost:{server.server_address[1]}/hello.txt'\n\
         print(urllib.request.urlopen(url).read().decode(), end='')\n",
    );
    assert_eq!(bench.same("python3 talk.py", lines).stdout, "hello from here\n");
}

#[test]
fn everyday_programs_know_where_they_are() {
    let bench = Bench::new();
    let script = "pwd; perl -MPOSIX -e 'print strftime(\"%Z\", localtime), \"\\n\"'; getent services ssh | tr -s ' '; \
                  sh -c 'exit 3'; echo $?; printf 'int main(){}' | gcc -x c - -o a.out && ./a.out; echo $?; \
                  python3 -c 'import ssl, sqlite3, multiprocessing; print(multiprocessing.Pool(2).map(abs, [-1, -2]))'";
    assert_eq!(bench.same(script, lines).code, Some(0));
}
