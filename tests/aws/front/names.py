# SPDX-License-Identifier: Apache-2.0
"""The organisation that a fresh front has."""

REGION = "us-east-1"
ORG, ROOT, SANDBOX_OU = "o-front0front", "r-frnt", "ou-frnt-sandbox0"
OUS = {name: "ou-frnt-" + id for name, id in (
    ("Available", "avail000"), ("Active", "active00"), ("Frozen", "frozen00"), ("CleanUp", "cleanup0"),
    ("Quarantine", "quarant0"), ("Entry", "entry000"), ("Exit", "exit0000"))}
MANAGEMENT, HUB, IDC = "100000000001", "100000000002", "100000000003"

# The chain of roles. The task's own credentials are such as a container hands out: with a session token.
TASK_ROLE = "arn:aws:iam::%s:role/isb-billing-sep-task" % HUB
INTERMEDIATE_ROLE = "arn:aws:iam::%s:role/isb-billing-sep-intermediate" % HUB
ORG_ROLE = "arn:aws:iam::%s:role/isb-billing-sep-org" % MANAGEMENT
IDC_ROLE = "arn:aws:iam::%s:role/isb-billing-sep-idc" % IDC
SANDBOX_ROLE = "InnovationSandbox-front-Cleaner"
TASK_KEY, TASK_SECRET, TASK_TOKEN = "ASIAFRONTTASK0000001", "front-task-secret-0123456789abcdef", "front-task-token-0123456789abcdef"
# A person with long-lived keys and all rights in the management account, for other people's clients.
USER_KEY, USER_SECRET = "AKIAFRONTUSER0000001", "front-user-secret-0123456789abcdef"

INSTANCE_ARN, STORE_ID = "arn:aws:sso:::instance/ssoins-0123456789abcdef", "d-0123456789"
NAMESPACE = "front"
KEY = "arn:aws:kms:%s:%s:key/01234567-89ab-cdef-0123-456789abcdef" % (REGION, HUB)
GROUPS = ("front_IsbAdmins", "front_IsbManagers", "front_IsbUsers")
PERMISSION_SETS = tuple(group + "PS" for group in GROUPS)


def role_name(arn):
    return arn.rsplit("/", 1)[1]

# What the tenants of an instance driver share.
ENV = "test"
CLUSTER, FILE_SYSTEM, VPC = "tenants", "fs-0123456789abcdef0", "vpc-0123456789abcdef0"
SUBNETS, SECURITY_GROUPS = ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1"), ("sg-0123456789abcdef0",)
LOAD_BALANCER = "arn:aws:elasticloadbalancing:%s:%s:loadbalancer/app/tenants/0123456789abcdef" % (REGION, HUB)
LISTENER = "arn:aws:elasticloadbalancing:%s:%s:listener/app/tenants/0123456789abcdef/0123456789abcdef" % (REGION, HUB)
EXECUTION_ROLE, SITE_ROLE = "arn:aws:iam::%s:role/tenants-execution" % HUB, "arn:aws:iam::%s:role/tenants-site" % HUB
ARCHIVE_BUCKET, SITE_DOMAIN, IMAGE = "tenants-archive", "sites.example.com", "%s.dkr.ecr.%s.amazonaws.com/wordpress:{version}" % (HUB, REGION)
DB_ADMIN_SECRET = "bbws/test/db-admin"
