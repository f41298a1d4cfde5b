// The drawer, sorting and filtering change the address and only the parts of the page that depend on it.
const drawer = byID("drawer"), find = byID("find"), field = byID("field-key");
const asked = ["key", "db", "limit", "by"];
let visited = location.search, opener = null;

const isOpen = () => drawer.firstElementChild !== null;

const linkTo = (href) => [...document.querySelectorAll("main a.in")].find((link) => link.href === href);

// visit shows what the address asks for. When that closes the drawer, the focus returns to where it was opened.
const visit = async () => {
	const before = new URLSearchParams(visited), query = new URLSearchParams(location.search), wasOpen = isOpen();
	visited = location.search;
	document.querySelector("dialog[open]")?.close(); // which is about what was shown
	for (const link of document.querySelectorAll("nav a[hreflang]")) {
		const other = new URLSearchParams(query);
		other.set("lang", link.hreflang);
		link.search = other;
	}
	await tick(true);
	if (failures > 0) {
		return; // keep what was entered, until the server answers again
	}
	if (query.get("key") !== before.get("key")) {
		field.value = query.get("key") ?? "";
	}
	if (isOpen()) {
		speak(drawer.querySelector(".verdict")?.textContent ?? "");
	} else if (wasOpen) {
		(opener?.isConnected ? opener : linkTo(opener?.href) ?? field).focus();
	}
};

const open = async (url, from) => {
	opener = from;
	history.pushState(null, "", url);
	await visit();
	byID("drawer-heading")?.focus();
};

const shut = () => {
	const query = new URLSearchParams(location.search);
	asked.forEach((name) => query.delete(name));
	history.pushState(null, "", `?${query}`);
	visit();
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
addEventListener("popstate", () => location.search !== visited && visit()); // not for links within the page
