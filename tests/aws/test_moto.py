# SPDX-License-Identifier: Apache-2.0
"""moto behind the front, where it is there: a second opinion on the services that both have."""


def test_the_front_passes_on_what_is_well_formed(moto_world):
    q = moto_world.client("sqs")
    url = q.create_queue(QueueName="q")["QueueUrl"]
    q.send_message(QueueUrl=url, MessageBody="hello")
    assert q.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "hello"
    assert [e.get("forwarded") for e in moto_world.log("sqs")] == [True] * 3


def test_pages_of_accounts_are_those_of_moto(moto_world):
    o = moto_world.client("organizations")
    o.create_organization(FeatureSet="ALL")
    root = o.list_roots()["Roots"][0]["Id"]
    for i in range(44):  # and the management account itself
        o.create_account(AccountName="a%d" % i, Email="a%d@example.com" % i)
    pages = [len(p["Accounts"]) for p in o.get_paginator("list_accounts_for_parent").paginate(ParentId=root, PaginationConfig={"PageSize": 20})]
    assert sum(pages) == 45 and len(pages) >= 2
