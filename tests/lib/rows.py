# SPDX-License-Identifier: Apache-2.0
"""Rows of packed records, written as the store writes them, while the server is stopped."""
import json


def put_events(db, events):
    """Events as dictionaries of their fields. Of one moment (the first 60 bits of the id) there are at most eight."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(event)")][1:]  # version, then the fields
    own = [row[1] for row in db.execute("PRAGMA table_info(event_row)")]
    for event in events:
        event = {"version": 1, **event}
        digits = event["id"].replace("-", "")
        row = {"seq": (int(digits[:12], 16) << 12 | int(digits[13:16], 16)) * 8,
               "value": json.dumps([None if c in own else event.get(c) for c in columns], ensure_ascii=False, separators=(",", ":")),
               "detail": event.get("detail"),
               "BySubject": None if event.get("reach") else event["subject"],
               "ByType": None if event.get("volume") else event["type"]}
        row = {name: value for name, value in row.items() if name in own}
        db.execute("INSERT INTO event_row (%s) VALUES (%s)" % (", ".join(row), ", ".join("?" * len(row))), list(row.values()))
