//! `git`: which of its commands only look, which change the repository, and which talk to others.

use model::Effect;

use crate::account::Account;
use crate::arg::Arg;
use crate::options::{Order, Use};

/// Options before the command that change nothing but where it starts.
const GLOBAL: &str = "-P -p -C: --no-pager --literal-pathspecs --no-optional-locks --no-replace-objects --bare --glob-pathspecs \
    --icase-pathspecs";

/// Options before the command that take the next word for their value, and are not harmless.
const WITH_VALUE: [&str; 6] =
    ["-c", "--config-env", "--git-dir", "--work-tree", "--namespace", "--attr-source"];

/// Options of the commands that show commits and differences. Programs that show differences in another way
/// (`--ext-diff`, `--textconv`), and files to write to, are not among the harmless ones.
const SHOWS: &str = "-pusmcbwzraiEFPRDgqXt -# -n: -U? -S: -G: -L: -M? -C? -B? -l: -O:read -I: --output:write --oneline \
    --patch --no-patch --stat? --numstat --shortstat --dirstat? --summary --name-only --name-status --raw --graph --decorate? \
    --no-decorate --all --branches? --tags? --remotes? --not --max-count: --skip: --since: --after: --until: --before: --author: \
    --committer: --grep: --invert-grep --all-match --regexp-ignore-case --merges --no-merges --first-parent --reverse \
    --date-order --author-date-order --topo-order --follow --no-walk? --left-right --cherry-pick --cherry-mark --cherry \
    --pretty? --format? --abbrev-commit --no-abbrev-commit --abbrev? --no-abbrev --date: --color? --no-color --word-diff? \
    --color-words? --unified? --minimal --patience --histogram --diff-algorithm: --ignore-all-space --ignore-space-change \
    --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol --function-context --no-ext-diff --no-textconv --text --binary \
    --full-index --find-renames? --find-copies? --no-renames --diff-filter: --pickaxe-all --pickaxe-regex --relative? --exit-code \
    --quiet --check --cached --staged --merge-base --no-index --submodule? --ignore-submodules? --no-prefix --src-prefix: \
    --dst-prefix: --inter-hunk-context: --compact-summary --notes? --no-notes --boundary --simplify-by-decoration \
    --full-history --ancestry-path --no-mailmap --use-mailmap --source --log-size --root --combined-all-paths --cc --no-commit-id \
    --ita-invisible-in-index --walk-reflogs --stdin --summary --children --parents --count --left-only --right-only --timestamp \
    --objects --header";

/// Commands that only look, with what is known of their options.
const LOOKS: &[(&str, &str)] = &[
    (
        "status",
        "-sbvz -u? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignored? --ignore-submodules? --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?",
    ),
    ("log", SHOWS),
    ("show", SHOWS),
    ("diff", SHOWS),
    ("diff-tree", SHOWS),
    ("diff-index", SHOWS),
    ("diff-files", SHOWS),
    ("rev-list", SHOWS),
    ("whatchanged", SHOWS),
    (
        "shortlog",
        "-nsecw --numbered --summary --email --committer --group: --no-merges --since: --until: --format: --all",
    ),
    (
        "blame",
        "-bltfnswepCM -L: -S:read --root --show-stats --line-porcelain --porcelain --incremental --date: --since: --abbrev? --ignore-rev: --show-name --show-number --show-email",
    ),
    ("annotate", "-bltfnswep -L:"),
    (
        "rev-parse",
        "-q --abbrev-ref? --verify --quiet --short? --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --show-superproject-working-tree --git-path: --default: --sq --path-format: --show-object-format?",
    ),
    (
        "ls-files",
        "-cdomiskuvztf -x: -X:read --cached --deleted --others --modified --ignored --stage --killed --unmerged --directory --no-empty-directory --eol --exclude: --exclude-from:read --exclude-standard --error-unmatch --with-tree: --full-name --recurse-submodules --abbrev? --debug --deduplicate --format:",
    ),
    (
        "ls-tree",
        "-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format:",
    ),
    ("cat-file", "-tspe --batch? --batch-check? --buffer --unordered --follow-symlinks --batch-all-objects"),
    (
        "describe",
        "--all --tags --contains --abbrev? --candidates: --exact-match --debug --long --match: --exclude: --always --first-parent --dirty? --broken?",
    ),
    ("name-rev", "--name-only --tags --refs: --exclude: --all --always --undefined --no-undefined"),
    ("merge-base", "-a --all --octopus --independent --is-ancestor --fork-point"),
    (
        "for-each-ref",
        "--count: --sort: --format: --color? --points-at: --merged? --no-merged? --contains? --no-contains? --ignore-case --omit-empty --exclude:",
    ),
    (
        "show-ref",
        "-qdhs --head --heads --branches --tags --dereference --hash? --verify --abbrev? --quiet --exists",
    ),
    (
        "grep",
        "-aIiwvhHEFGPnlLczoqpW -# -e: -f:read -A: -B: -C: -m: --cached --no-index --untracked --no-exclude-standard --exclude-standard --recurse-submodules --text --ignore-case --word-regexp --invert-match --full-name --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only --files-without-match --null --only-matching --count --color? --no-color --break --heading --show-function --function-context --context: --after-context: --before-context: --max-depth: --threads: --and --or --not --all-match --quiet --max-count:",
    ),
    ("check-ignore", "-qvzn --quiet --verbose --stdin --non-matching --no-index"),
    ("check-attr", "-az --all --cached --stdin --source:"),
    ("count-objects", "-vH --verbose --human-readable"),
    ("cherry", "-v --abbrev?"),
    (
        "range-diff",
        "--creation-factor: --no-dual-color --left-only --right-only --no-notes --no-color --color?",
    ),
    ("var", "-l"),
    ("version", "--build-options"),
    ("ls-remote", ""),
];

