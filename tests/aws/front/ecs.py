# SPDX-License-Identifier: Apache-2.0
"""ECS on Fargate: task definitions by revision, services whose deployments get stable, fail or never end, and tasks of their own that do what the test says.

Time is that of the front's clock or the number of looks (Wait). What tasks need must be there: the access point, the secrets, the log group. What changes
is told to a queue as EventBridge would, if the test wants that (ctl_events)."""

import datetime
import fnmatch
import json
import re

from aws.front.machine import Machine
from aws.front.names import CLUSTER, EXECUTION_ROLE, HUB, REGION, SECURITY_GROUPS, SITE_ROLE, SUBNETS

ARN = "arn:aws:ecs:%s:%s:" % (REGION, HUB)
FARGATE = {"256": (512, 2048), "512": (1024, 4096), "1024": (2048, 8192), "2048": (4096, 16384), "4096": (8192, 30720)}


class Ecs(Machine):
    bad_token = "InvalidParameterException"

    def reset(self):
        self.clusters, self.definitions, self.services, self.tasks, self.tokens, self.count = {CLUSTER}, {}, {}, {}, {}, 0
        self.pace, self.outcome, self.exits, self.failures, self.queue, self.task_pace = (1, 30.0), "stable", [], [], None, (1, 30.0)

    def show(self):
        return {"definitions": [{k: v for k, v in d.items() if k != "wait"} for d in self.definitions.values()],
                "services": [{k: v for k, v in s.items() if k != "wait"} for s in self.services.values()],
                "tasks": [{k: v for k, v in t.items() if k != "wait"} for t in self.tasks.values()]}

    # For the tests.

    def ctl_pace(self, looks=1, seconds=30.0, outcome="stable"):
        """Of services. outcome: stable; failed, by the circuit breaker; never."""
        self.pace, self.outcome = (looks, seconds), outcome

    def ctl_task_pace(self, looks=1, seconds=30.0):
        self.task_pace = (looks, seconds)

    def ctl_exit(self, family="*", code=1, reason="Essential container in task exited", command="*", times=-1):
        """How tasks of their own end whose family and command match; code None: the container never started. The newest rule counts."""
        self.exits.insert(0, {"family": family, "code": code, "reason": reason, "command": command, "times": times})

    def ctl_failures(self, reasons):
        """What the next calls of RunTask answer in failures[], one call each."""
        self.failures = list(reasons)

    def ctl_events(self, queue):
        self.queue = queue

    def ctl_add_cluster(self, name):
        self.clusters.add(name)

    def ctl_remove_cluster(self, name=CLUSTER):
        self.clusters.discard(name)

    def ctl_kill(self, service, count=1):
        """Tasks of a service die; the service starts others at the next look."""
        for task in [t for t in self.tasks.values() if t["service"] == service and t["status"] == "RUNNING"][:count]:
            self.end(task, 137, "Task failed container health checks", "EssentialContainerExited")

    def ctl_add_service(self, name, tags=None):
        """By somebody else, with tags."""
        self.count += 1
        self.services[name] = self.new_service(name, {"taskDefinition": "foreign:1", "desiredCount": 0}, tags or {})

    # Names.

    def cluster(self, params):
        name = params.get("cluster", "default").rsplit("/", 1)[-1]
        if name not in self.clusters:
            self.fail("ClusterNotFoundException", "Cluster not found.")
        return ARN + "cluster/" + name

    @staticmethod
    def service_arn(name):
        return ARN + "service/%s/%s" % (CLUSTER, name)

    @staticmethod
    def task_arn(id):
        return ARN + "task/%s/%s" % (CLUSTER, id)

    def find_definition(self, name, active=False):
        name = name.rsplit("/", 1)[-1]
        if ":" not in name:
            revisions = [d["revision"] for d in self.definitions.values() if d["family"] == name and d["status"] == "ACTIVE"]
            name = "%s:%d" % (name, max(revisions, default=0))
        if name not in self.definitions:
            self.fail("ClientException", "Unable to describe task definition.")
        if active and self.definitions[name]["status"] != "ACTIVE":
            self.fail("ClientException", "TaskDefinition is inactive")
        return self.definitions[name]

    def find_service(self, name):
        name = name.rsplit("/", 1)[-1]
        if name not in self.services:
            self.fail("ServiceNotFoundException", "Service not found.")
        return self.services[name]

    def find_task(self, name):
        return self.tasks.get(name.rsplit("/", 1)[-1])

    def all_tags(self):
        for d in self.definitions.values():
            if d["status"] == "ACTIVE":
                yield self.definition_arn(d), d["tags"]
        for s in self.services.values():
            if s["status"] != "INACTIVE":
                yield self.service_arn(s["name"]), s["tags"]
        for t in self.tasks.values():
            if t["status"] != "STOPPED":
                yield self.task_arn(t["id"]), t["tags"]

    # Task definitions.

    @staticmethod
    def definition_arn(d):
        return ARN + "task-definition/%s:%d" % (d["family"], d["revision"])

    def told_definition(self, d):
        kept = {k: v for k, v in d["asked"].items() if k != "tags"}
        return {"taskDefinitionArn": self.definition_arn(d), "revision": d["revision"], "status": d["status"], **kept,
                "compatibilities": ["EC2", "FARGATE"], "registeredAt": self.time(d["made"])}

    def check_definition(self, params):
        if "FARGATE" not in params.get("requiresCompatibilities", []):
            return
        memory = FARGATE.get(params.get("cpu"))
        if params.get("networkMode") != "awsvpc" or memory is None or not memory[0] <= int(params.get("memory", "0")) <= memory[1]:
            self.fail("ClientException", "No Fargate configuration exists for given values.")
        for role in ("executionRoleArn", "taskRoleArn"):
            if params.get(role) not in (None, EXECUTION_ROLE, SITE_ROLE):
                self.fail("ClientException", "Role is not valid: %s" % params[role])
        volumes = {v["name"] for v in params.get("volumes", [])}
        for c in params["containerDefinitions"]:
            if ("logConfiguration" in c or "secrets" in c) and "executionRoleArn" not in params:
                self.fail("ClientException", "Fargate requires task definition to have execution role ARN to support log driver awslogs and secrets.")
            if {m["sourceVolume"] for m in c.get("mountPoints", [])} - volumes:
                self.fail("ClientException", "Invalid 'mountPoints' of container %s: unknown volume" % c["name"])
            if any(v.get("name", "") == "" for v in c.get("environment", [])):
                self.fail("ClientException", "environment variables have names")
        for v in params.get("volumes", []):
            efs = v.get("efsVolumeConfiguration", {})
            if "authorizationConfig" in efs and efs.get("transitEncryption") != "ENABLED":
                self.fail("ClientException", "TransitEncryption must be enabled when accessPointId or IAM is used")

    def RegisterTaskDefinition(self, params, _request):
        self.check_definition(params)
        family = params["family"]
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", family):
            self.fail("ClientException", "Family contains invalid characters.")
        revision = 1 + max((d["revision"] for d in self.definitions.values() if d["family"] == family), default=0)
        made = {"family": family, "revision": revision, "status": "ACTIVE", "asked": params, "tags": self.tags(params, "tags", "key", "value"),
                "made": self.now(), "wait": None}
        self.definitions["%s:%d" % (family, revision)] = made
        return {"taskDefinition": self.told_definition(made), "tags": self.tag_list(made["tags"], "key", "value")}

    def DescribeTaskDefinition(self, params, _request):
        d = self.find_definition(params["taskDefinition"])
        return {"taskDefinition": self.told_definition(d),
                **({"tags": self.tag_list(d["tags"], "key", "value")} if "TAGS" in params.get("include", []) else {})}

    def ListTaskDefinitions(self, params, _request):
        self.settle_definitions()
        found = [d for d in self.definitions.values() if d["status"] == params.get("status", "ACTIVE")
                 and d["family"] == params.get("familyPrefix", d["family"])]  # the whole family, whatever the name says
        found.sort(key=lambda d: (d["family"], d["revision"]), reverse=params.get("sort") == "DESC")
        return self.page([self.definition_arn(d) for d in found], params, 100, "maxResults", "nextToken", "taskDefinitionArns")

    def ListTaskDefinitionFamilies(self, params, _request):
        wanted = params.get("status", "ACTIVE")
        found = sorted({d["family"] for d in self.definitions.values() if wanted in ("ALL", d["status"])
                        and d["family"].startswith(params.get("familyPrefix", ""))})
        return self.page(found, params, 100, "maxResults", "nextToken", "families")

    def DeregisterTaskDefinition(self, params, _request):
        if ":" not in params["taskDefinition"].rsplit("/", 1)[-1]:
            self.fail("ClientException", "Revision is missing.")
        d = self.find_definition(params["taskDefinition"])
        if d["status"] != "ACTIVE":
            self.fail("ClientException", "The specified task definition does not exist or is inactive.")
        d["status"] = "INACTIVE"
        return {"taskDefinition": self.told_definition(d)}

    def settle_definitions(self):
        for key, d in list(self.definitions.items()):
            if d["status"] == "DELETE_IN_PROGRESS" and d["wait"].is_over():
                del self.definitions[key]

    def DeleteTaskDefinitions(self, params, _request):
        gone, failures = [], []
        if len(params["taskDefinitions"]) > 10:
            self.fail("InvalidParameterException", "at most 10 task definitions")
        for name in params["taskDefinitions"]:
            d = self.definitions.get(name.rsplit("/", 1)[-1])
            if d is None:
                failures.append({"arn": name, "reason": "MISSING"})
            elif d["status"] == "ACTIVE":
                failures.append({"arn": self.definition_arn(d), "reason": "The specified task definition is still in ACTIVE status. Please deregister the "
                                 "target and try again."})
            else:
                d.update(status="DELETE_IN_PROGRESS", wait=self.wait(1, 3600))
                gone.append(self.told_definition(d))
        return {"taskDefinitions": gone, "failures": failures}

    # Services.

    def new_service(self, name, asked, tags):
        return {"name": name, "status": "ACTIVE", "asked": asked, "desired": asked.get("desiredCount", 1), "tags": tags, "deployments": [], "wait": None,
                "outcome": "stable", "made": self.now(), "number": self.count, "reason": None}

    def deploy(self, service, definition, outcome=None):
        """A new deployment; the one before it serves until this one has come up."""
        for d in service["deployments"]:
            d["status"] = "ACTIVE"
        self.count += 1
        service["deployments"].insert(0, {"id": "ecs-svc/%019d" % self.count, "status": "PRIMARY", "definition": definition, "rollout": "IN_PROGRESS",
                                          "failed": 0, "made": self.now(), "reason": "ECS deployment in progress."})
        service.update(wait=self.wait(*self.pace), outcome=outcome or self.outcome)
        self.tell_deployment(service, "SERVICE_DEPLOYMENT_IN_PROGRESS", service["deployments"][0])

    def running(self, service, deployment=None):
        return [t for t in self.tasks.values() if t["service"] == service["name"] and t["status"] == "RUNNING"
                and (deployment is None or t["deployment"] == deployment["id"])]

    def settle(self, service, looked=True):
        """One step of a service towards what it shall be."""
        if service["status"] == "DRAINING":
            self.trim(service, 0)
            if service["wait"].is_over(looked):
                service["status"] = "INACTIVE"
            return
        if service["status"] != "ACTIVE" or not service["deployments"]:
            return
        primary = service["deployments"][0]
        missing = self.missing(self.find_definition(primary["definition"]))
        if missing or service["outcome"] != "stable":
            return self.settle_badly(service, primary, missing, looked)
        if not service["wait"].is_over(looked):
            return
        was_steady = len(service["deployments"]) == 1 and len(self.running(service)) == service["desired"] and primary["rollout"] == "COMPLETED"
        for old in service["deployments"][1:]:
            for task in self.running(service, old):
                self.end(task, 0, "Scaling activity initiated by (deployment %s)" % primary["id"], "ServiceSchedulerInitiated")
        service["deployments"] = [primary]
        self.trim(service, service["desired"])
        while len(self.running(service)) < service["desired"]:
            self.start(self.find_definition(primary["definition"]), service, primary)
        if not was_steady and self.are_healthy(service):
            if primary["rollout"] != "COMPLETED":
                primary.update(rollout="COMPLETED", reason="ECS deployment %s completed." % primary["id"])
                self.tell_deployment(service, "SERVICE_DEPLOYMENT_COMPLETED", primary)
            self.tell_service(service, "SERVICE_STEADY_STATE", "INFO")

    def settle_badly(self, service, primary, missing, looked):
        if not service["wait"].is_over(looked) or service["outcome"] == "never" and not missing:
            return
        primary["failed"] += 1
        service["reason"] = missing or "tasks failed to start"
        breaker = service["asked"].get("deploymentConfiguration", {}).get("deploymentCircuitBreaker", {})
        if primary["rollout"] != "IN_PROGRESS" or service["outcome"] == "stable" and primary["failed"] < 3 or not breaker.get("enable"):
            if primary["failed"] == 1:
                self.tell_service(service, "SERVICE_TASK_START_IMPAIRED", "WARN")
            return
        primary.update(rollout="FAILED", reason="ECS deployment circuit breaker: tasks failed to start.")
        self.tell_deployment(service, "SERVICE_DEPLOYMENT_FAILED", primary)
        before = next((d for d in service["deployments"][1:] if d["rollout"] == "COMPLETED"), None)
        if breaker.get("rollback") and before:
            service["deployments"] = [before]
            before["status"] = "PRIMARY"
            service.update(outcome="stable", wait=self.wait(0, 0))

    def are_healthy(self, service):
        lb = self.world.machines["elbv2"]
        return all([lb.is_healthy(b["targetGroupArn"], t["ip"], b["containerPort"]) for t in self.running(service)
                    for b in service["asked"].get("loadBalancers", [])])

    def trim(self, service, count):
        for task in self.running(service)[count:]:
            self.end(task, 0, "Scaling activity initiated", "ServiceSchedulerInitiated")

    def told_service(self, s, with_tags=False):
        running = len(self.running(s))
        pending = max(0, s["desired"] - running) if s["status"] == "ACTIVE" and s["outcome"] != "failed" else 0
        deployments = []
        for d in s["deployments"]:
            have = len(self.running(s, d))
            deployments.append({"id": d["id"], "status": d["status"], "taskDefinition": ARN + "task-definition/" + d["definition"],
                                "desiredCount": s["desired"] if d["status"] == "PRIMARY" else have, "runningCount": have,
                                "pendingCount": pending if d["status"] == "PRIMARY" else 0, "failedTasks": d["failed"], "createdAt": self.time(d["made"]),
                                "updatedAt": self.time(), "launchType": "FARGATE", "rolloutState": d["rollout"], "rolloutStateReason": d["reason"]})
        kept = {k: v for k, v in s["asked"].items() if k in (
            "loadBalancers", "launchType", "platformVersion", "deploymentConfiguration", "networkConfiguration", "healthCheckGracePeriodSeconds",
            "enableECSManagedTags", "propagateTags", "enableExecuteCommand")}
        primary = s["deployments"][0]["definition"] if s["deployments"] else s["asked"]["taskDefinition"].rsplit("/", 1)[-1]
        events = [{"id": self.world.uuid(), "createdAt": self.time(), "message": "(service %s) %s" % (s["name"], s["reason"])}] if s["reason"] else []
        return {"serviceArn": self.service_arn(s["name"]), "serviceName": s["name"], "clusterArn": ARN + "cluster/" + CLUSTER, "status": s["status"],
                "desiredCount": s["desired"], "runningCount": running, "pendingCount": pending, "taskDefinition": ARN + "task-definition/" + primary,
                "deployments": deployments, "createdAt": self.time(s["made"]), "schedulingStrategy": "REPLICA", "events": events, **kept,
                **({"tags": self.tag_list(s["tags"], "key", "value")} if with_tags else {})}

    def check_service(self, params):
        network = params.get("networkConfiguration", {}).get("awsvpcConfiguration", {})
        if not set(network.get("subnets", [])) <= set(SUBNETS) or not set(network.get("securityGroups", [])) <= set(SECURITY_GROUPS):
            self.fail("InvalidParameterException", "Error retrieving subnet or security group information")
        if not network.get("subnets"):
            self.fail("InvalidParameterException", "Network Configuration must be provided when networkMode 'awsvpc' is specified.")
        lb = self.world.machines["elbv2"]
        for balancer in params.get("loadBalancers", []):
            group = balancer["targetGroupArn"]
            if group not in lb.groups:
                self.fail("InvalidParameterException", "Unable to assume role and validate the specified targetGroupArn.")
            if not lb.is_used(group):
                self.fail("InvalidParameterException", "The target group with targetGroupArn %s does not have an associated load balancer." % group)
            if lb.groups[group]["asked"].get("TargetType") != "ip":
                self.fail("InvalidParameterException", "The provided target group %s has target type instance, which is incompatible with awsvpc." % group)

    def CreateService(self, params, _request):
        self.cluster(params)
        name, tags = params["serviceName"], self.tags(params, "tags", "key", "value")
        token = ("service", params.get("clientToken"))
        old = self.services.get(name)
        if old:
            self.settle(old, False)
        if old and old["status"] == "ACTIVE":
            if not params.get("clientToken") or self.tokens.get(token) != params:
                self.fail("InvalidParameterException", "Creation of service was not idempotent.")
            return {"service": self.told_service(old)}
        if old and old["status"] == "DRAINING":
            self.fail("InvalidParameterException", "Unable to Start a service that is still Draining.")
        definition = self.find_definition(params["taskDefinition"], True)
        self.check_service(params)
        self.count += 1
        self.services[name] = self.new_service(name, params, tags)
        self.tokens[token] = params
        self.deploy(self.services[name], "%s:%d" % (definition["family"], definition["revision"]))
        return {"service": self.told_service(self.services[name], True)}

    def UpdateService(self, params, _request):
        self.cluster(params)
        service = self.find_service(params["service"])
        if service["status"] != "ACTIVE":
            self.fail("ServiceNotActiveException", "Service was not ACTIVE.")
        if "desiredCount" in params and params["desiredCount"] != service["desired"]:
            service.update(desired=params["desiredCount"], wait=self.wait(*self.pace))
            if service["deployments"][0]["rollout"] == "COMPLETED":
                service["outcome"] = self.outcome if params["desiredCount"] else "stable"
        if "taskDefinition" in params or params.get("forceNewDeployment"):
            d = self.find_definition(params.get("taskDefinition", service["deployments"][0]["definition"]), True)
            self.deploy(service, "%s:%d" % (d["family"], d["revision"]))
        service["asked"] = {**service["asked"], **{k: v for k, v in params.items() if k in ("loadBalancers", "networkConfiguration", "platformVersion")}}
        return {"service": self.told_service(service)}

    def DeleteService(self, params, _request):
        self.cluster(params)
        service = self.find_service(params["service"])
        if service["status"] == "INACTIVE":
            self.fail("ServiceNotFoundException", "Service not found.")
        if service["desired"] and not params.get("force"):
            self.fail("InvalidParameterException", "The service cannot be stopped while it is scaled above 0.")
        if service["status"] == "ACTIVE":
            service.update(status="DRAINING", desired=0, wait=self.wait(*self.pace))
        return {"service": self.told_service(service)}

    def DescribeServices(self, params, _request):
        self.cluster(params)
        found, failures = [], []
        if len(params["services"]) > 10:
            self.fail("InvalidParameterException", "at most 10 services")
        for name in params["services"]:
            service = self.services.get(name.rsplit("/", 1)[-1])
            if service is None:
                failures.append({"arn": self.service_arn(name.rsplit("/", 1)[-1]), "reason": "MISSING"})
                continue
            self.settle(service)
            found.append(self.told_service(service, "TAGS" in params.get("include", [])))
        return {"services": found, "failures": failures}

    def ListServices(self, params, _request):
        self.cluster(params)
        found = [self.service_arn(s["name"]) for s in self.services.values() if s["status"] != "INACTIVE"]
        return self.page(found, params, 100, "maxResults", "nextToken", "serviceArns")

    def TagResource(self, params, _request):
        name = params["resourceArn"].rsplit("/", 1)[-1]
        one = self.services.get(name) or self.definitions.get(name) or self.tasks.get(name)
        if not one:
            self.fail("ResourceNotFoundException", "The specified resource wasn't found.")
        one["tags"].update(self.tags(params, "tags", "key", "value"))
        return {}

    # Tasks.

    def missing(self, definition):
        """Why a task of it cannot start, or None."""
        asked, machines = definition["asked"], self.world.machines
        for volume in asked.get("volumes", []):
            efs = volume.get("efsVolumeConfiguration", {})
            point = machines["efs"].points.get(efs.get("authorizationConfig", {}).get("accessPointId"))
            if efs and (point is None or point["state"] != "available"):
                return "ResourceInitializationError: failed to invoke EFS utils commands to set up EFS volumes: access point"
        for container in asked["containerDefinitions"]:
            for secret in container.get("secrets", []):
                name = re.sub(r"-AbCdEf$", "", secret["valueFrom"].split(":secret:")[-1].split(":")[0])
                kept = machines["secretsmanager"].secrets.get(name)
                key = (secret["valueFrom"].split(":secret:")[-1].split(":") + ["", ""])[1]
                if kept is None or kept["deleted"] is not None or key and key not in json.loads(kept["value"]):
                    return "ResourceInitializationError: unable to pull secrets or registry auth: " + name
            group = container.get("logConfiguration", {}).get("options", {}).get("awslogs-group")
            if group and group not in machines["logs"].groups:
                return "ResourceInitializationError: failed to validate logger args: The specified log group does not exist: " + group
        return None

    def start(self, definition, service=None, deployment=None, **facts):
        self.count += 1
        id = "%032x" % self.count
        self.tasks[id] = {"id": id, "family": definition["family"], "definition": "%s:%d" % (definition["family"], definition["revision"]),
                          "service": service["name"] if service else None, "deployment": deployment["id"] if deployment else None, "status": "RUNNING",
                          "ip": "10.0.%d.%d" % (self.count >> 8 & 255, self.count & 255), "started": self.now(), "made": self.now(), "exit": None,
                          "reason": None, "stop_code": None, "stopped": None, "tags": dict(service["tags"]) if service else {}, "overrides": {},
                          "started_by": deployment["id"] if deployment else None, "environment": {}, "command": [], "wait": None, **facts}
        task = self.tasks[id]
        if service:
            for balancer in service["asked"].get("loadBalancers", []):
                self.world.machines["elbv2"].register(balancer["targetGroupArn"], task["ip"], balancer["containerPort"])
        self.tell_task(task)
        self.log(task, "started")
        return task

    def log(self, task, text):
        for container in self.definitions.get(task["definition"], {"asked": {"containerDefinitions": []}})["asked"]["containerDefinitions"]:
            options = container.get("logConfiguration", {}).get("options", {})
            if "awslogs-group" in options:
                self.world.machines["logs"].write(options["awslogs-group"], "%s/%s/%s" % (
                    options.get("awslogs-stream-prefix", ""), container["name"], task["id"]), text)

    def end(self, task, code, reason, stop_code):
        task.update(status="STOPPED", exit=code, reason=reason, stop_code=stop_code, stopped=self.now())
        for balancer in self.services[task["service"]]["asked"].get("loadBalancers", []) if task["service"] else []:
            self.world.machines["elbv2"].deregister(balancer["targetGroupArn"], task["ip"], balancer["containerPort"])
        self.tell_task(task)

    def settle_task(self, task, looked=True):
        if task["service"]:
            return self.settle(self.services[task["service"]], False)
        if task["status"] == "STOPPED":
            return None
        missing = self.missing(self.definitions[task["definition"]])
        if missing:
            return self.end(task, None, missing, "TaskFailedToStart")
        if task["status"] == "PROVISIONING":
            task.update(status="RUNNING", started=self.now())
            return self.tell_task(task)
        if not task["wait"].is_over(looked):
            return None
        rule = next((r for r in self.exits if r["times"] and fnmatch.fnmatchcase(task["family"], r["family"]) and
                     fnmatch.fnmatchcase(" ".join(task["command"]), r["command"])), None)
        if rule:
            rule["times"] -= rule["times"] > 0
        code = rule["code"] if rule else 0
        if code == 0:
            self.do_task(task)
        return self.end(task, code, rule["reason"] if rule and code != 0 else "Essential container in task exited",
                        "TaskFailedToStart" if code is None else "EssentialContainerExited")

    def do_task(self, task):
        """What it would have done. Nothing here but a line; see the tests' own worlds."""
        if task["command"][1:] == ["archive"]:
            self.log(task, json.dumps({"archive": task["environment"]["LEASEHOLD_ARCHIVE_NAME"], "bytes": 2200000}))
        self.log(task, "done: " + " ".join(task["command"]))

    def told_task(self, t, with_tags=False):
        definition = self.definitions.get(t["definition"])
        containers = definition["asked"]["containerDefinitions"] if definition else []
        is_over = t["status"] == "STOPPED"
        got = {"taskArn": self.task_arn(t["id"]), "clusterArn": ARN + "cluster/" + CLUSTER, "taskDefinitionArn": ARN + "task-definition/" + t["definition"],
               "lastStatus": t["status"], "desiredStatus": "STOPPED" if is_over else "RUNNING", "launchType": "FARGATE", "createdAt": self.time(t["made"]),
               "group": "service:" + t["service"] if t["service"] else "family:" + t["family"], "version": 1,
               "cpu": definition["asked"].get("cpu", "256") if definition else "256", "memory": definition["asked"].get("memory", "512") if definition else "512",
               "healthStatus": "HEALTHY" if t["service"] and not is_over else "UNKNOWN", "containers": []}
        for c in containers:
            one = {"containerArn": ARN + "container/%s/%s" % (CLUSTER, t["id"]), "taskArn": got["taskArn"], "name": c["name"], "lastStatus": t["status"],
                   "healthStatus": got["healthStatus"], "networkInterfaces": [{"attachmentId": "a", "privateIpv4Address": t["ip"]}]}
            if is_over and t["exit"] is not None:
                one["exitCode"] = t["exit"]
            got["containers"].append(one)
        if t["status"] != "PROVISIONING":
            got["startedAt"] = self.time(t["started"])
        if is_over:
            got.update(stoppedAt=self.time(t["stopped"]), stopCode=t["stop_code"], stoppedReason=t["reason"])
        if t["started_by"]:
            got["startedBy"] = t["started_by"]
        if with_tags:
            got["tags"] = self.tag_list(t["tags"], "key", "value")
        return got

    def RunTask(self, params, _request):
        self.cluster(params)
        definition = self.find_definition(params["taskDefinition"], True)
        token = ("task", params.get("clientToken"))
        if params.get("clientToken") and token in self.tokens:
            asked, ids = self.tokens[token]
            if asked != params:
                self.fail("ConflictException", "The RunTask request could not be processed due to conflicts: clientToken")
            return {"tasks": [self.told_task(self.tasks[id], True) for id in ids], "failures": []}
        self.check_service(params)
        if self.failures:
            return {"tasks": [], "failures": [{"arn": ARN + "container-instance/front", "reason": self.failures.pop(0)}]}
        overrides = params.get("overrides", {})
        containers = {c["name"]: c for c in definition["asked"]["containerDefinitions"]}
        environment = {e["name"]: e["value"] for c in containers.values() for e in c.get("environment", [])}
        command = next((c["command"] for c in containers.values() if c.get("command")), [])
        for one in overrides.get("containerOverrides", []):
            if one.get("name") not in containers:
                self.fail("InvalidParameterException", "Override for container named %s is not a container in the TaskDefinition." % one.get("name"))
            environment.update({e["name"]: e["value"] for e in one.get("environment", [])})
            command = one.get("command", command)
        made = [self.start(definition, status="PROVISIONING", overrides=overrides, environment=environment, command=command, wait=self.wait(*self.task_pace),
                           tags=self.tags(params, "tags", "key", "value"), started_by=params.get("startedBy")) for _ in range(params.get("count", 1))]
        if params.get("clientToken"):
            self.tokens[token] = params, [t["id"] for t in made]
        return {"tasks": [self.told_task(t, True) for t in made], "failures": []}

    def DescribeTasks(self, params, _request):
        self.cluster(params)
        found, failures = [], []
        for name in params["tasks"]:
            task = self.find_task(name)
            if task is None or task["status"] == "STOPPED" and self.now() - task["stopped"] > 3600:
                failures.append({"arn": name if name.startswith("arn:") else self.task_arn(name), "reason": "MISSING"})
                continue
            self.settle_task(task)
            found.append(self.told_task(task, "TAGS" in params.get("include", [])))
        return {"tasks": found, "failures": failures}

    def ListTasks(self, params, _request):
        self.cluster(params)
        if "serviceName" in params:
            self.settle(self.find_service(params["serviceName"]), False)
        wanted = params.get("desiredStatus", "RUNNING")
        service = params.get("serviceName", "").rsplit("/", 1)[-1]
        found = [self.task_arn(t["id"]) for t in self.tasks.values() if (t["status"] == "STOPPED") == (wanted == "STOPPED")
                 and t["service"] == (service or t["service"]) and t["family"] == params.get("family", t["family"])
                 and t["started_by"] == params.get("startedBy", t["started_by"])]
        return self.page(found, params, 100, "maxResults", "nextToken", "taskArns")

    def StopTask(self, params, _request):
        self.cluster(params)
        task = self.find_task(params["task"])
        if task is None:
            self.fail("InvalidParameterException", "The referenced task was not found.")
        if task["status"] != "STOPPED":
            self.end(task, 137, params.get("reason", "Task stopped by user"), "UserInitiated")
        return {"task": self.told_task(task)}

    def DescribeClusters(self, params, _request):
        names = [n.rsplit("/", 1)[-1] for n in params.get("clusters", ["default"])]
        return {"clusters": [{"clusterArn": ARN + "cluster/" + n, "clusterName": n, "status": "ACTIVE"} for n in names if n in self.clusters],
                "failures": [{"arn": ARN + "cluster/" + n, "reason": "MISSING"} for n in names if n not in self.clusters]}

    # A visitor, by way of the load balancer.

    def answer(self, group, _path):
        service = next((s for s in self.services.values() if any(b["targetGroupArn"] == group for b in s["asked"].get("loadBalancers", []))), None)
        return (200, "WordPress of " + service["name"]) if service else (503, "")

    # What EventBridge says.

    def tell(self, kind, resources, detail):
        if self.queue:
            now = datetime.datetime.fromtimestamp(self.now(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.world.machines["sqs"].put(self.queue, json.dumps({
                "version": "0", "id": self.world.uuid(), "detail-type": kind, "source": "aws.ecs", "account": HUB, "time": now, "region": REGION,
                "resources": resources, "detail": detail}))

    def tell_service(self, service, name, kind):
        now = datetime.datetime.fromtimestamp(self.now(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.tell("ECS Service Action", [self.service_arn(service["name"])], {
            "eventType": kind, "eventName": name, "clusterArn": ARN + "cluster/" + CLUSTER, "createdAt": now})

    def tell_deployment(self, service, name, deployment):
        now = datetime.datetime.fromtimestamp(self.now(), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.tell("ECS Deployment State Change", [self.service_arn(service["name"])], {
            "eventType": "ERROR" if name.endswith("FAILED") else "INFO", "eventName": name, "deploymentId": deployment["id"], "updatedAt": now,
            "reason": deployment["reason"]})

    def tell_task(self, task):
        self.tell("ECS Task State Change", [self.task_arn(task["id"])], {
            "clusterArn": ARN + "cluster/" + CLUSTER, "taskArn": self.task_arn(task["id"]), "lastStatus": task["status"],
            "desiredStatus": "STOPPED" if task["status"] == "STOPPED" else "RUNNING", "launchType": "FARGATE",
            "group": "service:" + task["service"] if task["service"] else "family:" + task["family"],
            "taskDefinitionArn": ARN + "task-definition/" + task["definition"], "version": 1})
