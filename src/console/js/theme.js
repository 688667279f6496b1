// SPDX-License-Identifier: Apache-2.0
// Runs before anything is painted, so that a chosen colour scheme does not flash. No choice: the system's.
try {
	const theme = localStorage.getItem("leasehold.theme");
	if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
	// storage is closed to us: the system's scheme it is
}
