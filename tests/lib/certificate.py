# SPDX-License-Identifier: Apache-2.0
"""A certificate for 127.0.0.1 that signs itself."""

import ssl
import subprocess


class Certificate:
    def __init__(self, folder, host="IP:127.0.0.1"):
        self.cert, self.key = str(folder / "cert.pem"), str(folder / "key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=" + host,
             "-keyout", self.key, "-out", self.cert],
            check=True, capture_output=True, timeout=60,
        )

    def context(self):
        """For a server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context