/// Commands that look when they are given nothing but these, and change something otherwise.
const LISTS: &[(&str, &[&str], &str)] = &[
    (
        "branch",
        &[],
        "-arvl --all --remotes --verbose --list --show-current --contains: --no-contains: --merged? --no-merged? --sort: --format: --color? --no-color --column? --no-column --abbrev? --no-abbrev --points-at:",
    ),
    (
        "tag",
        &[],
        "-l -n? --list --contains: --no-contains: --merged? --no-merged? --sort: --format: --color? --column? --points-at:",
    ),
    ("remote", &[], "-v --verbose"),
    ("remote", &["get-url"], "--all --push"),
    ("stash", &["list", "show"], SHOWS),
    ("worktree", &["list"], "-vz --verbose --porcelain"),
    ("submodule", &["status", "summary"], "--cached --recursive --quiet --files --summary-limit:"),
    ("reflog", &[], SHOWS),
    ("reflog", &["show"], SHOWS),
    ("notes", &["list", "show"], ""),
    ("bisect", &["log"], ""),
    (
        "config",
        &[],
        "-lz --get --get-all --get-regexp --list --local --worktree --show-origin --show-scope --name-only --null --type: --bool --int --path --includes --no-includes --default: --get-urlmatch",
    ),
    (
        "config",
        &["list", "get"],
        "-z --local --worktree --show-origin --show-scope --name-only --null --type: --all --regexp --default:",
    ),
    ("symbolic-ref", &[], "-q --quiet --short"),
    ("sparse-checkout", &["list"], ""),
];

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if name != "git" {
        return false;
    }
    let mut rest = args;
    let mut aliases: Vec<(&str, &str)> = Vec::new();
    account.inside(|account| {
        while let Some((first, others)) = rest.split_first() {
            match first.exact() {
                Some("-C") => {
                    let Some((directory, others)) = others.split_first() else { return };
                    account.enter(directory);
                    rest = others;
                }
                Some(word) if !word.starts_with('-') => {
                    let alias = aliases.iter().rev().find(|(name, _)| *name == word);
                    if let Some((_, meaning)) = alias {
                        alias_of(account, meaning, others);
                    }
                    return subcommand(account, word, others);
                }
                Some("--version" | "--exec-path" | "--html-path" | "--man-path") => rest = others,
                None => {
                    account.unknown_argument("git", first);
                    return;
                }
                _ => {
                    // `-c`, `--config-env`, `--exec-path=`, `--git-dir` and the like choose what git runs or where.
                    account.options("git", GLOBAL, Order::First, std::slice::from_ref(first));
                    rest = others;
                    let takes_next = first.exact().is_some_and(|word| WITH_VALUE.contains(&word));
                    if let Some((value, others)) = others.split_first().filter(|_| takes_next) {
                        let setting = value.exact().and_then(|text| text.strip_prefix("alias."));
                        aliases.extend(setting.and_then(|setting| setting.split_once('=')));
                        rest = others;
                    }
                }
            }
        }
    });
    true
}

