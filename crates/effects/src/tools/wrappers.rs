//! Programs that start another one, which stands among their arguments.

use crate::account::Account;
use crate::arg::Arg;
use crate::options::{Order, Use};
use crate::variables::is_harmless;

/// What is known of the options of those that do nothing but start it in another way.
const PLAIN: &[(&str, &str, usize)] = &[
    ("nice", "-n: -# --adjustment:", 0),
    ("ionice", "-t -c: -n: --class: --classdata: --ignore", 0),
    ("chrt", "-bfior --batch --fifo --idle --other --rr", 1),
    ("taskset", "-ac --all-tasks --cpu-list", 1),
    ("setsid", "-cfw --ctty --fork --wait", 0),
    ("stdbuf", "-i: -o: -e: --input: --output: --error:", 0),
    ("timeout", "-vf -k: -s: --foreground --kill-after: --preserve-status --signal: --verbose", 1),
    ("time", "-apqv -f: -o:write --append --format: --output:write --portability --quiet --verbose", 0),
    ("unbuffer", "-p", 0),
    ("busybox", "", 0),
];

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if let Some((_, options, before)) = PLAIN.iter().find(|(plain, _, _)| *plain == name) {
        let parsed = account.options(name, options, Order::First, args);
        let own = parsed.operands.iter().take(*before);
        own.filter(|word| !word.is_one()).for_each(|word| account.unknown_argument(name, word));
        inner(account, name, parsed.operands.get(*before..).unwrap_or_default());
        return true;
    }
    match name {
        "env" => env(account, args),
        "nohup" => {
            // At a terminal, what is printed goes there.
            account.write(&Arg::exactly("nohup.out"));
            inner(account, name, &args.iter().collect::<Vec<_>>());
        }
        "xargs" => xargs(account, args),
        "sudo" | "doas" | "su" | "runuser" | "pkexec" | "setpriv" | "unshare" | "nsenter" | "chroot" => {
            account.control(format!("{name} runs a command as somebody else, or somewhere else"));
            let parsed = account.options(name, "-nEHikPSs -u: -g: --user: --group:", Order::First, args);
            inner(account, name, &parsed.operands);
        }
        "flock" => {
            let parsed = account.options(
                name,
                "-enosux -w: -c:sh -E: --exclusive --nonblock --shared --unlock --wait:",
                Order::First,
                args,
            );
            if let Some((lock, command)) = parsed.operands.split_first() {
                account.write(lock);
                if !command.is_empty() {
                    inner(account, name, command);
                }
            }
        }
        "watch" => {
            let parsed = account.options(name, "-bcdegtx -n: --interval:", Order::First, args);
            let words: Option<Vec<&str>> = parsed.operands.iter().map(|word| word.exact()).collect();
            match words {
                Some(words) => account.use_of(name, Use::Shell, &Arg::exactly(words.join(" "))),
                None => account.unknown("what watch runs is known only at run time"),
            }
        }
        _ => return false,
    }
    true
}

fn inner(account: &mut Account<'_>, name: &str, argv: &[&Arg]) {
    if argv.is_empty() {
        account.unknown(format!("{name} is given no command"));
        return;
    }
    let argv: Vec<Arg> = argv.iter().map(|arg| (*arg).clone()).collect();
    account.deeper(|account| account.command(&argv));
}

fn env(account: &mut Account<'_>, args: &[Arg]) {
    let parsed = account.options(
        "env",
        "-i0v -u: -C:read --ignore-environment --null --unset: --debug",
        Order::First,
        args,
    );
    let moves = parsed.has("-C");
    if ["-i", "-u", "--ignore-environment", "--unset"].iter().any(|option| parsed.has(option)) {
        account.unknown("env takes variables away, which can change what programs do");
    }
    let is_assignment = |arg: &&&Arg| arg.exact().is_some_and(|text| text.contains('='));
    let assigned = parsed.operands.iter().take_while(is_assignment).count();
    for assignment in &parsed.operands[..assigned] {
        let name = assignment.text.split('=').next().unwrap_or_default();
        if !is_harmless(name) {
            account.unknown(format!("the variable {name} can change what programs do"));
        }
    }
    match &parsed.operands[assigned..] {
        [] => {}
        argv if moves => account.somewhere(|account| inner(account, "env", argv)),
        argv => inner(account, "env", argv),
    }
}

/// `xargs` puts what it reads behind the arguments, and into them.
fn xargs(account: &mut Account<'_>, args: &[Arg]) {
    const OPTIONS: &str = "-0rtx -a:read -d: -E: -I: -i? -L: -l? -n: -P: -s: --null --no-run-if-empty --verbose --exit \
        --arg-file:read --delimiter: --replace? --max-lines? --max-args: --max-procs: --max-chars:";
    let parsed = account.options("xargs", OPTIONS, Order::First, args);
    let mut argv: Vec<Arg> = parsed.operands.iter().map(|arg| (*arg).clone()).collect();
    if argv.is_empty() {
        argv.push(Arg::exactly("echo"));
    }
    if ["-I", "-i", "--replace"].iter().any(|option| parsed.has(option)) {
        account.unknown("what xargs puts into its command is known only at run time");
    }
    argv.push(Arg::unknown());
    account.deeper(|account| account.command(&argv));
}
