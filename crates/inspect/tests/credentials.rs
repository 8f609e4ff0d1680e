//! Credential files are found, and what only looks like one stays readable.
//!
//! Every secret here is made by the test: the repository itself holds nothing that a scanner would take for one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use common::Bench;
use inspect::Finding;
use inspect::credentials::{FoundKind, MemoryCache, ScanCache, rules_digest, scan, scan_layer};
use inspect::tree::Tree;

const BASE62: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";

/// Makes a text that looks as if a machine had made it, the same one every time.
fn random(alphabet: &str, length: usize) -> String {
    let letters = alphabet.as_bytes();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ (length as u64) << 17 ^ letters.len() as u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(letters[usize::try_from(state % letters.len() as u64).expect("small")])
    };
    (0..length).map(|_| next()).collect()
}

fn pem(kind: &str) -> String {
    let body: Vec<String> = (0..20).map(|line| random(BASE64, 60 + line % 5)).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", body.join("\n"))
}

/// Files that hold a credential.
fn secrets() -> Vec<(&'static str, String)> {
    let token = random(BASE62, 36);
    let hex = random(HEX, 32);
    vec![
        (".env", format!("PORT=3000\nDATABASE_PASSWORD={}\n", random(BASE62, 14))),
        ("service/.env.production", format!("export STRIPE={}\n", random(BASE62, 30))),
        ("deploy/id_rsa", pem("OPENSSH PRIVATE KEY")),
        ("certs/server.key", pem("RSA PRIVATE KEY")),
        ("certs/combined.pem", format!("{}{}", pem("CERTIFICATE"), pem("EC PRIVATE KEY"))),
        ("keys/unnamed.txt", pem("ENCRYPTED PRIVATE KEY")),
        ("keys/gpg.asc", pem("PGP PRIVATE KEY BLOCK")),
        ("gcp.json", format!("{{\"type\": \"service_account\", \"private_key\": {:?}}}", pem("PRIVATE KEY"))),
        (".aws/credentials", format!("[default]\naws_access_key_id = AKIA{}\n", random(BASE32, 16))),
        ("scripts/upload.sh", format!("export AWS_SECRET_ACCESS_KEY={}\n", random(BASE64, 40))),
        ("infra/terraform.tfstate", format!("{{\"resources\": [{{\"password\": \"{hex}\"}}]}}")),
        ("infra/prod.tfvars", format!("db_password = \"{}\"\n", random(BASE62, 12))),
        (".npmrc", format!("//registry.test/:_authToken={}\n", random(HEX, 36))),
        ("docs/notes.md", format!("use npm{}{token} for now", "_")),
        ("app/config.py", format!("TOKEN = 'gh{}{token}'\n", "p_")),
        ("app/settings.yaml", format!("gitlab: gl{}{}\n", "pat-", random(BASE62, 20))),
        ("app/models.ts", format!("const key = \"sk{}{}\"", "-ant-api03-", random(BASE62, 90))),
        ("app/deepseek.txt", format!("sk{}{hex}", "-")),
        ("app/chat.rb", format!("xox{}{}-{}", "b-", random("123456789", 12), random(BASE62, 24))),
        (".netrc", format!("machine git.test login ada password {}\n", random(BASE62, 10))),
        (".pypirc", format!("[pypi]\nusername = __token__\npassword = {}\n", random(BASE62, 40))),
        ("pip.conf", format!("[global]\nindex-url = https://ada:{}@index.test/simple\n", random(BASE62, 10))),
        (".kube/config", format!("users:\n- name: a\n  user:\n    token: {}\n", random(BASE62, 30))),
        (
            ".docker/config.json",
            format!("{{\"auths\":{{\"r.test\":{{\"auth\":\"{}\"}}}}}}", random(BASE64, 24)),
        ),
        (".cargo/credentials.toml", format!("[registry]\ntoken = \"{}\"\n", random(BASE62, 35))),
        ("home/.config/gh/hosts.yml", format!("github.com:\n    oauth_token: {}\n", random(HEX, 40))),
        ("k8s/secret.yaml", format!("apiVersion: v1\nkind: Secret\ndata:\n  key: {}\n", random(BASE64, 24))),
        ("store/release.keystore", "\0\0binary".to_owned()),
        ("vault.kdbx", "\0binary".to_owned()),
        (".git-credentials", format!("https://ada:{}@git.test\n", random(BASE62, 10))),
        ("home/.bash_history", "ls\n".to_owned()),
        ("azure.ini", format!("DefaultEndpointsProtocol=https;AccountKey={}==\n", random(BASE64, 86))),
    ]
}

