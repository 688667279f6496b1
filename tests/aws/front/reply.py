# SPDX-License-Identifier: Apache-2.0
"""Answers, written as the protocol wants them and held against the output shape: walked, and read again by botocore's own parser."""

import base64
import datetime
import json
from xml.sax.saxutils import escape

from botocore.parsers import create_parser

from aws.front.shapes import Broken, Walk

# What JSON services call the errors that every service has.
JSON_CODES = {
    "MissingAuthenticationToken": "MissingAuthenticationTokenException",
    "InvalidClientTokenId": "UnrecognizedClientException",
    "SignatureDoesNotMatch": "InvalidSignatureException",
    "IncompleteSignature": "IncompleteSignatureException",
    "ExpiredToken": "ExpiredTokenException",
    "AccessDenied": "AccessDeniedException",
    "Throttling": "ThrottlingException",
}
# The query protocol's names of SQS's errors, which the JSON one sends along in a header.
SQS_QUERY = {"QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue",
             "BatchEntryIdsNotDistinct": "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
             "EmptyBatchRequest": "AWS.SimpleQueueService.EmptyBatchRequest",
             "TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"}


def as_json(value, shape, renamed=True):
    kind = shape.type_name
    if getattr(shape, "is_document_type", False):
        return value
    if kind == "structure":
        return {(m.serialization.get("name", k) if renamed else k): as_json(value[k], m)
                for k, m in shape.members.items() if value.get(k) is not None}
    if kind == "list":
        return [as_json(v, shape.member) for v in value]
    if kind == "map":
        return {k: as_json(v, shape.value) for k, v in value.items()}
    if kind == "timestamp":
        return round(value.timestamp(), 3)
    if kind == "blob":
        return base64.b64encode(value).decode()
    return value


def as_xml(value, shape, name):
    kind, tag = shape.type_name, "<%s>%%s</%s>" % (name, name)
    if kind == "structure":
        return tag % "".join(as_xml(value[k], m, m.serialization.get("name", k)) for k, m in shape.members.items() if k in value)
    if kind == "list":
        inner = shape.member.serialization.get("name", "member")
        if shape.serialization.get("flattened"):
            return "".join(as_xml(v, shape.member, inner if shape.member.serialization.get("name") else name) for v in value)
        return tag % "".join(as_xml(v, shape.member, inner) for v in value)
    if kind == "map":
        keys = shape.key.serialization.get("name", "key"), shape.value.serialization.get("name", "value")
        entries = [as_xml(k, shape.key, keys[0]) + as_xml(v, shape.value, keys[1]) for k, v in value.items()]
        if shape.serialization.get("flattened"):
            return "".join(tag % e for e in entries)
        return tag % "".join("<entry>%s</entry>" % e for e in entries)
    if kind == "timestamp":
        value = value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    elif kind == "boolean":
        value = "true" if value else "false"
    elif kind == "blob":
        value = base64.b64encode(value).decode()
    return tag % escape(str(value))


def write(request, output, request_id):
    """status, headers, body of a success. Broken: we would have sent what the model does not know."""
    shape, protocol = request.model.output_shape, request.protocol
    if shape is not None:
        Walk()(output, shape)
    elif output:
        raise Broken("%s has no output" % request.operation)
    status = request.model.http.get("responseCode", 200)
    if protocol == "query":
        wrapper = shape.serialization.get("resultWrapper") if shape is not None else None
        inside = "".join(as_xml(output[k], m, m.serialization.get("name", k)) for k, m in shape.members.items() if k in output) if shape is not None else ""
        body = "<{0}Response xmlns=\"{1}\">{2}<ResponseMetadata><RequestId>{3}</RequestId></ResponseMetadata></{0}Response>".format(
            request.operation, request.model.metadata.get("xmlNamespace", ""),
            "<%s>%s</%s>" % (wrapper, inside, wrapper) if wrapper else inside, request_id)
        headers = {"Content-Type": "text/xml", "x-amzn-RequestId": request_id}
    else:
        body = json.dumps(as_json(output, shape)) if shape is not None else "" if protocol == "json" and not output or status == 204 else "{}"
        kind = "application/json" if protocol == "rest-json" else "application/x-amz-json-" + request.model.metadata["jsonVersion"]
        headers = {"Content-Type": kind, "x-amzn-RequestId": request_id}
    read_back(request, output, status, headers, body.encode())
    return status, headers, body.encode()


def read_back(request, output, status, headers, body):
    if request.model.output_shape is None:
        return
    got = create_parser(request.protocol).parse({"body": body, "headers": headers, "status_code": status}, request.model.output_shape)
    got.pop("ResponseMetadata", None)
    wanted = {k: v for k, v in output.items() if v not in (None, [], {})}
    if any(k not in got for k in wanted) or any(not same(wanted[k], got[k]) for k in wanted):
        raise Broken("%s reads back as %r, not as %r" % (request.operation, got, wanted))


def same(a, b):
    if isinstance(a, dict):
        return all(same(v, b.get(k)) for k, v in a.items() if v not in (None, [], {}))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, datetime.datetime):
        return abs(a.timestamp() - b.timestamp()) < 1
    return a == b


def protocol_of(request):
    if request.protocol:
        return request.protocol
    if request.headers.get("X-Amz-Target"):
        return "json"
    return "query" if request.headers.get("Content-Type", "").startswith("application/x-www-form") else "rest-json"


def write_error(request, refused, request_id):
    protocol = protocol_of(request)
    code, status, message = refused.code, refused.status, refused.message
    if protocol == "query":
        if request.service == "sqs":
            code = SQS_QUERY.get(code, code)
        body = ("<ErrorResponse><Error><Type>%s</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId>"
                "</ErrorResponse>" % ("Receiver" if status >= 500 else "Sender", escape(code), escape(message), request_id))
        return status, {"Content-Type": "text/xml", "x-amzn-RequestId": request_id}, body.encode()
    code = JSON_CODES.get(code, code)
    headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-RequestId": request_id}
    if protocol == "json":
        status = 400 if status in (403, 404) else status
        if request.service == "sqs":
            headers["x-amzn-query-error"] = "%s;Sender" % SQS_QUERY.get(code, code)
            headers["Content-Type"] = "application/x-amz-json-1.0"
        known = getattr(request.model, "service_model", None)
        prefix = "com.amazonaws.%s#" % request.service if known else ""
        return status, headers, json.dumps({"__type": prefix + code, "message": message}).encode()
    headers.update({"Content-Type": "application/json", "x-amzn-ErrorType": code + ":http://internal.amazon.com/coral/"})
    return status, headers, json.dumps(getattr(refused, "members", None) or {"message": message}).encode()
