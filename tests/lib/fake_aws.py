# SPDX-License-Identifier: Apache-2.0
"""A small AWS on a loopback port: as much as aws-nuke needs to empty accounts of queues, and switches to make it misbehave.

    STS   AssumeRole (checked: signature, the trust of the role, the session's length), GetCallerIdentity
    IAM   ListAccountAliases
    SQS   ListQueues, DeleteQueue

Who calls is told by the access key: AssumeRole hands out keys that name their account. Switches are plain attributes:

    queues          names by account id; a name that begins with "keep" cannot be deleted, one with "hang" waits for `gate`
    no_role         accounts whose role may not be assumed
    no_list         accounts whose queues may not be listed
"""

import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from lib.fake_csp import QuietServer

OWN_KEY, OWN_SECRET = "AKIAOPERATOR00000000", "operator-secret-0123456789"
OWN_ACCOUNT = "999999999999"
SESSION_MAX = 3600  # of a role that is assumed by a role


class FakeAws:
    def __init__(self):
        self.lock = threading.Lock()
        self.queues = {}
        self.gate = threading.Event()
        self.no_role, self.no_list = set(), set()
        self.log = []  # (account, action)
        self.sessions = []  # role ARN of every session that was handed out
        self.secrets = {OWN_KEY: OWN_SECRET}
        handler = type("Handler", (Handler,), {"aws": self})
        self.server = QuietServer(("127.0.0.1", 0), handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def fill(self, account, *names):
        with self.lock:
            self.queues.setdefault(account, []).extend(names)

    def left(self, account):
        with self.lock:
            return list(self.queues.get(account, []))

    def sessions_of(self, account):
        with self.lock:
            return sum(role.split(":")[4] == account for role in self.sessions)

    def env(self):
        return {"AWS_ACCESS_KEY_ID": OWN_KEY, "AWS_SECRET_ACCESS_KEY": OWN_SECRET}

    def count(self, account, action):
        with self.lock:
            return self.log.count((account, action))

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


def wrap(action, inside):
    return "<%sResponse><%sResult>%s</%sResult></%sResponse>" % (action, action, inside, action, action)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    aws = None

    def log_message(self, *args):
        pass

    def do_POST(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.form = {k: v[0] for k, v in parse_qs(self.body.decode()).items()}
        scope = self.headers["Authorization"].split("Credential=")[1].split(",")[0].split("/")
        self.key, self.region, self.service = scope[0], scope[2], scope[3]
        self.account = OWN_ACCOUNT if self.key == OWN_KEY else self.key[4:16]
        action = self.form.get("Action", "")
        with self.aws.lock:
            self.aws.log.append((self.account, action))
        if not self.is_signed():
            return self.fail(403, "SignatureDoesNotMatch", "the signature is not that of the request")
        return getattr(self, "do_" + action, self.do_unknown)()

    def is_signed(self):
        secret = self.aws.secrets.get(self.key)
        if secret is None:
            return False
        authorization = self.headers["Authorization"]
        names = authorization.split("SignedHeaders=")[1].split(",")[0].split(";")
        request = AWSRequest("POST", self.aws.url + self.path, headers={n: self.headers[n] for n in names}, data=self.body)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        auth = SigV4Auth(Credentials(self.key, secret), self.service, self.region)
        to_sign = auth.string_to_sign(request, auth.canonical_request(request))
        return authorization.endswith("Signature=" + auth.signature(to_sign, request))

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, code, message):
        self.answer(status, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error>"
                            "<RequestId>r-1</RequestId></ErrorResponse>" % (code, message))

    def do_unknown(self):
        self.fail(400, "InvalidAction", "not here")

    def do_AssumeRole(self):
        seconds = int(self.form.get("DurationSeconds", 3600))
        if self.form["RoleArn"].split(":")[4] in self.aws.no_role or self.key != OWN_KEY:
            return self.fail(403, "AccessDenied", "not authorized to perform: sts:AssumeRole")
        if not 900 <= seconds <= SESSION_MAX:
            return self.fail(400, "ValidationError", "DurationSeconds exceeds the 1 hour session limit")
        role = self.form["RoleArn"]
        account = role.split(":")[4]
        with self.aws.lock:
            self.aws.sessions.append(role)
            key = "ASIA%s%04d" % (account, len(self.aws.sessions))
            self.aws.secrets[key] = secret = "session-secret-%d" % len(self.aws.sessions)
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        return self.answer(200, wrap("AssumeRole",
            "<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>token-of-%s"
            "</SessionToken><Expiration>%s</Expiration></Credentials>" % (key, secret, account, expires)))

    def do_GetCallerIdentity(self):
        self.answer(200, wrap("GetCallerIdentity", "<Arn>arn:aws:sts::%s:assumed-role/x/y</Arn><UserId>u</UserId>"
                                                   "<Account>%s</Account>" % (self.account, self.account)))

    def do_ListAccountAliases(self):
        self.answer(200, wrap("ListAccountAliases", "<IsTruncated>false</IsTruncated><AccountAliases><member>sandbox-%s"
                                                    "</member></AccountAliases>" % self.account))

    def do_ListQueues(self):
        if self.account in self.aws.no_list:
            return self.fail(403, "AccessDenied", "not authorized to perform: sqs:ListQueues")
        return self.answer(200, wrap("ListQueues", "".join("<QueueUrl>%s/%s/%s</QueueUrl>" % (self.aws.url, self.account, name)
                                                    for name in self.aws.left(self.account))))

    def do_DeleteQueue(self):
        name = self.form["QueueUrl"].rsplit("/", 1)[1]
        if name.startswith("keep"):
            return self.fail(403, "AccessDenied", "explicit deny in a service control policy")
        if name.startswith("hang"):
            self.aws.gate.wait()
        with self.aws.lock:
            if name in self.aws.queues.get(self.account, []):
                self.aws.queues[self.account].remove(name)
        return self.answer(200, "<DeleteQueueResponse/>")
