//! Programs that copy, move, link and pack files.

use crate::account::Account;
use crate::arg::{Arg, Known};
use crate::options::{Order, Use};

const COPIES: &str = "-aAbdfHiLlnPpRrsTuvxZZ -S: -t:write --archive --attributes-only --backup? --force --interactive --dereference \
    --no-clobber --no-dereference --preserve? --no-preserve: --parents --recursive --reflink? --remove-destination --sparse: \
    --strip-trailing-slashes --symbolic-link --link --suffix: --target-directory:write --no-target-directory --update? --verbose \
    --one-file-system --context?";
const INSTALLS: &str = "-bcCdDpsTvZ -g: -m: -o: -S: -t:write --compare --directory --group: --mode: --owner: --preserve-timestamps \
    --target-directory:write --no-target-directory --verbose --backup? --suffix:";

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    match name {
        "cp" => copies(account, name, COPIES, args, Use::Read),
        "mv" => copies(account, name, COPIES, args, Use::Delete),
        "ln" => copies(account, name, COPIES, args, Use::Read),
        "install" => copies(account, name, INSTALLS, args, Use::Read),
        "dd" => dd(account, args),
        "tar" | "bsdtar" => tar(account, name, args),
        "unzip" => unzip(account, args),
        "rsync" => rsync(account, args),
        _ => return false,
    }
    true
}

/// The last operand is where things go, unless an option said so.
fn copies(account: &mut Account<'_>, name: &str, options: &str, args: &[Arg], sources: Use) {
    let parsed = account.options(name, options, Order::Anywhere, args);
    let by_option = parsed.has("-t") || parsed.has("--target-directory");
    let directories = name == "install" && (parsed.has("-d") || parsed.has("--directory"));
    let last = parsed.operands.len().saturating_sub(usize::from(!by_option));
    // What is known only at run time may be no word at all, so the one before it may be the last.
    let known = parsed.operands.iter().rposition(|operand| operand.known != Known::Not);
    let first_target = known.filter(|_| !by_option).map_or(last, |known| known.min(last));
    for (at, operand) in parsed.operands.iter().enumerate() {
        if directories || at >= first_target || operand.known == Known::Not {
            account.write(operand);
        }
        if !directories && at < last {
            account.use_of(name, sources, operand);
        }
    }
    // `ln TARGET` alone makes a link here.
    if parsed.operands.len() == 1 && !by_option {
        account.write(&Arg::exactly("."));
    }
}

fn dd(account: &mut Account<'_>, args: &[Arg]) {
    for arg in args {
        match arg.exact().and_then(|text| text.split_once('=')) {
            Some(("if", path)) => account.read(&Arg::exactly(path)),
            Some(("of", path)) => account.write(&Arg::exactly(path)),
            Some((
                "bs" | "ibs" | "obs" | "cbs" | "count" | "skip" | "seek" | "status" | "conv" | "iflag"
                | "oflag",
                _,
            )) => {}
            _ => account.unknown_argument("dd", arg),
        }
    }
}