/// Files that look like one and hold none.
fn lookalikes() -> Vec<(&'static str, String)> {
    vec![
        (".env.example", "API_KEY=your_api_key_here\nDATABASE_PASSWORD=\n".to_owned()),
        (
            "web/.env",
            "PORT=3000\nNODE_ENV=development\nVITE_TITLE=My App\nAPI_URL=http://localhost:8080\n".to_owned(),
        ),
        ("ci/.env", "TOKEN=${CI_TOKEN}\nSECRET=<secret>\nPASSWORD=changeme\n".to_owned()),
        ("venv/.env/lib/site.py", format!("VALUE = '{}'\n", random(BASE62, 30))),
        ("keys/id_rsa.pub", format!("ssh-rsa {} ada@host\n", random(BASE64, 300))),
        ("web/node_modules/tls/test/key.pem", pem("PRIVATE KEY")),
        ("venv/lib/python3/site-packages/tls/id_rsa", pem("OPENSSH PRIVATE KEY")),
        ("certs/server.pem", pem("CERTIFICATE")),
        ("certs/public.pem", pem("PUBLIC KEY")),
        (
            "docs/keys.md",
            "A key starts with `-----BEGIN PRIVATE KEY-----` and ends with `-----END PRIVATE KEY-----`.\n"
                .to_owned(),
        ),
        ("docs/aws.md", format!("export AWS_ACCESS_KEY_ID=AKIA{}\n", "IOSFODNN7EXAMPLE")),
        ("docs/token.md", format!("curl -H 'Authorization: token gh{}{}'\n", "p_", "x".repeat(36))),
        (
            "src/credentials.rs",
            "pub struct Credentials { pub password: String, pub token: String }\n".to_owned(),
        ),
        ("src/secrets.py", "def password(token): return token\nPASSWORD_MIN = 12\n".to_owned()),
        ("src/key.ts", "export const tokenKey = process.env.TOKEN_KEY;\n".to_owned()),
        ("package-lock.json", format!("{{\"integrity\": \"sha512-{}==\"}}", random(BASE64, 86))),
        ("Cargo.lock", format!("checksum = \"{}\"\n", random(HEX, 64))),
        (".npmrc", "//registry.test/:_authToken=${NPM_TOKEN}\nsave-exact=true\n".to_owned()),
        (".docker/config.json", "{\"auths\": {}, \"credsStore\": \"pass\"}".to_owned()),
        ("infra/empty.tfstate", "{\"version\": 4, \"resources\": []}".to_owned()),
        ("infra/variables.tf", "variable \"db_password\" {\n  sensitive = true\n}\n".to_owned()),
        ("k8s/deployment.yaml", "kind: Deployment\nspec:\n  data:\n    key: averylongvalue\n".to_owned()),
        (
            "k8s/sealed.yaml",
            "kind: SealedSecret\nspec:\n  encryptedData:\n    key: AgBy3i4OJSWK\n".to_owned(),
        ),
        ("settings.xml", "<settings><server><password>${env.PASS}</password></server></settings>".to_owned()),
        ("test/uuid.txt", "123e4567-e89b-12d3-a456-426614174000\n".to_owned()),
        ("commit.txt", format!("{}\n", random(HEX, 40))),
        (".ssh/config", "Host work\n  IdentityFile ~/.ssh/work\n".to_owned()),
        (".ssh/known_hosts", format!("git.test ssh-ed25519 {}\n", random(BASE64, 68))),
        ("compiled.bin", format!("\0\0gh{}{}", "p_", random(BASE62, 36))),
        ("tokens.json", "{\"<s>\": 1, \"hello\": 2}".to_owned()),
        ("jwt.test.js", "const header = 'eyJhbGciOiJIUzI1NiJ9';\n".to_owned()),
        ("fixtures/sequence.txt", format!("sk-{}{}", "0123456789abcdef", "0123456789abcdef")),
    ]
}

