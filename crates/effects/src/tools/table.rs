//! The table of programs whose arguments are options and names of files, and nothing more.
//!
//! An option stands here when it is known to change no file, start no program and reach no other machine, or with what
//! it does. Those that do it in another way (a list of files in a file, a program for compression) are left out, and so
//! come out as unknown.

use crate::account::Account;
use crate::arg::{Arg, Known};
use crate::options::{Order, Use};

/// A program.
struct Tool {
    name: &'static str,
    /// What its options are, see [`crate::options`].
    options: &'static str,
    operands: Operands,
    /// Whether it reads the directory where it is when no file is named.
    here: bool,
    /// Whether none of its options, also those that are not listed, writes or starts anything: a file name that turns
    /// into an option is no danger then.
    tame: bool,
}

/// What operands are.
enum Operands {
    /// All are used alike.
    All(Use),
    /// The first is a pattern or a mode, unless one of these options gave it; the others are used alike.
    FirstIsText(&'static [&'static str], Use),
    /// The first is read and the second written.
    ReadThenWrite,
    /// One that begins with `+`.
    Format,
    /// None; what stands there is not understood.
    None,
}

const fn reads(name: &'static str, options: &'static str) -> Tool {
    Tool { name, options, operands: Operands::All(Use::Read), here: false, tame: false }
}

const fn tame(name: &'static str, options: &'static str) -> Tool {
    Tool { tame: true, ..reads(name, options) }
}

const fn says(name: &'static str, options: &'static str) -> Tool {
    Tool { name, options, operands: Operands::All(Use::Text), here: false, tame: true }
}

const fn nothing(name: &'static str, options: &'static str) -> Tool {
    Tool { name, options, operands: Operands::None, here: false, tame: false }
}

const fn here(tool: Tool) -> Tool {
    Tool { here: true, ..tool }
}

const fn uses(name: &'static str, options: &'static str, usage: Use) -> Tool {
    Tool { name, options, operands: Operands::All(usage), here: false, tame: false }
}

const fn searches(name: &'static str, options: &'static str, given: &'static [&'static str]) -> Tool {
    Tool { name, options, operands: Operands::FirstIsText(given, Use::Read), here: true, tame: false }
}

const GREP: &str = "-EFGPiwxvycLloqsbHhTznrRUVaIu -e: -f:read -m: -A: -B: -C: -D: -d: -# --extended-regexp --fixed-strings \
    --basic-regexp --perl-regexp --regexp: --file:read --ignore-case --no-ignore-case --word-regexp --line-regexp \
    --null-data --no-messages --invert-match --max-count: --byte-offset --line-number --line-buffered --with-filename \
    --no-filename --label: --only-matching --quiet --silent --binary-files: --text --directories: --devices: --recursive \
    --dereference-recursive --include: --exclude: --exclude-from:read --exclude-dir: --files-without-match \
    --files-with-matches --count --initial-tab --null --before-context: --after-context: --context: --color? --colour?";

const RG: &str = "-nisSvwxcloqUuaFPNHILp0 -e: -f:read -g: -t: -T: -A: -B: -C: -m: -M: -r: -j: -d: -E: --regexp: --file:read \
    --files --type-list --glob: --iglob: --type: --type-not: --hidden --no-hidden --no-ignore --no-ignore-vcs \
    --no-config --json --count --count-matches --sort: --sortr: --color: --colors: --heading --no-heading \
    --line-number --no-line-number --column --no-column --with-filename --no-filename --ignore-case --smart-case \
    --case-sensitive --word-regexp --line-regexp --fixed-strings --multiline --multiline-dotall --pcre2 --engine: \
    --only-matching --files-with-matches --files-without-match --invert-match --max-count: --max-depth: --max-columns: \
    --max-filesize: --context: --after-context: --before-context: --replace: --text --quiet --stats --trim --null \
    --vimgrep --pretty --follow --one-file-system --threads: --unrestricted --binary --passthru --encoding:";

const LS: &str = "-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size: \
    --ignore-backups --color? --directory --classify? --file-type --format: --full-time --group-directories-first \
    --no-group --human-readable --si --dereference --hide: --hyperlink? --indicator-style: --inode --ignore: --kibibytes \
    --numeric-uid-gid --literal --quote-name --quoting-style: --reverse --recursive --size --sort: --time: --time-style: \
    --tabsize: --width: --context --zero";

