// A key's state is loaded without the rest of the page, and has its place in the browser's history.
const look = byID("look"), form = byID("form");
let visited = location.search;

// visit shows what the address asks about. The form's inputs then have what the server has read, and not what was typed before.
const visit = async () => {
	visited = location.search;
	for (const link of document.querySelectorAll("nav a[hreflang]")) {
		const query = new URLSearchParams(location.search);
		query.set("lang", link.hreflang);
		link.search = query;
	}
	await tick(true);
	if (failures > 0) {
		return; // what was typed stays, for a server that answers again
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

// Another kind of limiter has other arguments.
const chooseKind = async (event) => {
	if (event.target.name === "kind") {
		const kept = [...new FormData(form)].filter(([name]) => ["lang", "key", "db", "kind"].includes(name));
		history.replaceState(null, "", `?${new URLSearchParams(kept)}#look`);
		await visit();
	}
};

// A key that is longer than its two lines is told whole where the pointer is.
const tellWhole = ({ target }) => {
	if (target.matches(".key") && target.scrollHeight > target.clientHeight) {
		target.title = target.textContent;
	}
};

document.addEventListener("click", follow);
document.addEventListener("pointerover", tellWhole);
form.addEventListener("submit", submit);
form.addEventListener("change", chooseKind);
addEventListener("popstate", () => location.search !== visited && visit()); // not for a link within the page
