# SPDX-License-Identifier: Apache-2.0
"""CodeBuild: builds that take looks or time, and end as the test wants. A token is remembered for five minutes, as theirs is."""

from aws.front.machine import Machine
from aws.front.names import HUB, REGION


class CodeBuild(Machine):
    def reset(self):
        self.projects, self.builds, self.tokens = {"cleaner"}, {}, {}
        self.looks, self.seconds, self.outcome, self.message = 1, 600.0, "SUCCEEDED", ""

    def show(self):
        return {"builds": [{**{k: v for k, v in b.items() if k != "environment"}, "environment": b["environment"]} for b in self.builds.values()]}

    # For the tests.

    def ctl_add_project(self, name):
        self.projects.add(name)

    def ctl_remove_project(self, name):
        self.projects.remove(name)

    def ctl_pace(self, looks=1, seconds=600.0):
        """A build is over after so many looks or seconds. looks -1: never by looking."""
        self.looks, self.seconds = looks, seconds

    def ctl_outcome(self, status="SUCCEEDED", message=""):
        self.outcome, self.message = status, message

    def ctl_finish(self, status="SUCCEEDED", message=""):
        for build in self.builds.values():
            if build["status"] == "IN_PROGRESS":
                build.update(status=status, message=message, ended=self.now())

    def ctl_forget(self):
        self.builds.clear()

    # What is so.

    def settle(self, build, looked):
        if build["status"] != "IN_PROGRESS":
            return
        if looked and build["looks"] > 0:
            build["looks"] -= 1
        if build["looks"] == 0 or self.now() - build["started"] >= build["seconds"]:
            build.update(status=build["outcome"], ended=self.now())

    def build(self, id):
        b = self.builds[id]
        is_over = b["status"] != "IN_PROGRESS"
        got = {"id": id, "arn": "arn:aws:codebuild:%s:%s:build/%s" % (REGION, HUB, id), "buildNumber": b["number"], "startTime": self.time(b["started"]),
               "currentPhase": "COMPLETED" if is_over else "BUILD", "buildStatus": b["status"], "projectName": b["project"], "buildComplete": is_over,
               "timeoutInMinutes": b["minutes"], "initiator": b["initiator"],
               "environment": {"type": "LINUX_CONTAINER", "image": "aws/codebuild/standard:7.0", "computeType": "BUILD_GENERAL1_SMALL",
                               "environmentVariables": [{"name": n, "value": v, "type": "PLAINTEXT"} for n, v in b["environment"].items()]},
               "logs": {"deepLink": "https://console.aws.amazon.com/cloudwatch/home#logs:" + id, "groupName": b["group"] or "/aws/codebuild/" + b["project"]}}
        phase = {"phaseType": "BUILD", "startTime": self.time(b["started"])}
        if is_over:
            got["endTime"] = self.time(b["ended"])
            phase.update(phaseStatus=b["status"], endTime=self.time(b["ended"]), contexts=[{"statusCode": "", "message": b["message"]}])
        got["phases"] = [phase]
        return got

    # Operations.

    def StartBuild(self, params, request):
        if params["projectName"] not in self.projects:
            self.fail("ResourceNotFoundException", "Project cannot be found: " + params["projectName"])
        token = params.get("idempotencyToken")
        if token in self.tokens and self.now() - self.tokens[token][1] < 300:
            return {"build": self.build(self.tokens[token][0])}
        id = "%s:%s" % (params["projectName"], self.world.uuid())
        self.builds[id] = {
            "id": id, "number": len(self.builds) + 1, "project": params["projectName"], "status": "IN_PROGRESS", "started": self.now(), "ended": None,
            "environment": {v["name"]: v["value"] for v in params.get("environmentVariablesOverride", [])}, "looks": self.looks,
            "seconds": self.seconds, "outcome": self.outcome, "message": self.message, "minutes": params.get("timeoutInMinutesOverride", 60),
            "group": params.get("logsConfigOverride", {}).get("cloudWatchLogs", {}).get("groupName"), "initiator": request.principal["role"]}
        if token:
            self.tokens[token] = (id, self.now())
        return {"build": self.build(id)}

    def BatchGetBuilds(self, params, _request):
        found, missing = [], []
        for id in params["ids"]:
            if id in self.builds:
                self.settle(self.builds[id], True)
                found.append(self.build(id))
            else:
                missing.append(id)
        return {name: ids for name, ids in (("builds", found), ("buildsNotFound", missing)) if ids}

    def ListBuildsForProject(self, params, _request):
        if params["projectName"] not in self.projects:
            self.fail("ResourceNotFoundException", "Project cannot be found: " + params["projectName"])
        ids = [id for id, b in self.builds.items() if b["project"] == params["projectName"]]
        if params.get("sortOrder", "DESCENDING") == "DESCENDING":
            ids.reverse()
        return {name: value for name, value in self.page(ids, params, 100, token="nextToken", name="ids").items() if value}

    def StopBuild(self, params, _request):
        if params["id"] not in self.builds:
            self.fail("ResourceNotFoundException", "Build not found")
        self.builds[params["id"]].update(status="STOPPED", ended=self.now())
        return {"build": self.build(params["id"])}
