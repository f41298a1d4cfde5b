"use strict";
(() => {
	const intervalMs = 2000, spokenIntervalMs = 30000, timeoutMs = 5000;
	const byID = (id) => document.getElementById(id);
	const pause = byID("pause"), lost = byID("lost"), words = byID("words").dataset;
	let paused = false, spokenAt = Date.now();

	// The focused link keeps the focus although its element is replaced.
	const updatePart = (part, newer) => {
		const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
		part.replaceChildren(...newer.childNodes);
		if (focused !== null) {
			[...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
		}
	};

	const refresh = async () => {
		const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(timeoutMs) });
		if (!answer.ok) {
			throw new Error(String(answer.status));
		}
		const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
		if (paused) {
			return;
		}
		for (const part of document.querySelectorAll("[data-live]")) {
			const by = newer.getElementById(part.id);
			if (by !== null && !part.isEqualNode(by)) { // or an alert would be announced again
				updatePart(part, by);
			}
		}
	};

	// A screen reader that announced each change would say nothing else.
	const speak = () => {
		const summary = byID("summary");
		if (summary !== null && Date.now() - spokenAt >= spokenIntervalMs) {
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
		setTimeout(tick, intervalMs);
	};

	pause.hidden = false;
	pause.addEventListener("click", () => {
		paused = !paused;
		pause.textContent = paused ? words.resume : words.pause;
	});
	setTimeout(tick, intervalMs);
})();
