//! What to set for programs that do not ask the system whom to trust.

use std::path::Path;

/// One program and its setting, ready to paste.
pub(super) fn settings(anchor: &Path, bundle: &Path) -> Vec<(&'static str, String)> {
    let (anchor, bundle) = (anchor.display(), bundle.display());
    vec![
        ("pip, Python", format!("export PIP_CERT={bundle} REQUESTS_CA_BUNDLE={bundle}")),
        ("node, npm", format!("export NODE_EXTRA_CA_CERTS={anchor}")),
        ("cargo", format!("export CARGO_HTTP_CAINFO={bundle}")),
        ("git", format!("git config --global http.sslCAInfo {bundle}")),
        (
            "Java",
            format!(
                "keytool -importcert -noprompt -cacerts -storepass changeit -alias larder -file {anchor}"
            ),
        ),
        ("Firefox", format!("Settings, Certificates, Authorities, Import: {anchor}")),
        ("Chromium", format!("certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n larder -i {anchor}")),
    ]
}