fn tar(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    const OPTIONS: &str = "-tcxruvzjJkmpPShO -f: -C: -T:read --list --create --extract --get --file: --directory: --verbose --gzip \
        --bzip2 --xz --zstd --exclude: --strip-components: --wildcards --totals --numeric-owner --no-same-owner --sort: --mtime:";
    // The letters may come first without a dash.
    let mut args = args.to_vec();
    let plain =
        ["--list", "--create", "--extract", "--get", "--verbose", "--gzip", "--bzip2", "--xz", "--zstd"];
    let odd = |arg: &&Arg| {
        arg.text.starts_with("--") && !plain.contains(&arg.text.as_str()) && !arg.text.starts_with("--file=")
    };
    if let Some(arg) = args.iter().find(odd).or_else(|| args.first().filter(|first| first.exact().is_none()))
    {
        account.unknown_argument(name, arg);
    }
    if let Some(first) =
        args.first_mut().filter(|first| first.exact().is_some_and(|text| !text.starts_with('-')))
    {
        // There, a letter that takes a value takes it from the next arguments, wherever it stands.
        let values = first.text.rfind(['f', 'C', 'T', 'X', 'b', 'I', 'F', 'g', 'H', 'K', 'L', 'N', 'V']);
        if values.is_some_and(|at| {
            first.text[..at].contains(['f', 'C', 'T', 'X', 'b', 'I']) || at + 1 != first.text.len()
        }) {
            account.unknown(format!("what `{}` of {name} means is not known here", first.text));
        }
        first.text.insert(0, '-');
    }
    let parsed = account.options(name, OPTIONS, Order::Anywhere, &args);
    let has = |options: &[&str]| options.iter().any(|option| parsed.has(option));
    let archive = value_of(&args, 'f', "--file");
    let archive = archive.unwrap_or_else(|| Arg::exactly("/dev/null"));
    if archive.exact().is_none() {
        account.connect(None);
    }
    if archive.text.contains(':') {
        // `HOST:FILE` is an archive on another machine.
        account.connect(archive.text.split(':').next());
    }
    let directory = value_of(&args, 'C', "--directory");
    if has(&["-t", "--list"]) && !has(&["-c", "-x", "-r", "-u", "--create", "--extract", "--get"]) {
        account.read(&archive);
    } else if has(&["-x", "--extract", "--get"]) {
        account.read(&archive);
        account.write(&directory.unwrap_or_else(|| Arg::exactly(".")));
        account.unknown("which files an archive holds is known only at run time");
    } else {
        account.write(&archive);
        parsed.operands.iter().for_each(|operand| account.read(operand));
        if let Some(directory) = directory {
            account.read(&directory);
        }
    }
}

/// Returns the value of an option of one letter, or of its long form.
fn value_of(args: &[Arg], letter: char, long: &str) -> Option<Arg> {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg.text == long {
            return rest.next().cloned();
        }
        if let Some(value) = arg.text.strip_prefix(long).and_then(|value| value.strip_prefix('=')) {
            return Some(Arg::exactly(value));
        }
        if let Some(letters) = arg.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))
            && let Some((_, value)) = letters.split_once(letter)
        {
            return if value.is_empty() { rest.next().cloned() } else { Some(Arg::exactly(value)) };
        }
    }
    None
}

fn unzip(account: &mut Account<'_>, args: &[Arg]) {
    let parsed = account.options("unzip", "-lvtZqojnaC1 -d:write -x:", Order::Anywhere, args);
    if let Some(archive) = parsed.operands.first() {
        account.read(archive);
    }
    if !["-l", "-v", "-t", "-Z"].iter().any(|option| parsed.has(option)) {
        account.write(&Arg::exactly("."));
        account.unknown("which files an archive holds is known only at run time");
    }
}

fn rsync(account: &mut Account<'_>, args: &[Arg]) {
    if args.iter().any(|arg| arg.text.starts_with("-e") || arg.text.starts_with("--rsh")) {
        account.connect(None);
    }
    let options = "-avrzhnqctuplogDHAXSPbW --archive --verbose --recursive --compress --dry-run --delete --progress --exclude: --include: \
        --stats --checksum --links --perms --times --human-readable --partial --existing --ignore-existing --inplace --quiet";
    let parsed = account.options("rsync", options, Order::Anywhere, args);
    let last = parsed.operands.len().saturating_sub(1);
    for (at, operand) in parsed.operands.iter().enumerate() {
        let host = operand.text.split_once(':').map(|(host, _)| host).filter(|host| !host.contains('/'));
        match host {
            Some(host) => account.connect(Some(host.rsplit('@').next().unwrap_or(host))),
            None if at == last => account.write(operand),
            None => account.read(operand),
        }
    }
    if parsed.has("--delete")
        && let Some(target) = parsed.operands.last()
    {
        account.delete(target);
    }
}