/// Reads what stands for a command in this one call. That a setting changes what git does was noted before, so what cannot be
/// read here is left.
fn alias_of(account: &mut Account<'_>, meaning: &str, args: &[Arg]) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./:@+=,".contains(c);
    match meaning.strip_prefix('!') {
        Some(script) => account.deeper(|account| account.script_of("sh", script)),
        None if meaning.chars().all(is_plain) => {
            let words = std::iter::once("git").chain(meaning.split(' ').filter(|word| !word.is_empty()));
            let argv: Vec<Arg> = words.map(Arg::exactly).chain(args.iter().cloned()).collect();
            account.deeper(|account| account.command(&argv));
        }
        None => {}
    }
}

fn subcommand(account: &mut Account<'_>, command: &str, args: &[Arg]) {
    if let Some((_, options)) = LOOKS.iter().find(|(name, _)| *name == command) {
        looks(account, command, options, args);
    } else if let Some(options) = lists(command, args) {
        looks(account, command, options, args);
    } else {
        changes(account, command, args);
    }
}

/// Notes that a command reads the repository, and what its options do beside.
fn looks(account: &mut Account<'_>, command: &str, options: &str, args: &[Arg]) {
    let parsed = account.options(&format!("git {command}"), options, Order::Anywhere, args);
    account.read(&Arg::exactly("."));
    let climbs = |text: &str| text.starts_with(['/', '~']) || text.split(['/', ':']).any(|part| part == "..");
    // A revision can look like a path as well: reading too much is no harm.
    let elsewhere = |operand: &&&Arg| operand.exact().is_none_or(climbs);
    parsed.operands.iter().filter(elsewhere).for_each(|operand| account.read(operand));
    // Options with a value that may be missing leave the next word to be an option.
    if args.iter().any(|arg| arg.text.starts_with("--output")) {
        account.unknown("git may write to the file that `--output` names");
    }
    let formats =
        |arg: &Arg| ["--format", "--pretty", "--sort"].iter().any(|name| arg.text.starts_with(name));
    let unknown_format = args.windows(2).any(|pair| formats(&pair[0]) && pair[1].exact().is_none());
    if unknown_format || args.iter().any(|arg| formats(arg) && arg.exact().is_none()) {
        account.unknown("a format of git that is known only at run time can make it run programs");
    }
    if command == "ls-remote" {
        account.connect(None);
    }
    // These make git run the programs that its configuration names for them: filters, signatures, other differences.
    let runs = ["filters", "textconv", "signature", "%G", "%+G", "%-G", "% G", "trailers"];
    if args
        .iter()
        .any(|arg| runs.iter().any(|word| arg.text.contains(word)) && !arg.text.starts_with("--no-"))
    {
        account.unknown("git runs programs that the repository names");
    }
}

/// Returns the options of a command that looks when it is given nothing else.
fn lists(command: &str, args: &[Arg]) -> Option<&'static str> {
    if args.iter().any(|arg| arg.exact().is_none()) {
        return None;
    }
    let words: Vec<&str> = args.iter().filter_map(Arg::exact).collect();
    // What is to be done stands first; only what stands there with an option of its own is looked at further.
    let first = words.first().copied().filter(|word| !word.starts_with('-'));
    let operands = operands_of(&words, command);
    let (_, _, options) = LISTS.iter().find(|(name, actions, _)| {
        let asks = match (*name, first) {
            ("branch" | "tag", _) => operands.is_empty() || listing(&words),
            ("symbolic-ref", _) => operands == ["HEAD"],
            ("config", None) => {
                words.iter().any(|word| word.starts_with("--get") || ["-l", "--list"].contains(word))
            }
            ("config", Some(key)) if actions.is_empty() => {
                words.len() == 1 && key.contains('.') && !key.contains('=')
            }
            ("stash", Some(word)) => actions.contains(&word) && !words.contains(&"--"),
            (_, Some(word)) => actions.contains(&word),
            (_, None) => actions.is_empty() && operands.is_empty(),
        };
        *name == command && asks
    })?;
    Some(options)
}

