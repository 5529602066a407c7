//! An authority of a test, and what it certifies.

use std::{fs, path::Path, process::Command};

/// Makes an authority (`ca.pem`), and a certificate of it (`server.pem`, `server.key`) for names such as `DNS:localhost`.
pub(crate) fn make_certificates(path: &Path, names: &str) {
    let make = |arguments: &str| {
        let made = Command::new("openssl").args(arguments.split(' ')).current_dir(path).output();
        let made = made.unwrap_or_else(|error| panic!("cannot start openssl ({error}), which comes with dovecot"));
        assert!(made.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr));
    };
    let leaf = format!("subjectAltName={names}\nbasicConstraints=CA:FALSE\n");
    fs::write(path.join("leaf.cnf"), leaf).expect("it is ours");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    make(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=Test"));
    make(&format!("req {key} -keyout server.key -out server.csr -subj /CN=localhost"));
    make("x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile leaf.cnf -out server.pem");
}
