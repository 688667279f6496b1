# SPDX-License-Identifier: Apache-2.0
"""What a power failure leaves of a server's files, made from the diary of all that it did to them (crash/powerlog.c).

What was flushed is there. Of what was not, each write may be there, be lost, or be torn at a sector, and a later one may be there
without an earlier one. A file that was made and never flushed may not be there at all; one that was removed may still be.
"""

import struct
from pathlib import Path

HEADER = struct.Struct("<QIHBB")
SECTOR = 512


class Entry:
    def __init__(self, begin, end, kind, name, offset, content):
        self.begin, self.end, self.kind, self.name, self.offset, self.content = begin, end, kind, name, offset, content


def read_diary(path):
    """All entries; the last one may have been cut off by the end of the process."""
    raw, entries, at = Path(path).read_bytes(), [], 0
    while at + HEADER.size <= len(raw):
        offset, length, name_length, kind, _ = HEADER.unpack_from(raw, at)
        middle = at + HEADER.size + name_length
        if middle + length > len(raw):
            break
        name = raw[at + HEADER.size : middle].decode()
        entries.append(Entry(at, middle + length, chr(kind), name, offset, raw[middle : middle + length]))
        at = middle + length
    return entries


def patch(content, offset, part):
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(part)] = part


class File:
    def __init__(self, content=None):
        self.content = content  # what is on the disk for certain; None: no such file
        self.pending = []  # what may be

    def flush(self, began):
        """What was done before the flush began is on the disk."""
        done = [e for e in self.pending if e.end <= began]
        self.content = self.after(done, bytearray() if self.content is None else self.content)
        self.pending = [e for e in self.pending if e.end > began]

    @staticmethod
    def after(entries, content, rng=None):
        for e in entries:
            if e.kind == "r":
                content = None
                continue
            content = bytearray() if content is None else content
            if e.kind == "t":
                content[e.offset :] = bytes(max(0, e.offset - len(content)))
            elif rng is None or rng.random() < 0.7:
                patch(content, e.offset, e.content)
            else:  # torn: some of its sectors
                for at in range(0, len(e.content), SECTOR):
                    if rng.random() < 0.5:
                        patch(content, e.offset + at, e.content[at : at + SECTOR])
        return content

    def remains(self, rng):
        content = None if self.content is None else bytearray(self.content)
        kept = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        survivors = [e for e in self.pending if rng.random() < kept]
        return self.after(survivors, content, rng) if survivors else content


class Disk:
    """The files of a folder while the diary is read on. `cut` says which the failure hits; it loses nothing of the others."""

    def __init__(self, base, entries, cut):
        self.files = {p.name: File(bytearray(p.read_bytes())) for p in Path(base).iterdir() if p.is_file()}
        self.entries, self.cut, self.next = entries, cut, 0

    def play_to(self, position):
        while self.next < len(self.entries) and self.entries[self.next].end <= position:
            e = self.entries[self.next]
            self.next += 1
            file = self.files.setdefault(e.name, File())
            if e.kind == "f":
                file.flush(e.offset)
            else:
                file.pending.append(e)
                if not self.cut(e.name):
                    file.flush(e.end)

    def write_remains(self, folder, rng):
        for name, file in self.files.items():
            content = file.remains(rng)
            if content is not None and not name.endswith("-shm"):
                (folder / name).write_bytes(content)

    def unflushed(self):
        return sum(len(f.pending) for n, f in self.files.items() if self.cut(n))