fn write(base: &Path, files: &[(&str, String)]) {
    for (name, content) in files {
        let path = base.join(name);
        fs::create_dir_all(path.parent().expect("in a directory")).expect("made");
        fs::write(path, content).expect("written");
    }
}

fn found_in(base: &Path, cache: &mut dyn ScanCache) -> Vec<String> {
    let scan = scan(&Tree::open(base).expect("a base"), cache).expect("is scanned");
    scan.found.iter().map(|found| found.path.to_string()).collect()
}

#[test]
fn the_corpus_is_found_and_nothing_of_it_is_repeated() {
    let bench = Bench::new();
    let files = secrets();
    assert!(files.len() >= 20);
    write(&bench.base(), &files);
    let scan =
        scan(&Tree::open(&bench.base()).expect("a base"), &mut MemoryCache::default()).expect("is scanned");
    for (name, content) in &files {
        let found = scan.found.iter().find(|found| found.path.as_path() == Path::new(name));
        let why = &found.unwrap_or_else(|| panic!("{name} was not found")).why;
        let longest = content.split(|c: char| !c.is_ascii_alphanumeric()).max_by_key(|word| word.len());
        assert!(!why.contains(longest.expect("a word")), "{name}: {why}");
    }
    assert_eq!(scan.found.len(), files.len());
}

#[test]
fn lookalikes_stay_readable() {
    let bench = Bench::new();
    let files = lookalikes();
    assert!(files.len() >= 20);
    write(&bench.base(), &files);
    assert_eq!(found_in(&bench.base(), &mut MemoryCache::default()), [""; 0]);
}

#[test]
fn links_pipes_and_large_files_are_looked_at_by_name_only() {
    let bench = Bench::new();
    write(&bench.base(), &[("real/secret.txt", pem("PRIVATE KEY"))]);
    symlink("real/secret.txt", bench.base().join("id_rsa")).expect("made");
    symlink("/", bench.base().join("root")).expect("made");
    let fifo = std::process::Command::new("mkfifo").arg(bench.base().join(".env")).status();
    assert!(fifo.expect("mkfifo starts").success());
    fs::write(bench.base().join("large.txt"), format!("{}{}", "a".repeat(2 << 20), pem("PRIVATE KEY")))
        .expect("written");
    let huge = fs::File::create(bench.base().join("id_ed25519")).expect("made");
    huge.set_len(1 << 40).expect("set");
    assert_eq!(found_in(&bench.base(), &mut MemoryCache::default()), ["id_ed25519", "real/secret.txt"]);
}

#[test]
fn credentials_in_the_configuration_of_git_are_told_apart() {
    let bench = Bench::new();
    let config = format!("[remote \"origin\"]\n\turl = https://ada:{}@git.test/a\n", random(BASE62, 10));
    let plain = "[remote \"origin\"]\n\turl = git@git.test:a\n".to_owned();
    write(
        &bench.base(),
        &[
            (".git/config", config.clone()),
            (".git/modules/sub/config", config.clone()),
            ("clean/.git/config", plain),
            (".git/logs/HEAD", format!("clone: from https://gh{}{}@git.test", "p_", random(BASE62, 36))),
            (".git/objects/ab/cdef", pem("PRIVATE KEY")),
            ("config", config),
        ],
    );
    let scan =
        scan(&Tree::open(&bench.base()).expect("a base"), &mut MemoryCache::default()).expect("is scanned");
    let found: Vec<_> = scan.found.iter().map(|found| (found.path.to_string(), found.kind)).collect();
    let expected = [
        (".git/config", FoundKind::InGitConfig),
        (".git/logs/HEAD", FoundKind::InGit),
        (".git/modules/sub/config", FoundKind::InGitConfig),
    ];
    assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
}

