// SPDX-License-Identifier: Apache-2.0
// How values are written for people. Times are the reader's own, with UTC on hover; the server's clock decides what "ago" is.
import { h } from "./dom.js";
import { now } from "./api.js";

const dateTime = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
const stampOnly = new Intl.DateTimeFormat(undefined, { month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const clockOnly = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const clockShort = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const whole = new Intl.NumberFormat();

// The API writes Unix seconds (/v1) or ISO 8601 (/api); both become a Date, nothing becomes null.
export function toDate(value) {
	if (value === null || value === undefined || value === "" || value === 0) return null;
	const date = typeof value === "number" ? new Date(value * 1000) : new Date(value);
	return Number.isNaN(date.getTime()) ? null : date;
}

const utc = (date) => date.toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");

// The reader's own time, with its zone, and UTC.
export const bothTimes = (date) => `${dateTime.format(date)}\n${utc(date)}`;

function timeElement(date, text, isBoth) {
	const title = isBoth ? bothTimes(date) : utc(date);
	return h("time", { datetime: date.toISOString(), title }, text);
}

// "Nov 16, 2026, 09:14:03 AM GMT+1"
export function time(value) {
	const date = toDate(value);
	return date ? timeElement(date, dateTime.format(date)) : none();
}

// "09:14:03"; for rows of the last minutes
export function clock(value) {
	const date = toDate(value);
	return date ? timeElement(date, clockOnly.format(date), true) : none();
}

const dayOnly = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

// "Nov 16, 09:14:03"; for rows of events
export function stamp(value) {
	const date = toDate(value);
	return date ? timeElement(date, stampOnly.format(date), true) : none();
}

// "Nov 16": of days as clouds bill them, in UTC
export const day = (date) => dayOnly.format(date);

const momentOnly = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

// "Nov 16, 09:14"
export const moment = (date) => momentOnly.format(date);

export const hourMinute = (date) => clockShort.format(date);

// "3 min ago", "in 2 h 5 min"; the whole time on hover
export function ago(value) {
	const date = toDate(value);
	if (!date) return none();
	const seconds = Math.round((date.getTime() - now()) / 1000);
	const text = Math.abs(seconds) < 5 ? "now" : seconds < 0 ? `${duration(-seconds)} ago` : `in ${duration(seconds)}`;
	return timeElement(date, text, true);
}

// "15 d 3 h": how long ago it began; the whole time on hover
export function elapsed(value) {
	const date = toDate(value);
	return date ? timeElement(date, duration((now() - date.getTime()) / 1000), true) : none();
}

const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

// 7500 -> "2 h 5 min": the two largest units
export function duration(seconds) {
	if (seconds === null || seconds === undefined) return "–";
	let rest = Math.max(0, Math.round(seconds));
	const first = units.findIndex(([, size]) => rest >= size);
	if (first < 0) return "0 s";
	return units.slice(first, first + 2).map(([name, size]) => {
		const count = Math.floor(rest / size);
		rest -= count * size;
		return count ? `${count} ${name}` : "";
	}).filter(Boolean).join(" ");
}

export function millis(value) {
	if (value === null || value === undefined) return "–";
	return value < 1000 ? `${value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}

export function money(dollars) {
	if (dollars === null || dollars === undefined) return "–";
	const digits = Math.abs(dollars) >= 1000 && Number.isInteger(dollars) ? 0 : 2;
	return `$${dollars.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: 2 })}`;
}

export const number = (value) => (value === null || value === undefined ? "–" : whole.format(value));

export function percent(share) {
	return Number.isFinite(share) ? `${Math.round(share * 100)} %` : "–";
}

// "pending_deletion" -> "Pending deletion", "PendingApproval" -> "Pending approval"
export function words(name) {
	if (!name) return "–";
	const text = name.replace(/([a-z])([A-Z])/g, "$1 $2").replaceAll(/[_-]/g, " ").toLowerCase();
	return text[0].toUpperCase() + text.slice(1);
}

// For "nothing there" in a cell.
export function none(text = "–") {
	return h("span", { class: "none" }, text);
}
