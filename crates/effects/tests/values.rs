//! What is read of commands, to the word: the same effect is named in the same way, however it was asked for.

mod common;

use common::{said, shell};

#[test]
fn an_effect_has_one_name_whatever_words_ask_for_it() {
    for (effect, scripts) in [
        (
            "move `main` of the repository `origin`",
            &[
                "git push origin main",
                "git push origin HEAD:heads/main",
                "git --work-tree . push origin refs/heads/main",
                "git -c alias.z='push origin' z main",
                "git -c alias.z='!git push origin main' z",
                "trap 'git push origin main' EXIT",
                "npx git push origin main",
            ][..],
        ),
        (
            "move `*` of the repository `origin`",
            &["git push origin HEAD", "git push origin @", "git push origin :"],
        ),
        (
            "delete `docs`",
            &[
                "git rm -r docs",
                "git rm --cached -- docs",
                "git clean -fdx docs",
                "git mv docs old",
                "trap 'rm -rf docs' EXIT",
                "rm -rf ~/docs ~/ws/docs",
            ],
        ),
        ("delete the workspace", &["git clean -fd -e docs", "git rm ':(top)docs'", "git rm 'do?s'"]),
        ("write `x`", &["cp a x $more", "cp a x", "mv a x $more"]),
        ("read `~/.aws/config`", &["base64 ~/.aws//config", "cat ~/.aws/./config"]),
        (
            "destroy data of the database `shop`",
            &[
                "psql shop -c 'drop table orders'",
                "psql --dbname=shop --command='drop table orders'",
                "psql shop '-cdrop table orders'",
                "psql shop -c 'begin; drop table orders'",
            ],
        ),
        ("send a message to `team@example.org`", &["mail -s me@here team@example.org"]),
        ("install with npm whatever the project names", &["npm ci --prefix packages/x", "npm install"]),
        ("install `left` with pip", &["python3 -m pip install left", "pip install left"]),
        (
            "publish `npm`",
            &["npm --loglevel silent --prefix . publish", "npx -y npm publish", "npm exec npm publish"],
        ),
    ] {
        for script in scripts {
            let found = said(&shell(script));
            assert!(found.iter().any(|said| said == effect), "{script}: {found:#?}");
        }
    }
}

#[test]
fn what_only_looks_alike_is_not_named() {
    for (effect, scripts) in [
        (
            "move `main` of the repository `origin`",
            &["git push origin main:topic", "git -c alias.z=push y origin main"][..],
        ),
        ("delete `docs`", &["git rm src", "git clean -fd -e docs", "git mv src docs", "rm -rf ~/docs"]),
        ("delete the workspace", &["git rm src", "git clean -fd src"]),
        ("install `x` with uv", &["uv run tool upgrade x"]),
        ("read `~/.aws/config`", &["cat ~/.aws/../.aws/config", "cat .aws/config"]),
    ] {
        for script in scripts {
            let found = said(&shell(script));
            assert!(found.iter().all(|said| said != effect), "{script}: {found:#?}");
        }
    }
}

#[test]
fn what_git_would_do_to_files_is_left_open_where_the_repository_decides() {
    for script in ["git reset --hard HEAD~1", "git checkout topic", "git stash"] {
        let found = said(&shell(script));
        assert!(found.iter().any(|said| said.contains("depends on the repository")), "{script}: {found:#?}");
    }
}