#[test]
fn secrets_made_during_a_run_are_found_in_its_layer() {
    let mut bench = Bench::new();
    write(&bench.base(), &[("src/main.rs", "fn main() {}\n".to_owned())]);
    let secret = bench.dir.path().join("secret");
    fs::write(&secret, pem("PRIVATE KEY")).expect("written");
    bench.run(&format!(
        "mkdir out; cp {} out/made.txt; echo A=1 >.env; echo 'x=y' >out/plain; rm src/main.rs",
        secret.display()
    ));
    let found = scan_layer(&bench.stack(1), &bench.read(), &mut MemoryCache::default()).expect("is scanned");
    assert_eq!(found.iter().map(|found| found.path.to_string()).collect::<Vec<_>>(), ["out/made.txt"]);
}

#[test]
fn planted_attributes_of_a_base_are_reported() {
    let bench = Bench::new();
    write(&bench.base(), &[("dir/file", String::new()), ("plain", "x".to_owned())]);
    let set = |path: &str, name: &str| {
        rustix::fs::lsetxattr(bench.base().join(path), name, b"y", rustix::fs::XattrFlags::empty())
            .expect("set");
    };
    set("dir", "user.overlay.opaque");
    set("dir/file", "user.overlay.whiteout");
    set("plain", "user.comment");
    let scan =
        scan(&Tree::open(&bench.base()).expect("a base"), &mut MemoryCache::default()).expect("is scanned");
    let foreign = |path: &str, name: &str| Finding::ForeignAttribute {
        path: path.try_into().expect("no NUL"),
        name: name.try_into().expect("no NUL"),
    };
    assert_eq!(
        scan.foreign,
        [foreign("dir", "user.overlay.opaque"), foreign("dir/file", "user.overlay.whiteout")]
    );
}

#[test]
fn the_second_scan_reads_nothing_and_a_changed_file_is_read_again() {
    let bench = Bench::new();
    write(&bench.base(), &secrets());
    write(&bench.base(), &[("plain.txt", "nothing".to_owned())]);
    let base = Tree::open(&bench.base()).expect("a base");
    let mut cache = MemoryCache::default();
    // What changed a moment ago is not remembered: it may change again within one tick of the clock.
    std::thread::sleep(Duration::from_millis(200));
    let first = scan(&base, &mut cache).expect("is scanned");
    let second = scan(&base, &mut cache).expect("is scanned");
    assert!(first.files_read > 20);
    assert_eq!((second.files_read, &second.found), (0, &first.found));
    fs::write(bench.base().join("plain.txt"), pem("PRIVATE KEY")).expect("written");
    let third = scan(&base, &mut cache).expect("is scanned");
    assert_eq!((third.files_read, third.found.len()), (1, first.found.len() + 1));
}

#[test]
fn one_file_with_two_names_is_judged_by_each() {
    let bench = Bench::new();
    write(&bench.base(), &[("a.txt", "PASSWORD_X=abc123abc\n".to_owned())]);
    fs::hard_link(bench.base().join("a.txt"), bench.base().join(".env")).expect("linked");
    std::thread::sleep(Duration::from_millis(200));
    let mut cache = MemoryCache::default();
    for _ in 0..3 {
        assert_eq!(found_in(&bench.base(), &mut cache), [".env"]);
    }
    assert_ne!(rules_digest().to_string(), "");
}

/// Prints what a base of 100,000 files costs: `cargo test --release -p fumehood-inspect --test credentials -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a test"]
fn measure_a_base_of_one_hundred_thousand_files() {
    let bench = Bench::new();
    for directory in 0..1000 {
        let directory = bench.base().join(format!("d{}/e{directory}", directory % 10));
        fs::create_dir_all(&directory).expect("made");
        for file in 0..100 {
            fs::write(
                directory.join(format!("module_{file}.rs")),
                "pub fn f() -> usize { 42 }\n".repeat(100),
            )
            .expect("written");
        }
    }
    std::thread::sleep(Duration::from_millis(200));
    let base = Tree::open(&bench.base()).expect("a base");
    let mut cache = MemoryCache::default();
    for round in ["first", "second", "third"] {
        let start = Instant::now();
        let scan = scan(&base, &mut cache).expect("is scanned");
        eprintln!("{round}: {:?}, {} names, {} files read", start.elapsed(), scan.names, scan.files_read);
    }
}