/// Tells whether `branch` or `tag` is told to list: then operands are patterns. An option before it could take the word
/// for its value, so it has to be the first.
fn listing(words: &[&str]) -> bool {
    matches!(words.first(), Some(&("-l" | "--list")))
}

/// Returns the words that are neither options nor the values of `branch` and `tag` options that take the next word.
fn operands_of<'a>(words: &[&'a str], command: &str) -> Vec<&'a str> {
    const WITH_VALUE: [&str; 6] =
        ["--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--sort"];
    let is_value = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        before.is_some_and(|before| matches!(command, "branch" | "tag") && WITH_VALUE.contains(before))
    };
    let operands = words.iter().enumerate().filter(|(at, word)| !word.starts_with('-') && !is_value(*at));
    operands.map(|(_, word)| *word).collect()
}

/// Notes what a command changes. The repository's own directory is written by each of them.
fn changes(account: &mut Account<'_>, command: &str, args: &[Arg]) {
    let words: Vec<&str> = args.iter().map(|arg| arg.exact().unwrap_or("*")).collect();
    let has = |options: &[&str]| {
        words.iter().any(|word| {
            options.iter().any(|option| {
                word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
            })
        })
    };
    let operands: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    match command {
        "push" => push(account, &words, &operands),
        "fetch" | "pull" | "clone" => {
            account.connect(None);
            account.write(&Arg::exactly("."));
            if has(&["--upload-pack", "-u"]) {
                account.unknown("git starts a program that is named for the other side");
            }
            for reference in operands.iter().skip(1).filter_map(|reference| reference.rsplit_once(':')) {
                change_ref(account, ".", reference.1, words.iter().any(|word| word.starts_with('+')));
            }
            if command == "pull" {
                change_ref(account, ".", "HEAD", false);
            }
        }
        "config" => {
            account.control(format!("git configuration: {}", operands.first().unwrap_or(&"*")));
            let scope = |option: &str| words.iter().any(|word| word == &option);
            if scope("--global") {
                account.write(&Arg::exactly("~/.gitconfig"));
            } else if scope("--system") {
                account.write(&Arg::exactly("/etc/gitconfig"));
            } else if words.iter().any(|word| word.starts_with("--file") || word.starts_with("-f")) {
                account.write(&Arg::unknown());
            } else {
                account.write(&Arg::exactly(".git/config"));
            }
        }
        "commit" | "merge" | "rebase" | "cherry-pick" | "revert" | "am" => {
            if has(&["--no-verify", "-n"]) && command != "cherry-pick" && command != "revert"
                || has(&["--no-gpg-sign"])
            {
                account.control("the checks before a commit are skipped");
            }
            change_ref(account, ".", "HEAD", has(&["--amend"]) || command == "rebase");
            account.write(&Arg::exactly("."));
            account.unknown(format!("git {command} runs the hooks and programs that the repository names"));
        }
        "reset" => {
            change_ref(account, ".", "HEAD", true);
            account.write(&Arg::exactly("."));
            account.unknown("which files git reset changes depends on the repository");
        }
        "branch" | "tag" | "update-ref" | "symbolic-ref" => {
            // `update-ref` asks nobody whether what it pointed to is kept.
            let forced = command == "update-ref"
                || has(&["-d", "-D", "-f", "-m", "-M", "--delete", "--force", "--move"]);
            change_ref(account, ".", operands.first().unwrap_or(&"*"), forced);
        }
        "add" | "mv" | "stash" | "checkout" | "switch" | "restore" | "apply" | "init" | "worktree"
        | "submodule" | "remote" | "gc" | "prune" | "notes" | "sparse-checkout" | "read-tree"
        | "update-index" | "write-tree" | "hash-object" | "format-patch" => {
            account.write(&Arg::exactly("."));
            if matches!(command, "checkout" | "switch") && has(&["-b", "-B", "-c", "-C", "--orphan"]) {
                change_ref(account, ".", operands.first().unwrap_or(&"*"), has(&["-B", "-C"]));
            }
            if matches!(command, "checkout" | "switch" | "restore" | "apply" | "stash") {
                account.unknown(format!("which files git {command} changes depends on the repository"));
            }
            if command == "mv" {
                let parsed =
                    account.options("git mv", "-fknv --force --dry-run --verbose", Order::Anywhere, args);
                let sources = parsed.operands.split_last().map_or(&[][..], |(_, sources)| sources);
                sources.iter().for_each(|source| account.delete(source));
            }
            if matches!(command, "remote" | "submodule" | "init") {
                account.control(format!("git configuration: {command}"));
            }
            if command == "submodule" {
                account.connect(None);
            }
        }
        "rm" => removes(account, "rm", RM, args),
        "clean" => removes(account, "clean", CLEAN, args),
        "send-email" => account.add(Effect::Message { to: "*".to_owned() }),
        "credential" => account.add(Effect::UseCredential { credential: "git".to_owned() }),
        _ => account.unknown(format!("what `git {command}` does is not known here: it may be an alias")),
    }
}

