// Inspecting a key updates only that part of the page and adds to the browser's history.
const look = byID("look"), form = byID("form");
let visited = location.search;

// visit shows what the address asks for. Inputs then have the values that the server has read.
const visit = async () => {
	visited = location.search;
	for (const link of document.querySelectorAll("nav a[hreflang]")) {
		const query = new URLSearchParams(location.search);
		query.set("lang", link.hreflang);
		link.search = query;
	}
	await tick(true);
	if (failures > 0) {
		return; // keep what was typed, until the server answers again
	}
	for (const input of form.querySelectorAll("input")) {
		input.value = input.defaultValue;
	}
	for (const option of form.querySelectorAll("option")) {
		option.selected = option.defaultSelected;
	}
	speak(look.querySelector(".verdict, [role=alert]")?.textContent ?? "");
};

const follow = async (event) => {
	const link = event.target.closest("#top a");
	if (link === null || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
		return;
	}
	event.preventDefault();
	history.pushState(null, "", link.href);
	await visit();
	look.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
};

const submit = async (event) => {
	event.preventDefault();
	history.pushState(null, "", `?${new URLSearchParams(new FormData(form))}#look`);
	await visit();
	form.querySelector("[aria-invalid]")?.focus();
};

// another kind of limiter has other arguments
const chooseKind = async (event) => {
	if (event.target.name === "kind") {
		const kept = [...new FormData(form)].filter(([name]) => ["lang", "key", "db", "kind"].includes(name));
		history.replaceState(null, "", `?${new URLSearchParams(kept)}#look`);
		await visit();
	}
};

// tellWhole shows a key of more than two lines in full under the pointer.
const tellWhole = ({ target }) => {
	if (target.matches(".key") && target.scrollHeight > target.clientHeight) {
		target.title = target.textContent;
	}
};

document.addEventListener("click", follow);
document.addEventListener("pointerover", tellWhole);
form.addEventListener("submit", submit);
form.addEventListener("change", chooseKind);
addEventListener("popstate", () => location.search !== visited && visit()); // not for links within the page
