//! Programs that talk to other machines.

use model::Effect;

use crate::account::Account;
use crate::arg::Arg;

const BY_ADDRESS: [&str; 6] = ["curl", "wget", "http", "https", "xh", "aria2c"];
const BY_NAME: [&str; 18] = [
    "ssh",
    "scp",
    "sftp",
    "ftp",
    "telnet",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "ping",
    "ping6",
    "dig",
    "host",
    "nslookup",
    "traceroute",
    "whois",
    "mosh",
    "rclone",
];

pub(crate) fn read(account: &mut Account<'_>, name: &str, args: &[Arg]) -> bool {
    if BY_ADDRESS.contains(&name) {
        by_address(account, name, args);
    } else if BY_NAME.contains(&name) {
        by_name(account, name, args);
    } else if matches!(name, "mail" | "mailx" | "sendmail" | "mutt" | "msmtp") {
        // A subject can look like an address, and telling too many is no harm.
        let to: Vec<&str> = args.iter().filter_map(Arg::exact).filter(|text| text.contains('@')).collect();
        let to = if to.is_empty() { vec!["*"] } else { to };
        to.into_iter().for_each(|to| account.add(Effect::Message { to: to.to_owned() }));
    } else {
        return false;
    }
    true
}

fn by_address(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    let mut connected = false;
    let mut rest = args.iter().peekable();
    while let Some(arg) = rest.next() {
        let Some(text) = arg.exact() else {
            account.unknown_argument(name, arg);
            continue;
        };
        match text {
            "-o" | "--output" | "-O" if name != "curl" || text != "-O" => {
                if let Some(file) = rest.next() {
                    account.write(file);
                }
            }
            "-O" | "--remote-name" => account.write(&Arg::exactly(".")),
            "-d" | "--data" | "--data-binary" | "-F" | "--form" | "-T" | "--upload-file" => {
                let file = rest.next().and_then(Arg::exact).unwrap_or("*");
                account.read(&file.split_once('@').map_or_else(Arg::unknown, |(_, file)| Arg::exactly(file)));
            }
            "-u" | "--user" | "--oauth2-bearer" | "-n" | "--netrc" | "-E" | "--cert" | "--key" => {
                account.add(Effect::UseCredential { credential: name.to_owned() });
                rest.next_if(|value| !value.text.starts_with('-') && !value.text.contains("://"));
            }
            "-s" | "-S" | "-f" | "-L" | "-i" | "-I" | "-k" | "-v" | "-sS" | "-fsSL" | "-sSL" | "-sL"
            | "-q" | "-qO-" => {}
            "-X" | "--request" | "-H" | "--header" => drop(rest.next()),
            address if !address.starts_with('-') => {
                account.connect(host_of(address));
                connected = true;
            }
            _ => {
                // What follows may be its value, and no address.
                account.unknown_argument(name, arg);
                account.connect(None);
            }
        }
    }
    if !connected {
        account.connect(None);
    }
    if name == "wget" {
        account.write(&Arg::exactly("."));
    }
}

/// Returns the machine of an address, with its port, as it is written there.
fn host_of(address: &str) -> Option<&str> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    // A pattern of curl means several machines.
    (!host.is_empty() && !host.contains(['{', '[', '*'])).then_some(host)
}

fn by_name(account: &mut Account<'_>, name: &str, args: &[Arg]) {
    // Behind options the first word may be the value of one, and a copy may name its machine anywhere.
    let first = args.first().and_then(Arg::exact).filter(|text| !text.starts_with('-'));
    let host = first.filter(|_| !matches!(name, "scp" | "sftp" | "rclone" | "socat"));
    let host = host
        .map(|host| host.rsplit('@').next().unwrap_or(host))
        .map(|host| host.split(':').next().unwrap_or(host));
    account.connect(host);
    if matches!(name, "ssh" | "scp" | "sftp" | "mosh") {
        account.add(Effect::UseCredential { credential: "ssh".to_owned() });
    }
    // An option can name a program to start, and what happens at the other end is not known here.
    account.unknown(format!("what {name} does at the other end is not known here"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_an_address_is_found_in_odd_spellings() {
        assert_eq!(host_of("https://a.test/x"), Some("a.test"));
        assert_eq!(host_of("a.test:80/x"), Some("a.test:80"));
        assert_eq!(host_of("http://good.test@evil.test/"), Some("evil.test"));
        assert_eq!(host_of("http://a.test\\@b.test"), Some("a.test"));
        assert_eq!(host_of("http://{a,b}.test"), None);
    }
}
