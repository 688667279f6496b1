// SPDX-License-Identifier: Apache-2.0
// What the tests of instances share: instances past the browser, and the parts of their page.
import { press, same, until } from "./rig.mjs";

export const ENV = { LEASEHOLD_SIM_SANDBOXES: "4", LEASEHOLD_SIM_ACCOUNTS: "0", LEASEHOLD_SIM_ENTRY_ACCOUNTS: "0" };
export const NO_TASKS = { fault: "outage", call: "create-resource", resource: "workers" };

export const main = (page) => page.locator("main");
export const dialog = (page) => page.getByRole("dialog");
export { press };
export const confirm = (page, name) => dialog(page).getByRole("button", { name, exact: true }).click();
export const badge = (page, text) => page.locator("main .stand .badge").getByText(text, { exact: true }).waitFor();
export const offers = (page, wanted) => same(() => page.locator("main .heading .actions button").allTextContents(), wanted, "what is offered");
export const path = (tenant) => `/v1.0/tenants/-/instances/${tenant}`;

export function instancesOf(world) {
	const show = (tenant) => world.call("GET", path(tenant));
	const create = (tenant, name) => world.call("POST", `/v1.0/tenants/${tenant}/instances`, { organizationName: name, contactEmail: "it@example.com" });
	return {
		show, create,
		faults: (...rules) => world.call("PUT", "/v1/sim/faults", { faults: rules }),
		is: (tenant, status) => until(async () => (await show(tenant)).status === status, `${tenant} is ${status}`, 90000),
		async active(tenant, name) {
			await create(tenant, name);
			await this.is(tenant, "ACTIVE");
		},
	};
}
