# SPDX-License-Identifier: Apache-2.0
"""A real MariaDB on a port of this machine, over TLS, as a cloud's shared server would be."""

import subprocess

from lib.certificate import Certificate
from lib.local_driver import free_port
from lib.wait import until

ADMIN, PASSWORD = "admin", "Admin-password-0123456789"


class MariaDb:
    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.certificate = Certificate(folder, "DNS:localhost")
        self.socket, self.host = str(folder / "s"), "localhost:%d" % self.port
        data = folder / "data"
        subprocess.run(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=socket", "--auth-root-socket-user=root", "--skip-test-db",
                        "--datadir=%s" % data, "--user=root"], check=True, capture_output=True, timeout=300)
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            ["/usr/sbin/mariadbd", "--no-defaults", "--user=root", "--datadir=%s" % data, "--socket=" + self.socket, "--pid-file=%s" % (folder / "pid"),
             "--bind-address=127.0.0.1", "--port=%d" % self.port, "--ssl-cert=" + self.certificate.cert, "--ssl-key=" + self.certificate.key,
             "--innodb-buffer-pool-size=32M", "--skip-log-bin", "--skip-name-resolve", "--performance-schema=OFF"],
            stdout=self.log, stderr=self.log)
        until(lambda: self.ask("SELECT 1", check=False) == "1", "the database server answers", 300, 0.2)
        self.ask("CREATE USER %s@'%%' IDENTIFIED BY '%s' REQUIRE SSL; GRANT ALL ON *.* TO %s@'%%' WITH GRANT OPTION" % (ADMIN, PASSWORD, ADMIN))

    def ask(self, sql, check=True):
        """As the machine's root: what it answers, a line for each row."""
        got = subprocess.run(["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--socket=" + self.socket, "-e", sql], capture_output=True,
                             text=True, check=False, timeout=120)
        assert not check or got.returncode == 0, got.stderr
        return got.stdout.strip()

    def ask_as(self, user, password, sql, ssl=True):
        """By the network: exit status and what was answered."""
        got = subprocess.run(["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--protocol=tcp", "--host=localhost", "--port=%d" % self.port,
                              *(["--ssl", "--ssl-ca=" + self.certificate.cert] if ssl else ["--skip-ssl"]), "--user=" + user, "-e", sql],
                             env={"MYSQL_PWD": password, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False, timeout=120)
        return got.returncode, got.stdout.strip() or got.stderr.strip()

    def names(self):
        """Databases and users of tenants."""
        return sorted(self.ask("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'tenant%' UNION "
                               "SELECT User FROM mysql.user WHERE User LIKE 'tenant%'").split())

    def clear(self):
        for name in self.names():
            self.ask("DROP DATABASE IF EXISTS `%s`; DROP USER IF EXISTS `%s`@'%%'" % (name, name))

    def close(self):
        self.process.terminate()
        self.process.wait(120)
        self.log.close()
