// A hot key's funnel is loaded without the rest of the page, and without losing its place in the browser's history.
const look = byID("look"), form = look.querySelector("form");

const visit = async () => {
	const query = new URLSearchParams(location.search);
	for (const field of form.querySelectorAll("input:not([type=hidden]), select")) {
		field.value = query.get(field.name) ?? field.defaultValue;
	}
	for (const link of document.querySelectorAll("nav a[hreflang]")) {
		link.search = new URLSearchParams([...query].filter(([name]) => name !== "lang").concat([["lang", link.hreflang]])).toString();
	}
	await tick();
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
	speak(look.querySelector(".verdict")?.textContent ?? "");
};

document.addEventListener("click", follow);
addEventListener("popstate", visit);