const DIFF: &str = "-qsuNrabBwiytTEZdHpce -U: -C: -W: -I: -x: -X:read -F: -D: -L: -# --unified? --context? --brief \
    --report-identical-files --recursive --color? --exclude: --exclude-from:read --ignore-case --ignore-all-space \
    --ignore-space-change --ignore-blank-lines --ignore-trailing-space --ignore-tab-expansion --ignore-matching-lines: \
    --side-by-side --width: --suppress-common-lines --new-file --text --label: --normal --minimal --show-c-function \
    --strip-trailing-cr --no-dereference --expand-tabs --initial-tab";

const SORT: &str = "-bdfgiMhnRrVcCmsuz -k: -t: -S: -o:write -T:write --ignore-leading-blanks --dictionary-order --ignore-case \
    --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort \
    --random-source:read --reverse --sort: --version-sort --batch-size: --check? --debug --key: --merge --output:write \
    --stable --buffer-size: --field-separator: --temporary-directory:write --parallel: --unique --zero-terminated \
    --compress-program:code";

const DU: &str = "-abchHklmsSxDLP0 -d: -t: -B: -X:read --all --apparent-size --block-size: --bytes --total --dereference \
    --dereference-args --human-readable --inodes --count-links --max-depth: --summarize --si --separate-dirs --time? \
    --time-style: --exclude: --exclude-from:read --one-file-system --threshold: --null";

const DIGEST: &str = "-btz --binary --text --tag --zero";

