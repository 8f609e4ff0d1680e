//! Commands of every day that only read: none of them may be taken for more.

mod common;

use common::{only_reads, said, shell};

const SCRIPTS: &[&str] = &[
    "ls -la",
    "ls -R src | head -50",
    "ls *",
    "cat README.md | head -n 20",
    "cat src/*.rs",
    "cat ./*",
    "cat a b > /dev/null 2>&1",
    "head -5 f; tail -n +3 f",
    "wc -l src/main.rs",
    "grep -rn 'fn main' src --include=*.rs",
    "grep -rn foo . 2>/dev/null | wc -l",
    "grep -c x f || true",
    "rg -n 'fn main' -g '*.rs'",
    "find . -name '*.rs' -not -path './target/*'",
    "find src -type f -size +1k -print0",
    r"find . -name '*.rs' -exec grep -l foo {} \;",
    r"find src -name '*.rs' -exec wc -l {} +",
    "sed -n '10,20p' src/main.rs",
    "sed -n '/a/,/b/p' f",
    "sed 's/a/b/g' f | head",
    "awk '{print $1}' f | sort | uniq -c | sort -rn",
    "awk 'NR>=10 && NR<=20' f",
    "cut -d: -f1 f | tr a-z A-Z",
    "git status --short",
    "git status -uno",
    "bash -lc 'ls src'",
    "cat <(ls) f",
    "git log --oneline -5",
    "git log -p -3 -- src/main.rs",
    "git log -S'foo' -n5",
    "git diff HEAD~1 -- src/",
    "git diff --stat HEAD~3..HEAD",
    "git show HEAD:src/main.rs",
    "git blame -L 1,20 src/main.rs",
    "git branch",
    "git branch -a",
    "git branch --show-current",
    "git branch --merged main",
    "git tag --list 'v*'",
    "git remote -v",
    "git stash list",
    "git config --get user.name",
    "git config user.name",
    "git ls-files | head",
    "git rev-parse --abbrev-ref HEAD",
    "git grep -n foo",
    "git -C sub log --oneline",
    "git reflog",
    "cd src && ls && cat main.rs",
    "[ -f x ] && cat x",
    "[ \"$x\" = y ] || ls",
    "[ -n \"$x\" ]",
    "test -d src",
    "if [ -f Cargo.toml ]; then cat Cargo.toml; fi",
    "for i in 1 2 3; do echo $i; done",
    "while IFS= read -r line; do echo \"$line\"; done < f",
    "echo \"$HOME\"",
    "printf '%s\\n' a b",
    "set -euo pipefail; ls",
    "diff -u a b",
    "stat f; file f; du -sh src; df -h .",
    "tree -L 2 src",
    "jq '.a.b' f.json",
    "jq -r '.[] | .name' f.json",
    "sha256sum f",
    "date +%s",
    "date -u",
    "uname -a; nproc; id; whoami; pwd",
    "which python3; command -v cargo",
    "python3 --version; node --version; git --version",
    "timeout 5 grep -r x src",
    "env LC_ALL=C sort f",
    "NO_COLOR=1 git log",
    "find src -name x | sort",
    "comm -12 a b",
    "(cd src; ls)",
    "{ ls; cat x; } | head",
    "cat <<'E'\ntext $x\nE\n",
    "basename src/main.rs .rs; dirname a/b",
    "tar tf x.tar",
    "unzip -l x.zip",
    "true && false || :",
    "# a comment\nls",
    "ls \\\n  -la",
];

#[test]
fn what_only_reads_needs_nobody() {
    let mut stopped = Vec::new();
    for script in SCRIPTS {
        let effects = shell(script);
        if !only_reads(&effects) {
            stopped.push(format!("{script}: {:?}", said(&effects)));
        }
    }
    assert!(stopped.is_empty(), "{stopped:#?}");
}
