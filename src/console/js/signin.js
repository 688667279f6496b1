// SPDX-License-Identifier: Apache-2.0
// The way in: the server's own sign-in (its page, or the provider that it trusts), or a token that one has already.
import * as api from "./api.js";
import { h } from "./dom.js";
import { field } from "./parts.js";

export function signIn({ message, use }) {
	const input = h("input", { name: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
	const trouble = h("p", { class: "problem", role: "alert" });
	async function take(event) {
		event.preventDefault();
		trouble.textContent = "";
		api.setToken(input.value.trim());
		try {
			if (!(await use())) trouble.textContent = "This token is not valid here, or has expired.";
		} catch (error) {
			api.setToken("");
			trouble.textContent = error.message;
		}
	}
	return h("div", { class: "signin" },
		h("h1", {}, "Sign in to Leasehold"),
		message && h("p", { class: "note warn", role: "status" }, message),
		h("p", {}, "Temporary environments: lend them out, see who has what, take them back."),
		h("a", { class: "button primary wide", href: "/api/auth/login", on: { click: api.noteWayBack } }, "Sign in"),
		h("details", {},
			h("summary", {}, "Use a token instead"),
			h("form", { on: { submit: take } },
				field("Token", input, { help: "A session token, or an operator's token (BROKER_ADMIN_TOKEN). It is kept in this tab only." }),
				trouble,
				h("button", { type: "submit", class: "button" }, "Use this token"))));
}
