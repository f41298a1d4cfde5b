// Polls the server, patches the page, and says when the server is gone.
const intervalMs = 2000, spokenIntervalMs = 30_000, timeoutMs = 5000;
const byID = (id) => document.getElementById(id);
const { charts, words } = JSON.parse(byID("page").dataset.page);
const samples = new Samples();
const known = { boot: "", seq: "", have: "" };
let paused = false, title = document.title, answeredAt = Date.now(), failures = 0, spokenAt = Date.now(), timer = 0, asking = null;

document.documentElement.classList.add("scripting");
const board = new Board(charts, samples, byID("ranges"));

const ask = async () => {
	const url = new URL("live.json", location.href);
	url.search = location.search;
	url.searchParams.set("boot", known.boot);
	url.searchParams.set("after", known.seq);
	url.searchParams.set("have", known.have);
	asking?.abort();
	asking = new AbortController();
	const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.any([asking.signal, AbortSignal.timeout(timeoutMs)]) });
	if (!answer.ok) {
		throw new Error(String(answer.status));
	}
	return answer.json();
};

const show = (news) => {
	Object.assign(known, { boot: news.boot, seq: news.seq, have: news.have });
	samples.add(news);
	for (const [id, html] of Object.entries(news.parts)) {
		morph(byID(id), html);
	}
	title = news.title;
	entitle();
	reveal();
	board.draw();
	if (samples.length > 0) {
		for (const spark of document.querySelectorAll("svg.spark")) {
			drawSpark(spark, samples);
		}
	}
};

// entitle sets the title, which must not look live if the page is paused.
const entitle = () => {
	document.title = paused ? `${words.paused} · cellserver` : title;
	byID("paused").hidden = !paused;
	byID("paused-at").textContent = timeText(answeredAt);
};

// reveal shows the copy buttons, which need this script.
const reveal = () => {
	for (const button of document.querySelectorAll("button.copy[hidden]")) {
		button.hidden = false;
	}
};

// speak announces a text now and then: announcing each change would drown everything else.
const speak = (text) => {
	byID("spoken").textContent = text;
	spokenAt = Date.now();
};

// setFailures shows that the server is gone after two failures, as a busy browser may lose one answer.
const setFailures = (count) => {
	failures = count;
	if (count === 0) {
		answeredAt = Date.now();
	} else if (count === 2) {
		byID("lost-at").textContent = timeText(answeredAt);
		document.title = `${byID("lost").textContent} · cellserver`; // the tab must not keep the last share
	}
	byID("lost").hidden = count < 2;
	document.documentElement.classList.toggle("stale", count >= 2);
};

// refresh returns false if another request replaced this one.
const refresh = async () => {
	let news;
	try {
		news = await ask();
	} catch (error) {
		if (error.name === "AbortError") {
			return false;
		}
		setFailures(failures + 1);
		return true;
	}
	setFailures(0);
	show(news);
	if (Date.now() - spokenAt >= spokenIntervalMs) {
		speak(byID("summary")?.textContent ?? "");
	}
	return true;
};

const tick = async (always = false) => {
	clearTimeout(timer);
	let next = true;
	try {
		next = (!always && (paused || document.hidden)) || await refresh();
	} finally {
		if (next) {
			timer = setTimeout(() => tick(), intervalMs);
		}
	}
};

document.addEventListener("visibilitychange", () => document.hidden || tick());

const pause = byID("pause");
pause.hidden = false;
pause.addEventListener("click", () => {
	paused = !paused;
	asking?.abort(); // its answer would change a paused page
	pause.textContent = paused ? words.resume : words.pause;
	document.documentElement.classList.toggle("paused", paused);
	entitle();
	tick();
});

tick();
