// The drawer, sorting and filtering change the address and only the parts of the page that depend on it.
const drawer = byID("drawer"), find = byID("find"), field = byID("field-key"), narrow = matchMedia("(max-width: 44rem)");
const asked = ["key", "db", "limit", "by"];
let visited = location.search, opener = null;

const isOpen = () => drawer.firstElementChild !== null;

// visit shows what the address asks for.
const visit = async () => {
	visited = location.search;
	const query = new URLSearchParams(location.search);
	for (const link of document.querySelectorAll("nav a[hreflang]")) {
		const other = new URLSearchParams(query);
		other.set("lang", link.hreflang);
		link.search = other;
	}
	await tick(true);
	if (failures > 0) {
		return; // keep what was entered, until the server answers again
	}
	field.value = query.get("key") ?? "";
	byID("main").inert = isOpen() && narrow.matches; // the drawer covers it
	if (isOpen()) {
		speak(drawer.querySelector(".verdict, [role=alert]")?.textContent ?? "");
	}
};

const open = async (url, from) => {
	opener = from;
	history.pushState(null, "", url);
	await visit();
	byID("drawer-heading")?.focus();
};

// shut closes the drawer; the focus returns to where it was opened.
const shut = async () => {
	const query = new URLSearchParams(location.search);
	asked.forEach((name) => query.delete(name));
	history.pushState(null, "", `?${query}`);
	await visit();
	const again = opener?.isConnected ? opener : [...document.querySelectorAll("main a.in")].find((link) => link.href === opener?.href);
	(again ?? field).focus();
};

// choose changes what the tables show.
const choose = (url) => {
	history.replaceState(null, "", url);
	return visit();
};

const follow = (event) => {
	const link = event.target.closest("a.in, a.shut");
	if (link === null || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
		return;
	}
	event.preventDefault();
	const now = new URLSearchParams(location.search), next = new URL(link.href).searchParams;
	if (link.matches(".shut")) {
		shut();
	} else if (asked.some((name) => now.get(name) !== next.get(name))) {
		open(link.href, drawer.contains(link) ? opener : link);
	} else {
		choose(link.href);
	}
};

const search = (event) => {
	event.preventDefault();
	const query = new URLSearchParams(location.search);
	asked.forEach((name) => query.delete(name));
	query.set("key", field.value);
	open(`?${query}`, field);
};

let filtering = 0;
const filter = ({ target }) => {
	if (target.id === "field-filter") {
		clearTimeout(filtering);
		filtering = setTimeout(() => {
			const query = new URLSearchParams(location.search);
			query.set("filter", target.value);
			choose(`?${query}`);
		}, 250);
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
document.addEventListener("input", filter);
document.addEventListener("submit", (event) => event.target.id === "filter" && event.preventDefault());
document.addEventListener("keydown", (event) => {
	if (event.key === "Escape" && !event.defaultPrevented && isOpen() && document.querySelector("dialog[open]") === null) {
		shut();
	}
});
find.addEventListener("submit", search);
narrow.addEventListener("change", () => { byID("main").inert = isOpen() && narrow.matches; });
addEventListener("popstate", () => location.search !== visited && visit()); // not for links within the page
byID("main").inert = isOpen() && narrow.matches;
