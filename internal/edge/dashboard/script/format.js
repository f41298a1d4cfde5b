// Formats of values and ticks of axes, by the same rules as in figures.go.
const decimal = [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"]];
const units = {
	rate: decimal,
	count: decimal,
	duration: [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]],
	bytes: [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]],
};

// rates are integers in thousandths
const perUnit = { rate: 1000, count: 1, duration: 1, bytes: 1 };

const unitFor = (kind, value) => units[kind].findLast(([factor]) => value >= factor) ?? units[kind][0];
const withUnit = (number, name) => (name === "" ? number : `${number}\u00a0${name}`);
const grouped = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");

const threeDigits = (v) => v.toFixed(v >= 100 || Number.isInteger(v) ? 0 : v >= 10 ? 1 : 2);

// valueText formats a value: counts in full, everything else with three digits and a unit.
const valueText = (kind, value) => {
	if (value === null || value === undefined) {
		return "–";
	}
	if (kind === "count" || (kind === "rate" && value >= 100)) {
		return grouped(value);
	}
	const [factor, name] = unitFor(kind, value);
	return withUnit(threeDigits(value / factor), name);
};

// roundStep rounds a step to 1, 2, 5, 10, ..., and for bytes to a power of two. Counts have no halves.
const roundStep = (kind, value) => {
	if (kind === "bytes") {
		return 2 ** Math.max(0, Math.round(Math.log2(value)));
	}
	const base = 10 ** Math.floor(Math.log10(value)), step = base * ([1, 2, 5].find((m) => m * base >= 0.7 * value) ?? 10);
	return kind === "count" ? Math.max(1, step) : step;
};

// linearTicks returns about `wanted` ticks from 0 to at least max.
const linearTicks = (kind, max, wanted) => {
	const step = roundStep(kind, max / wanted);
	return Array.from({ length: Math.ceil(max / step - 1e-9) + 1 }, (_, i) => i * step);
};

// logTicks returns ticks from at most min to at least max: decades, every other one if they are many, and
// also twofold and fivefold if they are few.
const logTicks = (min, max) => {
	const first = Math.floor(Math.log10(min)), last = Math.ceil(Math.log10(max));
	const within = last - first > 2 ? [1] : [1, 2, 5];
	const all = [];
	for (let exponent = first, step = last - first > 4 ? 2 : 1; exponent < last + step; exponent += step) {
		all.push(...within.map((m) => m * 10 ** exponent));
	}
	const from = all.findLastIndex((v) => v <= min * (1 + 1e-9)), to = all.findIndex((v) => v >= max * (1 - 1e-9));
	return all.slice(Math.max(0, from), Math.max(to, from + 1) + 1);
};

// tickTexts labels ticks in the unit of the largest, or of the first if that is a small part of it; on a
// logarithmic axis each in its own.
const tickTexts = (kind, ticks, log) => {
	const largest = unitFor(kind, ticks.at(-1)), common = 4 * ticks[1] > largest[0] ? largest : unitFor(kind, ticks[1]);
	return ticks.map((tick) => {
		const [factor, name] = log ? unitFor(kind, tick) : common;
		return tick === 0 ? "0" : withUnit(String(Number((tick / factor).toPrecision(6))), name);
	});
};

const clockFormat = (seconds) => new Intl.DateTimeFormat(document.documentElement.lang,
	{ hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }), hourCycle: "h23" });
const toSeconds = clockFormat(true), toMinutes = clockFormat(false);
const timeText = (ms) => toSeconds.format(ms);

// timeTicks returns round times of the browser's clock with labels, as many as fit a width.
const timeTicks = (fromMs, toMs, width) => {
	const stepsSec = [1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600, 900, 1800];
	const stepMs = 1000 * (stepsSec.find((s) => ((toMs - fromMs) / 1000 / s) * (s < 60 ? 120 : 60) <= width) ?? 3600);
	const zoneMs = new Date(toMs).getTimezoneOffset() * 60000;
	const format = stepMs < 60000 ? toSeconds : toMinutes;
	const ticks = [];
	for (let ms = Math.ceil((fromMs - zoneMs) / stepMs) * stepMs + zoneMs; ms <= toMs; ms += stepMs) {
		ticks.push({ ms, text: format.format(ms) });
	}
	return ticks;
};
