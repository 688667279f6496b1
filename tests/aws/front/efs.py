# SPDX-License-Identifier: Apache-2.0
"""EFS: access points, which are being made and being deleted for a while. The second create with a token is told which one it made."""

from aws.front.machine import Machine
from aws.front.names import FILE_SYSTEM, HUB, REGION
from aws.front.request import Refused


class Efs(Machine):
    bad_token = "BadRequest"

    def reset(self):
        self.file_systems, self.points, self.count = {FILE_SYSTEM}, {}, 0
        self.limit, self.looks, self.seconds, self.outcome = 10000, 1, 60.0, "available"

    def show(self):
        return {"access_points": [{k: v for k, v in p.items() if k != "wait"} for p in self.points.values()]}

    # For the tests.

    def ctl_pace(self, looks=1, seconds=60.0, outcome="available"):
        """outcome: what a new access point gets to be, available or error."""
        self.looks, self.seconds, self.outcome = looks, seconds, outcome

    def ctl_limit(self, count):
        self.limit = count

    def ctl_add(self, path, tags=None, token="foreign"):
        """By somebody else."""
        return self.make(FILE_SYSTEM, token, path, tags or {}, {})["AccessPointId"]

    # What is so.

    def fail(self, code, message="", status=400, **members):
        refused = Refused(code, message or code, status)
        refused.members = {"ErrorCode": code, "Message": message or code, **members}
        raise refused

    def settle(self, looked=True):
        for id, point in list(self.points.items()):
            if point["state"] in ("creating", "deleting") and point["wait"].is_over(looked):
                if point["state"] == "deleting":
                    del self.points[id]
                else:
                    point["state"] = point["outcome"]

    def make(self, file_system, token, path, tags, posix, creation=None):
        self.count += 1
        id = "fsap-%017x" % self.count
        self.points[id] = {"id": id, "token": token, "file_system": file_system, "path": path, "tags": tags, "posix": posix, "creation": creation,
                           "state": "creating", "outcome": self.outcome, "wait": self.wait(self.looks, self.seconds)}
        return self.point(id)

    def arn(self, id):
        return "arn:aws:elasticfilesystem:%s:%s:access-point/%s" % (REGION, HUB, id)

    def point(self, id):
        p = self.points[id]
        root = {"Path": p["path"], **({"CreationInfo": p["creation"]} if p["creation"] else {})}
        got = {"ClientToken": p["token"], "Tags": self.tag_list(p["tags"]), "AccessPointId": id, "AccessPointArn": self.arn(id),
               "FileSystemId": p["file_system"], "RootDirectory": root, "OwnerId": HUB, "LifeCycleState": p["state"]}
        if p["posix"]:
            got["PosixUser"] = p["posix"]
        if "Name" in p["tags"]:
            got["Name"] = p["tags"]["Name"]
        return got

    def find_file_system(self, id):
        if id not in self.file_systems:
            self.fail("FileSystemNotFound", "File system '%s' does not exist." % id, 404)
        return id

    def find(self, id):
        id = id.rsplit("/", 1)[-1]
        if id not in self.points:
            self.fail("AccessPointNotFound", "Access point '%s' does not exist." % id, 404)
        return id

    def all_tags(self):
        return [(self.arn(id), p["tags"]) for id, p in self.points.items() if p["state"] != "deleting"]

    # Operations.

    def CreateAccessPoint(self, params, _request):
        file_system, token = self.find_file_system(params["FileSystemId"]), params["ClientToken"]
        for id, point in self.points.items():
            if point["token"] == token and point["file_system"] == file_system:
                self.fail("AccessPointAlreadyExists", "Access point already exists with creation token %s" % token, 409, AccessPointId=id)
        if sum(p["file_system"] == file_system for p in self.points.values()) >= self.limit:
            self.fail("AccessPointLimitExceeded", "You have reached the maximum number of access points for the file system", 403)
        root = params.get("RootDirectory", {})
        path = root.get("Path", "/")
        if not path.startswith("/") or path != "/" and path.endswith("/") or path.count("/") > 4:
            self.fail("BadRequest", "Invalid RootDirectory path: " + path)
        return self.make(file_system, token, path, self.tags(params), params.get("PosixUser"), root.get("CreationInfo"))

    def DescribeAccessPoints(self, params, _request):
        self.settle()
        if "AccessPointId" in params:
            if "FileSystemId" in params:
                self.fail("BadRequest", "You cannot specify both a FileSystemId and an AccessPointId")
            return {"AccessPoints": [self.point(self.find(params["AccessPointId"]))]}
        if "FileSystemId" in params:
            self.find_file_system(params["FileSystemId"])
        found = [self.point(id) for id, p in self.points.items() if p["file_system"] == params.get("FileSystemId", p["file_system"])]
        return self.page(found, params, 100, name="AccessPoints")

    def DeleteAccessPoint(self, params, _request):
        self.settle(False)
        point = self.points[self.find(params["AccessPointId"])]
        if point["state"] != "deleting":
            point.update(state="deleting", wait=self.wait(self.looks, self.seconds))
        return {}

    def TagResource(self, params, _request):
        self.points[self.find(params["ResourceId"])]["tags"].update(self.tags(params))
        return {}

    def DescribeFileSystems(self, params, _request):
        ids = [self.find_file_system(params["FileSystemId"])] if "FileSystemId" in params else sorted(self.file_systems)
        return {"FileSystems": [{"OwnerId": HUB, "CreationToken": "front", "FileSystemId": id, "CreationTime": self.time(0), "LifeCycleState": "available",
                                 "NumberOfMountTargets": 2, "SizeInBytes": {"Value": 6144}, "PerformanceMode": "generalPurpose", "Encrypted": True,
                                 "Tags": []} for id in ids]}
