"use strict";
(() => {
	const timeoutMs = 5000, spokenIntervalMs = 30000;
	const byID = (id) => document.getElementById(id);
	const page = JSON.parse(byID("page").dataset.page);
	const pause = byID("pause"), lost = byID("lost");
	let paused = false, spokenAt = Date.now(), boot = "", seq = "", have = "", stepMs = 2000;

	const refresh = async () => {
		const query = new URLSearchParams(location.search);
		query.set("boot", boot);
		query.set("after", seq);
		query.set("have", have);
		const answer = await fetch("/live.json?" + query, { cache: "no-store", signal: AbortSignal.timeout(timeoutMs) });
		if (!answer.ok) {
			throw new Error(String(answer.status));
		}
		const update = await answer.json();
		if (paused) {
			return;
		}
		({ boot, seq, have, stepMs } = update);
		document.title = update.title;
		for (const [id, html] of Object.entries(update.parts)) {
			byID(id).innerHTML = html;
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
					byID("lost-at").textContent = new Date().toLocaleTimeString(page.lang);
					lost.hidden = false;
				}
			}
		}
		setTimeout(tick, stepMs);
	};

	pause.hidden = false;
	pause.addEventListener("click", () => {
		paused = !paused;
		pause.textContent = paused ? page.words.resume : page.words.pause;
	});
	tick();
})();
