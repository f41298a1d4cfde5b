"use strict";
(() => {
	const everyMs = 2000, spokenEveryMs = 30000, patienceMs = 5000;
	const byID = (id) => document.getElementById(id);
	const pause = byID("pause"), lost = byID("lost"), words = byID("words").dataset;
	let paused = false, spokenAt = Date.now();

	// A link that has the focus keeps it, though it is another element then.
	const bringUpToDate = (part, newer) => {
		const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
		part.replaceChildren(...newer.childNodes);
		if (focused !== null) {
			[...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
		}
	};

	const refresh = async () => {
		const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(patienceMs) });
		if (!answer.ok) {
			throw new Error(String(answer.status));
		}
		const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
		if (paused) {
			return;
		}
		for (const part of document.querySelectorAll("[data-live]")) {
			const by = newer.getElementById(part.id);
			if (by !== null) {
				bringUpToDate(part, by);
			}
		}
	};

	// A screen reader that was told of each change would say nothing else.
	const speak = () => {
		const summary = byID("summary");
		if (summary !== null && Date.now() - spokenAt >= spokenEveryMs) {
			byID("spoken").textContent = summary.textContent;
			spokenAt = Date.now();
		}
	};

	const tick = async () => {
		if (!paused && !document.hidden) {
			try {
				await refresh();
				lost.hidden = true;
				speak();
			} catch {
				if (lost.hidden) {
					byID("lost-at").textContent = new Date().toLocaleTimeString(document.documentElement.lang);
					lost.hidden = false;
				}
			}
		}
		setTimeout(tick, everyMs);
	};

	pause.hidden = false;
	pause.addEventListener("click", () => {
		paused = !paused;
		pause.textContent = paused ? words.resume : words.pause;
	});
	setTimeout(tick, everyMs);
})();
