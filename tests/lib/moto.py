# SPDX-License-Identifier: Apache-2.0
"""The emulator moto as a process, where the first python3 on PATH has it: accounts with queues, as in fake_aws.py."""

import shutil
import subprocess
import tempfile
import urllib.request

from lib.wait import until

PROGRAM = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def python():
    return shutil.which("python3")


def version():
    """None: it is not there."""
    got = subprocess.run([python(), "-c", "import moto; print(moto.__version__)"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, check=False)
    return got.stdout.strip() if got.returncode == 0 else None


class Moto:
    def __init__(self):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([python(), "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        self.url = "http://127.0.0.1:%d" % int(self.process.stdout.readline())
        until(self.answers, "moto answers", 30)

    def answers(self):
        try:
            return urllib.request.urlopen(self.url + "/moto-api/", timeout=5).status == 200
        except OSError:
            return False

    def env(self):
        return {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}

    def client(self, service, account=None):
        """As a role of the account, which moto makes by asking for it."""
        import botocore.session

        keys = {"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key": "secret"}
        if account:
            got = self.client("sts").assume_role(RoleArn="arn:aws:iam::%s:role/Filler" % account, RoleSessionName="test")
            keys = {"aws_access_key_id": got["Credentials"]["AccessKeyId"],
                    "aws_secret_access_key": got["Credentials"]["SecretAccessKey"],
                    "aws_session_token": got["Credentials"]["SessionToken"]}
        return botocore.session.Session().create_client(service, region_name="us-east-1", endpoint_url=self.url, **keys)

    def fill(self, account, *names):
        self.client("iam", account).create_account_alias(AccountAlias="sandbox-" + account)
        queues = self.client("sqs", account)
        for name in names:
            queues.create_queue(QueueName=name)

    def left(self, account):
        return [url.rsplit("/", 1)[1] for url in self.client("sqs", account).list_queues().get("QueueUrls", [])]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        self.errors.close()