const TOOLS: &[Tool] = &[
    // What reads files and prints.
    tame(
        "cat",
        "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting",
    ),
    tame("tac", "-br -s: --before --regex --separator:"),
    tame("rev", ""),
    tame("head", "-qvz -c: -n: -# --bytes: --lines: --quiet --silent --verbose --zero-terminated"),
    tame(
        "tail",
        "-fFqvz -c: -n: -s: -# --bytes: --follow? --lines: --max-unchanged-stats: --pid: --quiet --retry --silent \
         --sleep-interval: --verbose --zero-terminated",
    ),
    reads("wc", "-clmLw --bytes --chars --lines --max-line-length --words --total:"),
    tame(
        "nl",
        "-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --number-format: --number-width:",
    ),
    tame(
        "cut",
        "-nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --complement --only-delimited --output-delimiter: --zero-terminated",
    ),
    tame("paste", "-sz -d: --delimiters: --serial --zero-terminated"),
    tame(
        "join",
        "-iz -a: -e: -j: -o: -t: -v: -1: -2: --ignore-case --check-order --nocheck-order --header --zero-terminated",
    ),
    tame("comm", "-123z --check-order --nocheck-order --output-delimiter: --total --zero-terminated"),
    tame("fold", "-bs -w: --bytes --spaces --width:"),
    tame(
        "fmt",
        "-cstu -p: -w: -g: -# --crown-margin --prefix: --split-only --tagged-paragraph --uniform-spacing --width: --goal:",
    ),
    tame("expand", "-i -t: --initial --tabs:"),
    tame("unexpand", "-a -t: --all --first-only --tabs:"),
    tame("stat", "-Lft -c: --dereference --file-system --format: --printf: --terse --cached:"),
    tame(
        "realpath",
        "-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to:read --relative-base:read --strip --no-symlinks --zero",
    ),
    tame(
        "readlink",
        "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero",
    ),
    tame(
        "od",
        "-abcdfilosxv -A: -t: -j: -N: -S: -w? --address-radix: --endian: --skip-bytes: --read-bytes: --format: --output-duplicates --width?",
    ),
    tame("hexdump", "-bcCdovx -n: -s: -e: -f:read"),
    reads("strings", "-afow -n: -t: -e: --all --print-file-name --bytes: --radix: --encoding:"),
    tame("cmp", "-bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent"),
    reads("md5sum", DIGEST),
    reads("sha1sum", DIGEST),
    reads("sha224sum", DIGEST),
    reads("sha256sum", DIGEST),
    reads("sha384sum", DIGEST),
    reads("sha512sum", DIGEST),
    reads("b2sum", DIGEST),
    reads("cksum", ""),
    reads("base64", "-di -w: --decode --ignore-garbage --wrap:"),
    reads("base32", "-di -w: --decode --ignore-garbage --wrap:"),
    tame("sum", "-rs --sysv"),
    here(tame("ls", LS)),
    here(tame("dir", LS)),
    here(tame("vdir", LS)),
    here(reads("du", DU)),
    tame(
        "df",
        "-ahHiklPTv -B: -t: -x: --all --block-size: --human-readable --inodes --output? --portability --print-type --total",
    ),
    tame("basename", "-az -s: --multiple --suffix: --zero"),
    tame("dirname", "-z --zero"),
    // These have options that start programs or write, which are not listed.
    reads(
        "file",
        "-bikLhNr -F: --brief --mime --mime-type --mime-encoding --dereference --no-dereference --no-pad --raw --separator:",
    ),
    reads("diff", DIFF),
    reads("sort", SORT),
    reads(
        "column",
        "-txeL -n: -s: -o: -c: -N: -H: -T: -W: -r: -R: --table --separator: --output-separator: --columns:",
    ),
    here(reads(
        "tree",
        "-adfilpsugDFNQrtUvhJXCnSqx -L= -P= -I= --noreport --charset: --filelimit: --dirsfirst --du --prune --inodes --device \
         --timefmt: --gitignore --si --matchdirs --ignore-case",
    )),
    Tool {
        operands: Operands::ReadThenWrite,
        ..reads(
            "uniq",
            "-cdDiuz -f: -s: -w: --count --repeated --all-repeated? --group? --ignore-case --skip-fields: --skip-chars: --check-chars: --unique --zero-terminated",
        )
    },
    Tool { operands: Operands::ReadThenWrite, ..reads("xxd", "-c: -g: -l: -o: -s:") },
    searches("grep", GREP, &["-e", "-f", "--regexp", "--file"]),
    searches("egrep", GREP, &["-e", "-f", "--regexp", "--file"]),
    searches("fgrep", GREP, &["-e", "-f", "--regexp", "--file"]),
    searches("rg", RG, &["-e", "-f", "--regexp", "--file", "--files", "--type-list"]),
    searches(
        "fd",
        "-HIsigapLuq0 -t: -e: -d: -E: -c: -S: -j: --hidden --no-ignore --case-sensitive --ignore-case --glob --regex --fixed-strings \
         --absolute-path --full-path --follow --type: --extension: --max-depth: --min-depth: --exact-depth: --exclude: --color: --size: \
         --changed-within: --changed-before: --max-results: --print0",
        &[],
    ),
    Tool {
        here: false,
        ..searches(
            "jq",
            "-rncseSMCja --raw-output --null-input --compact-output --slurp --exit-status --sort-keys \
             --monochrome-output --color-output --join-output --ascii-output --raw-input --tab --indent:",
            &[],
        )
    },
    // What says something about its arguments, the machine or the sandbox.
    says("tr", "-cCdst --complement --delete --squeeze-repeats --truncate-set1"),
    says("seq", "-w -f: -s: --equal-width --format: --separator:"),
    says("expr", ""),
    says("sleep", ""),
    says("echo", ""),
    says("printf", ""),
    says("yes", ""),
    says("factor", ""),
    says("which", "-a --all"),
    says("ps", "-AaefFHlLxwjNTdcry -o: -p: -C: -U: -u: -g: -t: --forest --no-headers --sort: --width:"),
    says("id", "-agGnruzZ --user --group --groups --name --real --zero"),
    says("groups", ""),
    says("printenv", "-0 --null"),
    says("locale", "-ackm --all-locales --charmaps --category-name --keyword-name"),
    says("getconf", "-a -v:"),
    // An operand sets the clock unless it is a format; `+` cannot begin one that does.
    Tool {
        operands: Operands::Format,
        ..nothing(
            "date",
            "-uR -d: -I? -r:read --utc --date: --iso-8601? --rfc-3339: --rfc-email --reference:read",
        )
    },
    nothing("pwd", "-LP --logical --physical"),
    nothing("true", ""),
    nothing("false", ""),
    nothing("whoami", ""),
    nothing("logname", ""),
    nothing("tty", "-s --silent --quiet"),
    nothing("arch", ""),
    nothing(
        "uname",
        "-asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --operating-system",
    ),
    nothing("nproc", "--all --ignore:"),
    nothing("uptime", "-ps --pretty --since"),
    nothing("free", "-bkmghtwl -s: -c: --human --bytes --kilo --mega --giga --total --wide"),
    nothing("lscpu", "-abceJpxy --json --all"),
    nothing("hostname", "-sI --short --all-ip-addresses"),
    // What changes files, and nothing else.
    uses(
        "rm",
        "-rRfivdI --recursive --force --verbose --dir --one-file-system --preserve-root? --no-preserve-root --interactive?",
        Use::Delete,
    ),
    uses("rmdir", "-pv --parents --verbose --ignore-fail-on-non-empty", Use::Delete),
    uses("unlink", "", Use::Delete),
    uses(
        "shred",
        "-fuvxz -n: -s: --force --iterations: --size: --remove? --verbose --exact --zero",
        Use::Delete,
    ),
    uses(
        "touch",
        "-acmhf -d: -r:read -t: --no-create --date: --no-dereference --reference:read --time:",
        Use::Write,
    ),
    uses("mkdir", "-pvZ -m: --parents --mode: --verbose --context?", Use::Write),
    uses("mkfifo", "-Z -m: --mode: --context?", Use::Write),
    uses("tee", "-aip --append --ignore-interrupts --output-error?", Use::Write),
    uses("truncate", "-co -s: -r:read --no-create --io-blocks --reference:read --size:", Use::Write),
    Tool {
        operands: Operands::FirstIsText(&["--reference"], Use::Write),
        ..uses(
            "chmod",
            "-Rvcf --recursive --verbose --changes --silent --quiet --preserve-root --no-preserve-root --reference:read",
            Use::Write,
        )
    },
    Tool {
        operands: Operands::FirstIsText(&["--reference"], Use::Write),
        ..uses(
            "chown",
            "-RvcfhHLP --recursive --verbose --changes --silent --quiet --no-dereference --dereference --from: --reference:read",
            Use::Write,
        )
    },
    Tool {
        operands: Operands::FirstIsText(&["--reference"], Use::Write),
        ..uses(
            "chgrp",
            "-RvcfhHLP --recursive --verbose --changes --silent --quiet --no-dereference --dereference --reference:read",
            Use::Write,
        )
    },
];

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else { return false };
    let order = if tool.tame { Order::Tame } else { Order::Anywhere };
    let parsed = account.options(name, tool.options, order, args);
    let operands = &parsed.operands;
    let files = match &tool.operands {
        // What a program only says names no file.
        Operands::All(Use::Text) => &[],
        Operands::FirstIsText(given, _) if !given.iter().any(|option| parsed.has(option)) => {
            // A pattern of the shell can become several words, of which the second is a file.
            operands
                .first()
                .filter(|text| !text.is_one())
                .inspect(|text| account.unknown_argument(name, text));
            operands.get(1..).unwrap_or_default()
        }
        _ => operands.as_slice(),
    };
    match &tool.operands {
        Operands::All(usage) | Operands::FirstIsText(_, usage) => {
            files.iter().for_each(|file| account.use_of(name, *usage, file));
        }
        Operands::ReadThenWrite => {
            // A pattern may become two names.
            let several = files.iter().any(|file| !file.is_one());
            for (at, file) in files.iter().enumerate() {
                let usage = if at == 0 { Use::Read } else { Use::Write };
                account.use_of(name, usage, file);
                if several {
                    account.use_of(name, Use::Write, file);
                }
            }
        }
        Operands::Format => {
            let format = |arg: &Arg| arg.is_one() && arg.text.starts_with('+');
            files.iter().filter(|arg| !format(arg)).for_each(|arg| account.unknown_argument(name, arg));
        }
        Operands::None => files.iter().for_each(|operand| account.unknown_argument(name, operand)),
    }
    reads_more(account, name, operands);
    if tool.here && files.is_empty() {
        account.read_here();
    }
    true
}

/// Notes what a program reads beside the files that are named.
fn reads_more(account: &mut Account<'_>, name: &str, operands: &[&Arg]) {
    let list = |arg: &&&Arg| arg.text.starts_with('@') || arg.known != Known::Exactly && arg.may_be_option();
    match name {
        // `@FILE` is a file of more arguments.
        "strings" => operands.iter().filter(list).for_each(|arg| account.unknown_argument(name, arg)),
        "jq" => {
            let reads = |text: &str| ["import", "include"].iter().any(|word| text.contains(word));
            if operands.first().is_some_and(|program| program.exact().is_none_or(reads)) {
                account.unknown("jq may read modules from somewhere else");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::is_notation;

    #[test]
    fn every_list_is_of_the_notation_and_every_program_is_listed_once() {
        let mut seen = std::collections::BTreeSet::new();
        for tool in TOOLS {
            assert!(is_notation(tool.options), "{}", tool.name);
            assert!(seen.insert(tool.name), "{} stands there twice", tool.name);
        }
    }
}