const RM: &str = "-fnrq --force --dry-run --cached --ignore-unmatch --sparse --quiet --pathspec-file-nul";
const CLEAN: &str = "-dfiqnxX -e: --force --dry-run --interactive --quiet --exclude:";

/// Notes which paths are removed: all that may be, where none is named or a name is one of git's patterns.
fn removes(account: &mut Account<'_>, command: &str, options: &str, args: &[Arg]) {
    let parsed = account.options(&format!("git {command}"), options, Order::Anywhere, args);
    let is_pattern = |arg: &&Arg| arg.exact().is_none_or(|text| text.contains(['*', '?', '[', ':', '\\']));
    let named_elsewhere = args.iter().any(|arg| arg.text.starts_with("--pathspec-from-file"));
    if parsed.operands.is_empty() || parsed.operands.iter().any(is_pattern) || named_elsewhere {
        account.delete(&Arg::exactly("."));
    }
    parsed.operands.iter().filter(|arg| !is_pattern(arg)).for_each(|path| account.delete(path));
}

fn push(account: &mut Account<'_>, words: &[&str], operands: &[&str]) {
    account.connect(None);
    account.add(Effect::UseCredential { credential: "git".to_owned() });
    if words.iter().any(|word| word.starts_with("--receive-pack") || word.starts_with("--exec")) {
        account.unknown("git starts a program that is named for the other side");
    }
    let remote = operands.first().unwrap_or(&"origin");
    let forced = words.iter().any(|word| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        word.starts_with("--force")
            || ["--mirror", "--delete", "--prune"].contains(word)
            || letters.is_some_and(|letters| letters.contains(['f', 'd']))
    });
    let references = operands.get(1..).unwrap_or_default();
    if references.is_empty() {
        change_ref(account, remote, "*", forced);
    }
    for reference in references {
        let (source, target) = reference.rsplit_once(':').unwrap_or((reference, reference));
        let target = target.trim_start_matches('+');
        change_ref(
            account,
            remote,
            target,
            forced || reference.starts_with('+') || (source.is_empty() && !target.is_empty()),
        );
    }
}

fn change_ref(account: &mut Account<'_>, repository: &str, reference: &str, forced: bool) {
    let prefixes = ["refs/heads/", "refs/tags/", "heads/", "tags/"];
    let short = prefixes.iter().find_map(|prefix| reference.strip_prefix(prefix)).unwrap_or(reference);
    // At another repository these mean the branch that is checked out here, or all that match.
    let at_run_time = repository != "." && (["HEAD", "@", ""].contains(&short) || short.contains('*'));
    let reference = if at_run_time { "*".to_owned() } else { short.to_owned() };
    account.add(Effect::ChangeRef { repository: repository.to_owned(), reference, forced });
    if repository == "." {
        account.use_of("git", Use::Write, &Arg::exactly(".git"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::is_notation;

    #[test]
    fn every_list_is_of_the_notation() {
        for (command, options) in
            LOOKS.iter().copied().chain(LISTS.iter().map(|(name, _, options)| (*name, *options)))
        {
            assert!(is_notation(options), "{command}");
        }
        assert!(is_notation(GLOBAL) && is_notation(RM) && is_notation(CLEAN));
    }
}
